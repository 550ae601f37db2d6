//! Holds a program up at chosen system calls, so that a test can do something in between.
//!
//! A seccomp filter sends such a call to a listener (seccomp_unotify(2)), which belongs to whoever
//! started the program; the thread waits until the listener lets the call happen. Other threads go
//! on. Nothing is answered in the kernel's place.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use super::statement;

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
pub struct Listener(OwnedFd);

/// Makes `command` stop at the given calls. Those with which a program is started (execve(2),
/// sendmsg(2)) cannot be among them: nobody listens yet.
///
/// Errors: there is no pair of sockets to be had.
pub fn supervise(command: &mut Command, calls: &[libc::c_long]) -> io::Result<Expected> {
    let mut ends = [0; 2];
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: the kernel writes two integers into a live array.
    if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both descriptors were just made and belong to nobody else.
    let [ours, theirs] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
    let program = filter(calls);
    // SAFETY: between fork and exec the closure makes only system calls on memory that it owns or
    // that lies on its stack; it neither allocates nor takes a lock.
    unsafe {
        command.pre_exec(move || {
            let listener = install(&program)?;
            hand_over(theirs.as_raw_fd(), listener)
        });
    }
    Ok(Expected(ours))
}

/// The BPF program: the given calls are sent to the listener, the others happen.
fn filter(calls: &[libc::c_long]) -> Vec<libc::sock_filter> {
    let mut program = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0)];
    for &call in calls {
        program.push(libc::sock_filter {
            code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
            jt: 0,
            jf: 1,
            k: call as u32,
        });
        program.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_USER_NOTIF));
    }
    program.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW));
    program
}

/// Installs a filter for this process and returns its listener, which execve(2) closes here.
fn install(program: &[libc::sock_filter]) -> io::Result<RawFd> {
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
    if listener < 0 { Err(io::Error::last_os_error()) } else { Ok(listener as RawFd) }
}

/// Bytes of one control message with one descriptor.
const CONTROL_BYTES: usize = 24;

/// Memory for a control message, aligned as its header wants it.
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

/// A message with one byte and room for one descriptor.
fn message(vector: &mut libc::iovec, control: &mut Control) -> libc::msghdr {
    // SAFETY: zeros are a valid, empty header.
    let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    header.msg_iov = vector;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = CONTROL_BYTES as _;
    header
}

/// Sends a descriptor through a socket.
fn hand_over(socket: RawFd, descriptor: RawFd) -> io::Result<()> {
    let (mut byte, mut control) = ([0_u8; 1], Control([0; CONTROL_BYTES]));
    let mut vector = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let header = message(&mut vector, &mut control);
    // SAFETY: the header points at `control`, which has room for one message with a descriptor
    // and lives until the end of the function, as all that sendmsg(2) reads.
    let sent = unsafe {
        let first = libc::CMSG_FIRSTHDR(&raw const header);
        (*first).cmsg_level = libc::SOL_SOCKET;
        (*first).cmsg_type = libc::SCM_RIGHTS;
        (*first).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
        ptr::write_unaligned(libc::CMSG_DATA(first).cast::<RawFd>(), descriptor);
        libc::sendmsg(socket, &raw const header, 0)
    };
    if sent == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

impl Expected {
    /// The listener, once the program has been started.
    ///
    /// Errors: the program did not start.
    pub fn attach(self) -> io::Result<Listener> {
        let (mut byte, mut control) = ([0_u8; 1], Control([0; CONTROL_BYTES]));
        let mut vector = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
        let mut header = message(&mut vector, &mut control);
        let flags = libc::MSG_CMSG_CLOEXEC;
        // SAFETY: the kernel writes into `byte` and `control` only, within their lengths.
        let got = unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut header, flags) };
        if got < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the header was filled by the kernel and points at `control`, which is alive.
        let first = unsafe { libc::CMSG_FIRSTHDR(&raw const header) };
        if got != 1 || first.is_null() {
            return Err(io::Error::other("the program has sent no listener"));
        }
        // SAFETY: a message of the other end of our own pair holds one descriptor, which is ours
        // from now on.
        let listener = unsafe {
            OwnedFd::from_raw_fd(ptr::read_unaligned(libc::CMSG_DATA(first).cast::<RawFd>()))
        };
        Ok(Listener(listener))
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
            let mut watched = [PollFd::new(&self.0, PollFlags::IN)];
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
        let answer = unsafe { libc::ioctl(self.0.as_raw_fd(), request, seen.as_mut_ptr()) };
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
        if unsafe { libc::ioctl(self.0.as_raw_fd(), request, &raw mut answer) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() == Some(libc::ENOENT) { Ok(()) } else { Err(error) }
    }
}
