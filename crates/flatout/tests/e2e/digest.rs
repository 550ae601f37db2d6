//! One file, one digest: whatever engine, split, block size, threads, caching and filesystem.

use std::path::Path;

use crate::bin::Folder;
use crate::filesystem::{Kind, Mounted};
use crate::fixture::{is_full, random_file, seed, xor32_hex};
use crate::pairwise;
use crate::skip::needs;

/// Engine and caching are one factor: a mapping is the page cache, it has no other way.
const WAYS: [(&str, &str); 9] = [
    ("sync", "auto"),
    ("sync", "buffered"),
    ("sync", "direct"),
    ("sync", "dontcache"),
    ("uring", "auto"),
    ("uring", "buffered"),
    ("uring", "direct"),
    ("uring", "dontcache"),
    ("mmap", "auto"),
];
const SPLITS: [&str; 2] = ["contiguous", "interleaved"];
const THREADS: [&str; 3] = ["1", "2", "5"];
const BLOCK_SIZES: [&str; 6] = ["1", "3", "1000", "4096", "65536", "256KiB"];
const LENGTHS: [usize; 9] = [0, 1, 3, 4, 5, 4095, 4096, 4097, (256 << 10) + 1];

/// A file whose digest is known.
struct Known {
    name: String,
    length: usize,
    digest: String,
}

fn digests_are_equal_in(place: &Path) {
    let seed = seed();
    println!("FLATOUT_TEST_SEED={seed}");
    let folder = Folder::inside(place);
    let files = LENGTHS.map(|length| {
        let name = format!("length-{length}");
        let digest = xor32_hex(&random_file(&folder.join(&name), length, seed ^ length as u64));
        Known { name, length, digest }
    });
    let levels = [WAYS.len(), SPLITS.len(), THREADS.len(), BLOCK_SIZES.len(), LENGTHS.len()];
    let rows =
        if is_full() { pairwise::everything(&levels) } else { pairwise::sample(&levels, seed) };
    for row in rows {
        let ((engine, caching), file) = (WAYS[row[0]], &files[row[4]]);
        let arguments = [
            ["read", &file.name],
            ["--engine", engine],
            ["--split", SPLITS[row[1]]],
            ["--threads", THREADS[row[2]]],
            ["--block-size", BLOCK_SIZES[row[3]]],
            ["--caching", caching],
            ["--format", "json"],
        ];
        let ran = folder.flatout(arguments.as_flattened()).run();
        let audit = ran.exits(0).result()["audit"].clone();
        let found = (audit["bytes"].as_u64(), audit["digest_xor32"].as_str());
        let expected = (Some(file.length as u64), Some(file.digest.as_str()));
        assert_eq!(found, expected, "FLATOUT_TEST_SEED={seed} {ran}");
    }
}

fn digests_are_equal_on(kind: Kind) -> Result<(), String> {
    let mounted = Mounted::new(kind)?;
    digests_are_equal_in(&mounted.path());
    mounted.finish();
    Ok(())
}

#[test]
fn equal_in_the_folder_of_temporary_files() {
    digests_are_equal_in(&std::env::temp_dir());
}

#[test]
fn equal_on_ext4() {
    needs!(digests_are_equal_on(Kind::Ext4));
}

#[test]
fn equal_on_xfs() {
    needs!(digests_are_equal_on(Kind::Xfs));
}

#[test]
fn equal_on_btrfs() {
    needs!(digests_are_equal_on(Kind::Btrfs));
}

#[test]
fn equal_on_tmpfs() {
    needs!(digests_are_equal_on(Kind::Tmpfs(64 << 20)));
}
