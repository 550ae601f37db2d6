//! Holds a program up at chosen system calls, so that a test can do something in between.
//!
//! A seccomp filter sends such a call to a listener (seccomp_unotify(2)), which belongs to whoever
//! started the program; the thread waits until the listener lets the call happen. Other threads go
//! on. Nothing is answered in the kernel's place.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::Timespec;

use super::filter;

/// A call that has not happened yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop {
    id: u64,
    /// The thread, by its number in /proc.
    pub thread: u32,
    /// The call.
    pub number: libc::c_long,
    /// What the program passed.
    pub arguments: [u64; 6],
}

/// Where the listener of a program will arrive that has not been started.
#[derive(Debug)]
pub struct Expected(OwnedFd);

/// Where calls of a program arrive.
#[derive(Debug)]
pub struct Listener {
    calls: OwnedFd,
    /// Tells its end; `calls` does before Linux 6.11 only once it has been waited for.
    process: OwnedFd,
}

/// Makes `command` stop at the given calls. Those with which a program is started (execve(2),
/// sendmsg(2)) cannot be among them: nobody listens yet.
///
/// Errors: there is no pair of sockets to be had.
pub fn supervise(command: &mut Command, calls: &[libc::c_long]) -> io::Result<Expected> {
    let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
    let (ours, theirs) = socketpair(family, kind, SocketFlags::CLOEXEC, None)?;
    let program = filter(calls.iter().map(|&call| (call, libc::SECCOMP_RET_USER_NOTIF)));
    // SAFETY: between fork and exec the closure makes only system calls on memory that it owns or
    // that lies on its stack; it neither allocates nor takes a lock.
    unsafe {
        command.pre_exec(move || {
            let listener = install(&program)?;
            hand_over(theirs.as_fd(), listener)
        });
    }
    Ok(Expected(ours))
}

/// Installs a filter for this process and returns its listener, which execve(2) closes here: close(2)
/// may be one of the calls that are held up already.
fn install(program: &[libc::sock_filter]) -> io::Result<BorrowedFd<'static>> {
    let header =
        libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    let ask = |flags: libc::c_ulong| {
        let mode = libc::SECCOMP_SET_MODE_FILTER;
        // SAFETY: the call only reads `header` and what it points at, which outlives the call.
        unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, &raw const header) }
    };
    // SAFETY: takes integers only. It is what lets a process without privilege install a filter.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // Before Linux 5.19 a signal makes the held call begin again, which is another stop.
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    let mut listener = ask(flags | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
    if listener < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL) {
        listener = ask(flags);
    }
    if listener < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made, and nobody closes it before this image of the program ends.
    Ok(unsafe { BorrowedFd::borrow_raw(listener as RawFd) })
}

/// Bytes of one control message with one descriptor.
const CONTROL_BYTES: usize = rustix::cmsg_space!(ScmRights(1));

/// Sends a descriptor through a socket. Without allocation: it is called between fork and exec.
fn hand_over(socket: BorrowedFd<'_>, descriptor: BorrowedFd<'_>) -> io::Result<()> {
    let mut room = [MaybeUninit::uninit(); CONTROL_BYTES];
    let mut control = SendAncillaryBuffer::new(&mut room);
    let descriptors = [descriptor];
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(socket, &[IoSlice::new(&[0])], &mut control, SendFlags::empty())?;
    Ok(())
}

impl Expected {
    /// The listener, once the program has been started.
    ///
    /// Errors: the program did not start.
    pub fn attach(self, child: &Child) -> io::Result<Listener> {
        let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
        let mut room = [MaybeUninit::uninit(); CONTROL_BYTES];
        let mut control = RecvAncillaryBuffer::new(&mut room);
        let mut byte = [0];
        recvmsg(&self.0, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
        let received = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        let calls = received.ok_or_else(|| io::Error::other("the program has sent no listener"))?;
        Ok(Listener { calls, process })
    }
}

impl Listener {
    /// Waits for the next call; `None`: the program has ended, or nothing came for a while.
    ///
    /// Errors: those of the kernel.
    pub fn next(&self, patience: std::time::Duration) -> io::Result<Option<Stop>> {
        let timeout =
            Timespec { tv_sec: patience.as_secs() as _, tv_nsec: patience.subsec_nanos() as _ };
        loop {
            let mut watched = [&self.calls, &self.process].map(|fd| PollFd::new(fd, PollFlags::IN));
            match poll(&mut watched, Some(&timeout)) {
                Err(rustix::io::Errno::INTR) => continue,
                polled => polled?,
            };
            if !watched[0].revents().contains(PollFlags::IN) {
                return Ok(None);
            }
            if let Some(stop) = self.receive()? {
                return Ok(Some(stop));
            }
        }
    }

    /// `None`: whoever made the call was killed meanwhile.
    fn receive(&self) -> io::Result<Option<Stop>> {
        let mut seen = MaybeUninit::<libc::seccomp_notif>::zeroed();
        let request = libc::SECCOMP_IOCTL_NOTIF_RECV;
        // SAFETY: the kernel writes one struct, which is zeroed as it demands.
        let answer = unsafe { libc::ioctl(self.calls.as_raw_fd(), request, seen.as_mut_ptr()) };
        if answer != 0 {
            let error = io::Error::last_os_error();
            let is_gone = matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR));
            return if is_gone { Ok(None) } else { Err(error) };
        }
        // SAFETY: zeroed above and filled by the kernel.
        let seen = unsafe { seen.assume_init() };
        let (number, arguments) = (libc::c_long::from(seen.data.nr), seen.data.args);
        Ok(Some(Stop { id: seen.id, thread: seen.pid, number, arguments }))
    }

    /// Lets the call happen. One whose thread is gone needs no answer.
    ///
    /// Errors: those of the kernel.
    pub fn go_on(&self, stop: Stop) -> io::Result<()> {
        let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
        let mut answer = libc::seccomp_notif_resp { id: stop.id, val: 0, error: 0, flags };
        let request = libc::SECCOMP_IOCTL_NOTIF_SEND;
        // SAFETY: the kernel reads one struct, which is alive.
        if unsafe { libc::ioctl(self.calls.as_raw_fd(), request, &raw mut answer) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() == Some(libc::ENOENT) { Ok(()) } else { Err(error) }
    }
}
