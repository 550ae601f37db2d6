//! A workload with its pace: how many passes make a slice, how many links a clock chain needs.
//! What one thread does with it: `sampling`.

mod sampling;

use std::sync::atomic::{AtomicU64, Ordering};

use flatout_measure::TrialError;
use flatout_sys::core_clock::{self, Chain};
use flatout_sys::monotonic_ns;
use flatout_sys::throughput::{Form, Kernel, Level, Number, Workload};

use super::clock::{self, Clock};
use super::preemption::PreemptionCheck;
use super::row;
pub(super) use super::window::{SampleWindow, Slice};

/// Time of a slice of work; the second kind of slice is twice as long. With the reading before it and a
/// probe at either end it takes 0.06 to 0.1 ms: the SMT sibling rested for 0.06 to 1 ms at a
/// time (Sapphire Rapids, 2026-11-22), and slices of 0.2 and 0.4 ms had hardly ever all of that.
const SLICE_NS: f64 = 40_000.0;
/// Time of a piece with one chain. A reading is one piece with each kind, right before the slice that
/// is held against it.
const CLOCK_PIECE_NS: f64 = 8_000.0;
/// Work before a trial, and before each slice. A core that has had lighter work begins dense 512-bit work
/// at a half or two thirds of its rate, for up to 3 µs (Sapphire Rapids alone on its core, bursts of 3 µs,
/// 2026-11-22).
const LEAD_NS: f64 = 100_000.0;
const LEAD_PASSES: u64 = 1;
/// Tries of which the quickest sets the pace.
const TRIES: u32 = 5;
/// The same for the time of a pass: half a millisecond, in which the SMT sibling rests for a moment.
const PACE_TRIES: u32 = 50;
/// Readings of the clock before the work of a trial, and after it.
const OUTER_READINGS: u32 = 3;
/// Links of a chain alone while the pace is sought: some 30 µs.
const PACE_LINKS: u64 = 64 << 10;

/// How much longer than the work the chain is. Too short a chain waits for the work and reads too
/// low; too long a one leaves the units idle, and the clock is that of a lighter load. The work is
/// longer than it was when the pace was sought as soon as the SMT sibling takes some of its ports.
///
/// Loads wait for nothing, additions and products share ports with the work and wait beside it: on a
/// quiet core loads of 1.2 times the work read 2.486 GHz beside 512-bit multiply-add, of 2.4 times
/// 2.490; products of 1.1 times read 6 % less, of 1.3 times 1.5 % less, of 1.5 and more times
/// 2.489 and 2.491. Both are nearly the same, because a core slows denser work down at first, see
/// [`LEAD_NS`] (Sapphire Rapids, best of 400, 2026-11-22).
fn slack(chain: Chain, kernel: Kernel) -> f64 {
    let is_integer = matches!(kernel.number, Number::I32 | Number::I64);
    match (chain, kernel.level) {
        // The chained loops of products of integers have 12 chains, and are slower than those of 24.
        (_, Level::Avx512) if is_integer && kernel.instructions() == 2 => 1.8,
        (Chain::Load, _) => 1.6,
        // Its products and those of the scalar loop have one port together.
        (Chain::Multiply, Level::Scalar) => 2.0,
        (Chain::Multiply, _) => 1.7,
        (Chain::Add, _) => 1.5,
    }
}

/// A chain whose cycles are known, besides additions where there is one: on aarch64, where products take two
/// or three, additions have ports of their own.
pub(super) const SECOND: Chain = match Chain::Multiply.cycles_per_link() {
    Some(_) => Chain::Multiply,
    None => Chain::Add,
};

/// The kind of chain that counts, and the one that must agree with it. Beside tiles loads take
/// six cycles (Sapphire Rapids, 2026-11-22), and additions and products are in nobody's way.
const fn kinds(level: Level, load_cycles: Option<u64>) -> [Chain; 2] {
    match (level, load_cycles) {
        (Level::Amx, _) | (_, None) => [SECOND, Chain::Add],
        _ => [Chain::Load, SECOND],
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
    /// Runs chains alone, for a millisecond; `None` where none of them has the right end.
    pub(super) fn measure() -> Option<Self> {
        let best = |chain| {
            let tries = (0..4 * TRIES).map(|_| core_clock::alone(chain, PACE_LINKS / 4));
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
pub(super) struct Load {
    pub(super) workload: Workload,
    pub(super) latencies: Latencies,
    /// Passes before the slices, of a slice, and of a piece with a chain.
    lead_passes: u64,
    passes: u64,
    clock_passes: u64,
    /// What a piece of a reading takes without a pass in it, at best: it is no time of the chain. What it
    /// takes with one beyond that and the links is 13 ns of 8 µs (mean of 46 medians alone on the core,
    /// from pieces of one pass and of two; Sapphire Rapids, 2026-11-22).
    empty_ns: AtomicU64,
    /// The kinds of chain, and the links of each per iteration.
    kinds: [Chain; 2],
    links: [u64; 2],
}

impl Load {
    /// Makes the workload and finds its pace, on the CPU where it is called. Takes some
    /// milliseconds.
    ///
    /// # Errors
    /// `Unsupported` where this machine cannot do it, `Failed` where a result was wrong.
    pub(super) fn new(kernel: Kernel, form: Form, seed: u64) -> Result<Self, TrialError> {
        let lacks = |what: &dyn std::fmt::Display| {
            TrialError::Unsupported(format!("{}: {what}", row::name(kernel)))
        };
        let workload = Workload::new(kernel, form, seed).map_err(|error| lacks(&error))?;
        let latencies = Latencies::measure().ok_or_else(|| wrong(kernel))?;
        let mut pass_ns = f64::INFINITY;
        let begun_ns = monotonic_ns();
        while monotonic_ns().saturating_sub(begun_ns) < LEAD_NS as u64 {
            std::hint::black_box(workload.run(1));
        }
        for _ in 0..PACE_TRIES {
            let start_ns = monotonic_ns();
            if !workload.run(2).is_right {
                workload.rest();
                return Err(wrong(kernel));
            }
            pass_ns = pass_ns.min(monotonic_ns().saturating_sub(start_ns) as f64 / 2.0);
        }
        let pass_ns = pass_ns.max(1.0);
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
        let mut window = SampleWindow::default();
        for _ in 0..TRIES {
            load.read_clock(&mut window);
        }
        if window.is_wrong {
            load.workload.rest();
            return Err(wrong(kernel));
        }
        // The highest of them: a disturbed one would make the chains too short, which then read
        // too low for ever.
        if let Some(clock) = window.readings.clock() {
            load.set_links(turn_ns, clock.hz.min(latencies.idle_hz));
        }
        load.workload.rest();
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
    pub(super) fn clock(&self) -> Option<Clock> {
        let mut window = SampleWindow::default();
        self.lead_in(&mut window);
        for _ in 0..OUTER_READINGS {
            self.read_clock(&mut window);
        }
        window.clock()
    }

    /// Work that brings the core into the state that dense work leaves, and does not count.
    fn lead_in(&self, window: &mut SampleWindow) {
        window.is_wrong |= !self.workload.run(self.lead_passes).is_right;
    }

    /// One pair of readings.
    fn read_clock(&self, window: &mut SampleWindow) {
        let chains = [0, 1].map(|which| (self.kinds[which], self.links[which]));
        let empty = core_clock::beside(&self.workload, self.kinds[0], 1, 0).elapsed_ns;
        let known = self.empty_ns.load(Ordering::Relaxed);
        if empty < known {
            self.empty_ns.fetch_min(empty, Ordering::Relaxed);
        }
        let empty_ns = empty.min(known) as f64;
        let check = PreemptionCheck::start();
        // The first piece after other work takes longer by up to a hundredth: it is not counted.
        let piece =
            |(chain, links)| core_clock::beside(&self.workload, chain, links, self.clock_passes);
        let lead = piece(chains[0]);
        let both = chains.map(piece);
        let is_preempted = check.is_preempted();
        window.is_wrong |= !lead.is_right || both.iter().any(|stretch| !stretch.is_right);
        let hz = |which: usize| {
            let chain_ns = both[which].elapsed_ns as f64 - empty_ns;
            let cycles = self.latencies.cycles(self.kinds[which])? * both[which].links;
            Some(cycles as f64 * 1e9 / chain_ns)
        };
        let pair = [0, 1].map(|which| hz(which).unwrap_or(f64::NAN));
        window.take_reading(pair, is_preempted);
    }
}

/// When the clock is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Before each slice of work.
    Between,
    /// Not in the window: threads that share a CPU would be counted in each other's slices.
    Apart,
}

fn wrong(kernel: Kernel) -> TrialError {
    let name = row::name(kernel);
    TrialError::Failed(format!(
        "{name} gave a wrong result: this CPU, or its memory, cannot be trusted"
    ))
}
