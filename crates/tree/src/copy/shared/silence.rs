//! Which of the other processes does not answer any more: where one was killed, not every launcher
//! ends the others.
//!
//! Pure: time is given. The first process hears of all others every moment as long as there is something
//! to do, and they of it.

const SECOND_NS: u64 = 1_000_000_000;
/// A process of which nothing was heard for so long is gone.
const PATIENCE_NS: u64 = 60 * SECOND_NS;
/// The first one may have to wait for a user who has stopped the terminal.
const PATIENCE_WITH_FIRST_NS: u64 = 60 * PATIENCE_NS;
/// Who has not looked for so long was stopped itself, and maybe the others with it.
const OWN_SILENCE_NS: u64 = 10 * SECOND_NS;

/// When each process was heard of last.
#[derive(Debug)]
pub(super) struct Silence {
    rank: usize,
    heard_ns: Vec<u64>,
    looked_ns: u64,
}

impl Silence {
    /// All were heard of just now.
    pub(super) fn new(rank: usize, size: usize, now_ns: u64) -> Self {
        Self { rank, heard_ns: vec![now_ns; size], looked_ns: now_ns }
    }

    pub(super) fn heard(&mut self, from: usize, now_ns: u64) {
        self.heard_ns[from] = now_ns;
    }

    /// One that is gone. What has come was read before.
    pub(super) fn who(&mut self, now_ns: u64) -> Option<usize> {
        if now_ns - self.looked_ns > OWN_SILENCE_NS {
            self.heard_ns.fill(now_ns);
        }
        self.looked_ns = now_ns;
        let is_silent = |rank: &usize, for_ns| now_ns - self.heard_ns[*rank] > for_ns;
        match self.rank {
            0 => (1..self.heard_ns.len()).find(|rank| is_silent(rank, PATIENCE_NS)),
            _ => Some(0).filter(|rank| is_silent(rank, PATIENCE_WITH_FIRST_NS)),
        }
    }
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
            assert_eq!(silence.who(now_ns), None);
        }
        assert_eq!(silence.who(now_ns + SECOND_NS), Some(1));
        let mut silence = Silence::new(0, 3, 0);
        assert_eq!(silence.who(PATIENCE_NS * 50), None, "this one was stopped, too");
        assert_eq!(silence.who(PATIENCE_NS * 50 + SECOND_NS), None);
        let mut other = Silence::new(2, 3, 0);
        for second in 0..PATIENCE_WITH_FIRST_NS / SECOND_NS {
            assert_eq!(other.who(second * SECOND_NS), None);
        }
        assert_eq!(other.who(PATIENCE_WITH_FIRST_NS + 1), Some(0));
    }
}
