//! Facts: what is known about a trial or a row besides its figure, each under a typed key.
//!
//! A [`Key`] has the name that stands in the record and says how the values of several trials
//! become the value of the row. Facts stay typed until the record is written: [`Facts::to_json`]
//! is the only way out. Read next: [`crate::case::Sample`], which carries those of one trial.

use std::borrow::Cow;

use serde_json::Map;

use crate::statistics;

/// How the values of several trials become the value of their row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// The sum of numbers.
    Sum,
    /// The arithmetic mean of numbers.
    Mean,
    /// The median of numbers.
    Median,
    /// What nine tenths of the numbers do not exceed.
    UpperDecile,
    /// The largest number.
    Max,
    /// The smallest number; of flags whether all are set.
    Min,
    /// That of the last trial.
    Last,
    /// The lists of all trials, one after the other.
    Concat,
}

/// The name of a fact in the record, and how its values are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    name: &'static str,
    merge: Merge,
}

impl Key {
    /// A key whose values are merged by `merge`; a name ends in its unit.
    pub const fn new(name: &'static str, merge: Merge) -> Self {
        Self { name, merge }
    }

    /// A key whose values are summed over the trials: bytes, operations, nanoseconds of CPU time.
    pub const fn sum(name: &'static str) -> Self {
        Self::new(name, Merge::Sum)
    }

    /// A key of something that every trial says anew, such as a setting or a name.
    pub const fn last(name: &'static str) -> Self {
        Self::new(name, Merge::Last)
    }

    /// Its name in the record.
    pub const fn name(self) -> &'static str {
        self.name
    }
}

/// A fact that one place sets and nobody reads needs no constant: its name is its key.
impl From<&'static str> for Key {
    fn from(name: &'static str) -> Self {
        Self::last(name)
    }
}

impl AsRef<str> for Key {
    fn as_ref(&self) -> &str {
        self.name
    }
}

/// The value of a fact.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nobody knows; null in the record.
    Unknown,
    /// Yes or no.
    Flag(bool),
    /// A whole number.
    Count(u64),
    /// Any other number; null in the record where it is not finite.
    Number(f64),
    /// Words.
    Text(Cow<'static, str>),
    /// Values in an order that means something.
    List(Vec<Value>),
    /// Named values.
    Fields(Vec<(Cow<'static, str>, Value)>),
}

impl Value {
    /// Named values.
    pub fn fields<N, V>(fields: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<Cow<'static, str>>,
        V: Into<Self>,
    {
        let fields = fields.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self::Fields(fields.collect())
    }

    /// The value as a number, where it is one.
    pub fn number(&self) -> Option<f64> {
        match *self {
            Self::Count(count) => Some(count as f64),
            Self::Number(number) => Some(number),
            _ => None,
        }
    }

    /// The whole number that it is.
    pub fn count(&self) -> Option<u64> {
        if let Self::Count(count) = self { Some(*count) } else { None }
    }

    /// The yes or no that it is.
    pub fn flag(&self) -> Option<bool> {
        if let Self::Flag(flag) = self { Some(*flag) } else { None }
    }

    /// The words that it is.
    pub fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// As JSON.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Unknown => serde_json::Value::Null,
            Self::Flag(flag) => (*flag).into(),
            Self::Count(count) => (*count).into(),
            Self::Number(number) => (*number).into(),
            Self::Text(text) => text.as_ref().into(),
            Self::List(values) => values.iter().map(Self::to_json).collect(),
            Self::Fields(fields) => {
                let member = |(name, value): &(Cow<'_, str>, Self)| {
                    (name.clone().into_owned(), value.to_json())
                };
                fields.iter().map(member).collect::<Map<_, _>>().into()
            }
        }
    }
}

macro_rules! value_from {
    ($($from:ty => $variant:ident ($value:ident $(: $into:expr)?)),* $(,)?) => {
        $(impl From<$from> for Value {
            fn from($value: $from) -> Self {
                Self::$variant(value_from!(@ $value $($into)?))
            }
        })*
    };
    (@ $value:ident) => { $value.into() };
    (@ $value:ident $into:expr) => { $into };
}

value_from! {
    bool => Flag(flag: flag),
    u32 => Count(count),
    u64 => Count(count),
    usize => Count(count: count as u64),
    f64 => Number(number),
    &'static str => Text(text),
    String => Text(text),
    Vec<Value> => List(values),
}

impl From<Facts> for Value {
    fn from(facts: Facts) -> Self {
        Self::fields(facts.0.into_iter().map(|fact| (fact.key.name, fact.value)))
    }
}

impl<V: Into<Value>> From<Option<V>> for Value {
    fn from(value: Option<V>) -> Self {
        value.map_or(Self::Unknown, Into::into)
    }
}

impl<V: Into<Value>> FromIterator<V> for Value {
    fn from_iter<I: IntoIterator<Item = V>>(values: I) -> Self {
        Self::List(values.into_iter().map(Into::into).collect())
    }
}

/// One fact.
#[derive(Debug, Clone, PartialEq)]
struct Fact {
    key: Key,
    value: Value,
}

/// The facts of a trial or of a row, at most one for each name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts(Vec<Fact>);

impl Facts {
    /// Sets a fact; one of that name is replaced.
    pub fn set(&mut self, key: impl Into<Key>, value: impl Into<Value>) {
        let fact = Fact { key: key.into(), value: value.into() };
        match self.0.iter_mut().find(|known| known.key.name == fact.key.name) {
            Some(known) => *known = fact,
            None => self.0.push(fact),
        }
    }

    /// Sets a fact that may be unknown; then nothing is said of it.
    pub fn set_known(&mut self, key: impl Into<Key>, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }

    /// The same facts and one more.
    #[must_use]
    pub fn with(mut self, key: impl Into<Key>, value: impl Into<Value>) -> Self {
        self.set(key, value);
        self
    }

    /// The same facts and, if there is a value, one more.
    #[must_use]
    pub fn with_known(mut self, key: impl Into<Key>, value: Option<impl Into<Value>>) -> Self {
        self.set_known(key, value);
        self
    }

    /// Takes over all facts of `others`.
    pub fn extend(&mut self, others: Self) {
        others.0.into_iter().for_each(|fact| self.set(fact.key, fact.value));
    }

    /// The value of a fact.
    pub fn value(&self, name: impl AsRef<str>) -> Option<&Value> {
        self.0.iter().find(|fact| fact.key.name == name.as_ref()).map(|fact| &fact.value)
    }

    /// Removes a fact and returns its value.
    pub fn take(&mut self, key: Key) -> Option<Value> {
        let index = self.0.iter().position(|fact| fact.key.name == key.name)?;
        Some(self.0.remove(index).value)
    }

    /// A whole number.
    pub fn count(&self, key: Key) -> Option<u64> {
        self.value(key)?.count()
    }

    /// A number of either kind.
    pub fn number(&self, key: Key) -> Option<f64> {
        self.value(key)?.number()
    }

    /// A yes or no.
    pub fn flag(&self, key: Key) -> Option<bool> {
        self.value(key)?.flag()
    }

    /// Words.
    pub fn text(&self, key: Key) -> Option<&str> {
        self.value(key)?.text()
    }

    /// The facts of a row out of those of its trials, in their order, each merged as its key says.
    /// A trial that does not have a fact does not count for it.
    pub fn merged<'a>(trials: impl Iterator<Item = &'a Self>) -> Self {
        let mut all: Vec<(Key, Vec<&Value>)> = Vec::new();
        for fact in trials.flat_map(|facts| &facts.0) {
            match all.iter_mut().find(|(key, _)| key.name == fact.key.name) {
                Some((_, values)) => values.push(&fact.value),
                None => all.push((fact.key, vec![&fact.value])),
            }
        }
        let merged = |(key, values): (Key, Vec<&Value>)| Fact { key, value: merge(key, &values) };
        Self(all.into_iter().map(merged).collect())
    }

    /// The facts as members of a record.
    pub fn to_json(&self) -> Map<String, serde_json::Value> {
        self.0.iter().map(|fact| (fact.key.name.to_owned(), fact.value.to_json())).collect()
    }
}

/// Merges the values of a key, of which there is at least one. What is no number, where numbers
/// are asked for, counts as [`Merge::Last`]. What is not known of a trial is not known of a sum of them;
/// other figures are those of the trials that have one.
fn merge(key: Key, values: &[&Value]) -> Value {
    let last = || values.last().map_or(Value::Unknown, |&value| value.clone());
    let is_known = |value: &&&Value| !matches!(value, Value::Unknown);
    let known: Vec<&Value> = values.iter().filter(is_known).copied().collect();
    let values: &[&Value] = match key.merge {
        Merge::Last | Merge::Concat => values,
        Merge::Sum if known.len() < values.len() => return Value::Unknown,
        _ => &known,
    };
    if values.is_empty() {
        return Value::Unknown;
    }
    let counts: Option<Vec<u64>> = values.iter().map(|value| value.count()).collect();
    let numbers: Option<Vec<f64>> = values.iter().map(|value| value.number()).collect();
    let flags: Option<Vec<bool>> = values.iter().map(|value| value.flag()).collect();
    match (key.merge, counts, numbers, flags) {
        (Merge::Sum, Some(counts), Some(numbers), _) => {
            let sum = counts.iter().try_fold(0_u64, |sum, &count| sum.checked_add(count));
            sum.map_or_else(|| Value::Number(numbers.iter().sum()), Value::Count)
        }
        (Merge::Max, Some(counts), ..) => counts.into_iter().max().into(),
        (Merge::Min, Some(counts), ..) => counts.into_iter().min().into(),
        (Merge::Min, _, _, Some(flags)) => flags.into_iter().all(|flag| flag).into(),
        (Merge::Sum, _, Some(numbers), _) => numbers.iter().sum::<f64>().into(),
        (Merge::Max, _, Some(numbers), _) => numbers.into_iter().reduce(f64::max).into(),
        (Merge::Min, _, Some(numbers), _) => numbers.into_iter().reduce(f64::min).into(),
        (Merge::Mean, _, Some(numbers), _) => {
            (numbers.iter().sum::<f64>() / numbers.len() as f64).into()
        }
        (Merge::Median, _, Some(numbers), _) => statistics::median(&numbers).into(),
        (Merge::UpperDecile, _, Some(numbers), _) => statistics::quantile(&numbers, 0.9).into(),
        (Merge::Concat, ..) => Value::List(values.iter().flat_map(|value| items(value)).collect()),
        _ => last(),
    }
}

/// The values of a list; of anything else itself.
fn items(value: &Value) -> Vec<Value> {
    if let Value::List(values) = value { values.clone() } else { vec![value.clone()] }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merged(merge: Merge, values: impl IntoIterator<Item = impl Into<Value>>) -> Value {
        let key = Key::new("key", merge);
        let trials: Vec<Facts> =
            values.into_iter().map(|value| Facts::default().with(key, value)).collect();
        Facts::merged(trials.iter()).take(key).unwrap()
    }

    #[test]
    fn values_are_merged_as_their_key_says() {
        assert_eq!(merged(Merge::Sum, [3_u64, 4]), Value::Count(7));
        assert_eq!(merged(Merge::Sum, [0.5, 0.25]), Value::Number(0.75));
        assert_eq!(merged(Merge::Mean, [1_u64, 2]), Value::Number(1.5));
        assert_eq!(merged(Merge::Median, [9.0, 1.0, 2.0]), Value::Number(2.0));
        assert_eq!(merged(Merge::Max, [3_u64, 4, 2]), Value::Count(4));
        assert_eq!(merged(Merge::Min, [3.0, 2.5]), Value::Number(2.5));
        assert_eq!(merged(Merge::Min, [true, false, true]), Value::Flag(false));
        assert_eq!(merged(Merge::Last, ["a", "b"]), Value::Text("b".into()));
        let tenths = (0..=10).map(|tenth| f64::from(tenth) / 10.0);
        assert_eq!(merged(Merge::UpperDecile, tenths), Value::Number(0.9));
    }

    #[test]
    fn lists_are_joined_in_the_order_of_the_trials() {
        let lists = [vec![1_u64, 2], Vec::new(), vec![1]];
        let lists = lists.map(|list| list.into_iter().collect::<Value>());
        assert_eq!(merged(Merge::Concat, lists), [1_u64, 2, 1].into_iter().collect());
    }

    #[test]
    fn sums_that_do_not_fit_become_floats() {
        assert_eq!(merged(Merge::Sum, [u64::MAX, 1]), Value::Number(2_f64.powi(64)));
    }

    #[test]
    fn words_are_not_summed_and_a_trial_without_a_fact_does_not_count_for_it() {
        assert_eq!(merged(Merge::Sum, ["a", "b"]), Value::Text("b".into()));
        let (mean, sum) = (Key::new("share", Merge::Mean), Key::sum("bytes"));
        let trials =
            [Facts::default().with(mean, 0.5).with(sum, 1_u64), Facts::default().with(sum, 2_u64)];
        let row = Facts::merged(trials.iter());
        assert_eq!((row.number(mean), row.count(sum)), (Some(0.5), Some(3)));
    }

    #[test]
    fn what_a_trial_does_not_know_is_not_known_of_the_sum() {
        let of = |merge| merged(merge, [Some(5_u64), None, Some(7)]);
        assert_eq!(of(Merge::Sum), Value::Unknown, "neither 7 nor 12");
        let others = [Merge::Mean, Merge::Max, Merge::Min, Merge::Last].map(of);
        let expected = [Value::Number(6.0), Value::Count(7), Value::Count(5), Value::Count(7)];
        assert_eq!(others, expected);
        assert_eq!(merged(Merge::Last, [Some(5_u64), None]), Value::Unknown);
        assert_eq!(merged(Merge::Median, [None::<u64>, None]), Value::Unknown);
    }

    #[test]
    fn a_fact_is_replaced_and_read_back_by_its_kind() {
        let key = Key::last("key");
        let mut facts = Facts::default().with(key, 1_u64).with(key, "words");
        assert_eq!((facts.count(key), facts.text(key)), (None, Some("words")));
        facts.set_known(key, None::<u64>);
        facts.set_known(key, Some(true));
        assert_eq!((facts.number(key), facts.flag(key)), (None, Some(true)));
        assert_eq!(facts.take(key), Some(Value::Flag(true)));
        assert_eq!(facts, Facts::default());
    }

    #[test]
    fn facts_leave_as_json() {
        let nested = Value::fields([("low", Value::from(1_u32)), ("high", f64::NAN.into())]);
        let facts = Facts::default()
            .with(Key::last("list"), [1.5, 2.5].into_iter().collect::<Value>())
            .with(Key::last("none"), None::<u64>)
            .with(Key::last("nested"), nested);
        let expected =
            json!({"list": [1.5, 2.5], "none": null, "nested": {"low": 1, "high": null}});
        assert_eq!(Value::from(facts.clone()).to_json(), expected);
        assert_eq!(serde_json::Value::Object(facts.to_json()), expected);
    }
}
