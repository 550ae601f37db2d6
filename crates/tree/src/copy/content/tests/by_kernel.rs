//! Files that the kernel copies though nobody asks for that.

use super::mounted::Mounted;
use super::*;
use crate::copy::content::choice::{BY_KERNEL_FROM_BYTES, THROUGH_PIPE_FROM_BYTES};
use crate::copy::limits::Limits;

const LENGTH: u64 = 100_001;

fn fill(file: &File, length_bytes: u64) {
    let mut bytes = vec![0; length_bytes as usize];
    fill_random(&mut bytes, length_bytes, 0);
    file.write_all_at(&bytes, 0).unwrap();
}

#[test]
fn within_one_ext4_the_kernel_copies_what_is_not_small() {
    let Some(home) = Mounted::new("ext4", 64 << 20) else { return };
    let methods = Methods::default();
    let copied = |(from, to): (&Mounted, &Mounted), length, options: &CopyOptions, methods| {
        let (source, target) = (from.file(), to.file());
        fill(&source, length);
        let copied = copy(&source, &target, options, methods).unwrap();
        assert_same(&source, &target);
        assert_eq!((copied.length_bytes, copied.bytes_moved), (length, length));
        copied.method
    };
    let base = options();
    let (kernel, own) = (Some(Method::CopyFileRange), Some(Method::Sync));
    let pipe = Some(Method::Splice);
    let (from, piped_from) = (BY_KERNEL_FROM_BYTES, THROUGH_PIPE_FROM_BYTES);
    for (length, expected) in [
        (from - 1, own),
        (from, kernel),
        (piped_from - 1, kernel),
        (piped_from, pipe),
        (9 << 20, pipe),
    ] {
        assert_eq!(copied((&home, &home), length, &base, &methods), expected, "{length}");
    }
    for options in [
        CopyOptions { assurance: Assurance::Verified, ..base },
        CopyOptions { inventory: Inventory::Digests, ..base },
        CopyOptions { sparse: When::Never, ..base },
        CopyOptions { block_bytes: 4096, ..base },
        CopyOptions { method: own, ..base },
    ] {
        assert_eq!(copied((&home, &home), LENGTH, &options, &methods), own, "{options:?}");
    }
    let mut limited = Methods::default();
    limited.limits = Limits::new(Some(1 << 40), false);
    assert_eq!(copied((&home, &home), LENGTH, &base, &limited), own);
    let Some(other) = Mounted::new("ext4", 16 << 20) else { return };
    assert_eq!(copied((&home, &other), LENGTH, &base, &methods), own, "two filesystems");
}

#[test]
fn what_the_kernel_copies_keeps_its_holes_and_ends_where_the_source_ends() {
    let Some(home) = Mounted::new("ext4", 32 << 20) else { return };
    let moved = AtomicU64::new(0);
    for cut_to in [LENGTH, LENGTH - 1, 65_536, 32_767, 1, 0] {
        let (source, target) = (home.file(), home.file());
        fill(&source, LENGTH);
        let facts = rustix::fs::fstat(&source).unwrap();
        source.set_len(cut_to).unwrap();
        let methods = Methods::default();
        let copied = copy_as(&source, &target, &options(), &methods, (&facts, &moved)).unwrap();
        assert_eq!(copied.length_bytes, cut_to);
        assert_same(&source, &target);
    }
    let (source, target) = (home.file(), home.file());
    source.set_len(4 << 20).unwrap();
    source.write_all_at(&vec![7; LENGTH as usize], 1 << 20).unwrap();
    // Given out by the kernel, not written: read as zeros, whatever the device holds there.
    let room = rustix::fs::FallocateFlags::empty();
    rustix::fs::fallocate(&source, room, 3 << 20, 1 << 16).unwrap();
    let copied = copy(&source, &target, &options(), &Methods::default()).unwrap();
    assert_eq!(copied.method, Some(Method::Splice));
    assert_same(&source, &target);
    let blocks = |file: &File| file.metadata().unwrap().blocks();
    assert!(blocks(&target) <= blocks(&source));
}
