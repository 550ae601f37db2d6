//! Files of each kind, on whatever holds temporary files and as root on loop mounts.

use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate};

use super::*;
use crate::fixture::{Mounted, run};

const PIECE: u64 = 1 << 20;

fn of(file: &File, offset: u64, length: u64) -> Extents {
    let found = extents(file.as_fd(), offset, length).unwrap().expect("a method works here");
    let unwritten = found.unwritten_bytes.unwrap_or(0);
    assert_eq!(found.data_bytes + found.hole_bytes + unwritten, length, "{found:?}");
    found
}

fn sizes(found: &Extents) -> (u64, u64, Option<u64>) {
    (found.data_bytes, found.hole_bytes, found.unwritten_bytes)
}

/// Data, a hole, unwritten space, data: a piece of each.
fn mixed(place: &Path) -> File {
    let mut file = tempfile::tempfile_in(place).unwrap();
    file.write_all(&vec![1; PIECE as usize]).unwrap();
    fallocate(&file, FallocateFlags::empty(), 2 * PIECE, PIECE).unwrap();
    file.write_all_at(&vec![1; PIECE as usize], 3 * PIECE).unwrap();
    file
}

/// What every filesystem with FIEMAP has to say.
fn check_all_kinds(place: &Path) {
    let sparse = tempfile::tempfile_in(place).unwrap();
    sparse.set_len(4 * PIECE).unwrap();
    let found = of(&sparse, 0, 4 * PIECE);
    assert_eq!((sizes(&found), found.extents), ((0, 4 * PIECE, Some(0)), Some(0)));

    let given = tempfile::tempfile_in(place).unwrap();
    fallocate(&given, FallocateFlags::empty(), 0, 4 * PIECE).unwrap();
    assert_eq!(sizes(&of(&given, 0, 4 * PIECE)), (0, 0, Some(4 * PIECE)));
    given.write_all_at(&vec![1; PIECE as usize], PIECE).unwrap();
    assert_eq!(sizes(&of(&given, 0, 4 * PIECE)), (PIECE, 0, Some(3 * PIECE)), "after a write");

    let file = mixed(place);
    assert_eq!(sizes(&of(&file, 0, 4 * PIECE)), (2 * PIECE, PIECE, Some(PIECE)));
    assert_eq!(sizes(&of(&file, PIECE, 2 * PIECE)), (0, PIECE, Some(PIECE)), "a range inside");
    assert_eq!(sizes(&of(&file, 100, 3)), (3, 0, Some(0)), "a range of a few bytes");
    // xfs keeps unwritten space behind the end of a file that grows.
    assert_eq!(of(&file, 4 * PIECE - 1, 11).data_bytes, 1, "past the end");
    assert_eq!(sizes(&of(&file, 0, 0)), (0, 0, Some(0)));
}

/// More pieces than one call returns, so that calls have to be put together.
fn check_many_pieces(place: &Path) {
    let file = tempfile::tempfile_in(place).unwrap();
    let (block, pieces) = (64 << 10, 3 * BATCH_EXTENTS as u64 + 1);
    let length = (pieces - 1) * block + 4096;
    // Of its full length at once: xfs gives a file that grows unwritten space for its gaps.
    file.set_len(length).unwrap();
    for index in 0..pieces {
        file.write_all_at(&[1; 4096], index * block).unwrap();
    }
    let found = of(&file, 0, length);
    assert_eq!(found.extents, Some(pieces));
    assert_eq!(found.data_bytes, pieces * 4096);
}

#[test]
fn every_kind_of_space_on_loop_mounts() {
    for kind in ["ext4", "xfs", "btrfs"] {
        let Some(mounted) = Mounted::new(kind) else { continue };
        check_all_kinds(mounted.path());
        check_many_pieces(mounted.path());
    }
}

#[test]
fn what_is_stored_compressed_is_told_from_what_is_not() {
    let Some(mounted) = Mounted::new("btrfs") else { return };
    run("mount", &["-o", "remount,compress-force=zstd", mounted.path().to_str().unwrap()]);
    let file = |bytes: &[u8]| {
        let file = tempfile::tempfile_in(mounted.path()).unwrap();
        file.write_all_at(bytes, 0).unwrap();
        file.sync_all().unwrap();
        (compressed_bytes(file.as_fd(), PIECE), of(&file, 0, PIECE).compressed_bytes)
    };
    let text: Vec<u8> = b"compressible ".iter().copied().cycle().take(PIECE as usize).collect();
    assert_eq!(file(&text), (Some(PIECE), Some(PIECE)));
    let mut random = vec![0; PIECE as usize];
    crate::generator::fill_random(&mut random, 1, 0);
    assert_eq!(file(&random), (Some(0), Some(0)), "what flatout writes cannot be compressed");
    let Some(plain) = Mounted::new("ext4") else { return };
    let file = mixed(plain.path());
    assert_eq!(compressed_bytes(file.as_fd(), 4 * PIECE), Some(0));
}

#[test]
fn random_layouts_agree_with_what_was_done() {
    const BLOCK: u64 = 64 << 10;
    const BLOCKS: usize = 200;
    let Some(mounted) = Mounted::new("ext4") else { return };
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for round in 0..8 {
        let file = tempfile::tempfile_in(mounted.path()).unwrap();
        file.set_len(BLOCK * BLOCKS as u64).unwrap();
        let mut counts = [0; 3];
        for index in 0..BLOCKS as u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(round);
            let kind = (state >> 33) as usize % 3;
            counts[kind] += BLOCK;
            match kind {
                0 => file.write_all_at(&[1; BLOCK as usize], index * BLOCK).unwrap(),
                1 => {}
                _ => fallocate(&file, FallocateFlags::empty(), index * BLOCK, BLOCK).unwrap(),
            }
        }
        let found = of(&file, 0, BLOCK * BLOCKS as u64);
        assert_eq!(sizes(&found), (counts[0], counts[1], Some(counts[2])), "round {round}");
        for (offset, length) in [(1, 5_000_000), (BLOCK * 7 + 13, BLOCK), (BLOCK * 199, BLOCK * 9)]
        {
            of(&file, offset, length);
        }
    }
}

#[test]
fn where_fiemap_is_refused_seeking_answers_and_the_position_stays() {
    let Some(mounted) = Mounted::new("tmpfs") else { return };
    let mut file = mixed(mounted.path());
    file.seek(io::SeekFrom::Start(77)).unwrap();
    let found = of(&file, 0, 4 * PIECE);
    assert_eq!(sizes(&found), (2 * PIECE, 2 * PIECE, None));
    assert_eq!(found.extents, None);
    assert_eq!(file.stream_position().unwrap(), 77);
    assert_eq!(sizes(&of(&file, 4 * PIECE - 1, 11)), (1, 10, None), "past the end");
}

#[test]
fn both_methods_agree_where_nothing_is_unwritten() {
    let place = std::env::temp_dir();
    let mut file = tempfile::tempfile_in(&place).unwrap();
    file.write_all(&vec![1; PIECE as usize]).unwrap();
    file.write_all_at(&vec![1; PIECE as usize], 3 * PIECE).unwrap();
    let found = of(&file, 0, 5 * PIECE);
    let sought = by_seeking(file.as_fd(), 0..5 * PIECE, u32::MAX).unwrap();
    assert_eq!(
        (found.data_bytes, found.hole_bytes),
        (sought.data_bytes, sought.hole_bytes),
        "in {}",
        place.display()
    );
}

#[test]
fn a_pipe_and_a_block_device_have_no_layout() {
    let (reader, _writer) = io::pipe().unwrap();
    assert_eq!(extents(reader.as_fd(), 0, 10).unwrap(), None);
    let Some(mounted) = Mounted::new("ext4") else { return };
    let image = mounted.image();
    let Some(devices) = run(
        "losetup",
        &["--associated", image.to_str().unwrap(), "--noheadings", "--output", "NAME"],
    ) else {
        return;
    };
    let device = File::open(devices).unwrap();
    assert_eq!(extents(device.as_fd(), 0, PIECE).unwrap(), None);
}
