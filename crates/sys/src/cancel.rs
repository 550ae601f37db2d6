//! The wish to stop: a token that loops ask, and the signal handlers that set it.
//!
//! The first SIGINT, SIGTERM or SIGHUP asks politely. For a second nothing more happens, since
//! programs and hasty fingers send two at once and the cleaning up must not be cut off; another one
//! after that ends the process as usual. A signal that the parent had ignored (nohup(1), a background job) stays ignored.
//! When everything is in order, [`die_of_signal`] ends the process by the signal that came first.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Signal, getpid, kill_process};

use crate::cause::answered;
use crate::clock::{monotonic_ns, timespec};
use crate::descriptor::itself;

static SIGNALLED: AtomicBool = AtomicBool::new(false);
/// When the first signal came, by the monotonic clock; 0 before it.
static FIRST_SIGNAL_NS: AtomicU64 = AtomicU64::new(0);
/// Signals this soon after the first mean the same wish.
const SAME_WISH_NS: u64 = 1_000_000_000;
/// The signal that came first; 0 before it.
static FIRST_SIGNAL: AtomicI32 = AtomicI32::new(0);
/// Signals that ask for the end; whoever sees that the last is heeded knows it of all.
const HEEDED: [libc::c_int; 3] = [libc::SIGHUP, libc::SIGTERM, libc::SIGINT];
static WAKE: OnceLock<OwnedFd> = OnceLock::new();

/// Something that a loop asks whether it should stop. Cost of asking: one relaxed load, and a reading of
/// the clock where it has an end.
#[derive(Debug, Clone, Copy)]
pub struct CancelToken {
    flag: &'static AtomicBool,
    ends_ns: u64,
}

impl CancelToken {
    /// The token that signals set, once [`listen_for_signals`] was called.
    pub fn signals() -> Self {
        Self { flag: &SIGNALLED, ends_ns: u64::MAX }
    }

    /// A token of its own, for callers and tests that stop by themselves.
    pub fn manual() -> Self {
        Self { flag: Box::leak(Box::new(AtomicBool::new(false))), ends_ns: u64::MAX }
    }

    /// Asks everybody who holds the token to stop.
    pub fn cancel(self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked to stop.
    #[inline]
    pub fn is_cancelled(self) -> bool {
        self.flag.load(Ordering::Relaxed)
            || (self.ends_ns != u64::MAX && monotonic_ns() >= self.ends_ns)
    }

    /// The same token, whose holder stops at this time of the monotonic clock in any case.
    pub fn until(self, ends_ns: u64) -> Self {
        Self { ends_ns: self.ends_ns.min(ends_ns), ..self }
    }
}

impl Default for CancelToken {
    /// That of signals.
    fn default() -> Self {
        Self::signals()
    }
}

/// What ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ready {
    /// The descriptor can be read (data, end of file or an error waits there).
    Readable,
    /// A signal came first.
    Cancelled,
    /// The time was over.
    TimedOut,
}

/// Waits until `source` can be read, a signal comes, or `timeout_ns` is over (`None`: for ever).
pub fn wait_readable(source: BorrowedFd<'_>, timeout_ns: Option<u64>) -> io::Result<Ready> {
    wait_any_readable(&[source], timeout_ns)
}

/// Waits until one of `sources` can be read, a signal comes, or `timeout_ns` is over (`None`: for
/// ever). Once a signal came, all waits end at once.
pub fn wait_any_readable(sources: &[BorrowedFd<'_>], timeout_ns: Option<u64>) -> io::Result<Ready> {
    let ends_ns = timeout_ns.map(|ns| monotonic_ns().saturating_add(ns));
    let wake = WAKE.get().map(AsFd::as_fd);
    let all = sources.iter().copied().chain(wake);
    let mut waits: Vec<_> =
        all.map(|source| PollFd::from_borrowed_fd(source, PollFlags::IN)).collect();
    loop {
        let timeout = ends_ns.map(|ends_ns| timespec(ends_ns.saturating_sub(monotonic_ns())));
        return match poll(&mut waits, timeout.as_ref()) {
            Ok(0) => Ok(Ready::TimedOut),
            // A signal that asks for the end has written to `wake`, and others ask for none.
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => Err(error.into()),
            Ok(_) if waits.get(sources.len()).is_some_and(|wake| !wake.revents().is_empty()) => {
                Ok(Ready::Cancelled)
            }
            Ok(_) => Ok(Ready::Readable),
        };
    }
}

/// Makes SIGINT, SIGTERM and SIGHUP set the token of [`CancelToken::signals`], except those that
/// were ignored before. Calling it twice changes nothing.
pub fn listen_for_signals() -> io::Result<CancelToken> {
    if WAKE.get().is_none() {
        let descriptor = waker()?;
        WAKE.get_or_init(|| descriptor);
        for signal in HEEDED {
            if action_of(signal)? != libc::SIG_IGN {
                install(signal, on_signal, 0)?;
            }
        }
    }
    Ok(CancelToken::signals())
}

/// Has this process end as after this signal, one of those that are heeded, also where whoever started it
/// had it ignored: nohup(1) keeps a terminal from ending a run, and not its user.
///
/// Errors: those of sigaction(2) and kill(2).
pub fn end_by(signal: Signal) -> io::Result<()> {
    install(signal.as_raw(), on_signal, 0)?;
    Ok(kill_process(getpid(), signal)?)
}

/// A file that reaches the limit of setrlimit(2) is from now on an `EFBIG` that somebody can tell and
/// tidy up after, and no SIGXFSZ, which would end the process.
pub fn outlive_file_limit() {
    // SAFETY: ignoring a signal runs no code of ours; it can be ignored, so that this does not fail.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Ends the process by the signal that came first, if one came: a shell that waits for it learns
/// from that, and from nothing else, that its loop is to end, too. To be called last, when
/// everything is written.
///
/// Returns where none came, and where it changes nothing, as in the first process of a PID
/// namespace (pid_namespaces(7)).
pub fn die_of_signal() {
    // A signal that comes from now on ends the process at once.
    for signal in HEEDED {
        if action_of(signal).is_ok_and(|action| action == handler()) {
            // SAFETY: the default action runs no code of ours.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
    let signal = FIRST_SIGNAL.load(Ordering::SeqCst);
    if signal == 0 {
        return;
    }
    // SAFETY: the set is initialised before it is read, the old mask is not wanted, and raise(3)
    // takes any number. The signal may have come to another
    // thread than this one, in which whoever started us had it blocked.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
        libc::raise(signal);
    }
}

/// What the kernel calls when a signal comes: only what signal-safety(7) allows.
pub(crate) type Handler = extern "C" fn(libc::c_int);

fn handler() -> libc::sighandler_t {
    on_signal as Handler as usize
}

/// What happens when the signal comes.
pub(crate) fn action_of(signal: libc::c_int) -> io::Result<libc::sighandler_t> {
    // SAFETY: a zeroed sigaction is a valid value; sigaction(2) without a new action only writes
    // the present one into it.
    unsafe {
        let mut present: libc::sigaction = std::mem::zeroed();
        answered(libc::sigaction(signal, std::ptr::null(), &mut present))?;
        Ok(present.sa_sigaction)
    }
}

/// Starts a thread that gets no signal. One that begins while a signal is on its way to another may take it
/// away: the call that this was to interrupt goes on then.
pub fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    // SAFETY: both sets are values of their type, filled by the calls; a thread has its creator's mask.
    unsafe {
        let [mut all, mut before]: [libc::sigset_t; 2] = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let started = start();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        started
    }
}

/// Has a signal handled, with the flags of sigaction(2). Without `SA_RESTART` a call that it interrupts
/// ends with `EINTR`.
pub(crate) fn install(signal: libc::c_int, handler: Handler, flags: libc::c_int) -> io::Result<()> {
    // SAFETY: a zeroed sigaction is a valid value; the handlers of this crate do only what
    // signal-safety(7) allows (atomics, write, tcsetattr, clock_gettime, signal, raise).
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as usize;
        action.sa_flags = flags;
        libc::sigemptyset(&mut action.sa_mask);
        answered(libc::sigaction(signal, &action, std::ptr::null_mut())).map(drop)
    }
}

extern "C" fn on_signal(signal: libc::c_int) {
    // Another handler may interrupt this one: which signal came first is settled by one operation.
    let _ = FIRST_SIGNAL.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst);
    SIGNALLED.store(true, Ordering::Relaxed);
    let now_ns = monotonic_ns();
    let first = FIRST_SIGNAL_NS.compare_exchange(0, now_ns, Ordering::SeqCst, Ordering::SeqCst);
    if first.is_err_and(|first_ns| now_ns.saturating_sub(first_ns) > SAME_WISH_NS) {
        crate::screen::obey(signal);
    }
    wake(WAKE.get());
}

/// A descriptor at which somebody waits to be woken. Where a filter refuses eventfd(2), it is both ends of a
/// pipe.
pub(crate) fn waker() -> rustix::io::Result<OwnedFd> {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).or_else(|_| {
        let (end, _other) = rustix::pipe::pipe()?;
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
        open(itself(end.as_fd()), flags, Mode::empty())
    })
}

/// Wakes whoever waits at a [`waker`]. A handler may do that: it is write(2) without the C library,
/// whose errno the code that was interrupted may be about to read.
pub(crate) fn wake(waker: Option<&OwnedFd>) {
    if let Some(waker) = waker {
        // A full counter, or pipe, wakes just as well.
        let _ = rustix::io::write(waker, &1_u64.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_started_without_signals_blocks_them_and_its_creator_does_not() {
        let blocked = || {
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
            u64::from_str_radix(mask.trim(), 16).unwrap()
        };
        let before = blocked();
        let thread = without_signals(|| std::thread::spawn(blocked));
        assert_eq!(blocked(), before);
        let term = 1 << (libc::SIGTERM - 1);
        assert_eq!((thread.join().unwrap() & term, before & term), (term, 0));
    }

    #[test]
    fn a_manual_token_reaches_its_copies_and_nobody_else() {
        let (one, other) = (CancelToken::manual(), CancelToken::manual());
        let copy = one;
        copy.cancel();
        assert!(one.is_cancelled());
        assert!(!other.is_cancelled());
    }

    #[test]
    fn a_token_with_an_end_stops_then_and_the_others_go_on() {
        let token = CancelToken::manual();
        assert!(token.until(monotonic_ns()).is_cancelled());
        assert!(!token.until(u64::MAX - 1).is_cancelled() && !token.is_cancelled());
        assert!(token.until(u64::MAX).until(0).until(u64::MAX).is_cancelled());
    }

    /// A wait that a handled signal interrupts is no wish to stop: Ctrl-Z is one, too.
    #[test]
    fn a_signal_that_asks_for_no_end_does_not_end_a_wait() {
        extern "C" fn nothing(_: libc::c_int) {}
        install(libc::SIGUSR2, nothing, 0).unwrap();
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let (told, number) = std::sync::mpsc::channel();
        let waiting = std::thread::spawn(move || {
            told.send(crate::occupation::this_thread()).unwrap();
            wait_readable(reader.as_fd(), None).unwrap()
        });
        let thread = number.recv().unwrap();
        let is_in_call = || match crate::occupation::of_thread(thread) {
            Some(doing) => doing == crate::occupation::Occupation::Metadata,
            None => true,
        };
        for _ in 0..3 {
            while !is_in_call() {
                std::thread::yield_now();
            }
            // SAFETY: tgkill(2) takes integers; the thread lives until it is joined.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, libc::SIGUSR2) };
        }
        rustix::io::write(&writer, b"x").unwrap();
        assert_eq!(waiting.join().unwrap(), Ready::Readable);
    }

    #[test]
    fn waiting_ends_with_data_or_time() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        assert_eq!(wait_readable(reader.as_fd(), Some(1)).unwrap(), Ready::TimedOut);
        rustix::io::write(&writer, b"x").unwrap();
        assert_eq!(wait_readable(reader.as_fd(), None).unwrap(), Ready::Readable);
    }
}
