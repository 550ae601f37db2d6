//! What the kernel was really asked for, seen with strace(1).

use std::fs;
use std::path::Path;

use rustix::fs::{XattrFlags, lsetxattr};

use crate::bin::{Folder, Ran};
use crate::faulty::{Faults, Faulty};
use crate::filesystem::{needs_program, needs_root, needs_uring};
use crate::fixture::random_file;
use crate::skip::needs;

const READS: [&str; 5] = ["read(", "pread64(", "readv(", "preadv(", "preadv2("];

/// A run, and the system calls of all its threads.
struct Traced {
    ran: Ran,
    calls: Vec<String>,
}

impl Traced {
    /// Runs under strace, or says why that cannot be done here.
    fn new(folder: &Folder, arguments: &str) -> Result<Self, String> {
        needs_program("strace")?;
        let logs = tempfile::tempdir().unwrap();
        let log = logs.path().join("log");
        // A file per thread, so that no call is cut in two by another; paths instead of numbers.
        let strace = ["strace", "-ff", "-y", "-qq", "-s", "0", "-o", log.to_str().unwrap()];
        let words: Vec<&str> = arguments.split(' ').collect();
        let ran = folder.under(&strace, &words).run();
        if ran.stderr.contains("ptrace") {
            return Err(format!("processes may not be traced here: {}", ran.stderr.trim()));
        }
        ran.exits(0);
        let entries = fs::read_dir(logs.path()).unwrap();
        let logs = entries.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
        let calls = logs.flat_map(|log| log.lines().map(str::to_owned).collect::<Vec<_>>());
        Ok(Self { ran, calls: calls.collect() })
    }

    /// Calls with one of these beginnings on this file.
    fn on_file(&self, beginnings: &[&str], path: &Path) -> Vec<&str> {
        let name = format!("<{}", path.canonicalize().unwrap().display());
        let calls = self.calls.iter().map(String::as_str);
        calls
            .filter(|call| beginnings.iter().any(|beginning| call.starts_with(beginning)))
            .filter(|call| call.contains(&name))
            .collect()
    }
}

fn folder_with_file() -> Folder {
    let folder = Folder::new();
    random_file(&folder.join("data"), 20 * 4096, 1);
    folder
}

#[test]
fn sync_makes_one_read_per_block_and_no_other() {
    let folder = folder_with_file();
    for more in ["", " --threads 4", " --threads 3 --split interleaved"] {
        let options = "--engine sync --caching buffered --block-size 4096 --block-count 16";
        let traced = needs!(Traced::new(&folder, &format!("read data {options}{more}")));
        let reads = traced.on_file(&READS, &folder.join("data"));
        assert_eq!(reads.len(), 16, "{reads:#?}{}", traced.ran);
        assert!(reads.iter().all(|call| call.ends_with("= 4096")), "{reads:#?}");
    }
}

#[test]
fn uring_enters_the_ring_and_does_not_read_beside_it() {
    needs!(needs_uring());
    let folder = folder_with_file();
    let options = "--engine uring --block-size 4096 --block-count 16";
    let traced = needs!(Traced::new(&folder, &format!("read data {options}")));
    assert!(
        traced.calls.iter().any(|call| call.starts_with("io_uring_enter(")),
        "{:#?}",
        traced.calls
    );
    let reads = traced.on_file(&READS, &folder.join("data"));
    assert_eq!(reads.len(), 0, "{reads:#?}{}", traced.ran);
}

#[test]
fn mmap_maps_the_file_and_does_not_read_beside_it() {
    let folder = folder_with_file();
    let options = "--engine mmap --block-size 4096 --block-count 16";
    let traced = needs!(Traced::new(&folder, &format!("read data {options}")));
    assert!(!traced.on_file(&["mmap("], &folder.join("data")).is_empty(), "{}", traced.ran);
    let reads = traced.on_file(&READS, &folder.join("data"));
    assert_eq!(reads.len(), 0, "{reads:#?}{}", traced.ran);
}

#[test]
fn a_write_is_synced_when_that_is_asked_and_only_then() {
    for (when, is_synced) in [("none", false), ("end", true)] {
        let folder = Folder::new();
        fs::write(folder.join("new"), "").unwrap();
        let options = "--engine sync --caching buffered --block-size 4096 --block-count 16";
        let arguments = format!("write new --overwrite {options} --sync {when}");
        let traced = needs!(Traced::new(&folder, &arguments));
        let syncs = traced.on_file(&["fsync(", "fdatasync("], &folder.join("new"));
        assert_eq!(!syncs.is_empty(), is_synced, "--sync {when}: {syncs:#?}{}", traced.ran);
    }
}

/// The time until all is durable is that of the device, and not of reading /proc.
#[test]
fn nothing_is_read_between_the_last_write_and_the_sync() {
    let folder = Folder::new();
    fs::write(folder.join("new"), "").unwrap();
    let options = "--engine sync --caching buffered --block-size 4096 --block-count 2";
    let traced = needs!(Traced::new(&folder, &format!("write new --overwrite {options}")));
    let path = folder.join("new").canonicalize().unwrap();
    let is_on_file = |call: &String| call.contains(&format!("<{}>", path.display()));
    let written =
        traced.calls.iter().rposition(|call| call.starts_with("pwrite64(") && is_on_file(call));
    let after = &traced.calls[written.unwrap()..];
    let synced = after.iter().position(|call| call.starts_with("fdatasync(") && is_on_file(call));
    let between = &after[..synced.unwrap()];
    assert!(!between.iter().any(|call| call.contains("</proc/")), "{between:#?}{}", traced.ran);
}

/// Each block is durable by then, but the length that the file had is not gone.
#[test]
fn a_file_that_is_cut_is_synced_afterwards_where_each_block_was_synced_before() {
    let folder = folder_with_file();
    let arguments = "write data --overwrite --block-size 4096 --block-count 2 --sync each";
    let traced = needs!(Traced::new(&folder, arguments));
    let calls = traced.on_file(&["ftruncate(", "fdatasync("], &folder.join("data"));
    let cut = calls.iter().position(|call| call.starts_with("ftruncate("));
    let is_synced = cut.is_some_and(|cut| calls[cut..].iter().any(|call| call.contains("sync(")));
    assert!(is_synced, "{calls:#?}{}", traced.ran);
}

/// Who overwrites one file does not want to wait for a listing of all that lies beside it; what an
/// earlier copy left of this file goes all the same.
#[test]
fn overwriting_a_file_does_not_list_its_directory() {
    let folder = Folder::new();
    fs::create_dir(folder.join("d")).unwrap();
    fs::write(folder.join("d/f"), "old").unwrap();
    fs::write(folder.join("f"), "new").unwrap();
    for options in ["", " --atomic", " --in-place", " --quick-check"] {
        let traced = needs!(Traced::new(&folder, &format!("copy{options} f d")));
        let listed = traced.on_file(&["getdents64("], &folder.join("d"));
        assert!(listed.is_empty(), "{options}: {listed:?}");
        assert_eq!(fs::read(folder.join("d/f")).unwrap(), b"new");
    }
    assert_eq!(Folder::names_in(&folder.join("d")).len(), 1);
}

#[test]
fn a_server_has_the_bytes_of_a_file_before_its_capabilities() {
    needs!(needs_root("sets a file capability"));
    let faulty = needs!(Faulty::new(Faults::default()));
    let folder = folder_with_file();
    // cap_net_raw, permitted and effective (capabilities(7)).
    let mut capability = [0; 20];
    [capability[0], capability[3], capability[5]] = [1, 2, 0x20];
    let set =
        lsetxattr(folder.join("data"), "security.capability", &capability, XattrFlags::empty());
    needs!(set.map_err(|error| format!("no file capabilities here: {error}")));
    let target = faulty.path().join("data");
    let traced = needs!(Traced::new(&folder, &format!("copy data {}", target.display())));
    let calls = traced.on_file(&["fdatasync(", "fsetxattr("], &target);
    assert!(matches!(calls[..], [bytes, set] if bytes < set), "{calls:?}");
    faulty.finish();
}
