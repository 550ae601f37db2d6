//! The loops that are timed: each operation once, or over and over until the time is up.

use flatout_measure::{Histogram, TrialError};
use flatout_sys::{CancelToken, monotonic_ns};

use crate::go_on;

/// Operations between two readings of the clock where each would cost too much.
const BATCH: u64 = 64;
/// How long looking is timed one by one for the latencies.
const LATENCY_NS: u64 = 5_000_000;

/// How often a thread does its operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rounds {
    /// Each once, in order.
    Once,
    /// Over and over until the time is up.
    Many,
    /// Over and over, with the clock read between batches; then for a shorter while with each timed,
    /// for the latencies.
    Batches,
}

/// What a thread does: so many operations in order, from the first again after the last.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    pub(super) rounds: Rounds,
    pub(super) operations: usize,
    /// When it ends at the latest.
    pub(super) most_ns: u64,
    pub(super) cancel: CancelToken,
}

/// What one thread did.
#[derive(Debug, Default)]
pub(super) struct Timed {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    /// Operations from start to end.
    pub(super) amount: u64,
    /// Operations, those that only gave latencies included.
    pub(super) requests: u64,
    /// Time that all of them took.
    pub(super) busy_ns: u64,
    /// Readings of the clock from start to end.
    pub(super) clock_reads: u64,
    /// Numbers of the files that changed.
    pub(super) changed: Vec<u32>,
    pub(super) histogram: Histogram,
}

impl Work {
    /// Does and times the operations; each says how much it was.
    pub(super) fn run(
        &self,
        histogram: &mut Histogram,
        mut operation: impl FnMut(usize) -> Result<u64, TrialError>,
    ) -> Result<Timed, TrialError> {
        if self.rounds != Rounds::Batches {
            return self.pass(1, |ns| histogram.record(ns), operation);
        }
        let mut timed = self.pass(BATCH, |_| (), &mut operation)?;
        let singly = Self { rounds: Rounds::Many, most_ns: LATENCY_NS, ..*self };
        let singly = singly.run(histogram, operation)?;
        timed.requests += singly.requests;
        timed.busy_ns += singly.busy_ns;
        Ok(timed)
    }

    /// Reads the clock after each `batch` of operations.
    fn pass(
        &self,
        batch: u64,
        mut record: impl FnMut(u64),
        mut operation: impl FnMut(usize) -> Result<u64, TrialError>,
    ) -> Result<Timed, TrialError> {
        let start_ns = monotonic_ns();
        let mut end_ns = start_ns;
        let (mut index, mut amount, mut clock_reads) = (0, 0, 0);
        let most_batches = match (self.operations, self.rounds) {
            (count, Rounds::Once) => count as u64,
            (0, _) => 0,
            _ => u64::MAX,
        };
        while clock_reads < most_batches && end_ns - start_ns < self.most_ns {
            go_on(self.cancel)?;
            for _ in 0..batch {
                amount += operation(index)?;
                index = if index + 1 < self.operations { index + 1 } else { 0 };
            }
            let now_ns = monotonic_ns();
            record(now_ns - end_ns);
            end_ns = now_ns;
            clock_reads += 1;
        }
        let (requests, busy_ns) = (amount, end_ns - start_ns);
        Ok(Timed { start_ns, end_ns, amount, requests, busy_ns, clock_reads, ..Timed::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn work(rounds: Rounds, operations: usize, most_ns: u64, cancel: CancelToken) -> Work {
        Work { rounds, operations, most_ns, cancel }
    }

    const LONG_NS: u64 = u64::MAX;

    #[test]
    fn each_operation_is_done_once_and_timed() {
        let (mut histogram, mut seen) = (Histogram::default(), Vec::new());
        let work = work(Rounds::Once, 3, LONG_NS, CancelToken::manual());
        let done = work.run(&mut histogram, |index| {
            seen.push(index);
            Ok(1)
        });
        let done = done.ok().unwrap();
        assert_eq!((done.amount, done.requests, histogram.operations()), (3, 3, 3));
        assert_eq!(seen, [0, 1, 2]);
    }

    #[test]
    fn a_wish_to_stop_is_heard_between_two_operations() {
        let cancel = CancelToken::manual();
        let mut calls = 0;
        let mut operation = |at: u32| {
            calls += 1;
            if calls == at {
                cancel.cancel();
            }
        };
        let once = work(Rounds::Once, 10, LONG_NS, cancel);
        let mut histogram = Histogram::default();
        let stopped = once.run(&mut histogram, |_| {
            operation(2);
            Ok(1)
        });
        assert!(matches!(stopped, Err(TrialError::Interrupted)));
        assert_eq!(calls, 2);
        let stopped = Work { rounds: Rounds::Many, ..once }.run(&mut histogram, |_| Ok(1));
        assert!(matches!(stopped, Err(TrialError::Interrupted)));
    }

    #[test]
    fn a_failure_ends_it_as_it_is() {
        let once = work(Rounds::Once, 5, LONG_NS, CancelToken::manual());
        let refuse =
            |index| if index == 2 { Err(TrialError::Failed("2".to_owned())) } else { Ok(1) };
        let stopped = once.run(&mut Histogram::default(), refuse);
        assert!(matches!(stopped, Err(TrialError::Failed(text)) if text == "2"));
        let stopped =
            Work { rounds: Rounds::Batches, ..once }.run(&mut Histogram::default(), refuse);
        assert!(matches!(stopped, Err(TrialError::Failed(text)) if text == "2"));
    }

    #[test]
    fn nothing_to_do_and_no_time_end_at_once() {
        let mut histogram = Histogram::default();
        let cancel = CancelToken::manual();
        for work in [work(Rounds::Batches, 0, LONG_NS, cancel), work(Rounds::Once, 9, 0, cancel)] {
            assert_eq!(work.run(&mut histogram, |_| Ok(1)).ok().unwrap().requests, 0);
        }
        assert_eq!(histogram.operations(), 0);
    }
}
