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

/// What a loop took, on a thread of its own.
#[derive(Debug, Clone, Copy)]
pub struct Timed {
    /// Whether the thread was really apart.
    pub table: DescriptorTable,
    /// From the start of the calls to their end.
    pub wall: Duration,
    /// What they would have taken had all of them been as fast as in the quiet quarter: the lower
    /// quartile of all windows, each less what is not the calls'.
    pub quiet: Duration,
    /// The part of it that is not the calls'.
    pub excluded: Duration,
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
        let (start, mut excluded) = (Instant::now(), Duration::ZERO);
        let quiet = quiet_time(calls, |share| {
            let begun = Instant::now();
            let not_theirs = work(share)?;
            excluded += not_theirs;
            Ok(begun.elapsed().saturating_sub(not_theirs))
        })?;
        let wall = start.elapsed();
        Ok(Timed { table, wall, quiet, excluded, empty_loop: empty_loop_time(calls) })
    };
    thread::scope(|scope| {
        let thread = run_queue::spawn(scope, thread::Builder::new(), time).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot start a thread: {}", cause_text(&error)))
        })?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// What so many calls take at the pace of the quiet quarter of [`WINDOWS`]; `time` makes and times some.
fn quiet_time(
    calls: u64,
    mut time: impl FnMut(u64) -> io::Result<Duration>,
) -> io::Result<Duration> {
    let count = (calls / LEAST_CALLS).clamp(1, WINDOWS);
    let mut paces = Vec::with_capacity(count as usize);
    for window in 0..count {
        let share = calls * (window + 1) / count - calls * window / count;
        paces.push(time(share)?.as_secs_f64() / share.max(1) as f64);
    }
    paces.sort_by(f64::total_cmp);
    Ok(Duration::from_secs_f64(paces[(paces.len() - 1) / 4] * calls as f64))
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
        assert_eq!(targets.filter(|target| target == file.path()).count(), 1);
    }

    #[test]
    fn windows_that_something_disturbed_do_not_make_the_quiet_time() {
        let mut window = 0;
        let pace = |share: u64| {
            window += 1;
            Ok(Duration::from_micros(share * if window % 3 == 0 { 9 } else { 1 }))
        };
        assert_eq!(quiet_time(3200, pace).unwrap(), Duration::from_micros(3200));
        let as_a_whole = |share| Ok(Duration::from_micros(if share == 5 { 50 } else { share }));
        assert_eq!(
            quiet_time(5, as_a_whole).unwrap(),
            Duration::from_micros(50),
            "of few all count"
        );
        for calls in [1, 7, 1000] {
            let timed = time_apart(Work::Getppid, 1, calls).unwrap();
            assert!(timed.quiet <= 2 * timed.wall && timed.quiet > Duration::ZERO);
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
