//! What a figure means depends on where the bytes were: in the cache, on storage, or nowhere.

use crate::bin::{Folder, assert_warned, warnings};
use crate::filesystem::{Kind, Mounted, needs_storage};
use crate::fixture::{random_file, sparse_file, xor32_hex, zero_file};
use crate::skip::needs;

const LENGTH_BYTES: usize = 3 << 20;

#[test]
fn a_cold_read_after_an_unsynced_write_is_right_and_proves_itself() {
    needs!(needs_storage(&std::env::temp_dir()));
    for engine in ["sync", "mmap", "uring"] {
        let folder = Folder::new();
        // Dirty pages: nothing has asked the kernel to write them back.
        let bytes = random_file(&folder.join("data"), LENGTH_BYTES, 1);
        let arguments = "read data --cold --format json --engine";
        let ran = folder.flatout(arguments.split(' ').chain([engine])).run();
        let result = ran.exits(0).result();
        assert_eq!(result["audit"]["digest_xor32"], xor32_hex(&bytes), "{ran}");
        assert_eq!(result["audit"]["cached_before_bytes"], 0, "{ran}");
        assert!(!warnings(&result).contains(&"not_cold"), "{ran}");
    }
}

#[test]
fn a_cold_read_in_memory_says_that_it_is_none() {
    let mounted = needs!(Mounted::new(Kind::Tmpfs(16 << 20)));
    let folder = Folder::inside(&mounted.path());
    let bytes = random_file(&folder.join("data"), LENGTH_BYTES, 1);
    let ran = folder.flatout(["read", "data", "--cold", "--format", "json"]).run();
    let result = ran.exits(0).result();
    assert_eq!(result["audit"]["digest_xor32"], xor32_hex(&bytes), "{ran}");
    let codes = warnings(&result);
    assert!(codes.iter().any(|code| ["not_cold", "memory_filesystem"].contains(code)), "{ran}");
    drop(folder);
    mounted.finish();
}

#[test]
fn holes_are_said() {
    let folder = Folder::new();
    sparse_file(&folder.join("sparse"), LENGTH_BYTES as u64);
    let bytes = std::fs::read(folder.join("sparse")).unwrap();
    for engine in ["sync", "mmap", "uring"] {
        let ran = folder.flatout(["read", "sparse", "--format", "json", "--engine", engine]).run();
        let result = ran.exits(0).result();
        assert_warned(&result, "sparse_file");
        assert_eq!(result["audit"]["digest_xor32"], xor32_hex(&bytes), "{ran}");
    }
}

#[test]
fn zeros_are_said() {
    let folder = Folder::new();
    zero_file(&folder.join("zeros"), LENGTH_BYTES);
    let ran = folder.flatout(["read", "zeros", "--format", "json"]).run();
    let result = ran.exits(0).result();
    assert_warned(&result, "zero_blocks");
    assert_eq!(result["audit"]["digest_xor32"], "00000000", "{ran}");
}

#[test]
fn a_file_of_data_raises_neither_doubt() {
    let folder = Folder::new();
    random_file(&folder.join("data"), LENGTH_BYTES, 1);
    let result = folder.flatout(["read", "data", "--format", "json"]).run().exits(0).result();
    for code in ["sparse_file", "zero_blocks"] {
        assert!(!warnings(&result).contains(&code), "{result:#}");
    }
}
