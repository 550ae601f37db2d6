//! Runs held against each other: row by row, with the uncertainty that runs always leave.
//!
//! Pure: records in, a [`Comparison`] out, and the same one each time. It reads no file and
//! prints nothing. Which rows belong together: `matching.rs`; what the runs say of them:
//! `replicates.rs`; the verdict: `judgement.rs`; how many runs it takes: `plan.rs`; what runs of
//! one machine with nothing changed differ by: [`noise`]; what differs between the machines:
//! `surroundings.rs`. The formulas with their sources stand in docs/compare.md.

mod judgement;
mod load;
mod matching;
pub mod noise;
mod plan;
mod replicates;
mod surroundings;
#[cfg(test)]
mod tests;
pub mod trend;

use serde::Serialize;
use serde_json::{Map, Value};

pub use surroundings::{LOAD, are_one_machine, are_one_run};

use crate::record::{Better, Chart, Record, Status};
use judgement::Rule;
use noise::Noise;
use plan::Plan;
use replicates::Replicates;

/// The name of this schema version.
pub const SCHEMA: &str = "flatout-comparison/1";

/// Chance of a comparison, with nothing changed, to call any row better or worse.
pub const SIGNIFICANCE: f64 = 0.05;

/// The change that matters unless another is asked for: a smaller one counts as the same, and for
/// this one the number of runs is advised.
pub const DEFAULT_THRESHOLD_RATIO: f64 = 0.10;

/// Share of the judged rows that must be the same or better for all to be so. It is the share in
/// which the advised number of runs finds a change.
const SETTLED_SHARE: f64 = plan::POWER;

/// Divisions of the runs that are looked at; more runs have more, and then random ones are drawn.
const MOST_DIVISIONS: usize = 2_000;

/// What a comparison is asked for.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// The least change that matters, as a share of one above 0; [`DEFAULT_THRESHOLD_RATIO`].
    pub threshold_ratio: Option<f64>,
    /// What is known of how far runs of this machine differ.
    pub noise: Option<Noise>,
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
    /// The change that matters, and where the noise comes from.
    pub threshold: ThresholdUsed,
    /// What these runs can find, and how many it takes.
    pub power: Power,
    /// The rows that both sides have, in the order of the old side.
    pub rows: Vec<Row>,
    /// Rows that only the old side has.
    pub only_old: Vec<RowName>,
    /// Rows that only the new side has.
    pub only_new: Vec<RowName>,
    /// Pictures that the first run of the old side has of its rows.
    #[serde(skip)]
    pub charts: Vec<Chart>,
    /// Rows by verdict.
    pub counts: Counts,
    /// All rows together: worse if one is; else the same or better if four of five judged rows are
    /// and no figure is lost; else unclear.
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

/// The change that matters.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ThresholdUsed {
    /// Where from.
    pub source: ThresholdSource,
    /// Ratios from 1 ÷ (1 + this) to 1 + this count as the same.
    pub ratio: f64,
    /// Runs from which noise was learned; null where none is used.
    pub noise_runs: Option<u64>,
}

/// Where the threshold comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ThresholdSource {
    /// The user.
    Given,
    /// The built-in one.
    Default,
}

/// What runs can find.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Power {
    /// Share of the judged rows in which these runs would find a change as large as the threshold;
    /// null if no row is judged.
    pub found_ratio: Option<f64>,
    /// Runs a side that find it in four rows of five; null where that cannot be told or are more
    /// than [`MOST_RUNS_NEEDED`].
    pub runs_recommended: Option<u64>,
    /// Where most rows have their noise from; null if no row is judged.
    pub noise_source: Option<NoiseSource>,
}

/// Where the noise of a row between runs is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoiseSource {
    /// The runs of both sides, and what was learned, if anything was.
    Runs,
    /// What was learned: there are too few runs of each side to know it from them.
    Learned,
    /// Nothing is known of it.
    Assumed,
}

flatout_sys::words! {
    /// What is said of a row, or of all.
    #[derive(Default, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Verdict: word {
        /// The new side is better: significant with all rows counted in, and not the same.
        Better = "better",
        /// The same in the other direction.
        Worse = "worse",
        /// The whole interval lies within the threshold.
        Same = "same",
        /// None of these is shown.
        Unclear = "unclear",
        /// There is nothing that could be compared; the reason says why.
        #[default]
        Incomparable = "incomparable",
    }
}

/// Why a row is unclear or incomparable. Stable words; programs match on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The interval reaches beyond the threshold and back.
    WideInterval,
    /// Beyond the threshold, but chance is not ruled out once all rows are counted in.
    NotSignificant,
    /// The old side has a figure, and the new one failed, was cut short or is impossible; or some of
    /// its runs failed and none of the old side.
    FigureLost,
    /// A side has no figure.
    NoFigure,
    /// It differs beyond chance, but others were more at work beside one of the sides, or the sides
    /// took no turns on a busy machine.
    LoadDiffers,
    /// The figure is derived from other rows: it has no samples.
    NoSamples,
    /// A figure or a sample of some run is zero or negative: there is no ratio.
    NoRatio,
    /// Unit or direction differ.
    UnitsDiffer,
    /// The row shows the samples of another row once more.
    Repeats,
}

/// A row that both sides have.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
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
    /// 95 % interval of the ratio, with the noise between runs.
    pub ci95: Option<[f64; 2]>,
    /// Two-sided probability of such a difference by chance (Student's t).
    pub p: Option<f64>,
    /// The same with all rows counted in: by other divisions of the runs, of few runs by Holm.
    pub p_corrected: Option<f64>,
    /// Standard deviation of the figure from run to run, as a share.
    pub noise_ratio: Option<f64>,
    /// Where that comes from.
    pub noise_source: Option<NoiseSource>,
    /// The least change, as a share, that runs like these would show in four of five cases.
    pub detectable_ratio: Option<f64>,
    /// What is said.
    pub verdict: Verdict,
    /// Why it is unclear or incomparable.
    pub reason: Option<Reason>,
    /// How many more runs a side find a change as large as the threshold in an unclear row in four
    /// of five cases; null for more than [`MOST_RUNS_NEEDED`] runs.
    pub runs_needed: Option<u64>,
}

/// More runs than this are no advice.
pub const MOST_RUNS_NEEDED: u64 = 100;

/// The figure of a side.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Figure {
    /// Median of the samples, of several runs the geometric mean of their medians, in the unit of
    /// the row; null when there is no figure.
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
/// Each side needs at least one record. Cost: proportional to rows, samples, and 2,000 divisions
/// of the runs, which become fewer with very many rows: some seconds.
pub fn compare(old: Runs<'_>, new: Runs<'_>, question: &Question) -> Comparison {
    compare_in(old, new, question, MOST_DIVISIONS)
}

/// [`compare`] with at most so many divisions.
fn compare_in(
    old: Runs<'_>,
    new: Runs<'_>,
    question: &Question,
    most_divisions: usize,
) -> Comparison {
    let same_machine = surroundings::same_machine(old.records, new.records);
    let (old_groups, new_groups) = (matching::gather(old.records), matching::gather(new.records));
    let matched = matching::pair(&old_groups, &new_groups);
    let same_run = surroundings::same_run(old.records, new.records);
    let mut rows: Vec<Row> =
        matched.pairs.iter().map(|(old, new)| judgement::measured(old, new, same_run)).collect();
    judgement::mark_repeats(&mut rows, &matched.pairs);
    let threshold = used(question);
    let sizes = [old.records.len(), new.records.len()];
    let open: Vec<usize> =
        (0..rows.len()).filter(|index| judgement::is_open(&rows[*index])).collect();
    let pairs: Vec<_> = open.iter().map(|index| matched.pairs[*index]).collect();
    let replicates = Replicates::new(&pairs, sizes, question.noise.as_ref());
    let estimates = replicates.estimates();
    let corrected = replicates.corrected(&estimates, most_divisions);
    let plan = Plan::new(open.len(), threshold.ratio);
    let loads = load::in_the_way(old.records, new.records).filter(|_| !same_run);
    let mut rule = Rule::new(threshold.ratio, &plan, loads.is_some());
    for ((index, estimate), p) in open.iter().zip(&estimates).zip(corrected) {
        judgement::settle(&mut rows[*index], estimate, p, &mut rule);
    }
    let counts = count(&rows);
    Comparison {
        old: side(old),
        new: side(new),
        same_machine,
        same_run,
        environment: surroundings::differences(old.records, new.records, &matched.pairs, loads),
        threshold,
        power: plan.power(&estimates, &mut rule),
        verdict: verdict(&rows, counts),
        rows,
        only_old: matched.only_old.iter().map(|group| group.name()).collect(),
        only_new: matched.only_new.iter().map(|group| group.name()).collect(),
        charts: old.records.first().map_or_else(Vec::new, |run| run.charts.clone()),
        counts,
    }
}

/// The verdict of all rows together. Worse if one is. The same, or better if one is, when the runs
/// could tell: no figure is lost, and four of five judged rows are shown to be the same or better.
/// Else unclear: a row that is too noisy for any number of runs keeps nobody from an answer.
fn verdict(rows: &[Row], counts: Counts) -> Verdict {
    let settled = counts.same + counts.better;
    let judged = settled + counts.worse + counts.unclear;
    let is_lost = rows.iter().any(|row| row.reason == Some(Reason::FigureLost));
    match () {
        () if judged == 0 => Verdict::Incomparable,
        () if counts.worse > 0 => Verdict::Worse,
        () if is_lost || (settled as f64) < SETTLED_SHARE * judged as f64 => Verdict::Unclear,
        () if counts.better > 0 => Verdict::Better,
        () => Verdict::Same,
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

fn used(question: &Question) -> ThresholdUsed {
    let source = match question.threshold_ratio {
        Some(_) => ThresholdSource::Given,
        None => ThresholdSource::Default,
    };
    let ratio = question.threshold_ratio.unwrap_or(DEFAULT_THRESHOLD_RATIO);
    ThresholdUsed { source, ratio, noise_runs: question.noise.as_ref().map(Noise::runs) }
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
