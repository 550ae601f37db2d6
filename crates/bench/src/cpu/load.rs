//! A workload with its pace: how many passes make a slice, how many links a clock chain needs;
//! and what one thread does with it.

use std::sync::atomic::{AtomicU64, Ordering};

use flatout_sys::clock::{monotonic_ns, thread_cpu_ns};
use flatout_sys::core_clock::{self, Chain};
use flatout_sys::throughput::{Form, Kernel, Level, Number, Workload};

use super::clock;
use super::lookout::{Lookout, Sight};
pub(super) use super::stint::{Slice, Stint};
use super::watch::Watch;

/// Time of a slice of work; the second kind of slice is twice as long. With the reading before it and a
/// glance at either end it takes 0.06 to 0.1 ms: a neighbour on the core rested for 0.06 to 1 ms at a
/// time (Sapphire Rapids, 2026-11-22), and slices of 0.2 and 0.4 ms had hardly ever all of that.
const SLICE_NS: f64 = 40_000.0;
/// Time of a piece with one chain. A reading is one piece with each kind, right before the slice that
/// is held against it.
const CLOCK_PIECE_NS: f64 = 8_000.0;
const CLOCK_PIECES: u64 = 1;
/// Work before a trial, and before each slice. A core that has had lighter work begins dense 512-bit work
/// at a half or two thirds of its rate, for up to 3 µs (Sapphire Rapids alone on its core, bursts of 3 µs,
/// 2026-11-22).
const LEAD_NS: f64 = 100_000.0;
const LEAD_PASSES: u64 = 1;
/// For how long a stint looks for moments in which nobody else uses the core.
const SEARCH_NS: u64 = 40_000_000;
/// The same where he has hardly rested lately.
const SHORT_SEARCH_NS: u64 = 3_000_000;
/// Slices of each length that a stint wants to have had alone.
const ALONE_SLICES: usize = 2;
/// Tries of which the quickest sets the pace.
const TRIES: u32 = 5;
/// Readings of the clock before the work of a trial, and after it.
const OUTER_READINGS: u32 = 3;
/// Links of a chain alone while the pace is sought: some 30 µs.
const PACE_LINKS: u64 = 64 << 10;

/// How much longer than the work the chain is. Too short a chain waits for the work and reads too
/// low; too long a one leaves the units idle, and the clock is that of a lighter load. The work is
/// longer than it was when the pace was sought as soon as a neighbour takes some of its ports.
///
/// Loads wait for nothing, additions and products share ports with the work and wait beside it: on a
/// quiet core loads of 1.2 times the work read 2.486 GHz beside 512-bit multiply-add, of 2.4 times
/// 2.490; products of 1.1 times read 6 % less, of 1.3 times 1.5 % less, of 1.5 and more times
/// 2.489 and 2.491. Both are nearly the same, because a core slows denser work down at first, see
/// [`LEAD_NS`] (Sapphire Rapids, best of 400, 2026-11-22).
fn slack(chain: Chain, kernel: Kernel) -> f64 {
    match (chain, kernel.level) {
        // The chained loops of products of integers have 12 chains, and are slower than those of 24.
        (_, Level::Avx512) if is_wide(kernel) => 1.8,
        (Chain::Load, _) => 1.6,
        // Its products and those of the scalar loop have one port together.
        (Chain::Multiply, Level::Scalar) => 2.0,
        (Chain::Multiply, _) => 1.7,
        (Chain::Add, _) => 1.5,
    }
}

/// Whether the chained loop of a kernel differs from the plain one.
fn is_wide(kernel: Kernel) -> bool {
    kernel.instructions() == 2 && matches!(kernel.number, Number::I32 | Number::I64)
}

/// The kind of chain that counts, and the one that must agree with it. Beside tiles loads take
/// six cycles (Sapphire Rapids, 2026-11-22), and additions and products are in nobody's way.
const fn kinds(level: Level, load_cycles: Option<u64>) -> [Chain; 2] {
    match (level, load_cycles) {
        (Level::Amx, _) | (_, None) => [Chain::Multiply, Chain::Add],
        _ => [Chain::Load, Chain::Multiply],
    }
}

/// What is known of chains without work beside them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Latencies {
    /// Cycles of a load; `None`: no whole number, so loads are not read.
    pub(super) load_cycles: Option<u64>,
    /// The clock without load, which no load exceeds by much.
    idle_hz: f64,
}

impl Latencies {
    /// Runs chains alone, for a millisecond; `None` on a kind of CPU that has no such code.
    pub(super) fn measure() -> Option<Self> {
        let best = |chain| {
            let tries = (0..4 * TRIES).filter_map(|_| core_clock::alone(chain, PACE_LINKS / 4));
            tries.filter(|one| one.is_right).map(|one| one.ns_per_link()).reduce(f64::min)
        };
        let (add_ns, load_ns) = (best(Chain::Add)?, best(Chain::Load)?);
        let load_cycles = clock::load_cycles(load_ns, add_ns);
        Some(Self { load_cycles, idle_hz: 1e9 / add_ns })
    }

    fn cycles(self, chain: Chain) -> Option<u64> {
        chain.cycles_per_link().or(self.load_cycles)
    }
}

/// A workload and its pace.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) workload: Workload,
    pub(super) latencies: Latencies,
    /// Passes before the slices, of a slice, and of a piece with a chain.
    lead_passes: u64,
    passes: u64,
    clock_passes: u64,
    /// What a piece of a reading takes without a pass in it, at best: it is no time of the chain. What it
    /// takes with one beyond that and the links is 7 ns of 8 µs (means of 40 kernels alone on the core,
    /// from pieces of one pass and of two; Sapphire Rapids, 2026-11-22).
    empty_ns: AtomicU64,
    /// The kinds of chain, and the links of each per iteration.
    kinds: [Chain; 2],
    links: [u64; 2],
}

/// Why there is no load.
#[derive(Debug)]
pub(super) enum NoLoad {
    /// This machine cannot do it.
    Unsupported(String),
    /// A result was wrong.
    Wrong(String),
}

impl Load {
    /// Makes the workload and finds its pace, on the CPU where it is called. Takes some
    /// milliseconds.
    pub(super) fn new(kernel: Kernel, form: Form, seed: u64) -> Result<Self, NoLoad> {
        let workload = Workload::new(kernel, form, seed)
            .map_err(|error| NoLoad::Unsupported(error.to_string()))?;
        let Some(latencies) = Latencies::measure() else {
            return Err(NoLoad::Unsupported("no clock chain for this kind of CPU yet".to_owned()));
        };
        let mut pass_ns = f64::INFINITY;
        let begun_ns = monotonic_ns();
        while monotonic_ns().saturating_sub(begun_ns) < LEAD_NS as u64 {
            std::hint::black_box(workload.run(1));
        }
        for _ in 0..TRIES {
            let start_ns = monotonic_ns();
            if !workload.run(2).is_right {
                return Err(wrong(kernel));
            }
            pass_ns = pass_ns.min(monotonic_ns().saturating_sub(start_ns) as f64 / 2.0);
        }
        let passes_of = |ns: f64| (ns / pass_ns).round().max(1.0) as u64;
        let (lead_passes, passes) = (passes_of(LEAD_NS), passes_of(SLICE_NS));
        let clock_passes = passes_of(CLOCK_PIECE_NS / 1.6);
        let kinds = kinds(kernel.level, latencies.load_cycles);
        let (links, empty_ns) = ([1; 2], AtomicU64::new(u64::MAX));
        let mut load =
            Self { workload, latencies, lead_passes, passes, clock_passes, empty_ns, kinds, links };
        // At the clock without load, which is at least that in the load, no chain is too short.
        // What they read then is the clock, or nearly.
        let turn_ns = pass_ns / load.workload.turns_per_pass() as f64;
        load.set_links(turn_ns, latencies.idle_hz);
        let mut stint = Stint::default();
        for _ in 0..TRIES {
            load.read_clock(&mut stint);
        }
        if stint.is_wrong {
            return Err(wrong(kernel));
        }
        // The highest of them: a disturbed one would make the chains too short, which then read
        // too low for ever.
        let readings = stint.readings.0.iter().chain(&stint.spoiled_readings.0).flatten();
        let hz = readings.copied().reduce(f64::max).unwrap_or(latencies.idle_hz);
        load.set_links(turn_ns, hz.min(latencies.idle_hz));
        Ok(load)
    }

    fn set_links(&mut self, turn_ns: f64, hz: f64) {
        let kernel = self.workload.kernel();
        self.links = self.kinds.map(|chain| {
            let cycles = self.latencies.cycles(chain).unwrap_or(5) as f64;
            let links = turn_ns * hz / 1e9 * slack(chain, kernel) / cycles;
            (links.ceil() as u64).clamp(1, chain.most_links().max(1))
        });
    }

    /// Reads the clock in the load some times, without anything else.
    pub(super) fn clock(&self) -> Stint {
        let mut stint = Stint::default();
        self.lead_in(&mut stint);
        for _ in 0..OUTER_READINGS {
            self.read_clock(&mut stint);
        }
        stint
    }

    /// Work that brings the core into the state that dense work leaves, and does not count.
    fn lead_in(&self, stint: &mut Stint) {
        stint.is_wrong |= !self.workload.run(self.lead_passes).is_right;
    }

    /// One pair of readings.
    fn read_clock(&self, stint: &mut Stint) {
        let chains = [0, 1].map(|which| (self.kinds[which], self.links[which]));
        let empty = core_clock::beside(&self.workload, self.kinds[0], 1, 0).elapsed_ns;
        let empty_ns = empty.min(self.empty_ns.fetch_min(empty, Ordering::Relaxed)) as f64;
        let watch = Watch::start();
        let both = core_clock::beside_both(&self.workload, chains, CLOCK_PIECES, self.clock_passes);
        let (elapsed_ns, is_spoiled) = watch.stop();
        stint.is_wrong |= both.iter().any(|stretch| !stretch.is_right);
        let hz = |which: usize| {
            let chain_ns = both[which].elapsed_ns as f64 - CLOCK_PIECES as f64 * empty_ns;
            let cycles = self.latencies.cycles(self.kinds[which])? * both[which].links;
            Some(cycles as f64 * 1e9 / chain_ns)
        };
        let pair = [0, 1].map(|which| hz(which).unwrap_or(f64::NAN));
        stint.clock_ns += elapsed_ns;
        stint.take_reading(pair, is_spoiled);
    }

    /// A slice of work. One in which somebody else had the CPU says how long that was and
    /// nothing about the units: it is kept apart, as is one beside a neighbour on the core.
    fn work(&self, passes: u64, lookout: Option<&Lookout>, stint: &mut Stint) {
        let before = stint.sight;
        let watch = Watch::start();
        stint.is_wrong |= !self.workload.run(LEAD_PASSES).is_right;
        let start_ns = monotonic_ns();
        let checked = self.workload.run(passes);
        let elapsed_ns = monotonic_ns().saturating_sub(start_ns).max(1);
        let (_, is_spoiled) = watch.stop();
        stint.look(lookout);
        stint.is_wrong |= !checked.is_right;
        let (operations, reading) = (checked.operations, stint.reading);
        let sight = before.and(stint.sight);
        stint.slices.push(Slice { operations, elapsed_ns, passes, reading, is_spoiled, sight });
    }

    /// Works on until a glance sees nobody else on the core, or until `until_ns`: the core must not come
    /// to rest meanwhile.
    fn wait(&self, lookout: Option<&Lookout>, until_ns: u64, stint: &mut Stint) {
        if stint.glances == 0 {
            stint.look(lookout);
        }
        while stint.sight == Sight::Shared && monotonic_ns() < until_ns {
            stint.is_wrong |= !self.workload.run(LEAD_PASSES).is_right;
            stint.look(lookout);
        }
    }

    /// What one thread does in a trial: slices of work of one length and of twice that, before each a
    /// reading of the clock and work that does not count, or neither. With a lookout a glance
    /// stands between them, and there are more rounds until some slices of both lengths had the
    /// core alone, or for 40 ms.
    pub(super) fn stint(&self, rounds: u32, reading: Reading, lookout: Option<&Lookout>) -> Stint {
        let mut stint = Stint::default();
        let cpu_ns = thread_cpu_ns();
        stint.start_ns = monotonic_ns();
        let is_hopeless = lookout.is_some_and(Lookout::is_hopeless);
        let search_ns = if is_hopeless { SHORT_SEARCH_NS } else { SEARCH_NS };
        let until_ns = stint.start_ns.saturating_add(search_ns);
        if reading == Reading::Between {
            self.lead_in(&mut stint);
        }
        for round in 1.. {
            for passes in [self.passes, 2 * self.passes] {
                if reading == Reading::Between {
                    self.wait(lookout, until_ns, &mut stint);
                    stint.is_wrong |= !self.workload.run(LEAD_PASSES).is_right;
                    self.read_clock(&mut stint);
                }
                self.work(passes, lookout, &mut stint);
            }
            let wants_more = stint.sight != Sight::Unknown && !stint.has_alone(ALONE_SLICES);
            if round >= rounds && !(wants_more && monotonic_ns() < until_ns) {
                break;
            }
        }
        stint.end_ns = monotonic_ns();
        stint.cpu_ns = thread_cpu_ns().saturating_sub(cpu_ns);
        stint
    }

    /// Works on, without counting, as long as `others_work`, and no longer than they may: so that the
    /// slices of other threads have the same beside them from the first to the last.
    pub(super) fn keep_company(&self, others_work: impl Fn() -> bool) {
        let mut rest = Stint::default();
        let until_ns = monotonic_ns().saturating_add(SEARCH_NS);
        while others_work() && monotonic_ns() < until_ns {
            self.lead_in(&mut rest);
        }
    }
}

impl Load {
    /// Slices of work, one after the other, for at least `least_ns`.
    pub(super) fn endure(&self, least_ns: u64) -> Stint {
        let mut stint = Stint::default();
        let cpu_ns = thread_cpu_ns();
        stint.start_ns = monotonic_ns();
        while stint.end_ns.saturating_sub(stint.start_ns) < least_ns {
            self.work(self.passes, None, &mut stint);
            stint.end_ns = monotonic_ns();
        }
        stint.cpu_ns = thread_cpu_ns().saturating_sub(cpu_ns);
        stint
    }
}

/// When the clock is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Between the slices of work.
    Between,
    /// Not by the stint: threads that share a CPU would be counted in each other's slices.
    Apart,
}

fn wrong(kernel: Kernel) -> NoLoad {
    NoLoad::Wrong(format!(
        "{} {} {} gave a wrong result: this CPU, or its memory, cannot be trusted",
        kernel.number.word(),
        kernel.operation.word(),
        kernel.level.word()
    ))
}

#[cfg(test)]
mod tests {
    use super::super::clock::Clock;
    use flatout_sys::throughput::Operation;

    use super::*;

    fn load() -> Option<Load> {
        let kernel = Kernel { number: Number::F64, operation: Operation::Add, level: Level::Sse2 };
        match Load::new(kernel, Form::Work, 5) {
            Ok(load) => Some(load),
            Err(NoLoad::Unsupported(text)) => {
                eprintln!("skipped: {text}");
                None
            }
            Err(NoLoad::Wrong(text)) => panic!("{text}"),
        }
    }

    #[test]
    fn a_stint_counts_slices_of_both_lengths_and_reads_the_clock_between_them() {
        let Some(load) = load() else { return };
        let stint = load.stint(3, Reading::Between, None);
        let per_pass = load.workload.run(1).operations;
        assert_eq!(stint.operations(), 3 * 3 * load.passes * per_pass);
        let readings = stint.readings.0.len() + stint.spoiled_readings.0.len();
        assert_eq!((stint.slices.len(), readings), (6, 6));
        assert!(!stint.is_wrong && stint.clock_ns > 0);
        assert!(stint.end_ns - stint.start_ns >= stint.clock_ns);
        assert!(stint.clock().is_some() && stint.doubling_ratio().is_some());
        let enduring = load.endure(1_000_000);
        assert!(enduring.end_ns - enduring.start_ns >= 1_000_000 && !enduring.slices.is_empty());
        let apart = load.stint(1, Reading::Apart, None);
        assert_eq!((apart.clock_ns, apart.readings.0.len()), (0, 0));
        assert!(apart.per_cycle().is_empty());
    }

    fn slice(operations: u64, elapsed_ns: u64, is_spoiled: bool) -> Slice {
        let clock = Clock { hz: 1e9, agreement_ratio: 1.0 };
        let (passes, reading, sight) = (operations, Some(clock), Sight::Unknown);
        Slice { operations, elapsed_ns, passes, reading, is_spoiled, sight }
    }

    #[test]
    fn of_slices_beside_a_neighbour_and_alone_the_latter_count() {
        let beside = Slice { sight: Sight::Shared, ..slice(10, 20, false) };
        let alone = Slice { sight: Sight::Alone, ..slice(10, 10, false) };
        let robbed = Slice { sight: Sight::Alone, ..slice(10, 15, true) };
        let of = |slices: &[Slice]| Stint { slices: slices.to_vec(), ..Stint::default() };
        let stint = of(&[beside, alone, beside, robbed]);
        assert_eq!((stint.per_s(), stint.discarded()), (Some(1e9), 3));
        assert!(!stint.is_beside_neighbour() && !stint.has_alone(1));
        let double = Slice { passes: 20, ..alone };
        assert!(of(&[alone, double]).has_alone(1) && !of(&[alone, double]).has_alone(2));
        let stint = of(&[beside, robbed]);
        assert_eq!((stint.per_s(), stint.discarded()), (Some(5e8), 1));
        assert!(stint.is_beside_neighbour());
        assert!(!of(&[slice(10, 10, false)]).is_beside_neighbour(), "nobody looked");
    }

    #[test]
    fn slices_in_which_others_had_the_cpu_do_not_count_unless_most_are_such() {
        let quiet = [slice(10, 10, false), slice(20, 20, false)];
        let stint = |spoiled: usize| {
            let spoiled = vec![slice(10, 90, true); spoiled];
            Stint { slices: [quiet.to_vec(), spoiled].concat(), ..Stint::default() }
        };
        assert_eq!((stint(1).per_s(), stint(1).discarded()), (Some(1e9), 1));
        assert_eq!(stint(3).discarded(), 0);
        assert_eq!(stint(3).per_s(), Some(1e9 / 9.0));
        assert_eq!(stint(1).operations(), 40, "what was done was done");
        assert_eq!((stint(0).doubling_ratio(), stint(0).per_cycle()), (Some(2.0), vec![1.0; 2]));
    }

    #[test]
    fn a_stint_without_slices_says_nothing() {
        let stint = Stint::default();
        assert_eq!((stint.clock(), stint.per_s()), (None, None));
        assert_eq!((stint.per_cycle(), stint.doubling_ratio()), (Vec::new(), None));
    }
}
