//! One trial of a row of bandwidth: threads with their parts of the memory, a stream over them,
//! and a look at what it left.
//!
//! Outside the clock each thread is tied to its CPU, goes once through what shall be in a cache,
//! and leaves marks in the target, spread over all of it. Afterwards each mark must be gone and
//! the number there must be the right one; of a read the sum must be right.

use std::convert::Infallible;

use flatout_io::Order;
use flatout_measure::{Facts, Sample, SplitMix64, TrialError};
use flatout_sys::monotonic_ns;
use flatout_sys::stream::{Arrays, GRANULE_BYTES, Kernel, Stream};

use super::fact;
use super::test_memory::{Lane, Parts, TestMemory};
use crate::calibration::filling;
use crate::stream_form::{self, Ground};

/// What is run over the parts.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamTest {
    pub(super) stream: Stream,
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

/// What a thread needs beside its part.
struct Ready {
    passes: u64,
    order: Vec<u32>,
    /// What a read of one pass must find.
    expected_sum: u64,
}

/// What a thread did.
struct Done {
    passes: u64,
    /// What it read is what was there.
    is_right: bool,
}

impl StreamTest {
    /// The same in the form of the kernel that is the fastest over these parts; as it is where they
    /// cannot be gone through, which its trials say, too.
    pub(super) fn fastest(self, memory: &TestMemory, parts: Parts) -> Self {
        let forms = stream_form::forms(self.stream);
        if forms.len() < 2 {
            return self;
        }
        let ground = match self.way {
            Way::Again => Ground::Whole,
            Way::Once | Way::Blocks { .. } => Ground::Slices { threads: parts.threads },
        };
        let race =
            |lane: &mut Lane<'_>, (): &()| stream_form::race(&forms, &mut arrays(lane), ground);
        let times = memory.run(parts, |_, _| (), race, |_, _| Ok(()));
        let best = times.ok().and_then(|(times, _)| stream_form::fastest(&forms, &times));
        Self { stream: best.unwrap_or(self.stream), ..self }
    }
}

/// Runs one trial.
///
/// # Errors
/// `Unsupported` where the memory is too short, `Failed` where the result is wrong, `Interrupted`.
pub(super) fn run(
    memory: &TestMemory,
    test: &StreamTest,
    parts: Parts,
    seed: u64,
) -> Result<Sample, TrialError> {
    let value = value_of(seed);
    let kernel = test.stream.kernel();
    let seed_of = |index: u32| seed.wrapping_add(index.into());
    let prepare = |index, lane: &mut Lane<'_>| prepare(memory, test, parts, lane, seed_of(index));
    let work = |lane: &mut Lane<'_>, ready: &Ready| work(test, lane, ready, value);
    let check = |index, lane: &Lane<'_>| match kernel.uses().target {
        true => check(kernel, lane, parts.threads, value, seed_of(index)),
        false => Ok(()),
    };
    let (done, elapsed_ns) = memory.run(parts, prepare, work, check)?;
    if kernel == Kernel::Read && done.iter().any(|done| !done.is_right) {
        return Err(TrialError::Failed("what was read is not what was there".to_owned()));
    }
    let passes = done.last().map_or(0, |done| done.passes);
    Ok(sample(kernel, parts, passes, elapsed_ns))
}

fn prepare(
    memory: &TestMemory,
    test: &StreamTest,
    parts: Parts,
    lane: &mut Lane<'_>,
    seed: u64,
) -> Ready {
    let passes = match test.way {
        Way::Again => passes_of(&test.stream, lane),
        Way::Once | Way::Blocks { .. } => 1,
    };
    let kernel = test.stream.kernel();
    let count = lane.first.len() as u64;
    let is_read = kernel == Kernel::Read;
    let expected_sum = if is_read { memory.expected_sum(lane.first_index, count) } else { 0 };
    if kernel.uses().target {
        marks(lane.target.len(), parts.threads, seed).for_each(|place| lane.target[place] = MARK);
    }
    Ready { passes, order: order_of(test.way, parts.share_bytes, seed), expected_sum }
}

/// The blocks of a part in their order; empty where there are none.
fn order_of(way: Way, share_bytes: u64, seed: u64) -> Vec<u32> {
    let Way::Blocks { block_bytes, is } = way else { return Vec::new() };
    let count = share_bytes.div_ceil(block_bytes);
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
    let Ok(passes) = filling(AGAIN_NS, (1, COUNTED_NS), |passes| {
        let start_ns = monotonic_ns();
        std::hint::black_box(stream.run(&mut arrays, WARMING, passes));
        Ok::<_, Infallible>(monotonic_ns().saturating_sub(start_ns))
    });
    passes
}

fn arrays<'a>(lane: &'a mut Lane<'_>) -> Arrays<'a> {
    Arrays { target: &mut *lane.target, first: lane.first, second: lane.second }
}

fn work(test: &StreamTest, lane: &mut Lane<'_>, ready: &Ready, value: f64) -> Done {
    let Ready { passes, order, expected_sum } = ready;
    let mut arrays = arrays(lane);
    let sum = match test.way {
        Way::Once | Way::Again => test.stream.run(&mut arrays, value, *passes),
        Way::Blocks { block_bytes, .. } => {
            let block = block_bytes as usize / size_of::<f64>();
            test.stream.run_blocks(&mut arrays, value, block, order)
        }
    };
    let is_right = std::hint::black_box(sum) == expected_sum.wrapping_mul(*passes);
    Done { passes: *passes, is_right }
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
fn check(
    kernel: Kernel,
    lane: &Lane<'_>,
    threads: u32,
    value: f64,
    seed: u64,
) -> Result<(), TrialError> {
    for place in marks(lane.target.len(), threads, seed) {
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

fn sample(kernel: Kernel, parts: Parts, passes: u64, elapsed_ns: u64) -> Sample {
    debug_assert!(parts.share_bytes.is_multiple_of(GRANULE_BYTES as u64));
    let uses = kernel.uses();
    let array_bytes = parts.share_bytes * u64::from(parts.threads) * passes;
    let read_bytes = array_bytes * (u64::from(uses.first) + u64::from(uses.second));
    let written_bytes = array_bytes * u64::from(uses.target);
    let bytes = read_bytes + written_bytes;
    let facts = Facts::default()
        .with(fact::APPLICATION_BYTES, bytes)
        .with(fact::READ_BYTES, read_bytes)
        .with(fact::WRITTEN_BYTES, written_bytes)
        .with(fact::ELAPSED_NS, elapsed_ns);
    Sample { amount: bytes as f64, elapsed_ns, facts, ..Sample::default() }
}

#[cfg(test)]
mod tests {
    use flatout_sys::cancel::CancelToken;

    use super::super::test_memory::Extents;
    use super::*;

    fn memory() -> TestMemory {
        let extents = Extents::of(Parts { threads: 4, share_bytes: 1 << 16, sources: 2 });
        TestMemory::new(extents, 2, 3, CancelToken::manual()).unwrap()
    }

    fn alone(share_bytes: u64) -> Parts {
        Parts { threads: 1, share_bytes, sources: 2 }
    }

    #[test]
    fn every_kernel_in_every_way_gives_a_sample_with_its_bytes() {
        let memory = memory();
        let blocks = |is| Way::Blocks { block_bytes: 8192, is };
        for kernel in Kernel::ALL {
            let Some(stream) = Stream::best(kernel) else { continue };
            for stream in [stream, stream.far()] {
                for way in [Way::Once, blocks(Sequence::Forward), blocks(Sequence::Random)] {
                    // A part that is no multiple of the block.
                    let parts = Parts { threads: 3, share_bytes: 40_960 + 256, sources: 2 };
                    let test = StreamTest { stream, way };
                    let sample = run(&memory, &test, parts, 11).unwrap();
                    let uses = kernel.uses();
                    let arrays = [uses.target, uses.first, uses.second];
                    let arrays = arrays.into_iter().filter(|used| *used).count() as u64;
                    assert_eq!(sample.amount, (arrays * 3 * (40_960 + 256)) as f64, "{test:?}");
                    assert!(sample.elapsed_ns > 0);
                    let bytes = sample.facts.number(fact::APPLICATION_BYTES);
                    assert_eq!(bytes, Some(sample.amount));
                }
            }
        }
    }

    #[test]
    fn caches_are_gone_through_again_and_again() {
        let stream = Stream::best(Kernel::Read).unwrap();
        let test = StreamTest { stream, way: Way::Again };
        let sample = run(&memory(), &test, alone(4096), 1).unwrap();
        assert!(sample.amount > 4096.0 && sample.amount % 4096.0 == 0.0);
    }

    #[test]
    fn a_kernel_that_leaves_anything_out_fails() {
        let memory = memory();
        let mut memory = memory.memory();
        let mut lanes = memory.lanes(alone(8 * 4096)).unwrap();
        let lane = &mut lanes[0];
        let (value, seed) = (value_of(5), 5);
        let stream = Stream::best(Kernel::Triad).unwrap();
        let check = |lane: &Lane<'_>, value| check(Kernel::Triad, lane, 1, value, seed);
        stream.run(&mut arrays(lane), value, 1);
        assert_eq!(check(lane, value), Ok(()));
        assert!(check(lane, value_of(6)).is_err(), "another trial's work");
        for place in [0, 1000, 4095] {
            let good = std::mem::replace(&mut lane.target[place], MARK);
            assert!(check(lane, value).is_err(), "element {place}");
            lane.target[place] = good;
        }
        lane.target[7] *= 1.0 + 4.0 * f64::EPSILON;
        assert!(check(lane, value).is_err(), "wrong in the last bits");
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
        let memory = TestMemory::new(Extents::of(alone(256)), 1, 3, cancel).unwrap();
        cancel.cancel();
        let stream = Stream::best(Kernel::Read).unwrap();
        let test = StreamTest { stream, way: Way::Once };
        assert_eq!(run(&memory, &test, alone(256), 1), Err(TrialError::Interrupted));
    }

    #[test]
    fn arrays_that_do_not_fit_are_said_to_be_unsupported() {
        let stream = Stream::best(Kernel::Add).unwrap();
        let test = StreamTest { stream, way: Way::Once };
        assert!(matches!(
            run(&memory(), &test, alone(1 << 30), 1),
            Err(TrialError::Unsupported(_))
        ));
    }
}
