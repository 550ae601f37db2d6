//! What is wrong with a machine or a run, and what to do about it, most severe first.
//!
//! Findings come from facts of the record only: what others did meanwhile, the environment, the
//! storage below (`findings/machine.rs`), and the warning codes of rows (`findings/codes.rs`).

mod codes;
mod machine;

pub(super) use self::machine::{dear_mitigations, names as names_of_mitigations};

use flatout_measure::record::Record;

use super::{Block, Part, Section};
use crate::style::Tone;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Severity {
    /// Figures are missing, or are not those of what they are named after.
    Fail,
    /// Figures would be others without it.
    Warn,
    /// Good to know.
    Note,
}

impl Severity {
    /// The word before a finding, and its tone.
    pub fn sign(self) -> (&'static str, Tone) {
        match self {
            Self::Fail => ("FAIL", Tone::Bad),
            Self::Warn => ("WARN", Tone::Warn),
            Self::Note => ("NOTE", Tone::Dim),
        }
    }
}

/// One thing that is wrong, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Finding {
    pub severity: Severity,
    pub text: String,
    pub advice: String,
}

impl Finding {
    fn new(severity: Severity, text: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { severity, text: text.into(), advice: advice.into() }
    }

    /// The finding in one line.
    pub fn line(&self) -> String {
        format!("{}: {}", self.text, self.advice)
    }
}

/// Everything that is known to be wrong; none where nothing is.
pub(super) fn section(record: &Record) -> Option<Section> {
    let findings = findings(record);
    let section = Section::new(Part::Findings, "What is wrong, and what to do");
    (!findings.is_empty()).then(|| section.with(Block::Findings(findings)))
}

fn findings(record: &Record) -> Vec<Finding> {
    let mut found: Vec<Finding> = codes::of_run(record).into_iter().collect();
    // Who knows that the machine was busy need not look for other reasons first.
    found.extend(machine::of_load(record));
    found.extend(codes::of_rows(record));
    found.extend(machine::of_environment(record));
    // The sort is stable: within a severity what is listed first in its file comes first.
    found.sort_by_key(|finding| finding.severity);
    found
}

#[cfg(test)]
mod tests;
