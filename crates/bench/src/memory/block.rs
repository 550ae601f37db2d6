//! Rows of blocks: so many bytes in all, divided among the threads, moved in blocks of a size.
//!
//! A block is the unit of access over the total: each thread goes through its part block by
//! block, in order or in a permutation that visits each block once. Blocks of 8 bytes are single
//! accesses, see `memory/access.rs`.

use flatout_sys::stream::{Kernel, Stream};

use super::trial::{Sequence, StreamTest, Way};

/// The sizes: 8 KiB lie in the first cache, 8 MiB beyond the second, 80 MiB beyond most last ones.
pub(super) const SIZES: [u64; 3] = [8 << 10, 8 << 20, 80 << 20];
/// Blocks from this length on are gone through eight pages side by side, which takes 32 KiB.
const FAR_BYTES: u64 = 1 << 20;

/// What is done with the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pattern {
    pub(super) id: &'static str,
    /// What it is called.
    pub(super) title: &'static str,
    sequence: Sequence,
    /// The kernel that writes past the caches, and the one that writes through them.
    past: Kernel,
    through: Kernel,
}

pub(super) const PATTERNS: [Pattern; 4] = {
    use Kernel::{Copy, NtCopy, NtWrite, Read, Write};
    use Sequence::{Forward, Random};
    const fn pattern(
        id: &'static str,
        title: &'static str,
        sequence: Sequence,
        [past, through]: [Kernel; 2],
    ) -> Pattern {
        Pattern { id, title, sequence, past, through }
    }
    [
        pattern("memory/sequential-copy", "Sequential copy", Forward, [NtCopy, Copy]),
        pattern("memory/sequential-write", "Sequential write", Forward, [NtWrite, Write]),
        pattern("memory/random-write", "Random write", Random, [NtWrite, Write]),
        pattern("memory/random-read", "Random read", Random, [Read, Read]),
    ]
};

impl Pattern {
    /// The kernel. What is written is not read again soon, so it goes past the caches where the
    /// CPU can do that, and where it is more than a cache holds.
    fn stream(self, stores: Stores) -> Option<Stream> {
        let best = (stores == Stores::PastCaches).then(|| Stream::best(self.past)).flatten();
        best.or_else(|| Stream::best(self.through))
    }
}

/// Where what is written goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stores {
    PastCaches,
    ThroughCaches,
}

impl Stores {
    /// The faster ones for so much memory.
    pub(super) fn for_bytes(bytes: u64, last_cache_bytes: u64) -> Self {
        if bytes <= last_cache_bytes { Self::ThroughCaches } else { Self::PastCaches }
    }
}

/// What a trial runs; none where this CPU has no such kernel.
pub(super) fn test(pattern: Pattern, block_bytes: u64, stores: Stores) -> Option<StreamTest> {
    let stream = pattern.stream(stores)?;
    let stream = if block_bytes >= FAR_BYTES { stream.far() } else { stream };
    let way = Way::Blocks { block_bytes, is: pattern.sequence };
    Some(StreamTest { stream, way })
}

#[cfg(test)]
mod tests {
    use flatout_sys::stream::Reach;

    use super::*;

    #[test]
    fn what_fits_a_cache_is_written_through_it() {
        assert_eq!(Stores::for_bytes(1 << 20, 1 << 20), Stores::ThroughCaches);
        assert_eq!(Stores::for_bytes((1 << 20) + 1, 1 << 20), Stores::PastCaches);
    }

    #[test]
    fn every_pattern_has_a_kernel_on_every_cpu() {
        for pattern in PATTERNS {
            for stores in [Stores::PastCaches, Stores::ThroughCaches] {
                for block_bytes in SIZES {
                    let test = test(pattern, block_bytes, stores).unwrap();
                    let kernel = test.stream.kernel();
                    let writes =
                        pattern.through == Kernel::Write || pattern.through == Kernel::Copy;
                    assert_eq!(kernel.uses().target, writes);
                    let is_x86 = cfg!(target_arch = "x86_64");
                    let past = is_x86 && writes && stores == Stores::PastCaches;
                    assert_eq!(kernel.is_non_temporal(), past);
                    let far = is_x86 && block_bytes >= FAR_BYTES;
                    assert_eq!(test.stream.reach() == Reach::Far, far);
                }
            }
        }
    }
}
