//! Whose memory a figure is.
//!
//! A child begins with the resident set of its parent as its high-water mark, and execve(2) keeps
//! it: `ru_maxrss` of a small program that a large one started is that of the large one. What
//! `/proc/PID/status` says (`VmHWM`) belongs to the memory after execve alone. For children of the
//! program there is `ru_maxrss` only, which tells the truth where it is larger than what can have
//! been inherited.

/// Readings of the resident set are sums of per-CPU parts, and off by what lies in these.
const SLACK_BYTES: u64 = 2 << 20;

crate::words! {
    /// Whose resident set a peak is.
    #[derive(Default)]
    pub enum MemoryOf: name {
        /// The program's own.
        #[default]
        Itself = "itself",
        /// The largest of the program and the children that it waited for.
        LargestProcess = "largest process of the pipeline",
        /// Perhaps ours: an upper bound.
        MayBeInherited = "may be inherited",
    }
}

/// What is known about the memory of a program that ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peaks {
    /// `VmHWM` at its exit.
    pub(super) own_bytes: Option<u64>,
    /// `ru_maxrss` of it and its children.
    pub(super) usage_bytes: u64,
    /// Our resident set when it was forked.
    pub(super) parent_bytes: u64,
    /// Whether it is a shell, whose own memory is of no interest: its children do the work.
    pub(super) is_shell: bool,
}

impl Peaks {
    /// The best figure, and whose it is.
    pub(super) fn judge(self) -> (u64, MemoryOf) {
        let true_usage = self.usage_bytes > self.parent_bytes.saturating_add(SLACK_BYTES);
        match self.own_bytes {
            Some(own) if true_usage && self.usage_bytes > own.saturating_add(SLACK_BYTES) => {
                (self.usage_bytes, MemoryOf::LargestProcess)
            }
            Some(own) if !self.is_shell => (own, MemoryOf::Itself),
            _ if true_usage => (self.usage_bytes, MemoryOf::LargestProcess),
            _ => (self.usage_bytes, MemoryOf::MayBeInherited),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn judged(own: Option<u64>, usage: u64, parent: u64, is_shell: bool) -> (u64, MemoryOf) {
        Peaks { own_bytes: own, usage_bytes: usage, parent_bytes: parent, is_shell }.judge()
    }

    #[test]
    fn what_a_large_parent_hands_down_is_never_taken_for_the_programs_own() {
        assert_eq!(judged(Some(2 * MIB), 300 * MIB, 300 * MIB, false), (2 * MIB, MemoryOf::Itself));
        assert_eq!(
            judged(None, 300 * MIB, 300 * MIB, false),
            (300 * MIB, MemoryOf::MayBeInherited)
        );
        assert_eq!(
            judged(Some(2 * MIB), 300 * MIB, 300 * MIB, true),
            (300 * MIB, MemoryOf::MayBeInherited)
        );
    }

    #[test]
    fn children_larger_than_the_parent_are_seen() {
        let largest = (50 * MIB, MemoryOf::LargestProcess);
        assert_eq!(judged(Some(2 * MIB), 50 * MIB, 20 * MIB, true), largest);
        assert_eq!(judged(Some(2 * MIB), 50 * MIB, 20 * MIB, false), largest);
        assert_eq!(judged(None, 50 * MIB, 20 * MIB, false), largest);
    }
}
