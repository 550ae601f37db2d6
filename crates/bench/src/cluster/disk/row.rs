//! The rows: a phase, with or without wear-out; what they say of single processes.

use std::collections::BTreeMap;

use flatout_measure::{Label, Measured, Row, Unit, warning};

use super::super::outlying::{self, Outlying};
use super::phase::Phase;
use crate::between_runs;
use crate::disk::metadata::bound::slow_creates;

/// What a figure is of all processes, where it is not of all until the last one was done; and the one
/// that it is of.
pub(super) const ACROSS: &str = "across";
pub(super) const PROCESS: &str = "process";

/// A row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DiskRow {
    pub(super) phase: Phase,
    /// Of a phase that writes: whether all went on until they had done as much as the fastest.
    pub(super) wear_out: Option<bool>,
    pub(super) item_bytes: usize,
    pub(super) processes: usize,
    pub(super) hosts: usize,
}

impl Row for DiskRow {
    fn label(&self) -> Label {
        let is_of_bytes = self.phase.is_of_bytes();
        let word = |is_worn: bool| if is_worn { "wear-out" } else { "stonewall" };
        let unit = if is_of_bytes { Unit::BytesPerSecond } else { Unit::OperationsPerSecond };
        Label::new(self.phase.id(), unit)
            .with("like", self.phase.like())
            .with("processes", self.processes)
            .with("hosts", self.hosts)
            .with_known("block_bytes", is_of_bytes.then_some(self.item_bytes))
            .with_known("until", self.wear_out.map(word))
            .deviating_by(match self.phase {
                Phase::Find | Phase::OwnStat | Phase::SharedStat => between_runs::LOOKUP,
                _ => between_runs::DISK,
            })
    }
}

/// Says of creating that is far slower than removing what it most likely is: rounds follow each other.
pub(super) fn warn_of_slow_creates(rows: &mut [Measured<DiskRow>]) {
    let median = |rows: &[Measured<DiskRow>], phase| {
        let row = rows.iter().find(|measured| measured.row.phase == phase)?;
        row.outcome.median
    };
    for (create, delete) in
        [(Phase::OwnCreate, Phase::OwnDelete), (Phase::SharedCreate, Phase::SharedDelete)]
    {
        let removed = median(rows, delete);
        for Measured { outcome, .. } in rows.iter_mut().filter(|it| it.row.phase == create) {
            let what_was = "the round before (--runs 1 has none) deleted files here";
            let slow = slow_creates(outcome.median, removed, what_was);
            warning::add_all(&mut outcome.warnings, slow);
        }
    }
}

/// Names processes that are clearly slower than the others, by host.
pub(super) fn name_stragglers(rows: &mut [Measured<DiskRow>], hosts: &[String]) {
    for measured in rows {
        let named = measured.further.iter().filter_map(|further| {
            Some((further.parameters.value(PROCESS)?.text()?.to_owned(), further))
        });
        let slow = outlying::slow(named);
        if slow.is_empty() {
            continue;
        }
        let mut by_host = BTreeMap::new();
        for Outlying { key, .. } in &slow {
            *by_host.entry(key.split_once(' ').map_or("?", |(_, host)| host)).or_insert(0) += 1;
        }
        let all = |host: &str| hosts.iter().filter(|known| *known == host).count();
        let by_host: Vec<String> = by_host
            .iter()
            .map(|(host, count)| format!("{count} of {} on {host}", all(host)))
            .collect();
        let text = format!(
            "clearly slower than the others: {}; by host: {}",
            outlying::named(&slow),
            by_host.join(", ")
        );
        measured.outcome.warn(warning::STRAGGLERS, text);
    }
}

#[cfg(test)]
mod tests {
    use flatout_measure::record::Outcome;
    use flatout_measure::{Facts, MeasuredFurther, Parameters};

    use super::*;

    #[test]
    fn processes_that_are_clearly_slower_are_named_by_host() {
        let further = |(name, rate): (&str, f64)| MeasuredFurther {
            parameters: Parameters::default().with(PROCESS, name.to_owned()),
            outcome: Outcome {
                median: Some(rate),
                ci95: Some([0.99 * rate, 1.01 * rate]),
                ..Outcome::default()
            },
            facts: Facts::default(),
        };
        let named = |last: f64| {
            let rates = [("0 a", 100.0), ("1 a", 101.0), ("2 b", 99.0), ("3 b", last)];
            let row = DiskRow {
                phase: Phase::OwnCreate,
                wear_out: None,
                item_bytes: 1,
                processes: 4,
                hosts: 2,
            };
            let further = rates.map(further).to_vec();
            let (outcome, facts) = (Outcome::default(), Facts::default());
            let mut rows = [Measured { row, outcome, facts, further }];
            name_stragglers(&mut rows, &["a", "a", "b", "b"].map(str::to_owned));
            rows[0].outcome.warnings.first().map(|warning| warning.text.clone())
        };
        let text = named(50.0).unwrap();
        assert!(text.contains("3 b (0.50 of the usual); by host: 1 of 2 on b"), "{text}");
        assert_eq!(named(95.0), None);
    }
}
