//! A loop of calls as data: what is called, on what. Setting it up opens what it needs, so it is
//! set up in the thread that will run it.
//!
//! Data and not a closure, because [`super::apart`] may run nothing that it does not know.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{SeekFrom, seek};

use super::mapping::FaultRegion;
use super::path::Attributes;
use super::{baseline, descriptor, hand_over, mapping, path, process, ring};

/// The file that a loop works on.
#[derive(Debug, Clone, Copy)]
pub enum Subject<'a> {
    /// Opened anew for reading and writing, hence with a position of its own.
    Path(&'a Path),
    /// This descriptor, as it is; others may use it at the same time.
    Shared(BorrowedFd<'a>),
}

/// A file below an open directory.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// The open directory.
    pub directory: BorrowedFd<'a>,
    /// One path component.
    pub name: &'a CStr,
}

/// Blocks at the moving position of a file.
#[derive(Debug, Clone, Copy)]
pub struct Blocks<'a> {
    /// The file.
    pub subject: Subject<'a>,
    /// Bytes of each call.
    pub block_bytes: usize,
    /// Calls from the start of the file on, before the position goes back there by one `lseek`;
    /// at least 1.
    pub pass_calls: u64,
}

/// What a loop calls.
#[derive(Debug, Clone, Copy)]
pub enum Work<'a> {
    /// A function without body: no system call.
    EmptyFunction,
    /// The monotonic clock through the vDSO.
    VdsoClock,
    /// A call that does not exist.
    NoSuchCall,
    /// `getppid`.
    Getppid,
    /// A futex on which nobody waits.
    FutexWake,
    /// `mmap` and `munmap` of a page.
    MapUnmap,
    /// A thread that returns at once, and the join.
    ThreadCreateJoin,
    /// A process that exits at once, and the wait.
    ForkExit,
    /// First touches of so many pages, which are then given back.
    Faults {
        /// Pages touched between two releases, at least 1.
        pages: usize,
    },
    /// No-operation requests of io_uring.
    Nops {
        /// Requests per system call.
        batch_requests: u32,
    },
    /// `newfstatat` of a name.
    Stat(Entry<'a>),
    /// `statx` of a name.
    Statx(Entry<'a>),
    /// `openat` of a name, and `close`.
    OpenClose(Entry<'a>),
    /// `lseek` to one position after the other.
    Lseek(Subject<'a>),
    /// `fstat`.
    Fstat(Subject<'a>),
    /// `read`.
    Read(Blocks<'a>),
    /// `write`.
    Write(Blocks<'a>),
    /// `pread64` of one block after the other, from the start again at the end of the file.
    Pread {
        /// The file.
        subject: Subject<'a>,
        /// Bytes of each call.
        block_bytes: usize,
    },
}

/// Makes so many calls and returns the time in between that is not theirs.
pub type Loop<'a> = Box<dyn FnMut(u64) -> io::Result<Duration> + 'a>;

impl<'a> Work<'a> {
    /// Opens and allocates what the loop needs, for the calling thread.
    ///
    /// # Errors
    /// The kernel's; for `Nops` that of `io_uring_setup`: `ENOSYS` or `EPERM` where the kernel, a
    /// sysctl or a seccomp filter does not grant rings.
    pub fn prepare(self) -> io::Result<Loop<'a>> {
        Ok(match self {
            Self::EmptyFunction => simple(|calls| {
                baseline::empty_function(calls);
                Ok(())
            }),
            Self::VdsoClock => simple(baseline::vdso_clock),
            Self::NoSuchCall => simple(process::no_such_call),
            Self::Getppid => simple(process::getppid),
            Self::FutexWake => simple(hand_over::futex_wake),
            Self::MapUnmap => simple(mapping::map_unmap),
            Self::ThreadCreateJoin => simple(process::thread_create_join),
            Self::ForkExit => simple(process::fork_exit),
            Self::Faults { pages } => faults(pages)?,
            Self::Nops { batch_requests } => {
                let mut ring = ring::NopRing::new(batch_requests)?;
                simple(move |calls| ring.complete(calls, batch_requests).map(drop))
            }
            Self::Stat(Entry { directory, name }) => {
                let mut room = Attributes::new();
                simple(move |calls| path::stat(directory, name, &mut room, calls))
            }
            Self::Statx(Entry { directory, name }) => {
                let mut room = Attributes::new();
                simple(move |calls| path::statx(directory, name, &mut room, calls))
            }
            Self::OpenClose(Entry { directory, name }) => {
                simple(move |calls| path::open_close(directory, name, calls))
            }
            Self::Lseek(subject) => {
                let file = Held::open(subject)?;
                simple(move |calls| descriptor::lseek(file.as_fd(), calls))
            }
            Self::Fstat(subject) => {
                let file = Held::open(subject)?;
                let mut room = Attributes::new();
                simple(move |calls| descriptor::fstat(file.as_fd(), &mut room, calls))
            }
            Self::Read(blocks) => {
                let mut buffer = vec![0; blocks.block_bytes];
                passes(blocks, move |file, calls| descriptor::read(file, &mut buffer, calls))?
            }
            Self::Write(blocks) => {
                let bytes = vec![0x5a; blocks.block_bytes];
                passes(blocks, move |file, calls| descriptor::write(file, &bytes, calls))?
            }
            Self::Pread { subject, block_bytes } => {
                let file = Held::open(subject)?;
                let mut buffer = vec![0; block_bytes];
                let span_bytes = rustix::fs::fstat(file.as_fd())?.st_size as u64;
                simple(move |calls| descriptor::pread(file.as_fd(), &mut buffer, span_bytes, calls))
            }
        })
    }
}

enum Held<'a> {
    Own(File),
    Shared(BorrowedFd<'a>),
}

impl<'a> Held<'a> {
    fn open(subject: Subject<'a>) -> io::Result<Self> {
        Ok(match subject {
            Subject::Path(path) => Self::Own(File::options().read(true).write(true).open(path)?),
            Subject::Shared(file) => Self::Shared(file),
        })
    }
}

impl AsFd for Held<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Own(file) => file.as_fd(),
            Self::Shared(file) => *file,
        }
    }
}

fn simple<'a>(mut work: impl FnMut(u64) -> io::Result<()> + 'a) -> Loop<'a> {
    Box::new(move |calls| work(calls).map(|()| Duration::ZERO))
}

/// Goes through the blocks of a pass again and again.
fn passes<'a>(
    blocks: Blocks<'a>,
    mut run: impl FnMut(BorrowedFd<'_>, u64) -> io::Result<()> + 'a,
) -> io::Result<Loop<'a>> {
    let held = Held::open(blocks.subject)?;
    let pass_calls = blocks.pass_calls.max(1);
    Ok(simple(move |calls| {
        let file = held.as_fd();
        let mut left = calls;
        while left > 0 {
            seek(file, SeekFrom::Start(0))?;
            let now = left.min(pass_calls);
            run(file, now)?;
            left -= now;
        }
        Ok(())
    }))
}

/// Touches pages; giving them back in between is excluded. The kernel's count of faults must
/// agree, or the touches were no faults.
fn faults<'a>(pages: usize) -> io::Result<Loop<'a>> {
    let pages = pages.max(1);
    let mut region = FaultRegion::new(pages)?;
    Ok(Box::new(move |calls| {
        let mut excluded = Duration::ZERO;
        let mut left = calls;
        let before = FaultRegion::faults_so_far();
        while left > 0 {
            let now = left.min(pages as u64);
            region.touch(now as usize);
            let pause = Instant::now();
            region.release()?;
            excluded += pause.elapsed();
            left -= now;
        }
        let counted = FaultRegion::faults_so_far().saturating_sub(before);
        if counted < calls {
            return Err(io::Error::other(format!(
                "{calls} pages were touched, but the kernel counted {counted} minor faults"
            )));
        }
        Ok(excluded)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_position_goes_back_before_the_end_of_the_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [7; 12]).unwrap();
        let blocks = Blocks { subject: Subject::Path(file.path()), block_bytes: 5, pass_calls: 2 };
        Work::Read(blocks).prepare().unwrap()(7).unwrap();
        Work::Write(blocks).prepare().unwrap()(7).unwrap();
        assert_eq!(std::fs::metadata(file.path()).unwrap().len(), 12, "no write beyond the end");
        let past_the_end = Blocks { pass_calls: 3, ..blocks };
        assert!(Work::Read(past_the_end).prepare().unwrap()(3).is_err());
    }

    #[test]
    fn a_file_that_is_not_there_is_an_error_of_the_setting_up() {
        let missing = Subject::Path(Path::new("/nowhere/at/all"));
        let error = Work::Lseek(missing).prepare().err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn time_to_give_pages_back_is_excluded() {
        let mut work = Work::Faults { pages: 16 }.prepare().unwrap();
        assert!(work(40).unwrap() > Duration::ZERO);
        assert_eq!(Work::Getppid.prepare().unwrap()(40).unwrap(), Duration::ZERO);
    }
}
