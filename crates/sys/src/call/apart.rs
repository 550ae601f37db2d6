//! A loop in a thread that shares no descriptor table with the rest of the process.
//!
//! In a process with several threads each call on a descriptor counts references and may take
//! the lock of the file position; a program with one thread pays neither. [`time_apart`] gives a
//! loop the conditions of the latter, whatever other threads the process has.
//!
//! A descriptor number means one file inside and another outside, so no descriptor may cross the
//! border. A closure of the caller's could carry one over; hence only a [`Work`] runs here, whose
//! code stands in this room.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use super::baseline::empty_loop_time;
use super::work::Work;
use crate::cause::cause_text;
use crate::issue_width;
use crate::run_queue;

/// Windows into which the calls are divided. Of one trial of 30 ms each has 1 ms: an SMT sibling of
/// another guest comes and goes within that, and one interrupt is not seen in a quarter of them.
pub const WINDOWS: u64 = 32;
/// Calls of a window at least. Calls differ by themselves: with two or three forks in each, the quiet
/// quarter was 13 % below all of the time of a quiet run (AMD EPYC, family 25, 2026-11-26).
const LEAST_CALLS: u64 = 8;

/// Who can see the descriptors that a loop opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DescriptorTable {
    /// Only the thread itself.
    Own,
    /// All threads of the process: `unshare` was refused, as some containers do.
    Shared,
}

/// Some of the calls of a loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Calls that were made.
    pub calls: u64,
    /// What they took.
    pub elapsed: Duration,
    /// Instructions per cycle that the core began right after them, see [`issue_width`]; `None` on a kind
    /// of CPU that has no such code.
    pub issued_per_cycle: Option<f64>,
}

impl Window {
    /// Nanoseconds of a call.
    pub fn call_ns(&self) -> f64 {
        self.elapsed.as_nanos() as f64 / self.calls.max(1) as f64
    }
}

/// What a loop took, on a thread of its own.
#[derive(Debug, Clone)]
pub struct Timed {
    /// Whether the thread was really apart.
    pub table: DescriptorTable,
    /// From the start of the calls to their end.
    pub wall: Duration,
    /// The part of it that is not the calls'.
    pub excluded: Duration,
    /// The calls in their order, each window less what is not the calls'.
    pub windows: Vec<Window>,
    /// An empty loop of as many turns, on the same thread.
    pub empty_loop: Duration,
}

/// Sets `work` up on a new thread with a descriptor table of its own, makes `warm_up_calls`, then
/// times `calls` in windows, and waits for the thread.
///
/// # Errors
/// The kernel's: of starting the thread, of setting up, of the calls.
///
/// # Panics
/// If the loop panics.
pub fn time_apart(work: Work<'_>, warm_up_calls: u64, calls: u64) -> io::Result<Timed> {
    let time = move || {
        // SAFETY: what runs on this thread is `Work`, of this room: it closes no descriptor that
        // it did not open itself, keeps those that it opened, and returns durations only.
        let table = unsafe { unshare_table() };
        let mut work = work.prepare()?;
        work(warm_up_calls)?;
        let start = Instant::now();
        let windows = in_windows(calls, |share| {
            let begun = Instant::now();
            let not_theirs = work(share)?;
            Ok(begun.elapsed().saturating_sub(not_theirs))
        })?;
        let wall = start.elapsed();
        let excluded = wall.saturating_sub(windows.iter().map(|window| window.elapsed).sum());
        Ok(Timed { table, wall, excluded, windows, empty_loop: empty_loop_time(calls) })
    };
    thread::scope(|scope| {
        let thread = run_queue::spawn(scope, thread::Builder::new(), time).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot start a thread: {}", cause_text(&error)))
        })?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Divides so many calls into at most [`WINDOWS`] with a probe of the core after each; `time` makes and
/// times some.
fn in_windows(
    calls: u64,
    mut time: impl FnMut(u64) -> io::Result<Duration>,
) -> io::Result<Vec<Window>> {
    let count = (calls / LEAST_CALLS).clamp(1, WINDOWS);
    let window = |window| {
        let share = calls * (window + 1) / count - calls * window / count;
        let elapsed = time(share)?;
        let issued_per_cycle = issue_width::measure();
        Ok(Window { calls: share, elapsed, issued_per_cycle })
    };
    (0..count).map(window).collect()
}

/// Gives the calling thread a copy of the descriptor table for its own.
///
/// # Safety
/// The thread must let no descriptor out that it opens from now on, and close none that came from
/// outside.
unsafe fn unshare_table() -> DescriptorTable {
    // SAFETY: the call takes no pointer; what it means for descriptors is the caller's contract.
    match unsafe { libc::unshare(libc::CLONE_FILES) } {
        0 => DescriptorTable::Own,
        _ => DescriptorTable::Shared,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::work::{Blocks, Subject};
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::path::Path;

    #[test]
    fn what_is_opened_apart_leaves_the_table_of_the_process_alone() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for _ in 0..50 {
            time_apart(Work::Fstat(Subject::Path(file.path())), 1, 1).unwrap();
        }
        let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let targets = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        // That of this test alone.
        let path = file.path().canonicalize().unwrap();
        assert_eq!(targets.filter(|target| *target == path).count(), 1);
    }

    #[test]
    fn calls_are_divided_into_windows_of_about_as_many() {
        for (calls, count) in [(1, 1), (7, 1), (100, 12), (3_205, 32)] {
            let mut made = 0;
            let windows = in_windows(calls, |share| {
                made += share;
                Ok(Duration::from_micros(share))
            });
            let windows = windows.unwrap();
            assert_eq!((windows.len(), made), (count, calls));
            assert!(windows.iter().all(|window| window.call_ns() == 1_000.0));
            let timed = time_apart(Work::Getppid, 1, calls).unwrap();
            assert!(timed.wall > timed.excluded && timed.windows.len() == count);
        }
    }

    #[test]
    fn a_descriptor_of_the_process_is_there_and_stays_open() {
        let file = File::options().read(true).write(true).open("/dev/zero").unwrap();
        let subject = Subject::Shared(file.as_fd());
        let blocks = Blocks { subject, block_bytes: 3, pass_calls: u64::MAX };
        let timed = time_apart(Work::Read(blocks), 2, 50).unwrap();
        assert!(timed.wall > timed.excluded);
        assert!(file.metadata().is_ok());
    }

    #[test]
    fn an_error_apart_reaches_the_caller() {
        let missing = Subject::Path(Path::new("/nowhere"));
        let error = time_apart(Work::Fstat(missing), 1, 1).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
    }
}
