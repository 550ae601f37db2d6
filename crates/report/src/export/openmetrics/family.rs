//! Lines of metrics, family by family: the format wants all samples of a name together.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use crate::text::{self, Joined};

/// The longest part of a name that comes from data.
const MAX_NAME_CHARS: usize = 60;
/// What a name can end in to be a unit, for the line that says so.
const UNITS: [&str; 7] = [
    "bytes_per_second",
    "operations_per_second",
    "flop_per_second",
    "seconds",
    "hertz",
    "ratio",
    "cpus",
];

/// Names and values that tell a sample from others of its family.
#[derive(Debug, Clone, Default)]
pub(super) struct Labels {
    pairs: Vec<(String, String)>,
    /// How often each name was wanted.
    wanted: HashMap<String, u32>,
}

impl Labels {
    /// Adds a label under the nearest name that is allowed and free.
    pub(super) fn add(&mut self, name: &str, value: &str) {
        let part = name_part(name);
        let stem = if part.starts_with(|c: char| c.is_ascii_digit()) {
            format!("parameter_{part}")
        } else {
            part
        };
        let mut free = stem.clone();
        while self.wanted.contains_key(&free) {
            let times = self.wanted.entry(stem.clone()).or_default();
            *times += 1;
            free = format!("{stem}_{times}");
        }
        self.wanted.insert(free.clone(), 1);
        self.pairs.push((free, value.to_owned()));
    }
}

impl fmt::Display for Labels {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pairs.is_empty() {
            return Ok(());
        }
        let escaped = |value: &str| text::visible(value).replace('\\', "\\\\").replace('"', "\\\"");
        let pair = |(name, value): &(String, String)| format!("{name}=\"{}\"", escaped(value));
        write!(formatter, "{{{}}}", self.pairs.iter().map(pair).joined(","))
    }
}

/// The text as a part of a name: lower-case letters, digits and single underscores.
pub(super) fn name_part(text: &str) -> String {
    let mut name = String::new();
    for c in text.chars() {
        let c = if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
        if c != '_' || !(name.is_empty() || name.ends_with('_')) {
            name.push(c);
        }
    }
    let name: String = name.trim_end_matches('_').chars().take(MAX_NAME_CHARS).collect();
    let name = name.trim_end_matches('_');
    if name.is_empty() { "other".to_owned() } else { name.to_owned() }
}

#[derive(Debug, Default)]
struct Family {
    name: String,
    help: String,
    lines: String,
    known: BTreeSet<String>,
}

/// All families, in the order in which they were first added to.
#[derive(Debug, Default)]
pub(super) struct Families {
    families: Vec<Family>,
    places: HashMap<String, usize>,
}

impl Families {
    /// Adds a sample. One that the family already has is left out: a label set has one value.
    pub(super) fn add(&mut self, name: &str, help: &str, labels: &Labels, value: f64) {
        let at = self.places.get(name).copied().unwrap_or_else(|| {
            let (name, help) = (name.to_owned(), help.to_owned());
            self.places.insert(name.clone(), self.families.len());
            self.families.push(Family { name, help, ..Family::default() });
            self.families.len() - 1
        });
        let family = &mut self.families[at];
        let labels = labels.to_string();
        if family.known.insert(labels.clone()) {
            family.lines.push_str(&format!("{name}{labels} {value}\n"));
        }
    }

    /// The whole text.
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        for Family { name, help, lines, .. } in &self.families {
            out.push_str(&format!("# TYPE {name} gauge\n"));
            let unit = UNITS.iter().find(|unit| name.ends_with(&format!("_{unit}")));
            if let Some(unit) = unit {
                out.push_str(&format!("# UNIT {name} {unit}\n"));
            }
            out.push_str(&format!("# HELP {name} {help}\n{lines}"));
        }
        out.push_str("# EOF\n");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_allowed_free_and_escaped() {
        let mut labels = Labels::default();
        for (name, value) in
            [("a-b", "x\"y\\z\n"), ("a b", "2"), ("7", "3"), ("__", "é"), ("Id", "\u{1b}")]
        {
            labels.add(name, value);
        }
        let expected = "{a_b=\"x\\\"y\\\\z\\\\n\",a_b_2=\"2\",parameter_7=\"3\",other=\"é\",\
                        id=\"\\\\x1b\"}";
        assert_eq!(labels.to_string(), expected);
    }

    #[test]
    fn samples_of_a_family_stand_together_and_once() {
        let mut families = Families::default();
        let none = Labels::default();
        let mut one = Labels::default();
        one.add("id", "a");
        families.add("x_seconds", "X.", &none, 1.5);
        families.add("y", "Y.", &none, 2.0);
        families.add("x_seconds", "X.", &one, 1e-9);
        families.add("x_seconds", "X.", &one, 7.0);
        let expected = "# TYPE x_seconds gauge\n# UNIT x_seconds seconds\n# HELP x_seconds X.\n\
                        x_seconds 1.5\nx_seconds{id=\"a\"} 0.000000001\n# TYPE y gauge\n# HELP y Y.\n\
                        y 2\n# EOF\n";
        assert_eq!(families.text(), expected);
    }
}
