//! Storage that breaks or fills up during a run, and Ctrl-C: one valid document, and nothing left.

use std::time::Duration;

use rustix::process::Signal;

use crate::bin::{Folder, Ran};
use crate::faulty::{Begin, Fault, Faults, Faulty};
use crate::fixture::{random_bytes, random_file};
use crate::schema::assert_valid;
use crate::skip::needs;

use super::{LENGTH_BYTES, LITTLE, disk, disk_in};

/// A document that says what failed, and no figure of what failed.
#[track_caller]
fn fails(ran: &Ran, words: &[&str]) {
    ran.exits(1);
    assert!(!ran.stderr.contains("panicked"), "{ran}");
    for word in words {
        assert!(ran.stderr.contains(word), "`{word}` is missing: {ran}");
    }
    let document = ran.document();
    assert_valid(&document);
    assert!(!document["end"]["errors"].as_array().unwrap().is_empty(), "{ran}");
    for row in document["results"].as_array().unwrap() {
        assert!(row["status"] != "failed" || row["median"].is_null(), "{row:#}");
    }
}

#[test]
fn reads_that_break_in_the_middle_fail_with_a_document() {
    let faulty = needs!(Faulty::new(Faults::default()));
    faulty.put("data", &random_bytes(LENGTH_BYTES, 1));
    let folder = Folder::new();
    let path = faulty.path().join("data");
    for is_uncached in [false, true] {
        for engine in ["sync", "uring", "uring --iodepth 8 --threads 2"] {
            for pattern in ["sequential-read", "random-read"] {
                faulty.put("data", &random_bytes(LENGTH_BYTES, 1));
                faulty.change(|faults| {
                    faults.read = Fault::broken(Begin::AtByte(5 << 20));
                    faults.is_uncached = is_uncached;
                });
                let options =
                    format!("--rw {pattern} --block-size 64KiB --engine {engine} --time 1s");
                let ran = disk(&folder, path.to_str().unwrap(), &options).run();
                fails(&ran, &["cannot read", "data", "Input/output error"]);
            }
        }
    }
    faulty.finish();
}

#[test]
fn writes_that_break_or_find_no_room_fail_with_a_document() {
    let faulty = needs!(Faulty::new(Faults { is_uncached: true, ..Faults::default() }));
    let folder = Folder::new();
    let place = faulty.path().to_str().unwrap();
    // While its file is made, and later, while it is measured.
    let moments = [Begin::AtByte(5 << 20), Begin::AfterBytes(11 << 20)];
    for moment in moments {
        for (fault, cause) in
            [(Fault::broken(moment), "Input/output error"), (Fault::full(moment), "No space left")]
        {
            for engine in ["sync", "uring"] {
                for pattern in ["sequential-write", "random-write", "mixed"] {
                    faulty.restart(|faults| faults.write = fault);
                    let options =
                        format!("--rw {pattern} --block-size 64KiB --engine {engine} --time 1s");
                    let ran = disk_in(&folder, place, &options).run();
                    fails(&ran, &["cannot", cause]);
                    assert_eq!(faulty.names().len(), 0, "{ran}");
                }
            }
        }
    }
    faulty.finish();
}

#[test]
fn one_pattern_that_fails_does_not_take_the_others_with_it() {
    let faulty = needs!(Faulty::new(Faults { is_uncached: true, ..Faults::default() }));
    let folder = Folder::new();
    faulty.change(|faults| faults.read = Fault::broken(Begin::AtByte(0)));
    let options = "--rw random-read,random-write --block-size 64KiB";
    let ran = disk_in(&folder, faulty.path().to_str().unwrap(), options).run();
    fails(&ran, &["cannot read", "Input/output error"]);
    let document = ran.document();
    let rows = super::rows(&document, "disk/random-write");
    assert!(rows.iter().any(|row| row["median"].is_number()), "{ran}");
    faulty.finish();
}

#[test]
fn an_interrupted_run_ends_with_a_document_and_nothing_left() {
    let faults = Faults { delay: Duration::from_millis(1), is_uncached: true, ..Faults::default() };
    let faulty = needs!(Faulty::new(faults));
    let place = faulty.path().to_str().unwrap();
    let folder = Folder::new();
    for engine in ["sync", "uring"] {
        for (pattern, moment) in [
            // Files are still being made after 1 MiB, and being measured after 10 MiB.
            ("random-read", 1 << 20),
            ("sequential-write", 10 << 20),
        ] {
            faulty.restart(|_| ());
            let options = format!("--rw {pattern} --block-size 64KiB --engine {engine}");
            let words = "bench disk --size 8MiB --time 30s --format json";
            let words = words.split(' ').chain(options.split(' ')).chain([place]);
            let mut running = folder.flatout(words).start();
            running.wait_until("status", |_| faulty.written_bytes() >= moment);
            running.interrupt();
            let ran = running.wait();
            let document = ran.died_of(Signal::INT).document();
            assert_valid(&document);
            assert!(!ran.stderr.contains("panicked"), "{ran}");
            assert_eq!(faulty.names().len(), 0, "{ran}");
        }
    }
    faulty.finish();
}

#[test]
fn an_interrupted_run_on_a_file_leaves_the_file() {
    let folder = Folder::new();
    let bytes = random_file(&folder.join("data"), LENGTH_BYTES, 1);
    let words = "bench disk data --rw random-read --time 30s --engine sync --format json";
    let mut running = folder.flatout(words.split(' ')).start();
    running.wait_until_read(32 << 20);
    running.interrupt();
    let ran = running.wait();
    assert_valid(&ran.died_of(Signal::INT).document());
    assert!(std::fs::read(folder.join("data")).unwrap() == bytes, "{ran}");
}

#[test]
fn a_file_that_cannot_be_opened_once_more_has_the_name_that_the_user_knows() {
    let folder = Folder::new();
    random_file(&folder.join("data"), LENGTH_BYTES, 1);
    for caching in ["buffered", "direct"] {
        let words = format!("bench disk data --threads 30 --caching {caching} {LITTLE}");
        let words: Vec<&str> = words.split(' ').collect();
        let ran = folder.under(&["sh", "-c", "ulimit -n 24; exec \"$@\"", "sh"], &words).run();
        fails(&ran, &["data\"", "Too many open files (ulimit -n: 24)"]);
        assert!(!ran.stderr.contains("/proc/"), "{ran}");
    }
}
