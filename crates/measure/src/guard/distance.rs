//! How far the first two CPUs are from each other at the moment, in the time that a store of one takes to be
//! seen by the other. A host moves virtual CPUs, onto one cache or apart, and does not tell. What that makes
//! of a row: `sampler/row/distance.rs`.

use flatout_sys::hand_over::Line;
use flatout_sys::{affinity, clock};

/// From so many times the least distance on CPUs are far apart. On 2 vCPUs of an AMD EPYC (family 25, model
/// 17) they are 24 to 40 ns from each other on one third-level cache, 160 to 200 on two, and were on either for
/// seconds to minutes (2026-11-30).
pub const FAR: f64 = 2.5;
/// Games, of which the quickest counts, and round trips of each: some 50 µs in all where CPUs are far apart.
const GAMES: u64 = 4;
const ROUNDS: u64 = 32;
/// Looking may take one part in so many of the time: beside others a thread waits for its CPU.
const LOOKING_PART: u64 = 30;

/// The distance when it was looked at last.
#[derive(Debug, Default)]
pub(super) struct Distance {
    last_ns: Option<u32>,
    next_ns: u64,
}

impl Distance {
    /// Looks, or says what was seen a moment ago. `None` where there are no two CPUs to be had.
    ///
    /// Cost: two threads and some 0.15 ms.
    pub(super) fn look(&mut self) -> Option<u32> {
        let begun_ns = clock::monotonic_ns();
        if begun_ns >= self.next_ns {
            self.last_ns = match affinity::allowed_cpus().as_deref() {
                Ok([first, second, ..]) => between(*first, *second),
                _ => None,
            };
            let ended_ns = clock::monotonic_ns();
            self.next_ns = ended_ns + (ended_ns - begun_ns).saturating_mul(LOOKING_PART);
        }
        self.last_ns
    }
}

/// Nanoseconds one way.
fn between(first: usize, second: usize) -> Option<u32> {
    let played = Line::default().play([first, second], affinity::pin_to, (0, GAMES, ROUNDS));
    u32::try_from(played.ok()?.ok()?? / (2 * ROUNDS)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_cpus_are_some_nanoseconds_apart_and_are_not_looked_at_all_the_time() {
        let cpus = affinity::allowed_cpus().unwrap();
        let [first, second, ..] = cpus[..] else {
            return eprintln!("skipped: two CPUs are needed, one is allowed");
        };
        // On a busy machine a side may come too late.
        let seen = (0..50).find_map(|_| between(first, second)).unwrap();
        assert!((1..1_000_000).contains(&seen), "{seen}");
        assert_eq!(between(first, usize::MAX), None, "no such CPU");
        let mut distance = Distance { last_ns: Some(7), next_ns: u64::MAX };
        assert_eq!(distance.look(), Some(7));
        distance.next_ns = 0;
        distance.look();
        assert!(distance.next_ns > clock::monotonic_ns() - 1_000_000_000);
    }
}
