//! What this room's own code costs per operation: the same workload, with the same block size and
//! clock readings, through an engine that moves nothing.

use flatout_io::operations::{Operations, Timestamps};
use flatout_io::{Engine, Lane, Order, Split, Stop};
use flatout_measure::clock::SystemClock;
use flatout_measure::overhead::calibrate;
use flatout_measure::statistics;
use flatout_sys::{CancelToken, monotonic_ns};

use super::lane::{LaneWork, Range, Turns, Work};
use super::row::Row;

/// Operations of a round at most, and rounds; the median counts. About 10 ms for small reads.
const OPERATIONS: u64 = 20_000;
const ROUNDS: u32 = 5;
/// Bytes that a round makes ready at most, where it writes.
const BYTES: u64 = 64 << 20;
/// Time of a round at most.
const ROUND_NS: u64 = 10_000_000;

/// Nanoseconds per operation of a row; 0 where there is no memory to find out.
pub(super) fn ns_per_operation(row: &Row) -> f64 {
    let Ok(mut null) = Operations::null(row.tuning.block_bytes as usize) else { return 0.0 };
    null.prime(|bytes| bytes.fill(1));
    // The ring reads the clock once per batch of four and once per turn.
    let shares_clock = row.tuning.engine == Engine::Uring && row.tuning.depth > 1;
    let (timestamps, clock_ns) = match row.test.timestamps() {
        Timestamps::Each if shares_clock => {
            (Timestamps::None, calibrate(&SystemClock).clock_read_ns / 2.0)
        }
        as_it_is => (as_it_is, 0.0),
    };
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let start_ns = monotonic_ns();
        let mut lane = LaneWork::new(work(row, start_ns));
        let mut stop = Stop::new(CancelToken::manual(), Some(start_ns + ROUND_NS));
        let start_ns = monotonic_ns();
        let ran = null.run(&mut lane, timestamps, &mut stop);
        if ran.is_ok() && lane.tally.operations > 0 {
            rounds.push((monotonic_ns() - start_ns) as f64 / lane.tally.operations as f64);
        }
    }
    statistics::median(&rounds).map_or(0.0, |ns| ns + clock_ns)
}

/// The work of a round.
fn work(row: &Row, start_ns: u64) -> Work {
    let block_bytes = row.tuning.block_bytes;
    let operations = (BYTES / block_bytes).clamp(1, OPERATIONS);
    Work {
        io_type: row.test.io_type(),
        order: Order::Random { seed: 1 },
        split: Split::Contiguous,
        lane: Lane::ONLY,
        block_bytes,
        range: Range { first: 0, blocks: operations, most_operations: operations },
        turns: Turns::One,
        read_percent: row.read_percent,
        pace: None,
        epoch_ns: start_ns,
        bin_ns: ROUND_NS,
        seed: 1,
        timestamps: row.test.timestamps(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::pattern::Pattern;
    use crate::disk::plan::tests_rows;

    #[test]
    fn every_row_of_a_plan_has_a_cost_of_its_own() {
        for row in tests_rows() {
            let ns = ns_per_operation(&row);
            assert!(ns > 0.0 && ns.is_finite(), "{row:?}");
        }
    }

    #[test]
    fn a_mix_has_the_cost_of_as_many_reads_and_writes_as_it_has() {
        let row = tests_rows().remove(0);
        let row = Row { test: Pattern::Mixed, read_percent: 75, ..row };
        let mut lane = LaneWork::new(work(&row, 0));
        let mut null = Operations::null(row.tuning.block_bytes as usize).unwrap();
        let mut stop = Stop::new(CancelToken::manual(), None);
        null.run(&mut lane, row.test.timestamps(), &mut stop).unwrap();
        let read = lane.tally.read_bytes as f64 / lane.tally.bytes as f64;
        assert!((read - 0.75).abs() < 0.1, "{read}");
    }
}
