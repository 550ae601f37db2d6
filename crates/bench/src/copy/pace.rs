//! How fast trees are made, copied, compared and removed here, for what is planned and announced. What
//! becomes of it: `choose.rs`.

use crate::tried::{Copying, Tried};

/// Where copies have bytes of their own, trees take so many times what the fastest of a few small copies took:
/// on ext4 0.63 to 0.93 of what was announced was copied without it (2 vCPUs of an AMD EPYC, 2026-11-30).
const LASTING_PART: f64 = 1.3;

/// What is done here for a byte and for an entry, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pace {
    /// What was tried here, or what it usually is.
    pub(super) tried: Tried,
    /// Making a tree, until storage has it.
    pub(super) make_byte_s: f64,
    pub(super) make_entry_s: f64,
    /// Removing a file of a tree, and an emptied one of a copy.
    pub(super) remove_file_s: f64,
    pub(super) remove_entry_s: f64,
    /// How many times slower than when it was tried all is.
    pub(super) slowdown: f64,
}

impl Pace {
    /// Where nothing is tried.
    pub(super) const USUAL: Self = Self {
        tried: Tried { settle_ns: 3.6e6, ..Tried::USUAL },
        make_byte_s: 1.05e-9,
        make_entry_s: 42e-6,
        remove_file_s: 15e-6,
        remove_entry_s: 15e-6,
        slowdown: 1.0,
    };

    /// The same on a machine that is as busy as it is now.
    pub(super) fn usual() -> Self {
        Self { slowdown: Tried::nothing().slowdown, ..Self::USUAL }
    }

    /// What was tried in a place.
    pub(super) fn of(tried: Tried) -> Self {
        // Trees are written for longer than what is tried: storage that is quick for a moment is as usual.
        let least_s = if tried.in_memory { 0.0 } else { Self::USUAL.make_byte_s };
        let part = if tried.in_memory { 1.0 } else { LASTING_PART };
        let Copying { byte_ns, compared_byte_ns, .. } = tried.copying;
        let [byte_ns, compared_byte_ns] = [byte_ns, compared_byte_ns].map(|ns| ns * part);
        Self {
            tried: Tried {
                copying: Copying { byte_ns, compared_byte_ns, ..tried.copying },
                ..tried
            },
            make_byte_s: (tried.making_byte_ns / 1e9).max(least_s),
            make_entry_s: tried.copying.entry_ns / 1e9,
            remove_file_s: tried.removing_file_ns / 1e9,
            remove_entry_s: Self::USUAL.remove_entry_s,
            slowdown: tried.slowdown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_that_is_quick_for_a_moment_is_as_usual_and_memory_is_as_quick_as_it_was_seen() {
        let made = |making_byte_ns, in_memory| {
            Pace::of(Tried { making_byte_ns, in_memory, ..Tried::USUAL }).make_byte_s
        };
        assert_eq!(made(0.3, false), Pace::USUAL.make_byte_s);
        assert_eq!([made(0.5, true), made(4.0, false)], [0.5e-9, 4e-9]);
    }
}
