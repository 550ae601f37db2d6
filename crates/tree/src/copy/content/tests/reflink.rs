//! Shared extents, where there are such.

use super::mounted::{Mounted, run};
use super::*;

/// Smallest size that xfs and btrfs take.
const IMAGE_BYTES: u64 = 320 << 20;

fn fill(file: &File) {
    let mut bytes = vec![0; 300_000];
    fill_random(&mut bytes, 1, 0);
    file.write_all_at(&bytes, 0).unwrap();
}

#[test]
fn filesystems_that_share_extents_share_them() {
    for kind in ["xfs", "btrfs"] {
        let Some(home) = Mounted::new(kind, IMAGE_BYTES) else { continue };
        for options in [options(), CopyOptions { reflink: When::Always, ..options() }] {
            let (source, target) = (home.file(), home.file());
            fill(&source);
            let copied = copy(&source, &target, &options, &Methods::default()).unwrap();
            assert_same(&source, &target);
            assert_eq!(copied.method, Some(Method::Reflink), "{kind}");
            assert_eq!((copied.bytes_moved, copied.length_bytes), (300_000, 300_000));
        }
        // Asked to copy, the kernel would share them, too.
        for (method, expected) in
            [(None, Method::Splice), (Some(Method::CopyFileRange), Method::Sync)]
        {
            let options = CopyOptions { reflink: When::Never, method, ..options() };
            let (source, target) = (home.file(), home.file());
            fill(&source);
            let copied = copy(&source, &target, &options, &Methods::default()).unwrap();
            assert_same(&source, &target);
            assert_eq!(copied.method, Some(expected), "{kind}");
        }
    }
}

#[test]
fn subvolumes_share_extents_though_their_numbers_differ() {
    let Some(home) = Mounted::new("btrfs", IMAGE_BYTES) else { return };
    let volume = home.path().join("volume");
    if run("btrfs", &["subvolume", "create", volume.to_str().unwrap()]).is_none() {
        return;
    }
    let (source, target) = (home.file(), tempfile::tempfile_in(volume).unwrap());
    assert_ne!(source.metadata().unwrap().dev(), target.metadata().unwrap().dev());
    fill(&source);
    let copied = copy(&source, &target, &options(), &Methods::default()).unwrap();
    assert_same(&source, &target);
    assert_eq!(copied.method, Some(Method::Reflink));
}

#[test]
fn a_pair_that_refused_is_not_asked_again() {
    for kind in ["ext4", "tmpfs"] {
        let Some(home) = Mounted::new(kind, 64 << 20) else { continue };
        let methods = Methods::default();
        for _ in 0..2 {
            let (source, target) = (home.file(), home.file());
            fill(&source);
            let copied = copy(&source, &target, &options(), &methods).unwrap();
            assert_same(&source, &target);
            assert_eq!(copied.method, Some(Method::Splice));
            let device = source.metadata().unwrap().dev();
            let expected = [((device, device), Method::Reflink, Errno::OPNOTSUPP)];
            assert_eq!(methods.refused(), expected, "{kind}");
        }
        let must = CopyOptions { reflink: When::Always, ..options() };
        let (source, target) = (home.file(), home.file());
        fill(&source);
        let refusal = copy(&source, &target, &must, &methods).unwrap_err();
        assert_eq!(refusal, Refusal::of(SHARE)(Errno::OPNOTSUPP), "{kind}");
    }
}

#[test]
fn two_filesystems_share_nothing_and_are_not_asked() {
    let Some(home) = Mounted::new("tmpfs", 64 << 20) else { return };
    let (source, target) = (random(100_000), home.file());
    if flatout_sys::filesystem::of(source.as_fd()).unwrap().in_memory {
        return eprintln!("skipped: both are in memory, of one kind");
    }
    let methods = Methods::default();
    for method in [None, Some(Method::CopyFileRange), Some(Method::Splice), Some(Method::Uring)] {
        let options = CopyOptions { method, ..options() };
        target.set_len(0).unwrap();
        copy(&source, &target, &options, &methods).unwrap();
        assert_same(&source, &target);
    }
    let asked = methods.refused();
    assert!(asked.iter().all(|(_, method, _)| *method != Method::Reflink), "{asked:?}");
    let must = CopyOptions { reflink: When::Always, ..options() };
    target.set_len(0).unwrap();
    let refusal = copy(&source, &target, &must, &methods).unwrap_err();
    assert_eq!(refusal.operation, SHARE);
}
