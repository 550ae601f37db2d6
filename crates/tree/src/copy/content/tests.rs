//! Files copied by each method, with what goes wrong on the way.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::Ordering;

use flatout_sys::cancel::CancelToken;
use flatout_sys::generator::fill_random;
use flatout_sys::page_cache;
use rustix::io::Errno;

use super::*;
use crate::copy::options::{
    Appearance, Assurance, Durability, Inventory, Overwrite, Preserve, Reach, Unchanged,
};

mod around;
mod by_kernel;
mod faults;
mod holes;
mod mounted;
mod reflink;
mod sharing;
mod shrinking;
mod verify;

pub(super) fn options() -> CopyOptions {
    CopyOptions {
        preserve: Preserve::ALL,
        appearance: Appearance::Plain,
        unchanged: Unchanged::Recorded,
        overwrite: Overwrite::Writable,
        effect: crate::copy::options::Effect::Done,
        deletion: None,
        reach: Reach::Everything,
        method: None,
        reflink: When::Auto,
        sparse: When::Auto,
        assurance: Assurance::Accepted,
        durability: Durability::Cached,
        threads: 1,
        block_bytes: 0,
        depth: 0,
        tuned: Default::default(),
        max_fds: 0,
        inventory: Inventory::None,
        max_memory_bytes: 32 << 20,
        umask: None,
        cancel: CancelToken::manual(),
    }
}

/// A file of random bytes, without a name.
pub(super) fn random(length_bytes: u64) -> File {
    let file = tempfile::tempfile().unwrap();
    let mut block = vec![0; 1 << 20];
    for offset in (0..length_bytes).step_by(1 << 20) {
        let length = (length_bytes - offset).min(1 << 20) as usize;
        fill_random(&mut block[..length], length_bytes, offset);
        file.write_all_at(&block[..length], offset).unwrap();
    }
    file
}

pub(super) fn copy(
    source: &File,
    target: &File,
    options: &CopyOptions,
    methods: &Methods,
) -> Result<Copied, Refusal> {
    let moved = AtomicU64::new(0);
    let facts = rustix::fs::fstat(source).unwrap();
    let copied = copy_as(source, target, options, methods, (&facts, &moved))?;
    assert_eq!(moved.load(Ordering::Relaxed), copied.bytes_moved, "progress and result agree");
    Ok(copied)
}

pub(super) fn copy_as(
    source: &File,
    target: &File,
    options: &CopyOptions,
    methods: &Methods,
    (facts, moved): (&Stat, &AtomicU64),
) -> Result<Copied, Refusal> {
    Content::new(options, methods).copy(job(source, target, (facts, moved)), || ())
}

/// A job in which nobody helps.
pub(super) fn job<'a>(
    source: &'a File,
    target: &'a File,
    (facts, moved): (&'a Stat, &'a AtomicU64),
) -> FileJob<'a> {
    FileJob {
        meanwhile: None,
        source: source.as_fd(),
        target: target.as_fd(),
        facts,
        target_device: target.metadata().unwrap().dev(),
        is_written_out: false,
        share: &|_| {},
        waits: &|_| {},
        moved,
    }
}

/// Whether both hold the same bytes.
pub(super) fn assert_same(source: &File, target: &File) {
    let length = source.metadata().unwrap().len();
    assert_eq!(target.metadata().unwrap().len(), length);
    let (mut expected, mut found) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    for offset in (0..length).step_by(1 << 20) {
        let block = (length - offset).min(1 << 20) as usize;
        source.read_exact_at(&mut expected[..block], offset).unwrap();
        target.read_exact_at(&mut found[..block], offset).unwrap();
        assert!(expected[..block] == found[..block], "differs within 1 MiB from {offset}");
    }
}

/// Lengths around everything that has a size: sectors, pages, buffers, windows, calls.
const LENGTHS: [u64; 14] = [
    1,
    511,
    4095,
    4096,
    4097,
    65_535,
    65_536,
    65_537,
    262_143,
    262_145,
    2 << 20,
    (2 << 20) + 1,
    (8 << 20) + 4097,
    (32 << 20) + 1,
];

#[test]
fn each_method_copies_files_of_any_length_and_says_that_it_did() {
    for method in Method::ALL.into_iter().filter(|&method| method != Method::Reflink) {
        let options = CopyOptions { method: Some(method), ..options() };
        let methods = Methods::default();
        for length in LENGTHS {
            let (source, target) = (random(length), tempfile::tempfile().unwrap());
            let copied = copy(&source, &target, &options, &methods).unwrap();
            assert_same(&source, &target);
            assert_eq!((copied.bytes_moved, copied.length_bytes), (length, length));
            if methods.refused().is_empty() {
                assert_eq!(copied.method, Some(method), "{length} bytes");
            } else {
                eprintln!("skipped: {method}: {:?}", methods.refused());
            }
        }
    }
}

#[test]
fn a_ring_has_eight_requests_in_flight_and_more() {
    let options = CopyOptions { method: Some(Method::Uring), ..options() };
    let (source, target) = (random(16 << 20), tempfile::tempfile().unwrap());
    page_cache::evict(source.as_fd(), 0).unwrap();
    let facts = rustix::fs::fstat(&source).unwrap();
    let (methods, moved) = (Methods::default(), AtomicU64::new(0));
    let mut content = Content::new(&options, &methods);
    let copied = content.copy(job(&source, &target, (&facts, &moved)), || ()).unwrap();
    assert_same(&source, &target);
    if copied.method != Some(Method::Uring) {
        eprintln!("skipped: {:?}", methods.refused());
        return;
    }
    let most = content.transfer.most_in_flight();
    assert!(most >= 8, "{most} in flight");
}

#[test]
fn odd_blocks_copy_as_well() {
    for (method, block_bytes, depth) in [
        (Method::Sync, 1, 0),
        (Method::Sync, 1000, 0),
        (Method::CopyFileRange, 1000, 0),
        (Method::Splice, 1000, 0),
        (Method::Mmap, 1000, 0),
        (Method::Uring, 1000, 3),
        (Method::Uring, 4096, 1),
    ] {
        let options = CopyOptions { method: Some(method), block_bytes, depth, ..options() };
        let (source, target) = (random(10_001), tempfile::tempfile().unwrap());
        let copied = copy(&source, &target, &options, &Methods::default()).unwrap();
        assert_same(&source, &target);
        assert_eq!(copied.bytes_moved, 10_001, "{method} {block_bytes}");
    }
}

#[test]
fn files_that_say_they_are_empty_are_read_to_their_end() {
    for name in ["/proc/self/status", "/proc/cpuinfo", "/proc/self/maps"] {
        for method in [None, Some(Method::CopyFileRange), Some(Method::Splice), Some(Method::Uring)]
        {
            let (source, target) = (File::open(name).unwrap(), tempfile::tempfile().unwrap());
            let options = CopyOptions { method, ..options() };
            let copied = copy(&source, &target, &options, &Methods::default()).unwrap();
            let length = target.metadata().unwrap().len();
            assert!(length > 0, "{name} by {method:?}");
            assert_eq!((copied.bytes_moved, copied.length_bytes), (length, length));
            assert_eq!(copied.method, Some(Method::Sync));
        }
    }
}

#[test]
fn files_that_say_they_are_longer_than_they_are_end_where_they_do() {
    let name = "/sys/kernel/mm/transparent_hugepage/enabled";
    let Ok(source) = File::open(name) else {
        eprintln!("skipped: there is no {name}");
        return;
    };
    let target = tempfile::tempfile().unwrap();
    let copied = copy(&source, &target, &options(), &Methods::default()).unwrap();
    let length = std::fs::read(name).unwrap().len() as u64;
    assert_eq!((copied.length_bytes, target.metadata().unwrap().len()), (length, length));
}

#[test]
fn an_empty_file_moves_nothing() {
    let (source, target) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
    let copied = copy(&source, &target, &options(), &Methods::default()).unwrap();
    let nothing = Copied::default();
    assert_eq!(copied, nothing);
}

#[test]
fn a_wish_to_stop_is_a_refusal() {
    for method in Method::ALL.map(Some) {
        let options = CopyOptions { method, ..options() };
        let (source, target) = (random(10 << 20), tempfile::tempfile().unwrap());
        options.cancel.cancel();
        let refusal = copy(&source, &target, &options, &Methods::default()).unwrap_err();
        assert_eq!(refusal, Refusal::interrupted(READ));
    }
}
