//! Whether the SMT sibling contends for the core, probed before and after each slice or window of work.
//!
//! What a slice reaches under contention says nothing about the units, and contention is not
//! recognised by that: the probe has work of its own ([`flatout_sys::issue_width`]). On a core of
//! one's own it sees as many instructions per cycle as the core is wide, a whole number, which is
//! learned here. Where none is seen, nothing is known and every slice counts.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use flatout_measure::sampler::fact::{
    CONTENDED_NS, CONTENTION_RATIO, FIGURE_ALONE, FIGURE_CONTENDED, WATCHED_NS,
};
use flatout_measure::statistics::sorted;
use flatout_measure::{Facts, Sample, TrialError};
use flatout_sys::call::Window;
use flatout_sys::{affinity, issue_width, monotonic_ns};

use crate::{cores, workers};

/// Widths that a core can have: narrower ones are no longer made, and contention on one of six
/// leaves three.
const NARROWEST: usize = 4;
const WIDEST: usize = 12;
/// How far below a width a probe may lie, and how far above, where the chain that tells the cycles was
/// disturbed. Of 400,000 probes of cores of six those without contention lay between 5.8 and 6.1,
/// most with it between 2.3 and 3.7 (Sapphire Rapids, 2026-11-22).
const BELOW: f64 = 0.05;
const ABOVE: f64 = 0.04;
/// Probes that make a width known: so many, and such a share of all. Disturbed probes lie anywhere.
const LEAST_PROBES: u32 = 8;
const LEAST_SHARE: f64 = 0.005;
/// Share of the last probes without contention below which looking for more is given up soon, so that
/// rows get their trials; and how many probes count as the last ones.
const HOPELESS_SHARE: f64 = 0.004;
const MEMORY_PROBES: u32 = 8192;
/// Share of the last probes without contention from which on there is none to avoid.
const QUIET_SHARE: f64 = 0.9;
/// CPUs that are probed together, and how often each before and after a trial.
const PROBED_CPUS: usize = 4;
const PROBES_AROUND: u32 = 24;
/// For how long a width is looked for before anything is measured, at most.
const LEARNING_NS: u64 = 60_000_000;

/// The width that any probe of this process has learned: a later area may find no quiet moment.
static LEARNED: AtomicU32 = AtomicU32::new(0);

/// What was seen so far, by all threads together.
#[derive(Debug, Default)]
pub(crate) struct ContentionProbe {
    /// Whether CPUs are of several kinds, so that no width is that of all.
    is_mixed: bool,
    /// Probes near each width.
    near: [AtomicU32; WIDEST + 1],
    probes: AtomicU32,
    /// The width that was learned; 0 before.
    learned: AtomicU32,
    /// Of the last probes, those that were alone, and all.
    last_alone: AtomicU32,
    last: AtomicU32,
}

/// What a probe says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum CoreUse {
    /// Nobody else uses the core.
    Alone,
    /// The SMT sibling does, or the probe was disturbed.
    Contended,
    /// It is not known how wide the core is, or nobody probed.
    #[default]
    Unknown,
}

impl CoreUse {
    /// What two probes say of the time between them.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Alone, Self::Alone) => Self::Alone,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            _ => Self::Contended,
        }
    }
}

impl ContentionProbe {
    /// A probe for a machine whose CPUs are of one kind or of several. Of several nothing is learned, and
    /// it is never known whether a core was shared.
    pub(crate) fn of(is_mixed: bool) -> Self {
        let learned = AtomicU32::new(if is_mixed { 0 } else { LEARNED.load(Ordering::Relaxed) });
        Self { is_mixed, learned, ..Self::default() }
    }

    /// A probe for the CPUs that are allowed here, which has learned what it can.
    pub(crate) fn learned_here() -> Self {
        let cpus = affinity::allowed_cpus().unwrap_or_default();
        let probe = Self::of(cores::kinds(Path::new("/"), &cpus).len() > 1);
        probe.learn();
        probe
    }

    /// Probes until a width is known, for 60 ms at most, on the CPU where it is called.
    pub(crate) fn learn(&self) {
        let begun_ns = monotonic_ns();
        let is_over = || monotonic_ns().saturating_sub(begun_ns) > LEARNING_NS;
        while self.probe() != CoreUse::Alone && !is_over() {
            if self.probes.load(Ordering::Relaxed) == 0 {
                return;
            }
        }
    }

    /// Probes the core once, and learns from it.
    pub(crate) fn probe(&self) -> CoreUse {
        if self.is_mixed {
            return CoreUse::Unknown;
        }
        let seen = issue_width::measure();
        let core_use = seen.map_or(CoreUse::Unknown, |issued| self.take(issued));
        if core_use == CoreUse::Alone {
            LEARNED.fetch_max(self.learned.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        core_use
    }

    /// How many instructions the core begins per cycle when it is not shared.
    pub(crate) fn width(&self) -> Option<usize> {
        let all = f64::from(self.probes.load(Ordering::Relaxed));
        let least = LEAST_PROBES.max((all * LEAST_SHARE) as u32);
        let is_seen = |&width: &usize| self.near[width].load(Ordering::Relaxed) >= least;
        let seen = (NARROWEST..=WIDEST).rev().find(is_seen).unwrap_or(0) as u32;
        // What was learned stays so when the sibling no longer rests.
        let width = self.learned.fetch_max(seen, Ordering::Relaxed).max(seen) as usize;
        (width > 0).then_some(width)
    }

    /// Of the last probes, those that were alone, and all.
    fn last(&self) -> [f64; 2] {
        [&self.last_alone, &self.last].map(|one| f64::from(one.load(Ordering::Relaxed)))
    }

    /// Whether there was contention lately, as far as is known.
    pub(crate) fn is_contended(&self) -> bool {
        let [alone, all] = self.last();
        self.width().is_some() && alone < QUIET_SHARE * all
    }

    /// Of so many probes on each of these CPUs those that saw nobody; none of a CPU that is gone, and of no CPU
    /// where there is no thread to probe.
    pub(crate) fn alone_on(&self, cpus: &[usize], probes: u32) -> Vec<Option<u32>> {
        let alone = || (0..probes).map(|_| u32::from(self.probe() == CoreUse::Alone)).sum();
        let on = |&cpu: &usize| affinity::pin_to(cpu).ok().map(|()| alone());
        workers::in_own_thread(|| cpus.iter().take(PROBED_CPUS).map(on).collect())
            .unwrap_or_default()
    }

    /// Runs a trial of which all time counts, and notes for which share of some probes on the first of these
    /// CPUs before and after it there was contention. Nobody can tell where a quota holds the threads back,
    /// which looks like a sibling to probes, or where no width is known.
    ///
    /// Cost: 0.1 ms for each of at most four CPUs, and a thread, twice.
    pub(crate) fn around(
        &self,
        cpus: &[usize],
        is_held_back: bool,
        trial: impl FnOnce() -> Result<Sample, TrialError>,
    ) -> Result<Sample, TrialError> {
        let before = if is_held_back { None } else { self.ratio_on(cpus) };
        let mut sample = trial()?;
        let ratio = before.and_then(|before| Some(f64::midpoint(before, self.ratio_on(cpus)?)));
        sample.facts.set_known(CONTENTION_RATIO, ratio);
        Ok(sample)
    }

    /// Share of some probes that see contention on the first of these CPUs; `None` where nobody can tell.
    fn ratio_on(&self, cpus: &[usize]) -> Option<f64> {
        self.width()?;
        let alone: Option<Vec<u32>> = self.alone_on(cpus, PROBES_AROUND).into_iter().collect();
        let alone = alone.filter(|alone| !alone.is_empty())?;
        let probes = PROBES_AROUND * alone.len() as u32;
        Some(1.0 - f64::from(alone.iter().sum::<u32>()) / f64::from(probes))
    }

    /// Whether moments without contention have become so rare that looking for one is in vain.
    pub(crate) fn is_hopeless(&self) -> bool {
        let [alone, all] = self.last();
        all > f64::from(MEMORY_PROBES / 4) && alone < HOPELESS_SHARE * all
    }

    /// Keeps in mind what the last probes saw. Threads may lose one to each other.
    fn remember(&self, core_use: CoreUse) {
        if self.last.fetch_add(1, Ordering::Relaxed) >= MEMORY_PROBES {
            for counter in [&self.last, &self.last_alone] {
                counter.store(counter.load(Ordering::Relaxed) / 2, Ordering::Relaxed);
            }
        }
        self.last_alone.fetch_add(u32::from(core_use == CoreUse::Alone), Ordering::Relaxed);
    }

    /// What a probe that saw so many instructions per cycle says; learns from it.
    pub(crate) fn take(&self, per_cycle: f64) -> CoreUse {
        self.probes.fetch_add(1, Ordering::Relaxed);
        let whole = |width: &usize| {
            let share = per_cycle / *width as f64;
            (1.0 - BELOW..=1.0 + ABOVE).contains(&share)
        };
        let near = (NARROWEST..=WIDEST).find(whole);
        if let Some(width) = near {
            self.near[width].fetch_add(1, Ordering::Relaxed);
        }
        let core_use = match (self.width(), near) {
            (None, _) => CoreUse::Unknown,
            (Some(known), Some(seen)) if seen == known => CoreUse::Alone,
            (Some(_), _) => CoreUse::Contended,
        };
        self.remember(core_use);
        core_use
    }
}

/// Nanoseconds of a call in the quiet quarter of some windows.
pub(crate) fn quiet_ns<'w>(windows: impl Iterator<Item = &'w Window>) -> Option<f64> {
    let calls_ns = sorted(&windows.map(Window::call_ns).collect::<Vec<_>>());
    calls_ns.get(calls_ns.len().saturating_sub(1) / 4).copied()
}

/// For how much of the time `probe` saw an SMT sibling use the core, and what a call takes in windows alone on
/// the core and in windows beside the sibling, without the `empty_ns` of a turn of the loop.
pub(crate) fn facts(windows: &[Window], empty_ns: f64, probe: &ContentionProbe) -> Facts {
    let use_of = |window: &Window| window.issued_per_cycle.map(|issued| probe.take(issued));
    let seen: Vec<CoreUse> = windows.iter().map(|one| use_of(one).unwrap_or_default()).collect();
    let ns_of = |is: fn(CoreUse) -> bool| -> u64 {
        let those = windows.iter().zip(&seen).filter(|(_, seen)| is(**seen));
        those.map(|(window, _)| window.elapsed.as_nanos() as u64).sum()
    };
    let call_ns = |wanted: CoreUse| {
        let ends = seen.windows(2).map(|ends| ends.iter().all(|&end| end == wanted));
        let those =
            windows.iter().skip(1).zip(ends).filter_map(|(window, is)| is.then_some(window));
        quiet_ns(those).map(|call_ns| call_ns - empty_ns).filter(|&call_ns| call_ns > 0.0)
    };
    let mut facts = Facts::default()
        .with(WATCHED_NS, ns_of(|seen| seen != CoreUse::Unknown))
        .with(CONTENDED_NS, ns_of(|seen| seen == CoreUse::Contended));
    facts.set_known(FIGURE_ALONE, call_ns(CoreUse::Alone));
    facts.set_known(FIGURE_CONTENDED, call_ns(CoreUse::Contended));
    facts
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A probe that saw so many of each kind.
    fn probe(seen: &[(f64, u32)]) -> ContentionProbe {
        let probe = ContentionProbe::default();
        for &(per_cycle, count) in seen {
            (0..count).for_each(|_| {
                probe.take(per_cycle);
            });
        }
        probe
    }

    #[test]
    fn contention_at_either_end_counts_for_the_time_between() {
        use CoreUse::{Alone, Contended, Unknown};
        assert_eq!(
            (Alone.and(Alone), Alone.and(Contended), Contended.and(Alone)),
            (Alone, Contended, Contended)
        );
        assert_eq!((Alone.and(Unknown), Unknown.and(Contended)), (Unknown, Unknown));
    }

    #[test]
    fn of_cores_of_several_kinds_no_width_is_learned() {
        let mixed = ContentionProbe::of(true);
        mixed.learn();
        assert_eq!((mixed.probe(), mixed.width()), (CoreUse::Unknown, None));
    }

    #[test]
    fn contention_halves_what_a_probe_sees() {
        // As on a Sapphire Rapids whose sibling rests now and then.
        let probe = probe(&[(2.9, 900), (5.95, 20), (3.4, 400), (11.4, 1)]);
        assert_eq!(probe.width(), Some(6));
        assert_eq!(probe.take(5.9), CoreUse::Alone);
        for per_cycle in [2.9, 3.4, 4.6, 5.6, 7.0, 11.4, f64::NAN, f64::INFINITY, 0.0] {
            assert_eq!(probe.take(per_cycle), CoreUse::Contended, "{per_cycle}");
        }
    }

    #[test]
    fn a_sibling_that_never_rests_leaves_the_width_unknown() {
        let probe = probe(&[(2.9, 900), (3.1, 500), (6.0, 3)]);
        assert_eq!((probe.width(), probe.take(3.0)), (None, CoreUse::Unknown));
        assert_eq!(ContentionProbe::default().width(), None);
    }

    #[test]
    fn a_sibling_that_hardly_rests_is_waited_for_in_vain_until_it_rests_again() {
        let probe = probe(&[(5.95, 20), (2.9, 1000)]);
        assert!(!probe.is_hopeless() && probe.is_contended());
        (0..20_000).for_each(|_| _ = probe.take(2.9));
        assert!(probe.is_hopeless());
        // It rests for a hundredth of the time.
        (0..82).for_each(|_| _ = probe.take(6.0));
        assert!(!probe.is_hopeless());
    }

    #[test]
    fn cores_of_other_widths_are_learned() {
        // Skylake issues four, Zen 3 and Ice Lake five or six, Zen 5 eight.
        for width in [4, 5, 6, 8] {
            let probe = probe(&[(0.98 * width as f64, 300)]);
            assert_eq!(probe.width(), Some(width));
            assert!(!probe.is_contended() && !ContentionProbe::default().is_contended());
        }
    }

    #[test]
    fn probing_this_machine_ends() {
        let probe = ContentionProbe::default();
        probe.learn();
        let core_use = probe.probe();
        assert!(probe.width().is_some() || core_use == CoreUse::Unknown);
    }

    /// A window of ten calls of so many nanoseconds each, after which a probe saw so many instructions.
    fn window(call_ns: u64, issued_per_cycle: f64) -> Window {
        let elapsed = Duration::from_nanos(10 * call_ns);
        Window { calls: 10, elapsed, issued_per_cycle: Some(issued_per_cycle) }
    }

    #[test]
    fn what_calls_take_alone_and_beside_a_sibling_is_told_where_probes_saw_both() {
        let probe = ContentionProbe::default();
        (0..100).for_each(|_| _ = probe.take(5.95));
        // The sibling begins in the fourth window, and ends in the seventh.
        let issued = [6.0, 6.0, 6.0, 3.0, 3.0, 3.0, 6.0, 6.0];
        let calls_ns = [100, 100, 102, 130, 160, 161, 110, 104];
        let windows: Vec<Window> =
            calls_ns.into_iter().zip(issued).map(|(ns, issued)| window(ns, issued)).collect();
        let seen = facts(&windows, 10.0, &probe);
        let number = |key| seen.number(key).unwrap();
        assert_eq!((number(FIGURE_ALONE), number(FIGURE_CONTENDED)), (90.0, 150.0));
        assert_eq!((number(WATCHED_NS), number(CONTENDED_NS)), (9_670.0, 4_510.0));
        let quiet = facts(&windows[..3], 10.0, &probe);
        assert_eq!(quiet.number(FIGURE_CONTENDED), None);
        let unknown = facts(&windows, 10.0, &ContentionProbe::default());
        assert_eq!((unknown.number(WATCHED_NS), unknown.number(FIGURE_ALONE)), (Some(0.0), None));
    }
}
