//! Several reads of one file, and of a stream, which is there once.

use std::fs::File;
use std::io::Write;

use super::MEBIBYTE;
use crate::bin::{Folder, assert_warned};
use crate::fixture::{random_bytes, random_file, xor32_hex};
use crate::skip::skip;

#[test]
fn a_stream_that_is_read_out_is_no_further_trial_and_standard_input_is_there_once() {
    let folder = Folder::new();
    let words = ["read", "-", "-n", "3", "--format", "json"];
    let read = |more: &[&str], bytes: &[u8]| {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let running = folder.flatout(words.iter().chain(more)).stdin(reader).start();
        // It may be closed before all is read.
        let _ = writer.write_all(bytes);
        drop(writer);
        running.wait().exits(0).result()
    };
    let bytes = random_bytes(MEBIBYTE, 9);
    let result = read(&[], &bytes);
    assert_warned(&result, "few_trials");
    assert_eq!((&result["n"], &result["audit"]["bytes"]), (&1.into(), &MEBIBYTE.into()));
    assert_eq!(result["audit"]["digest_xor32"], xor32_hex(&bytes));
    // Parts of it, more than enough where some are disturbed.
    let result = read(&["--size", "16K"], &bytes);
    assert_eq!((&result["n"], &result["audit"]["bytes"]), (&3.into(), &(3 << 14).into()));
    folder.flatout(["read", "-", "-"]).run().complains(2, &["- can be given once"]);
}

#[test]
fn a_size_alone_asks_for_no_blocks() {
    let folder = Folder::new();
    let bytes = random_file(&folder.join("data"), 4 * MEBIBYTE, 2);
    let of = |options: &str| {
        let line = format!("read data --format json {options}");
        folder.flatout(line.split(' ')).run().exits(0).result()
    };
    let result = of("--size 2M");
    assert_eq!(result["parameters"]["engine"], "mmap", "as of a whole file: {result}");
    assert_eq!(result["audit"]["bytes"], 2 * MEBIBYTE);
    assert_eq!(result["audit"]["digest_xor32"], xor32_hex(&bytes[..2 << 20]));
    for blocks in ["--size 2M -b 4K", "--block-count 2", "--size 512K"] {
        assert_eq!(of(blocks)["parameters"]["engine"], "sync", "{blocks}");
    }
}

#[test]
fn an_interval_needs_three_trials() {
    let folder = Folder::new();
    random_file(&folder.join("data"), MEBIBYTE, 1);
    for (trials, is_known) in [("2", false), ("3", true)] {
        let ran = folder.flatout(["read", "data", "-n", trials, "--format", "json"]).run();
        assert_eq!(ran.exits(0).result()["ci95"].is_array(), is_known, "{ran}");
    }
}

#[test]
fn a_direct_read_of_a_hole_warns_that_no_device_gave_its_bytes() {
    let folder = Folder::new();
    File::create_new(folder.join("hole")).unwrap().set_len(8 << 20).unwrap();
    for trials in ["", " --rounds 3"] {
        let arguments = format!("read hole --caching direct --format json{trials}");
        let result = folder.flatout(arguments.split(' ')).run().exits(0).result();
        match result["audit"]["evidence"]["happened"].as_str() {
            Some("no") => assert_warned(&result, "not_from_device"),
            // Where direct I/O is refused, or nobody counts what devices moved.
            other => skip!("whether a device gave bytes is not seen here: {other:?}"),
        }
    }
}
