//! Whether two CPUs are two cores, or two threads of one: each alone against both together.
//!
//! The figure is how much of the work of lone CPUs both do together: 2 for two cores, about 1 for
//! one core's two threads, because multiply-add keeps all ports busy that do it. A hypervisor
//! may show the threads of one core as two CPUs; the kernel's word is then no evidence.

use flatout_measure::statistics::quantile;
use flatout_measure::{Facts, Sample, TrialError};

use super::fact;
use super::load::{Load, Reading, SampleWindow};
use super::trial::{self, Placement, Setting};
use crate::workers::can_tie;

/// Pairs that are measured at most.
pub(super) const MOST_PAIRS: usize = 6;
/// Rounds of slices of each of the three runs, of some 0.6 ms: long against the start of threads.
const ROUNDS: u32 = 6;
/// From this on the CPUs are two cores; up to the other one they share one. Between them nobody
/// knows: a clock that falls when both work, or contention by others.
const APART_FROM: f64 = 1.6;
const SHARED_TO: f64 = 1.35;

flatout_sys::words! {
    /// What a figure says.
    pub(super) enum Verdict: words {
        /// Two cores.
        Apart = "two cores",
        /// One core.
        Shared = "they share one core",
        /// Neither can be said.
        Unclear = "unclear",
    }
}

/// Judges the trials of a row. A hypervisor may move CPUs from one core to two within a run, as a busy one
/// did (ten trials, most near 1, two near 2; Sapphire Rapids, 2026-11-22): they share one only if
/// hardly a trial says otherwise.
pub(super) fn judge_trials(samples: &[f64]) -> Verdict {
    let at = |share: f64| quantile(samples, share).unwrap_or(0.0);
    match judge(at(0.5)) {
        Verdict::Shared if judge(at(0.9)) == Verdict::Apart => Verdict::Unclear,
        verdict => verdict,
    }
}

/// Judges what both CPUs did together, in the work of lone ones.
fn judge(worth_cpus: f64) -> Verdict {
    match worth_cpus {
        worth if worth >= APART_FROM => Verdict::Apart,
        worth if worth > 0.0 && worth <= SHARED_TO => Verdict::Shared,
        _ => Verdict::Unclear,
    }
}

/// The pairs that are worth a look: adjacent CPUs, and those half the machine apart, as siblings are
/// numbered; of few CPUs all. Those of which the kernel says that they share a core are left out.
pub(super) fn pairs(cpus: &[usize], siblings: &[Vec<usize>]) -> Vec<(usize, usize)> {
    let count = cpus.len();
    let mut sorted = cpus.to_vec();
    sorted.sort_unstable();
    let mut pairs = Vec::new();
    for first in 0..count {
        for second in first + 1..count {
            let apart = second - first;
            let likely = count <= 4 || (apart == 1 && first % 2 == 0) || 2 * apart == count;
            if likely {
                pairs.push((sorted[first], sorted[second]));
            }
        }
    }
    let known = |pair: &(usize, usize)| {
        siblings.iter().any(|set| set.contains(&pair.0) && set.contains(&pair.1))
    };
    pairs.retain(|pair| !known(pair));
    // Both ways of numbering first, then further ones.
    pairs.sort_by_key(|pair| pair.0);
    pairs
}

/// The pairs that machines number as they number this one, itself among them: adjacent CPUs, or those half
/// the machine apart.
pub(super) fn numbered_alike(pair: (usize, usize), cpus: &[usize]) -> Vec<(usize, usize)> {
    let mut sorted = cpus.to_vec();
    sorted.sort_unstable();
    let place = |cpu| sorted.iter().position(|&one| one == cpu);
    let Some((first, second)) = place(pair.0).zip(place(pair.1)) else { return vec![pair] };
    let apart = second.abs_diff(first);
    let is_alike = |at: &usize| {
        *at == first || 2 * apart == sorted.len() || (apart == 1 && at % 2 == first % 2)
    };
    let alike = (0..sorted.len() - apart).filter(is_alike);
    alike.map(|at| (sorted[at], sorted[at + apart])).collect()
}

/// One trial: each CPU alone, then both.
pub(super) fn sample(load: &Load, first: usize, second: usize) -> Result<Sample, TrialError> {
    can_tie()?;
    let run = |cpus: &[usize]| -> Result<Vec<SampleWindow>, TrialError> {
        let setting = Setting { threads: cpus.len() as u32, placement: Placement::Pinned };
        let sample = |load: &Load| load.sample(ROUNDS, Reading::Apart, None, 1);
        trial::run(load, cpus, setting, sample)
    };
    let rates = |windows: &[SampleWindow]| -> Vec<f64> {
        windows.iter().filter_map(SampleWindow::per_s).collect()
    };
    let alone = [rates(&run(&[first])?), rates(&run(&[second])?)].concat();
    let both = run(&[first, second])?;
    let elapsed_ns = both.iter().map(SampleWindow::elapsed_ns).max().unwrap_or(0);
    let worth = worth_cpus(&alone, &rates(&both));
    let operations = both.iter().map(SampleWindow::operations).sum::<u64>();
    let facts = Facts::default().with(fact::OPERATIONS, operations);
    Ok(Sample { amount: worth * elapsed_ns as f64 / 1e9, elapsed_ns, facts, ..Sample::default() })
}

/// The sum of what each does beside the other, as shares of what it does alone.
fn worth_cpus(alone: &[f64], together: &[f64]) -> f64 {
    alone.iter().zip(together).map(|(alone, together)| together / alone).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_known_machines() {
        // Two cores of a Zen 2; two threads of one of its cores.
        assert_eq!(judge(worth_cpus(&[52.7e9, 52.6e9], &[52.4e9, 52.6e9])), Verdict::Apart);
        assert_eq!(judge(worth_cpus(&[52.7e9, 52.6e9], &[26.5e9, 26.2e9])), Verdict::Shared);
        // An Ice Lake whose clock falls from 3.5 to 3.1 GHz when two cores work.
        assert_eq!(judge(worth_cpus(&[112e9, 112e9], &[99e9, 99e9])), Verdict::Apart);
        // Another thread came in between.
        assert_eq!(judge(1.5), Verdict::Unclear);
        assert_eq!(judge(0.0), Verdict::Unclear);
        assert_eq!(judge(f64::NAN), Verdict::Unclear);
    }

    #[test]
    fn cpus_that_were_moved_meanwhile_are_unclear() {
        let moved = [0.99, 1.0, 1.0, 1.01, 1.05, 1.05, 1.23, 1.28, 1.7, 2.02];
        assert_eq!(judge_trials(&moved), Verdict::Unclear);
        assert_eq!(judge_trials(&[0.99, 1.0, 1.02, 1.05, 1.2, 1.3]), Verdict::Shared);
        assert_eq!(judge_trials(&[1.9, 2.0, 1.99, 1.2]), Verdict::Apart);
        assert_eq!(judge_trials(&[]), Verdict::Unclear);
    }

    #[test]
    fn of_few_cpus_all_pairs_are_looked_at() {
        assert_eq!(pairs(&[1, 0], &[]), [(0, 1)]);
        assert_eq!(pairs(&[0, 1, 2], &[]), [(0, 1), (0, 2), (1, 2)]);
        assert!(pairs(&[5], &[]).is_empty());
    }

    #[test]
    fn of_many_cpus_both_ways_of_numbering_siblings_are_looked_at() {
        let pairs = pairs(&(0..16).collect::<Vec<_>>(), &[]);
        assert_eq!(pairs[..2], [(0, 1), (0, 8)]);
        assert!(pairs.contains(&(2, 3)) && !pairs.contains(&(1, 2)));
    }

    #[test]
    fn pairs_are_numbered_as_adjacent_cpus_or_half_the_machine_apart() {
        let cpus = [7, 3, 2, 1, 0, 6];
        assert_eq!(numbered_alike((0, 1), &cpus), [(0, 1), (2, 3), (6, 7)]);
        assert_eq!(numbered_alike((1, 6), &cpus), [(0, 3), (1, 6), (2, 7)]);
        assert_eq!(numbered_alike((0, 6), &cpus), [(0, 6)]);
        assert_eq!(numbered_alike((0, 1), &[0, 1]), [(0, 1)]);
        assert_eq!(numbered_alike((0, 9), &cpus), [(0, 9)]);
    }

    #[test]
    fn declared_siblings_need_no_look() {
        assert!(pairs(&[0, 1], &[vec![0, 1]]).is_empty());
    }
}
