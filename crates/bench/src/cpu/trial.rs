//! One trial: so many threads have their sample windows at the same time, and the clock is read
//! before, between and after.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use flatout_measure::statistics::{self, mean, median};
use flatout_measure::{CLOCK_READS, Facts, Key, Sample, Spoil, TrialError, warning};
use flatout_sys::core_clock::{self, Chain};
use flatout_sys::{clock as time, steal};

use super::clock::{Clock, Readings};
use super::fact;
use super::load::{Load, Reading, SECOND, SampleWindow};
use super::topology::{self, Topology};
use crate::contention::CoreUse;
use crate::workers::{self, Spent, tie_to};

/// Rounds of slices in a trial: eight slices, some 1.5 ms with all that is before and between them.
/// Contention comes and goes within milliseconds; many short trials give the same time to a row as few
/// long ones, each of which would have some of it. Of threads that take turns, a trial is as long as a
/// turn (3 ms): of shorter ones a good part is one thread's beginning and another's end.
const ROUNDS: u32 = 4;
/// Length of a trial where a quota leaves the threads a part of the time: two of the usual periods of
/// 100 ms. In shorter ones they would have their CPUs all the time, or not at all.
const CONTAINED_NS: u64 = 200_000_000;
/// Length of a trial in which all time counts: many turns of a scheduler, 3 to 24 ms each.
const SUSTAINED_NS: u64 = 100_000_000;
/// Readings of the clock without load in a trial; of those alone on the core, if there are any.
const IDLE_READINGS: u32 = 40;
/// Cycles of each of them: some 30 µs.
const IDLE_CYCLES: u64 = 80_000;

/// How the threads of a trial run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) threads: u32,
    pub(super) placement: Placement,
}

/// Whether threads are tied to CPUs, and which time counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placement {
    /// Each to one, in the order of [`Topology::cpus`], round and round.
    Pinned,
    /// The scheduler decides.
    Free,
    /// The scheduler decides, and all of the time counts, whoever has the CPUs meanwhile.
    Sustained,
}

/// Runs one trial of `load`.
pub(super) fn sample(
    load: &Load,
    topology: &Topology,
    setting: Setting,
) -> Result<Sample, TrialError> {
    let count = topology.count();
    let contained = workers::contained(setting.threads, count, topology.quota_cpus).is_some();
    let is_apart = contained || setting.threads > count;
    let reading = if is_apart { Reading::Apart } else { Reading::Between };
    let cpus = match (setting.threads, setting.placement, is_apart) {
        (1, Placement::Pinned, false) => topology.quietest().into_iter().collect(),
        _ => topology.cpus.clone(),
    };
    // Siblings of a row contend with each other: nothing is learned from that.
    let used = cpus.len().min(setting.threads as usize);
    let shares_cores = topology::cores(&cpus[..used], &topology.siblings) < used;
    let probe = (!is_apart && !shares_cores).then_some(&topology.probe);
    let before = Taken::read();
    let windows = run(load, &cpus, setting, |load| match contained {
        true => load.sample_for(CONTAINED_NS),
        false => load.sample(ROUNDS, reading, probe, setting.threads),
    })?;
    let stolen = before.until(&Taken::read());
    let mut sample = evaluate(&windows, reading)?;
    sample.facts.extend(stolen);
    if topology.is_mixed && setting.placement == Placement::Pinned {
        let numbers: Vec<String> = cpus[..used].iter().map(usize::to_string).collect();
        sample.facts.set(fact::CPU_NUMBERS, numbers.join(","));
    }
    warning::add_all(&mut sample.warnings, topology.changed());
    warning::add_all(&mut sample.warnings, workers::oversubscribed(setting.threads, count));
    Ok(sample)
}

/// Runs one trial in which all time counts, whoever had the CPUs meanwhile.
pub(super) fn sustained(
    load: &Load,
    topology: &Topology,
    setting: Setting,
) -> Result<Sample, TrialError> {
    let held_back = workers::contained(setting.threads, topology.count(), topology.quota_cpus);
    let trial = || all_time(load, topology, setting);
    topology.probe.around(&topology.cpus, held_back.is_some(), trial)
}

fn all_time(load: &Load, topology: &Topology, setting: Setting) -> Result<Sample, TrialError> {
    let (before, begun) = (Taken::read(), Spent::now());
    let windows = run(load, &topology.cpus, setting, |load| load.sample_for(SUSTAINED_NS))?;
    let (stolen, spent) = (before.until(&Taken::read()), Spent::since(begun));
    let mut sample = evaluate(&windows, Reading::Apart)?;
    sample.facts.extend(stolen);
    sample.is_sustained = true;
    let cpu_ns = windows.iter().map(|window| window.cpu_ns).sum();
    let crowd = workers::oversubscribed(setting.threads, topology.count());
    sample.warnings.extend(crowd.into_iter().chain(topology.changed()));
    Ok(charged(sample, Spent { cpu_ns, ..spent }, topology.quota_cpus))
}

/// The sample with the time that a quota takes for it in the long run, and what was got and done in that time.
fn charged(sample: Sample, spent: Spent, quota_cpus: Option<f64>) -> Sample {
    let elapsed_ns = spent.charged_ns(sample.elapsed_ns, quota_cpus);
    let share = sample.elapsed_ns as f64 / elapsed_ns.max(1) as f64;
    let mut facts = sample.facts;
    for key in [fact::CPUS_GOT, fact::OPERATIONS_PER_CYCLE, fact::OPERATIONS_PER_CYCLE_BEST_DECILE]
    {
        facts.set_known(key, facts.number(key).map(|whole| whole * share));
    }
    Sample { elapsed_ns, facts, ..sample }
}

/// What the hypervisor has taken so far, and when that was read.
struct Taken {
    at_ns: u64,
    times: Option<steal::CpuTimes>,
}

impl Taken {
    fn read() -> Self {
        Self { times: steal::cpu_times(Path::new("/")), at_ns: time::monotonic_ns() }
    }

    /// Stolen share of the time of the CPUs between two readings, and the ticks that it was.
    fn until(&self, end: &Self) -> Facts {
        let (Some(first), Some(last)) = (self.times, end.times) else { return Facts::default() };
        let ticks = last.steal.saturating_sub(first.steal);
        let time_ns = end.at_ns.saturating_sub(self.at_ns) * u64::from(last.steal_cpus);
        let ratio = (ticks * steal::tick_ns()) as f64 / time_ns.max(1) as f64;
        Facts::default().with(fact::STOLEN_RATIO, ratio).with(fact::STOLEN_TICKS, ticks)
    }
}

/// Runs `sample` in all threads at once, tied to `cpus` in turn if they are to be tied.
pub(super) fn run(
    load: &Load,
    cpus: &[usize],
    setting: Setting,
    sample: impl Fn(&Load) -> SampleWindow + Sync,
) -> Result<Vec<SampleWindow>, TrialError> {
    let working = AtomicU32::new(setting.threads);
    let leave = || working.fetch_sub(1, Ordering::Relaxed);
    let prepare = |index: u32| -> Result<_, TrialError> {
        if let (Placement::Pinned, false) = (setting.placement, cpus.is_empty()) {
            tie_to(cpus[index as usize % cpus.len()]).inspect_err(|_| _ = leave())?;
        }
        Ok(load.clock())
    };
    let work = |_, before: &mut Option<Clock>| -> Result<SampleWindow, TrialError> {
        let window = sample(load);
        leave();
        if window.probes > 0 {
            load.keep_busy(|| working.load(Ordering::Relaxed) > 0);
        }
        Ok(SampleWindow { before: *before, after: load.clock(), ..window })
    };
    // A single worker works in the thread that calls, which must not stay pinned.
    Ok(workers::in_own_thread(|| workers::run(setting.threads, prepare, work))??.0)
}

/// Makes figure and facts of what the threads did.
fn evaluate(windows: &[SampleWindow], reading: Reading) -> Result<Sample, TrialError> {
    if windows.iter().any(|window| window.is_wrong) {
        let text = "a result was wrong: this CPU, or its memory, cannot be trusted";
        return Err(TrialError::Failed(text.to_owned()));
    }
    let start_ns = windows.iter().map(|window| window.start_ns).min().unwrap_or(0);
    let end_ns = windows.iter().map(|window| window.end_ns).max().unwrap_or(0);
    let elapsed_ns = end_ns.saturating_sub(start_ns);
    let sum = |of: fn(&SampleWindow) -> u64| windows.iter().map(of).sum::<u64>();
    // Threads that take turns, or that a quota holds back, have all of the time together. Otherwise
    // each has its own rate, from the slices in which it had its CPU.
    let operations = sum(SampleWindow::operations);
    let each: Option<f64> = windows.iter().map(SampleWindow::per_s).sum();
    let amount = match (reading, each) {
        (Reading::Between, Some(per_s)) => per_s * elapsed_ns as f64 / 1e9,
        _ => operations as f64,
    };
    let cpu_ns = sum(|window| window.cpu_ns) as f64;
    // Windows that looked for quiet moments are of different lengths.
    let cpus_got: f64 = match reading {
        Reading::Apart => cpu_ns / elapsed_ns.max(1) as f64,
        Reading::Between => {
            windows.iter().map(|one| one.cpu_ns as f64 / one.elapsed_ns().max(1) as f64).sum()
        }
    };
    let own_ns = sum(SampleWindow::elapsed_ns).max(1) as f64;
    let mut facts = Facts::default()
        .with(CLOCK_READS, 4 * ROUNDS)
        .with(fact::OPERATIONS, operations)
        .with(fact::SLICES, sum(|window| window.slices.len() as u64))
        .with(fact::CPU_USE_RATIO, cpu_ns / own_ns)
        .with(fact::CPUS_GOT, cpus_got);
    if reading == Reading::Between {
        facts.set(fact::PROBES, sum(|window| window.probes.into()));
        facts.set(fact::WATCHED_NS, sum(|window| window.watched_ns));
        facts.set(fact::CONTENDED_NS, sum(|window| window.contended_ns));
        facts.set(fact::SLICES_DISCARDED, sum(|window| window.discarded() as u64));
    }
    let doublings: Vec<f64> = windows.iter().filter_map(SampleWindow::doubling_ratio).collect();
    facts.set_known(fact::DOUBLING_RATIO, median(&doublings));
    facts.extend(clock_facts(windows, reading));
    if let Some(hz) = facts.number(fact::CLOCK_HZ) {
        let per_cycle = amount * 1e9 / elapsed_ns.max(1) as f64 / hz;
        facts.set(fact::OPERATIONS_PER_CYCLE, per_cycle);
        facts.set(fact::OPERATIONS_PER_CYCLE_BEST_DECILE, per_cycle);
    }
    let spoil = windows.iter().any(SampleWindow::is_contended).then_some(Spoil::SiblingContention);
    Ok(Sample { amount, elapsed_ns, facts, spoil, ..Sample::default() })
}

/// The clock of all threads: in the mean, of the slowest and the fastest, before and after; and
/// what the second kind of chain says.
fn clock_facts(windows: &[SampleWindow], reading: Reading) -> Facts {
    let during = |window: &SampleWindow| match reading {
        Reading::Between => window.clock(),
        Reading::Apart => {
            let both = window.before.into_iter().chain(window.after);
            both.max_by(|a, b| a.hz.total_cmp(&b.hz))
        }
    };
    let mut facts = Facts::default();
    let Some(clocks) = windows.iter().map(during).collect::<Option<Vec<Clock>>>() else {
        return facts;
    };
    let hz: Vec<f64> = clocks.iter().map(|clock| clock.hz).collect();
    let of = |pick: fn(&SampleWindow) -> Option<Clock>| -> Vec<f64> {
        windows.iter().filter_map(pick).map(|clock| clock.hz).collect()
    };
    let agreement: Vec<f64> = clocks.iter().map(|clock| clock.agreement_ratio).collect();
    let mut set = |key: Key, value: Option<f64>| {
        facts.set_known(key, value.filter(|value| value.is_finite()));
    };
    set(fact::CLOCK_HZ, mean(&hz));
    set(fact::CLOCK_SLOWEST_THREAD_HZ, statistics::min(&hz));
    set(fact::CLOCK_FASTEST_THREAD_HZ, statistics::max(&hz));
    set(fact::CLOCK_BEFORE_HZ, mean(&of(|window| window.before)));
    set(fact::CLOCK_AFTER_HZ, mean(&of(|window| window.after)));
    set(fact::CHAIN_AGREEMENT_RATIO, mean(&agreement));
    facts
}

/// One trial of the clock alone: cycles as the amount, nothing beside the chains.
pub(super) fn idle_clock(topology: &Topology) -> Result<Sample, TrialError> {
    let start_ns = time::monotonic_ns();
    let cpu = topology.quietest();
    let (clock, spoil) = workers::in_own_thread(|| {
        cpu.map_or(Ok(()), tie_to)?;
        read_idle(topology)
    })??;
    let elapsed_ns = time::monotonic_ns().saturating_sub(start_ns);
    let mut facts = Facts::default();
    if let Some(clock) = clock {
        facts.set(fact::CLOCK_HZ, clock.hz);
        facts.set(fact::CHAIN_AGREEMENT_RATIO, clock.agreement_ratio);
    }
    Ok(clock_sample(Sample { elapsed_ns, facts, spoil, ..Sample::default() }))
}

/// The clock without load, of readings alone on the core if there are any.
fn read_idle(topology: &Topology) -> Result<(Option<Clock>, Option<Spoil>), TrialError> {
    let mut was_probed = false;
    let (mut alone, mut all) = (Readings::default(), Readings::default());
    for _ in 0..IDLE_READINGS {
        let before = topology.probe.probe();
        was_probed |= before != CoreUse::Unknown;
        let mut pair = [0.0; 2];
        for (hz, chain) in pair.iter_mut().zip([Chain::Add, SECOND]) {
            let cycles = chain.cycles_per_link().unwrap_or(1);
            let stretch = core_clock::alone(chain, IDLE_CYCLES / cycles);
            *hz = cycles as f64 * 1e9 / stretch.ns_per_link();
        }
        all.0.push(pair);
        if before.and(topology.probe.probe()) == CoreUse::Alone {
            alone.0.push(pair);
        }
    }
    if alone.0.is_empty() {
        return Ok((all.clock(), was_probed.then_some(Spoil::SiblingContention)));
    }
    Ok((alone.clock(), None))
}

/// A trial of a load as one of the clock in it: the cycles of its time are the amount. Where a thread had no
/// CPU in any of its readings, there is none.
pub(super) fn clock_sample(sample: Sample) -> Sample {
    let hz = sample.facts.number(fact::CLOCK_HZ);
    let spoil = sample.spoil.or(hz.is_none().then_some(Spoil::Preempted));
    Sample { amount: hz.unwrap_or(0.0) * sample.elapsed_ns as f64 / 1e9, spoil, ..sample }
}

#[cfg(test)]
mod tests {
    use super::super::load::Slice;
    use super::*;

    fn window(start_ns: u64, end_ns: u64, hz: f64) -> SampleWindow {
        let readings = Readings(vec![[hz, 0.995 * hz]]);
        let clock = Some(Clock { hz, agreement_ratio: 1.0 });
        let slice = |passes: u64, is_preempted| Slice {
            operations: 500 * passes,
            elapsed_ns: 250 * passes,
            passes,
            reading: clock,
            is_preempted,
            core_use: CoreUse::Unknown,
        };
        SampleWindow {
            readings,
            slices: vec![slice(1, false), slice(2, false), slice(1, true)],
            start_ns,
            end_ns,
            before: clock,
            after: Some(Clock { hz: 0.9 * hz, agreement_ratio: 1.0 }),
            cpu_ns: end_ns - start_ns,
            ..SampleWindow::default()
        }
    }

    fn number(sample: &Sample, key: Key) -> f64 {
        sample.facts.number(key).unwrap()
    }

    #[test]
    fn each_thread_has_the_rate_of_the_slices_in_which_it_had_its_cpu() {
        let windows = [window(0, 1000, 3e9), window(50, 1100, 2e9)];
        let sample = evaluate(&windows, Reading::Between).unwrap();
        let rate = sample.amount * 1e9 / sample.elapsed_ns as f64;
        // 500 operations in 250 ns, in each of two threads.
        assert!((rate - 4e9).abs() < 1.0, "{rate}");
        assert_eq!(number(&sample, fact::SLICES_DISCARDED), 2.0);
        assert_eq!(number(&sample, fact::CLOCK_HZ), 2.5e9);
        assert_eq!(number(&sample, fact::CLOCK_SLOWEST_THREAD_HZ), 2e9);
        assert_eq!(number(&sample, fact::CLOCK_AFTER_HZ), 2.25e9);
        assert_eq!(number(&sample, fact::DOUBLING_RATIO), 2.0);
        assert_eq!(number(&sample, fact::CPU_USE_RATIO), 1.0, "of their own times");
        assert!((number(&sample, fact::CHAIN_AGREEMENT_RATIO) - 0.995).abs() < 1e-9);
        assert!((number(&sample, fact::OPERATIONS_PER_CYCLE) - 1.6).abs() < 1e-9);
    }

    #[test]
    fn a_trial_that_a_quota_let_burst_got_no_more_than_the_quota() {
        let facts =
            Facts::default().with(fact::CPUS_GOT, 1.0).with(fact::OPERATIONS_PER_CYCLE, 16.0);
        let sample = Sample { amount: 1e9, elapsed_ns: 100, facts, ..Sample::default() };
        let spent = Spent { cpu_ns: 100, throttled_ns: 0 };
        let charged = |quota| charged(sample.clone(), spent, quota);
        assert_eq!(charged(None), sample);
        let held = charged(Some(0.5));
        assert_eq!((held.amount, held.elapsed_ns), (1e9, 200));
        let numbers = [fact::CPUS_GOT, fact::OPERATIONS_PER_CYCLE].map(|key| number(&held, key));
        assert_eq!(numbers, [0.5, 8.0]);
        assert_eq!(held.facts.value(fact::OPERATIONS_PER_CYCLE_BEST_DECILE), None);
    }

    #[test]
    fn stolen_ticks_are_a_share_of_the_time_of_all_cpus() {
        let read = |at_ns, steal| Taken {
            at_ns,
            times: Some(steal::CpuTimes { steal, steal_cpus: 2, ..Default::default() }),
        };
        let second = 1_000_000_000;
        let ratio = 10.0 * steal::tick_ns() as f64 / 2e9;
        let facts = read(0, 3).until(&read(second, 13));
        assert_eq!(facts.number(fact::STOLEN_RATIO), Some(ratio));
        assert_eq!(facts.count(fact::STOLEN_TICKS), Some(10));
        let unknown = Taken { at_ns: 0, times: None };
        assert_eq!(unknown.until(&read(second, 1)), Facts::default());
    }

    #[test]
    fn a_wrong_result_fails_the_trial() {
        let mut windows = [window(0, 1000, 3e9)];
        windows[0].is_wrong = true;
        assert!(matches!(evaluate(&windows, Reading::Between), Err(TrialError::Failed(_))));
    }

    #[test]
    fn threads_that_take_turns_have_the_higher_clock_of_before_and_after() {
        let windows = [window(0, 1000, 3e9)];
        let sample = evaluate(&windows, Reading::Apart).unwrap();
        assert_eq!(number(&sample, fact::CLOCK_HZ), 3e9);
        assert_eq!((sample.amount, sample.elapsed_ns), (2000.0, 1000));
        assert_eq!(sample.facts.value(fact::SLICES_DISCARDED), None);
    }

    #[test]
    fn a_clock_sample_gives_back_the_clock() {
        let facts = Facts::default().with(fact::CLOCK_HZ, 2.5e9);
        let sample = clock_sample(Sample { elapsed_ns: 2_000_000, facts, ..Sample::default() });
        assert_eq!(sample.amount / (sample.elapsed_ns as f64 / 1e9), 2.5e9);
        assert_eq!(sample.spoil, None);
    }

    #[test]
    fn a_trial_in_which_no_clock_could_be_read_is_spoiled_and_does_not_end_the_row() {
        let readings = Readings::default();
        let preempted =
            SampleWindow { readings, before: None, after: None, ..window(0, 1000, 3e9) };
        let windows = [window(0, 1000, 3e9), preempted];
        let sample = clock_sample(evaluate(&windows, Reading::Between).unwrap());
        assert_eq!((sample.amount, sample.spoil), (0.0, Some(Spoil::Preempted)));
    }
}
