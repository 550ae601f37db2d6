//! What happens to a run from outside: Ctrl-C, and a file that shrinks under it.

use std::fs::OpenOptions;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::bin::{Folder, Ran};
use crate::fixture::endless_file;

/// Enough to be in the middle, little enough to be there at once.
const BEGUN_BYTES: u64 = 16 << 20;

#[track_caller]
fn is_interrupted(ran: &Ran) {
    let document = ran.exits(130).document();
    assert!(!ran.stderr.contains("panicked"), "{ran}");
    for result in document["results"].as_array().unwrap() {
        assert_eq!(result["status"], "interrupted", "{ran}");
    }
}

#[test]
fn an_interrupted_read_ends_with_a_document() {
    let folder = Folder::new();
    endless_file(&folder.join("endless"));
    for threads in ["1", "3"] {
        let arguments = "read endless --engine sync --format json --threads";
        let mut running = folder.flatout(arguments.split(' ').chain([threads])).start();
        running.wait_until_read(BEGUN_BYTES);
        running.interrupt();
        is_interrupted(&running.wait());
    }
}

#[test]
fn an_interrupted_read_ends_whatever_the_engine() {
    let folder = Folder::new();
    endless_file(&folder.join("endless"));
    for engine in ["mmap", "uring"] {
        let arguments = "read endless --format json --engine";
        let mut running = folder.flatout(arguments.split(' ').chain([engine])).start();
        // These engines do not count what they read, but from here on SIGINT has a handler.
        running.wait_until("status", catches_interrupt);
        running.interrupt();
        is_interrupted(&running.wait());
    }
}

/// Whether the process has a handler for signal 2 (bit 1 of the mask in proc_pid_status(5)).
fn catches_interrupt(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    mask.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() & 0b10 != 0)
}

#[test]
fn a_read_that_waits_for_a_pipe_can_be_interrupted() {
    let folder = Folder::new();
    let path = folder.join("fifo");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let mut running = folder.flatout(["read", "fifo", "--format", "json"]).start();
    running.wait_until("status", catches_interrupt);
    let writer = OpenOptions::new().write(true).open(&path).unwrap();
    running.interrupt();
    is_interrupted(&running.wait());
    drop(writer);
}

#[test]
fn an_interrupted_write_ends_with_a_document() {
    let folder = Folder::new();
    let arguments = "write new --engine sync --block-size 1MiB --block-count 8192 --format json";
    let mut running = folder.flatout(arguments.split(' ')).leaves("new").start();
    running.wait_until("io", |text| {
        let count = text.lines().find_map(|line| line.strip_prefix("wchar: "));
        count.is_some_and(|count| count.parse::<u64>().unwrap() >= BEGUN_BYTES)
    });
    running.interrupt();
    is_interrupted(&running.wait());
}

#[test]
fn a_file_that_is_truncated_while_mapped_is_an_error_and_no_signal() {
    let folder = Folder::new();
    let path = folder.join("endless");
    for threads in ["1", "2"] {
        endless_file(&path);
        let arguments = "read endless --engine mmap --format json --threads";
        let mut running = folder.flatout(arguments.split(' ').chain([threads])).start();
        running.wait_until("maps", |text| text.contains("/endless"));
        OpenOptions::new().write(true).open(&path).unwrap().set_len(4096).unwrap();
        let ran = running.wait();
        ran.complains(1, &["endless"]);
        assert!(!ran.document()["end"]["errors"].as_array().unwrap().is_empty(), "{ran}");
        std::fs::remove_file(&path).unwrap();
    }
}
