//! What is said of a pair of rows: first whether it can be judged at all, then, once the runs and
//! all rows have been looked at, the verdict.

use std::collections::{HashMap, HashSet};

use super::matching::{self, Group, has_figure};
use super::plan::{POWER, Plan};
use super::replicates::Estimate;
use super::{Figure, Reason, Row, SIGNIFICANCE, Verdict};
use crate::record::{Better, Outcome, Status};
use crate::statistics::median;
use crate::statistics::student::{normal_quantile, student_quantile};

/// Different values among the samples from which on equal samples are those of one measurement,
/// and no chance.
const TELLING_VALUES: usize = 4;

/// A row whose figures are known; one that cannot be judged has its reason, or its verdict.
pub(super) fn measured(old: &Group<'_>, new: &Group<'_>, same_run: bool) -> Row {
    let (first, second) = (old.first(), new.first());
    // What failed may not say of what unit it would have been.
    let told = old.figures().chain(new.figures()).next().unwrap_or(first);
    let mut row = Row {
        id: first.id.clone(),
        parameters: first.parameters.clone(),
        differing_parameters: matching::differing(first, second),
        unit: told.unit.clone(),
        better: told.better,
        old: figure(old),
        new: figure(new),
        ..Row::default()
    };
    for (group, figure) in [(old, &mut row.old), (new, &mut row.new)] {
        let is_alike = |row: &Outcome| row.unit == told.unit && row.better == told.better;
        if !group.figures().all(is_alike) {
            figure.median = None;
            row.reason = Some(Reason::UnitsDiffer);
        }
    }
    if row.reason.is_some() {
        return row;
    }
    row.ratio = ratio(&row);
    if same_run && row.old.median.is_some() && samples(old) == samples(new) {
        // Not even a ratio is needed to say so.
        row.verdict = Verdict::Same;
        return row;
    }
    row.reason = missing(&row, [old, new]);
    if row.reason == Some(Reason::FigureLost) {
        row.verdict = Verdict::Unclear;
    }
    row
}

/// What holds for all rows that are judged.
pub(super) struct Rule<'a> {
    pub threshold_ratio: f64,
    pub plan: &'a Plan,
    /// Whether others were more at work beside one of the sides.
    is_load_apart: bool,
    /// Quantiles of Student's t that rows have in common, by degrees of freedom.
    quantiles: HashMap<u64, [f64; 2]>,
}

impl<'a> Rule<'a> {
    pub fn new(threshold_ratio: f64, plan: &'a Plan, is_load_apart: bool) -> Self {
        Self { threshold_ratio, plan, is_load_apart, quantiles: HashMap::new() }
    }

    /// The quantile of a 95 % interval, and the one that a single changed row must reach.
    pub fn quantiles(&mut self, freedom: f64) -> [f64; 2] {
        let found =
            || [student_quantile(1.0 - SIGNIFICANCE / 2.0, freedom), self.plan.critical(freedom)];
        *self.quantiles.entry(freedom.to_bits()).or_insert_with(found)
    }
}

/// The verdict of a row that can be judged.
pub(super) fn settle(row: &mut Row, estimate: &Estimate, p_corrected: f64, rule: &mut Rule<'_>) {
    let [within, critical] = rule.quantiles(estimate.freedom);
    let (deviation, noise) = (estimate.deviation(), estimate.log_variance.sqrt());
    let half_width = within * deviation;
    let ends = [estimate.difference - half_width, estimate.difference + half_width];
    let is_number = |number: &f64| number.is_finite();
    row.ci95 = Some(ends.map(f64::exp)).filter(|ends| ends.iter().all(|end| end.is_normal()));
    row.p = Some(estimate.p());
    row.p_corrected = Some(p_corrected);
    row.noise_ratio = Some(noise.exp_m1()).filter(is_number);
    row.noise_source = Some(estimate.source);
    let detectable = ((critical + normal_quantile(POWER)) * deviation).exp_m1();
    row.detectable_ratio = Some(detectable).filter(is_number);
    let band = rule.threshold_ratio.ln_1p();
    let is_beyond = ends[0] > band || ends[1] < -band;
    let is_better = (estimate.difference > 0.0) == (row.better == Better::Higher);
    let is_same = ends[0] > -band && ends[1] < band;
    let is_shown = !is_same && p_corrected < SIGNIFICANCE;
    // Some runs of the new side failed, and none of the old one.
    let is_lost = row.new.status == Status::Failed && row.old.status != Status::Failed;
    row.verdict = match () {
        () if is_shown && !is_better && !rule.is_load_apart => Verdict::Worse,
        () if is_lost || (is_shown && rule.is_load_apart) => Verdict::Unclear,
        () if is_same => Verdict::Same,
        () if is_shown => Verdict::Better,
        () => Verdict::Unclear,
    };
    if row.verdict == Verdict::Unclear {
        row.reason = Some(match is_beyond {
            _ if is_lost => Reason::FigureLost,
            _ if is_shown => Reason::LoadDiffers,
            true => Reason::NotSignificant,
            false => Reason::WideInterval,
        });
        if is_lost || is_shown {
            return;
        }
        let has = row.old.runs.min(row.new.runs);
        let needs = rule.plan.runs_for_most(&[estimate.planned_variance.sqrt()]);
        row.runs_needed = needs.map(|needs| needs.saturating_sub(has).max(1));
    }
}

/// Why a pair has nothing to be judged by.
fn missing(row: &Row, groups: [&Group<'_>; 2]) -> Option<Reason> {
    let is_lost = matches!(row.new.status, Status::Failed | Status::Invalid | Status::Interrupted);
    // Runs with a zero would be left out, and the others say something else.
    let has_ratios = |group: &Group<'_>| {
        group.figures().filter(|row| row.n > 0).all(|row| usable_median(row).is_some())
    };
    match (row.old.median, row.new.median) {
        (Some(_), None) if is_lost => Some(Reason::FigureLost),
        (None, _) | (_, None) => Some(Reason::NoFigure),
        _ if row.old.n == 0 || row.new.n == 0 => Some(Reason::NoSamples),
        _ if row.ratio.is_none() || !groups.into_iter().all(has_ratios) => Some(Reason::NoRatio),
        _ => None,
    }
}

/// New over old.
fn ratio(row: &Row) -> Option<f64> {
    let (old, new) = (row.old.median?, row.new.median?);
    (old > 0.0 && new > 0.0 && (new / old).is_normal()).then(|| new / old)
}

/// The median of a row's samples, if it is one that has a logarithm.
pub(super) fn usable_median(row: &Outcome) -> Option<f64> {
    let is_number = row.samples.iter().all(|sample| sample.is_finite() && *sample > 0.0);
    median(&row.samples).filter(|median| is_number && has_figure(row) && median.is_normal())
}

/// The samples of all runs that have a figure.
fn samples(group: &Group<'_>) -> Vec<f64> {
    group.figures().flat_map(|row| row.samples.iter().copied()).collect()
}

/// The figure of a side: of several runs the geometric mean of their medians.
fn figure(group: &Group<'_>) -> Figure {
    let bare = || group.figures().find_map(|row| row.median);
    let medians: Vec<f64> = group.figures().filter_map(usable_median).collect();
    let mean = match medians[..] {
        [] => None,
        [only] => Some(only),
        _ => {
            let logs = medians.iter().map(|median| median.ln());
            Some((logs.sum::<f64>() / medians.len() as f64).exp())
        }
    };
    let statuses = group.outcomes.iter().map(|(_, row)| row.status);
    Figure {
        median: mean.filter(|mean| mean.is_finite()).or_else(bare),
        n: group.figures().map(|row| row.samples.len() as u64).sum(),
        runs: group.figures().count() as u64,
        status: statuses.max().unwrap_or_default(),
    }
}

/// Sets rows aside that show the samples of an earlier one once more, for a picture: counted
/// twice they would count as two.
pub(super) fn mark_repeats(rows: &mut [Row], pairs: &[(&Group<'_>, &Group<'_>)]) {
    let mut seen = HashSet::new();
    for (row, (old, new)) in rows.iter_mut().zip(pairs).filter(|(row, _)| is_open(row)) {
        let bits = [old, new].map(|side| samples(side).into_iter().map(f64::to_bits));
        let [old, new] = bits.map(Iterator::collect::<Vec<u64>>);
        let is_telling = old.iter().collect::<HashSet<_>>().len() >= TELLING_VALUES;
        if is_telling && !seen.insert((row.unit.clone(), old, new)) {
            row.reason = Some(Reason::Repeats);
        }
    }
}

/// Whether a row has no verdict yet and can have one.
pub(super) fn is_open(row: &Row) -> bool {
    row.verdict == Verdict::Incomparable && row.reason.is_none()
}
