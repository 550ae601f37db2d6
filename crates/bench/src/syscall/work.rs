//! From a row to the loop that does its calls, set up in the thread that will run it.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use flatout_measure::case::TrialError;
use flatout_sys::call::{self, FaultRegion, NopRing};
use rustix::io::Errno;

use super::row::{Call, Row, Variant};
use super::site::WorkFile;

/// Pages touched between two releases: 16 MiB on most machines, and the clock is read twice.
const FAULT_PAGES: usize = 4096;

/// Makes so many calls and returns the time in between that is not theirs.
pub(super) type Loop<'w> = Box<dyn FnMut(u64) -> Result<Duration, TrialError> + 'w>;

/// The file of a thread.
#[derive(Clone, Copy)]
pub(super) enum Source<'w> {
    /// The call takes none.
    None,
    /// A new descriptor of this file.
    Open(&'w WorkFile),
    /// This descriptor, which so many threads use.
    Shared { file: BorrowedFd<'w>, length_bytes: u64, threads: u64 },
}

/// A descriptor, and how many bytes may pass before the position must go back to zero.
struct Handle<'w> {
    file: Held<'w>,
    span_bytes: u64,
}

enum Held<'w> {
    Own(File),
    Shared(BorrowedFd<'w>),
}

impl AsFd for Handle<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.file {
            Held::Own(file) => file.as_fd(),
            Held::Shared(file) => *file,
        }
    }
}

/// Sets up the loop of `row`: opens what it needs, in the calling thread's table.
pub(super) fn prepare<'w>(
    row: &Row,
    source: Source<'w>,
    block_bytes: u64,
) -> Result<Loop<'w>, TrialError> {
    let name = row.call.id();
    let failed = |error| refusal(name, &error);
    Ok(match row.call {
        Call::EmptyFunction => infallible(call::empty_function),
        Call::VdsoClock => simple(name, call::vdso_clock),
        Call::Getppid => simple(name, call::getppid),
        Call::FutexWake => simple(name, call::futex_wake),
        Call::MmapMunmap => simple(name, call::map_unmap),
        Call::ThreadCreateJoin => simple(name, call::thread_create_join),
        Call::ForkExit => simple(name, call::fork_exit),
        Call::MinorFault => faults().map_err(failed)?,
        Call::UringNop => nop_ring(row)?,
        Call::Stat | Call::Statx | Call::OpenClose => lookup(row.call)?,
        Call::Lseek | Call::Fstat => {
            let handle = handle(row, source).map_err(failed)?;
            let on_file = if row.call == Call::Lseek { call::lseek } else { call::fstat };
            simple(name, move |calls| on_file(handle.as_fd(), calls))
        }
        Call::Read | Call::Pread | Call::Write => {
            let handle = handle(row, source).map_err(failed)?;
            bytes(row.call, handle, block_bytes)
        }
        // Two threads, see `pair`.
        Call::FutexPingPong | Call::PipePingPong => infallible(|_| {}),
    })
}

/// What an error of the kernel means for a row.
pub(super) fn refusal(name: &str, error: &io::Error) -> TrialError {
    let text = format!("{name}: {error}");
    if error.kind() == io::ErrorKind::Unsupported {
        return TrialError::Unsupported(format!("{text} (no such call, or a seccomp filter)"));
    }
    TrialError::Failed(text)
}

fn infallible<'w>(work: impl Fn(u64) + 'w) -> Loop<'w> {
    Box::new(move |calls| {
        work(calls);
        Ok(Duration::ZERO)
    })
}

fn simple<'w>(name: &'static str, mut work: impl FnMut(u64) -> io::Result<()> + 'w) -> Loop<'w> {
    Box::new(move |calls| match work(calls) {
        Ok(()) => Ok(Duration::ZERO),
        Err(error) => Err(refusal(name, &error)),
    })
}

fn handle<'w>(row: &Row, source: Source<'w>) -> io::Result<Handle<'w>> {
    if row.variant == Variant::Device {
        let path = format!("/dev/{}", row.device());
        let file = File::options().read(true).write(true).open(path)?;
        return Ok(Handle { file: Held::Own(file), span_bytes: u64::MAX });
    }
    match source {
        Source::None => Err(io::ErrorKind::NotFound.into()),
        Source::Open(file) => {
            Ok(Handle { file: Held::Own(file.open()?), span_bytes: file.length_bytes })
        }
        // Each thread goes back after its share, so the position never passes the end.
        Source::Shared { file, length_bytes, threads } => {
            Ok(Handle { file: Held::Shared(file), span_bytes: length_bytes / threads })
        }
    }
}

/// Reads or writes blocks from start to end, again and again. Going back to the start is one
/// `lseek` per pass over megabytes, which stays in the figure (under a thousandth of it).
fn bytes(which: Call, handle: Handle<'_>, block_bytes: u64) -> Loop<'_> {
    // The limit on block sizes keeps this far below any usize.
    let mut buffer = vec![0x5a; block_bytes as usize];
    let pass_calls = (handle.span_bytes / block_bytes).max(1);
    simple(which.id(), move |calls| {
        let file = handle.as_fd();
        if which == Call::Pread {
            return call::pread(file, &mut buffer, 0, calls);
        }
        let mut left = calls;
        while left > 0 {
            rustix::fs::seek(file, rustix::fs::SeekFrom::Start(0))?;
            let now = left.min(pass_calls);
            match which {
                Call::Read => call::read(file, &mut buffer, now)?,
                _ => call::write(file, &buffer, now)?,
            }
            left -= now;
        }
        Ok(())
    })
}

/// Looks up this program's own file, one path component below its open directory: a regular file
/// that is there on every machine, whatever the depth of the path.
fn lookup<'w>(which: Call) -> Result<Loop<'w>, TrialError> {
    let unsupported = |why: &str| {
        let text = format!("{}: this program's own file cannot be found: {why}", which.id());
        TrialError::Unsupported(text)
    };
    let program = std::env::current_exe().map_err(|error| unsupported(&error.to_string()))?;
    let (Some(directory), Some(name)) = (program.parent(), program.file_name()) else {
        return Err(unsupported("it has no name"));
    };
    let name = CString::new(name.as_bytes()).map_err(|error| unsupported(&error.to_string()))?;
    let directory = File::open(directory).map_err(|error| unsupported(&error.to_string()))?;
    let work = match which {
        Call::Stat => call::stat,
        Call::Statx => call::statx,
        _ => call::open_close,
    };
    Ok(simple(which.id(), move |calls| work(directory.as_fd(), &name, calls)))
}

/// Touches pages; giving them back in between is not timed. The kernel's count of faults must
/// agree, or the touches were no faults.
fn faults<'w>() -> io::Result<Loop<'w>> {
    let mut region = FaultRegion::new(FAULT_PAGES)?;
    Ok(Box::new(move |calls| {
        let mut excluded = Duration::ZERO;
        let mut left = calls;
        let before = FaultRegion::faults_so_far();
        while left > 0 {
            let now = left.min(FAULT_PAGES as u64);
            region.touch(now as usize);
            let pause = Instant::now();
            region.release().map_err(|error| refusal("madvise", &error))?;
            excluded += pause.elapsed();
            left -= now;
        }
        let counted = FaultRegion::faults_so_far() - before;
        if counted < calls {
            return Err(TrialError::Failed(format!(
                "{calls} pages were touched, but the kernel counted {counted} minor faults"
            )));
        }
        Ok(excluded)
    }))
}

fn nop_ring<'w>(row: &Row) -> Result<Loop<'w>, TrialError> {
    let Variant::Batch(batch) = row.variant else {
        return Err(TrialError::Failed("a ring needs the size of its batches".to_owned()));
    };
    let mut ring = NopRing::new(batch).map_err(|error| ring_refusal(&error, ring_sysctl()))?;
    let name = row.call.id();
    Ok(simple(name, move |calls| ring.complete(calls, batch).map(drop)))
}

fn ring_sysctl() -> Option<u8> {
    let text = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").ok()?;
    text.trim().parse().ok()
}

/// Why there is no ring: what cannot be helped is `Unsupported`, anything else has failed.
fn ring_refusal(error: &io::Error, sysctl: Option<u8>) -> TrialError {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    let reason = match (errno, sysctl) {
        (Some(Errno::NOSYS), _) => "the kernel has no io_uring, or a seccomp filter hides it",
        (Some(Errno::PERM), Some(2)) => "the sysctl kernel.io_uring_disabled is 2",
        (Some(Errno::PERM), Some(1)) => {
            "the sysctl kernel.io_uring_disabled is 1 and this process is not in its group"
        }
        (Some(Errno::PERM | Errno::ACCESS), _) => "a seccomp filter or security module refuses it",
        (Some(Errno::NOMEM), _) => "the limit of locked memory or of the control group is too low",
        _ => return TrialError::Failed(format!("io_uring_setup: {error}")),
    };
    TrialError::Unsupported(format!("io_uring_setup: {error}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_ring_is_unsupported_and_says_who_refuses() {
        let expectations = [
            (Errno::NOSYS, None, "seccomp"),
            (Errno::PERM, Some(2), "io_uring_disabled is 2"),
            (Errno::PERM, Some(1), "not in its group"),
            (Errno::PERM, Some(0), "seccomp"),
            (Errno::PERM, None, "seccomp"),
            (Errno::NOMEM, None, "locked memory"),
        ];
        for (errno, sysctl, words) in expectations {
            let error = io::Error::from(errno);
            let TrialError::Unsupported(text) = ring_refusal(&error, sysctl) else {
                panic!("{errno} must be unsupported");
            };
            assert!(text.contains(words), "{text}");
            assert!(text.contains(&errno.raw_os_error().to_string()), "{text}");
        }
        let odd = io::Error::from(Errno::INVAL);
        assert!(matches!(ring_refusal(&odd, None), TrialError::Failed(_)));
    }

    #[test]
    fn a_call_that_the_kernel_lacks_is_unsupported() {
        let lacking = io::Error::from(Errno::NOSYS);
        assert!(matches!(refusal("statx", &lacking), TrialError::Unsupported(_)));
        let broken = io::Error::from(Errno::IO);
        assert!(matches!(refusal("statx", &broken), TrialError::Failed(_)));
    }
}
