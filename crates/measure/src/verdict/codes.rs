//! Which warning makes which answer bad, and why. A code that stands in no list here says how the
//! row was measured and leaves the answers as they are.

use crate::warning;

/// Did it even happen? These say that the work in question may not have been done. What a row has
/// as evidence says more, and comes first (`verdict/happened.rs`).
///
/// A loop device on a cached file reads memory, whatever direct I/O says about the file on it;
/// and what a disk was not seen to move, it did not move. Where twice the work does not take twice
/// the time, some of it was not done.
pub(super) const NOT_DONE: [&str; 13] = [
    warning::SPARSE_FILE,
    warning::ZERO_BLOCKS,
    warning::UNWRITTEN_EXTENTS,
    warning::DIRECT_CACHED,
    warning::DONTCACHE_HIT,
    warning::NOT_COLD,
    warning::DIRTY_PAGES,
    warning::SHORT_FILE,
    warning::DIGEST_DIFFERS,
    warning::TRUNCATED,
    warning::LOOP_CACHED,
    warning::NOT_FROM_DEVICE,
    warning::NOT_LINEAR,
];

/// Did it even happen? These say that nothing could be counted that would show it: no sign of
/// idleness, but no evidence either, and without evidence the answer is bad.
pub(super) const UNPROVEN: [&str; 1] = [warning::DEVICE_UNKNOWN];

/// Does it matter? These say that a figure is about something else than its name.
///
/// A network or userspace filesystem: the figure is that of a server, a line or a program, and
/// may be what was wanted, but it is none of a disk here. An overlay is not among them: what is
/// written to it, and read back, lies on the filesystem below, at the same speed. A file that a
/// cache can hold measures the cache. Late starts: the load that was asked for was never offered.
pub(super) const BESIDE_THE_POINT: [&str; 7] = [
    warning::MEMORY_FILESYSTEM,
    warning::SHORT_RUN,
    warning::THREADS_REDUCED,
    warning::NETWORK_FILESYSTEM,
    warning::USERSPACE_FILESYSTEM,
    warning::FITS_IN_CACHE,
    warning::LATE_STARTS,
];

/// Does it matter? These only label a figure: the row is meant to be like this.
pub(super) const LABELS: [&str; 6] = [
    warning::SYSCALL_BOUND,
    warning::READAHEAD_BOUND,
    warning::NOT_DURABLE,
    warning::OVERSUBSCRIBED,
    warning::LOOPBACK,
    warning::DISCARDED,
];

/// Does it matter? The figure stands for its name, in circumstances that the reader must know.
pub(super) const CIRCUMSTANCES: [&str; 19] = [
    warning::OVERHEAD,
    warning::DONE_OTHERWISE,
    warning::KEEPS_LESS,
    warning::OVERLAY_FILESYSTEM,
    warning::NEARLY_FULL,
    warning::SIZE_REDUCED,
    warning::REQUESTS_SPLIT,
    warning::WRITE_LIMIT,
    warning::CACHE_DIFFERS,
    warning::CACHE_UNCLEAR,
    warning::CORES_SHARED,
    warning::SMT_CONTENTION,
    warning::CLOCK_DISAGREES,
    warning::DATAGRAMS_LOST,
    warning::ACCOUNT_INCOMPLETE,
    warning::STRAGGLERS,
    warning::SLOW_PAIRS,
    warning::ASYMMETRIC_PAIRS,
    warning::WEAR_OUT_BOUNDED,
];

/// Does it reproduce? However narrow the interval is, the figure will be another one when others
/// leave device or CPU alone, when the run takes longer, or when the same blocks are read again.
pub(super) const NOT_LASTING: [&str; 6] = [
    warning::SHARED_DEVICE,
    warning::BURST,
    warning::COLD_BLOCKS,
    warning::CLOCK_DRIFT,
    warning::CPUS_CHANGED,
    warning::STOLEN_TIME,
];

/// Did it break limits? It did not, but a limit that somebody set is likely what was measured.
/// This is no bad answer by itself: a limit of the group may lie far above the figure, and a
/// plateau may be one by chance.
pub(super) const SET_LIMITS: [&str; 3] = [warning::IO_LIMIT, warning::PLATEAU, warning::CPU_QUOTA];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_code_stands_in_two_lists_that_rule_each_other_out() {
        let known: Vec<&str> = warning::ALL.iter().map(|(code, _)| *code).collect();
        let lists: [&[&str]; 7] = [
            &NOT_DONE,
            &UNPROVEN,
            &BESIDE_THE_POINT,
            &LABELS,
            &CIRCUMSTANCES,
            &NOT_LASTING,
            &SET_LIMITS,
        ];
        let all = lists.concat();
        for (index, code) in all.iter().enumerate() {
            assert!(known.contains(code) && !all[index + 1..].contains(code), "{code}");
        }
    }
}
