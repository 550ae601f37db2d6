//! The whole screen of a terminal: taken, and given back on every way out.
//!
//! The alternate screen leaves what stood on the normal one as it was. Keys come one by one and
//! unseen; those that send signals go on doing so. [`give_back`] is called by whoever drops the
//! [`Screen`], by a second Ctrl-C ([`crate::cancel`]), by SIGQUIT and SIGABRT, and by Ctrl-Z, after
//! which the screen is taken again; a panic hook may call it, too. Only SIGKILL and a fault of the
//! hardware's kind (SIGSEGV) leave the screen as it is. What stands on the screen is the caller's.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush,
    tcgetattr, tcgetwinsize, tcsetattr,
};

use crate::cancel::{Handler, action_of, install, wake, waker};
use crate::clock::timespec;

/// To the alternate screen, without a cursor.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l";
/// Plain characters, the cursor again, and back to the normal screen.
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";

static TAKEN: OnceLock<Taken> = OnceLock::new();
static IS_HELD: AtomicBool = AtomicBool::new(false);
static IS_OVER: AtomicBool = AtomicBool::new(false);
static WANTS_STOP: AtomicBool = AtomicBool::new(false);

struct Taken {
    output: OwnedFd,
    input: Option<OwnedFd>,
    wake: OwnedFd,
    /// How the terminal was.
    found: Termios,
    /// How it is while it is held.
    own: Termios,
}

/// A screen that is held; dropping it gives it back.
pub struct Screen(());

/// What ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// A byte that was typed.
    Key(u8),
    /// The program was stopped and goes on: the screen is empty.
    Resumed,
    /// [`Screen::close`] was called.
    Over,
    /// The time was over, or a signal came.
    Nothing,
}

impl Screen {
    /// Takes the screen of the terminal behind `output`; keys come from `input`, if it is one.
    ///
    /// Errors: there is no terminal behind `output`, or this process took a screen before.
    pub fn take(output: impl AsFd, input: impl AsFd) -> io::Result<Self> {
        let found = tcgetattr(&output)?;
        let mut own = found.clone();
        own.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN;
        // Output that Ctrl-S stopped would stop the program.
        own.input_modes -= InputModes::IXON;
        own.special_codes[SpecialCodeIndex::VMIN] = 1;
        own.special_codes[SpecialCodeIndex::VTIME] = 0;
        let is_terminal = tcgetattr(&input).is_ok();
        let taken = Taken {
            output: output.as_fd().try_clone_to_owned()?,
            input: is_terminal.then(|| input.as_fd().try_clone_to_owned()).transpose()?,
            wake: waker()?,
            found,
            own,
        };
        if TAKEN.set(taken).is_err() {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        let stop = (libc::SIGTSTP, on_stop as Handler);
        for (signal, handler) in [stop, (libc::SIGQUIT, obey), (libc::SIGABRT, obey)] {
            if action_of(signal)? == libc::SIG_DFL {
                install(signal, handler, 0)?;
            }
        }
        enter()?;
        Ok(Self(()))
    }

    /// Columns and lines; `None` where the terminal does not say.
    pub fn size(&self) -> Option<(u16, u16)> {
        let size = tcgetwinsize(&taken_once().output).ok()?;
        (size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col, size.ws_row))
    }

    /// Whether keys can be typed.
    pub fn has_keys(&self) -> bool {
        taken_once().input.is_some()
    }

    /// Writes to the screen; nothing where it was given back.
    pub fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() && IS_HELD.load(Ordering::SeqCst) {
            match rustix::io::write(&taken_once().output, bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Waits for a key, at most so long. Stops the program when Ctrl-Z asks for it; so there must
    /// be a thread that waits.
    pub fn wait(&self, timeout_ns: u64) -> Input {
        let taken = taken_once();
        let timeout = timespec(timeout_ns);
        let sources = [Some(&taken.wake), taken.input.as_ref()];
        let waits = sources.into_iter().flatten();
        let mut waits: Vec<_> = waits.map(|source| PollFd::new(source, PollFlags::IN)).collect();
        let is_ready = poll(&mut waits, Some(&timeout)).is_ok_and(|ready| ready > 0);
        if IS_OVER.load(Ordering::SeqCst) {
            return Input::Over;
        }
        if WANTS_STOP.swap(false, Ordering::SeqCst) {
            // What woke us is taken out; that nothing is there any more is as good.
            let _ = rustix::io::read(&taken.wake, &mut [0_u8; 512]);
            stop();
            return Input::Resumed;
        }
        let mut key = [0_u8];
        let has_key = is_ready && waits.get(1).is_some_and(|wait| !wait.revents().is_empty());
        match taken.input.as_ref().filter(|_| has_key) {
            Some(input) => match rustix::io::read(input, &mut key) {
                Ok(1) => Input::Key(key[0]),
                // The terminal is gone, or is another's: SIGHUP ends the run.
                Ok(_) | Err(_) => {
                    let _ = poll(&mut waits[..1], Some(&timeout));
                    Input::Nothing
                }
            },
            None => Input::Nothing,
        }
    }

    /// Ends all waits from now on.
    pub fn close(&self) {
        IS_OVER.store(true, Ordering::SeqCst);
        wake(Some(&taken_once().wake));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

fn taken_once() -> &'static Taken {
    TAKEN.get().expect("a screen is made after this is set")
}

/// Gives the screen back, if it is held. Async-signal-safe. What fails here nobody can mend.
pub fn give_back() {
    if IS_HELD.swap(false, Ordering::SeqCst)
        && let Some(taken) = TAKEN.get()
    {
        let _ = rustix::io::write(&taken.output, LEAVE);
        // What was typed for us is not for the shell.
        let _ = tcflush(&taken.output, QueueSelector::IFlush);
        let _ = tcsetattr(&taken.output, OptionalActions::Now, &taken.found);
    }
}

fn enter() -> io::Result<()> {
    let taken = taken_once();
    tcsetattr(&taken.output, OptionalActions::Now, &taken.own)?;
    IS_HELD.store(true, Ordering::SeqCst);
    rustix::io::write(&taken.output, ENTER)?;
    Ok(())
}

/// Stops the program as Ctrl-Z does, on the normal screen, and takes the screen again afterwards.
fn stop() {
    // It returns when the program goes on.
    obey(libc::SIGTSTP);
    // Where this fails, Ctrl-Z stops the program without asking, as any other.
    let _ = install(libc::SIGTSTP, on_stop, 0);
    let _ = enter();
}

extern "C" fn on_stop(_: libc::c_int) {
    WANTS_STOP.store(true, Ordering::SeqCst);
    wake(TAKEN.get().map(|taken| &taken.wake));
}

/// Gives the screen back and has the signal do what it does by default. In a handler the signal is
/// blocked, and does so when it returns.
pub(crate) extern "C" fn obey(signal: libc::c_int) {
    give_back();
    // SAFETY: signal(2) and raise(3) are async-signal-safe and take any number; the default action
    // runs no code of ours.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};

    use rustix::fs::{Mode, OFlags, open};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    use super::*;

    const LONG_NS: u64 = 600_000_000_000;

    #[test]
    fn a_screen_is_taken_once_gives_keys_and_is_given_back_once() {
        let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&user).unwrap();
        unlockpt(&user).unwrap();
        let path = ptsname(&user, Vec::new()).unwrap();
        let terminal = open(path, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let mut user = File::from(user);
        let found = tcgetattr(&terminal).unwrap();
        assert!(Screen::take(File::open("/dev/null").unwrap(), &terminal).is_err());

        let screen = Screen::take(&terminal, &terminal).unwrap();
        assert!(screen.has_keys());
        assert!(Screen::take(&terminal, &terminal).is_err());
        assert!(!tcgetattr(&terminal).unwrap().local_modes.contains(LocalModes::ICANON));
        assert!(tcgetattr(&terminal).unwrap().local_modes.contains(LocalModes::ISIG));
        user.write_all(b"x").unwrap();
        assert_eq!(screen.wait(LONG_NS), Input::Key(b'x'));
        assert_eq!(screen.wait(0), Input::Nothing);
        screen.write(b"shown").unwrap();
        screen.close();
        assert_eq!(screen.wait(LONG_NS), Input::Over);
        give_back();
        screen.write(b"lost").unwrap();
        drop(screen);
        assert_eq!(tcgetattr(&terminal).unwrap().local_modes, found.local_modes);

        let expected = [ENTER, b"shown", LEAVE].concat();
        let mut seen = vec![0; expected.len()];
        user.read_exact(&mut seen).unwrap();
        assert_eq!(seen, expected);
        drop(terminal);
    }
}
