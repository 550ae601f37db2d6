//! The execution ports of each kernel, counted before the rows are measured, and after it where SMT
//! sibling contention was in the way.

use std::collections::BTreeMap;

use flatout_measure::statistics;
use flatout_sys::affinity;
use flatout_sys::throughput::{Form, Kernel, Level, Operation};

use super::load::{Load, Reading, SampleWindow};
use super::ports::{self, Ports};
use super::topology::Topology;
use crate::contention::{ContentionProbe, CoreUse};
use crate::workers;

/// Rounds of slices of one try.
const ROUNDS: u32 = 8;
/// Slices alone on the core that make a count, and as many as are wanted while there is time.
const LEAST_ALONE: usize = 4;
const ENOUGH_ALONE: usize = 8;
/// CPUs on which a kernel is counted in turn: contention differs, ports do not.
const CPUS: usize = 2;
/// Share of the slices below the one that counts where too few had the core alone; of those that had,
/// the middle one counts. Contention lowers a slice; the clock beside it is too low only if it was
/// disturbed before and after, so the few highest are not to be believed:
/// of 1000 slices with contention nine tenths were below 2.007 and 1.987 steps per cycle on two
/// CPUs whose cores do 2, the highest was 2.07 (Sapphire Rapids, 2026-11-22).
const SHARE: f64 = 0.9;

/// What the counting loop of a kernel read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Count {
    /// Steps per cycle, the higher of two CPUs where neither was a whole number: of slices alone on the
    /// core the middle one; else what nine tenths do not exceed.
    pub(super) per_cycle: f64,
    /// `None`: no whole number, or there was contention.
    pub(super) ports: Option<Ports>,
    /// Whether the slices had the core alone, or nobody can tell.
    pub(super) is_trusted: bool,
}

/// What the slices on one CPU did, in steps per cycle.
#[derive(Debug, Default)]
struct Seen {
    alone: Vec<f64>,
    contended: Vec<f64>,
    /// Whether probes could tell one from the other.
    was_probed: bool,
}

impl Seen {
    fn take(&mut self, window: &SampleWindow, per_step: f64) {
        let is_alone = window.has_alone(1);
        self.was_probed |= window.core_use != CoreUse::Unknown;
        let kind = if is_alone { &mut self.alone } else { &mut self.contended };
        let slices = window.per_cycle().into_iter().filter(|_| !window.is_wrong);
        kind.extend(slices.map(|operations| operations / per_step));
    }

    /// What they say; `sums` are the ports of sums alone, for a kernel that is a product and a sum.
    ///
    /// Under contention for the same ports two of them look like one: then nobody knows. How
    /// many micro-operations a pair is follows from a fraction, which takes more slices to trust.
    fn count(&self, kernel: Kernel, sums: Option<Ports>) -> Option<Count> {
        let is_alone = self.alone.len() >= LEAST_ALONE;
        let per_cycle = match is_alone {
            true => statistics::median(&self.alone)?,
            false => statistics::quantile(&[&self.alone[..], &self.contended].concat(), SHARE)?,
        };
        let (is_trusted, is_sure) = match self.was_probed {
            true => (is_alone, self.alone.len() >= ENOUGH_ALONE),
            false => (true, true),
        };
        let ports = match kernel.instructions() {
            1 => ports::of_single(per_cycle),
            _ => ports::of_pair(per_cycle, sums.filter(|_| is_sure)),
        };
        Some(Count { per_cycle, ports: ports.filter(|_| is_trusted), is_trusted })
    }
}

/// What was seen of all kernels that were asked for and could be counted, on each of the CPUs.
#[derive(Debug, Default)]
pub(super) struct PortCounts {
    seen: BTreeMap<Kernel, Vec<Seen>>,
}

impl PortCounts {
    /// Counts the ports of `kernels` on the first CPUs. Takes some 5 to 80 ms for each.
    pub(super) fn take(
        kernels: &[Kernel],
        topology: &Topology,
        seed: u64,
        stop: &dyn Fn() -> bool,
    ) -> Self {
        let mut counts = Self::default();
        topology.probe.learn();
        // How many micro-operations a product and a sum are follows from sums.
        let sums = |kernel: &Kernel| {
            (kernel.instructions() == 2).then_some(Kernel { operation: Operation::Add, ..*kernel })
        };
        for kernel in kernels.iter().flat_map(|kernel| sums(kernel).into_iter().chain([*kernel])) {
            if kernel.lacks().is_some() || counts.seen.contains_key(&kernel) {
                continue;
            }
            match stop() {
                true => _ = counts.seen.insert(kernel, Vec::new()),
                false => counts.count(kernel, topology, seed, None),
            }
        }
        counts
    }

    /// Counts again, in turn, what no slices alone on a core have counted yet, until `stop`, and what there
    /// was no time for.
    pub(super) fn complete(&mut self, topology: &Topology, seed: u64, stop: &dyn Fn() -> bool) {
        loop {
            let is_probed = topology.probe.width().is_some();
            let lacks = |seen: &[Seen]| match seen {
                [] => true,
                seen => is_probed && seen.iter().all(|one| one.alone.len() < ENOUGH_ALONE),
            };
            let lacking = self.seen.iter().filter(|(_, seen)| lacks(seen));
            let mut lacking: Vec<Kernel> = lacking.map(|(kernel, _)| *kernel).collect();
            if lacking.is_empty() {
                return;
            }
            // First those of which nothing is known yet.
            lacking
                .sort_by_key(|kernel| self.of(*kernel).is_some_and(|count| count.ports.is_some()));
            for kernel in lacking {
                if stop() {
                    return;
                }
                self.count(kernel, topology, seed, topology.quietest());
            }
        }
    }

    /// What is known of each kernel.
    pub(super) fn counts(&self) -> BTreeMap<Kernel, Count> {
        self.seen.keys().filter_map(|&kernel| Some((kernel, self.of(kernel)?))).collect()
    }

    fn of(&self, kernel: Kernel) -> Option<Count> {
        // Pairs of a product and a sum are held against sums.
        let sums = match kernel.operation {
            Operation::Add => None,
            Operation::MultiplyAdd => self.of(Kernel { operation: Operation::Add, ..kernel }),
        };
        let sums = sums.and_then(|count| count.ports);
        let counts = self.seen.get(&kernel)?.iter().filter_map(|seen| seen.count(kernel, sums));
        chosen(&counts.collect::<Vec<_>>())
    }

    /// One try on each of the CPUs, or on that one if it is one of them.
    fn count(&mut self, kernel: Kernel, topology: &Topology, seed: u64, only: Option<usize>) {
        let cpus: Vec<Option<usize>> = match topology.cpus.len() {
            0 => vec![None],
            _ => topology.cpus.iter().take(CPUS).map(|&cpu| Some(cpu)).collect(),
        };
        let per_step = (kernel.lanes() * kernel.operation.count()) as f64;
        let seen = self.seen.entry(kernel).or_default();
        seen.resize_with(cpus.len(), Seen::default);
        let Ok(load) = Load::new(kernel, Form::PortCount, seed) else { return };
        let only = only.filter(|only| cpus.contains(&Some(*only)));
        let wanted = |cpu: &Option<usize>| only.is_none() || *cpu == only;
        for (cpu, seen) in cpus.into_iter().zip(seen).filter(|(cpu, _)| wanted(cpu)) {
            seen.take(&counted(&load, cpu, &topology.probe), per_step);
        }
    }
}

/// The count that is taken of those of several CPUs: of those alone on their cores, if there are any. A
/// whole number is better than none, and of two the higher: whoever else uses the ports lowers a
/// count. A fraction of ports must be the same on all: a pair that takes 0.82 per cycle, which is no
/// fraction of ports, was once seen as three for four micro-operations under contention.
fn chosen(counts: &[Count]) -> Option<Count> {
    let any_trusted = counts.iter().any(|count| count.is_trusted);
    let believed = || counts.iter().copied().filter(|count| count.is_trusted == any_trusted);
    let rank = |count: &Count| (count.ports.is_some(), count.per_cycle);
    let best = believed()
        .max_by(|a, b| rank(a).partial_cmp(&rank(b)).unwrap_or(std::cmp::Ordering::Equal))?;
    let is_fraction = best.ports.is_some_and(|ports| ports.micro_operations > 2);
    let is_agreed = believed().all(|count| count.ports == best.ports);
    Some(Count { ports: best.ports.filter(|_| !is_fraction || is_agreed), ..best })
}

/// The counting loop in slices, on one CPU.
fn counted(load: &Load, cpu: Option<usize>, probe: &ContentionProbe) -> SampleWindow {
    let sampled = workers::in_own_thread(|| match cpu.map(affinity::pin_to) {
        Some(Err(_)) => SampleWindow::default(),
        _ => load.sample(ROUNDS, Reading::Between, Some(probe), 1),
    });
    sampled.unwrap_or_default()
}

/// Why a count gave no ports, in words.
pub(super) fn why_unknown(kernel: Kernel, count: Option<Count>) -> String {
    let Some(count) = count else { return "its ports could not be counted".to_owned() };
    let unit = if kernel.level == Level::Amx { "rows" } else { "steps" };
    match count.is_trusted {
        true => format!(
            "its ports are unknown: {:.2} {unit} per cycle are no whole number within 3 %",
            count.per_cycle
        ),
        false => "its ports are unknown: an SMT sibling used the core whenever they were counted"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use flatout_sys::throughput::Number;

    use super::*;

    #[test]
    fn what_was_not_counted_is_unknown() {
        let kernel = Kernel { number: Number::F64, operation: Operation::Add, level: Level::Avx2 };
        assert_eq!(PortCounts::default().of(kernel), None);
        assert!(why_unknown(kernel, None).contains("could not be counted"));
        let count = Count { per_cycle: 1.78, ports: None, is_trusted: true };
        assert!(why_unknown(kernel, Some(count)).contains("1.78 steps per cycle"));
    }

    #[test]
    fn a_count_under_contention_is_none() {
        let single = Kernel { number: Number::F64, operation: Operation::Add, level: Level::Avx2 };
        let seen = |alone: &[f64], contended: &[f64], was_probed| Seen {
            alone: alone.to_vec(),
            contended: contended.to_vec(),
            was_probed,
        };
        let ports = |seen: &Seen| seen.count(single, None).unwrap().ports.map(|ports| ports.ports);
        // Half of two ports looks like one.
        assert_eq!(ports(&seen(&[], &[1.0; 16], true)), None);
        assert_eq!(ports(&seen(&[], &[1.99; 16], false)), Some(2), "nobody could probe");
        assert_eq!(ports(&seen(&[1.99; 3], &[1.0; 16], true)), None);
        assert_eq!(ports(&seen(&[1.99, 2.0, 1.6, 1.99], &[1.0; 16], true)), Some(2));
        assert_eq!(Seen::default().count(single, None), None);
        // What follows from a fraction wants more of them.
        let pair =
            Kernel { number: Number::I32, operation: Operation::MultiplyAdd, level: Level::Avx512 };
        let sums = ports::of_single(2.0);
        let micro_operations = |count| {
            let seen = seen(&vec![0.666; count], &[], true);
            seen.count(pair, sums).unwrap().ports.map(|ports| ports.micro_operations)
        };
        assert_eq!(
            (micro_operations(LEAST_ALONE), micro_operations(ENOUGH_ALONE)),
            (None, Some(3))
        );
    }

    #[test]
    fn a_fraction_that_one_cpu_alone_shows_is_none() {
        let count = |per_cycle, ports: u64, micro_operations| Count {
            per_cycle,
            ports: Some(Ports { ports, micro_operations }),
            is_trusted: false,
        };
        let none = Count { per_cycle: 0.82, ports: None, is_trusted: false };
        let ports = |counts: &[Count]| chosen(counts).and_then(|count| count.ports);
        assert_eq!(ports(&[count(0.76, 3, 4), none]), None);
        assert_eq!(ports(&[count(0.76, 3, 4); 2]), count(0.76, 3, 4).ports);
        // Whole numbers need no second witness: the other CPU is contended for.
        assert_eq!(
            ports(&[count(1.98, 2, 1), Count { per_cycle: 1.7, ..none }]),
            count(2.0, 2, 1).ports
        );
        // Alone on its core one CPU is witness enough.
        let alone = Count { is_trusted: true, ..count(0.5, 2, 4) };
        assert_eq!(ports(&[alone, none]), alone.ports);
        assert_eq!(ports(&[Count { is_trusted: true, ..none }, count(2.0, 2, 1)]), None);
        assert_eq!(chosen(&[]), None);
    }

    #[test]
    fn a_user_who_stops_waits_for_no_count() {
        let kernel = Kernel { number: Number::F64, operation: Operation::Add, level: Level::Sse2 };
        let mut counts = PortCounts::take(&[kernel], &Topology::default(), 1, &|| true);
        counts.complete(&Topology::default(), 1, &|| true);
        assert_eq!(counts.of(kernel), None);
    }

    #[test]
    fn what_there_was_no_time_for_is_counted_in_the_end_and_sums_for_pairs_alone() {
        let of = |operation, level| Kernel { number: Number::F64, operation, level };
        for level in [Level::Sse2, Level::Avx2] {
            let [fused, sum] = [Operation::MultiplyAdd, Operation::Add].map(|one| of(one, level));
            if let Some(text) = fused.lacks() {
                eprintln!("skipped: {text}");
                continue;
            }
            let topology = Topology::default();
            let mut counts = PortCounts::take(&[fused], &topology, 1, &|| true);
            assert_eq!(counts.of(fused), None);
            counts.complete(&topology, 1, &|| false);
            let is_pair = level == Level::Sse2;
            assert!(counts.of(fused).is_some());
            assert_eq!(counts.of(sum).is_some(), is_pair);
        }
    }

    #[test]
    fn a_count_is_a_figure_above_nothing() {
        let kernel = Kernel { number: Number::I32, operation: Operation::Add, level: Level::Sse2 };
        let counts = PortCounts::take(&[kernel], &Topology::default(), 1, &|| false);
        match counts.of(kernel) {
            Some(count) => assert!(count.per_cycle > 0.0),
            None => assert!(kernel.lacks().is_some()),
        }
    }
}
