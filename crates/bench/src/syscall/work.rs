//! From a row to the loop that does its calls, as data that the thread which runs it sets up.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use flatout_io::cause_text;
use flatout_io::operations::uring_refusal;
use flatout_measure::TrialError;
use flatout_sys::call::{Blocks, Entry, Subject, Work};

use super::row::{Call, Row, Variant};
use super::site::WorkFile;
use crate::error::is_refusal;

/// Pages touched between two releases: 16 MiB on most machines, and the clock is read twice.
const FAULT_PAGES: usize = 4096;

/// The file of a thread.
#[derive(Clone, Copy)]
pub(super) enum Source<'w> {
    /// The call takes none, or a device.
    None,
    /// This file, of which so many bytes may pass before the position must go back to zero.
    File { subject: Subject<'w>, span_bytes: u64 },
}

impl<'w> Source<'w> {
    /// The whole of a file, with a position of its own.
    pub(super) fn of(file: &'w WorkFile) -> Self {
        let span_bytes = file.scratch.length_bytes();
        Self::File { subject: Subject::Path(&file.path), span_bytes }
    }
}

/// What rows look up: this program's own file, one path component below its open directory: a
/// regular file that is there on every machine, whatever the depth of the path.
pub(super) struct Target(Option<(File, CString)>);

impl Target {
    /// Opens the directory where the row needs it.
    pub(super) fn of(row: &Row) -> Result<Self, TrialError> {
        if !matches!(row.call, Call::Stat | Call::Statx | Call::OpenClose) {
            return Ok(Self(None));
        }
        let unsupported = |why: &dyn std::fmt::Display| {
            let text = format!("{}: this program's own file cannot be found: {why}", row.call.id());
            TrialError::Unsupported(text)
        };
        let program = std::env::current_exe().map_err(|error| unsupported(&error))?;
        let (Some(directory), Some(name)) = (program.parent(), program.file_name()) else {
            return Err(unsupported(&"it has no name"));
        };
        let name = CString::new(name.as_bytes()).map_err(|error| unsupported(&error))?;
        let directory = File::open(directory).map_err(|error| unsupported(&error))?;
        Ok(Self(Some((directory, name))))
    }

    fn entry(&self, call: Call) -> Result<Entry<'_>, TrialError> {
        let (directory, name) = self.0.as_ref().ok_or_else(|| lacking(call, "a name"))?;
        Ok(Entry { directory: directory.as_fd(), name })
    }
}

/// The loop of `row`.
pub(super) fn of<'w>(
    row: &Row,
    target: &'w Target,
    source: Source<'w>,
    block_bytes: u64,
) -> Result<Work<'w>, TrialError> {
    let call = row.call;
    let (subject, span_bytes) = match (row.variant, source) {
        (Variant::Device, _) => (Ok(Subject::Path(Path::new(row.device_path()))), u64::MAX),
        (_, Source::File { subject, span_bytes }) => (Ok(subject), span_bytes),
        (_, Source::None) => (Err(()), 0),
    };
    let subject = || subject.map_err(|()| lacking(call, "a file"));
    // Going back to the start is one `lseek` per pass, which stays in the figure; `site` says
    // why it does not matter. The limit on block sizes keeps them far below any usize.
    let (pass_calls, bytes) = ((span_bytes / block_bytes).max(1), block_bytes as usize);
    let blocks =
        || Ok::<_, TrialError>(Blocks { subject: subject()?, block_bytes: bytes, pass_calls });
    Ok(match call {
        Call::EmptyFunction => Work::EmptyFunction,
        Call::VdsoClock => Work::VdsoClock,
        Call::Nonexistent => Work::NoSuchCall,
        Call::Getppid => Work::Getppid,
        Call::FutexWake => Work::FutexWake,
        Call::MmapMunmap => Work::MapUnmap,
        Call::ThreadCreateJoin => Work::ThreadCreateJoin,
        Call::ForkExit => Work::ForkExit,
        Call::MinorFault => Work::Faults { pages: FAULT_PAGES },
        Call::UringNop => match row.variant {
            Variant::Batch(batch_requests) => Work::Nops { batch_requests },
            _ => return Err(lacking(call, "the size of its batches")),
        },
        Call::Stat => Work::Stat(target.entry(call)?),
        Call::Statx => Work::Statx(target.entry(call)?),
        Call::OpenClose => Work::OpenClose(target.entry(call)?),
        Call::Lseek => Work::Lseek(subject()?),
        Call::Fstat => Work::Fstat(subject()?),
        Call::Read => Work::Read(blocks()?),
        Call::Write => Work::Write(blocks()?),
        Call::Pread => Work::Pread { subject: subject()?, block_bytes: bytes },
        Call::FutexPingPong | Call::PipePingPong => {
            return Err(lacking(call, "two threads, see `pair`"));
        }
    })
}

fn lacking(call: Call, what: &str) -> TrialError {
    TrialError::Failed(format!("{} needs {what}", call.id()))
}

/// What an error of the kernel means for the rows of a call.
pub(super) fn refusal(call: Call, error: &io::Error) -> TrialError {
    if call == Call::UringNop {
        return match uring_refusal(error) {
            Some(why) => TrialError::Unsupported(format!("io_uring: {why}")),
            None => TrialError::Failed(format!("io_uring: {}", cause_text(error))),
        };
    }
    if is_refusal(error) {
        return TrialError::Unsupported(format!(
            "{} (no such call, or a seccomp filter)",
            cause_text(error)
        ));
    }
    TrialError::Failed(cause_text(error))
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn a_call_that_a_filter_refuses_is_unsupported() {
        for errno in [Errno::PERM, Errno::NOSYS, Errno::ACCESS] {
            let refused = refusal(Call::MinorFault, &io::Error::from(errno));
            assert!(matches!(refused, TrialError::Unsupported(_)), "{refused:?}");
        }
        let odd = io::Error::from(Errno::NOMEM);
        assert!(matches!(refusal(Call::MinorFault, &odd), TrialError::Failed(_)));
    }

    #[test]
    fn a_denied_ring_makes_its_rows_unsupported() {
        for errno in [Errno::PERM, Errno::NOSYS] {
            let denied = io::Error::from(errno);
            assert!(matches!(refusal(Call::UringNop, &denied), TrialError::Unsupported(_)));
        }
        // The kernel refuses a ring without room, which nobody can help but who asks for it.
        let odd = Work::Nops { batch_requests: 0 }.prepare().err().unwrap();
        match refusal(Call::UringNop, &odd) {
            TrialError::Failed(text) => assert!(text.starts_with("io_uring: "), "{text}"),
            TrialError::Unsupported(text) => eprintln!("skipped: {text}"),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn a_call_that_the_kernel_lacks_is_unsupported() {
        let lacking = io::Error::from(Errno::NOSYS);
        assert!(matches!(refusal(Call::Statx, &lacking), TrialError::Unsupported(_)));
        let broken = io::Error::from(Errno::IO);
        // The row says itself which call it is.
        let TrialError::Failed(text) = refusal(Call::Statx, &broken) else { panic!("it is there") };
        assert_eq!(text, "Input/output error");
    }

    #[test]
    fn a_row_without_what_it_needs_is_refused_and_not_measured() {
        let target = Target(None);
        for call in [Call::Read, Call::Lseek, Call::Stat, Call::UringNop, Call::FutexPingPong] {
            let row = Row { call, variant: Variant::Alone, block_bytes: 1 };
            assert!(matches!(of(&row, &target, Source::None, 1), Err(TrialError::Failed(_))));
        }
    }
}
