//! Which filesystem a file lies on, as far as that changes what its figures mean.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, StatxFlags, fstatfs, statx};

/// Name and nature of a filesystem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filesystem {
    /// The kernel's name for it, or `unknown`.
    pub name: &'static str,
    /// Its files live in memory and nowhere else.
    pub in_memory: bool,
    /// Bytes that an unprivileged process can still write.
    pub free_bytes: u64,
}

/// Magic numbers of statfs(2), names as in /proc/filesystems, and whether data lives in memory.
const KNOWN: &[(u64, &str, bool)] = &[
    (0xef53, "ext4", false),
    (0x5846_5342, "xfs", false),
    (0x9123_683e, "btrfs", false),
    (0x0102_1994, "tmpfs", true),
    (0x8584_58f6, "ramfs", true),
    (0x9584_58f6, "hugetlbfs", true),
    (0x794c_7630, "overlay", false),
    (0x6969, "nfs", false),
    (0x6573_5546, "fuse", false),
    (0x2fc1_2fc1, "zfs", false),
    (0xf2f5_2010, "f2fs", false),
    (0x9fa0, "proc", true),
    (0x6265_6572, "sysfs", true),
    (0xff53_4d42, "cifs", false),
    (0xfe53_4d42, "cifs", false),
    (0xca45_1a4e, "bcachefs", false),
    (0x0bd0_0bd0, "lustre", false),
    (0x0102_1997, "9p", false),
    (0x4d44, "vfat", false),
    (0x2011_bab0, "exfat", false),
];

/// The filesystem of an open file. Cost: one fstatfs.
pub fn of(descriptor: BorrowedFd<'_>) -> io::Result<Filesystem> {
    let facts = fstatfs(descriptor)?;
    let magic = facts.f_type as u64 & 0xffff_ffff;
    let (name, in_memory) = KNOWN
        .iter()
        .find(|known| known.0 == magic)
        .map_or(("unknown", false), |known| (known.1, known.2));
    let free_bytes = facts.f_bavail.saturating_mul(facts.f_bsize as u64);
    Ok(Filesystem { name, in_memory, free_bytes })
}

/// What direct I/O on a file asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectAlignment {
    /// Memory and offset must be multiples of these.
    Bytes {
        /// Alignment of the buffer.
        memory: u32,
        /// Alignment of offset and length.
        offset: u32,
    },
    /// This file takes no direct I/O.
    Refused,
    /// The kernel does not say (before 6.1, or a filesystem without the answer).
    Unknown,
}

/// What direct I/O on this file asks for. Cost: one statx.
pub fn direct_alignment(descriptor: BorrowedFd<'_>) -> io::Result<DirectAlignment> {
    let wanted = StatxFlags::from_bits_retain(libc::STATX_DIOALIGN);
    let facts = statx(descriptor, "", AtFlags::EMPTY_PATH, wanted)?;
    Ok(if facts.stx_mask & libc::STATX_DIOALIGN == 0 {
        DirectAlignment::Unknown
    } else if facts.stx_dio_offset_align == 0 {
        DirectAlignment::Refused
    } else {
        DirectAlignment::Bytes {
            memory: facts.stx_dio_mem_align,
            offset: facts.stx_dio_offset_align,
        }
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn proc_is_known_and_lives_in_memory() {
        let file = File::open("/proc/self/status").unwrap();
        let filesystem = of(file.as_fd()).unwrap();
        assert_eq!((filesystem.name, filesystem.in_memory), ("proc", true));
    }
}
