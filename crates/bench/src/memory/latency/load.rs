//! Threads that read memory for a share of the time.

use std::cell::RefCell;
use std::hint;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;

use flatout_measure::TrialError;
use flatout_sys::xor::xor32;
use flatout_sys::{AlignedBuffer, fill_random, monotonic_ns};

use crate::workers;

/// Bytes between two pauses: some ten microseconds, a thousandth of a walk.
const PIECE_BYTES: usize = 64 << 10;

/// What the loads read; made when a row first needs it, by the threads that read it.
pub(super) struct Loads {
    /// Memory that all loads together read.
    pub(super) total_bytes: u64,
    buffers: RefCell<Vec<AlignedBuffer>>,
}

/// A counter in lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Counter(AtomicU64);

impl Loads {
    pub(super) fn new(total_bytes: u64) -> Self {
        Self { total_bytes, buffers: RefCell::new(Vec::new()) }
    }

    /// Runs `work` while a thread on each of `cpus` reads random data of a seed in `percent` of the
    /// time. `work` is handed a function that tells the bytes that all of them have read.
    pub(super) fn during<T>(
        &self,
        (percent, seed): (u32, u64),
        cpus: &[usize],
        work: impl FnOnce(&(dyn Fn() -> u64 + Sync)) -> Result<T, TrialError>,
    ) -> Result<T, TrialError> {
        let mut buffers = self.buffers.borrow_mut();
        if buffers.len() != cpus.len() && !cpus.is_empty() {
            *buffers = self.make(cpus, seed)?;
        }
        let counters: Vec<Counter> = cpus.iter().map(|_| Counter::default()).collect();
        let (stop, ready) = (AtomicBool::new(false), AtomicU32::new(0));
        let count = || counters.iter().map(|counter| counter.0.load(Ordering::Relaxed)).sum();
        thread::scope(|scope| {
            // Whatever happens, the loads end.
            let ending = Ending(&stop);
            let mut threads = Vec::new();
            for ((&cpu, buffer), counter) in cpus.iter().zip(buffers.iter()).zip(&counters) {
                let (stop, ready) = (&stop, &ready);
                let reading = move || {
                    let tied = workers::tie_to(cpu);
                    ready.fetch_add(1, Ordering::Release);
                    tied.map(|()| read(buffer.as_slice(), percent, stop, &counter.0))
                };
                threads.push(workers::spawn(scope, reading)?);
            }
            while (ready.load(Ordering::Acquire) as usize) < threads.len() {
                thread::yield_now();
            }
            let result = work(&count);
            drop(ending);
            for thread in threads {
                hint::black_box(workers::join(thread)?);
            }
            result
        })
    }

    fn make(&self, cpus: &[usize], seed: u64) -> Result<Vec<AlignedBuffer>, TrialError> {
        let bytes = (self.total_bytes as usize / cpus.len()).max(2 * PIECE_BYTES);
        let of = |(index, &cpu): (usize, &usize)| {
            workers::on_cpu(cpu, || {
                let mut buffer = AlignedBuffer::new(bytes)?;
                fill_random(buffer.as_mut_slice(), seed.wrapping_add(index as u64), 0);
                Ok(buffer)
            })
        };
        cpus.iter().enumerate().map(of).collect()
    }
}

struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Reads piece after piece until told to stop; each is followed by a pause so long that reading
/// takes `percent` of the time. Gives what proves that it was read.
fn read(buffer: &[u8], percent: u32, stop: &AtomicBool, counter: &AtomicU64) -> u32 {
    let idle_ratio = 100.0 / f64::from(percent.clamp(1, 100)) - 1.0;
    let mut digest = 0;
    let mut now_ns = monotonic_ns();
    for piece in buffer.chunks(PIECE_BYTES).cycle() {
        if stop.load(Ordering::Acquire) {
            break;
        }
        digest ^= xor32(piece);
        counter.fetch_add(piece.len() as u64, Ordering::Relaxed);
        if idle_ratio > 0.0 {
            let end_ns = monotonic_ns();
            let due_ns = end_ns + (end_ns.saturating_sub(now_ns) as f64 * idle_ratio) as u64;
            now_ns = end_ns;
            while now_ns < due_ns && !stop.load(Ordering::Relaxed) {
                hint::spin_loop();
                now_ns = monotonic_ns();
            }
        }
    }
    digest
}

#[cfg(test)]
mod tests {
    use flatout_sys::affinity;

    use super::*;

    #[test]
    fn loads_read_and_end_with_the_work() {
        let loads = Loads::new(1 << 20);
        let cpu = affinity::allowed_cpus().unwrap()[0];
        let full = (100, 1);
        let read = loads.during(full, &[cpu], |count| {
            while count() < 3 << 20 {
                thread::yield_now();
            }
            Ok(count())
        });
        assert!(read.unwrap() >= 3 << 20);
        let failed = loads.during(full, &[cpu], |_| Err::<(), _>(TrialError::Interrupted));
        assert_eq!(failed, Err(TrialError::Interrupted));
        assert_eq!(loads.during(full, &[], |count| Ok(count())), Ok(0));
    }

    #[test]
    fn a_cpu_that_cannot_be_is_an_error() {
        let loads = Loads::new(1 << 20);
        assert!(loads.during((50, 1), &[usize::MAX], |_| Ok(())).is_err());
    }
}
