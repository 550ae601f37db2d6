//! Waking: a futex nobody waits on, and two threads that hand a turn back and forth.
//!
//! One round trip is there and back: two wake-ups, two waits.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use super::{raw, repeat};

const WAKE: usize = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as usize;
const WAIT: usize = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize;
const EINTR: isize = -(libc::EINTR as isize);
const EAGAIN: isize = -(libc::EAGAIN as isize);

/// Wakes a futex on which nobody waits.
///
/// # Errors
/// The kernel's error, or a surprise if somebody was woken.
#[inline(never)]
pub fn futex_wake(calls: u64) -> io::Result<()> {
    let word = AtomicU32::new(0);
    repeat("futex", calls, || wake(&word), |woken| woken == 0)
}

#[inline(always)]
fn wake(word: &AtomicU32) -> isize {
    let address = word.as_ptr() as usize;
    // SAFETY: the kernel only uses the address of `word` as a key.
    unsafe { raw::call3(libc::SYS_futex, address, WAKE, 1) }
}

#[inline(always)]
fn wait_while(word: &AtomicU32, value: u32) -> isize {
    let address = word.as_ptr() as usize;
    // SAFETY: the kernel reads the four bytes of `word`, which is borrowed; no time-out is given.
    unsafe { raw::call4(libc::SYS_futex, address, WAIT, value as usize, 0) }
}

/// Whose turn it is: a futex between an asking and an answering thread.
///
/// Each side stores the other's turn, wakes it, and waits until its own turn comes. A wait that
/// the answer overtakes does not sleep, as in any futex hand-over.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Turn(AtomicU32);

const ASKER: u32 = 0;
const ANSWERER: u32 = 1;
const ENDED: u32 = 2;

impl Turn {
    /// The asking side: hands the turn over and waits until it is back, `rounds` times.
    ///
    /// # Errors
    /// The kernel's error, or `BrokenPipe` if the other side has given up.
    #[inline(never)]
    pub fn ask(&self, rounds: u64) -> io::Result<()> {
        for _ in 0..rounds {
            self.hand_to(ANSWERER)?;
            self.wait_until(ASKER)?;
        }
        Ok(())
    }

    /// The answering side: waits for the turn and hands it back, `rounds` times.
    ///
    /// # Errors
    /// The kernel's error, or `BrokenPipe` if the other side has given up.
    #[inline(never)]
    pub fn answer(&self, rounds: u64) -> io::Result<()> {
        for _ in 0..rounds {
            self.wait_until(ANSWERER)?;
            self.hand_to(ASKER)?;
        }
        Ok(())
    }

    /// Ends the game, so that the other side does not wait for ever.
    pub fn give_up(&self) {
        self.0.store(ENDED, Ordering::Release);
        wake(&self.0);
    }

    #[inline(always)]
    fn hand_to(&self, side: u32) -> io::Result<()> {
        // Giving up must win over a turn handed at the same time.
        let handed = self.0.compare_exchange(1 - side, side, Ordering::AcqRel, Ordering::Acquire);
        if handed.is_err() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let woken = wake(&self.0);
        if woken < 0 { Err(super::surprise("futex", woken)) } else { Ok(()) }
    }

    #[inline(always)]
    fn wait_until(&self, side: u32) -> io::Result<()> {
        loop {
            match self.0.load(Ordering::Acquire) {
                ENDED => return Err(io::ErrorKind::BrokenPipe.into()),
                turn if turn == side => return Ok(()),
                turn => {
                    let result = wait_while(&self.0, turn);
                    if result != 0 && result != EAGAIN && result != EINTR {
                        return Err(super::surprise("futex", result));
                    }
                }
            }
        }
    }
}

/// The asking side of a pair of pipes: writes one byte and reads one back, `rounds` times.
///
/// # Errors
/// The kernel's error, or `UnexpectedEof` if the other side has gone.
#[inline(never)]
pub fn pipe_ask(to: BorrowedFd<'_>, from: BorrowedFd<'_>, rounds: u64) -> io::Result<()> {
    let mut byte = [1];
    for _ in 0..rounds {
        transfer(libc::SYS_write, to, &mut byte)?;
        transfer(libc::SYS_read, from, &mut byte)?;
    }
    Ok(())
}

/// The answering side of a pair of pipes: reads one byte and writes it back, `rounds` times.
///
/// # Errors
/// The kernel's error, or `UnexpectedEof` if the other side has gone.
#[inline(never)]
pub fn pipe_answer(from: BorrowedFd<'_>, to: BorrowedFd<'_>, rounds: u64) -> io::Result<()> {
    let mut byte = [0];
    for _ in 0..rounds {
        transfer(libc::SYS_read, from, &mut byte)?;
        transfer(libc::SYS_write, to, &mut byte)?;
    }
    Ok(())
}

/// Reads or writes one byte, by the number of the call.
#[inline(always)]
fn transfer(number: libc::c_long, pipe: BorrowedFd<'_>, byte: &mut [u8; 1]) -> io::Result<()> {
    let (descriptor, start) = (pipe.as_raw_fd() as usize, byte.as_mut_ptr() as usize);
    loop {
        // SAFETY: the kernel reads or writes the one byte, which is borrowed exclusively.
        match unsafe { raw::call3(number, descriptor, start, 1) } {
            1 => return Ok(()),
            EINTR => {}
            result => return Err(super::surprise("pipe", result)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::thread;

    #[test]
    fn nobody_waits_so_nobody_is_woken() {
        futex_wake(1000).unwrap();
    }

    #[test]
    fn the_turn_comes_back_every_round() {
        let turn = Turn::default();
        thread::scope(|scope| {
            let other = scope.spawn(|| turn.answer(300));
            turn.ask(300).unwrap();
            other.join().unwrap().unwrap();
        });
        assert_eq!(turn.0.load(Ordering::Relaxed), ASKER);
    }

    #[test]
    fn giving_up_frees_the_other_side() {
        let turn = Turn::default();
        thread::scope(|scope| {
            let other = scope.spawn(|| turn.answer(u64::MAX));
            turn.ask(10).unwrap();
            turn.give_up();
            assert_eq!(other.join().unwrap().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        });
        assert!(turn.ask(1).is_err());
    }

    #[test]
    fn asking_writes_as_many_bytes_as_it_reads() {
        let (mut sent, to) = io::pipe().unwrap();
        let (from, mut answers) = io::pipe().unwrap();
        answers.write_all(&[9; 100]).unwrap();
        pipe_ask(to.as_fd(), from.as_fd(), 100).unwrap();
        drop(to);
        let mut bytes = Vec::new();
        assert_eq!(sent.read_to_end(&mut bytes).unwrap(), 100);
    }

    #[test]
    fn answering_ends_when_the_other_side_has_gone() {
        let (from, to) = io::pipe().unwrap();
        let (_kept, answers) = io::pipe().unwrap();
        drop(to);
        let error = pipe_answer(from.as_fd(), answers.as_fd(), 1).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
