//! One trial of a row that walks through a ring.
//!
//! A figure is the time of a walk and its steps. Before the clock starts, the part of the ring
//! before the walk is gone through, so that caches, translation and page tables are as in an
//! endless walk.

use std::path::Path;

use flatout_measure::{
    CLOCK_READS, Row, Sample, TrialError, Unit, Warning, size_text, statistics, warning,
};
use flatout_sys::chase::{Chase, LINE_BYTES, Pages, Position};
use flatout_sys::{affinity, monotonic_ns};

use super::super::fact;
use super::Chases;
use super::ring::{self, Shape, page_bytes};
use super::row::LatencyRow;
use crate::contention::ContentionProbe;
use crate::fact::{ALL_TIME_NS, CPUS_SHARE_CORE};
use crate::{cores, workers};

/// Bytes of base pages that one line of page-table entries covers: eight entries of 8 bytes.
const TABLE_LINE_BYTES: u64 = 8 * 4096;
/// Parts of a walk that are timed one by one, eight in each half: whatever disturbs a chase makes it
/// slower, so the quietest of them says what the hardware takes, and two of them say it twice.
const PARTS: u64 = 16;
/// The share of parts that the figure of a row of the curve is the slowest of.
const QUIET: f64 = 0.25;
/// Most CPUs that make a load; more than a memory controller needs.
const MOST_LOADERS: usize = 32;

/// What a walk brought.
struct Walked {
    steps: u64,
    elapsed_ns: u64,
    /// Bytes that the load read meanwhile.
    load_bytes: u64,
    /// Time per step of each part; of a single chase.
    parts_ns: Vec<f64>,
    moved: Option<Warning>,
}

/// Runs one trial of `row`, and notes what probes before and after it saw of an SMT sibling.
pub(super) fn sample(
    row: &LatencyRow,
    chases: &Chases,
    probe: &ContentionProbe,
    seed: u64,
) -> Result<Sample, TrialError> {
    let cpus = match row {
        LatencyRow::NodeLatency(pair) | LatencyRow::NodeRate(pair) => (pair.cpu, pair.home_cpu),
        _ => {
            let cpu = ring::chase_cpu(&chases.order)?;
            (cpu, cpu)
        }
    };
    probe.around(&[cpus.0], false, || chased(row, chases, cpus, seed))
}

/// The same on a CPU, through a ring near another one.
fn chased(
    row: &LatencyRow,
    chases: &Chases,
    (cpu, home_cpu): (usize, usize),
    seed: u64,
) -> Result<Sample, TrialError> {
    let percent = if let LatencyRow::Loaded { load_percent } = row { *load_percent } else { 0 };
    let loaders = loaders(percent, cpu)?;
    let wanted = row.shapes(chases);
    let (shape, chase) = chases.rings.first(&wanted, home_cpu, seed)?;
    let chase = &*chase;
    let (walk_ns, warm_nodes) = (chases.walk_ns, warm_nodes(shape, chases.grid.cache_bytes));
    let (start, count) = (seed as usize % chase.places(), row.chases());
    let walked = chases.loads.during((percent, seed), &loaders, |load_bytes| {
        workers::on_cpu(cpu, || {
            chase.warm(start, warm_nodes);
            let walked = walk(chase, chase.apart(start, count), walk_ns, load_bytes)?;
            Ok(Walked { moved: moved_from(cpu), ..walked })
        })
    })?;
    let lines = walked.steps * count as u64;
    let amount = if row.unit() == Unit::Nanoseconds { lines } else { lines * LINE_BYTES };
    let elapsed_ns = walked.elapsed_ns;
    let mut sample = Sample { amount: amount as f64, elapsed_ns, ..Sample::default() };
    sample.facts.set(fact::CPU, cpu);
    sample.facts.set(CLOCK_READS, 2 + 2 * walked.parts_ns.len());
    if let LatencyRow::Loaded { .. } = row {
        let bytes_per_s = walked.load_bytes as f64 / elapsed_ns as f64 * 1e9;
        sample.facts.set(fact::LOAD_BYTES, walked.load_bytes);
        sample.facts.set(fact::LOAD_BYTES_PER_S, bytes_per_s);
        sample.facts.set(fact::LOAD_THREADS, loaders.len());
        let share_core = loaders.first().and_then(|&loader| cores::share_core(cpu, loader));
        sample.facts.set_known(CPUS_SHARE_CORE, share_core);
    }
    let warning = if let LatencyRow::Curve(_) = row {
        sample.facts.set(fact::STEPS, walked.steps);
        sample.facts.set(ALL_TIME_NS, elapsed_ns);
        if let Some(quiet_ns) = statistics::quantile(&walked.parts_ns, QUIET) {
            sample.elapsed_ns = (quiet_ns * walked.steps as f64).ceil() as u64;
        }
        let (first, second) = walked.parts_ns.split_at(walked.parts_ns.len() / 2);
        sample.facts.set_known(fact::QUIETEST_FIRST_NS, statistics::min(first));
        sample.facts.set_known(fact::QUIETEST_SECOND_NS, statistics::min(second));
        let is_huge = shape.pages == Pages::Huge;
        sample.facts.set_known(fact::PAGES_VERIFIED, is_huge.then_some(true));
        cut_short(chases.grid.cut_from(shape), &chases.room_reason)
    } else {
        sample.facts.set(fact::LINES, lines);
        sample.facts.set(fact::WORKING_SET_BYTES, shape.working_set_bytes);
        sample.facts.set(fact::PAGE_BYTES, page_bytes(shape.pages));
        let text = "on base pages, because too few were large: translation is part of it";
        (shape.pages == Pages::Base).then(|| Warning::new(warning::NO_HUGE_PAGES, text))
    };
    sample.warnings.extend(warning.into_iter().chain(walked.moved));
    Ok(sample)
}

/// The CPUs that make a load beside `cpu`.
fn loaders(percent: u32, cpu: usize) -> Result<Vec<usize>, TrialError> {
    let core = cores::core_siblings(Path::new("/"), cpu).unwrap_or_default();
    match &beside(cpu, &core, affinity::allowed_cpus().unwrap_or_default())[..] {
        _ if percent == 0 => Ok(Vec::new()),
        [] => {
            let text = "two CPUs are needed, one is allowed: the other one makes the load";
            Err(TrialError::Unsupported(text.to_owned()))
        }
        loaders => Ok(loaders.to_vec()),
    }
}

/// Of these CPUs those of other cores, or of the same one where there is no other.
fn beside(cpu: usize, core: &[usize], cpus: Vec<usize>) -> Vec<usize> {
    let others = cpus.into_iter().filter(|&other| other != cpu);
    let (own, others): (Vec<usize>, Vec<usize>) = others.partition(|other| core.contains(other));
    let mut loaders = if others.is_empty() { own } else { others };
    loaders.truncate(MOST_LOADERS);
    loaders
}

/// Walks from all places at once, for about `walk_ns`; `load_bytes` tells what a load has read.
fn walk<'c>(
    chase: &'c Chase,
    mut places: Vec<Position<'c>>,
    walk_ns: u64,
    load_bytes: &dyn Fn() -> u64,
) -> Result<Walked, TrialError> {
    let (mut read_bytes, mut parts_ns) = (0, Vec::new());
    let (steps, elapsed_ns) = time_steps(walk_ns, |steps| {
        let before = load_bytes();
        let ends = match places[..] {
            [place] => {
                let (end, parts) = walk_in_parts(chase, place, steps);
                parts_ns = parts;
                Some(vec![end])
            }
            _ => chase.walk_together(&places, steps),
        };
        read_bytes = load_bytes() - before;
        let Some(ends) = ends else { return false };
        let is_whole = places.iter().zip(&ends).all(|(&from, &to)| chase.is_after(from, steps, to));
        places = ends;
        is_whole
    })?;
    Ok(Walked { steps, elapsed_ns, load_bytes: read_bytes, parts_ns, moved: None })
}

/// Walks on from `place`; where it ends, and the time per step of each part.
fn walk_in_parts<'c>(
    chase: &'c Chase,
    place: Position<'c>,
    steps: u64,
) -> (Position<'c>, Vec<f64>) {
    let mut at = place;
    let timed = |part: u64| {
        let steps = steps / PARTS + u64::from(part < steps % PARTS);
        let start_ns = monotonic_ns();
        at = chase.walk(at, steps);
        monotonic_ns().saturating_sub(start_ns) as f64 / steps.max(1) as f64
    };
    let parts_ns = (0..PARTS).map(timed).collect();
    (at, parts_ns)
}

/// Finds the steps that take about `target_ns`, and times them: `walk` walks so many steps and
/// says whether all were made.
///
/// Steps and nanoseconds of the last, long enough walk.
fn time_steps(target_ns: u64, mut walk: impl FnMut(u64) -> bool) -> Result<(u64, u64), TrialError> {
    let mut steps = 1 << 10;
    loop {
        let start_ns = monotonic_ns();
        let is_whole = walk(steps);
        let elapsed_ns = monotonic_ns().saturating_sub(start_ns).max(1);
        if !is_whole {
            return Err(TrialError::Failed("a chase ended at the wrong node".to_owned()));
        }
        if elapsed_ns >= target_ns {
            return Ok((steps, elapsed_ns));
        }
        // A twentieth more, so that the next walk is long enough; from a short one not too far.
        let wanted = (target_ns as f64 / elapsed_ns as f64 * 1.05).clamp(1.2, 16.0);
        steps = (steps as f64 * wanted).ceil() as u64;
    }
}

/// Nodes that are walked before the clock starts: as many as the caches that `cache_bytes` long
/// hold, and enough that each line of the page tables was used.
fn warm_nodes(shape: Shape, cache_bytes: u64) -> u64 {
    let tables = match shape.pages {
        Pages::Base => 2 * shape.working_set_bytes / TABLE_LINE_BYTES,
        Pages::Huge => shape.working_set_bytes / page_bytes(Pages::Huge),
    };
    (cache_bytes / 4 * 5 / LINE_BYTES).max(tables)
}

/// Says so if the calling thread, tied to `cpu`, may run elsewhere by now.
fn moved_from(cpu: usize) -> Option<Warning> {
    let text = || format!("the thread was tied to CPU {cpu}, and something else has moved it");
    let is_moved = affinity::allowed_cpus().is_ok_and(|cpus| cpus != [cpu]);
    is_moved.then(|| Warning::new(warning::CPUS_CHANGED, text()))
}

fn cut_short(wanted_bytes: Option<u64>, why: &str) -> Option<Warning> {
    let wanted = size_text(wanted_bytes?);
    let text = format!("the longest working set is this one instead of {wanted}: {why}");
    Some(Warning::new(warning::SIZE_REDUCED, text))
}

#[cfg(test)]
mod tests {
    use super::super::grid::RUN_BYTES;
    use super::super::load::Loads;
    use super::super::node::Pair;
    use super::*;
    use crate::area::Extent;
    use crate::tests::waiting;

    /// Chases whose walks are as short as can be, and for which 1 MiB is memory.
    fn hasty() -> Chases {
        let caches = crate::tests::caches::caches(&[256 << 10]);
        let chases = Chases::new(Extent::Quick, 8 << 20, (&caches, 1), Pages::Huge);
        Chases { walk_ns: 1, loads: Loads::new(4 << 20), ..chases }
    }

    const MIB: u64 = 1 << 20;

    /// A trial of every kind of row, as short as can be; a ring of 1 MiB passes for memory.
    fn trial(row: LatencyRow) -> Result<Sample, TrialError> {
        sample(&row, &hasty(), &ContentionProbe::default(), 5)
    }

    #[test]
    fn chases_loads_and_hand_overs_tell_that_they_waited() {
        let curve = Shape::random(100 << 10, Pages::Base);
        let mut trials: Vec<Box<dyn FnMut()>> =
            vec![Box::new(move || _ = trial(LatencyRow::Curve(curve)).unwrap())];
        let cpus = affinity::allowed_cpus().unwrap();
        if let [first, second, ..] = cpus[..] {
            let pair = Some((first, second));
            trials.push(Box::new(move || _ = super::super::hand_over::sample(pair).unwrap()));
        }
        let loads = Loads::new(1 << 20);
        trials.push(Box::new(move || {
            let until_read = |count: &(dyn Fn() -> u64 + Sync)| {
                while count() < 64 << 20 {
                    std::thread::yield_now();
                }
                Ok(())
            };
            loads.during((100, 1), &cpus[..1], until_read).unwrap();
        }));
        let test =
            "memory::latency::walk::tests::chases_loads_and_hand_overs_tell_that_they_waited";
        waiting::is_seen(test, trials);
    }

    #[test]
    fn a_trial_of_the_curve_counts_its_steps_and_its_time() {
        for bytes in [1 << 10, 100 << 10] {
            let sample = trial(LatencyRow::Curve(Shape::random(bytes, Pages::Base))).unwrap();
            assert!(sample.amount >= 1024.0 && sample.elapsed_ns > 0);
            assert_eq!(sample.facts.number(fact::STEPS), Some(sample.amount));
            let mean_ns = sample.elapsed_ns as f64 / sample.amount;
            for quietest in [fact::QUIETEST_FIRST_NS, fact::QUIETEST_SECOND_NS] {
                assert!(sample.facts.number(quietest).unwrap() <= 2.0 * mean_ns);
            }
            assert!(sample.warnings.is_empty(), "{:?}", sample.warnings);
        }
    }

    #[test]
    fn a_load_is_made_on_other_cores_where_there_are_any() {
        assert_eq!(beside(2, &[2, 3], vec![0, 1, 2, 3]), [0, 1]);
        assert_eq!(beside(1, &[0, 1], vec![0, 1]), [0]);
        assert_eq!(beside(1, &[], vec![0, 1]), [0], "the kernel does not say");
        assert_eq!(beside(99, &[], (0..99).collect()).len(), MOST_LOADERS);
    }

    #[test]
    fn huge_pages_are_verified_or_refused_by_code() {
        match trial(LatencyRow::Curve(Shape::random(64 << 10, Pages::Huge))) {
            Ok(sample) => assert_eq!(sample.facts.flag(fact::PAGES_VERIFIED), Some(true)),
            Err(TrialError::NoMore(warning)) => {
                eprintln!("skipped: {}", warning.text);
                assert_eq!(warning.code, warning::NO_HUGE_PAGES);
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn a_trial_counts_the_lines_of_all_chases() {
        for (chases, run_bytes) in [(1, LINE_BYTES), (4, RUN_BYTES), (32, LINE_BYTES)] {
            let sample = trial(LatencyRow::Parallel { chases, run_bytes }).unwrap();
            assert_eq!(sample.amount % (chases as f64 * 64.0), 0.0);
            assert_eq!(sample.facts.number(fact::LINES), Some(sample.amount / 64.0));
            assert_eq!(sample.facts.count(fact::WORKING_SET_BYTES), Some(MIB));
            assert!(sample.elapsed_ns > 0);
        }
    }

    #[test]
    fn the_load_is_what_was_read_while_the_chase_ran() {
        for load_percent in [0, 50, 100] {
            match trial(LatencyRow::Loaded { load_percent }) {
                Ok(sample) => {
                    assert!(sample.amount > 0.0);
                    let threads = sample.facts.count(fact::LOAD_THREADS).unwrap();
                    assert_eq!(threads == 0, load_percent == 0);
                    assert!(threads > 0 || sample.facts.count(fact::LOAD_BYTES) == Some(0));
                }
                Err(TrialError::Unsupported(text)) => {
                    assert_eq!(affinity::allowed_cpu_count(), 1);
                    eprintln!("skipped: {text}");
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn a_trial_on_a_real_node_gives_a_figure_or_says_why_not() {
        let cpu = affinity::allowed_cpus().unwrap()[0];
        let pair = Pair { cpu_node: 0, cpu, memory_node: 0, home_cpu: cpu };
        for row in [LatencyRow::NodeLatency(pair), LatencyRow::NodeRate(pair)] {
            match trial(row) {
                Ok(sample) => assert!(sample.amount >= 1024.0 && sample.elapsed_ns > 0),
                Err(TrialError::Unsupported(text)) => eprintln!("skipped: {text}"),
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn a_curve_that_is_cut_short_says_why() {
        let short = Chases { room_reason: "60 % of 4 MB that are free".to_owned(), ..hasty() };
        let longest = short.grid.shapes.iter().max_by_key(|shape| shape.working_set_bytes);
        let wanted = short.grid.cut_from(*longest.unwrap());
        let text = cut_short(wanted, &short.room_reason).unwrap().text;
        let end = "is this one instead of 64 MiB: 60 % of 4 MB that are free";
        assert!(text.ends_with(end), "{text}");
        assert_eq!(cut_short(None, ""), None);
    }

    #[test]
    fn warming_covers_the_caches_and_the_page_tables() {
        let shape = Shape::random(1 << 30, Pages::Base);
        assert_eq!(warm_nodes(shape, 64 * MIB), 80 * MIB / 64);
        assert_eq!(warm_nodes(shape, 0), 2 * (1 << 30) / (8 * 4096));
    }

    #[test]
    fn a_walk_that_ends_wrong_gives_no_figure() {
        assert!(matches!(time_steps(1, |_| false), Err(TrialError::Failed(_))));
        let (steps, elapsed_ns) = time_steps(1, |_| true).unwrap();
        assert!(steps >= 1 << 10 && elapsed_ns >= 1);
    }
}
