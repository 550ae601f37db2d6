//! Files that are not cached, read around the page cache.

use flatout_sys::filesystem::{self, Nature};
use rustix::fs::OFlags;

use super::super::around::{Blocks, FROM_BYTES, is_direct};
use super::*;

/// A file that lies on a disk and not in the cache; `None`, which is said: this place has none.
fn cold(length_bytes: u64) -> Option<File> {
    let source = random(length_bytes);
    let is_on_disk = filesystem::of(source.as_fd()).is_ok_and(|it| it.nature == Nature::Disk);
    let state = page_cache::evict(source.as_fd(), 0).unwrap();
    if !is_on_disk || state.cached_bytes > 0 {
        eprintln!("skipped: no file here can be dropped from the cache");
        return None;
    }
    Some(source)
}

/// Copies a file, and says what the cache holds of it then, and how many threads were asked for.
fn copied(source: &File, options: &CopyOptions) -> (u64, u64) {
    copied_by(source, options, &Methods::default())
}

fn copied_by(source: &File, options: &CopyOptions, methods: &Methods) -> (u64, u64) {
    let (target, moved) = (tempfile::tempfile().unwrap(), AtomicU64::new(0));
    let facts = rustix::fs::fstat(source).unwrap();
    let asked = AtomicU64::new(0);
    let waits = |threads: u32| asked.store(threads.into(), Ordering::Relaxed);
    let share = |large: Arc<Large>| large.help(&mut Content::new(options, methods), None);
    let job = FileJob { waits: &waits, share: &share, ..job(source, &target, (&facts, &moved)) };
    let copied = Content::new(options, methods).copy(job, || ()).unwrap();
    let length = facts.st_size as u64;
    assert_eq!((copied.length_bytes, copied.bytes_moved), (length, length));
    assert_eq!(moved.load(Ordering::Relaxed), length);
    let cached = page_cache::state(source.as_fd(), 0, length).unwrap().cached_bytes;
    let flags = rustix::fs::fcntl_getfl(source).unwrap();
    assert!(!flags.contains(OFlags::DIRECT), "as it was");
    assert_same(source, &target);
    (cached, asked.into_inner())
}

#[test]
fn what_is_not_cached_is_read_around_the_cache_whatever_its_length() {
    for length in [256 << 10, (1 << 20) + 1, (2 << 20) + 4097, (9 << 20) + 511, 33 << 20] {
        let Some(source) = cold(length) else { return };
        let (cached, asked) = copied(&source, &CopyOptions { threads: 0, ..options() });
        assert_eq!(cached, 0, "{length}");
        assert!(asked > 1, "{length}");
        // It was read for the comparison.
        assert_eq!(copied(&source, &CopyOptions { threads: 0, ..options() }).1, 0, "{length}");
    }
}

#[test]
fn small_files_and_blocks_that_were_asked_for_go_through_the_cache() {
    let Some(small) = cold(200 << 10) else { return };
    assert_eq!(copied(&small, &options()).1, 0);
    let Some(large) = cold(1 << 20) else { return };
    assert_eq!(copied(&large, &CopyOptions { block_bytes: 128 << 10, ..options() }).1, 0);
}

#[test]
fn a_file_that_ends_early_or_refuses_direct_reads_is_read_through_the_cache() {
    let Some(source) = cold((1 << 20) + 512) else { return };
    let (options, methods, moved) = (options(), Methods::default(), AtomicU64::new(0));
    let mut content = Content::new(&options, &methods);
    let flags = rustix::fs::fcntl_getfl(&source).unwrap();
    rustix::fs::fcntl_setfl(&source, flags | OFlags::DIRECT).unwrap();
    let target = tempfile::tempfile().unwrap();
    let facts = rustix::fs::fstat(&source).unwrap();
    let pair = content.pair(&job(&source, &target, (&facts, &moved))).unwrap();
    let route = |offset_bytes| Route {
        source: source.as_fd(),
        target: target.as_fd(),
        offset_bytes,
        length_bytes: (4 << 20) - offset_bytes,
        moved: &moved,
    };
    let mut tally = Tally::default();
    let got = content.range(route(0), Method::Sync, &pair, &mut tally).unwrap();
    assert_eq!((got.bytes, got.end), ((1 << 20) + 512, End::SourceEnded));
    rustix::fs::fcntl_setfl(&source, flags).unwrap();
    assert_same(&source, &target);
    rustix::fs::fcntl_setfl(&source, flags | OFlags::DIRECT).unwrap();
    target.set_len(0).unwrap();
    let got = content.range(route(513), Method::Sync, &pair, &mut tally).unwrap();
    assert_eq!((got.bytes, got.end), ((1 << 20) - 1, End::SourceEnded));
    assert!(!is_direct(&route(513), false), "its place was refused");
}

#[test]
fn pieces_of_any_rate_are_read_whether_they_may_be_direct_or_not() {
    // Pieces of 500 kB are no multiple of a block, those of 256 KiB are, and those of 50 kB are short.
    for (rate, is_direct) in [(100_000_000, false), (200 * FROM_BYTES, true), (10_000_000, false)] {
        for length in [FROM_BYTES, 700_001] {
            let Some(source) = cold(length) else { return };
            let limits = crate::copy::limits::Limits::new(Some(rate), false);
            let mut methods = Methods::default();
            methods.limits = limits;
            let (cached, _) = copied_by(&source, &options(), &methods);
            assert_eq!(cached == 0, is_direct, "{rate} {length}");
        }
    }
}

#[test]
fn what_failed_is_read_through_the_cache_when_it_is_tried_again() {
    let Some(source) = cold(3 << 20) else { return };
    let (options, methods, moved) = (options(), Methods::default(), AtomicU64::new(0));
    let target = File::options().write(true).open("/dev/full").unwrap();
    let facts = rustix::fs::fstat(&source).unwrap();
    let mut content = Content::new(&options, &methods);
    let failed = content.copy(job(&source, &target, (&facts, &moved)), || ()).unwrap_err();
    assert_eq!(failed.operation, WRITE);
    let mut byte = [0];
    assert_eq!(rustix::io::pread(&source, &mut byte, 1), Ok(1), "any place, any length");
}

#[test]
fn blocks_are_few_and_come_back() {
    let blocks = Blocks::default();
    let all: Vec<_> = std::iter::from_fn(|| blocks.take()).collect();
    assert!((1..=8).contains(&all.len()), "{}", all.len());
    all.into_iter().for_each(|block| blocks.give_back(block));
    assert!(blocks.take().is_some());
}
