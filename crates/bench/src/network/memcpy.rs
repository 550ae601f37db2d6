//! What loopback is held against: blocks copied from core to core through memory that both share,
//! with no kernel in between.
//!
//! Sending with a copy is two copies of each byte, into a slot of a ring by one thread and out of
//! it by another; sending from a file in memory is one, by the receiver. The hand-over of a slot
//! is two atomic stores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use flatout_measure::{Facts, Sample, TrialError};
use flatout_sys::{monotonic_ns, run_queue};

use super::flow::bulk::random_block;
use crate::cores;
use crate::fact::BYTES;
use crate::workers::{self, lock};

/// Bytes of a block.
pub const BLOCK_BYTES: usize = 64 << 10;
/// Blocks between the two threads: as much as a socket's usual buffer.
const SLOTS: usize = 8;

/// How long the first block may take.
const MOST_NS: u64 = 5_000_000_000;

/// A ring of blocks. Each slot belongs to one thread at a time, so its lock is never waited for.
struct Blocks {
    slots: Vec<Mutex<Vec<u8>>>,
    filled: AtomicU64,
    emptied: AtomicU64,
    stop: AtomicBool,
}

/// How many copies each byte goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copies {
    /// Out of shared memory.
    One = 1,
    /// Into it, and out.
    Two,
}

/// One trial: `warm_ns` and then `window_ns` of copying, by the CPUs of a turn.
///
/// Errors: threads cannot be started or tied.
pub fn trial(copies: Copies, times_ns: [u64; 2], turn: u16) -> Result<Sample, TrialError> {
    let [warm_ns, window_ns] = times_ns;
    workers::can_tie()?;
    let cpus = cores::in_turn(turn.into())?;
    let [first, second, ..] = cpus[..] else {
        return Err(TrialError::Unsupported("two CPUs are needed, one is allowed".to_owned()));
    };
    let source = random_block(BLOCK_BYTES)?;
    let blocks = Blocks {
        slots: (0..SLOTS).map(|_| Mutex::new(source.as_slice().to_vec())).collect(),
        filled: AtomicU64::new(0),
        emptied: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    };
    let (blocks, block) = (&blocks, source.as_slice());
    thread::scope(|scope| {
        let tied = move |cpu| {
            workers::tie_to(cpu).inspect_err(|_| blocks.stop.store(true, Ordering::Relaxed))
        };
        let write = move || tied(first).map(|()| blocks.fill(block, copies));
        let read = move || tied(second).map(|()| blocks.empty());
        let writer = run_queue::spawn(scope, thread::Builder::new(), write);
        let reader = run_queue::spawn(scope, thread::Builder::new(), read);
        let count = || (monotonic_ns(), blocks.emptied.load(Ordering::Relaxed));
        flatout_sys::thread::sleep(Duration::from_nanos(warm_ns));
        let (start_ns, before) = count();
        flatout_sys::thread::sleep(Duration::from_nanos(window_ns));
        let (mut end_ns, mut after) = count();
        // Where others have the CPUs, it may take longer until a block has gone over.
        while after == before && end_ns - start_ns < MOST_NS {
            flatout_sys::thread::sleep(Duration::from_nanos(window_ns));
            (end_ns, after) = count();
        }
        blocks.stop.store(true, Ordering::Relaxed);
        for thread in [writer, reader] {
            workers::join(thread?)?;
        }
        let bytes = (after - before) * BLOCK_BYTES as u64;
        let elapsed_ns = end_ns.saturating_sub(start_ns);
        let facts = Facts::default().with(BYTES, bytes);
        Ok(Sample { amount: bytes as f64, elapsed_ns, facts, ..Sample::default() })
    })
}

impl Blocks {
    fn fill(&self, source: &[u8], copies: Copies) {
        let mut next = 0_u64;
        while !self.stop.load(Ordering::Relaxed) {
            if next - self.emptied.load(Ordering::Acquire) >= SLOTS as u64 {
                std::hint::spin_loop();
                continue;
            }
            if copies == Copies::Two {
                self.slot(next).copy_from_slice(source);
            }
            next += 1;
            self.filled.store(next, Ordering::Release);
        }
    }

    fn empty(&self) {
        let mut target = vec![0; BLOCK_BYTES];
        let mut next = 0_u64;
        while !self.stop.load(Ordering::Relaxed) {
            if next == self.filled.load(Ordering::Acquire) {
                std::hint::spin_loop();
                continue;
            }
            target.copy_from_slice(&self.slot(next));
            std::hint::black_box(&mut target);
            next += 1;
            self.emptied.store(next, Ordering::Release);
        }
    }

    fn slot(&self, number: u64) -> std::sync::MutexGuard<'_, Vec<u8>> {
        lock(&self.slots[(number % SLOTS as u64) as usize])
    }
}

#[cfg(test)]
mod tests {
    use flatout_sys::affinity;

    use super::*;
    use crate::tests::waiting;

    #[test]
    fn copies_tell_that_they_waited() {
        if affinity::allowed_cpus().unwrap().len() > 1 {
            let copy = || _ = trial(Copies::Two, [1_000_000, 5_000_000], 0).unwrap();
            let test = "network::memcpy::tests::copies_tell_that_they_waited";
            waiting::is_seen(test, vec![Box::new(copy)]);
        }
    }

    #[test]
    fn blocks_go_from_core_to_core() {
        for copies in [Copies::One, Copies::Two] {
            match trial(copies, [1_000_000, 5_000_000], 1) {
                Ok(sample) => assert!(sample.amount > 0.0 && sample.elapsed_ns >= 5_000_000),
                Err(TrialError::Unsupported(why)) => eprintln!("skipped: {why}"),
                Err(error) => panic!("{error}"),
            }
        }
    }
}
