//! Running a program and accounting for it exactly: its time, its CPU time, its memory.
//!
//! The program gets a process group of its own, nothing to read, and pipes that are drained; it
//! ends when we end. Its clock begins at the stop after execve(2), before its first instruction.
//! Its memory is what `/proc` says at its exit, because getrusage(2) says too much: a child takes
//! the high-water mark of its parent over. Both need ptrace(2); without it the account says so.
//!
//! What the thread that starts and traces the program does: `process/trace.rs`.

mod memory;
mod trace;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use crate::cancel::{self, CancelToken, Ready};
use crate::cause::answered;
use crate::clock::monotonic_ns;

pub use memory::MemoryOf;
use trace::{Birth, Leader, Started};

/// The end of standard error that is kept: what a program says last is why it ended.
const STDERR_BYTES: usize = 64 << 10;
/// What a pipe may hold, so that a program that writes much seldom waits for us.
const PIPE_BYTES: usize = 1 << 20;
/// Bytes taken out of a pipe at a time.
const CHUNK_BYTES: usize = 64 << 10;
/// Time between two looks at a token that no signal sets.
const LOOK_EVERY_NS: u64 = 100_000_000;
/// Time that a program has to end after SIGTERM, before SIGKILL.
pub const GRACE_NS: u64 = 2_000_000_000;

/// What is run.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    /// Program and arguments; the program is looked for along `PATH` unless it has a slash.
    pub argv: &'a [OsString],
    /// Bytes of standard output that are kept; more is read and thrown away.
    pub stdout_bytes: usize,
}

/// What ends a program before it ends by itself.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Time that it may take; `None`: any.
    pub time_ns: Option<u64>,
    /// Whether somebody wants to stop.
    pub cancel: CancelToken,
}

/// Who ended a program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum End {
    /// It ended by itself, for better or worse.
    #[default]
    Itself,
    /// We did, because its time was over.
    TimeOver,
    /// We did, because somebody wanted to stop.
    Cancelled,
}

/// What a program cost, and what it left behind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account {
    /// What it wrote to standard output, as far as it is kept.
    pub stdout: Vec<u8>,
    /// The end of what it wrote to standard error.
    pub stderr: Vec<u8>,
    /// Exit code; 128 + number of the signal that killed it.
    pub exit_code: i32,
    /// From the stop before its first instruction to its end; from before the fork where ptrace
    /// was refused.
    pub elapsed_ns: u64,
    /// CPU time in user mode, with that of children which it waited for.
    pub user_ns: u64,
    /// CPU time in the kernel, likewise.
    pub system_ns: u64,
    /// Largest resident set.
    pub peak_memory_bytes: u64,
    /// Whose resident set that is.
    pub peak_memory_of: MemoryOf,
    /// Who ended it.
    pub end: End,
}

/// Runs a program to its end, and everything that it leaves in its process group with it.
///
/// Errors: it cannot be started. Cost: a thread, a few system calls, and for the program a stop at
/// its start, at its end and at each signal that it gets, of some 10 µs each.
pub fn run(program: &Program<'_>, limits: &Limits) -> io::Result<Account> {
    let started = trace::start(program)?;
    let leader = started.birth.leader.clone();
    let account = supervise(started, program.stdout_bytes, limits);
    if account.is_err() {
        // Whatever went wrong here, nothing is left running. What has ended takes no notice.
        leader.signal(libc::SIGKILL);
    }
    account
}

/// Has a program asked to end, by SIGTERM, when the thread that starts it does.
pub fn end_with_us(command: &mut Command) {
    let prepare = || {
        // SAFETY: a plain system call on integers.
        answered(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) }).map(drop)
    };
    // SAFETY: what runs between fork(2) and execve(2) is one system call, which takes no lock and
    // no memory.
    unsafe { command.pre_exec(prepare) };
}

/// Drains the pipes of a program until it ends or has to.
fn supervise(started: Started, stdout_bytes: usize, limits: &Limits) -> io::Result<Account> {
    let started_ns = monotonic_ns();
    let Started { birth: Birth { leader, stdout, stderr }, ended, result } = started;
    let mut capture = Capture::new(stdout, stderr, stdout_bytes)?;
    let end = loop {
        let passed_ns = monotonic_ns().saturating_sub(started_ns);
        let left_ns = limits.time_ns.map_or(u64::MAX, |limit| limit.saturating_sub(passed_ns));
        if limits.cancel.is_cancelled() {
            break End::Cancelled;
        }
        if left_ns == 0 {
            break End::TimeOver;
        }
        match capture.wait(ended.as_fd(), left_ns.min(LOOK_EVERY_NS))? {
            // A signal that is not meant for us wakes us too.
            Ready::Cancelled if !limits.cancel.is_cancelled() => {
                crate::thread::sleep(Duration::from_millis(1));
            }
            Ready::Cancelled | Ready::TimedOut => {}
            Ready::Readable => {
                capture.drain()?;
                // The other end of the pipe is closed.
                if matches!(rustix::io::read(&ended, &mut [0; 1]), Ok(0)) {
                    break End::Itself;
                }
            }
        }
    };
    let account = match end {
        End::Itself => result.recv().map_err(io::Error::other)?,
        End::TimeOver | End::Cancelled => put_down(&leader, &mut capture, &result)?,
    }?;
    capture.drain()?;
    let Capture { out: stdout, err: stderr, .. } = capture;
    Ok(Account { stdout, stderr, end, ..account })
}

/// Ends a program: SIGTERM to its group, SIGKILL when that is not enough. Its output is drained
/// meanwhile, for it may have to write before it ends.
fn put_down(
    leader: &Leader,
    capture: &mut Capture,
    result: &Receiver<io::Result<Account>>,
) -> io::Result<io::Result<Account>> {
    /// Time between two looks whether it has ended.
    const STEP: Duration = Duration::from_millis(5);
    leader.signal(libc::SIGTERM);
    let deadline_ns = monotonic_ns().saturating_add(GRACE_NS);
    let mut killed = false;
    loop {
        match result.recv_timeout(STEP) {
            Ok(account) => return Ok(account),
            Err(error @ RecvTimeoutError::Disconnected) => return Err(io::Error::other(error)),
            Err(RecvTimeoutError::Timeout) => capture.drain()?,
        }
        if !killed && monotonic_ns() >= deadline_ns {
            leader.signal(libc::SIGKILL);
            killed = true;
        }
    }
}

/// The pipes of a program, and what came out of them.
struct Capture {
    stdout: Option<File>,
    stderr: Option<File>,
    out: Vec<u8>,
    err: Vec<u8>,
    out_bytes: usize,
    chunk: Vec<u8>,
}

impl Capture {
    fn new(stdout: File, stderr: File, out_bytes: usize) -> io::Result<Self> {
        for pipe in [&stdout, &stderr] {
            let flags = rustix::fs::fcntl_getfl(pipe)?;
            rustix::fs::fcntl_setfl(pipe, flags | rustix::fs::OFlags::NONBLOCK)?;
            // Where many pipes are open the kernel refuses; the program waits more often then.
            // SAFETY: F_SETPIPE_SZ takes an integer and touches no memory of ours.
            unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETPIPE_SZ, PIPE_BYTES as libc::c_int) };
        }
        let (stdout, stderr) = (Some(stdout), Some(stderr));
        let chunk = vec![0; CHUNK_BYTES];
        Ok(Self { stdout, stderr, out: Vec::new(), err: Vec::new(), out_bytes, chunk })
    }

    /// Waits until there is something to drain or `other` can be read.
    fn wait(&self, other: BorrowedFd<'_>, timeout_ns: u64) -> io::Result<Ready> {
        let pipes = [&self.stdout, &self.stderr];
        let open = pipes.into_iter().flatten().map(AsFd::as_fd);
        let sources: Vec<_> = open.chain([other]).collect();
        cancel::wait_any_readable(&sources, Some(timeout_ns))
    }

    /// Takes out of both pipes what is in them, and no more: one that is filled as fast as it is
    /// emptied would keep us from everything else.
    fn drain(&mut self) -> io::Result<()> {
        let most = self.out_bytes;
        drain(&mut self.stdout, &mut self.chunk, |bytes| {
            let room = most.saturating_sub(self.out.len()).min(bytes.len());
            self.out.extend_from_slice(&bytes[..room]);
        })?;
        drain(&mut self.stderr, &mut self.chunk, |bytes| {
            self.err.extend_from_slice(bytes);
            let surplus = self.err.len().saturating_sub(STDERR_BYTES);
            self.err.drain(..surplus);
        })
    }
}

/// Reads what a pipe can hold, at most; closes it at its end.
fn drain(pipe: &mut Option<File>, chunk: &mut [u8], mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let mut drained_bytes = 0;
    while let Some(file) = pipe.as_ref().filter(|_| drained_bytes < PIPE_BYTES) {
        match rustix::io::read(file, &mut *chunk) {
            Ok(0) => *pipe = None,
            Ok(got) => {
                drained_bytes += got;
                take(&chunk[..got]);
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => break,
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
