//! Holes, wherever they are, and files that one call cannot move.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::super::copier::copy;
use super::super::oracle::{Holes, Leeway, Portrait, assert_same, digest_of};
use super::{ENGINES, copies_whole, pair, under_test};
use crate::bin::Folder;
use crate::filesystem::{Kind, Mounted};
use crate::fixture::{is_full, random_bytes};
use crate::skip::needs;

/// More than one call moves (0x7ffff000 bytes), and more than 31 bits count.
const LARGE_BYTES: u64 = (2 << 30) + (5 << 20) + 17;

fn file(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).create_new(true).open(path).unwrap()
}

fn sparse_tree(tree: &Path) {
    fs::create_dir(tree).unwrap();
    let bytes = random_bytes(200_000, 4);
    file(&tree.join("start")).write_all_at(&bytes, 3 << 20).unwrap();
    let end = file(&tree.join("end"));
    end.write_all_at(&bytes, 0).unwrap();
    end.set_len(5 << 20).unwrap();
    let throughout = file(&tree.join("throughout"));
    for step in 0..40 {
        throughout.write_all_at(&bytes[..9000], step * 100_000).unwrap();
    }
    file(&tree.join("nothing-else")).set_len(1 << 20).unwrap();
    file(&tree.join("odd-end")).set_len((1 << 20) + 1).unwrap();
    let huge = file(&tree.join("tebibyte"));
    huge.write_all_at(b"middle", 1 << 39).unwrap();
    huge.set_len(1 << 40).unwrap();
    file(&tree.join("tebibyte-of-nothing")).set_len(1 << 40).unwrap();
}

#[test]
fn holes_stay_holes_by_every_method() {
    let folder = Folder::new();
    let (tree, _) = pair(&folder);
    sparse_tree(&tree);
    for engine in ENGINES {
        let target = folder.join(engine);
        if engine == "auto" {
            copies_whole(&[], &tree, &target);
            continue;
        }
        let before = Portrait::of(&tree);
        let ran = copy(&["--engine", engine], &tree, &target);
        ran.exits(0);
        let read = Leeway::but(&[super::super::oracle::Aspect::Accessed]);
        assert_same(&before, &Portrait::of(&target), read, format!("{engine}{ran}"));
        fs::remove_dir_all(&target).unwrap();
    }
}

/// Where a longer file was, nothing of it is seen through the holes.
#[test]
fn holes_are_holes_over_a_file_that_had_data_there() {
    needs!(under_test());
    for options in [&["-T", "--in-place"][..], &["-T"]] {
        let folder = Folder::new();
        let (tree, target) = pair(&folder);
        sparse_tree(&tree);
        fs::create_dir(&target).unwrap();
        for name in ["start", "end", "throughout", "nothing-else", "odd-end"] {
            fs::write(target.join(name), random_bytes(6 << 20, 9)).unwrap();
        }
        copies_whole(options, &tree, &target);
    }
}

#[test]
fn zeros_become_holes_only_on_demand() {
    needs!(under_test());
    let folder = Folder::new();
    let (source, _) = pair(&folder);
    let mut bytes = random_bytes(1 << 20, 5);
    bytes[65_536..500_000].fill(0);
    fs::write(&source, &bytes).unwrap();
    let before = Portrait::of(&source);
    for (mode, has_holes) in [("auto", false), ("never", false), ("always", true)] {
        let target = folder.join(mode);
        copy(&[&format!("--sparse={mode}")], &source, &target).exits(0);
        let after = Portrait::of(&target);
        let read = Leeway::but(&[super::super::oracle::Aspect::Accessed]);
        assert_same(&before, &after, read.holes(Holes::AtLeast), mode);
        assert_eq!(after.entry("").data.len() > 1, has_holes, "{mode}: {after:?}");
        assert_eq!(after.entry("").allocated_bytes < 800_000, has_holes, "{mode}");
    }
}

/// A reason to skip unless this much memory is free.
fn needs_memory(bytes: u64) -> Result<(), String> {
    let text = fs::read_to_string("/proc/meminfo").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:")).unwrap();
    let free = line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10;
    if free > bytes { Ok(()) } else { Err(format!("{bytes} bytes of memory are not free")) }
}

/// In memory, where two gibibytes take seconds of each method: in full. Otherwise a twelfth of that;
/// places beyond 31 bits are always tested, with holes in between.
#[test]
fn a_file_over_two_gibibytes_is_whole_by_every_method() {
    needs!(under_test());
    let large_bytes = if is_full() { LARGE_BYTES } else { LARGE_BYTES / 12 };
    needs!(needs_memory(4 * large_bytes));
    // Source and copy, and a file removed before whose memory the kernel has not yet taken back.
    let mounted = needs!(Mounted::new(Kind::Tmpfs(4 * large_bytes)));
    let source = mounted.path().join("large");
    let large = file(&source);
    let piece = random_bytes(64 << 20, 6);
    for index in 0..large_bytes.div_ceil(64 << 20) {
        // Each piece is another one, so that none may stand in the place of another.
        let start = (index as usize * 4096) % (1 << 20);
        large.write_all_at(&piece[start..], index * (64 << 20)).unwrap();
        let filled = 64 << 20;
        large.write_all_at(&piece[..start], index * filled + filled - start as u64).unwrap();
    }
    large.set_len(large_bytes).unwrap();
    for engine in ENGINES {
        let target = mounted.path().join(engine);
        copy(&["--engine", engine], &source, &target).exits(0);
        let copied = File::open(&target).unwrap();
        assert_eq!(copied.metadata().unwrap().len(), large_bytes);
        assert_same_bytes(&large, &copied, large_bytes);
        fs::remove_file(&target).unwrap();
    }
    drop(large);
    mounted.finish();
}

/// As a digest would find, in a tenth of the time.
fn assert_same_bytes(one: &File, other: &File, length_bytes: u64) {
    let mut pieces = (vec![0; 4 << 20], vec![0; 4 << 20]);
    let mut offset = 0;
    while offset < length_bytes {
        let length = (length_bytes - offset).min(4 << 20) as usize;
        one.read_exact_at(&mut pieces.0[..length], offset).unwrap();
        other.read_exact_at(&mut pieces.1[..length], offset).unwrap();
        assert!(pieces.0[..length] == pieces.1[..length], "between {offset} and 4 MiB later");
        offset += length as u64;
    }
}

/// Data around the places where 31, 32 and 33 bits end, holes between.
#[test]
fn a_sparse_file_of_many_gibibytes_is_whole_by_every_method() {
    let folder = Folder::new();
    let (source, target) = pair(&folder);
    let large = file(&source);
    for bits in [31, 32, 33] {
        large.write_all_at(&random_bytes(300_000, bits), (1 << bits) - 150_000).unwrap();
    }
    let data: Vec<_> = Portrait::of(&source).entry("").data.clone();
    assert_ne!(digest_of(&large, &data).unwrap(), 0);
    for engine in ENGINES {
        let before = Portrait::of(&source);
        let ran = copy(&["--engine", engine], &source, &target);
        ran.exits(0);
        let read = Leeway::but(&[super::super::oracle::Aspect::Accessed]);
        assert_same(&before, &Portrait::of(&target), read, format!("{engine}{ran}"));
        fs::remove_file(&target).unwrap();
    }
}
