//! How fast a copy may be: a rate for all threads together, and rests while others wait.
//!
//! Bytes are moved in pieces, and each asks before. The arithmetic knows no clock of its own.

use std::path::Path;
use std::sync::Mutex;

use flatout_sys::pressure::{Resource, pressure};

use super::Copy;
use crate::lock::lock;

const SECOND_NS: u64 = 1_000_000_000;
/// A piece takes this part of a second, so that a second has 0.5 % too much at most for it.
const PIECES_PER_SECOND: u64 = 200;
/// Longest piece: a copy that rests is to rest soon.
const MOST_PIECE_BYTES: u64 = 1 << 20;
/// What was lost by waking too late, or in a call that took longer than its piece may, is made up
/// for: 4 % of a second at most.
const CREDIT_NS: u64 = SECOND_NS / 25;

/// The kernel sums up stalls every two seconds (kernel/sched/psi.c, `PSI_FREQ`).
const REST_NS: u64 = 2 * SECOND_NS + SECOND_NS / 10;
/// Work waits where it is stalled for this part of the time, in percent.
const BUSY_PERCENT: u64 = 20;
/// Rests in a row at most: a machine that is always busy lets a copy go on in the end.
const MOST_RESTS: u32 = 10;
/// After a rest in which nobody waited, the stalls are those of the copy itself: so many periods of
/// work come before the next rest.
const PERIODS_AFTER_A_QUIET_REST: u64 = 10;

/// What limits a copy. Shared by all threads.
#[derive(Debug, Default)]
pub struct Limits {
    rate: Option<Rate>,
    courtesy: Option<Mutex<Courtesy>>,
}

impl Limits {
    /// At most so many bytes in a second; and rests while others wait for CPUs or storage.
    pub fn new(bytes_per_second: Option<u64>, gives_way: bool) -> Self {
        Self { rate: bytes_per_second.map(Rate::new), courtesy: gives_way.then(Mutex::default) }
    }

    /// The longest piece that may be moved at once; `None`: any.
    pub(super) fn piece_bytes(&self) -> Option<u64> {
        match (&self.rate, &self.courtesy) {
            (Some(rate), _) => Some(rate.piece_bytes()),
            (None, Some(_)) => Some(MOST_PIECE_BYTES),
            (None, None) => None,
        }
    }

    /// When the next bytes may be moved, on the clock of `now_ns`.
    pub(super) fn admit(&self, bytes: u64, now_ns: u64) -> u64 {
        let rest_ns = self
            .courtesy
            .as_ref()
            .map_or(now_ns, |courtesy| lock(courtesy).admit(now_ns, stalled_ns));
        self.rate.as_ref().map_or(rest_ns, |rate| rate.admit(bytes, rest_ns))
    }
}

/// For how long some work waited since boot, by resource. `None`: the kernel does not tell.
fn stalled_ns() -> Option<[u64; 2]> {
    let of = |resource| pressure(Path::new("/"), resource);
    Some([of(Resource::Cpu)?, of(Resource::Io)?])
}

/// A rate without bursts.
#[derive(Debug)]
struct Rate {
    bytes_per_second: u64,
    /// When the time of all that was admitted is over; 0 before the first.
    free_ns: Mutex<u64>,
}

impl Rate {
    fn new(bytes_per_second: u64) -> Self {
        Self { bytes_per_second, free_ns: Mutex::new(0) }
    }

    fn piece_bytes(&self) -> u64 {
        (self.bytes_per_second / PIECES_PER_SECOND).clamp(1, MOST_PIECE_BYTES)
    }

    fn admit(&self, bytes: u64, now_ns: u64) -> u64 {
        let takes_ns = u128::from(bytes) * u128::from(SECOND_NS);
        let takes_ns = takes_ns.div_ceil(u128::from(self.bytes_per_second));
        let mut free_ns = lock(&self.free_ns);
        // Before the first bytes nothing was lost.
        let credit_ns = if *free_ns == 0 { 0 } else { CREDIT_NS };
        let begin_ns = (*free_ns).max(now_ns.saturating_sub(credit_ns));
        *free_ns = begin_ns.saturating_add(u64::try_from(takes_ns).unwrap_or(u64::MAX));
        // When their time is over, so that at no moment more was moved than the rate allows.
        (*free_ns).max(now_ns)
    }
}

/// Rests while others wait.
#[derive(Debug, Default)]
struct Courtesy {
    /// When this period ends; 0 before the first one.
    end_ns: u64,
    begun_ns: u64,
    stalled_ns: [u64; 2],
    /// Rests in a row; 0: it works.
    rests: u32,
}

impl Courtesy {
    /// When work may go on.
    fn admit(&mut self, now_ns: u64, stalled_ns: impl FnOnce() -> Option<[u64; 2]>) -> u64 {
        if now_ns < self.end_ns {
            return if self.rests > 0 { self.end_ns } else { now_ns };
        }
        let Some(stalled_ns) = stalled_ns() else { return now_ns };
        let most_ns = (0..2).map(|index| stalled_ns[index].saturating_sub(self.stalled_ns[index]));
        let most_ns = most_ns.max().unwrap_or_default();
        let is_first = self.end_ns == 0;
        let is_busy = !is_first && most_ns * 100 > (now_ns - self.begun_ns) * BUSY_PERCENT;
        let was_resting = self.rests > 0;
        self.rests = if is_busy && self.rests < MOST_RESTS { self.rests + 1 } else { 0 };
        let is_quiet = was_resting && !is_busy;
        let periods = if is_quiet { PERIODS_AFTER_A_QUIET_REST } else { 1 };
        (self.begun_ns, self.stalled_ns) = (now_ns, stalled_ns);
        self.end_ns = now_ns + periods * REST_NS;
        if self.rests > 0 { self.end_ns } else { now_ns }
    }
}

impl Copy<'_> {
    /// The same copy, not faster than this.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.methods.limits = limits;
        self
    }

    /// Whether it may not be as fast as it could.
    pub fn is_limited(&self) -> bool {
        self.methods.limits.piece_bytes().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads that move a piece as soon as they may and wake up late, some more and some less.
    fn moved(rate: u64, threads: usize, seconds: u64) -> Vec<(u64, u64)> {
        let limits = Limits::new(Some(rate), false);
        let piece = limits.piece_bytes().unwrap();
        let mut clocks: Vec<u64> = (0..threads as u64).map(|index| index * 1_000).collect();
        let (mut all, mut late) = (Vec::new(), 1_u64);
        while let Some(thread) = (0..threads).min_by_key(|&thread| clocks[thread]) {
            let now = clocks[thread];
            if now > seconds * SECOND_NS {
                break;
            }
            late = late.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let begin = limits.admit(piece, now);
            let woken = begin + if begin > now { (late >> 33) % 8_000_000 } else { 0 };
            all.push((woken, piece));
            clocks[thread] = woken + 1_000;
        }
        all.sort_unstable();
        all
    }

    #[test]
    fn any_second_has_the_bytes_of_a_second() {
        for rate in [1_024, 50_000, 1 << 20, 100 << 20, 4 << 30] {
            for threads in [1, 2, 32] {
                let all = moved(rate, threads, 6);
                let mut bytes = 0;
                for (at, more) in &all {
                    bytes += more;
                    let most = rate as f64 * *at as f64 / SECOND_NS as f64;
                    assert!(bytes as f64 <= most + 1.0, "{rate} {threads}: {bytes} {most}");
                }
                for begin in (SECOND_NS..4 * SECOND_NS).step_by(SECOND_NS as usize / 8) {
                    let within = |at: u64| (begin..begin + SECOND_NS).contains(&at);
                    let bytes: u64 =
                        all.iter().filter(|(at, _)| within(*at)).map(|(_, bytes)| bytes).sum();
                    let percent = bytes as f64 / rate as f64 * 100.0;
                    assert!((95.0..=105.0).contains(&percent), "{rate} {threads}: {percent} %");
                }
            }
        }
    }

    #[test]
    fn a_copy_that_had_nothing_to_do_does_not_make_up_for_it() {
        let limits = Limits::new(Some(1_000_000), false);
        assert_eq!(limits.admit(10_000, 0), SECOND_NS / 100);
        let late = 100 * SECOND_NS;
        let last = (0..200).map(|_| limits.admit(10_000, late)).last().unwrap();
        assert!(last >= late + 19 * SECOND_NS / 10, "{last}");
    }

    #[test]
    fn it_rests_while_others_wait_and_not_for_what_it_causes_itself() {
        let mut courtesy = Courtesy::default();
        let mut now = SECOND_NS;
        let mut stalled = 0;
        // What others cause is there also in a rest; then nobody waits any more.
        assert_eq!(courtesy.admit(now, || Some([stalled, 0])), now);
        for _ in 0..3 {
            now = courtesy.end_ns;
            stalled += REST_NS;
            assert_eq!(courtesy.admit(now, || Some([stalled, 0])), now + REST_NS);
        }
        now = courtesy.end_ns;
        assert_eq!(courtesy.admit(now, || Some([stalled, 0])), now, "nobody waits");
        // What it causes itself is gone in the rest: it works for long.
        assert_eq!(courtesy.end_ns, now + PERIODS_AFTER_A_QUIET_REST * REST_NS);
        // A machine that is always busy lets it go on now and then.
        let mut rests = 0;
        for _ in 0..3 * MOST_RESTS {
            now = courtesy.end_ns;
            stalled += 10 * REST_NS * PERIODS_AFTER_A_QUIET_REST;
            rests += u32::from(courtesy.admit(now, || Some([stalled, 0])) > now);
        }
        assert!((MOST_RESTS..3 * MOST_RESTS).contains(&rests), "{rests}");
        // Where the kernel does not tell, nobody rests.
        assert_eq!(Courtesy::default().admit(5, || None), 5);
    }
}
