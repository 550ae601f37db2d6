//! `--verify`: what the device has is held against what was read.

use super::*;

fn verified(options: CopyOptions) -> CopyOptions {
    CopyOptions { assurance: Assurance::Verified, ..options }
}

fn read_back(options: &CopyOptions, target: &File) -> Digest {
    let methods = Methods::default();
    let length = target.metadata().unwrap().len();
    Content::new(options, &methods).read_back(target.as_fd(), length).unwrap().unwrap()
}

/// Bytes that this thread had read from devices.
fn device_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    line.unwrap().parse().unwrap()
}

#[test]
fn what_is_read_back_is_what_was_read_by_each_method() {
    for method in [
        None,
        Some(Method::CopyFileRange),
        Some(Method::Splice),
        Some(Method::Sync),
        Some(Method::Mmap),
        Some(Method::Uring),
    ] {
        for length in [0, 1, 4096, 65_535, 65_536, 65_537, 262_145, (9 << 20) + 1] {
            let options = verified(CopyOptions { method, ..options() });
            let (source, target) = (random(length), tempfile::tempfile().unwrap());
            let copied = copy(&source, &target, &options, &Methods::default()).unwrap();
            assert_eq!(copied.digest, Some(read_back(&options, &target)), "{length} {method:?}");
        }
    }
}

#[test]
fn the_device_is_what_is_read() {
    let (options, target) = (verified(options()), tempfile::tempfile().unwrap());
    if flatout_sys::filesystem::of(target.as_fd()).unwrap().in_memory {
        eprintln!("skipped: temporary files lie in memory");
        return;
    }
    let source = random(3 << 20);
    copy(&source, &target, &options, &Methods::default()).unwrap();
    let before = device_bytes();
    read_back(&options, &target);
    assert!(device_bytes() - before >= 3 << 20, "the bytes came from the page cache");
}

#[test]
fn one_flipped_byte_is_found() {
    let options = verified(CopyOptions { block_bytes: 1000, ..options() });
    let (source, target) = (random((1 << 20) + 1), tempfile::tempfile().unwrap());
    source.write_all_at(&vec![0; 200_000], 300_000).unwrap();
    let copied = copy(&source, &target, &options, &Methods::default()).unwrap();
    assert_eq!(copied.digest, Some(read_back(&options, &target)));
    for place in [0, 65_535, 65_536, 400_000, 1 << 20] {
        let mut byte = [0];
        target.read_exact_at(&mut byte, place).unwrap();
        target.write_all_at(&[byte[0] ^ 1], place).unwrap();
        assert_ne!(copied.digest, Some(read_back(&options, &target)), "at {place}");
        target.write_all_at(&byte, place).unwrap();
        assert_eq!(copied.digest, Some(read_back(&options, &target)));
    }
    target.set_len((1 << 20) + 2).unwrap();
    assert_ne!(copied.digest, Some(read_back(&options, &target)), "a byte too many");
}

#[test]
fn holes_do_not_change_it_and_cost_nothing() {
    let source = tempfile::tempfile().unwrap();
    source.set_len(1 << 40).unwrap();
    source.write_all_at(&[1; 10], 1 << 39).unwrap();
    let target = tempfile::tempfile().unwrap();
    let of_holes = verified(options());
    let copied = copy(&source, &target, &of_holes, &Methods::default()).unwrap();
    assert_eq!(copied.digest, Some(read_back(&of_holes, &target)));

    let source = tempfile::tempfile().unwrap();
    source.set_len(1 << 20).unwrap();
    source.write_all_at(&[1; 10], 500_000).unwrap();
    let digests = [When::Auto, When::Always, When::Never].map(|sparse| {
        let options = verified(CopyOptions { sparse, ..options() });
        let target = tempfile::tempfile().unwrap();
        let copied = copy(&source, &target, &options, &Methods::default()).unwrap();
        assert_eq!(copied.digest, Some(read_back(&options, &target)), "{sparse:?}");
        copied.digest
    });
    assert_eq!(digests[0], digests[1]);
    assert_eq!(digests[0], digests[2]);
}

#[test]
fn files_of_proc_are_verified_as_they_were_read() {
    let options = verified(options());
    let (source, target) = (File::open("/proc/version").unwrap(), tempfile::tempfile().unwrap());
    let copied = copy(&source, &target, &options, &Methods::default()).unwrap();
    assert_eq!(copied.digest, Some(read_back(&options, &target)));
}

#[test]
fn buffers_of_many_threads_are_short() {
    let (options, methods) = (verified(options()), Methods::default());
    let mut threads: Vec<_> = (0..32).map(|_| Content::new(&options, &methods)).collect();
    let mut held = |length| -> usize {
        let of = |one: &mut Content| fingerprint::buffer(&mut one.transfer, length).unwrap().len();
        threads.iter_mut().map(of).sum()
    };
    assert_eq!(held(5_000), 32 * PIECE_BYTES);
    assert!(held(1 << 30) <= 12 << 20, "long files");
    drop(threads);
    let mut alone = Content::new(&options, &methods);
    let long = fingerprint::buffer(&mut alone.transfer, 1 << 30).unwrap().len();
    assert_eq!(long, 1 << 20, "others have ended");
}

#[test]
fn a_source_that_ends_too_early_has_no_digest() {
    let file = File::open("/proc/version").unwrap();
    let length = std::fs::read("/proc/version").unwrap().len() as u64;
    let plain = |length_bytes| {
        let wanted = Fingerprint::of(Assurance::Accepted, Inventory::Digests).unwrap();
        let (mut buffer, mut stop) = (vec![0; PIECE_BYTES], Stop::never());
        let of = (file.as_fd(), length_bytes);
        fingerprint::of(wanted, of, &mut buffer, &mut stop, READ).unwrap().plain
    };
    assert!(plain(length).is_some() && plain(length + 1).is_none());
}
