//! What the hypervisor took from a row, and from those that were measured with it.

use super::Sampled;
use crate::guard::Spoil;

/// One trial in so many, and so many trials, that the hypervisor took CPU time from: eight quiet runs had
/// one in 200 to 400, two in which 14 and 31 % of the time was stolen one in four and three in four.
const STOLEN_PART: u64 = 8;
const STOLEN_LEAST: u64 = 3;

/// Trials that the hypervisor took CPU time from, and all trials, of some rows.
#[derive(Debug, Clone, Copy)]
pub(in crate::sampler) struct Stolen {
    pub(in crate::sampler) trials: u64,
    pub(in crate::sampler) of: u64,
}

impl Stolen {
    /// Of a row or of all rows of a phase.
    pub(in crate::sampler) fn of<'a>(rows: impl IntoIterator<Item = &'a Sampled<'a>>) -> Self {
        let one = |row: &Sampled<'_>| {
            let trials = row.reasons.get(Spoil::Stolen.name()).copied().unwrap_or(0);
            Self { trials, of: row.attempts.into() }
        };
        let none = Self { trials: 0, of: 0 };
        let both =
            |one: Self, more: Self| Self { trials: one.trials + more.trials, of: one.of + more.of };
        rows.into_iter().map(one).fold(none, both)
    }

    /// Whether they are so many that the rest of these rows was beside the host's other guests, too.
    pub(in crate::sampler) fn is_much(self) -> bool {
        self.trials >= STOLEN_LEAST && self.trials * STOLEN_PART >= self.of
    }
}
