//! A workload with its pace: how many passes make a slice, how many links a clock chain needs;
//! and what one thread does with it.

use flatout_sys::clock::monotonic_ns;
use flatout_sys::core_clock::{self, Chain, Stretch};
use flatout_sys::throughput::{Form, Kernel, Level, Workload};
use flatout_sys::usage;

use super::clock::{self, Clock, Readings, quantile};

/// Time of a slice of work; the second kind of slice is twice as long. Short against the 4 ms
/// between two ticks of the scheduler, so that most slices are undisturbed; long against the
/// reading of the clock.
const SLICE_NS: f64 = 200_000.0;
/// Time of a slice with a chain.
const CLOCK_SLICE_NS: f64 = 100_000.0;
/// Tries of which the quickest sets the pace.
const TRIES: u32 = 5;
/// Links of a chain alone while the pace is sought: some 30 µs.
const PACE_LINKS: u64 = 64 << 10;

/// How much longer than the work the chain is. Too short a chain waits for the work and reads too
/// low; too long a one leaves the units idle, and the clock is that of a lighter load. Loads
/// wait for nothing; additions and products share ports with the work. At 1.1, 1.3 and 1.5 the
/// three read within 1 % of each other beside 512-bit multiply-add (Sapphire Rapids, 2026-11-22).
const fn slack(chain: Chain, level: Level) -> f64 {
    match (chain, level) {
        (Chain::Load, _) => 1.12,
        // Its products and those of the scalar loop have one port together.
        (Chain::Multiply, Level::Scalar) => 2.0,
        (Chain::Multiply, _) => 1.4,
        (Chain::Add, _) => 1.5,
    }
}

/// Which chains are read, in turn.
const CHAINS: [Chain; 3] = [Chain::Load, Chain::Multiply, Chain::Add];

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

    fn hz(self, chain: Chain, stretch: &Stretch) -> Option<f64> {
        Some(self.cycles(chain)? as f64 * 1e9 / stretch.ns_per_link())
    }
}

/// A workload and its pace.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) workload: Workload,
    pub(super) latencies: Latencies,
    /// Passes of a slice of work, and of one with a chain.
    passes: u64,
    clock_passes: u64,
    /// Links per iteration for each of [`CHAINS`].
    links: [u64; 3],
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
        for _ in 0..TRIES {
            let start_ns = monotonic_ns();
            if !workload.run(2).is_right {
                return Err(wrong(kernel));
            }
            pass_ns = pass_ns.min(monotonic_ns().saturating_sub(start_ns) as f64 / 2.0);
        }
        let passes = (SLICE_NS / pass_ns).round().max(1.0) as u64;
        let clock_passes = (CLOCK_SLICE_NS / pass_ns / 1.3).round().max(1.0) as u64;
        let mut load = Self { workload, latencies, passes, clock_passes, links: [1; 3] };
        // At the clock without load, which is at least that in the load, no chain is too short.
        // What they read then is the clock, or nearly.
        let turn_ns = pass_ns / load.workload.turns_per_pass() as f64;
        load.set_links(turn_ns, latencies.idle_hz);
        let mut readings = Readings::default();
        for turn in 0..CHAINS.len() * TRIES as usize {
            let stretch = load.stretch(turn);
            if !stretch.is_right {
                return Err(wrong(kernel));
            }
            load.note(turn, &stretch, &mut readings);
        }
        let hz = readings.clock().map_or(latencies.idle_hz, |clock| clock.hz);
        load.set_links(turn_ns, hz.min(latencies.idle_hz));
        Ok(load)
    }

    fn set_links(&mut self, turn_ns: f64, hz: f64) {
        let level = self.workload.kernel().level;
        self.links = CHAINS.map(|chain| {
            let cycles = self.latencies.cycles(chain).unwrap_or(5) as f64;
            let links = turn_ns * hz / 1e9 * slack(chain, level) / cycles;
            (links.ceil() as u64).clamp(1, chain.most_links().max(1))
        });
    }

    fn stretch(&self, turn: usize) -> Stretch {
        let at = turn % CHAINS.len();
        core_clock::beside(&self.workload, CHAINS[at], self.links[at], self.clock_passes)
    }

    fn note(&self, turn: usize, stretch: &Stretch, readings: &mut Readings) {
        let chain = CHAINS[turn % CHAINS.len()];
        if let Some(hz) = self.latencies.hz(chain, stretch) {
            readings.0.push((chain, hz));
        }
    }

    /// Reads the clock in the load some times, without anything else.
    pub(super) fn clock(&self) -> Stint {
        let mut stint = Stint::default();
        for turn in 0..2 * CHAINS.len() {
            self.read_clock(turn, &mut stint);
        }
        stint
    }

    fn read_clock(&self, turn: usize, stint: &mut Stint) {
        let stretch = self.stretch(turn);
        stint.is_wrong |= !stretch.is_right;
        stint.clock_ns += stretch.elapsed_ns;
        self.note(turn, &stretch, &mut stint.readings);
    }

    fn work(&self, passes: u64, stint: &mut Stint) -> f64 {
        let start_ns = monotonic_ns();
        let checked = self.workload.run(passes);
        let elapsed_ns = monotonic_ns().saturating_sub(start_ns).max(1) as f64;
        stint.is_wrong |= !checked.is_right;
        stint.operations += checked.operations;
        stint.slices_per_s.push(checked.operations as f64 * 1e9 / elapsed_ns);
        elapsed_ns
    }

    /// What one thread does in a trial: slices of work of one length and of twice that, and
    /// between them the clock, or not.
    pub(super) fn stint(&self, rounds: u32, reading: Reading) -> Stint {
        let mut stint = Stint::default();
        let cpu = usage::thread();
        stint.start_ns = monotonic_ns();
        let mut turn = 0;
        for _ in 0..rounds {
            let mut read = |stint: &mut Stint| {
                if reading == Reading::Between {
                    self.read_clock(turn, stint);
                    turn += 1;
                }
            };
            read(&mut stint);
            let single_ns = self.work(self.passes, &mut stint);
            read(&mut stint);
            let double_ns = self.work(2 * self.passes, &mut stint);
            stint.single_ns = stint.single_ns.min(single_ns);
            stint.double_ns = stint.double_ns.min(double_ns);
        }
        stint.end_ns = monotonic_ns();
        let used = usage::thread();
        stint.cpu_ns = (used.user_ns + used.system_ns).saturating_sub(cpu.user_ns + cpu.system_ns);
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

/// What one thread did.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stint {
    pub(super) readings: Readings,
    /// Operations per second of each slice of work.
    pub(super) slices_per_s: Vec<f64>,
    pub(super) operations: u64,
    pub(super) is_wrong: bool,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    /// The part of the time that went into reading the clock.
    pub(super) clock_ns: u64,
    pub(super) cpu_ns: u64,
    /// The quickest slice, and the quickest of the doubled ones.
    pub(super) single_ns: f64,
    pub(super) double_ns: f64,
}

impl Default for Stint {
    fn default() -> Self {
        Self {
            readings: Readings::default(),
            slices_per_s: Vec::new(),
            operations: 0,
            is_wrong: false,
            start_ns: 0,
            end_ns: 0,
            clock_ns: 0,
            cpu_ns: 0,
            single_ns: f64::INFINITY,
            double_ns: f64::INFINITY,
        }
    }
}

/// Share of the slices that are slower than the one that stands for undisturbed work.
const UNDISTURBED: f64 = 0.75;

impl Stint {
    /// The clock that its readings tell.
    pub(super) fn clock(&self) -> Option<Clock> {
        self.readings.clock()
    }

    /// Operations per second of its better slices.
    pub(super) fn undisturbed_per_s(&self) -> Option<f64> {
        quantile(&self.slices_per_s, UNDISTURBED)
    }
}

#[cfg(test)]
mod tests {
    use flatout_sys::throughput::{Number, Operation};

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
        let stint = load.stint(3, Reading::Between);
        let per_pass = load.workload.run(1).operations;
        assert_eq!(stint.operations, 3 * 3 * load.passes * per_pass);
        assert_eq!(stint.slices_per_s.len(), 6);
        assert!(stint.readings.0.len() >= 4, "{:?}", stint.readings);
        assert!(!stint.is_wrong && stint.clock_ns > 0);
        assert!(stint.end_ns - stint.start_ns >= stint.clock_ns);
        assert!(stint.single_ns.is_finite() && stint.double_ns.is_finite());
        let apart = load.stint(1, Reading::Apart);
        assert_eq!((apart.clock_ns, apart.readings.0.len()), (0, 0));
    }

    #[test]
    fn a_stint_without_slices_says_nothing() {
        let stint = Stint::default();
        assert_eq!((stint.clock(), stint.undisturbed_per_s()), (None, None));
    }
}
