//! Storage that breaks in the middle: one line that names operation, path and cause, a whole
//! document, and no file that was not there before.

use fuser::Errno;

use crate::bin::{Folder, Ran};
use crate::faulty::{Begin, Fault, Faults, Faulty};
use crate::fixture::random_bytes;
use crate::schema::assert_valid;
use crate::skip::needs;

const LENGTH_BYTES: usize = 8 << 20;

/// Where it breaks: in the middle of a block, behind many good ones.
const BREAKS_AT: Begin = Begin::AtByte((5 << 20) + 12_345);

/// A write of as many bytes.
const WRITE: &str = "write new --block-size 64KiB --block-count 128 --format json";

#[track_caller]
fn fails(ran: &Ran, words: &[&str]) {
    ran.complains(1, words);
    let document = ran.document();
    assert_valid(&document);
    assert!(!document["end"]["errors"].as_array().unwrap().is_empty(), "{ran}");
    for result in document["results"].as_array().unwrap() {
        assert!(result["median"].is_null(), "a figure of half a run: {ran}");
    }
}

#[test]
fn a_write_that_breaks_in_the_middle_leaves_no_file() {
    let faulty = needs!(Faulty::new(Faults::default()));
    let causes = [
        (Fault::broken(BREAKS_AT), "Input/output error"),
        (Fault::full(BREAKS_AT), "No space left"),
    ];
    for (fault, cause) in causes {
        for is_uncached in [false, true] {
            faulty.change(|faults| (faults.write, faults.is_uncached) = (fault, is_uncached));
            for engine in ["sync", "uring", "sync --threads 3", "uring --depth 1"] {
                for caching in ["buffered", "direct"] {
                    let folder = Folder::inside(faulty.path());
                    let more = format!("--caching {caching} --engine {engine}");
                    let ran = folder.flatout(WRITE.split(' ').chain(more.split(' '))).run();
                    fails(&ran, &["cannot write", "new", cause]);
                }
            }
        }
    }
    assert_eq!(faulty.names().len(), 0);
    faulty.finish();
}

#[test]
fn an_overwrite_that_breaks_in_the_middle_keeps_the_file() {
    let faults = Faults { write: Fault::broken(BREAKS_AT), ..Faults::default() };
    let faulty = needs!(Faulty::new(faults));
    let folder = Folder::new();
    let path = faulty.path().join("old");
    for engine in ["sync", "uring"] {
        faulty.put("old", b"old");
        let options = "--overwrite --block-size 64KiB --block-count 128 --format json --engine";
        let words = ["write", path.to_str().unwrap()].into_iter().chain(options.split(' '));
        let ran = folder.flatout(words.chain([engine])).run();
        fails(&ran, &["cannot write", "old", "Input/output error"]);
        assert!(faulty.bytes("old").is_some(), "{ran}");
    }
    faulty.finish();
}

/// As by servers that send what was written away when it is closed.
#[test]
fn a_write_that_its_server_refuses_when_it_is_closed_is_no_success() {
    let faults = Faults { close: Some(Errno::EIO), ..Faults::default() };
    let faulty = needs!(Faulty::new(faults));
    for options in ["--sync none", "--sync end --threads 3"] {
        let folder = Folder::inside(faulty.path());
        let ran = folder.flatout(WRITE.split(' ').chain(options.split(' '))).run();
        fails(&ran, &["cannot close", "new", "Input/output error"]);
    }
    assert_eq!(faulty.names().len(), 0);
    faulty.finish();
}

#[test]
fn a_read_that_breaks_in_the_middle_names_operation_file_and_cause() {
    let faulty = needs!(Faulty::new(Faults::default()));
    let folder = Folder::new();
    let path = faulty.path().join("data");
    for engine in ["sync", "mmap", "uring"] {
        for options in ["--threads 1", "--threads 3", "--cold", "--caching direct"] {
            // A new file each time: the cache holds nothing of it.
            faulty.change(|faults| faults.read = Fault::broken(BREAKS_AT));
            faulty.put("data", &random_bytes(LENGTH_BYTES, 1));
            let words = ["read", path.to_str().unwrap(), "--format", "json", "--engine", engine];
            let ran = folder.flatout(words.into_iter().chain(options.split(' '))).run();
            fails(&ran, &["cannot read", "data", "Input/output error"]);
        }
    }
    faulty.finish();
}

#[test]
fn a_read_of_what_is_good_is_a_read() {
    let faults = Faults { read: Fault::broken(BREAKS_AT), is_uncached: true, ..Faults::default() };
    let faulty = needs!(Faulty::new(faults));
    let folder = Folder::new();
    faulty.put("data", &random_bytes(LENGTH_BYTES, 1));
    let path = faulty.path().join("data");
    let words = ["read", path.to_str().unwrap(), "--format", "json", "--engine", "sync"];
    let amount = ["--block-size", "64KiB", "--block-count", "80"];
    let ran = folder.flatout(words.into_iter().chain(amount)).run();
    assert_eq!(ran.exits(0).result()["audit"]["bytes"], 5 << 20, "{ran}");
    assert_eq!(faulty.read_bytes(), 5 << 20, "{ran}");
    faulty.finish();
}
