//! What is said of a pair of rows: first what is measured of it, then, once the p-values of all
//! rows are known, the verdict.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::matching::{self, Group};
use super::{
    Figure, MOST_RUNS_NEEDED, Reason, Row, SIGNIFICANCE, Threshold, ThresholdSource, Verdict,
};
use crate::record::{Better, Outcome, Status};
use crate::statistics::compare::{LEAST_SAMPLES, Resampling};
use crate::statistics::student::normal_quantile;
use crate::statistics::{self, mann_whitney, median};

/// Share of cases in which a change that is called detectable would be found.
const POWER: f64 = 0.80;

/// The part of a 95 % interval on each side, in standard deviations.
const HALF_WIDTH_DEVIATIONS: f64 = 1.959_963_984_540_054;

/// Different values among the samples from which on equal samples are those of one measurement,
/// and no chance.
const TELLING_VALUES: usize = 4;

/// What is the same for all rows.
pub(super) struct Bands<'a> {
    pub threshold: &'a Threshold,
    pub default_ratio: f64,
    pub rounds: usize,
    pub same_run: bool,
}

/// All that can be said of a pair before others are looked at; settles those that say nothing.
pub(super) fn measured(old: &Group<'_>, new: &Group<'_>, bands: &Bands<'_>) -> Row {
    let (first, second) = (old.first(), new.first());
    let samples = [samples(old), samples(new)];
    let mut row = Row {
        id: first.id.clone(),
        parameters: first.parameters.clone(),
        differing_parameters: matching::differing(first, second),
        unit: first.unit.clone(),
        better: first.better,
        old: figure(old, &samples[0]),
        new: figure(new, &samples[1]),
        ratio: None,
        ci95: None,
        p: None,
        p_corrected: None,
        threshold_ratio: bands.default_ratio,
        threshold_source: ThresholdSource::Default,
        detectable_ratio: None,
        verdict: Verdict::Incomparable,
        reason: None,
        runs_needed: None,
    };
    if first.unit != second.unit || first.better != second.better {
        row.reason = Some(Reason::UnitsDiffer);
        return row;
    }
    row.ratio = bare_ratio(&row);
    if bands.same_run && row.old.median.is_some() && samples[0] == samples[1] {
        // Not even a ratio is needed to say so.
        row.verdict = Verdict::Same;
        return row;
    }
    row.reason = missing(&row);
    match row.reason {
        None => weigh(&mut row, &samples, bands),
        Some(Reason::FigureLost) => row.verdict = Verdict::Unclear,
        Some(_) => {}
    }
    row
}

/// Fills in what the samples of both sides say.
fn weigh(row: &mut Row, [old, new]: &[Vec<f64>; 2], bands: &Bands<'_>) {
    let runs = [row.old.runs, row.new.runs];
    let spread = match bands.threshold {
        Threshold::Learned(noise) => noise.spread(&row.id, &row.parameters),
        Threshold::Given(_) | Threshold::Default => None,
    };
    if let Threshold::Given(ratio) = bands.threshold {
        (row.threshold_ratio, row.threshold_source) = (*ratio, ThresholdSource::Given);
    } else if let Some(spread) = spread {
        row.threshold_ratio = spread.threshold_ratio(runs);
        row.threshold_source = spread.source;
    }
    let seed = seed(&matching::whole_key(&row.id, &row.parameters));
    let resampling = Resampling { seed, rounds: bands.rounds };
    let Some(ratio) = statistics::ratio(new, old, resampling) else {
        row.reason = Some(Reason::NoRatio);
        return;
    };
    (row.ratio, row.ci95) = (Some(ratio.ratio), ratio.ci95);
    let by_chance = mann_whitney(new, old).map(|test| test.p);
    let by_noise = spread.map(|spread| spread.p(ratio.ratio, runs));
    row.p = by_chance.map(|p| by_noise.map_or(p, |noise| p.max(noise)));
    if old.len().min(new.len()) < LEAST_SAMPLES {
        row.reason = Some(Reason::FewSamples);
        row.verdict = Verdict::Unclear;
        row.runs_needed = few(row);
    } else if row.ci95.is_none() {
        row.reason = Some(Reason::NoRatio);
    }
}

/// The p-values of all rows are in: the verdict.
pub(super) fn settle(row: &mut Row) {
    let (Some(ratio), Some([low, high]), None) = (row.ratio, row.ci95, row.reason) else { return };
    let band = row.threshold_ratio.ln_1p();
    // Upwards is better from here on, in logarithms.
    let (low, high) = match row.better {
        Better::Higher => (low.ln(), high.ln()),
        Better::Lower => (-high.ln(), -low.ln()),
    };
    let half_width = (high - low) / 2.0;
    let deviations = HALF_WIDTH_DEVIATIONS + normal_quantile(POWER);
    let detectable = (band + deviations * half_width / HALF_WIDTH_DEVIATIONS).exp_m1();
    row.detectable_ratio = detectable.is_finite().then_some(detectable);
    let is_significant = row.p_corrected.is_some_and(|p| p < SIGNIFICANCE);
    let is_beyond = low > band || high < -band;
    row.verdict = match () {
        () if low > -band && high < band => Verdict::Same,
        () if low > band && is_significant => Verdict::Better,
        () if high < -band && is_significant => Verdict::Worse,
        () => Verdict::Unclear,
    };
    if row.verdict != Verdict::Unclear {
        return;
    }
    row.reason = Some(if is_beyond { Reason::NotSignificant } else { Reason::WideInterval });
    let times = if is_beyond {
        // Significance grows with the root of the samples.
        let (p, corrected) = (row.p.unwrap_or(1.0), row.p_corrected.unwrap_or(1.0));
        let deviations = |p: f64| normal_quantile(1.0 - p / 2.0);
        (deviations(p * SIGNIFICANCE / corrected) / deviations(p)).powi(2)
    } else {
        // So does precision; the interval must fit between the ratio and the threshold.
        (half_width / (ratio.ln().abs() - band).abs()).powi(2)
    };
    row.runs_needed = more(row.old.runs.min(row.new.runs), times);
}

/// Runs to add to so many for this times as much.
fn more(runs: u64, times: f64) -> Option<u64> {
    let needed = (runs as f64 * times).ceil() - runs as f64;
    (needed <= MOST_RUNS_NEEDED as f64).then_some(needed.max(1.0) as u64)
}

/// Runs to add until there are six samples.
fn few(row: &Row) -> Option<u64> {
    let side = |figure: &Figure| {
        let times = LEAST_SAMPLES as f64 / figure.n.max(1) as f64;
        if times <= 1.0 { Some(0) } else { more(figure.runs, times) }
    };
    Some(side(&row.old)?.max(side(&row.new)?))
}

/// Why a pair has nothing to be judged by.
fn missing(row: &Row) -> Option<Reason> {
    let is_lost = matches!(row.new.status, Status::Failed | Status::Invalid | Status::Interrupted);
    match (row.old.median, row.new.median) {
        (Some(_), None) if is_lost => Some(Reason::FigureLost),
        (None, _) | (_, None) => Some(Reason::NoFigure),
        _ if row.old.n == 0 || row.new.n == 0 => Some(Reason::NoSamples),
        _ => None,
    }
}

/// The ratio of two figures without samples.
fn bare_ratio(row: &Row) -> Option<f64> {
    let (old, new) = (row.old.median?, row.new.median?);
    (old > 0.0 && new > 0.0 && (new / old).is_normal()).then(|| new / old)
}

/// Whether a row has a figure that may be used.
fn has_figure(row: &Outcome) -> bool {
    let is_usable = !matches!(row.status, Status::Invalid | Status::Failed | Status::Unsupported);
    is_usable && row.median.is_some_and(f64::is_finite)
}

/// The median of a row's samples, if it is one that has a logarithm.
pub(super) fn usable_median(row: &Outcome) -> Option<f64> {
    let is_number = row.samples.iter().all(|sample| sample.is_finite() && *sample > 0.0);
    median(&row.samples).filter(|median| is_number && has_figure(row) && median.is_normal())
}

/// The samples of all runs that have a figure.
fn samples(group: &Group<'_>) -> Vec<f64> {
    let rows = group.outcomes.iter().filter(|row| has_figure(row));
    rows.flat_map(|row| row.samples.iter().copied()).collect()
}

fn figure(group: &Group<'_>, samples: &[f64]) -> Figure {
    let with_figure = group.outcomes.iter().filter(|row| has_figure(row));
    let bare = || group.outcomes.iter().find(|row| has_figure(row)).and_then(|row| row.median);
    let statuses = group.outcomes.iter().map(|row| row.status);
    Figure {
        median: median(samples).filter(|median| median.is_finite()).or_else(bare),
        n: samples.len() as u64,
        runs: with_figure.count() as u64,
        status: statuses.max_by_key(|status| gravity(*status)).unwrap_or_default(),
    }
}

fn gravity(status: Status) -> u8 {
    match status {
        Status::Ok => 0,
        Status::Degraded => 1,
        Status::Unstable => 2,
        Status::Interrupted => 3,
        Status::Unsupported => 4,
        Status::Invalid => 5,
        Status::Failed => 6,
    }
}

/// Sets rows aside that show the samples of an earlier one once more, for a picture: counted
/// twice they would count as two.
pub(super) fn mark_repeats(rows: &mut [Row], pairs: &[(&Group<'_>, &Group<'_>)]) {
    let mut seen: HashMap<u64, usize> = HashMap::new();
    for (index, row) in rows.iter_mut().enumerate().filter(|(_, row)| row.ci95.is_some()) {
        let samples = [samples(pairs[index].0), samples(pairs[index].1)];
        let bits = samples.each_ref().map(|side| side.iter().map(|x| x.to_bits()));
        let mut values: Vec<u64> = bits[0].clone().collect();
        values.sort_unstable();
        values.dedup();
        if values.len() < TELLING_VALUES {
            continue;
        }
        let mut hasher = DefaultHasher::new();
        row.unit.hash(&mut hasher);
        bits.into_iter().for_each(|side| side.collect::<Vec<u64>>().hash(&mut hasher));
        let earlier = *seen.entry(hasher.finish()).or_insert(index);
        let (old, new) = pairs[earlier];
        if earlier != index && [self::samples(old), self::samples(new)] == samples {
            row.reason = Some(Reason::Repeats);
            row.verdict = Verdict::Incomparable;
        }
    }
}

/// A seed that depends on the row's name alone, so that no row changes the interval of another.
///
/// Source: FNV-1a, 64 bits.
fn seed(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
