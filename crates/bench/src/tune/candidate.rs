//! The settings that are tried for each kind of work. Few, since each takes its trials: those that
//! were the best somewhere, and smaller ones.

use flatout_io::{Caching, Engine, SizeClass, Split, Tuning, Work};

use crate::option::each_once;
use crate::{KIB, MIB};

/// Threads at most that are tried for one file.
const MOST_FILE_THREADS: u32 = 64;
/// Threads for small files that nobody has in memory: they wait nearly all of the time.
const WAITING_THREADS: u32 = 32;

fn tuning(engine: Engine, caching: Caching, block_bytes: u64, depth: u32, threads: u32) -> Tuning {
    Tuning { engine, caching, block_bytes, depth, threads, split: Split::Contiguous }
}

/// 1, 2, 4, … and the number of CPUs.
fn threads(cpus: u32) -> Vec<u32> {
    let most = cpus.clamp(1, MOST_FILE_THREADS);
    let mut threads: Vec<u32> = (0..).map(|power| 1 << power).take_while(|&n| n < most).collect();
    threads.push(most);
    threads
}

/// Settings for one large file.
pub(super) fn large(work: Work, cached: bool, cpus: u32) -> Vec<Tuning> {
    use Caching::{Buffered, Direct};
    use Engine::{Mmap, Sync, Uring};
    match (work, cached) {
        (Work::Read, true) => {
            let one = [64 * KIB, MIB].map(|block| tuning(Sync, Buffered, block, 1, 1));
            let several = threads(cpus).into_iter().flat_map(|threads| {
                [(Sync, 256 * KIB), (Mmap, MIB)]
                    .map(|(engine, block)| tuning(engine, Buffered, block, 1, threads))
            });
            one.into_iter().chain(several).collect()
        }
        (Work::Read, false) => {
            let ring = [(256 * KIB, 8), (512 * KIB, 8), (MIB, 4), (MIB, 16), (MIB, 32)]
                .map(|(block, depth)| tuning(Uring, Direct, block, depth, 1));
            let plain = [
                tuning(Sync, Buffered, 256 * KIB, 1, 1),
                tuning(Sync, Direct, MIB, 1, 1),
                tuning(Sync, Direct, MIB, 1, 4),
            ];
            ring.into_iter().chain(plain).collect()
        }
        (Work::Write, _) => vec![
            tuning(Sync, Buffered, 256 * KIB, 1, 1),
            tuning(Sync, Buffered, MIB, 1, 1),
            tuning(Sync, Direct, 4 * MIB, 1, 1),
            tuning(Uring, Direct, MIB, 4, 1),
            tuning(Uring, Direct, MIB, 16, 1),
        ],
        (Work::Copy, _) => {
            let shared = threads(cpus).into_iter().map(|n| tuning(Sync, Buffered, MIB, 1, n));
            let rest = [
                tuning(Sync, Buffered, 256 * KIB, 1, cpus.clamp(1, MOST_FILE_THREADS)),
                tuning(Mmap, Buffered, 512 * KIB, 1, cpus.clamp(1, MOST_FILE_THREADS)),
                tuning(Uring, Buffered, 128 * KIB, 16, 1),
                tuning(Uring, Buffered, 512 * KIB, 8, 1),
            ];
            shared.chain(rest).collect()
        }
    }
}

/// Settings for copying many small files: how many threads.
pub(super) fn tiny(cached: bool, cpus: u32) -> Vec<Tuning> {
    let mut threads = match cached {
        true => vec![
            1,
            cpus,
            cpus.saturating_add(cpus.div_ceil(2)),
            cpus.saturating_mul(2),
            cpus.saturating_mul(4),
        ],
        false => vec![cpus, WAITING_THREADS / 4, WAITING_THREADS],
    };
    each_once(&mut threads);
    let plain = |threads| tuning(Engine::Sync, Caching::Buffered, 64 * KIB, 1, threads);
    threads.into_iter().map(plain).collect()
}

/// What is used without a profile, where several threads take one file (ext4, xfs, btrfs, tmpfs);
/// of what is not cached by `sum` (`read` has 16 blocks of 1 MiB in flight).
pub(super) fn usual(work: Work, size: SizeClass, cached: bool, cpus: u32) -> Tuning {
    use Caching::{Buffered, Direct};
    use Engine::{Mmap, Sync, Uring};
    let most = cpus.clamp(1, MOST_FILE_THREADS);
    match (work, size, cached) {
        (Work::Copy, SizeClass::Tiny, true) => tuning(Sync, Buffered, 64 * KIB, 1, cpus),
        (Work::Copy, SizeClass::Tiny, false) => {
            tuning(Sync, Buffered, 64 * KIB, 1, WAITING_THREADS)
        }
        (Work::Copy, ..) => tuning(Sync, Buffered, MIB, 1, most),
        (Work::Read, _, true) => tuning(Mmap, Buffered, MIB, 1, most),
        (Work::Read, _, false) => tuning(Uring, Direct, 512 * KIB, 8, 1),
        (Work::Write, ..) => tuning(Sync, Buffered, 256 * KIB, 1, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_double_up_to_the_cpus() {
        assert_eq!(threads(1), [1]);
        assert_eq!(threads(2), [1, 2]);
        assert_eq!(threads(6), [1, 2, 4, 6]);
        assert_eq!(threads(64), [1, 2, 4, 8, 16, 32, 64]);
        let of_tiny = |cpus| tiny(true, cpus).iter().map(|one| one.threads).collect::<Vec<_>>();
        let few = [vec![1, 2, 4], vec![1, 2, 3, 4, 8]];
        assert_eq!([1, 2].map(of_tiny), few, "as docs/tune.md has it");
        assert_eq!([8, 64].map(of_tiny), [[1, 8, 12, 16, 32], [1, 64, 96, 128, 256]]);
        assert_eq!(threads(500).last(), Some(&MOST_FILE_THREADS));
    }

    #[test]
    fn no_setting_is_tried_twice_and_each_one_can_be_had() {
        for cpus in [1, 2, 3, 8, 500] {
            let works = [Work::Read, Work::Write, Work::Copy];
            let of_large =
                works.iter().flat_map(|work| [true, false].map(|c| large(*work, c, cpus)));
            for settings in of_large.chain([true, false].map(|cached| tiny(cached, cpus))) {
                for (index, one) in settings.iter().enumerate() {
                    assert!(!settings[..index].contains(one), "{cpus} CPUs: {one:?}");
                    assert!(one.engine == Engine::Uring || one.depth == 1, "{one:?}");
                    assert!(one.engine != Engine::Mmap || one.caching == Caching::Buffered);
                }
            }
            for cached in [true, false] {
                let usual = |work, size| usual(work, size, cached, cpus);
                assert!(tiny(cached, cpus).contains(&usual(Work::Copy, SizeClass::Tiny)));
                for work in works {
                    assert!(large(work, cached, cpus).contains(&usual(work, SizeClass::Large)));
                }
            }
        }
    }
}
