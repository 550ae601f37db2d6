//! Two runs held against each other: row by row, with the uncertainty that two runs always leave.
//!
//! Pure: records in, a [`Comparison`] out, and the same one each time. It reads no file and
//! prints nothing. Which rows belong together: `matching.rs`; what is said of a pair:
//! `judgement.rs`; how far two runs of one machine lie apart: [`noise`]; what differs between the
//! machines: `surroundings.rs`. The formulas with their sources stand in docs/compare.md.

mod judgement;
mod matching;
pub mod noise;
mod surroundings;
#[cfg(test)]
mod tests;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::record::{Better, Record, Status};
use crate::statistics::compare::{ROUNDS, benjamini_hochberg};
use noise::Noise;

/// The name of this schema version.
pub const SCHEMA: &str = "flatout-comparison/1";

/// Share of false discoveries that is put up with among the rows called better or worse.
pub const SIGNIFICANCE: f64 = 0.05;

/// Difference below which two runs count as the same where nothing is known of the machine's own
/// noise. Of six pairs of bare `flatout bench` on 2 vCPUs of Sapphire Rapids with a busy
/// neighbour, 2026-11-22, two thirds of the rows differed by less.
pub const DEFAULT_THRESHOLD_RATIO: f64 = 0.10;
/// The same in a virtual machine, where neighbours come and go. In four of those pairs one to four of
/// sixty rows were beyond a tenth by their intervals, though nothing had changed, and none beyond
/// a quarter; 32 to 45 were the same.
pub const DEFAULT_GUEST_THRESHOLD_RATIO: f64 = 0.25;

/// Rounds of all bootstraps of a comparison together, so that 100,000 rows take seconds.
const MOST_ROUNDS: usize = 20_000_000;
/// Rounds of one bootstrap, at the least.
const LEAST_ROUNDS: usize = 200;

/// How large a difference must be to count.
#[derive(Debug, Clone)]
pub enum Threshold {
    /// A share of one, above 0, given by the user.
    Given(f64),
    /// What the machine's noise says; the default where it says nothing.
    Learned(Noise),
    /// [`DEFAULT_THRESHOLD_RATIO`], or [`DEFAULT_GUEST_THRESHOLD_RATIO`].
    Default,
}

/// Runs of one side: one, or several of the same thing.
#[derive(Debug, Clone, Copy)]
pub struct Runs<'a> {
    /// What the side is called, for example the name of its file.
    pub name: &'a str,
    /// At least one.
    pub records: &'a [Record],
}

/// What came of holding one side against another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The side that the other is held against.
    pub old: Side,
    /// The other one.
    pub new: Side,
    /// Whether both seem to be one machine; null where a side does not say.
    pub same_machine: Option<bool>,
    /// Whether both sides are one and the same run, or runs.
    pub same_run: bool,
    /// What differs between the two besides their figures.
    pub environment: Vec<Difference>,
    /// Where the thresholds of the rows come from.
    pub threshold: ThresholdUsed,
    /// The rows that both sides have, in the order of the old side.
    pub rows: Vec<Row>,
    /// Rows that only the old side has.
    pub only_old: Vec<RowName>,
    /// Rows that only the new side has.
    pub only_new: Vec<RowName>,
    /// Rows by verdict.
    pub counts: Counts,
    /// All rows together: worse if one is, else unclear if one is, else better or the same.
    pub verdict: Verdict,
}

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Side {
    /// What it is called.
    pub name: String,
    /// Number of its runs.
    pub runs: u64,
    /// Program and version of the first run.
    pub tool: String,
    /// Start of the first run.
    pub time: String,
}

/// A member of the environment that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// Its name, nested ones joined by a dot: `mitigations.retbleed`.
    pub name: String,
    /// Its value on the old side; null if it has none.
    pub old: Value,
    /// Its value on the new side; null if it has none.
    pub new: Value,
}

/// Where the thresholds of the rows come from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ThresholdUsed {
    /// Where from.
    pub source: ThresholdSource,
    /// The threshold of rows that have no noise of their own, as a share of one.
    pub ratio: f64,
    /// Runs from which noise was learned; null where none is used.
    pub noise_runs: Option<u64>,
}

/// Where a threshold comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ThresholdSource {
    /// The user.
    Given,
    /// The noise of this row between runs of this machine.
    NoiseOfRow,
    /// The noise of rows with the same id: this one was in too few runs.
    NoiseOfTest,
    /// The noise of rows of the same area.
    NoiseOfArea,
    /// The built-in one.
    Default,
}

/// What is said of a row, or of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The new side is better: significant after correction, and the whole interval lies beyond
    /// the threshold.
    Better,
    /// The same in the other direction.
    Worse,
    /// The whole interval lies within the threshold.
    Same,
    /// None of these is shown.
    Unclear,
    /// There is nothing that could be compared; the reason says why.
    Incomparable,
}

/// Why a row is unclear or incomparable. Stable words; programs match on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The interval reaches beyond the threshold and back.
    WideInterval,
    /// Beyond the threshold, but chance is not ruled out once all rows are counted in.
    NotSignificant,
    /// A side has fewer than six samples.
    FewSamples,
    /// The old side has a figure, and the new one failed, was cut short or is impossible.
    FigureLost,
    /// A side has no figure.
    NoFigure,
    /// The figure is derived from other rows: it has no samples.
    NoSamples,
    /// A figure or sample is zero or negative: there is no ratio.
    NoRatio,
    /// Unit or direction differ.
    UnitsDiffer,
    /// The row shows the samples of another row once more.
    Repeats,
}

/// A row that both sides have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// `area/test`.
    pub id: String,
    /// Those of the old side.
    pub parameters: Map<String, Value>,
    /// Parameters of the new side that differ: sizes that a run chooses for itself, and paths.
    pub differing_parameters: Map<String, Value>,
    /// The unit of both figures.
    pub unit: String,
    /// The direction of improvement.
    pub better: Better,
    /// The figure of the old side.
    pub old: Figure,
    /// The figure of the new side.
    pub new: Figure,
    /// New ÷ old.
    pub ratio: Option<f64>,
    /// 95 % interval of the ratio by bootstrap.
    pub ci95: Option<[f64; 2]>,
    /// Two-sided probability of such a difference by chance; with learned noise also by the
    /// machine's own.
    pub p: Option<f64>,
    /// The same with all rows counted in (Benjamini–Hochberg).
    pub p_corrected: Option<f64>,
    /// Ratios from 1 ÷ (1 + this) to 1 + this count as the same.
    pub threshold_ratio: f64,
    /// Where that comes from.
    pub threshold_source: ThresholdSource,
    /// The least change, as a share, that runs like these would show in four of five cases.
    pub detectable_ratio: Option<f64>,
    /// What is said.
    pub verdict: Verdict,
    /// Why it is unclear or incomparable.
    pub reason: Option<Reason>,
    /// How many more runs a side would about be needed to settle an unclear row; null where that
    /// cannot be told or more than [`MOST_RUNS_NEEDED`].
    pub runs_needed: Option<u64>,
}

/// More runs than this are no advice.
pub const MOST_RUNS_NEEDED: u64 = 100;

/// The figure of a side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// Median of all samples, in the unit of the row; null when there is no figure.
    pub median: Option<f64>,
    /// Number of samples of all runs.
    pub n: u64,
    /// Runs that have the row.
    pub runs: u64,
    /// The gravest status among them.
    pub status: Status,
}

/// What a row is called.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RowName {
    /// `area/test`.
    pub id: String,
    /// What makes it differ from others of the same id.
    pub parameters: Map<String, Value>,
}

/// Rows by verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Shown to be better.
    pub better: u64,
    /// Shown to be worse.
    pub worse: u64,
    /// Shown to be the same.
    pub same: u64,
    /// Not shown.
    pub unclear: u64,
    /// Not comparable.
    pub incomparable: u64,
}

/// Holds the new side against the old one.
///
/// Each side needs at least one record. Cost: proportional to rows and samples, but for sorting
/// the samples; at most 20 million rounds of bootstrap, some seconds.
pub fn compare(old: Runs<'_>, new: Runs<'_>, threshold: &Threshold) -> Comparison {
    compare_in(old, new, threshold, ROUNDS)
}

/// [`compare`] with at most so many rounds for an interval.
fn compare_in(
    old: Runs<'_>,
    new: Runs<'_>,
    threshold: &Threshold,
    most_rounds: usize,
) -> Comparison {
    let same_machine = surroundings::same_machine(old.records, new.records);
    let (old_groups, new_groups) = (matching::gather(old.records), matching::gather(new.records));
    let matched = matching::pair(&old_groups, &new_groups);
    let rounds = (MOST_ROUNDS / matched.pairs.len().max(1))
        .clamp(LEAST_ROUNDS.min(most_rounds), most_rounds);
    let same_run = surroundings::same_run(old.records, new.records);
    let default_ratio = match surroundings::is_guest(old.records, new.records) {
        true => DEFAULT_GUEST_THRESHOLD_RATIO,
        false => DEFAULT_THRESHOLD_RATIO,
    };
    let band = judgement::Bands { threshold, default_ratio, rounds, same_run };
    let mut rows: Vec<Row> =
        matched.pairs.iter().map(|(old, new)| judgement::measured(old, new, &band)).collect();
    judgement::mark_repeats(&mut rows, &matched.pairs);
    correct(&mut rows);
    rows.iter_mut().for_each(judgement::settle);
    let counts = count(&rows);
    Comparison {
        old: side(old),
        new: side(new),
        same_machine,
        same_run,
        environment: surroundings::differences(old.records, new.records, &matched.pairs),
        threshold: used(threshold, default_ratio),
        rows,
        only_old: matched.only_old.iter().map(|group| group.name()).collect(),
        only_new: matched.only_new.iter().map(|group| group.name()).collect(),
        counts,
        verdict: counts.verdict(),
    }
}

/// Fills in what the p-values of all rows make of each other.
fn correct(rows: &mut [Row]) {
    let is_judged = |row: &Row| row.reason.is_none() && row.ci95.is_some();
    let tested: Vec<(usize, f64)> = rows
        .iter()
        .enumerate()
        .filter_map(|(index, row)| Some((index, row.p.filter(|_| is_judged(row))?)))
        .collect();
    let p_values: Vec<f64> = tested.iter().map(|(_, p)| *p).collect();
    for ((index, _), corrected) in tested.iter().zip(benjamini_hochberg(&p_values)) {
        rows[*index].p_corrected = Some(corrected);
    }
}

fn side(runs: Runs<'_>) -> Side {
    let start = runs.records.first().map(|record| &record.start);
    Side {
        name: runs.name.to_owned(),
        runs: runs.records.len() as u64,
        tool: start.map_or_else(String::new, |start| start.tool.clone()),
        time: start.map_or_else(String::new, |start| start.time.clone()),
    }
}

fn used(threshold: &Threshold, default_ratio: f64) -> ThresholdUsed {
    let (source, ratio, noise_runs) = match threshold {
        Threshold::Given(ratio) => (ThresholdSource::Given, *ratio, None),
        Threshold::Learned(noise) => {
            (ThresholdSource::NoiseOfRow, default_ratio, Some(noise.runs()))
        }
        Threshold::Default => (ThresholdSource::Default, default_ratio, None),
    };
    ThresholdUsed { source, ratio, noise_runs }
}

fn count(rows: &[Row]) -> Counts {
    let mut counts = Counts::default();
    for row in rows {
        *match row.verdict {
            Verdict::Better => &mut counts.better,
            Verdict::Worse => &mut counts.worse,
            Verdict::Same => &mut counts.same,
            Verdict::Unclear => &mut counts.unclear,
            Verdict::Incomparable => &mut counts.incomparable,
        } += 1;
    }
    counts
}

impl Counts {
    /// The verdict of all rows together.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self { worse: 1.., .. } => Verdict::Worse,
            Self { unclear: 1.., .. } => Verdict::Unclear,
            Self { better: 1.., .. } => Verdict::Better,
            Self { same: 1.., .. } => Verdict::Same,
            _ => Verdict::Incomparable,
        }
    }
}

impl Verdict {
    /// The word for it, as in the document.
    pub fn word(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::Unclear => "unclear",
            Self::Incomparable => "incomparable",
        }
    }
}
