//! A race put in order: tests, their workloads and contestants; pairs, losses first; who is missing.
//!
//! The tables that are made of it: `page/race_tables.rs`; its pictures: `page/pictures.rs`.

mod pair;

use std::collections::{HashMap, HashSet};

use flatout_measure::record::{Outcome, Warning};
use flatout_measure::warning;
use serde_json::{Map, Value};

pub(crate) use pair::{Pair, Pairs};

use crate::text::{Joined, unless_empty};
use crate::{label, order, quantity};

/// The area whose rows are those of a race.
pub(crate) const AREA: &str = "versus";
/// Rows of pairs, of rivals that are not installed, and of what cannot be raced.
const RATIO: &str = "ratio";
const MISSING: &str = "missing";
const INCOMPARABLE: &str = "incomparable";
/// What the row of a speed is called behind that of its time.
const SPEED: &str = "-speed";
/// The parameter that tells who took part.
const CONTESTANT: &str = "contestant";

/// Facts that the lines for a spreadsheet have.
pub(crate) const FACTS: &str =
    "version user_ns system_ns cpu_ns peak_memory_bytes peak_memory_of result package";

/// What stands before a peak of memory that may be another's.
pub(super) const INHERITED_MEANING: &str =
    "the peak may be that of the process that started the program";

/// A race.
#[derive(Default)]
pub(crate) struct Race<'a> {
    pub tests: Vec<Test<'a>>,
    pub pairs: Vec<Pairs<'a>>,
    /// Rivals that are not installed.
    pub missing: Vec<String>,
    /// Why others that are known are not raced, a sentence each.
    pub not_raced: Vec<String>,
    /// What cannot be compared with whom, a sentence each.
    pub incomparable: Vec<String>,
    /// Rows that are none of these, to be shown as rows of any bench are.
    pub others: Vec<&'a Outcome>,
}

/// All workloads of one name.
pub(crate) struct Test<'a> {
    pub name: &'a str,
    /// What all its workloads have in common, in words.
    pub constants: Vec<String>,
    pub workloads: Vec<Workload<'a>>,
}

/// One work in one state.
pub(crate) struct Workload<'a> {
    /// What tells it from the other workloads of its test; empty where there is none.
    pub words: Vec<String>,
    pub entries: Vec<Entry<'a>>,
}

/// One who took part.
pub(crate) struct Entry<'a> {
    pub contestant: &'a str,
    pub outcome: &'a Outcome,
    pub speed: Option<&'a Outcome>,
}

/// The race in these rows, which are all of its area.
pub(crate) fn race<'a>(rows: &[&'a Outcome]) -> Race<'a> {
    let mut race = Race::default();
    let (mut pairs, mut incomparable) = (Vec::new(), Vec::new());
    let (mut entries, mut speeds) = (Vec::new(), Vec::new());
    for outcome in rows.iter().copied() {
        let test = label::test(&outcome.id);
        match (test, outcome.parameter_text(CONTESTANT)) {
            (RATIO, _) => pairs.push(outcome),
            (MISSING, _) if is_absent(outcome) => race.missing.push(named(outcome)),
            (MISSING, _) => race.not_raced.push(reason(outcome)),
            (INCOMPARABLE, _) => incomparable.push(outcome),
            (_, Some(_)) if test.ends_with(SPEED) => speeds.push(outcome),
            (_, Some(contestant)) => {
                entries.push((test, Entry { contestant, outcome, speed: None }))
            }
            (_, None) => race.others.push(outcome),
        }
    }
    give_speeds(&mut entries, &speeds);
    let taken = entries.iter().filter_map(|(_, entry)| entry.speed).map(std::ptr::from_ref);
    let taken: HashSet<*const Outcome> = taken.collect();
    race.others
        .extend(speeds.into_iter().filter(|speed| !taken.contains(&std::ptr::from_ref(*speed))));
    let tests = order::grouped(entries.into_iter()).into_iter();
    race.tests = tests.map(|(name, entries)| Test::of(name, entries)).collect();
    race.pairs = pair::lists(&pairs);
    race.incomparable = incomparables(&incomparable);
    race
}

/// Gives each who took part the row of its speed, if there is one: both have the same parameters.
fn give_speeds<'a>(entries: &mut [(&str, Entry<'a>)], speeds: &[&'a Outcome]) {
    let parameters = |row: &Outcome| Value::from(row.parameters.clone()).to_string();
    let keyed = speeds.iter().map(|speed| {
        let test = label::test(&speed.id).trim_end_matches(SPEED);
        ((test, parameters(speed)), *speed)
    });
    let by_work = order::grouped(keyed).into_iter();
    let mut by_work: HashMap<_, _> = by_work.map(|(key, rows)| (key, rows.into_iter())).collect();
    for (test, entry) in entries {
        let own = by_work.get_mut(&(*test, parameters(entry.outcome)));
        entry.speed = own.and_then(Iterator::next);
    }
}

impl<'a> Race<'a> {
    /// All who took part in anything.
    pub fn entries(&self) -> impl Iterator<Item = &Entry<'a>> {
        self.tests.iter().flat_map(Test::entries)
    }
}

impl<'a> Test<'a> {
    fn of(name: &'a str, entries: Vec<Entry<'a>>) -> Self {
        let keyed = entries.into_iter().map(|entry| (entry.workload(), entry));
        let (parameters, entries): (Vec<_>, Vec<_>) = order::grouped(keyed).into_iter().unzip();
        let (constants, words) = label::told_apart(&parameters.iter().collect::<Vec<_>>());
        let workloads = words.into_iter().zip(entries);
        let workloads = workloads.map(|(words, entries)| Workload { words, entries }).collect();
        Self { name, constants, workloads }
    }

    /// Name and constants in one line.
    pub fn title(&self) -> String {
        let words = self.constants.iter().map(String::as_str);
        std::iter::once(self.name).chain(words).joined(", ")
    }

    /// The head of the column with the figures.
    pub fn figure_head(&self) -> &'static str {
        self.entries().next().map_or("figure", |entry| label::figure_noun(&entry.outcome.unit))
    }

    pub fn entries(&self) -> impl Iterator<Item = &Entry<'a>> {
        self.workloads.iter().flat_map(|workload| &workload.entries)
    }
}

impl Entry<'_> {
    /// All parameters but who took part.
    fn workload(&self) -> Map<String, Value> {
        let mut parameters = self.outcome.parameters.clone();
        parameters.remove(CONTESTANT);
        parameters
    }

    /// User and system CPU time of one run.
    pub fn cpu(&self) -> Option<String> {
        let sum =
            || Some(self.outcome.fact_number("user_ns")? + self.outcome.fact_number("system_ns")?);
        let ns = self.outcome.fact_number("cpu_ns").or_else(sum)?;
        Some(quantity::value("ns", ns))
    }

    /// The parts of the CPU time, in words.
    pub fn cpu_parts(&self) -> Option<String> {
        let text = |key: &str| Some(quantity::value("ns", self.outcome.fact_number(key)?));
        Some(format!("user {}, system {}", text("user_ns")?, text("system_ns")?))
    }

    /// Peak resident memory; with a sign where it may be another's.
    pub fn memory(&self) -> Option<String> {
        let bytes = self.outcome.fact_number("peak_memory_bytes")?;
        let sign = if self.may_be_inherited() { "≤ " } else { "" };
        Some(format!("{sign}{}", quantity::value("bytes", bytes)))
    }

    pub fn may_be_inherited(&self) -> bool {
        let of = self.outcome.fact_text("peak_memory_of");
        of.is_some_and(|of| of != "itself")
            && self.outcome.fact_number("peak_memory_bytes").is_some()
    }

    /// Its speed, where the workload has one besides its time.
    pub fn speed_text(&self) -> Option<String> {
        let speed = self.speed?;
        label::figure(speed).map(|figure| quantity::value(&speed.unit, figure))
    }

    /// Files in a second, where the workload is several.
    pub fn files_text(&self) -> Option<String> {
        let files = self.outcome.parameter_number("files").filter(|files| *files > 1.0)?;
        let ns = label::figure(self.outcome).filter(|_| self.outcome.unit == "ns")?;
        Some(quantity::value("files/s", files / ns * 1e9))
    }
}

fn reason(outcome: &Outcome) -> String {
    outcome.warnings.first().map(|warning| warning.text.clone()).unwrap_or_default()
}

/// Whether the row is about a rival that is not installed, and not about one that cannot be raced.
fn is_absent(outcome: &Outcome) -> bool {
    let is_other = |warning: &Warning| warning.code != warning::MISSING_RIVAL;
    !outcome.warnings.first().is_some_and(is_other)
}

/// The name of a rival that is not installed, and where it comes from: `xcp (cargo install xcp)`.
fn named(outcome: &Outcome) -> String {
    match (outcome.parameter_text("rival"), outcome.fact_text("package")) {
        (Some(name), Some(package)) => format!("{name} ({package})"),
        (Some(name), None) => name.to_owned(),
        (None, _) => reason(outcome),
    }
}

/// What cannot be raced, by rival and reason: `fio: create, stat: why`.
fn incomparables(rows: &[&Outcome]) -> Vec<String> {
    let keyed = rows.iter().map(|outcome| {
        let row = outcome.parameter_text("row").map(str::to_owned);
        let row = row.unwrap_or_else(|| label::parameters(&outcome.parameters));
        ((outcome.parameter_text("against").unwrap_or("?"), reason(outcome)), row)
    });
    let told = |((against, reason), rows): ((&str, String), Vec<String>)| {
        let reason = unless_empty(&reason, |reason| format!(": {reason}"));
        format!("{against}: {}{reason}", rows.join(", "))
    };
    order::grouped(keyed).into_iter().map(told).collect()
}

#[cfg(test)]
mod tests;
