//! Many runs of one machine, in the order of time: which rows changed their level, and since when.
//!
//! Of each row that split of its runs is taken at which the means of the logarithms on both sides lie
//! farthest apart, in standard errors. Whether chance makes as much, the runs themselves say, put into
//! random orders, the same ones for all rows: how often does any row then have as much? So with nothing
//! changed one trend in twenty calls any row changed, however many rows there are and however they depend
//! on each other. Sources: the split, Hawkins, "Testing a sequence of observations for a shift in location",
//! 1977; chance, Westfall and Young, "Resampling-based multiple testing", 1993 (the largest of all).

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};

use super::matching::{self, Group};
use super::{SIGNIFICANCE, Verdict, are_one_machine};
use crate::random::SplitMix64;
use crate::record::{Better, Outcome, Record};
use crate::statistics::median;

/// Runs that a row must have: of fewer, one random order in twenty parts them as well as any split does.
pub const LEAST_RUNS: usize = 8;

/// Random orders of the runs, at most and at least.
const ORDERS: [usize; 2] = [1_999, 199];
/// Figures that are gone through for all of them.
const MOST_FIGURES: usize = 200_000_000;

/// Figures are not known more closely than this, as a share: rows that never differ are not far apart
/// because of a last digit.
const RESOLUTION: f64 = 0.005;

/// What became of the rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trend {
    /// When each run began, in the order of time.
    pub times: Vec<String>,
    /// Runs of other machines than the last one's, which do not count.
    pub runs_left_out: u64,
    /// All rows that enough runs have, in the order of the first run.
    pub rows: Vec<TrendRow>,
}

/// A row over the runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrendRow {
    /// `area/test`.
    pub id: String,
    /// What makes it differ from others of the same id.
    pub parameters: Map<String, Value>,
    /// The unit of all figures.
    pub unit: String,
    /// The direction of improvement.
    pub better: Better,
    /// The figure of each run, in the order of [`Trend::times`]; null where it has none.
    pub figures: Vec<Option<f64>>,
    /// Where its level changed; null where that is not shown.
    pub change: Option<LevelChange>,
}

/// Where a row changed its level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelChange {
    /// The first run of the new level, as a place in [`Trend::times`].
    pub since: usize,
    /// Median of the runs before.
    pub before: f64,
    /// Median of the runs from there on.
    pub after: f64,
    /// Share of the random orders in which some row has a change as marked as this.
    pub p_corrected: f64,
    /// Whether that is better or worse.
    pub verdict: Verdict,
}

/// Looks at what runs left: those of the machine of the last one, in any order.
///
/// Cost: proportional to rows × runs × random orders, about a second at most.
pub fn trend(records: &[Record]) -> Trend {
    let mut records: Vec<&Record> = records.iter().collect();
    // Where no run says when it began, the order is the one given.
    records.sort_by_key(|record| record.start.time.parse::<Timestamp>().ok());
    let count = records.len();
    if let Some(last) = records.last().map(|last| last.start.environment.clone()) {
        let is_own = |record: &&Record| are_one_machine(&record.start.environment, &last);
        records.retain(|record| is_own(record) != Some(false));
    }
    let records: Vec<Record> = records.into_iter().cloned().collect();
    let groups = matching::gather(&records);
    let mut rows: Vec<TrendRow> =
        groups.iter().filter_map(|group| row(group, records.len())).collect();
    let lines: Vec<Line> = rows.iter().map(Line::of).collect();
    let splits: Vec<Split> = lines.iter().map(|line| line.split(0..records.len())).collect();
    let largest = by_chance(&lines, records.len());
    for (row, split) in rows.iter_mut().zip(&splits) {
        row.change = change(row, split, &largest);
    }
    Trend {
        times: records.iter().map(|record| record.start.time.clone()).collect(),
        runs_left_out: (count - records.len()) as u64,
        rows,
    }
}

/// A row that enough runs have. Figures that are derived from other rows, and have no samples, are left
/// out: they change with these.
fn row(group: &Group<'_>, runs: usize) -> Option<TrendRow> {
    let Outcome { id, parameters, .. } = group.first();
    let Outcome { unit, better, .. } = group.figures().next()?;
    let mut figures = vec![None; runs];
    for (run, outcome) in &group.outcomes {
        let is_alike = (&outcome.unit, outcome.better) == (unit, *better);
        let is_usable = is_alike && !outcome.samples.is_empty();
        figures[*run] = outcome.median.filter(|median| is_usable && *median > 0.0);
    }
    let is_enough = figures.iter().flatten().count() >= LEAST_RUNS;
    is_enough.then(|| TrendRow {
        id: id.clone(),
        parameters: parameters.clone(),
        unit: unit.clone(),
        better: *better,
        figures,
        change: None,
    })
}

/// The logarithms of a row's figures, less their mean, by run.
struct Line {
    logs: Vec<Option<f64>>,
    count: usize,
    squares: f64,
}

/// Where a line is split, and how marked that is.
#[derive(Clone, Copy, Default)]
struct Split {
    /// Runs of the order before it, those that the row has no figure of counted in.
    at: usize,
    /// Square of the distance of the means, in standard errors.
    statistic: f64,
}

impl Line {
    fn of(row: &TrendRow) -> Self {
        let logs: Vec<Option<f64>> = row.figures.iter().map(|one| one.map(f64::ln)).collect();
        let known = || logs.iter().flatten();
        let count = known().count();
        let mean = known().sum::<f64>() / count as f64;
        let logs: Vec<Option<f64>> = logs.iter().map(|log| log.map(|log| log - mean)).collect();
        let squares = logs.iter().flatten().map(|log| log * log).sum();
        Self { logs, count, squares }
    }

    /// The most marked split of the runs in this order.
    ///
    /// With k of n runs before it, whose deviations from the mean add up to S, the squares between both
    /// sides are S² n ÷ (k (n − k)), and what is left of all squares is within them.
    fn split(&self, order: impl Iterator<Item = usize>) -> Split {
        let (mut before, mut sum, all) = (0, 0.0, self.count as f64);
        let mut most = Split::default();
        for (at, run) in order.enumerate() {
            let Some(log) = self.logs[run] else { continue };
            if before > 0 {
                let part = before as f64;
                let between = sum * sum * all / (part * (all - part));
                let within = (self.squares - between).max(0.0) / (all - 2.0);
                let statistic = between / (within + RESOLUTION * RESOLUTION);
                if statistic > most.statistic {
                    most = Split { at, statistic };
                }
            }
            before += 1;
            sum += log;
        }
        most
    }
}

/// The most marked split of all rows in each of many random orders.
fn by_chance(lines: &[Line], runs: usize) -> Vec<f64> {
    let [most, least] = ORDERS;
    let figures = (lines.len() * runs).max(1);
    let orders = (MOST_FIGURES / figures).clamp(least, most);
    let mut random = SplitMix64::new(1);
    let mut order: Vec<usize> = (0..runs).collect();
    let largest = |_| {
        random.shuffle(&mut order);
        let splits = lines.iter().map(|line| line.split(order.iter().copied()).statistic);
        splits.fold(0.0, f64::max)
    };
    (0..orders).map(largest).collect()
}

/// The change at this split, if chance does not make as much.
fn change(row: &TrendRow, split: &Split, largest: &[f64]) -> Option<LevelChange> {
    let as_marked = largest.iter().filter(|one| **one >= split.statistic * (1.0 - 1e-9)).count();
    let p_corrected = (1 + as_marked) as f64 / (1 + largest.len()) as f64;
    let level =
        |figures: &[Option<f64>]| median(&figures.iter().flatten().copied().collect::<Vec<f64>>());
    let (before, after) = row.figures.split_at(split.at);
    let (before, after) = (level(before)?, level(after)?);
    let is_better = (after > before) == (row.better == Better::Higher);
    let verdict = if is_better { Verdict::Better } else { Verdict::Worse };
    let change = LevelChange { since: split.at, before, after, p_corrected, verdict };
    (p_corrected <= SIGNIFICANCE).then_some(change)
}

#[cfg(test)]
mod tests;
