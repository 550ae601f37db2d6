//! Rows over working sets: each kernel over everything between the first cache and memory, by one
//! thread.
//!
//! The working set is all arrays of a kernel together. The arrays are brought into the caches
//! before the clock starts, and gone through again and again while it runs.

use flatout_sys::stream::{Kernel, Stream, Uses};

use super::levels::{Level, Levels, MEMORY};
use super::row::part;
use super::trial::{StreamTest, Way};
use crate::Extent;

pub(super) const ID: &str = "memory/working-set";
/// Smallest working set.
const LEAST_BYTES: u64 = 16 << 10;
/// Beyond this a working set has left the second cache, where nothing is known about it.
const ASSUMED_NEAR_BYTES: u64 = 2 << 20;

/// Kernels that a short run has, and that a whole one has at every power of two.
const QUICK_KERNELS: [Kernel; 4] = [Kernel::Read, Kernel::Write, Kernel::Copy, Kernel::Triad];
const DENSE_KERNELS: [Kernel; 3] = [Kernel::Read, Kernel::Copy, Kernel::Triad];

/// The working sets of a run, ascending, and the kernels that go over each: between the powers of
/// four a few, so that there is time for six trials of each row.
pub(super) fn points(extent: Extent, levels: &Levels) -> Vec<(u64, &'static [Kernel])> {
    let sizes = sizes(extent, levels);
    let last = sizes.last().copied();
    let is_between = |bytes: u64| {
        !(bytes.ilog2() - LEAST_BYTES.ilog2()).is_multiple_of(2) && Some(bytes) != last
    };
    let kernels = |bytes| -> &'static [Kernel] {
        match extent {
            Extent::Few => &[],
            Extent::Quick => &QUICK_KERNELS,
            Extent::Full if is_between(bytes) => &DENSE_KERNELS,
            Extent::Full => &Kernel::ALL,
        }
    };
    sizes.into_iter().map(|bytes| (bytes, kernels(bytes))).collect()
}

/// The working sets of a run, ascending: powers of two up to half of the one that lies in memory
/// for sure, and that one. A short run has one per level, half as large as the level.
fn sizes(extent: Extent, levels: &Levels) -> Vec<u64> {
    let most = levels.last_cache_bytes() * 4;
    let half = |level: &Level| {
        level.bytes.map(|bytes| (bytes / 2).checked_ilog2().map_or(0, |log2| 1 << log2))
    };
    let mut sizes: Vec<u64> = match extent {
        Extent::Few => return Vec::new(),
        Extent::Quick => levels.levels.iter().filter_map(half).collect(),
        Extent::Full => (LEAST_BYTES.ilog2()..63).map(|log2| 1 << log2).collect(),
    };
    sizes.retain(|&bytes| bytes >= LEAST_BYTES && bytes <= most / 2);
    sizes.push(most);
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Bytes of each array of a kernel.
pub(super) fn share_bytes(kernel: Kernel, working_set_bytes: u64) -> u64 {
    let Uses { target, first, second } = kernel.uses();
    part(working_set_bytes, [target, first, second].map(u32::from).iter().sum())
}

/// What a trial runs; none where this CPU has no such kernel.
///
/// What lies in a far cache or in memory is gone through in the order for those. What is larger
/// than all caches is not brought into any before: one pass is a trial.
pub(super) fn test(kernel: Kernel, working_set_bytes: u64, levels: &Levels) -> Option<StreamTest> {
    let stream = Stream::best(kernel)?;
    let level = levels.of(working_set_bytes).map(|level| level.name);
    let is_near = match level {
        Some(name) => name == "L1" || name == "L2",
        None => working_set_bytes <= ASSUMED_NEAR_BYTES,
    };
    let stream = if is_near { stream } else { stream.far() };
    let is_memory = level == Some(MEMORY) && working_set_bytes >= 2 * levels.last_cache_bytes();
    let way = if is_memory { Way::Once } else { Way::Again };
    Some(StreamTest { stream, way })
}

#[cfg(test)]
mod tests {
    use flatout_measure::record::Provenance;
    use flatout_sys::stream::Reach;

    use super::*;

    fn levels(sizes: &[(&'static str, Option<u64>)]) -> Levels {
        let level = |&(name, bytes): &(&'static str, Option<u64>)| Level {
            name,
            bytes,
            latency_ns: None,
            provenance: Provenance::Measured,
            declared_bytes: bytes,
        };
        Levels { levels: sizes.iter().map(level).collect(), largest_declared_bytes: None }
    }

    fn usual() -> Levels {
        levels(&[
            ("L1", Some(48 << 10)),
            ("L2", Some(2 << 20)),
            ("L3", Some(105 << 20)),
            (MEMORY, None),
        ])
    }

    #[test]
    fn sizes_go_from_16_kib_to_four_times_the_last_cache() {
        let full = sizes(Extent::Full, &usual());
        assert_eq!(full[..3], [16 << 10, 32 << 10, 64 << 10]);
        assert_eq!(full[full.len() - 2..], [128 << 20, 420 << 20]);
        assert_eq!(full.len(), 15);
        assert_eq!(
            sizes(Extent::Quick, &usual()),
            [16 << 10, 1 << 20, 32 << 20, 420 << 20],
            "one per level"
        );
        assert!(sizes(Extent::Few, &usual()).is_empty());
        let unknown = sizes(Extent::Full, &Levels::default());
        assert_eq!(unknown.last(), Some(&(256 << 20)));
        assert_eq!(sizes(Extent::Quick, &Levels::default()), [256 << 20]);
    }

    #[test]
    fn all_kernels_go_over_every_fourth_size_and_over_memory() {
        let counts = |levels: &Levels| -> Vec<usize> {
            points(Extent::Full, levels).iter().map(|(_, kernels)| kernels.len()).collect()
        };
        assert_eq!(counts(&usual()), [11, 3, 11, 3, 11, 3, 11, 3, 11, 3, 11, 3, 11, 3, 11]);
        let small = levels(&[("L1", Some(32 << 10)), (MEMORY, None)]);
        assert_eq!(counts(&small), [11, 3, 11, 11], "all of them over the last one");
        assert_eq!(points(Extent::Quick, &usual())[2], (32 << 20, &QUICK_KERNELS[..]));
        assert!(points(Extent::Few, &usual()).is_empty());
    }

    #[test]
    fn the_arrays_of_a_kernel_share_the_working_set() {
        assert_eq!(share_bytes(Kernel::Read, 16_384), 16_384);
        assert_eq!(share_bytes(Kernel::Copy, 16_384), 8_192);
        assert_eq!(share_bytes(Kernel::Triad, 16_384), 5_376);
    }

    #[test]
    fn near_caches_are_gone_through_in_order_and_memory_once() {
        let test = |bytes| test(Kernel::Read, bytes, &usual()).unwrap();
        assert_eq!((test(1 << 20).stream.reach(), test(1 << 20).way), (Reach::Near, Way::Again));
        let far = if cfg!(target_arch = "x86_64") { Reach::Far } else { Reach::Near };
        assert_eq!((test(8 << 20).stream.reach(), test(8 << 20).way), (far, Way::Again));
        assert_eq!((test(420 << 20).stream.reach(), test(420 << 20).way), (far, Way::Once));
        let unknown = super::test(Kernel::Read, 1 << 30, &Levels::default()).unwrap();
        assert_eq!((unknown.stream.reach(), unknown.way), (far, Way::Again));
    }
}
