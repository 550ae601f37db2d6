//! Whom a process asks for work that has none, and when it asks again.
//!
//! Pure: time and answers are given. Who gave something last is asked first, since he who had much
//! mostly has more; then others at random, which finds one that has work among n in n questions on
//! average and loads nobody. After each refusal the next question waits twice as long, up to a
//! limit, so that a thousand idle processes do not keep the busy one from its work.

/// The wait after the first refusal, and the longest one.
const FIRST_WAIT_NS: u64 = 50_000;
const LONGEST_WAIT_NS: u64 = 12_800_000;

/// The one that asks.
#[derive(Debug)]
pub(super) struct Thief {
    rank: usize,
    size: usize,
    generous: Option<usize>,
    wait_ns: u64,
    not_before_ns: u64,
    random: u64,
}

impl Thief {
    /// Of this rank among so many.
    pub(super) fn new(rank: usize, size: usize) -> Self {
        // Where the work begins.
        let generous = (rank != 0).then_some(0);
        let random = rank as u64;
        Self { rank, size, generous, wait_ns: FIRST_WAIT_NS, not_before_ns: 0, random }
    }

    /// Whom to ask now; `None`: it is too early, or there is nobody.
    pub(super) fn whom(&mut self, now_ns: u64) -> Option<usize> {
        if self.size < 2 || now_ns < self.not_before_ns {
            return None;
        }
        if let Some(generous) = self.generous.take() {
            return Some(generous);
        }
        let others = self.size as u64 - 1;
        let chosen = (super::super::dispatch::step(&mut self.random) % others) as usize;
        Some(chosen + usize::from(chosen >= self.rank))
    }

    /// He who was asked has answered.
    pub(super) fn heard(&mut self, from: usize, has_given: bool, now_ns: u64) {
        if has_given {
            (self.generous, self.wait_ns, self.not_before_ns) = (Some(from), FIRST_WAIT_NS, 0);
        } else {
            self.not_before_ns = now_ns + self.wait_ns;
            self.wait_ns = (self.wait_ns * 2).min(LONGEST_WAIT_NS);
        }
    }
}

/// How many of so many pieces that wait are given to one who asks: half, for he may have to give,
/// too.
pub(in crate::copy) fn share(waiting: usize, most: usize) -> usize {
    waiting.div_ceil(2).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_gave_is_asked_again_and_refusals_are_waited_for() {
        let mut thief = Thief::new(3, 5);
        assert_eq!(thief.whom(0), Some(0), "where the work begins");
        thief.heard(0, true, 0);
        assert_eq!(thief.whom(0), Some(0));
        thief.heard(0, false, 0);
        assert_eq!(thief.whom(FIRST_WAIT_NS - 1), None);
        let mut asked = [0; 5];
        let mut now_ns = FIRST_WAIT_NS;
        for _ in 0..1000 {
            let whom = thief.whom(now_ns).unwrap();
            asked[whom] += 1;
            thief.heard(whom, false, now_ns);
            now_ns += LONGEST_WAIT_NS;
        }
        assert_eq!(asked[3], 0, "never itself");
        assert!([0, 1, 2, 4].iter().all(|&other| asked[other] > 150), "{asked:?}");
        assert_eq!(Thief::new(0, 1).whom(0), None);
        assert_eq!([0, 1, 2, 7, 900].map(|waiting| share(waiting, 16)), [0, 1, 1, 4, 16]);
    }
}
