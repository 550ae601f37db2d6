//! Devices that fail: on reading, on writing, on closing.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::copier::copy;
use super::{ENGINES, under_test};
use crate::bin::Folder;
use crate::faulty::{Begin, Fault, Faults, Faulty};
use crate::filesystem::{Backing, LoopDevice, needs_program};
use crate::fixture::random_bytes;
use crate::skip::needs;

const LENGTH_BYTES: usize = 2 << 20;

fn uncached() -> Faults {
    Faults { is_uncached: true, ..Faults::default() }
}

/// Three files on storage that works.
fn three(folder: &Folder) -> PathBuf {
    let tree = folder.join("tree");
    fs::create_dir(&tree).unwrap();
    for (index, name) in ["a", "b", "c"].into_iter().enumerate() {
        fs::write(tree.join(name), random_bytes(LENGTH_BYTES, index as u64)).unwrap();
    }
    tree
}

fn is_whole(source: &Path, bytes: Option<&[u8]>) -> bool {
    bytes.is_some_and(|bytes| fs::read(source).unwrap() == bytes)
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_the_others_are_copied() {
    needs!(under_test());
    let faulty = needs!(Faulty::new(uncached()));
    let folder = Folder::new();
    for engine in ENGINES {
        for offset in [0, 4096, (1 << 20) + 1, LENGTH_BYTES as u64 - 1] {
            faulty.restart(|_| ());
            faulty.put("bad", &random_bytes(LENGTH_BYTES, 8));
            faulty.put("short", b"ok");
            faulty.change(|faults| faults.read = Fault::broken(Begin::AtByte(offset)));
            let target = folder.join("copy");
            let ran = copy(&["--engine", engine], faulty.path(), &target);
            let good = usize::from(offset == 0);
            ran.exits(1);
            assert!(
                ran.stderr.contains("bad") && ran.stderr.contains("Input/output error"),
                "{ran}"
            );
            assert!(ran.complaints().len() <= 2 + good, "{ran}");
            if offset > 0 {
                assert_eq!(fs::read(target.join("short")).unwrap(), b"ok", "{ran}");
            }
            faulty.change(|faults| faults.read = None);
            copy(&["-T", "--engine", engine], faulty.path(), &target).exits(0);
            assert!(fs::read(target.join("bad")).unwrap() == random_bytes(LENGTH_BYTES, 8));
            fs::remove_dir_all(&target).unwrap();
        }
    }
    faulty.finish();
}

#[test]
fn a_target_that_cannot_be_written_is_named_and_nothing_wrong_counts_as_done() {
    needs!(under_test());
    let faulty = needs!(Faulty::new(uncached()));
    let folder = Folder::new();
    let tree = three(&folder);
    for engine in ENGINES {
        for fault in [Fault::broken, Fault::full] {
            for after in [0, 1 << 20, (4 << 20) + 5] {
                faulty.restart(|faults| faults.write = fault(Begin::AfterBytes(after)));
                for name in ["a", "b", "c"] {
                    let _ = fs::remove_file(faulty.path().join(name));
                }
                let ran = copy(&["-T", "--engine", engine], &tree, faulty.path());
                ran.exits(1);
                assert!(!ran.stderr.contains("panicked") && ran.stderr.contains("write"), "{ran}");
                faulty.change(|faults| faults.write = None);
                copy(&["-T", "--engine", engine], &tree, faulty.path()).exits(0);
                for name in ["a", "b", "c"] {
                    assert!(is_whole(&tree.join(name), faulty.bytes(name).as_deref()), "{engine}");
                }
                assert_eq!(faulty.names(), ["a", "b", "c"], "{engine}: litter");
            }
        }
    }
    faulty.finish();
}

/// What was there before is not lost when its successor does not arrive.
#[test]
fn a_file_that_was_there_survives_a_failure() {
    needs!(under_test());
    let faulty = needs!(Faulty::new(uncached()));
    let folder = Folder::new();
    let tree = three(&folder);
    for engine in ENGINES {
        faulty.restart(|_| ());
        for name in ["a", "b", "c"] {
            faulty.put(name, b"the old one");
        }
        faulty.change(|faults| faults.write = Fault::broken(Begin::AtByte(1 << 20)));
        copy(&["-T", "--engine", engine], &tree, faulty.path()).exits(1);
        for name in ["a", "b", "c"] {
            assert_eq!(faulty.bytes(name).unwrap(), b"the old one", "{engine} {name}");
        }
        assert_eq!(faulty.names(), ["a", "b", "c"], "{engine}: litter");
    }
    faulty.finish();
}

/// That a server does not take the bytes is no matter of the directory, whatever it says.
#[test]
fn a_file_that_was_there_survives_what_is_said_on_closing() {
    needs!(under_test());
    let faulty = needs!(Faulty::new(uncached()));
    let folder = Folder::new();
    let (tree, place) = (three(&folder), faulty.path().to_str().unwrap());
    let tree = tree.to_str().unwrap();
    for errno in [fuser::Errno::EACCES, fuser::Errno::EPERM, fuser::Errno::EROFS] {
        for words in [&["copy", "--always"][..], &["cp", "-a", "--remove-destination"]] {
            faulty.restart(|_| ());
            for name in ["a", "b", "c"] {
                faulty.put(name, b"the old one");
            }
            faulty.change(|faults| faults.close = Some(errno));
            let ran = folder.flatout([words, &["-T", tree, place]].concat()).run();
            assert!(ran.exits(1).stderr.contains("/a"), "{ran}");
            for name in ["a", "b", "c"] {
                let is_old = faulty.bytes(name).is_some_and(|bytes| bytes == b"the old one");
                assert!(is_old, "{name}{ran}");
            }
            assert_eq!(faulty.names(), ["a", "b", "c"], "litter{ran}");
        }
    }
    faulty.finish();
}

#[test]
fn an_older_copy_that_cannot_be_read_is_replaced() {
    needs!(under_test());
    let faulty =
        needs!(Faulty::new(Faults { read: Fault::broken(Begin::AtByte(0)), ..uncached() }));
    let folder = Folder::new();
    let tree = three(&folder);
    faulty.put("a", &[7; LENGTH_BYTES]);
    copy(&["--checksum", "-T"], &tree, faulty.path()).exits(0);
    for name in ["a", "b", "c"] {
        assert!(is_whole(&tree.join(name), faulty.bytes(name).as_deref()), "{name}");
    }
    faulty.finish();
}

/// Network filesystems tell of a failed write only then.
#[test]
fn an_error_on_closing_is_an_error() {
    needs!(under_test());
    let faulty = needs!(Faulty::new(uncached()));
    let folder = Folder::new();
    let tree = three(&folder);
    for engine in ENGINES {
        faulty.restart(|faults| faults.close = Some(fuser::Errno::EIO));
        let ran = copy(&["-T", "--always", "--engine", engine], &tree, faulty.path());
        ran.exits(1);
        for name in ["a", "b", "c"] {
            let mut lines = ran.stderr.lines();
            assert!(lines.any(|line| line.contains(&format!("/{name}\": "))), "{name}{ran}");
        }
        faulty.change(|faults| faults.close = None);
        copy(&["-T", "--always", "--engine", engine], &tree, faulty.path()).exits(0);
        assert_eq!(faulty.names(), ["a", "b", "c"], "{engine}: litter");
    }
    faulty.finish();
}

/// Closing a block device writes what the page cache holds of it, and tells of no error.
#[test]
fn a_device_that_refuses_bytes_is_no_success() {
    needs!(under_test());
    let served = needs!(Faulty::new(Faults::default()));
    let device = needs!(LoopDevice::inside(served.path(), &vec![0; LENGTH_BYTES], Backing::Cached));
    let (folder, node) = (Folder::new(), device.path().to_str().unwrap());
    let bytes = random_bytes(LENGTH_BYTES, 1);
    fs::write(folder.join("bytes"), &bytes).unwrap();
    for words in [&["copy", "-H", "-T"][..], &["cp"]] {
        let ran = |write| {
            served.restart(|faults| faults.write = write);
            folder.flatout([words, &["bytes", node]].concat()).run()
        };
        let fault = Fault::broken(Begin::AtByte(LENGTH_BYTES as u64 / 2));
        ran(fault).complains(1, &["writ", node, "Input/output error"]);
        ran(None).exits(0);
        assert!(served.bytes("image").as_ref() == Some(&bytes), "{words:?}");
    }
    served.restart(|_| {});
    device.finish();
    served.finish();
}

/// What came first of a long file is written while the rest is copied; what came of that is told to who asks.
#[test]
fn what_storage_refuses_meanwhile_of_a_long_file_is_a_failure() {
    needs!(under_test());
    needs!(needs_program("strace"));
    let folder = Folder::new();
    fs::write(folder.join("long"), random_bytes(LENGTH_BYTES, 1)).unwrap();
    fs::write(folder.join("old"), "what was there").unwrap();
    for (errno, text) in [("EIO", "Input/output error"), ("ENOSPC", "No space left on device")] {
        let inject = format!("inject=sync_file_range:error={errno}");
        for name in ["old", "new"] {
            let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &inject];
            let ran = folder.under(&strace, &["copy", "-T", "long", name]).run();
            assert!(ran.exits(1).stderr.contains(text), "{ran}");
        }
        assert_eq!(fs::read(folder.join("old")).unwrap(), b"what was there");
        assert!(!folder.join("new").exists());
    }
}
