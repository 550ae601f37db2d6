//! How many descriptors a copy may have open, and for what.

use flatout_sys::resource_limit::{Resource, soft_limit};

/// For standard streams, a log, the roots, and what a library may open.
const ELSEWHERE: u64 = 16;
/// A thread has a source, a target, for a moment a third, and the ends of a pipe.
const PER_THREAD: u64 = 6;
/// Descriptors at most, where nobody asks for more. Figure: each open directory costs the kernel
/// about a KiB; more than so many are of no use.
const USUAL: u64 = 900;
/// A pair of directories for each thread, and some to come back to.
const LEAST_PAIRS: u64 = 4;
/// Where there are fewer descriptors, only pairs stay open that are needed at once.
const ENOUGH_FOR_THESE: u64 = 24;
/// Of fewer descriptors none are left over.
const SPARED_FROM: u64 = 512;

/// A plan for the descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Descriptors {
    /// Threads that can be served.
    pub(super) threads: u32,
    /// Pairs of directories that may be open.
    pub(super) pairs: usize,
    /// For threads that have several files open at a time, all of them together.
    pub(super) spare: usize,
}

impl Descriptors {
    /// For so many threads, and `most` descriptors (0: what the limit of the process allows).
    pub(super) fn plan(most: u32, threads: u32) -> Self {
        let limit = soft_limit(Resource::Nofile).unwrap_or(u64::MAX);
        let most = if most == 0 { USUAL } else { u64::from(most) };
        Self::divide(most.min(limit), threads)
    }

    fn divide(all: u64, threads: u32) -> Self {
        let least_pairs = if all < ENOUGH_FOR_THESE { 1 } else { LEAST_PAIRS };
        let all = all.saturating_sub(ELSEWHERE);
        // Half of a thread's share is for the pair of directories in which it works.
        let most_threads = (all.saturating_sub(2 * LEAST_PAIRS) / (PER_THREAD + 2)).max(1);
        let threads = u64::from(threads).min(most_threads);
        let spare = if all < SPARED_FROM { 0 } else { all / 3 };
        let pairs = all.saturating_sub(threads * PER_THREAD + spare) / 2;
        let pairs = pairs.max(least_pairs) as usize;
        Self { threads: threads as u32, pairs, spare: spare as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_descriptors_leave_few_threads_but_some() {
        assert_eq!(Descriptors::divide(12, 32).pairs, 1);
        for all in [24, 40, 64, 256, 1024, 1 << 20] {
            let plan = Descriptors::divide(all, 32);
            assert!((1..=32).contains(&plan.threads) && plan.pairs >= 4, "{all}: {plan:?}");
            if all >= 64 {
                let used =
                    u64::from(plan.threads) * PER_THREAD + (2 * plan.pairs + plan.spare) as u64;
                assert!(used + ELSEWHERE <= all, "{all}: {plan:?}");
            }
        }
        assert_eq!(Descriptors::divide(1024, 32).threads, 32);
    }
}
