//! SIGUSR1 as a question: how far is it? BSD has SIGINFO for that, Linux has not.
//!
//! The handler only wakes whoever waits in [`Inquiries::wait`]; calls that it interrupts go on.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;

use crate::cancel::{action_of, install, wake, waker};

/// An end that could not be told is seen so much later.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };

/// Somebody asked, and has no answer yet.
static ASKED: AtomicBool = AtomicBool::new(false);
/// Made when somebody waits for the first time.
static WAITING: OnceLock<OwnedFd> = OnceLock::new();

/// Questions to come, for one thread at a time.
#[derive(Debug, Default)]
pub struct Inquiries {
    is_over: AtomicBool,
}

/// Has SIGUSR1 ask from now on, and end nothing; `None`: whoever started us wanted it ignored.
///
/// Errors: those of sigaction(2).
pub fn listen() -> io::Result<Option<Inquiries>> {
    if action_of(libc::SIGUSR1)? == libc::SIG_IGN {
        return Ok(None);
    }
    install(libc::SIGUSR1, on_signal, libc::SA_RESTART)?;
    ASKED.store(false, Ordering::SeqCst);
    Ok(Some(Inquiries::default()))
}

impl Inquiries {
    /// Whether somebody asked since the last time that this, or a wait, said so. Several questions that
    /// came together are one.
    pub fn is_asked(&self) -> bool {
        ASKED.swap(false, Ordering::SeqCst)
    }

    /// Waits for a question; false: there will be none.
    pub fn wait(&self) -> bool {
        if WAITING.get().is_none() {
            let Ok(descriptor) = waker() else { return false };
            WAITING.get_or_init(|| descriptor);
        }
        let Some(descriptor) = WAITING.get() else { return false };
        loop {
            if self.is_over.load(Ordering::SeqCst) {
                return false;
            }
            if self.is_asked() {
                return true;
            }
            match poll(&mut [PollFd::new(descriptor, PollFlags::IN)], Some(&LOOK_EVERY)) {
                Ok(_) => _ = rustix::io::read(descriptor, &mut [0_u8; 8]),
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// Ends the wait.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        wake(WAITING.get());
    }
}

extern "C" fn on_signal(_: libc::c_int) {
    ASKED.store(true, Ordering::SeqCst);
    wake(WAITING.get());
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
        assert!(!inquiries.is_asked());
        // Before anybody waits, too.
        on_signal(libc::SIGUSR1);
        assert!(inquiries.is_asked() && !inquiries.is_asked());
        inquiries.end();
        assert!(!inquiries.wait());
        let waited = Inquiries::default();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| waited.wait());
            waited.is_over.store(true, Ordering::SeqCst);
            assert!(!waiting.join().unwrap(), "nobody could wake it");
        });
        on_signal(libc::SIGUSR1);
        assert!(!listen().unwrap().unwrap().is_asked(), "nobody asks the next ones");
    }
}
