//! Accesses of 8 bytes over the whole of the memory: the finest blocks, in nanoseconds each.
//!
//! They do not wait for one another, so the figure is how often a thread finishes one, which is
//! less than what one takes: that is what a chase finds (`memory/latency.rs`).

use flatout_measure::{Facts, Sample, TrialError};
use flatout_sys::stream::access::{self, Pattern, Walk};

use super::fact;
use super::test_memory::{Lane, Parts, TestMemory};

/// Accesses of a trial, all threads together: what a trial takes is some 20 to 30 ms, in order and
/// out of order (two virtual CPUs of a Sapphire Rapids server, 2026-11-22).
const IN_ORDER: u64 = 1 << 24;
const OUT_OF_ORDER: u64 = 1 << 20;
/// How many of them many threads are at most: each has a part that is long against its start.
const MOST_PARTS: u64 = 8;
/// Cells that are looked at afterwards.
const LOOKED_AT: u64 = 4096;

/// Bytes of an access.
pub(super) const BYTES: u64 = 8;

/// Runs one trial: every thread goes through its part.
///
/// # Errors
/// As those of `memory/trial.rs`.
pub(super) fn run(
    memory: &TestMemory,
    pattern: Pattern,
    parts: Parts,
    seed: u64,
) -> Result<Sample, TrialError> {
    let cells = (parts.share_bytes / BYTES) as usize;
    let divisor = u64::from(parts.threads).clamp(1, MOST_PARTS);
    let count = match pattern {
        Pattern::SequentialCopy | Pattern::SequentialWrite => {
            (IN_ORDER / divisor).min(cells as u64)
        }
        Pattern::RandomWrite => (OUT_OF_ORDER / divisor).min(access::span_cells(cells) as u64),
    };
    let prepare = |_, lane: &mut Lane<'_>| {
        if pattern == Pattern::SequentialCopy {
            // What an earlier trial copied must not pass for this one's.
            looked_at(pattern, cells, count, seed).for_each(|cell| lane.target[cell] = 0.0);
        }
    };
    let work = |lane: &mut Lane<'_>, &(): &()| {
        access::run(pattern, lane.target, lane.first, count, seed);
    };
    let check = |_, lane: &Lane<'_>| check(pattern, lane, count, seed);
    let (_, elapsed_ns) = memory.run(parts, prepare, work, check)?;
    let facts = Facts::default()
        .with(fact::ACCESSES, count * u64::from(parts.threads))
        .with(fact::ELAPSED_NS, elapsed_ns);
    Ok(Sample { amount: count as f64, elapsed_ns, facts, ..Sample::default() })
}

/// Cells that were written and are looked at: spread over those in order, the first ones of a
/// walk.
fn looked_at(
    pattern: Pattern,
    cells: usize,
    count: u64,
    seed: u64,
) -> Box<dyn Iterator<Item = usize>> {
    let few = count.min(LOOKED_AT);
    match pattern {
        Pattern::SequentialCopy | Pattern::SequentialWrite => {
            Box::new((0..few).map(move |index| (index * (count / few.max(1))) as usize))
        }
        Pattern::RandomWrite => {
            let mut walk = Walk::new(cells, seed);
            Box::new((0..few).map(move |_| walk.step()))
        }
    }
}

fn check(pattern: Pattern, lane: &Lane<'_>, count: u64, seed: u64) -> Result<(), TrialError> {
    for cell in looked_at(pattern, lane.target.len(), count, seed) {
        let expected = match pattern {
            Pattern::SequentialCopy => lane.first[cell].to_bits(),
            Pattern::SequentialWrite | Pattern::RandomWrite => access::word_at(cell, seed),
        };
        if lane.target[cell].to_bits() != expected {
            let name = pattern.name();
            return Err(TrialError::Failed(format!("{name} left something else at cell {cell}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use flatout_sys::cancel::CancelToken;

    use super::super::test_memory::Extents;
    use super::*;

    #[test]
    fn each_pattern_gives_a_sample_and_is_checked() {
        let extents = Extents::of(Parts { threads: 3, share_bytes: 1 << 16, sources: 1 });
        let memory = TestMemory::new(extents, 2, 3, CancelToken::manual()).unwrap();
        let parts = Parts { threads: 3, share_bytes: 50_176, sources: 1 };
        for pattern in Pattern::ALL {
            let sample = run(&memory, pattern, parts, 7).unwrap();
            let cells = if pattern == Pattern::RandomWrite { 4096 } else { 50_176 / 8 };
            assert_eq!(sample.amount, f64::from(cells), "{pattern:?}");
            assert_eq!(sample.facts.count(fact::ACCESSES), Some(3 * cells as u64));
            let mut memory = memory.memory();
            let mut lanes = memory.lanes(parts).unwrap();
            assert_eq!(check(pattern, &lanes[2], cells as u64, 7), Ok(()));
            lanes[2].target.fill(0.0);
            assert!(check(pattern, &lanes[2], cells as u64, 7).is_err(), "{pattern:?}");
        }
    }
}
