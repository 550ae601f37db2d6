//! Which method is taken for a file whose extents cannot be shared.
//!
//! Figures, 2 CPUs, virtio disk, ext4, 2026-11-22, times as fast as cp -a. Cached: 1 GiB, read and
//! written by two threads into room given first 1.41, by one 0.96, out of a mapping 0.57,
//! copy_file_range 1.04, the ring 1.10. Shared out from 8 MiB on instead of 64: 16 files of 16 MiB
//! 1.80 instead of 1.59, 8 of 10 MiB 1.63 instead of 1.32 (15 rounds): the last file has both threads.
//! Whether room is given first from 8 or from 64 MiB on makes no difference that could be seen.
//! By pread and pwrite against the kernel (copy_file_range), cached, AMD EPYC (family 25, model 17), ext4
//! on a loop device in memory, 2026-11-26: 4,096 × 32 KiB time 1.27 (0.77–3.62), CPU time 1.31 (8 rounds);
//! 512 × 1 MiB 1.05 (0.43–2.48), 1.08 (9 rounds). Shared among threads the kernel is the slower one: 1 GiB
//! 1.49 (0.20–1.55), 16 × 64 MiB 2.30 (1.92–8.47) of the time (5 rounds).
//! Whether the page cache holds a file makes no difference to this table; how one is read that it
//! does not hold: `around.rs`.

use flatout_io::transfer::Method;
use flatout_sys::filesystem::{Filesystem, Nature};

/// Files of this size on get their room before they are written.
const PREALLOCATE_FROM_BYTES: u64 = 8 << 20;
/// Files of this size on are shared out among threads.
pub(super) const SHARE_FROM_BYTES: u64 = 8 << 20;

/// Cached files of these sizes the kernel copies within one ext4: the bytes are copied once less,
/// through no buffer. Not where filesystems can share extents, which the kernel would do, and not
/// those that are shared out among threads.
pub(super) const BY_KERNEL_BYTES: std::ops::Range<u64> = 32 << 10..SHARE_FROM_BYTES;

/// Where the source lies, and the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairFacts {
    /// The filesystem of the source.
    pub source: Filesystem,
    /// The filesystem of the target.
    pub target: Filesystem,
    /// Both are one.
    pub is_one: bool,
}

/// How a file is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// What moves the bytes.
    pub method: Method,
    /// The target gets its room first.
    pub preallocates: bool,
    /// Threads that have nothing to do help.
    pub shares: bool,
}

/// How a file is copied that has no holes to keep.
pub fn choice(length_bytes: u64, pair: &PairFacts) -> Choice {
    if is_servers(pair) {
        return Choice { method: Method::CopyFileRange, preallocates: false, shares: false };
    }
    let is_kernels = pair.is_one && pair.source.name == "ext4";
    let method = match is_kernels && BY_KERNEL_BYTES.contains(&length_bytes) {
        true => Method::CopyFileRange,
        false => Method::Sync,
    };
    let preallocates = length_bytes >= PREALLOCATE_FROM_BYTES && likes_preallocation(&pair.target);
    let shares = length_bytes >= SHARE_FROM_BYTES && preallocates;
    Choice { method, preallocates, shares }
}

/// Whether a server may copy by itself: NFS 4.2, SMB.
pub fn is_servers(pair: &PairFacts) -> bool {
    pair.is_one && pair.source.nature == Nature::Network
}

/// Filesystems that give room at once and write into it as fast as into none. btrfs is not among
/// them: it does not compress what was preallocated.
fn likes_preallocation(target: &Filesystem) -> bool {
    matches!(target.name, "ext4" | "xfs")
}
