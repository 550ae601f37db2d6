//! Runs as what is repeated: each gives one figure per row, the logarithm of its median. What its
//! trials share is no evidence, so their number counts nowhere here.
//!
//! Noise between runs comes from the runs of both sides, from learned noise, or, where there is
//! neither, is assumed. The formulas with their sources stand in docs/compare.md.

use std::collections::HashMap;

use super::matching::Group;
use super::noise::{ASSUMED_VARIANCE, Noise, area, moderated};
use super::{NoiseSource, judgement};
use crate::random::SplitMix64;
use crate::record::Outcome;
use crate::statistics::compare::{combinations, divisions, holm, step_down};
use crate::statistics::interval::WITHIN_95;
use crate::statistics::median;
use crate::statistics::pool::{KIN_FREEDOM, LEAST_KIN, Pool};
use crate::statistics::student::student_two_sided;

/// Median of the square of a standard normal variable.
const MEDIAN_OF_SQUARES: f64 = 0.454_936_423_119_573;

/// Degrees of freedom of what is assumed. Rows of an area differ in their noise by a factor of ten;
/// with four, 6 % of simulated comparisons of single runs of a busy machine raise an alarm.
const ASSUMED_FREEDOM: f64 = 3.0;

/// Samples of a run from which on they say how far they are apart.
const LEAST_SAMPLES: usize = 6;

/// Ways to divide the runs from which on these decide what is significant: with fewer, the two
/// that put each run on the side of its like are not below one in twenty.
const LEAST_DIVISIONS: f64 = 40.0;

/// Statistics of all divisions together, so that 100,000 rows take seconds.
const MOST_STATISTICS: usize = 20_000_000;
/// Divisions that are looked at, at the least.
const LEAST_DRAWN: usize = 200;

/// A row in all runs.
struct Line {
    /// Logarithm of the median of each run, those of the old side first.
    logs: Vec<Option<f64>>,
    /// What is known of its noise besides.
    learned: Pool,
    /// Index of the rows that it is kin to.
    kin: Option<usize>,
    /// Index of the rows of its area.
    area: usize,
    /// The variance that is taken where nothing is known, at the least.
    assumed: f64,
    /// Whether a run has so few samples that they do not even show how far they are apart.
    has_few_samples: bool,
}

/// Rows in the runs of both sides.
pub(super) struct Replicates {
    lines: Vec<Line>,
    /// What is known besides of those that are kin.
    learned: Vec<Pool>,
    sizes: [usize; 2],
}

/// The figures of a row in runs that are divided into two sides.
struct Own {
    difference: f64,
    shares: f64,
    noise: Pool,
}

/// What the runs say of a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Estimate {
    /// Logarithm of new ÷ old.
    pub difference: f64,
    /// Of the logarithm of one run's figure, for what is claimed: of few runs the larger of what
    /// they have and what is assumed, because two levels of a row hide easily in few runs.
    pub log_variance: f64,
    /// The same for plans: as the runs have it.
    pub planned_variance: f64,
    /// Degrees of freedom with which it is known.
    pub freedom: f64,
    /// Where it is from.
    pub source: NoiseSource,
    /// Sum of 1 ÷ runs of the sides.
    shares: f64,
}

impl Estimate {
    /// Standard deviation of the difference.
    pub fn deviation(&self) -> f64 {
        (self.log_variance * self.shares).sqrt()
    }

    /// The difference in its deviations, without sign.
    fn statistic(&self) -> f64 {
        if self.difference == 0.0 { 0.0 } else { self.difference.abs() / self.deviation() }
    }

    /// Two-sided probability of such a difference by chance, of this row alone.
    pub fn p(&self) -> f64 {
        student_two_sided(self.statistic(), self.freedom)
    }
}

impl Replicates {
    /// The figures of these pairs of rows, from so many runs of each side.
    pub fn new(
        pairs: &[(&Group<'_>, &Group<'_>)],
        sizes: [usize; 2],
        noise: Option<&Noise>,
    ) -> Self {
        let mut lines: Vec<Line> = pairs.iter().map(|pair| line(pair, sizes, noise)).collect();
        let made = made(sizes);
        let mut tests: HashMap<&str, (usize, Vec<usize>)> = HashMap::new();
        let mut areas: HashMap<&str, (usize, Vec<usize>)> = HashMap::new();
        for (index, (line, (old, _))) in lines.iter().zip(pairs).enumerate() {
            let has_spread = line.own(&made).noise.freedom > 0.0;
            for (kinds, name) in
                [(&mut tests, &*old.first().id), (&mut areas, area(&old.first().id))]
            {
                let kind = kinds.entry(name).or_default();
                kind.0 += usize::from(has_spread);
                kind.1.push(index);
            }
        }
        let mut learned = Vec::new();
        for (area, (_, members)) in areas.values().enumerate() {
            members.iter().for_each(|index| lines[*index].area = area);
        }
        // Rows of one test are nearer than those of its area.
        for (name, (rows, members)) in areas.into_iter().chain(tests) {
            let pool = noise.map(|noise| noise.kin(name)).unwrap_or_default();
            if rows.max(pool.rows) >= LEAST_KIN {
                members.iter().for_each(|index| lines[*index].kin = Some(learned.len()));
                learned.push(pool);
            }
        }
        Self { lines, learned, sizes }
    }

    /// What the runs say as they are.
    pub fn estimates(&self) -> Vec<Estimate> {
        self.divided(&made(self.sizes))
    }

    /// Whether there are so few runs that how they are divided shows nothing.
    fn is_few(&self) -> bool {
        combinations(self.sizes.iter().sum(), self.sizes[0]) < LEAST_DIVISIONS
    }

    /// The probability of each row's difference by chance, all rows counted in.
    pub fn corrected(&self, estimates: &[Estimate], most_divisions: usize) -> Vec<f64> {
        if self.is_few() {
            let both = self.lines.iter().zip(estimates);
            let p = both.map(|(line, one)| {
                let is_shown = one.source == NoiseSource::Learned || !line.has_few_samples;
                if is_shown { one.p() } else { 1.0 }
            });
            return holm(&p.collect::<Vec<_>>());
        }
        let least = *self.sizes.iter().min().unwrap_or(&0);
        let statistics = |estimates: &[Estimate]| -> Vec<f64> {
            let both = self.lines.iter().zip(estimates);
            // A row that some division leaves without a side was picked by the one that was made,
            // because it had both there: it cannot be held against the others.
            let missing = |line: &Line| line.logs.iter().filter(|log| log.is_none()).count();
            let of = |(line, one): (&Line, &Estimate)| match missing(line) < least {
                true => one.statistic(),
                false => 0.0,
            };
            both.map(of).collect()
        };
        let cost = self.lines.len().max(1) * self.sizes.iter().sum::<usize>();
        let most = (MOST_STATISTICS / cost).clamp(LEAST_DRAWN.min(most_divisions), most_divisions);
        let divisions = divisions(self.sizes, most, &mut SplitMix64::new(cost as u64));
        let divided = divisions.iter().map(|is_new| statistics(&self.divided(is_new)));
        let observed = statistics(estimates);
        step_down(&observed, divided)
    }

    /// What the runs would say if those marked were the new ones.
    fn divided(&self, is_new: &[bool]) -> Vec<Estimate> {
        let own: Vec<Own> = self.lines.iter().map(|line| line.own(is_new)).collect();
        let mut kin = self.learned.clone();
        for (line, own) in self.lines.iter().zip(&own) {
            if let Some(index) = line.kin {
                kin[index] = kin[index].with(own.noise);
            }
        }
        let is_few = self.is_few();
        let apart = if is_few { self.apart(&own) } else { Vec::new() };
        let estimate = |(line, own): (&Line, &Own)| {
            let known = moderated(own.noise.with(line.learned), line.kin.map(|index| kin[index]));
            let is_learned = line.learned.freedom > 0.0
                || line.kin.is_some_and(|index| self.learned[index].freedom > 0.0);
            let assumed =
                apart.get(line.area).map_or(line.assumed, |apart| apart.max(line.assumed));
            let (log_variance, freedom, source) = match known {
                Some((variance, freedom)) if !is_few => (variance, freedom, NoiseSource::Runs),
                Some((variance, _)) if is_learned => (variance, KIN_FREEDOM, NoiseSource::Learned),
                Some((variance, _)) if variance > assumed => {
                    (variance, KIN_FREEDOM, NoiseSource::Runs)
                }
                _ => (assumed, ASSUMED_FREEDOM, NoiseSource::Assumed),
            };
            let planned_variance = known.map_or(assumed, |(variance, _)| variance);
            let &Own { difference, shares, .. } = own;
            Estimate { difference, log_variance, planned_variance, freedom, source, shares }
        };
        self.lines.iter().zip(&own).map(estimate).collect()
    }

    /// The variance that the differences of each area would have if most of its rows had not
    /// changed: with few runs a row must stand out from the others.
    ///
    /// Source: the median of squares, as in Rousseeuw, "Least median of squares regression", 1984.
    fn apart(&self, own: &[Own]) -> Vec<f64> {
        let areas = self.lines.iter().map(|line| line.area + 1).max().unwrap_or_default();
        let mut squares = vec![Vec::new(); areas];
        for (line, own) in self.lines.iter().zip(own).filter(|(_, own)| own.shares.is_finite()) {
            squares[line.area].push(own.difference.powi(2) / own.shares);
        }
        let variance = |squares: &Vec<f64>| median(squares).unwrap_or_default() / MEDIAN_OF_SQUARES;
        squares.iter().map(variance).collect()
    }
}

/// The division that was made.
fn made([old, new]: [usize; 2]) -> Vec<bool> {
    (0..old + new).map(|run| run >= old).collect()
}

fn line(pair: &(&Group<'_>, &Group<'_>), sizes: [usize; 2], noise: Option<&Noise>) -> Line {
    let (old, new) = pair;
    let mut logs = vec![None; sizes[0] + sizes[1]];
    let mut used = Vec::new();
    for (offset, group) in [(0, old), (sizes[0], new)] {
        for (run, row) in &group.outcomes {
            let Some(median) = judgement::usable_median(row) else { continue };
            logs[offset + run] = Some(median.ln());
            used.push(row);
        }
    }
    let within = used.iter().map(|row| within_run(row)).sum::<f64>() / used.len().max(1) as f64;
    let first = old.first();
    Line {
        logs,
        learned: noise.map(|noise| noise.row(&first.id, &first.parameters)).unwrap_or_default(),
        kin: None,
        area: 0,
        assumed: ASSUMED_VARIANCE + within,
        has_few_samples: used.iter().any(|row| row.samples.len() < LEAST_SAMPLES),
    }
}

/// Variance of the logarithm of a median as its run has it: what its 95 % interval says of where
/// other runs lie, at least π/2 ÷ n of that of its trials.
fn within_run(row: &Outcome) -> f64 {
    let half_width = row.ci95.filter(|[low, high]| *low > 0.0 && high.is_finite());
    let half_width = half_width.map_or(0.0, |[low, high]| (high / low).ln() / 2.0);
    (half_width / WITHIN_95).powi(2).max(of_trials(row))
}

fn of_trials(row: &Outcome) -> f64 {
    let logs = row.samples.iter().filter(|sample| sample.is_normal() && **sample > 0.0);
    let pool = Pool::of(logs.map(|sample| sample.ln()));
    if pool.freedom == 0.0 {
        return 0.0;
    }
    pool.variance() * std::f64::consts::FRAC_PI_2 / (pool.freedom + 1.0)
}

impl Line {
    /// What its figures say by themselves, if the runs are divided so.
    fn own(&self, is_new: &[bool]) -> Own {
        // Around a figure of the row, so that no digits are lost in the squares.
        let centre = self.logs.iter().find_map(|log| *log).unwrap_or_default();
        let mut sides = [[0.0; 3]; 2];
        for (log, is_new) in self.logs.iter().zip(is_new) {
            let Some(distance) = log.map(|log| log - centre) else { continue };
            let side = &mut sides[usize::from(*is_new)];
            *side = [side[0] + 1.0, side[1] + distance, side[2] + distance * distance];
        }
        let mut noise = Pool { squares: 0.0, freedom: 0.0, rows: 1 };
        let [old, new] = sides.map(|[count, sum, squares]: [f64; 3]| {
            if count > 1.0 {
                noise.squares += (squares - sum * sum / count).max(0.0);
                noise.freedom += count - 1.0;
            }
            (sum / count, 1.0 / count)
        });
        let shares = old.1 + new.1;
        // A division that leaves a side without a figure says nothing of the row.
        let difference = if shares.is_finite() { new.0 - old.0 } else { 0.0 };
        Own { difference, shares, noise }
    }
}
