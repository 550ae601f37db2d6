//! Whose memory a figure is.
//!
//! A child begins with the resident set of its parent as its high-water mark, and execve(2) keeps
//! it: `ru_maxrss` of a small program that a large one started is that of the large one. What
//! `/proc/PID/status` says (`VmHWM`) belongs to the memory after execve alone. For children of the
//! program there is `ru_maxrss` only, which tells the truth where it is larger than what can have
//! been inherited.

use std::fs;

/// Readings of the resident set are sums of per-CPU parts, and off by what lies in these.
const SLACK_BYTES: u64 = 2 << 20;

/// Whose resident set a peak is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryOf {
    /// The program's own.
    Itself,
    /// The largest of the program and the children that it waited for.
    LargestProcess,
    /// Perhaps ours: an upper bound.
    MayBeInherited,
}

impl MemoryOf {
    /// In words, for records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Itself => "itself",
            Self::LargestProcess => "largest process of the pipeline",
            Self::MayBeInherited => "may be inherited",
        }
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

/// A member of `/proc/PID/status` that is given in kB.
pub(super) fn status_bytes(process: &str, member: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(member))?;
    let kilobytes: u64 = line.trim_start_matches(':').split_whitespace().next()?.parse().ok()?;
    Some(kilobytes.saturating_mul(1024))
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

    #[test]
    fn our_own_status_can_be_read() {
        assert!(status_bytes("self", "VmHWM").is_some_and(|bytes| bytes > 0));
        assert_eq!(status_bytes("self", "NoSuchMember"), None);
    }
}
