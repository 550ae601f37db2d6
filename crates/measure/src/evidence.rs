//! Whether the work of a row was done where its name says, and the number that decides.
//!
//! It stands in the record as `audit.evidence`; the answer to "did it even happen?" rests on it.
//! Who measures says what counts as evidence; nothing is concluded from silence.

use std::borrow::Cow;

use crate::fact::{Facts, Key, Value};
use crate::record::Outcome;

/// The evidence of a row.
pub const EVIDENCE: Key = Key::last("evidence");

/// The id of the rows that a row is derived from: they have evidence, it has none of its own and does
/// not count.
pub const DERIVED_FROM: Key = Key::last("derived_from");

flatout_sys::words! {
    /// Whether it happened.
    pub enum Happened: name, ALL {
        /// A reading shows it.
        Yes = "yes",
        /// A reading shows that it did not, or not all of it.
        No = "no",
        /// There is no reading.
        Unknown = "unknown",
    }
}

/// What shows whether the work of a row was done.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// The answer.
    pub happened: Happened,
    /// What was read: a name with its unit, as those of the audit.
    pub by: Cow<'static, str>,
    /// The reading; none where there is none.
    pub value: Option<f64>,
    /// In words, for people.
    pub text: Cow<'static, str>,
}

impl Evidence {
    /// That of a reading which decides by `happened`.
    pub fn read(
        happened: Happened,
        by: &'static str,
        value: f64,
        text: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { happened, by: by.into(), value: Some(value), text: text.into() }
    }

    /// None, because of what `text` says; `by` is what would have decided.
    pub fn missing(by: &'static str, text: impl Into<Cow<'static, str>>) -> Self {
        Self { happened: Happened::Unknown, by: by.into(), value: None, text: text.into() }
    }

    /// That of work which counts itself under `key`: no piece of it is counted whose result was not
    /// looked at, or on which the next did not depend.
    pub fn counted(facts: &Facts, key: Key) -> Self {
        match facts.number(key) {
            Some(count) if count > 0.0 => {
                Self::read(Happened::Yes, key.name(), count, "the work counted what it completed")
            }
            _ => Self::missing(key.name(), "nothing was counted"),
        }
    }

    /// Whether a row only says anew what others measured.
    pub fn is_derived(row: &Outcome) -> bool {
        row.samples.is_empty() || row.audit.contains_key(DERIVED_FROM.name())
    }

    /// Whether nothing shows if the work of these facts was done, though somebody looked.
    pub fn is_missing(facts: &Facts) -> bool {
        let Some(Value::Fields(fields)) = facts.value(EVIDENCE) else { return false };
        let unknown = Value::from(Happened::Unknown.name());
        fields.iter().any(|(name, value)| name == "happened" && *value == unknown)
    }

    /// The evidence of a row of a record; none where nobody looked for any.
    pub fn of(row: &Outcome) -> Option<Self> {
        let members = row.audit.get(EVIDENCE.name())?.as_object()?;
        let word = |key: &str| members.get(key)?.as_str();
        let named = |happened: &Happened| word("happened") == Some(happened.name());
        let owned = |key: &str| Cow::Owned(word(key).unwrap_or_default().to_owned());
        Some(Self {
            happened: Happened::ALL.into_iter().find(named).unwrap_or(Happened::Unknown),
            by: owned("by"),
            value: members.get("value").and_then(|value| value.as_f64()),
            text: owned("text"),
        })
    }
}

impl From<Evidence> for Value {
    fn from(evidence: Evidence) -> Self {
        Self::fields([
            ("happened", Self::from(evidence.happened.name())),
            ("by", Self::Text(evidence.by)),
            ("value", evidence.value.into()),
            ("text", Self::Text(evidence.text)),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(evidence: Evidence) -> Outcome {
        let audit = Facts::default().with(EVIDENCE, evidence).to_json();
        Outcome { audit, ..Outcome::default() }
    }

    #[test]
    fn what_is_written_can_be_read_back() {
        for happened in Happened::ALL {
            let evidence = Evidence::read(happened, "disk_share_ratio", 0.5, "half");
            assert_eq!(Evidence::of(&row(evidence.clone())), Some(evidence));
        }
        let missing = Evidence::missing("disk_share_ratio", "no account");
        assert_eq!(Evidence::of(&row(missing.clone())), Some(missing.clone()));
        assert_eq!(Evidence::of(&Outcome::default()), None);
        let is_missing = |facts: &Facts| Evidence::is_missing(facts);
        assert!(is_missing(&Facts::default().with(EVIDENCE, missing)));
        let found = Evidence::read(Happened::No, "disk_share_ratio", 0.0, "none");
        assert!(!is_missing(&Facts::default().with(EVIDENCE, found)));
        assert!(!is_missing(&Facts::default()));
    }

    #[test]
    fn work_counts_itself_or_is_unknown() {
        let key = Key::sum("calls");
        let counted = |count: u64| Evidence::counted(&Facts::default().with(key, count), key);
        assert_eq!((counted(7).happened, counted(7).value), (Happened::Yes, Some(7.0)));
        assert_eq!(counted(0).happened, Happened::Unknown);
        assert_eq!(Evidence::counted(&Facts::default(), key).happened, Happened::Unknown);
    }
}
