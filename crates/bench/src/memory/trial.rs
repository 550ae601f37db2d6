//! One trial of a row of bandwidth: threads with their parts of the memory, a stream over them,
//! and a look at what it left.
//!
//! Outside the clock each thread is tied to its CPU, goes once through what shall be in a cache,
//! and leaves marks in the target, spread over all of it. Afterwards each mark must be gone and
//! the number there must be the right one; of a read the sum must be right.

use std::sync::Mutex;

use flatout_measure::case::{Sample, TrialError};
use flatout_measure::random::SplitMix64;
use flatout_sys::clock::monotonic_ns;
use flatout_sys::stream::{Arrays, GRANULE_BYTES, Kernel, Stream};
use serde_json::json;

use super::site::{Lane, Site, take};
use flatout_io::Order;

/// What is run, by how many.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    pub(super) stream: Stream,
    pub(super) threads: u32,
    /// Bytes of each array of one thread: a multiple of the granule.
    pub(super) share_bytes: u64,
    pub(super) way: Way,
}

/// How the arrays are gone through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Once, from the first element on.
    Once,
    /// After a pass that brings them into the caches, as often as fills a trial.
    Again,
    /// Once, block by block.
    Blocks { block_bytes: u64, is: Sequence },
}

/// In which order blocks come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sequence {
    Forward,
    /// Another permutation in each trial.
    Random,
}

/// How long a trial over caches takes: some hundred times what starting threads can be off by.
const AGAIN_NS: u64 = 2_000_000;
/// Passes are counted out from a run at least this long.
const COUNTED_NS: u64 = 100_000;
/// Marks of all threads together. Setting one and looking at it costs some 100 ns where nothing is
/// cached: with 65,536 per thread the checks of 8 threads took longer than their trials (two virtual
/// CPUs of a Sapphire Rapids server, 2026-11-22).
const MARKS: usize = 1 << 13;
/// No kernel leaves this: all numbers and values are positive.
const MARK: f64 = -1.0;

/// A thread that is ready.
struct Ready<'m> {
    lane: Lane<'m>,
    passes: u64,
    order: Vec<u32>,
    /// What a read of one pass must find.
    expected_sum: u64,
}

/// What a thread did.
struct Done {
    passes: u64,
    sum: u64,
    expected_sum: u64,
}

/// Runs one trial.
///
/// # Errors
/// `Unsupported` where the memory is too short, `Failed` where the result is wrong, `Interrupted`.
pub(super) fn run(site: &Site, job: &Job, seed: u64) -> Result<Sample, TrialError> {
    if site.cancel.is_cancelled() {
        return Err(TrialError::Interrupted);
    }
    let value = value_of(seed);
    let uses = job.stream.kernel().uses();
    let sources = usize::from(uses.first) + usize::from(uses.second);
    let share = job.share_bytes as usize / size_of::<f64>();
    let mut memory = site.memory();
    let no_room = || TrialError::Unsupported("there is not enough free memory".to_owned());
    let lanes = memory.lanes(job.threads, share, sources).filter(|_| share > 0);
    let slots: Vec<_> =
        lanes.ok_or_else(no_room)?.into_iter().map(|lane| Mutex::new(Some(lane))).collect();
    let crewed = site.crew(
        job.threads,
        |index| {
            let lane = take(&slots[index as usize]).ok_or_else(no_room)?;
            Ok::<_, TrialError>(prepare(site, job, lane, seed.wrapping_add(index.into())))
        },
        |_, ready| Ok(work(job, ready, value)),
    );
    drop(slots);
    let mut passes = 0;
    for done in crewed.results {
        let done = done?;
        if job.stream.kernel() == Kernel::Read
            && done.sum != done.expected_sum.wrapping_mul(done.passes)
        {
            return Err(TrialError::Failed("what was read is not what was there".to_owned()));
        }
        passes = done.passes;
    }
    if uses.target {
        let lanes = memory.lanes(job.threads, share, sources).ok_or_else(no_room)?;
        for (index, lane) in lanes.iter().enumerate() {
            check(job, lane, value, seed.wrapping_add(index as u64))?;
        }
    }
    Ok(sample(site, job, passes, crewed.elapsed_ns))
}

fn prepare<'m>(site: &Site, job: &Job, mut lane: Lane<'m>, seed: u64) -> Ready<'m> {
    let passes = match job.way {
        Way::Again => passes_of(&job.stream, &mut lane),
        Way::Once | Way::Blocks { .. } => 1,
    };
    let is_read = job.stream.kernel() == Kernel::Read;
    let count = lane.first.len() as u64;
    let expected_sum = if is_read { site.expected_sum(lane.first_index, count) } else { 0 };
    if job.stream.kernel().uses().target {
        marks(lane.target.len(), job.threads, seed).for_each(|place| lane.target[place] = MARK);
    }
    Ready { lane, passes, order: order_of(job, seed), expected_sum }
}

/// The blocks of a part in their order; empty where there are none.
fn order_of(job: &Job, seed: u64) -> Vec<u32> {
    let Way::Blocks { block_bytes, is } = job.way else { return Vec::new() };
    let count = job.share_bytes.div_ceil(block_bytes);
    let order = match is {
        Sequence::Forward => Order::Forward,
        Sequence::Random => Order::Random { seed },
    };
    (0..count).map(|position| order.block(position, count) as u32).collect()
}

/// Brings the arrays into the caches, and counts how many passes fill a trial.
fn passes_of(stream: &Stream, lane: &mut Lane<'_>) -> u64 {
    // A value that no trial has, so that what this leaves is not taken for a trial's work.
    const WARMING: f64 = 2.5;
    let mut arrays = arrays(lane);
    let start_ns = monotonic_ns();
    stream.run(&mut arrays, WARMING, 1);
    // A pass that brings data in is slower than others, but not by this much: one fills a trial.
    if monotonic_ns().saturating_sub(start_ns) >= 2 * AGAIN_NS {
        return 1;
    }
    let mut passes = 1_u64;
    loop {
        let start_ns = monotonic_ns();
        std::hint::black_box(stream.run(&mut arrays, WARMING, passes));
        let elapsed_ns = monotonic_ns().saturating_sub(start_ns);
        if elapsed_ns >= COUNTED_NS || passes >= 1 << 40 {
            return (AGAIN_NS * passes / elapsed_ns.max(1)).max(1);
        }
        passes *= 4;
    }
}

fn arrays<'a>(lane: &'a mut Lane<'_>) -> Arrays<'a> {
    Arrays { target: &mut *lane.target, first: lane.first, second: lane.second }
}

fn work(job: &Job, ready: &mut Ready<'_>, value: f64) -> Done {
    let Ready { lane, passes, order, expected_sum } = ready;
    let mut arrays = arrays(lane);
    let sum = match job.way {
        Way::Once | Way::Again => job.stream.run(&mut arrays, value, *passes),
        Way::Blocks { block_bytes, .. } => {
            let block = block_bytes as usize / size_of::<f64>();
            job.stream.run_blocks(&mut arrays, value, block, order)
        }
    };
    Done { passes: *passes, sum: std::hint::black_box(sum), expected_sum: *expected_sum }
}

/// The value of a trial, between 1 and 2.
fn value_of(seed: u64) -> f64 {
    let mantissa = SplitMix64::new(seed).next_u64() >> 12;
    f64::from_bits(0x3ff0_0000_0000_0000 | mantissa)
}

/// Places of the marks: one in each of as many equal stretches, anywhere in it; the last element
/// in any case.
fn marks(length: usize, threads: u32, seed: u64) -> impl Iterator<Item = usize> {
    let count = (MARKS / threads.max(1) as usize).max(1);
    let stretch = length.div_ceil(count).max(1);
    let mut random = SplitMix64::new(seed);
    let anywhere = (0..length / stretch).map(move |index| index * stretch + random.below(stretch));
    anywhere.chain(length.checked_sub(1))
}

/// Holds what lies at the marks against the definition of the kernel.
fn check(job: &Job, lane: &Lane<'_>, value: f64, seed: u64) -> Result<(), TrialError> {
    let kernel = job.stream.kernel();
    for place in marks(lane.target.len(), job.threads, seed) {
        let first = lane.first.get(place).copied().unwrap_or(0.0);
        let second = lane.second.get(place).copied().unwrap_or(0.0);
        let expected = match kernel {
            Kernel::Read => continue,
            Kernel::Write | Kernel::NtWrite => value,
            Kernel::Copy | Kernel::NtCopy | Kernel::RepMovsb | Kernel::Memcpy => first,
            Kernel::Scale => value * first,
            Kernel::Add => first + second,
            Kernel::Triad | Kernel::NtTriad => first + value * second,
        };
        // A fused multiply-add rounds once where this rounds twice.
        let found = lane.target[place];
        if (found - expected).abs() > 2.0 * f64::EPSILON * expected {
            let name = kernel.name();
            return Err(TrialError::Failed(format!(
                "{name} left {found} at element {place} where {expected} should be"
            )));
        }
    }
    Ok(())
}

fn sample(site: &Site, job: &Job, passes: u64, elapsed_ns: u64) -> Sample {
    debug_assert!(job.share_bytes.is_multiple_of(GRANULE_BYTES as u64));
    let uses = job.stream.kernel().uses();
    let array_bytes = job.share_bytes * u64::from(job.threads) * passes;
    let read_bytes = array_bytes * (u64::from(uses.first) + u64::from(uses.second));
    let written_bytes = array_bytes * u64::from(uses.target);
    let mut sample = Sample {
        amount: (read_bytes + written_bytes) as f64,
        elapsed_ns,
        warnings: site.doubt_of_cpus().into_iter().collect(),
        ..Sample::default()
    };
    for (key, number) in [
        ("application_bytes", read_bytes + written_bytes),
        ("read_bytes", read_bytes),
        ("written_bytes", written_bytes),
        ("elapsed_ns", elapsed_ns),
    ] {
        sample.audit.insert(key.to_owned(), json!(number));
    }
    sample
}

#[cfg(test)]
mod tests {
    use flatout_sys::cancel::CancelToken;

    use super::super::site::Extents;
    use super::*;

    fn site() -> Site {
        Site::new(Extents::of(4, 1 << 16, 2), 2, 3, CancelToken::manual()).unwrap()
    }

    #[test]
    fn every_kernel_in_every_way_gives_a_sample_with_its_bytes() {
        let site = site();
        let blocks = |is| Way::Blocks { block_bytes: 8192, is };
        for kernel in Kernel::ALL {
            let Some(stream) = Stream::best(kernel) else { continue };
            for stream in [stream, stream.far()] {
                for way in [Way::Once, blocks(Sequence::Forward), blocks(Sequence::Random)] {
                    // A part that is no multiple of the block.
                    let job = Job { stream, threads: 3, share_bytes: 40_960 + 256, way };
                    let sample = run(&site, &job, 11).unwrap();
                    let uses = kernel.uses();
                    let arrays = [uses.target, uses.first, uses.second];
                    let arrays = arrays.into_iter().filter(|used| *used).count() as u64;
                    assert_eq!(sample.amount, (arrays * 3 * (40_960 + 256)) as f64, "{job:?}");
                    assert!(sample.elapsed_ns > 0);
                    assert_eq!(sample.audit["application_bytes"], json!(sample.amount as u64));
                }
            }
        }
    }

    #[test]
    fn caches_are_gone_through_again_and_again() {
        let stream = Stream::best(Kernel::Read).unwrap();
        let job = Job { stream, threads: 1, share_bytes: 4096, way: Way::Again };
        let sample = run(&site(), &job, 1).unwrap();
        assert!(sample.amount > 4096.0 && sample.amount % 4096.0 == 0.0);
    }

    #[test]
    fn a_kernel_that_leaves_anything_out_fails() {
        let site = site();
        let mut memory = site.memory();
        let mut lanes = memory.lanes(1, 4096, 2).unwrap();
        let lane = &mut lanes[0];
        let (value, seed) = (value_of(5), 5);
        let stream = Stream::best(Kernel::Triad).unwrap();
        let job = Job { stream, threads: 1, share_bytes: 8 * 4096, way: Way::Once };
        stream.run(&mut arrays(lane), value, 1);
        assert_eq!(check(&job, lane, value, seed), Ok(()));
        assert!(check(&job, lane, value_of(6), seed).is_err(), "another trial's work");
        for place in [0, 1000, 4095] {
            let good = std::mem::replace(&mut lane.target[place], MARK);
            assert!(check(&job, lane, value, seed).is_err(), "element {place}");
            lane.target[place] = good;
        }
        lane.target[7] *= 1.0 + 4.0 * f64::EPSILON;
        assert!(check(&job, lane, value, seed).is_err(), "wrong in the last bits");
    }

    #[test]
    fn marks_are_spread_over_everything() {
        for length in [1, 31, 4096, MARKS, 3 * MARKS + 17] {
            let places: Vec<usize> = marks(length, 1, 9).collect();
            assert!(places.iter().all(|&place| place < length));
            assert_eq!(places.last(), Some(&(length - 1)));
            let stretch = length.div_ceil(MARKS);
            let gaps = places.windows(2).map(|pair| pair[1] - pair[0]);
            assert!(gaps.max().unwrap_or(0) < 2 * stretch + stretch, "{length}");
        }
        assert_eq!(marks(0, 1, 1).count(), 0);
        assert!(marks(1 << 20, 8, 1).count() <= MARKS / 8 + 1);
    }

    #[test]
    fn a_user_who_stops_gets_no_sample() {
        let cancel = CancelToken::manual();
        let site = Site::new(Extents::of(1, 256, 1), 1, 3, cancel).unwrap();
        cancel.cancel();
        let stream = Stream::best(Kernel::Read).unwrap();
        let job = Job { stream, threads: 1, share_bytes: 256, way: Way::Once };
        assert_eq!(run(&site, &job, 1), Err(TrialError::Interrupted));
    }

    #[test]
    fn arrays_that_do_not_fit_are_said_to_be_unsupported() {
        let stream = Stream::best(Kernel::Add).unwrap();
        let job = Job { stream, threads: 1, share_bytes: 1 << 30, way: Way::Once };
        assert!(matches!(run(&site(), &job, 1), Err(TrialError::Unsupported(_))));
    }
}
