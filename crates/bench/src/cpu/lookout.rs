//! Whether another hardware thread uses the core, asked before and after each slice of work.
//!
//! What a slice reaches beside a neighbour says nothing about the units, and the neighbour is not
//! recognised by that: the glance has work of its own ([`flatout_sys::issue_width`]). On a core of one's own it sees as
//! many instructions per cycle as the core is wide, a whole number, which is learned here. Where
//! none is seen, nothing is known and every slice counts.

use std::sync::atomic::{AtomicU32, Ordering};

use flatout_sys::clock::monotonic_ns;
use flatout_sys::issue_width;

/// Widths that a core can have: narrower ones are no longer made, and a neighbour on one of six
/// leaves three.
const NARROWEST: usize = 4;
const WIDEST: usize = 12;
/// How far below a width a glance may lie, and how far above, where the chain that tells the cycles was
/// disturbed. Of 400,000 glances at cores of six those without a neighbour lay between 5.8 and 6.1,
/// most beside one between 2.3 and 3.7 (Sapphire Rapids, 2026-11-22).
const BELOW: f64 = 0.05;
const ABOVE: f64 = 0.04;
/// Glances that make a width known: so many, and such a share of all. Disturbed glances lie anywhere.
const LEAST_GLANCES: u32 = 8;
const LEAST_SHARE: f64 = 0.005;
/// Share of the last glances without a neighbour below which looking for more is given up soon, so that
/// rows get their trials; and how many glances count as the last ones.
const HOPELESS_SHARE: f64 = 0.004;
const MEMORY_GLANCES: u32 = 8192;
/// Share of the last glances without a neighbour from which on there is none to avoid.
const QUIET_SHARE: f64 = 0.9;
/// For how long a width is looked for before anything is measured, at most.
const LEARNING_NS: u64 = 60_000_000;

/// What was seen so far, by all threads together.
#[derive(Debug, Default)]
pub(super) struct Lookout {
    /// Glances near each width.
    near: [AtomicU32; WIDEST + 1],
    glances: AtomicU32,
    /// The width that was learned; 0 before.
    learned: AtomicU32,
    /// Of the last glances, those that were alone, and all.
    last_alone: AtomicU32,
    last: AtomicU32,
}

/// What a glance says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Sight {
    /// Nobody else uses the core.
    Alone,
    /// Somebody does, or the glance was disturbed.
    Shared,
    /// It is not known how wide the core is, or nobody looked.
    #[default]
    Unknown,
}

impl Sight {
    /// What two glances say of the time between them.
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Alone, Self::Alone) => Self::Alone,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            _ => Self::Shared,
        }
    }
}

impl Lookout {
    /// Takes glances until a width is known, for 60 ms at most, on the CPU where it is called.
    pub(super) fn learn(&self) {
        let begun_ns = monotonic_ns();
        let is_over = || monotonic_ns().saturating_sub(begun_ns) > LEARNING_NS;
        while self.look() != Sight::Alone && !is_over() {
            if self.glances.load(Ordering::Relaxed) == 0 {
                return;
            }
        }
    }

    /// Takes a glance, from which it also learns.
    pub(super) fn look(&self) -> Sight {
        issue_width::glance().map_or(Sight::Unknown, |glance| self.see(glance.per_cycle()))
    }

    /// How many instructions the core begins per cycle when it is not shared.
    pub(super) fn width(&self) -> Option<usize> {
        let all = f64::from(self.glances.load(Ordering::Relaxed));
        let least = LEAST_GLANCES.max((all * LEAST_SHARE) as u32);
        let is_seen = |&width: &usize| self.near[width].load(Ordering::Relaxed) >= least;
        let seen = (NARROWEST..=WIDEST).rev().find(is_seen).unwrap_or(0) as u32;
        // What was learned stays so when a neighbour no longer rests.
        let width = self.learned.fetch_max(seen, Ordering::Relaxed).max(seen) as usize;
        (width > 0).then_some(width)
    }

    /// Whether neighbours were there lately, as far as is known.
    pub(super) fn sees_neighbours(&self) -> bool {
        let [alone, all] =
            [&self.last_alone, &self.last].map(|one| f64::from(one.load(Ordering::Relaxed)));
        self.width().is_some() && alone < QUIET_SHARE * all
    }

    /// How many of so many glances see nobody.
    pub(super) fn alone_of(&self, glances: u32) -> u32 {
        (0..glances).map(|_| u32::from(self.look() == Sight::Alone)).sum()
    }

    /// Whether moments without a neighbour have become so rare that looking for one is in vain.
    pub(super) fn is_hopeless(&self) -> bool {
        let [alone, all] =
            [&self.last_alone, &self.last].map(|one| f64::from(one.load(Ordering::Relaxed)));
        all > f64::from(MEMORY_GLANCES / 4) && alone < HOPELESS_SHARE * all
    }

    /// Keeps in mind what the last glances saw. Threads may lose one to each other.
    fn remember(&self, sight: Sight) {
        if self.last.fetch_add(1, Ordering::Relaxed) >= MEMORY_GLANCES {
            for counter in [&self.last, &self.last_alone] {
                counter.store(counter.load(Ordering::Relaxed) / 2, Ordering::Relaxed);
            }
        }
        self.last_alone.fetch_add(u32::from(sight == Sight::Alone), Ordering::Relaxed);
    }

    fn see(&self, per_cycle: f64) -> Sight {
        self.glances.fetch_add(1, Ordering::Relaxed);
        let whole = |width: &usize| {
            let share = per_cycle / *width as f64;
            (1.0 - BELOW..=1.0 + ABOVE).contains(&share)
        };
        let near = (NARROWEST..=WIDEST).find(whole);
        if let Some(width) = near {
            self.near[width].fetch_add(1, Ordering::Relaxed);
        }
        let sight = match (self.width(), near) {
            (None, _) => Sight::Unknown,
            (Some(known), Some(seen)) if seen == known => Sight::Alone,
            (Some(_), _) => Sight::Shared,
        };
        self.remember(sight);
        sight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lookout that saw so many glances of each kind.
    fn lookout(seen: &[(f64, u32)]) -> Lookout {
        let lookout = Lookout::default();
        for &(per_cycle, count) in seen {
            (0..count).for_each(|_| {
                lookout.see(per_cycle);
            });
        }
        lookout
    }

    #[test]
    fn a_neighbour_at_either_end_was_there() {
        use Sight::{Alone, Shared, Unknown};
        assert_eq!(
            (Alone.and(Alone), Alone.and(Shared), Shared.and(Alone)),
            (Alone, Shared, Shared)
        );
        assert_eq!((Alone.and(Unknown), Unknown.and(Shared)), (Unknown, Unknown));
    }

    #[test]
    fn a_neighbour_halves_what_a_glance_sees() {
        // As on a Sapphire Rapids whose neighbour rests now and then, in glances per cycle.
        let lookout = lookout(&[(2.9, 900), (5.95, 20), (3.4, 400), (11.4, 1)]);
        assert_eq!(lookout.width(), Some(6));
        assert_eq!(lookout.see(5.9), Sight::Alone);
        for per_cycle in [2.9, 3.4, 4.6, 5.6, 7.0, 11.4, f64::NAN, f64::INFINITY, 0.0] {
            assert_eq!(lookout.see(per_cycle), Sight::Shared, "{per_cycle}");
        }
    }

    #[test]
    fn a_neighbour_who_never_rests_leaves_the_width_unknown() {
        let lookout = lookout(&[(2.9, 900), (3.1, 500), (6.0, 3)]);
        assert_eq!((lookout.width(), lookout.see(3.0)), (None, Sight::Unknown));
        assert_eq!(Lookout::default().width(), None);
    }

    #[test]
    fn a_neighbour_who_hardly_rests_is_waited_for_in_vain_until_he_rests_again() {
        let lookout = lookout(&[(5.95, 20), (2.9, 1000)]);
        assert!(!lookout.is_hopeless() && lookout.sees_neighbours());
        (0..20_000).for_each(|_| _ = lookout.see(2.9));
        assert!(lookout.is_hopeless());
        // He rests for a hundredth of the time.
        (0..82).for_each(|_| _ = lookout.see(6.0));
        assert!(!lookout.is_hopeless());
    }

    #[test]
    fn cores_of_other_widths_are_learned() {
        // Skylake issues four, Zen 3 and Ice Lake five or six, Zen 5 eight.
        for width in [4, 5, 6, 8] {
            let lookout = lookout(&[(0.98 * width as f64, 300)]);
            assert_eq!(lookout.width(), Some(width));
            assert!(!lookout.sees_neighbours() && !Lookout::default().sees_neighbours());
        }
    }

    #[test]
    fn a_glance_at_this_machine_ends() {
        let lookout = Lookout::default();
        lookout.learn();
        let sight = lookout.look();
        assert!(lookout.width().is_some() || sight == Sight::Unknown);
    }
}
