//! A race put in order: tests, their workloads and contestants; pairs, losses first; who is missing.
//!
//! The tables that are made of it: `page/race_tables.rs`; its pictures: `page/pictures.rs`.

mod pair;
mod remark;

use flatout_measure::record::Outcome;
use serde_json::{Map, Value};

pub(crate) use pair::{Pair, Pairs, Verdict};
pub(crate) use remark::Incomparable;

use crate::{label, quantity, text::Joined};

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
#[derive(Debug, Default)]
pub(crate) struct Race<'a> {
    pub tests: Vec<Test<'a>>,
    pub pairs: Vec<Pairs<'a>>,
    /// Rivals that are not installed.
    pub missing: Vec<String>,
    /// Why others that are known are not raced, a sentence each.
    pub not_raced: Vec<String>,
    pub incomparable: Vec<Incomparable>,
    /// Rows that are none of these, to be shown as rows of any bench are.
    pub others: Vec<&'a Outcome>,
}

/// All workloads of one name.
#[derive(Debug)]
pub(crate) struct Test<'a> {
    pub name: &'a str,
    /// What all its workloads have in common, in words.
    pub constants: Vec<String>,
    pub workloads: Vec<Workload<'a>>,
}

/// One work in one state.
#[derive(Debug)]
pub(crate) struct Workload<'a> {
    /// What tells it from the other workloads of its test; empty where there is none.
    pub words: Vec<String>,
    pub entries: Vec<Entry<'a>>,
    parameters: Map<String, Value>,
}

/// One who took part.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    pub contestant: &'a str,
    pub outcome: &'a Outcome,
    pub speed: Option<&'a Outcome>,
}

/// The race in these rows, which are all of its area.
pub(crate) fn race<'a>(rows: &[&'a Outcome]) -> Race<'a> {
    let mut race = Race::default();
    let mut pairs = Vec::new();
    let mut speeds = Vec::new();
    let mut incomparable = Vec::new();
    for outcome in rows.iter().copied() {
        let test = label::test(&outcome.id);
        match (test, outcome.parameter_text(CONTESTANT)) {
            (RATIO, _) => pairs.push(outcome),
            (MISSING, _) if remark::is_absent(outcome) => {
                race.missing.push(remark::missing(outcome))
            }
            (MISSING, _) => race.not_raced.push(remark::reason(outcome)),
            (INCOMPARABLE, _) => incomparable.push(outcome),
            (_, Some(_)) if test.ends_with(SPEED) => speeds.push(outcome),
            (_, Some(contestant)) => race.enter(test, contestant, outcome),
            (_, None) => race.others.push(outcome),
        }
    }
    for speed in speeds {
        if !race.has_speed_row(speed) {
            race.others.push(speed);
        }
    }
    race.tests.iter_mut().for_each(Test::name_workloads);
    race.pairs = pair::lists(&pairs);
    race.incomparable = remark::incomparable(&incomparable);
    race
}

impl<'a> Race<'a> {
    fn enter(&mut self, name: &'a str, contestant: &'a str, outcome: &'a Outcome) {
        let parameters = without_contestant(outcome);
        let at = self.tests.iter().position(|test| test.name == name).unwrap_or_else(|| {
            self.tests.push(Test { name, constants: Vec::new(), workloads: Vec::new() });
            self.tests.len() - 1
        });
        let workloads = &mut self.tests[at].workloads;
        let entry = Entry { contestant, outcome, speed: None };
        match workloads.iter_mut().find(|workload| workload.parameters == parameters) {
            Some(workload) => workload.entries.push(entry),
            None => {
                workloads.push(Workload { words: Vec::new(), entries: vec![entry], parameters })
            }
        }
    }

    /// Puts a speed beside its time; whether there is one.
    fn has_speed_row(&mut self, speed: &'a Outcome) -> bool {
        let test = label::test(&speed.id).trim_end_matches(SPEED);
        let workloads = self.tests.iter_mut().filter(|known| known.name == test);
        let mut entries = workloads
            .flat_map(|test| &mut test.workloads)
            .flat_map(|workload| &mut workload.entries);
        let own = entries
            .find(|entry| entry.speed.is_none() && entry.outcome.parameters == speed.parameters);
        own.map(|entry| entry.speed = Some(speed)).is_some()
    }

    /// The rows of all contestants.
    pub fn contestants(&self) -> Vec<&'a Outcome> {
        let workloads = self.tests.iter().flat_map(|test| &test.workloads);
        let entries = workloads.flat_map(|workload| &workload.entries);
        entries.map(|entry| entry.outcome).collect()
    }
}

fn without_contestant(outcome: &Outcome) -> Map<String, Value> {
    let own = outcome.parameters.iter().filter(|(key, _)| *key != CONTESTANT);
    own.map(|(key, value)| (key.clone(), value.clone())).collect()
}

impl Test<'_> {
    fn name_workloads(&mut self) {
        let all: Vec<&Map<String, Value>> =
            self.workloads.iter().map(|workload| &workload.parameters).collect();
        let (constants, words) = label::told_apart(&all);
        self.constants = constants;
        for (workload, words) in self.workloads.iter_mut().zip(words) {
            workload.words = words;
        }
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

    pub fn entries(&self) -> impl Iterator<Item = &Entry<'_>> {
        self.workloads.iter().flat_map(|workload| &workload.entries)
    }
}

impl Entry<'_> {
    fn fact(&self, key: &str) -> Option<f64> {
        self.outcome.fact_number(key)
    }

    /// User and system CPU time of one run.
    pub fn cpu(&self) -> Option<String> {
        let sum = || Some(self.fact("user_ns")? + self.fact("system_ns")?);
        let ns = self.fact("cpu_ns").or_else(sum)?;
        Some(quantity::value("ns", ns))
    }

    /// The parts of the CPU time, in words.
    pub fn cpu_parts(&self) -> Option<String> {
        let text = |key: &str| Some(quantity::value("ns", self.fact(key)?));
        Some(format!("user {}, system {}", text("user_ns")?, text("system_ns")?))
    }

    /// Peak resident memory; with a sign where it may be another's.
    pub fn memory(&self) -> Option<String> {
        let bytes = self.fact("peak_memory_bytes")?;
        let sign = if self.may_be_inherited() { "≤ " } else { "" };
        Some(format!("{sign}{}", quantity::value("bytes", bytes)))
    }

    pub fn may_be_inherited(&self) -> bool {
        let of = self.outcome.fact_text("peak_memory_of");
        of.is_some_and(|of| of != "itself") && self.fact("peak_memory_bytes").is_some()
    }

    /// Its speed, where the workload has one besides its time.
    pub fn speed_text(&self) -> Option<String> {
        let speed = self.speed?;
        label::figure(speed).map(|figure| quantity::value(&speed.unit, figure))
    }
}

#[cfg(test)]
mod tests;
