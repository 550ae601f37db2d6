//! How the bytes of short files are moved where several are copied together.

use std::sync::Arc;

use flatout_io::transfer::Method;

use super::choice::{PairFacts, is_kernels};
use super::methods::{Devices, Pair};
use super::{Content, When};

/// Files from this length on are copied one by one.
///
/// Figures: 2,000 × 100 KiB, cached, new filesystem in memory, AMD EPYC (family 25, model 17), 2026-11-27: one by one 1.15
/// (0.78–1.42) of the time on ext4, 9 rounds; xfs 1.09, btrfs 1.12, cold ext4 0.99, 5 rounds.
pub(in crate::copy) const SHORT_BYTES: u64 = 128 << 10;
/// On xfs shorter files are read and written: to share their extents takes longer.
///
/// Figures: a copy by FICLONE, of the time of one by pread and pwrite, the other calls included (`docs/probes/copy_floor.c`), AMD
/// EPYC (family 25, model 17), 2026-11-26, 5 rounds: xfs 4 KiB 1.16, 16 KiB 0.92, 64 KiB 0.75; btrfs 0.65,
/// 0.54, 0.34.
const SHARED_FROM_BYTES: u64 = 8 << 10;

/// So many short files are copied at a time: a batch of names. Each has two descriptors.
pub(in crate::copy) const MOST_TOGETHER: usize = 32;
/// Where extents are shared on btrfs, one after the other: its tree is locked from the root for each call, and
/// what a file needs lies side by side.
///
/// Figures: a program that copies so, of the time of one that makes each call for 32 files in turn (two threads, new filesystem
/// in memory, cached), Emerald Rapids, 2026-11-28: 4,096 × 32 KiB 0.96 (21 rounds) and 0.92 (9), CPU time 0.98 and 0.91;
/// 20,000 × 4 KiB 1.01. On xfs such calls one after the other took 1.04 (`docs/probes/copy_floor.c`).
const ON_BTRFS: usize = 1;

/// What is best between two filesystems.
#[derive(Debug, Clone, Copy)]
pub(in crate::copy) struct ShortWays {
    usual: Method,
    shared_from_bytes: Option<u64>,
}

impl ShortWays {
    /// `None`: it is not known of both of them that they keep modes and times.
    pub(super) fn of(pair: &PairFacts, shares: bool) -> Option<Self> {
        const KNOWN: [&str; 4] = ["ext4", "xfs", "btrfs", "tmpfs"];
        let usual = if is_kernels(pair) { Method::CopyFileRange } else { Method::Sync };
        let from = match pair.target.name {
            "xfs" => Some(SHARED_FROM_BYTES),
            "btrfs" => Some(1),
            _ => None,
        };
        let ways = Self { usual, shared_from_bytes: from.filter(|_| shares) };
        [pair.source.name, pair.target.name].iter().all(|name| KNOWN.contains(name)).then_some(ways)
    }

    /// What moves the bytes of a short file: pread(2) and pwrite(2), copy_file_range(2), or FICLONE. `None`: it is
    /// too long.
    pub(in crate::copy) fn of_length(self, bytes: u64) -> Option<Method> {
        let shares = self.shared_from_bytes.is_some_and(|from| bytes >= from);
        (bytes < SHORT_BYTES).then_some(if shares { Method::Reflink } else { self.usual })
    }
}

impl Content<'_> {
    /// How many short files are best copied at a time where the last file was copied.
    pub(in crate::copy) fn short_at_a_time(&self) -> usize {
        let is_shared =
            |pair: &Arc<Pair>| pair.facts.target.name == "btrfs" && self.wants_reflink(pair, 1);
        if self.pair.as_ref().is_some_and(is_shared) { ON_BTRFS } else { MOST_TOGETHER }
    }

    /// How short files are copied between these devices, and room for their bytes. `None`: nobody has
    /// copied one there yet, or not in this way.
    pub(in crate::copy) fn short_ways(
        &mut self,
        devices: Devices,
    ) -> Option<(ShortWays, &mut [u8])> {
        let pair = self.pair.as_ref().filter(|pair| pair.devices == devices)?;
        let is_whole = !self.is_limited() && self.options.reflink != When::Always;
        let shares = self.wants_reflink(pair, 1);
        let ways = ShortWays::of(&pair.facts, shares).filter(|_| is_whole)?;
        Some((ways, self.transfer.buffer(SHORT_BYTES).ok()?))
    }
}
