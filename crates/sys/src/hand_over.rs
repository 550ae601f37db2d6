//! A cache line that two threads hand back and forth, each on a CPU of its own: what it takes
//! until a store of one core is seen by another.
//!
//! No system call and no pause is in the loop. It is meant for two CPUs; on one, each turn would
//! last until the scheduler takes the CPU away, so both sides give up when nothing happens.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock::monotonic_ns;
use crate::thread::{self, Side};

/// Value that ends the game for both sides.
const ENDED: u64 = u64::MAX;
/// Looks at the line after which the other side is taken for lost. A look takes about a
/// nanosecond, so this is half a second: longer than a hypervisor keeps a CPU away, as a rule.
const PATIENCE: u64 = 500_000_000;

/// The line. Source of the alignment: cores fetch lines of 64 bytes in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Line(AtomicU64);

impl Line {
    /// The side that begins: writes an odd number and waits for the even one above it, `rounds`
    /// times. One round is two hand-overs. A line can be used again where the last game ended. `None`: the
    /// other side gave up, or nothing was heard of it for half a second.
    #[inline(never)]
    fn serve(&self, rounds: u64) -> Option<()> {
        let start = self.0.load(Ordering::Acquire);
        if start == ENDED {
            return None;
        }
        for round in 0..rounds {
            let ball = start + 2 * round + 1;
            self.write(ball);
            self.wait_for(ball + 1)?;
        }
        Some(())
    }

    /// The side that answers: waits for the next odd number and writes the even one above it,
    /// `rounds` times. `from` is the value at which the game began: twice the rounds before it.
    #[inline(never)]
    fn answer(&self, from: u64, rounds: u64) -> Option<()> {
        for round in 0..rounds {
            let ball = from + 2 * round + 1;
            self.wait_for(ball)?;
            self.write(ball + 1);
        }
        Some(())
    }

    /// Has two threads, each tied to its CPU by `tie`, play `warm_up` rounds and then games of `rounds` each,
    /// until there were `games`. The nanoseconds of the quickest, because what disturbs one makes it longer;
    /// none if one side waited in vain.
    ///
    /// # Errors
    /// A thread cannot be started; within, that of `tie`.
    pub fn play<E: Send>(
        &self,
        cpus: [usize; 2],
        tie: impl Fn(usize) -> Result<(), E> + Sync,
        (warm_up, games, rounds): (u64, u64, u64),
    ) -> io::Result<Result<Option<u64>, E>> {
        let game = || {
            let begun_ns = monotonic_ns();
            self.serve(rounds).map(|()| monotonic_ns().saturating_sub(begun_ns))
        };
        let serve = || {
            self.serve(warm_up)?;
            (0..games).try_fold(u64::MAX, |least, _| Some(least.min(game()?)))
        };
        let answer = || self.answer(0, warm_up + games * rounds).map(|()| 0);
        let sides: [Side<'_, _, E>; 2] = [Box::new(|| Ok(serve())), Box::new(|| Ok(answer()))];
        let [served, answered] = thread::both(cpus, tie, sides, || self.give_up())?;
        Ok(served.and_then(|served| Ok(answered?.and(served))))
    }

    /// Hand-overs that were made: both sides' stores.
    pub fn hand_overs(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Ends the game, so that the other side does not wait.
    pub fn give_up(&self) {
        self.0.store(ENDED, Ordering::Release);
    }

    /// A plain store: an exchange would tell whether the other side gave up, but is what is to be
    /// measured no longer. A side that gives up is noticed by its silence.
    #[inline(always)]
    fn write(&self, ball: u64) {
        self.0.store(ball, Ordering::Release);
    }

    #[inline(always)]
    fn wait_for(&self, ball: u64) -> Option<()> {
        for _ in 0..PATIENCE {
            let seen = self.0.load(Ordering::Acquire);
            if seen == ball {
                return Some(());
            }
            if seen == ENDED {
                break;
            }
        }
        self.give_up();
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn each_round_is_two_hand_overs() {
        let line = Line::default();
        // On one CPU each turn takes a slice of the scheduler's time: few rounds.
        thread::scope(|scope| {
            let other = scope.spawn(|| {
                line.answer(0, 5)?;
                line.answer(10, 15)
            });
            line.serve(5).unwrap();
            line.serve(15).unwrap();
            other.join().unwrap().unwrap();
        });
        assert_eq!(line.hand_overs(), 40);
    }

    #[test]
    fn giving_up_frees_the_other_side() {
        let line = Line::default();
        thread::scope(|scope| {
            let other = scope.spawn(|| line.answer(0, 10));
            line.give_up();
            assert_eq!(other.join().unwrap(), None);
        });
        assert_eq!(line.serve(1), None, "the game is over for who comes later");
    }
}
