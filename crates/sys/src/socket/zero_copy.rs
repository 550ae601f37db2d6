//! `MSG_ZEROCOPY`: TCP takes the pages of a buffer instead of a copy, and says later, through the
//! socket's error queue, when it is done with them and whether it copied after all.
//!
//! See Documentation/networking/msg_zerocopy.rst. Over loopback the kernel always copies.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::SendFlags;

use super::datagrams::control_data;
use super::option::set_zero_copy;

/// `SO_EE_ORIGIN_ZEROCOPY`, linux/errqueue.h.
const ORIGIN_ZERO_COPY: u8 = 5;
/// `SO_EE_CODE_ZEROCOPY_COPIED`.
const CODE_COPIED: u8 = 1;
/// Calls whose pages the kernel may hold at once; more wait for the oldest.
const MOST_PENDING: u32 = 64;
/// How long a sender waits for one notice before it tries again.
const WAIT_NS: i64 = 5_000_000;

/// Sends over one socket and counts what the kernel says about it.
///
/// The bytes of a call may be read by the kernel until its notice came: whoever changes them
/// before sends something else, which harms nobody in this process.
pub struct ZeroCopy<'s> {
    socket: BorrowedFd<'s>,
    calls: u32,
    done: u32,
    copied: u32,
}

impl<'s> ZeroCopy<'s> {
    /// Switches it on for a connected TCP socket.
    ///
    /// # Errors
    /// Those of setsockopt(2), where the kernel cannot.
    pub fn new(socket: BorrowedFd<'s>) -> io::Result<Self> {
        set_zero_copy(socket)?;
        Ok(Self { socket, calls: 0, done: 0, copied: 0 })
    }

    /// Sends a part of `bytes` and returns how much it was.
    ///
    /// # Errors
    /// Those of send(2).
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            if self.calls.wrapping_sub(self.done) >= MOST_PENDING {
                self.wait()?;
                continue;
            }
            // The kernel keeps references to the pages, not to the addresses, so the memory may be
            // given back at any time.
            let flags = SendFlags::from_bits_retain((libc::MSG_ZEROCOPY | libc::MSG_NOSIGNAL) as _);
            match rustix::net::send(self.socket, bytes, flags) {
                Ok(sent) => {
                    self.calls = self.calls.wrapping_add(1);
                    return Ok(sent);
                }
                // Too many notices are outstanding for the socket's memory.
                Err(Errno::NOBUFS) if self.calls != self.done => self.wait()?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Calls made, and how many of those that the kernel is done with it copied after all.
    pub fn account(&self) -> (u32, u32) {
        (self.calls, self.copied)
    }

    fn wait(&mut self) -> io::Result<()> {
        let mut waits = [PollFd::from_borrowed_fd(self.socket, PollFlags::empty())];
        let time = Timespec { tv_sec: 0, tv_nsec: WAIT_NS };
        match poll(&mut waits, Some(&time)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let before = self.done;
        while self.reap()? {}
        if self.done == before && waits[0].revents().contains(PollFlags::HUP) {
            return Err(io::Error::from_raw_os_error(libc::EPIPE));
        }
        Ok(())
    }

    /// Takes one notice off the error queue; false where there is none.
    fn reap(&mut self) -> io::Result<bool> {
        let mut control = [0_u64; 16];
        // SAFETY: a zeroed msghdr is a valid value: no address, no vectors, no control data.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        // SAFETY: recvmsg(2) writes to the control array, which is as long as said, and to
        // `message`.
        let result = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &mut message, flags) };
        if result < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::WouldBlock { Ok(false) } else { Err(error) };
        }
        let kinds = [(libc::SOL_IP, libc::IP_RECVERR), (libc::SOL_IPV6, libc::IPV6_RECVERR)];
        // SAFETY: `message` was filled by the kernel. The data of a message of an IP error queue is
        // a sock_extended_err; there is one.
        if let Some(notice) = unsafe { control_data(&message, &kinds) } {
            self.note(notice);
        }
        Ok(true)
    }

    /// A notice tells of a range of calls, both ends included.
    fn note(&mut self, notice: libc::sock_extended_err) {
        if notice.ee_origin != ORIGIN_ZERO_COPY {
            return;
        }
        let count = notice.ee_data.wrapping_sub(notice.ee_info).wrapping_add(1);
        self.done = self.done.wrapping_add(count);
        if notice.ee_code & CODE_COPIED != 0 {
            self.copied = self.copied.wrapping_add(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsFd;

    use super::*;
    use crate::socket::tests::tcp_pair;

    #[test]
    fn more_calls_than_may_be_pending_arrive_whole_and_are_accounted_for() {
        let (near, mut far) = tcp_pair();
        let bytes: Vec<u8> = (0..16_384_u32).map(|number| (number % 253) as u8).collect();
        let rounds = 3 * MOST_PENDING as usize;
        std::thread::scope(|scope| {
            let reader = scope.spawn(move || {
                let mut all = Vec::new();
                far.read_to_end(&mut all).map(|_| all)
            });
            let mut sender = ZeroCopy::new(near.as_fd()).unwrap();
            for _ in 0..rounds {
                let mut sent = 0;
                while sent < bytes.len() {
                    sent += sender.send(&bytes[sent..]).unwrap();
                }
            }
            let (calls, copied) = sender.account();
            assert!(calls as usize >= rounds);
            assert!(copied > 0 && copied <= calls, "loopback copies: {copied} of {calls}");
            drop(near);
            let all = reader.join().unwrap().unwrap();
            assert!(all.len() == rounds * bytes.len());
            assert!(all.chunks(bytes.len()).all(|chunk| chunk == bytes));
        });
    }
}
