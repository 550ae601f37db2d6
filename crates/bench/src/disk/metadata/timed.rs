//! The loops that are timed: each operation once, or over and over until the time is up.

use flatout_measure::histogram::Histogram;
use flatout_sys::cancel::CancelToken;
use flatout_sys::clock::monotonic_ns;
use flatout_sys::usage::Usage;
use rustix::io::Errno;

/// Operations between two readings of the clock where each would cost too much.
const BATCH: u64 = 64;
/// How long looking is timed one by one for the latencies.
const LATENCY_NS: u64 = 5_000_000;

/// When a thread ends at the latest.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    most_ns: u64,
    cancel: CancelToken,
}

impl Pace {
    pub(super) fn new(most_ns: u64, cancel: CancelToken) -> Self {
        Self { most_ns, cancel }
    }
}

/// Why one operation gave nothing.
pub(super) enum Refusal {
    Kernel(Errno),
    /// Entries that were listed, and that there are.
    Entries(u64, u64),
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Self {
        Self::Kernel(errno)
    }
}

/// Why a thread ended before its time.
pub(super) enum Stop {
    Cancelled,
    /// At which file or directory, and why.
    Refused(usize, Refusal),
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
    /// What the process had used when this thread began and when it ended.
    pub(super) usage: (Usage, Usage),
    pub(super) histogram: Histogram,
}

/// Does and times each operation once, in order.
pub(super) fn once(
    count: usize,
    pace: Pace,
    histogram: &mut Histogram,
    operation: impl FnMut(usize) -> Result<u64, Refusal>,
) -> Result<Timed, Stop> {
    let pass = Pass { count, most: count as u64, batch: 1, pace };
    pass.run(|ns| histogram.record(ns), operation)
}

/// Does and times the operations over and over; each says how much it was.
pub(super) fn again(
    count: usize,
    pace: Pace,
    histogram: &mut Histogram,
    operation: impl FnMut(usize) -> Result<u64, Refusal>,
) -> Result<Timed, Stop> {
    let pass = Pass { count, most: u64::MAX, batch: 1, pace };
    pass.run(|ns| histogram.record(ns), operation)
}

/// Does the operations over and over, reading the clock between batches; then for a shorter while
/// with each timed, for the latencies.
pub(super) fn again_in_batches(
    count: usize,
    pace: Pace,
    histogram: &mut Histogram,
    mut operation: impl FnMut(usize) -> Result<u64, Refusal>,
) -> Result<Timed, Stop> {
    let pass = Pass { count, most: u64::MAX, batch: BATCH, pace };
    let mut timed = pass.run(|_| (), &mut operation)?;
    let pace = Pace { most_ns: LATENCY_NS, ..pace };
    let singly = again(count, pace, histogram, operation)?;
    timed.requests += singly.requests;
    timed.busy_ns += singly.busy_ns;
    Ok(timed)
}

/// Operations in order, from the first again after the last.
struct Pass {
    count: usize,
    /// How many are done at most.
    most: u64,
    /// How many are done between two readings of the clock.
    batch: u64,
    pace: Pace,
}

impl Pass {
    fn run(
        &self,
        mut record: impl FnMut(u64),
        mut operation: impl FnMut(usize) -> Result<u64, Refusal>,
    ) -> Result<Timed, Stop> {
        let start_ns = monotonic_ns();
        let mut end_ns = start_ns;
        let (mut index, mut amount, mut clock_reads) = (0, 0, 0);
        let most_batches = if self.count == 0 { 0 } else { self.most / self.batch };
        while clock_reads < most_batches && end_ns - start_ns < self.pace.most_ns {
            if self.pace.cancel.is_cancelled() {
                return Err(Stop::Cancelled);
            }
            for _ in 0..self.batch {
                amount += operation(index).map_err(|refusal| Stop::Refused(index, refusal))?;
                index = if index + 1 < self.count { index + 1 } else { 0 };
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

    const LONG_NS: u64 = u64::MAX;

    #[test]
    fn each_operation_is_done_once_and_timed() {
        let (mut histogram, mut seen) = (Histogram::new(), Vec::new());
        let pace = Pace::new(LONG_NS, CancelToken::manual());
        let done = once(3, pace, &mut histogram, |index| {
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
        let pace = Pace::new(LONG_NS, cancel);
        let mut histogram = Histogram::new();
        let stopped = once(10, pace, &mut histogram, |_| {
            operation(2);
            Ok(1)
        });
        assert!(matches!(stopped, Err(Stop::Cancelled)));
        assert_eq!(calls, 2);
        let stopped = again(10, pace, &mut histogram, |_| Ok(1));
        assert!(matches!(stopped, Err(Stop::Cancelled)));
    }

    #[test]
    fn a_refusal_names_the_file() {
        let pace = Pace::new(LONG_NS, CancelToken::manual());
        let refuse = |index| if index == 2 { Err(Errno::NOENT.into()) } else { Ok(1) };
        let stopped = once(5, pace, &mut Histogram::new(), refuse);
        assert!(matches!(stopped, Err(Stop::Refused(2, Refusal::Kernel(Errno::NOENT)))));
        let stopped = again_in_batches(5, pace, &mut Histogram::new(), refuse);
        assert!(matches!(stopped, Err(Stop::Refused(2, _))));
    }

    #[test]
    fn nothing_to_do_and_no_time_end_at_once() {
        let mut histogram = Histogram::new();
        let pace = Pace::new(LONG_NS, CancelToken::manual());
        assert_eq!(again_in_batches(0, pace, &mut histogram, |_| Ok(1)).ok().unwrap().requests, 0);
        let pace = Pace::new(0, CancelToken::manual());
        assert_eq!(once(9, pace, &mut histogram, |_| Ok(1)).ok().unwrap().requests, 0);
        assert_eq!(histogram.operations(), 0);
    }
}
