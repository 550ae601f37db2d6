//! Whom a process without work asks, and when.
//!
//! Pure: time and answers are given. Who gave something last is asked first, since who had much
//! mostly has more. Who has nothing names another one: whom it gave something last, or who gave it
//! something; so at the beginning, when few have work, it is found in a few steps and not by chance.
//! After some steps others are asked at random, which finds one that has work among n in n questions
//! on average and loads nobody, and the next question waits twice as long each time, up to a limit, so
//! that a thousand idle processes do not keep the busy one from its work.

use flatout_sys::generator::SplitMix64;

/// The wait after the first refusal, and the longest one.
const FIRST_WAIT_NS: u64 = 50_000;
const LONGEST_WAIT_NS: u64 = 3_200_000;
/// So many that are named are asked one after the other without a wait.
const MOST_STEPS: u32 = 4;

/// The one that asks.
#[derive(Debug)]
pub(super) struct Thief {
    rank: usize,
    size: usize,
    /// Who is asked next.
    generous: Option<usize>,
    /// Who gave this one something last, and whom it gave something.
    giver: Option<usize>,
    taker: Option<usize>,
    steps: u32,
    wait_ns: u64,
    pub(super) not_before_ns: u64,
    random: SplitMix64,
}

impl Thief {
    /// Of this rank among so many.
    pub(super) fn new(rank: usize, size: usize) -> Self {
        // Where the work begins.
        let generous = (rank != 0).then_some(0);
        let (giver, taker, random) = (None, None, SplitMix64::new(rank as u64));
        let (steps, wait_ns, not_before_ns) = (0, FIRST_WAIT_NS, 0);
        Self { rank, size, generous, giver, taker, steps, wait_ns, not_before_ns, random }
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
        let chosen = (self.random.next_u64() % others) as usize;
        Some(chosen + usize::from(chosen >= self.rank))
    }

    /// One was given something here.
    pub(super) fn gave(&mut self, to: usize) {
        self.taker = Some(to);
    }

    /// Whom one is to ask that is given nothing here.
    pub(super) fn other_for(&self, asker: usize) -> Option<usize> {
        [self.taker, self.giver].into_iter().flatten().find(|&other| other != asker)
    }

    /// He who was asked has given something.
    pub(super) fn was_given(&mut self, from: usize) {
        (self.generous, self.giver) = (Some(from), Some(from));
        (self.steps, self.wait_ns, self.not_before_ns) = (0, FIRST_WAIT_NS, 0);
    }

    /// He who was asked had nothing, and maybe named another one.
    pub(super) fn was_refused(&mut self, named: Option<usize>, now_ns: u64) {
        self.generous = named
            .filter(|&named| named != self.rank && named < self.size && self.steps < MOST_STEPS);
        if self.generous.is_some() {
            self.steps += 1;
            return;
        }
        self.steps = 0;
        self.not_before_ns = now_ns + self.wait_ns;
        self.wait_ns = (self.wait_ns * 2).min(LONGEST_WAIT_NS);
    }
}

/// How many of so many pieces that wait are given to one who asks: half, for it may have to give,
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
        thief.was_given(0);
        assert_eq!(thief.whom(0), Some(0));
        thief.was_refused(None, 0);
        assert_eq!(thief.whom(FIRST_WAIT_NS - 1), None);
        let mut asked = [0; 5];
        let mut now_ns = FIRST_WAIT_NS;
        for _ in 0..1000 {
            let whom = thief.whom(now_ns).unwrap();
            asked[whom] += 1;
            thief.was_refused(None, now_ns);
            now_ns += LONGEST_WAIT_NS;
        }
        assert_eq!(asked[3], 0, "never itself");
        assert!([0, 1, 2, 4].iter().all(|&other| asked[other] > 150), "{asked:?}");
        assert_eq!(Thief::new(0, 1).whom(0), None);
        assert_eq!([0, 1, 2, 7, 900].map(|waiting| share(waiting, 16)), [0, 1, 1, 4, 16]);
    }

    #[test]
    fn who_is_named_is_asked_without_a_wait_but_not_for_ever() {
        let mut thief = Thief::new(3, 9);
        thief.was_refused(Some(5), 0);
        assert_eq!(thief.whom(0), Some(5));
        for _ in 1..MOST_STEPS {
            thief.was_refused(Some(6), 0);
            assert_eq!(thief.whom(0), Some(6));
        }
        thief.was_refused(Some(6), 0);
        assert_eq!(thief.whom(0), None, "now it waits");
        let mut thief = Thief::new(3, 9);
        for named in [3, 9] {
            thief.was_refused(Some(named), 0);
            assert_eq!(thief.whom(0), None, "itself, and one that is not there");
        }
        thief.was_given(4);
        assert_eq!((thief.other_for(1), thief.other_for(4)), (Some(4), None));
        thief.gave(2);
        assert_eq!((thief.other_for(1), thief.other_for(2)), (Some(2), Some(4)));
    }
}
