//! SIGUSR1 as a question: how far is it? BSD has SIGINFO for that, Linux has not.
//!
//! The handler only wakes whoever waits in [`Inquiries::wait`]; calls that it interrupts go on.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;
use rustix::time::Timespec;

use crate::cancel::{action_of, install_with, wake};

/// An end that could not be told is seen so much later.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };

static LISTENING: OnceLock<OwnedFd> = OnceLock::new();

/// Questions to come, for one thread at a time.
#[derive(Debug)]
pub struct Inquiries {
    wake: &'static OwnedFd,
    is_over: AtomicBool,
}

/// Has SIGUSR1 ask from now on; `None`: whoever started us wanted it ignored.
///
/// Errors: those of eventfd(2) and sigaction(2).
pub fn listen() -> io::Result<Option<Inquiries>> {
    if LISTENING.get().is_none() {
        if action_of(libc::SIGUSR1)? == libc::SIG_IGN {
            return Ok(None);
        }
        let descriptor = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        LISTENING.get_or_init(|| descriptor);
        install_with(libc::SIGUSR1, on_signal, libc::SA_RESTART)?;
    }
    Ok(LISTENING.get().map(|wake| {
        // What ended the last ones is no question.
        let _none_is_left = rustix::io::read(wake, &mut [0_u8; 8]);
        Inquiries { wake, is_over: AtomicBool::new(false) }
    }))
}

/// Has SIGUSR1 end nothing where nobody answers it.
///
/// Errors: those of sigaction(2).
pub fn ignore() -> io::Result<()> {
    match action_of(libc::SIGUSR1)? {
        libc::SIG_DFL => install_with(libc::SIGUSR1, on_signal, libc::SA_RESTART),
        _ => Ok(()),
    }
}

impl Inquiries {
    /// Waits for a question; false: there will be none.
    pub fn wait(&self) -> bool {
        loop {
            if self.is_over.load(Ordering::SeqCst) {
                return false;
            }
            match poll(&mut [PollFd::new(self.wake, PollFlags::IN)], Some(&LOOK_EVERY)) {
                Ok(_) => {
                    // Several that came together are one.
                    let asked = rustix::io::read(self.wake, &mut [0_u8; 8]).is_ok();
                    if asked && !self.is_over.load(Ordering::SeqCst) {
                        return true;
                    }
                }
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// Ends the wait.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        wake(Some(self.wake));
    }
}

extern "C" fn on_signal(_: libc::c_int) {
    wake(LISTENING.get());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_a_question_and_the_end_is_none() {
        let Some(inquiries) = listen().unwrap() else { return };
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::USR1)
            .unwrap();
        assert!(inquiries.wait());
        inquiries.end();
        assert!(!inquiries.wait());
        let waited = Inquiries { wake: inquiries.wake, is_over: AtomicBool::new(false) };
        let _read = rustix::io::read(waited.wake, &mut [0_u8; 8]);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| waited.wait());
            waited.is_over.store(true, Ordering::SeqCst);
            assert!(!waiting.join().unwrap(), "nobody could wake it");
        });
        // Nobody asks the next ones.
        assert!(
            listen()
                .unwrap()
                .is_some_and(|next| rustix::io::read(next.wake, &mut [0_u8; 8]).is_err())
        );
    }
}
