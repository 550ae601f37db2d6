//! What a figure means depends on where the bytes were: in the cache, on storage, or nowhere.

use crate::bin::{Folder, assert_warned, warnings};
use crate::filesystem::{Backing, Kind, Mounted, needs_kernel, needs_storage};
use crate::fixture::{random_file, sparse_file, xor32_hex, zero_file};
use crate::skip::needs;

const LENGTH_BYTES: usize = 3 << 20;
/// Runs, in one of which nobody else should have been in the way.
const ATTEMPTS: u32 = 10;

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
        let evidence = &result["audit"]["evidence"];
        assert_eq!(
            (&evidence["happened"], &evidence["by"]),
            (&"yes".into(), &"moved_ratio".into())
        );
    }
}

/// What a loop device holds of its file in the cache comes from no disk, whatever it hands on.
#[test]
fn a_cold_read_or_a_write_is_held_against_the_disk_at_the_bottom() {
    needs!(needs_storage(&std::env::temp_dir()));
    let mounted = needs!(Mounted::on_image(Kind::Ext4, 64 << 20, Backing::Cached));
    let folder = Folder::inside(&mounted.path());
    let run = |arguments: &str, process: &str, disk: &str| {
        let call = folder.flatout(arguments.split(' ')).leaves("data");
        let result = call.run().exits(0).result();
        let number = |key: &str| result["audit"][key].as_f64();
        let least = number(process).unwrap().min(number(disk).unwrap());
        let shown = result["audit"]["evidence"]["value"].as_f64().unwrap();
        assert!((shown - least / number("bytes").unwrap()).abs() < 1e-9, "{result:#}");
    };
    let write = "write data --size 4M --format json";
    run(write, "device_write_bytes", "disk_write_bytes");
    let read = "read data --cold --format json";
    run(read, "device_read_bytes", "disk_read_bytes");
    drop(folder);
    mounted.finish();
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
fn what_the_filesystem_compresses_is_said_and_random_bytes_are_not() {
    let mounted = needs!(Mounted::new(Kind::Btrfs));
    needs!(mounted.remount("compress-force=zstd"));
    let folder = Folder::inside(&mounted.path());
    let text: Vec<u8> = b"compressible ".iter().copied().cycle().take(LENGTH_BYTES).collect();
    std::fs::write(folder.join("text"), text).unwrap();
    random_file(&folder.join("random"), LENGTH_BYTES, 1);
    for (name, is_said) in [("text", true), ("random", false)] {
        std::fs::File::open(folder.join(name)).unwrap().sync_all().unwrap();
        let ran = folder.flatout(["read", name, "--cold", "--format", "json"]).run();
        let result = ran.exits(0).result();
        assert_eq!(warnings(&result).contains(&"compressed_file"), is_said, "{name}: {ran}");
    }
    drop(folder);
    mounted.finish();
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
fn a_file_of_data_raises_neither_warning() {
    let folder = Folder::new();
    random_file(&folder.join("data"), LENGTH_BYTES, 1);
    let result = folder.flatout(["read", "data", "--format", "json"]).run().exits(0).result();
    for code in ["sparse_file", "zero_blocks"] {
        assert!(!warnings(&result).contains(&code), "{result:#}");
    }
}

#[test]
fn extents_that_were_never_written_are_said() {
    needs!(needs_storage(&std::env::temp_dir()));
    let folder = Folder::new();
    let file = std::fs::File::create(folder.join("reserved")).unwrap();
    let flags = rustix::fs::FallocateFlags::empty();
    needs!(
        rustix::fs::fallocate(&file, flags, 0, LENGTH_BYTES as u64)
            .map_err(|errno| format!("the filesystem allocates nothing beforehand: {errno}"))
    );
    let result = folder.flatout(["read", "reserved", "--format", "json"]).run().exits(0).result();
    assert_warned(&result, "unwritten_extents");
}

#[test]
fn direct_reads_of_dirty_pages_are_said() {
    needs!(needs_storage(&std::env::temp_dir()));
    needs!(needs_kernel((6, 5), "cachestat tells what is dirty"));
    let folder = Folder::new();
    let arguments = "read data --caching direct --format json";
    // The kernel may have written them before it is looked, if others sync the same filesystem.
    let is_said = (0..ATTEMPTS).any(|_| {
        let bytes = random_file(&folder.join("data"), LENGTH_BYTES, 7);
        let result = folder.flatout(arguments.split(' ')).run().exits(0).result();
        assert_eq!(result["audit"]["digest_xor32"], xor32_hex(&bytes));
        warnings(&result).contains(&"dirty_pages")
    });
    assert!(is_said, "the pages were clean in each of {ATTEMPTS} runs");
}

#[test]
fn dontcache_reads_that_the_cache_serves_are_said() {
    needs!(needs_storage(&std::env::temp_dir()));
    let folder = Folder::new();
    random_file(&folder.join("data"), LENGTH_BYTES, 8);
    let arguments = "read data --caching dontcache --format json";
    let result = folder.flatout(arguments.split(' ')).run().exits(0).result();
    let codes = warnings(&result);
    let refused = codes.contains(&"dontcache_refused");
    assert!(refused || codes.contains(&"dontcache_hit"), "{result:#}");
}

#[test]
fn small_blocks_are_labelled_by_what_binds_them() {
    needs!(needs_storage(&std::env::temp_dir()));
    let folder = Folder::new();
    random_file(&folder.join("data"), 100_000, 9);
    let read = |options: &str| {
        let arguments = format!("read data --engine sync --format json {options}");
        folder.flatout(arguments.split(' ')).run().exits(0).result()
    };
    assert_warned(&read("--block-size 8"), "syscall_bound");
    assert_warned(&read("--block-size 8 --cold"), "readahead_bound");
    let direct = read("--block-size 512 --cold --caching direct");
    let is_labelled = |code| warnings(&direct).contains(&code);
    assert_eq!(is_labelled("readahead_bound"), is_labelled("direct_refused"), "{direct:#}");
}

#[test]
fn a_mapping_is_never_called_direct() {
    let folder = Folder::new();
    random_file(&folder.join("data"), LENGTH_BYTES, 10);
    for (caching, code) in [("direct", "direct_refused"), ("dontcache", "dontcache_refused")] {
        let arguments = ["read", "data", "--engine", "mmap", "--format", "json", "--caching"];
        let ran = folder.flatout(arguments.iter().chain(&[caching])).run();
        let result = ran.exits(0).result();
        assert_warned(&result, code);
        assert_eq!(result["parameters"]["caching"], "buffered", "{ran}");
    }
}
