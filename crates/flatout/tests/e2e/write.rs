//! `flatout write`: what it writes, what it refuses to touch, and what it says about it.

mod content;
mod failure;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use flatout_sys::launcher::{CACHESTAT, EIO, EPERM, FSYNC, deny};

use crate::bin::{Folder, assert_warned, executable, warnings};
use crate::faulty::{Faults, Faulty};
use crate::filesystem::{Backing, Kind, LoopDevice, Mounted, needs_storage};
use crate::fixture::{random_bytes, random_file, xor32_hex};
use crate::skip::needs;

const ENGINES: [&str; 2] = ["sync", "uring"];

#[test]
fn as_many_bytes_as_asked_are_written() {
    let folder = Folder::new();
    for engine in ENGINES {
        let arguments = "write new --block-size 4096 --block-count 100 --format json --engine";
        let ran = folder.flatout(arguments.split(' ').chain([engine])).leaves("new").run();
        let result = ran.exits(0).result();
        assert_eq!(result["id"], "write/file", "{ran}");
        assert_eq!(result["audit"]["bytes"], 409_600, "{ran}");
        assert_eq!(result["audit"]["blocks"], 100, "{ran}");
        let bytes = fs::read(folder.join("new")).unwrap();
        assert_eq!(bytes.len(), 409_600, "{ran}");
        let read = folder.flatout(["read", "new", "--format", "json"]).run();
        let audit = read.exits(0).result()["audit"].clone();
        assert_eq!(audit["digest_xor32"], xor32_hex(&bytes), "{read}");
        fs::remove_file(folder.join("new")).unwrap();
    }
}

#[test]
fn what_is_written_to_memory_is_never_durable() {
    let mounted = needs!(Mounted::new(Kind::Tmpfs(64 << 20)));
    let folder = Folder::inside(&mounted.path());
    for how in ["--sync end", "--sync each", "--caching direct"] {
        let arguments = format!("write new --block-size 64K --block-count 8 {how} --format json");
        let ran = folder.flatout(arguments.split(' ')).leaves("new").run();
        let result = ran.exits(0).result();
        assert_warned(&result, "memory_filesystem");
        assert!(result["audit"].get("rate_durable").is_none(), "{ran}");
        assert_ne!(result["ceiling"]["limiter"], "device", "{ran}");
        let record = folder.join("record.json");
        fs::write(&record, &ran.stdout).unwrap();
        let told = folder.flatout([OsStr::new("report"), record.as_os_str()]).run();
        let told = &told.exits(0).stdout;
        assert!(told.contains("in memory") && !told.contains("durable "), "{told}");
        fs::remove_file(folder.join("new")).unwrap();
        fs::remove_file(record).unwrap();
    }
    drop(folder);
    mounted.finish();
}

#[test]
fn a_server_that_takes_less_than_it_is_given_gets_all_bytes() {
    let faults = Faults { answer_bytes: 20_000, is_uncached: true, ..Faults::default() };
    let faulty = needs!(Faulty::new(faults));
    let folder = Folder::new();
    let there = faulty.path().join("new");
    let options = "--block-size 64K --block-count 8 --seed 5 --format json";
    let here = folder.flatout(["write", "new"].into_iter().chain(options.split(' ')));
    here.leaves("new").run().exits(0);
    let words = ["write", there.to_str().unwrap(), "--engine", "uring"];
    let ran = folder.flatout(words.into_iter().chain(options.split(' '))).run();
    let result = ran.exits(0).result();
    assert_warned(&result, "uring_refused");
    assert_eq!(result["parameters"]["engine"], "sync", "{ran}");
    assert!(faulty.bytes("new") == fs::read(folder.join("new")).ok(), "{ran}");
    faulty.finish();
}

#[test]
fn what_a_program_serves_waits_for_no_device_and_is_not_called_cached() {
    let faulty = needs!(Faulty::new(Faults::default()));
    let (folder, there) = (Folder::new(), faulty.path().join("new"));
    let there = there.to_str().unwrap();
    let limiter = |words: &str| {
        let words = [&words.split(' ').collect::<Vec<_>>()[..], &[there]].concat();
        let result = folder.flatout(words).run().exits(0).result();
        result["ceiling"]["limiter"].as_str().unwrap_or_default().to_owned()
    };
    let written = limiter("write --sync each --block-size 4K --block-count 100 --format json");
    // Beside others it waits for these.
    assert!(["program that serves the filesystem", "other programs"].contains(&&*written));
    let read = limiter("read --caching buffered --cold --format json");
    assert!(!read.contains("page cache"), "{read}");
    faulty.finish();
}

#[test]
fn threads_that_have_no_block_are_said() {
    let folder = Folder::new();
    let write = "write new --block-size 4K --block-count 3 --threads 8 --format json";
    let result = folder.flatout(write.split(' ')).leaves("new").run().exits(0).result();
    assert_eq!(result["parameters"]["threads"], 3);
    assert_warned(&result, "threads_reduced");
    let read = "read new --block-size 4K --threads 8 --format json";
    assert_warned(&folder.flatout(read.split(' ')).run().exits(0).result(), "threads_reduced");
}

#[test]
fn a_seed_gives_the_same_bytes_however_they_are_written() {
    let folder = Folder::new();
    let ways = [
        "--block-size 1000 --block-count 600",
        "--block-size 3000 --block-count 200 --threads 3",
        "--block-size 60000 --block-count 10 --engine uring --depth 4",
        "--block-size 1000 --block-count 600 --caching direct",
    ];
    let written: Vec<Vec<u8>> = ways
        .iter()
        .map(|way| {
            let arguments = format!("write new --seed 42 {way}");
            folder.flatout(arguments.split(' ')).leaves("new").run().exits(0);
            let bytes = fs::read(folder.join("new")).unwrap();
            fs::remove_file(folder.join("new")).unwrap();
            bytes
        })
        .collect();
    for (bytes, way) in written.iter().zip(ways) {
        assert_eq!(bytes.len(), 600_000, "{way}");
        assert!(*bytes == written[0], "{way}: other bytes than {}", ways[0]);
    }
    let other = "write new --seed 43 --block-size 1000 --block-count 600";
    folder.flatout(other.split(' ')).leaves("new").run().exits(0);
    assert!(fs::read(folder.join("new")).unwrap() != written[0], "another seed, other bytes");
}

#[test]
fn the_kind_of_data_is_obeyed() {
    let folder = Folder::new();
    for data in ["random", "zero", "pattern"] {
        let arguments =
            format!("write new --overwrite --block-count 16 --block-size 4096 --data {data}");
        folder.flatout(arguments.split(' ')).leaves("new").run().exits(0);
        let bytes = fs::read(folder.join("new")).unwrap();
        assert_eq!(bytes.len(), 16 * 4096);
        assert_eq!(bytes.iter().all(|&byte| byte == 0), data == "zero", "{data}");
        let names_its_place = bytes
            .as_chunks::<8>()
            .0
            .iter()
            .enumerate()
            .all(|(index, &word)| u64::from_le_bytes(word) == index as u64 * 8);
        assert_eq!(names_its_place, data == "pattern", "{data}");
    }
}

#[test]
fn a_new_file_has_the_mode_that_the_umask_leaves() {
    let folder = Folder::new();
    for (umask, mode) in [("022", 0o644), ("027", 0o640), ("077", 0o600), ("000", 0o666)] {
        let script = format!("umask {umask}; exec \"$0\" write new --block-count 1");
        let words = ["-c".into(), script.into(), executable().into()].to_vec();
        folder.program("sh".as_ref(), words).leaves("new").run().exits(0);
        let found = fs::metadata(folder.join("new")).unwrap().permissions().mode() & 0o7777;
        assert_eq!(found, mode, "umask {umask}: {found:o}");
        fs::remove_file(folder.join("new")).unwrap();
    }
}

#[test]
fn an_existing_file_is_left_alone() {
    let folder = Folder::new();
    let bytes = random_file(&folder.join("data"), 5000, 1);
    symlink("data", folder.join("link")).unwrap();
    let before = fs::metadata(folder.join("data")).unwrap().modified().unwrap();
    for name in ["data", "link"] {
        let ran = folder.flatout(["write", name, "--block-count", "1"]).run();
        ran.complains(1, &[name, "--overwrite"]);
        let ran = folder.flatout(["write", name, "--block-count", "1", "--format", "json"]).run();
        ran.exits(1).document();
    }
    assert!(fs::read(folder.join("data")).unwrap() == bytes);
    assert_eq!(fs::metadata(folder.join("data")).unwrap().modified().unwrap(), before);
}

#[test]
fn an_existing_file_is_overwritten_when_that_is_asked() {
    let folder = Folder::new();
    let bytes = random_file(&folder.join("data"), 8192, 1);
    let arguments = "write data --overwrite --block-size 4096 --block-count 2";
    folder.flatout(arguments.split(' ')).run().exits(0);
    let written = fs::read(folder.join("data")).unwrap();
    assert_eq!(written.len(), 8192);
    assert!(written != bytes);
}

#[test]
fn an_overwritten_file_keeps_its_inode_and_gets_the_new_length() {
    let folder = Folder::new();
    for length in [1, 8192, 100_000] {
        random_file(&folder.join("data"), length, 1);
        let inode = fs::metadata(folder.join("data")).unwrap().ino();
        let arguments = "write data --overwrite --block-size 4096 --block-count 2";
        folder.flatout(arguments.split(' ')).run().exits(0);
        let after = fs::metadata(folder.join("data")).unwrap();
        assert_eq!((after.len(), after.ino()), (8192, inode), "it had {length} bytes");
    }
}

#[test]
fn what_is_no_file_is_refused() {
    let folder = Folder::new();
    for name in [".", "no/such/folder/new"] {
        let ran = folder.flatout(["write", name, "--overwrite", "--block-count", "1"]).run();
        ran.complains(1, &[name]);
    }
}

#[test]
fn block_devices_are_refused_always() {
    let content = random_bytes(1 << 20, 1);
    let device = needs!(LoopDevice::new(&content));
    let folder = Folder::new();
    symlink(device.path(), folder.join("link")).unwrap();
    for path in [device.path().to_str().unwrap(), "link"] {
        for more in [&["--block-count", "1"][..], &["--block-count", "1", "--overwrite"]] {
            let ran = folder.flatout(["write", path].iter().chain(more)).run();
            ran.complains(1, &[path, "block device"]);
        }
    }
    assert!(device.finish() == content, "the device has changed");
}

#[test]
fn a_directory_that_cannot_be_synced_is_a_warning_and_the_file_stays() {
    let folder = Folder::new();
    let ran = folder
        .flatout("write new --block-count 4 --format json".split(' '))
        .leaves("new")
        .with(|command| {
            deny(command, &[(FSYNC, EIO)]);
        })
        .run();
    let result = ran.exits(0).result();
    assert_warned(&result, "not_durable");
    assert!(result["median"].is_f64(), "{ran}");
    assert!(ran.stdout.contains("sync the directory of") && ran.stdout.contains("Input/output"));
    assert_eq!(fs::metadata(folder.join("new")).unwrap().len(), 4 << 18);
}

#[test]
fn the_kernels_accounts_are_in_the_record() {
    let folder = Folder::new();
    needs!(needs_storage(folder.path()));
    for (caching, cached) in [("buffered", 1 << 20), ("direct", 0)] {
        let arguments = "write new --block-size 64KiB --block-count 16 --format json --caching";
        let ran = folder.flatout(arguments.split(' ').chain([caching])).leaves("new").run();
        let result = ran.exits(0).result();
        let written = result["audit"]["device_write_bytes"].as_u64().unwrap();
        assert!((1 << 20..2 << 20).contains(&written), "{ran}");
        if result["parameters"]["caching"] == caching {
            // Where memory is short, a part of it is gone again.
            let held = result["audit"]["cached_after_bytes"].as_u64().unwrap();
            assert!(held <= cached && (held > 0) == (cached > 0), "{ran}");
        }
        assert!(!warnings(&result).contains(&"direct_cached"), "{ran}");
        fs::remove_file(folder.join("new")).unwrap();
    }
}

/// The kernel counts for a process what it makes dirty: what is dirty already is counted for nobody.
#[test]
fn pages_that_may_be_dirty_are_written_back_before_they_are_overwritten() {
    let folder = Folder::new();
    needs!(needs_storage(folder.path()));
    let write = |more: &str| {
        let arguments = format!("write new --size 1M --caching buffered --format json {more}");
        let run = folder.flatout(arguments.split(' ')).leaves("new");
        // As before Linux 6.5: nobody tells which pages are dirty.
        let run = run.with(|command| _ = deny(command, &[(CACHESTAT, EPERM)])).run();
        run.exits(0).result()["audit"].clone()
    };
    write("--sync none");
    let audit = write("--overwrite");
    assert!(audit["device_write_bytes"].as_u64() >= Some(1 << 20), "{audit:#}");
}

#[test]
fn what_a_mount_keeps_from_being_durable_is_doubted() {
    let mounted = needs!(Mounted::on_image(Kind::Ext4, 64 << 20, Backing::Cached));
    let folder = Folder::inside(&mounted.path());
    let is_doubted = |sync: &str| {
        let arguments = format!("write new --overwrite --size 1M --sync {sync} --format json");
        let ran = folder.flatout(arguments.split(' ')).leaves("new").run();
        ran.exits(0).stdout.contains("mounted nobarrier")
    };
    assert!(!is_doubted("end"));
    needs!(mounted.remount("nobarrier"));
    assert!(is_doubted("end") && is_doubted("each") && !is_doubted("none"));
    drop(folder);
    mounted.finish();
}

#[test]
fn a_limiter_is_named_and_the_generator_is_held_against_it() {
    let folder = Folder::new();
    for sync in ["none", "end", "each"] {
        let arguments = "write new --block-count 16 --format json --sync";
        let ran = folder.flatout(arguments.split(' ').chain([sync])).leaves("new").run();
        let result = ran.exits(0).result();
        let limiter = result["ceiling"]["limiter"].as_str().unwrap();
        assert!(["data generation", "page cache", "device"].contains(&limiter), "{ran}");
        let share = result["audit"]["overhead_ratio"].as_f64().unwrap();
        assert_eq!(warnings(&result).contains(&"overhead"), share > 0.01, "{ran}");
        fs::remove_file(folder.join("new")).unwrap();
    }
}

#[test]
fn the_result_never_replaces_what_is_written() {
    let folder = Folder::new();
    for place in ["new", "./new"] {
        let arguments = ["write", "new", "--block-count", "1", "--output", place];
        folder.flatout(arguments).run().complains(1, &["new"]);
        assert!(!folder.join("new").exists());
    }
}

#[test]
fn a_symlink_that_leads_nowhere_is_called_that_and_makes_no_file() {
    let folder = Folder::new();
    symlink("missing", folder.join("link")).unwrap();
    let ran = folder.flatout(["write", "link", "--size", "64K"]).run();
    ran.complains(1, &["\"link\"", "it is a symlink that leads nowhere"]);
    assert!(!folder.join("missing").exists());
}
