//! What one thread of a trial does: which request is next and when, and what became of each.

use std::io;

use flatout_io::operations::{After, Direction, Done, Request, Timestamps, Workload};
use flatout_io::{Lane, Order, Split};
use flatout_measure::{Histogram, SplitMix64};
use flatout_sys::fill_random;

use super::pattern::IoType;

/// Of so many requests that read, one is looked at for zeros: looking at all would cost as much
/// as the system call of a small read.
const LOOKED_AT_ONE_IN: u64 = 16;
/// Pages of such a block that are looked at, and words of each.
const PAGES_LOOKED_AT: usize = 16;
const PAGE_BYTES: usize = 4096;
const WORDS_LOOKED_AT: usize = 16;
/// Blocks up to this size are written anew each time: filesystems that compress look at about as
/// much at once, and would find the rest of an older block again.
const WHOLLY_NEW_BYTES: usize = 128 << 10;
/// Distance of the places where a larger block is made different from every other: storage that
/// finds equal blocks compares pages.
const STAMP_BYTES: usize = 4096;
/// Bins at most: a clock that jumps must not cost memory.
const MOST_BINS: u64 = 1 << 20;
/// An operation that begins later than this after its time is late.
const LATE_NS: u64 = 1_000_000;

/// Blocks of a file that are worked on, and how many operations there are at most: of those that write
/// what may be written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    pub(super) first: u64,
    pub(super) blocks: u64,
    pub(super) most_operations: u64,
}

/// The work of one thread, as data.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    pub(super) io_type: IoType,
    pub(super) order: Order,
    pub(super) split: Split,
    pub(super) lane: Lane,
    pub(super) block_bytes: u64,
    /// The blocks that all threads together work on, and what this one may do.
    pub(super) range: Range,
    /// Whether it begins again once all blocks are done.
    pub(super) turns: Turns,
    pub(super) read_percent: u8,
    pub(super) pace: Option<Pace>,
    /// Start and width of the bins of the rate over time.
    pub(super) epoch_ns: u64,
    pub(super) bin_ns: u64,
    pub(super) seed: u64,
    /// Whether operations have times of their own.
    pub(super) timestamps: Timestamps,
}

/// How often all blocks are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turns {
    /// Once.
    One,
    /// Again and again, a random order differing each time.
    Many,
}

/// An open loop: when operations are meant to begin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub(super) first_ns: u64,
    pub(super) interval_ns: f64,
}

/// What became of the requests of one thread.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    pub(super) requests: u64,
    pub(super) operations: u64,
    pub(super) bytes: u64,
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
    pub(super) late: u64,
    /// Operations of an open loop whose time came before the end, and which did not begin.
    pub(super) unstarted: u64,
    pub(super) looked_at: u64,
    pub(super) zero: u64,
    /// Operations and bytes per bin.
    pub(super) bins: Vec<[u64; 2]>,
    pub(super) histogram: Histogram,
}

impl Tally {
    /// Adds what another thread did.
    pub(super) fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.operations += other.operations;
        self.bytes += other.bytes;
        self.read_bytes += other.read_bytes;
        self.written_bytes += other.written_bytes;
        self.late += other.late;
        self.unstarted += other.unstarted;
        self.looked_at += other.looked_at;
        self.zero += other.zero;
        self.histogram.merge(&other.histogram);
        if self.bins.len() < other.bins.len() {
            self.bins.resize(other.bins.len(), [0; 2]);
        }
        for (own, more) in self.bins.iter_mut().zip(&other.bins) {
            own[0] += more[0];
            own[1] += more[1];
        }
    }
}

/// A thread's workload.
pub(super) struct LaneWork {
    work: Work,
    /// Next position in the lane's share; of a sequential mix one for reads and one for writes,
    /// each of which goes from the front to the end, as with fio.
    next: [u64; 2],
    /// First position, end and step.
    share: (u64, u64, u64),
    turn: u64,
    begun: u64,
    coin: SplitMix64,
    stamp: u64,
    pub(super) tally: Tally,
    pub(super) failure: Option<(Direction, io::Error)>,
}

impl LaneWork {
    pub(super) fn new(work: Work) -> Self {
        let share = work.lane.blocks(work.range.blocks, work.split);
        let mut work = work;
        if work.turns == Turns::One {
            // Two positions move as many blocks as one.
            let blocks = share.1.saturating_sub(share.0).div_ceil(share.2.max(1));
            work.range.most_operations = work.range.most_operations.min(blocks);
        }
        let seed = work.seed ^ (u64::from(work.lane.index) << 40);
        Self {
            work,
            next: [share.0; 2],
            share,
            turn: 0,
            begun: 0,
            coin: SplitMix64::new(seed),
            stamp: SplitMix64::new(!seed).next_u64(),
            tally: Tally::default(),
            failure: None,
        }
    }

    /// The next block in the order of this thread; none when its turn or its work is over.
    fn next_block(&mut self, direction: Direction) -> Option<u64> {
        let (first, end, step) = self.share;
        let is_apart = self.work.io_type == IoType::Mixed && self.work.order == Order::Forward;
        let next = &mut self.next[usize::from(is_apart && direction == Direction::Write)];
        if *next >= end {
            if self.work.turns == Turns::One || first >= end {
                return None;
            }
            *next = first;
            self.turn += 1;
        }
        let position = *next;
        *next = position.saturating_add(step);
        let order = match self.work.order {
            // Another turn must not repeat what a cache has learned in the one before.
            Order::Random { seed } => Order::Random { seed: seed.wrapping_add(self.turn) },
            order => order,
        };
        Some(self.work.range.first + order.block(position, self.work.range.blocks))
    }

    fn direction(&mut self) -> Direction {
        match self.work.io_type {
            IoType::Read | IoType::Copy => Direction::Read,
            IoType::Write => Direction::Write,
            IoType::Mixed => match self.coin.below(100) < usize::from(self.work.read_percent) {
                true => Direction::Read,
                false => Direction::Write,
            },
        }
    }

    /// Counts the operations that should have begun before the end and did not.
    pub(super) fn count_unstarted(&mut self, deadline_ns: u64) {
        let Some(pace) = self.work.pace else { return };
        let span_ns = deadline_ns.saturating_sub(pace.first_ns) as f64;
        let meant = (span_ns / pace.interval_ns) as u64;
        self.tally.unstarted =
            meant.min(self.work.range.most_operations).saturating_sub(self.begun);
    }

    /// Counts an operation, which may be two requests: it began when the first one did.
    fn count(&mut self, done: &Done<'_>, moved: u64) {
        let tally = &mut self.tally;
        tally.operations += 1;
        tally.bytes += moved;
        if self.work.timestamps == Timestamps::None {
            return;
        }
        tally.histogram.record(done.completed_ns.saturating_sub(begun_ns(done)));
        let bin = done.completed_ns.saturating_sub(self.work.epoch_ns) / self.work.bin_ns.max(1);
        let bin = bin.min(MOST_BINS) as usize;
        if bin >= tally.bins.len() {
            tally.bins.resize(bin + 1, [0; 2]);
        }
        tally.bins[bin][0] += 1;
        tally.bins[bin][1] += moved;
    }

    fn look_for_zeros(&mut self, bytes: &[u8]) {
        if self.tally.requests % LOOKED_AT_ONE_IN != 1 || bytes.is_empty() {
            return;
        }
        let step = (bytes.len() / PAGES_LOOKED_AT).max(PAGE_BYTES);
        for page in bytes.chunks(step) {
            self.tally.looked_at += 1;
            self.tally.zero += u64::from(is_zero(&page[..page.len().min(PAGE_BYTES)]));
        }
    }
}

/// When an operation was meant to begin, or did where it had no time.
fn begun_ns(done: &Done<'_>) -> u64 {
    if done.request.due_ns == 0 { done.submitted_ns } else { done.request.due_ns }
}

/// Whether a sample of the words of a page is zero.
fn is_zero(page: &[u8]) -> bool {
    let step = (page.len() / WORDS_LOOKED_AT).max(8);
    page.chunks(step).all(|chunk| chunk[..chunk.len().min(8)].iter().all(|&byte| byte == 0))
}

impl Workload for LaneWork {
    fn next(&mut self) -> Option<Request> {
        if self.begun >= self.work.range.most_operations {
            return None;
        }
        let direction = self.direction();
        let block = self.next_block(direction)?;
        let due_ns = match self.work.pace {
            Some(pace) => {
                pace.first_ns.saturating_add((pace.interval_ns * self.begun as f64) as u64)
            }
            None => 0,
        };
        self.begun += 1;
        let offset_bytes = block * self.work.block_bytes;
        let length_bytes = self.work.block_bytes as usize;
        Some(Request { direction, file: 0, offset_bytes, length_bytes, due_ns })
    }

    /// No storage finds two blocks equal, or one that it can make smaller. The buffers hold random
    /// bytes from the beginning; a large block gets marks of its own, a small one is made anew.
    fn fill(&mut self, request: &Request, bytes: &mut [u8]) {
        if bytes.len() <= WHOLLY_NEW_BYTES {
            let turn = self.begun.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            return fill_random(bytes, self.stamp ^ turn, request.offset_bytes);
        }
        let mut mark = self.stamp ^ request.offset_bytes.rotate_left(20) ^ self.begun;
        for place in bytes.chunks_mut(STAMP_BYTES) {
            mark = mark.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
            let length = place.len().min(8);
            place[..length].copy_from_slice(&mark.to_le_bytes()[..length]);
        }
    }

    fn done(&mut self, done: Done<'_>) -> After {
        let direction = done.request.direction;
        let moved = match done.result {
            Ok(moved) => moved,
            Err(error) => {
                self.failure.get_or_insert((direction, error));
                return After::End;
            }
        };
        self.tally.requests += 1;
        let due_ns = done.request.due_ns;
        let is_first = self.work.io_type != IoType::Copy || direction == Direction::Read;
        if due_ns > 0 && is_first && done.submitted_ns > due_ns.saturating_add(LATE_NS) {
            self.tally.late += 1;
        }
        match direction {
            Direction::Read => {
                self.look_for_zeros(&done.bytes[..moved]);
                self.tally.read_bytes += moved as u64;
            }
            Direction::Write => self.tally.written_bytes += moved as u64,
        }
        if moved < done.request.length_bytes {
            let text = "fewer bytes than asked for: the file became shorter";
            self.failure.get_or_insert((direction, io::Error::other(text)));
            return After::End;
        }
        if self.work.io_type == IoType::Copy && direction == Direction::Read {
            // The time of the operation goes with it.
            let write = Request::write(done.request.offset_bytes, moved);
            return After::Then(Request { file: 1, due_ns: begun_ns(&done), ..write });
        }
        self.count(&done, moved as u64);
        After::Next
    }
}

#[cfg(test)]
mod tests {
    use flatout_io::Stop;
    use flatout_io::operations::Operations;

    use super::*;

    fn work(io_type: IoType, blocks: u64) -> Work {
        Work {
            io_type,
            order: Order::Random { seed: 7 },
            split: Split::Contiguous,
            lane: Lane::ONLY,
            block_bytes: 1024,
            range: Range { first: 0, blocks, most_operations: u64::MAX },
            turns: Turns::One,
            read_percent: 70,
            pace: None,
            epoch_ns: 0,
            bin_ns: u64::MAX,
            seed: 1,
            timestamps: Timestamps::Each,
        }
    }

    fn run(work: Work) -> LaneWork {
        let mut lane = LaneWork::new(work);
        let mut null = Operations::null(1024).unwrap();
        null.run(&mut lane, Timestamps::Each, &mut Stop::never()).unwrap();
        lane
    }

    #[test]
    fn one_turn_visits_each_block_once_and_counts_it() {
        let lane = run(work(IoType::Read, 1000));
        assert_eq!((lane.tally.operations, lane.tally.bytes), (1000, 1_024_000));
        assert_eq!(lane.tally.histogram.operations(), 1000);
        // The null engine's buffer holds zeros, and one request in sixteen is looked at.
        assert_eq!((lane.tally.looked_at, lane.tally.zero), (63, 63));
    }

    #[test]
    fn operations_have_a_limit_and_turns_repeat_until_it() {
        let mut limited = Work { turns: Turns::Many, ..work(IoType::Write, 1000) };
        limited.range.most_operations = 2500;
        let lane = run(limited);
        assert_eq!((lane.tally.operations, lane.turn), (2500, 2));
        assert_eq!(lane.tally.written_bytes, 2500 * 1024);
    }

    #[test]
    fn a_mix_keeps_its_share() {
        let lane = run(work(IoType::Mixed, 10_000));
        let share = lane.tally.read_bytes as f64 / lane.tally.bytes as f64;
        assert!((share - 0.7).abs() < 0.02, "{share}");
    }

    #[test]
    fn a_sequential_mix_reads_and_writes_from_the_front_each() {
        let mixed = Work { order: Order::Forward, ..work(IoType::Mixed, 100) };
        let mut lane = LaneWork::new(mixed);
        let requests: Vec<Request> = std::iter::from_fn(|| lane.next()).collect();
        assert_eq!(requests.len(), 100, "as many blocks as the file has");
        for direction in [Direction::Read, Direction::Write] {
            let own = requests.iter().filter(|request| request.direction == direction);
            let blocks: Vec<u64> = own.map(|request| request.offset_bytes / 1024).collect();
            assert!(blocks.len() > 10 && blocks.iter().copied().eq(0..blocks.len() as u64));
        }
        let mut again = Work { turns: Turns::Many, ..mixed };
        again.range.most_operations = 1000;
        assert_eq!(run(again).tally.operations, 1000);
    }

    #[test]
    fn a_copy_is_one_operation_of_two_requests() {
        let lane = run(work(IoType::Copy, 100));
        let Tally { operations, requests, bytes, read_bytes, written_bytes, .. } = lane.tally;
        assert_eq!((operations, requests), (100, 200));
        assert_eq!((bytes, read_bytes, written_bytes), (102_400, 102_400, 102_400));
    }

    #[test]
    fn lanes_share_the_blocks_of_a_random_order() {
        let mut seen = [0; 97];
        for index in 0..4 {
            let lane = Lane { index, count: 4 };
            let mut lane = LaneWork::new(Work { lane, ..work(IoType::Read, 97) });
            while let Some(request) = lane.next() {
                seen[(request.offset_bytes / 1024) as usize] += 1;
            }
        }
        assert!(seen.iter().all(|&times| times == 1));
    }

    #[test]
    fn written_blocks_differ_from_each_other() {
        for block_bytes in [1024, 256 << 10] {
            let range = Range { first: 0, blocks: 20, most_operations: 40 };
            let twice = Work { range, turns: Turns::Many, block_bytes, ..work(IoType::Write, 20) };
            let mut lane = LaneWork::new(twice);
            let mut seen = std::collections::BTreeSet::new();
            let mut buffer = vec![7; block_bytes as usize];
            while let Some(request) = lane.next() {
                lane.fill(&request, &mut buffer);
                for page in buffer.chunks(4096) {
                    assert!(seen.insert(page.to_vec()), "blocks of {block_bytes}");
                }
            }
        }
    }

    #[test]
    fn a_pace_gives_each_operation_its_time() {
        let pace = Some(Pace { first_ns: 1000, interval_ns: 2.5 });
        let mut lane = LaneWork::new(Work { pace, ..work(IoType::Read, 10) });
        let due: Vec<_> = std::iter::from_fn(|| lane.next()).map(|r| r.due_ns).collect();
        assert_eq!(due[..4], [1000, 1002, 1005, 1007]);
    }

    #[test]
    fn operations_that_never_began_are_counted() {
        let pace = Some(Pace { first_ns: 1000, interval_ns: 10.0 });
        let mut lane = LaneWork::new(Work { pace, ..work(IoType::Read, 1000) });
        (0..30).for_each(|_| _ = lane.next());
        lane.count_unstarted(1500);
        assert_eq!(lane.tally.unstarted, 20);
    }

    #[test]
    fn zero_pages_within_a_large_block_are_seen() {
        let mut lane = LaneWork::new(work(IoType::Read, 10));
        let mut block = vec![1; 16 * 4096];
        block[4096..3 * 4096].fill(0);
        lane.tally.requests = 1;
        lane.look_for_zeros(&block);
        assert_eq!((lane.tally.looked_at, lane.tally.zero), (16, 2));
    }

    #[test]
    fn one_word_that_is_not_zero_is_seen_where_it_is_looked_for() {
        assert!(is_zero(&[0; 4096]) && is_zero(&[0; 3]));
        let mut block = [0; 4096];
        block[4096 / WORDS_LOOKED_AT] = 1;
        assert!(!is_zero(&block) && !is_zero(&[0, 0, 1]));
    }
}
