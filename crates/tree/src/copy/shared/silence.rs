//! Which of the other processes does not answer any more: where one was killed, not every launcher
//! ends the others.
//!
//! Pure: time is given. The first process hears of all others every moment until they have ended, and they
//! of it as long as there is something to do.

use std::panic::resume_unwind;
use std::thread::{self, Builder};
use std::time::Duration;

const SECOND_NS: u64 = 1_000_000_000;
const PAUSE: Duration = Duration::from_micros(100);
/// A process of which nothing was heard for so long is gone.
const PATIENCE_NS: u64 = 60 * SECOND_NS;
/// The first one may have to wait for a user who has stopped the terminal.
const PATIENCE_WITH_FIRST_NS: u64 = 60 * PATIENCE_NS;
/// Who has not looked for so long was stopped itself, and maybe the others with it.
const OWN_SILENCE_NS: u64 = 10 * SECOND_NS;

/// When each process was heard of last.
#[derive(Debug)]
pub struct Silence {
    rank: usize,
    heard_ns: Vec<u64>,
    looked_ns: u64,
    beaten_ns: u64,
}

impl Silence {
    /// Of this rank among so many; all were heard of just now.
    pub fn new(rank: usize, size: usize, now_ns: u64) -> Self {
        Self { rank, heard_ns: vec![now_ns; size], looked_ns: now_ns, beaten_ns: 0 }
    }

    /// One says something.
    pub fn heard(&mut self, from: usize, now_ns: u64) {
        self.heard_ns[from] = now_ns;
    }

    /// Whether it is time to tell the first process that this one is still there.
    pub fn is_due(&mut self, now_ns: u64) -> bool {
        let is_due = self.rank > 0 && now_ns - self.beaten_ns > SECOND_NS;
        self.beaten_ns = if is_due { now_ns } else { self.beaten_ns };
        is_due
    }

    /// One that is gone, but of those that have ended. What has come was read before.
    pub fn who(&mut self, now_ns: u64, has_ended: impl Fn(usize) -> bool) -> Option<usize> {
        if now_ns - self.looked_ns > OWN_SILENCE_NS {
            self.heard_ns.fill(now_ns);
        }
        self.looked_ns = now_ns;
        let is_silent = |rank: &usize, for_ns| now_ns - self.heard_ns[*rank] > for_ns;
        match self.rank {
            0 => (1..self.heard_ns.len())
                .find(|rank| !has_ended(*rank) && is_silent(rank, PATIENCE_NS)),
            _ => Some(0).filter(|rank| is_silent(rank, PATIENCE_WITH_FIRST_NS)),
        }
    }
}

/// Does what may take long, and calls `beat` meanwhile.
pub fn during<T: Send>(work: impl Fn() -> T + Sync, mut beat: impl FnMut()) -> T {
    thread::scope(|scope| match flatout_sys::thread::spawn(scope, Builder::new(), &work) {
        Ok(thread) => {
            while !thread.is_finished() {
                beat();
                thread::sleep(PAUSE);
            }
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))
        }
        Err(_) => work(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_silent_for_long_is_gone_unless_all_were_stopped() {
        let mut silence = Silence::new(0, 3, 0);
        let mut now_ns = 0;
        while now_ns < PATIENCE_NS {
            now_ns += SECOND_NS;
            silence.heard(2, now_ns);
            assert_eq!(silence.who(now_ns, |_| false), None);
        }
        assert_eq!(silence.who(now_ns + SECOND_NS, |_| false), Some(1));
        assert_eq!(silence.who(now_ns + SECOND_NS, |rank| rank == 1), None, "it has ended");
        let mut silence = Silence::new(0, 3, 0);
        assert_eq!(silence.who(PATIENCE_NS * 50, |_| false), None, "this one was stopped, too");
        assert_eq!(silence.who(PATIENCE_NS * 50 + SECOND_NS, |_| false), None);
        let mut other = Silence::new(2, 3, 0);
        for second in 0..PATIENCE_WITH_FIRST_NS / SECOND_NS {
            assert_eq!(other.who(second * SECOND_NS, |_| false), None);
        }
        assert_eq!(other.who(PATIENCE_WITH_FIRST_NS + 1, |_| false), Some(0));
    }
}
