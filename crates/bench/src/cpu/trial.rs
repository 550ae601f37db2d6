//! One trial: so many threads do their stint at the same time, and the clock is read before,
//! between and after.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use flatout_measure::case::{Sample, TrialError};
use flatout_measure::guard::Spoil;
use flatout_measure::record::Warning;
use flatout_measure::statistics::median;
use flatout_measure::warning;
use flatout_sys::{affinity, clock as time, steal};
use serde_json::{Value, json};

use super::clock::Clock;
use super::fact;
use super::load::{Load, Reading, Stint};
use super::lookout::Sight;
use super::site::{self, Site};
use crate::crew;

/// Rounds of slices in a trial: eight slices, some 1.5 ms with all that is before and between them. A
/// neighbour on the core comes and goes within milliseconds; many short trials give the same time to a
/// row as few long ones, each of which would have some of him in it.
const ROUNDS: u32 = 4;
/// The same of threads that take turns, as long as a turn (3 ms): of shorter trials a good part is
/// one thread's beginning and another's end.
const ROUNDS_IN_TURN: u32 = 4;
/// Length of a trial where a quota leaves the threads a part of the time: two of the usual periods of
/// 100 ms. In shorter ones they would have their CPUs all the time, or not at all.
const CONTAINED_NS: u64 = 200_000_000;
/// Readings of the clock without load in a trial; of those alone on the core, if there are any.
const IDLE_READINGS: u32 = 40;

/// How the threads of a trial run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) threads: u32,
    pub(super) placement: Placement,
}

/// Whether threads are tied to CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placement {
    /// Each to one, in the order of [`Site::cpus`], round and round.
    Pinned,
    /// The scheduler decides.
    Free,
}

/// What one thread did, and the clock before and after.
pub(super) struct Member {
    before: Option<Clock>,
    pub(super) stint: Stint,
    after: Option<Clock>,
}

/// Runs one trial of `load`.
pub(super) fn sample(load: &Load, site: &Site, setting: Setting) -> Result<Sample, TrialError> {
    let contained = crew::contained(setting.threads, site.count(), site.quota_cpus).is_some();
    let is_apart = contained || setting.threads > site.count();
    let reading = if is_apart { Reading::Apart } else { Reading::Between };
    let cpus = match (setting.threads, setting.placement, is_apart) {
        (1, Placement::Pinned, false) => site.quietest().into_iter().collect(),
        _ => site.cpus.clone(),
    };
    // Siblings of a row are each other's neighbour: nothing is learned from that.
    let used = cpus.len().min(setting.threads as usize);
    let shares_cores = site::cores(&cpus[..used], &site.declared) < used;
    let before = Taken::read();
    let members = run(load, &cpus, setting, |load| match contained {
        true => load.endure(CONTAINED_NS),
        false => {
            let rounds = if is_apart { ROUNDS_IN_TURN } else { ROUNDS };
            let lookout = (!is_apart && !shares_cores).then_some(&site.lookout);
            load.stint_beside(rounds, reading, lookout, setting.threads)
        }
    })?;
    let stolen = before.until(&Taken::read());
    let mut sample = evaluate(&members, reading)?;
    for (key, value) in stolen {
        sample.audit.insert(key.to_owned(), json!(value));
    }
    if !site.is_unchanged() {
        let text = "the CPUs that this process may use changed while it was measured";
        warning::add(&mut sample.warnings, Warning::new(warning::CPUS_CHANGED, text));
    }
    if let Some(doubt) = crew::oversubscribed(setting.threads, site.count()) {
        warning::add(&mut sample.warnings, doubt);
    }
    Ok(sample)
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

    /// Stolen share of the time of all CPUs between two readings, and the ticks that it was.
    fn until(&self, end: &Self) -> Vec<(&'static str, f64)> {
        let (Some(first), Some(last)) = (self.times, end.times) else { return Vec::new() };
        let ticks = last.steal.saturating_sub(first.steal) as f64;
        let time_ns = end.at_ns.saturating_sub(self.at_ns) as f64 * f64::from(last.cpus.max(1));
        let ratio = ticks * steal::tick_ns() as f64 / time_ns.max(1.0);
        vec![("stolen_ratio", ratio), ("stolen_ticks", ticks)]
    }
}

/// Runs `stint` in all threads at once, tied to `cpus` in turn if they are to be tied.
pub(super) fn run(
    load: &Load,
    cpus: &[usize],
    setting: Setting,
    stint: impl Fn(&Load) -> Stint + Sync,
) -> Result<Vec<Member>, TrialError> {
    let working = AtomicU32::new(setting.threads);
    let leave = || working.fetch_sub(1, Ordering::Relaxed);
    let prepare = |index: u32| -> Result<_, TrialError> {
        if let (Placement::Pinned, false) = (setting.placement, cpus.is_empty()) {
            let cpu = cpus[index as usize % cpus.len()];
            let refused = |error| {
                leave();
                gone(cpu, &error)
            };
            affinity::pin_to(cpu).map_err(refused)?;
        }
        Ok(load.clock().clock())
    };
    let work = |_, before: &mut Option<Clock>| -> Result<Member, TrialError> {
        let stint = stint(load);
        leave();
        if stint.glances > 0 {
            load.keep_company(|| working.load(Ordering::Relaxed) > 0);
        }
        Ok(Member { before: *before, stint, after: load.clock().clock() })
    };
    // A crew of one works in the thread that calls, which must not stay pinned.
    let crewed = thread::scope(|scope| {
        let crew = scope.spawn(|| crew::run(setting.threads, prepare, work));
        crew.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    crewed.results.into_iter().collect()
}

fn gone(cpu: usize, error: &std::io::Error) -> TrialError {
    let text = format!("no thread can be tied to CPU {cpu} any more ({error}): the set changed");
    TrialError::NoMore(Warning::new(warning::CPUS_CHANGED, text))
}

/// Makes figure and facts of what the threads did.
fn evaluate(members: &[Member], reading: Reading) -> Result<Sample, TrialError> {
    let stints = || members.iter().map(|member| &member.stint);
    if stints().any(|stint| stint.is_wrong) {
        let text = "a result was wrong: this CPU, or its memory, cannot be trusted";
        return Err(TrialError::Failed(text.to_owned()));
    }
    let start_ns = stints().map(|stint| stint.start_ns).min().unwrap_or(0);
    let end_ns = stints().map(|stint| stint.end_ns).max().unwrap_or(0);
    let wall_ns = end_ns.saturating_sub(start_ns);
    // Threads that take turns, or that a quota holds back, have all of the time together. Otherwise
    // each has its own rate, from the slices in which it had its CPU.
    let operations: u64 = stints().map(Stint::operations).sum();
    let each: Option<f64> = stints().map(Stint::per_s).sum();
    let amount = match (reading, each) {
        (Reading::Between, Some(per_s)) => per_s * wall_ns as f64 / 1e9,
        _ => operations as f64,
    };
    let spoil = stints().any(Stint::is_beside_neighbour).then_some(Spoil::CoreShared);
    let mut sample = Sample { amount, elapsed_ns: wall_ns, spoil, ..Sample::default() };
    let cpu_ns: u64 = stints().map(|stint| stint.cpu_ns).sum();
    let own_ns: u64 = stints().map(|stint| stint.end_ns.saturating_sub(stint.start_ns)).sum();
    // Stints that looked for quiet moments are of different lengths.
    let cpus_got: f64 = match reading {
        Reading::Apart => cpu_ns as f64 / wall_ns.max(1) as f64,
        Reading::Between => stints()
            .map(|one| one.cpu_ns as f64 / one.end_ns.saturating_sub(one.start_ns).max(1) as f64)
            .sum(),
    };
    let count = |value: usize| value as f64;
    let mut facts = vec![
        ("trials_summed", 1.0),
        ("operations", operations as f64),
        ("slices", count(stints().map(|stint| stint.slices.len()).sum())),
        ("cpu_use_ratio", cpu_ns as f64 / own_ns.max(1) as f64),
        ("cpus_got", cpus_got),
    ];
    if reading == Reading::Between {
        let glances: u32 = stints().map(|stint| stint.glances).sum();
        let watched_ns: u64 = stints().map(|stint| stint.watched_ns).sum();
        let shared_ns: u64 = stints().map(|stint| stint.shared_ns).sum();
        facts.push(("glances", glances.into()));
        facts.extend([("watched_ns", watched_ns as f64), ("shared_ns", shared_ns as f64)]);
        facts.push(("slices_discarded", count(stints().map(Stint::discarded).sum())));
    }
    let facts = facts.into_iter().filter(|(_, value)| value.is_finite());
    sample.audit = facts.map(|(key, value)| (key.to_owned(), json!(value))).collect();
    sample.audit.insert("clock_reads".to_owned(), Value::from(u64::from(4 * ROUNDS)));
    let doublings: Vec<f64> = stints().filter_map(Stint::doubling_ratio).collect();
    let doubling = median(&doublings).map(|ratio| ("doubling_ratio", ratio));
    sample.series = fact::series(clock_facts(members, reading).into_iter().chain(doubling));
    Ok(sample)
}

/// The clock of all threads: in the mean, of the slowest and the fastest, before and after; and
/// what the second kind of chain says.
fn clock_facts(members: &[Member], reading: Reading) -> Vec<(&'static str, f64)> {
    let during = |member: &Member| match reading {
        Reading::Between => member.stint.clock(),
        Reading::Apart => {
            let both = member.before.into_iter().chain(member.after);
            both.max_by(|a, b| a.hz.total_cmp(&b.hz))
        }
    };
    let clocks: Vec<Clock> = members.iter().filter_map(during).collect();
    if clocks.len() < members.len() {
        return Vec::new();
    }
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let of = |pick: fn(&Member) -> Option<Clock>| {
        let values: Vec<f64> = members.iter().filter_map(pick).map(|clock| clock.hz).collect();
        mean(values)
    };
    let hz = || clocks.iter().map(|clock| clock.hz);
    let agreement = clocks.iter().map(|clock| clock.agreement_ratio).collect();
    vec![
        ("clock_hz", mean(hz().collect())),
        ("clock_slowest_thread_hz", hz().fold(f64::INFINITY, f64::min)),
        ("clock_fastest_thread_hz", hz().fold(0.0, f64::max)),
        ("clock_before_hz", of(|member| member.before)),
        ("clock_after_hz", of(|member| member.after)),
        ("chain_agreement_ratio", mean(agreement)),
    ]
}

/// One trial of the clock alone: cycles as the amount, nothing beside the chains.
pub(super) fn idle_clock(site: &Site) -> Result<Sample, TrialError> {
    use super::clock::Readings;
    use flatout_sys::core_clock::{self, Chain};
    /// Cycles of a slice: some 30 µs.
    const SLICE_CYCLES: u64 = 80_000;
    let cpu = site.quietest();
    let read = || -> Result<(Readings, Option<Spoil>), TrialError> {
        let mut was_watched = false;
        if let Some(cpu) = cpu {
            affinity::pin_to(cpu).map_err(|error| gone(cpu, &error))?;
        }
        let (mut alone, mut all) = (Readings::default(), Readings::default());
        for _ in 0..IDLE_READINGS {
            let before = site.lookout.look();
            was_watched |= before != Sight::Unknown;
            let mut pair = [0.0; 2];
            for (hz, chain) in pair.iter_mut().zip([Chain::Add, Chain::Multiply]) {
                let cycles = chain.cycles_per_link().unwrap_or(1);
                let stretch = core_clock::alone(chain, SLICE_CYCLES / cycles).ok_or_else(|| {
                    TrialError::Unsupported("no clock chain for this kind of CPU yet".to_owned())
                })?;
                *hz = cycles as f64 * 1e9 / stretch.ns_per_link();
            }
            all.0.push(pair);
            if before.and(site.lookout.look()) == Sight::Alone {
                alone.0.push(pair);
            }
        }
        let spoil = (was_watched && alone.0.is_empty()).then_some(Spoil::CoreShared);
        Ok((if alone.0.is_empty() { all } else { alone }, spoil))
    };
    let start_ns = time::monotonic_ns();
    let (readings, spoil) = thread::scope(|scope| {
        scope.spawn(read).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    let elapsed_ns = time::monotonic_ns().saturating_sub(start_ns);
    let clock = readings.clock();
    let hz = clock.map_or(0.0, |clock| clock.hz);
    let facts = clock.into_iter().flat_map(|clock| {
        [("clock_hz", clock.hz), ("chain_agreement_ratio", clock.agreement_ratio)]
    });
    Ok(Sample { spoil, series: fact::series(facts), ..clock_sample(hz, elapsed_ns) })
}

/// One trial of the clock in a load; the threads work as in a trial of the load itself.
pub(super) fn loaded_clock(
    load: &Load,
    site: &Site,
    setting: Setting,
) -> Result<Sample, TrialError> {
    let sample = sample(load, site, setting)?;
    let hz = fact::of(&sample.series, "clock_hz").unwrap_or(0.0);
    let clock = clock_sample(hz, sample.elapsed_ns);
    Ok(Sample { spoil: sample.spoil, warnings: sample.warnings, series: sample.series, ..clock })
}

/// A sample whose figure is `hz`: the cycles of its time.
fn clock_sample(hz: f64, elapsed_ns: u64) -> Sample {
    let amount = hz * elapsed_ns as f64 / 1e9;
    Sample { amount, elapsed_ns, ..Sample::default() }
}

#[cfg(test)]
mod tests {
    use super::super::clock::Readings;
    use super::super::load::Slice;
    use super::*;

    fn member(start_ns: u64, end_ns: u64, hz: f64) -> Member {
        let readings = Readings(vec![[hz, 0.995 * hz]]);
        let clock = Some(Clock { hz, agreement_ratio: 1.0 });
        let slice = |passes: u64, is_spoiled| Slice {
            operations: 500 * passes,
            elapsed_ns: 250 * passes,
            passes,
            reading: clock,
            is_spoiled,
            sight: Sight::Unknown,
        };
        let stint = Stint {
            readings,
            slices: vec![slice(1, false), slice(2, false), slice(1, true)],
            start_ns,
            end_ns,
            clock_ns: 100,
            cpu_ns: end_ns - start_ns,
            ..Stint::default()
        };
        Member { before: clock, stint, after: Some(Clock { hz: 0.9 * hz, agreement_ratio: 1.0 }) }
    }

    fn fact(sample: &Sample, key: &str) -> f64 {
        let counted = sample.audit.get(key).and_then(Value::as_f64);
        counted.or_else(|| fact::of(&sample.series, key)).unwrap()
    }

    #[test]
    fn each_thread_has_the_rate_of_the_slices_in_which_it_had_its_cpu() {
        let members = [member(0, 1000, 3e9), member(50, 1100, 2e9)];
        let sample = evaluate(&members, Reading::Between).unwrap();
        let rate = sample.amount * 1e9 / sample.elapsed_ns as f64;
        // 500 operations in 250 ns, in each of two threads.
        assert!((rate - 4e9).abs() < 1.0, "{rate}");
        assert_eq!(fact(&sample, "slices_discarded"), 2.0);
        assert_eq!(fact(&sample, "clock_hz"), 2.5e9);
        assert_eq!(fact(&sample, "clock_slowest_thread_hz"), 2e9);
        assert_eq!(fact(&sample, "clock_after_hz"), 2.25e9);
        assert_eq!(fact(&sample, "doubling_ratio"), 2.0);
        assert_eq!(fact(&sample, "cpu_use_ratio"), 1.0, "of their own times");
        assert!((fact(&sample, "chain_agreement_ratio") - 0.995).abs() < 1e-9);
    }

    #[test]
    fn stolen_ticks_are_a_share_of_the_time_of_all_cpus() {
        let read = |at_ns, steal| Taken {
            at_ns,
            times: Some(steal::CpuTimes { steal, cpus: 2, ..steal::CpuTimes::default() }),
        };
        let second = 1_000_000_000;
        let ratio = 10.0 * steal::tick_ns() as f64 / 2e9;
        let facts = read(0, 3).until(&read(second, 13));
        assert_eq!(facts, [("stolen_ratio", ratio), ("stolen_ticks", 10.0)]);
        let unknown = Taken { at_ns: 0, times: None };
        assert_eq!(unknown.until(&read(second, 1)), []);
    }

    #[test]
    fn a_wrong_result_fails_the_trial() {
        let mut members = [member(0, 1000, 3e9)];
        members[0].stint.is_wrong = true;
        assert!(matches!(evaluate(&members, Reading::Between), Err(TrialError::Failed(_))));
    }

    #[test]
    fn threads_that_take_turns_have_the_higher_clock_of_before_and_after() {
        let members = [member(0, 1000, 3e9)];
        let sample = evaluate(&members, Reading::Apart).unwrap();
        assert_eq!(fact(&sample, "clock_hz"), 3e9);
        assert_eq!((sample.amount, sample.elapsed_ns), (2000.0, 1000));
        assert!(!sample.audit.contains_key("slices_discarded"));
    }

    #[test]
    fn a_clock_sample_gives_back_the_clock() {
        let sample = clock_sample(2.5e9, 2_000_000);
        assert_eq!(sample.amount / (sample.elapsed_ns as f64 / 1e9), 2.5e9);
    }
}
