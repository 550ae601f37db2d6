//! Reads that end by time: `--duration` and `--min-time` on files, pipes and devices.

use std::io::Write;
use std::process::Stdio;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;

use crate::bin::Folder;
use crate::fixture::{endless_file, random_bytes, random_file, xor32_hex};

fn read(folder: &Folder, arguments: &str) -> Value {
    let arguments = format!("read {arguments} --format json");
    folder.flatout(arguments.split(' ')).run().exits(0).result()
}

fn seconds(result: &Value) -> f64 {
    result["audit"]["seconds"].as_f64().unwrap()
}

#[test]
fn a_short_file_is_passed_over_until_the_time_is_reached() {
    let folder = Folder::new();
    let bytes = random_file(&folder.join("data"), 7, 1);
    let passes = ["sync", "mmap", "uring"].map(|engine| {
        let result = read(&folder, &format!("data --min-time 300ms --engine {engine}"));
        let is_short = result["warnings"].to_string().contains("short_run");
        assert!(seconds(&result) >= 0.3 || is_short, "{result:#}");
        let passes = result["audit"]["passes"].as_u64().unwrap();
        assert!(passes.is_power_of_two(), "{result:#}");
        assert_eq!(result["audit"]["bytes"], 7 * passes);
        assert_eq!(result["audit"]["digest_xor32"], xor32_hex(&bytes), "one pass: {result:#}");
        passes
    });
    // Others may keep the CPU for as long as all passes are to take.
    assert!(passes.iter().any(|&passes| passes > 1), "{passes:?}");
}

#[test]
fn streams_are_read_on_until_the_time_is_reached() {
    let folder = Folder::new();
    let result = read(&folder, "/dev/zero --min-time 50ms");
    assert!(seconds(&result) >= 0.05, "{result:#}");
    assert_eq!(result["audit"]["digest_xor32"], "00000000");
}

#[test]
fn a_pipe_that_ends_before_its_time_gives_its_whole_digest() {
    let folder = Folder::new();
    let bytes = random_bytes(300_001, 2);
    let arguments = "read - --min-time 50s --block-size 1000 --format json";
    let (reader, mut writer) = std::io::pipe().unwrap();
    let running = folder.flatout(arguments.split(' ')).stdin(Stdio::from(reader)).start();
    writer.write_all(&bytes).unwrap();
    drop(writer);
    let result = running.wait().exits(0).result();
    assert_eq!(result["audit"]["bytes"], bytes.len());
    assert_eq!(result["audit"]["digest_xor32"], xor32_hex(&bytes));
}

#[test]
fn a_duration_also_ends_the_wait_for_a_writer() {
    let folder = Folder::new();
    let path = folder.join("fifo");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let result = read(&folder, "fifo --duration 50ms");
    assert_eq!(result["audit"]["bytes"], 0);
}

#[test]
fn a_read_that_was_cut_off_has_no_digest() {
    let folder = Folder::new();
    endless_file(&folder.join("endless"));
    for threads in [1, 3] {
        let arguments = format!("endless --engine sync --duration 20ms --threads {threads}");
        let result = read(&folder, &arguments);
        assert!(result["audit"]["digest_xor32"].is_null(), "{result:#}");
        assert!(result["audit"]["ended_early"].as_str().unwrap().contains("stopped"));
    }
}

#[test]
fn a_file_that_ends_first_says_when() {
    let folder = Folder::new();
    let bytes = random_file(&folder.join("data"), 100_000, 3);
    let result = read(&folder, "data --duration 50s");
    assert_eq!(result["audit"]["digest_xor32"], xor32_hex(&bytes));
    assert!(result["audit"]["ended_early"].as_str().unwrap().contains("whole file"));
    let result = read(&folder, "data --duration 50s --block-size 1000 --block-count 10");
    assert!(result["audit"]["ended_early"].as_str().unwrap().contains("asked for"));
}
