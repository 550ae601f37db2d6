//! FIFOs, devices and whatever has no length: what is read and written as it is.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::Pair;
use crate::bin::{Folder, executable};

fn plant(folder: &Path) {
    fs::write(folder.join("a"), "some bytes").unwrap();
    mknodat(CWD, folder.join("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

#[test]
fn devices_are_read_and_written() {
    let pair = Pair::new(plant);
    for line in [
        "/dev/null new",
        "/dev/null a",
        "a /dev/null",
        "-f a /dev/null",
        "/proc/sys/kernel/ostype new",
        "-r pipe new",
        "-a pipe new",
        "-a pipe a",
        "-n a pipe",
        "-r a/ new",
    ] {
        pair.plant(plant);
        pair.same(line);
    }
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn a_fifo_is_read_until_its_writer_is_done() {
    let folder = Folder::new();
    plant(folder.path());
    let bytes = "0123456789".repeat(100_000);
    let mut child = Command::new(executable())
        .args(["cp", "pipe", "new"])
        .current_dir(folder.path())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    fs::write(folder.join("pipe"), &bytes).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(fs::read_to_string(folder.join("new")).unwrap(), bytes);
}

#[test]
fn what_is_copied_to_a_fifo_is_what_its_reader_gets() {
    let folder = Folder::new();
    plant(folder.path());
    let bytes = "0123456789".repeat(100_000);
    fs::write(folder.join("a"), &bytes).unwrap();
    let mut child = Command::new(executable())
        .args(["cp", "a", "pipe"])
        .current_dir(folder.path())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert_eq!(fs::read_to_string(folder.join("pipe")).unwrap(), bytes);
    assert!(child.wait().unwrap().success());
    assert!(fs::symlink_metadata(folder.join("pipe")).is_ok());
}

#[test]
fn standard_input_and_output_are_files() {
    let folder = Folder::new();
    plant(folder.path());
    let output = Command::new(executable())
        .args(["cp", "/dev/stdin", "/dev/stdout"])
        .current_dir(folder.path())
        .stdin(fs::File::open(folder.join("a")).unwrap())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.stdout, b"some bytes");
}
