//! Which method is taken for a file whose extents cannot be shared.
//!
//! Figures, 2 CPUs, virtio disk, ext4, 2026-11-22, times as fast as cp -a. Cached: 1 GiB, read and
//! written by two threads into room given first 1.41, by one 0.96, out of a mapping 0.57,
//! copy_file_range 1.04, the ring 1.10. Shared out from 8 MiB on instead of 64: 16 files of 16 MiB
//! 1.80 instead of 1.59, 8 of 10 MiB 1.63 instead of 1.32 (15 rounds): the last file has both threads.
//! Whether room is given first from 8 or from 64 MiB on makes no difference that could be seen.
//! Within one ext4, cached, AMD EPYC (family 25, model 17), ext4 on a loop device in memory, 2026-11-26: by pread and pwrite
//! 4,096 × 32 KiB take 1.27 (0.77–3.62) of the time by copy_file_range (8 rounds); from 128 KiB on a pipe is
//! faster than both (`io/src/transfer/splice.rs`).
//! Room given first, of the time without (CPU time of a C probe, same machine and day, medians of 150 to 530
//! files): copy_file_range 64 KiB 1.16, 128 KiB 1.00, 256 KiB 0.87, 512 KiB 0.87, 1 MiB 0.77; read and
//! write 256 KiB 0.93, 1 MiB 0.82. On xfs 1.20 and 1.05.
//! Whether the page cache holds a file makes no difference to this table; how one is read that it
//! does not hold: `around.rs`.

use flatout_io::transfer::Method;
use flatout_sys::filesystem::{Filesystem, Nature};

use crate::file_data::is_paged;

/// Files of this size on are shared out among threads.
pub(super) const SHARE_FROM_BYTES: u64 = 8 << 20;

/// Cached files of this size on the kernel copies within one ext4: the bytes are copied once less,
/// through no buffer. Not where filesystems can share extents, which the kernel would do.
pub(super) const BY_KERNEL_FROM_BYTES: u64 = 32 << 10;
/// Those of this size on through a pipe, whatever the filesystems, if both keep their files in the page cache;
/// while several threads share one out they read and write instead, 1 MiB at a time: the kernel takes one
/// write of a file at a time, which is shorter out of the second-level cache, and reading is done meanwhile
/// (256 MiB: 0.84 of the time on ext4, 0.87 on xfs, 15 rounds, 2026-11-27). Of the time by read and write, each on two filesystems in
/// memory (AMD EPYC family 25 model 17, 2 CPUs, 2026-11-26, lower quartiles of 7 to 11 rounds): 200 × 1 MiB
/// tmpfs 0.83, btrfs 0.92, xfs 0.86, ext4 to xfs 0.80, xfs to ext4 0.84, ext4 to btrfs 0.91; 16 × 16 MiB
/// tmpfs 0.76, ext4 to xfs 0.90, ext4 to btrfs 0.84; 400 × 256 KiB xfs 0.82, ext4 to xfs 0.86.
pub(super) const THROUGH_PIPE_FROM_BYTES: u64 = 128 << 10;

/// From which length on files get their room first on ext4. What takes the place of a file it writes out by itself,
/// when that is closed or gets its name (`auto_da_alloc`, ext4(5)), but not what has its room.
pub(super) const EXT4_ROOM_FROM_BYTES: u64 = 256 << 10;

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
    let method = match length_bytes {
        THROUGH_PIPE_FROM_BYTES.. if is_paged(&pair.source) && is_paged(&pair.target) => {
            Method::Splice
        }
        BY_KERNEL_FROM_BYTES.. if is_kernels(pair) => Method::CopyFileRange,
        _ => Method::Sync,
    };
    // On the word of a server the target would be full for everybody until the room for it is refused.
    let preallocates = !pair.source.is_served()
        && preallocates_from(&pair.target).is_some_and(|from| length_bytes >= from);
    let shares = length_bytes >= SHARE_FROM_BYTES && is_paged(&pair.target);
    Choice { method, preallocates, shares }
}

/// Whether a server may copy by itself: NFS 4.2, SMB.
pub fn is_servers(pair: &PairFacts) -> bool {
    pair.is_one && pair.source.nature == Nature::Network
}

/// Whether the kernel may copy a file within this filesystem, and writes all of its bytes.
pub(super) fn is_kernels(pair: &PairFacts) -> bool {
    pair.is_one && pair.source.name == "ext4"
}

/// From which length on files get their room before they are written: where it is given at once, and
/// written into faster than none. btrfs does not compress what was preallocated.
fn preallocates_from(target: &Filesystem) -> Option<u64> {
    match target.name {
        "ext4" => Some(EXT4_ROOM_FROM_BYTES),
        "xfs" => Some(SHARE_FROM_BYTES),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_filesystem_has_its_way() {
        for (name, from) in
            [("ext4", Some(256 << 10)), ("xfs", Some(8 << 20)), ("btrfs", None), ("tmpfs", None)]
        {
            let here = Filesystem {
                name,
                nature: Nature::Disk,
                in_memory: false,
                free_bytes: 1,
                size_bytes: 2,
                used_bytes: 1,
            };
            let pair = PairFacts { source: here, target: here, is_one: true };
            let gives = |length| choice(length, &pair).preallocates;
            assert_eq!(gives(u64::MAX), from.is_some(), "{name}");
            if let Some(from) = from {
                assert_eq!([from - 1, from].map(gives), [false, true], "{name}");
            }
            let served = Filesystem { nature: Nature::Userspace, ..here };
            let from_server = PairFacts { source: served, target: here, is_one: false };
            assert!(!choice(u64::MAX, &from_server).preallocates, "{name}");
            assert!(!choice(SHARE_FROM_BYTES - 1, &pair).shares);
            assert!(choice(SHARE_FROM_BYTES, &pair).shares, "{name}");
            let way = |length| choice(length, &pair).method;
            assert_eq!(way(1 << 20), Method::Splice);
            assert_eq!(way(64 << 10) == Method::CopyFileRange, name == "ext4");
            let elsewhere = Filesystem { name: "vfat", ..here };
            for (source, target) in [(here, elsewhere), (elsewhere, here)] {
                let pair = PairFacts { source, target, is_one: false };
                assert_eq!(choice(1 << 20, &pair).method, Method::Sync);
                assert_eq!(choice(SHARE_FROM_BYTES, &pair).shares, target.name == name);
            }
        }
    }
}
