//! Wrong arguments and places that nothing can be measured in: one line, and the right exit code.

use flatout_sys::launcher::{Resource, limit};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::bin::Folder;
use crate::fixture::random_file;

use super::{disk, disk_in, document, refused, rows};

/// Options and values that are wrong use.
const WRONG: &[(&str, &str)] = &[
    ("--threads", "0"),
    ("--threads", "100000"),
    ("--block-size", "0"),
    ("--block-size", "9223372036854775808"),
    ("--size", "0"),
    ("--rw", "sideways"),
    ("--rw", "random-read,sideways"),
    ("--iodepth", "0"),
    ("--iodepth", "100000"),
    ("--rwmixread", "101"),
    ("--rwmixread", "-1"),
    ("--rate", "0"),
    ("--rate", "fast"),
    ("--time", "0s"),
    ("--time", "5parsecs"),
    ("--engine", "aio"),
    ("--caching", "warm"),
    ("--split", "random"),
    ("--no-such-option", "1"),
];

#[test]
fn options_out_of_range_are_wrong_use() {
    let folder = Folder::new();
    random_file(&folder.join("data"), 1 << 20, 1);
    for &(option, value) in WRONG {
        let ran = disk(&folder, "data", &format!("{option}={value}")).run();
        ran.exits(2);
        assert!(ran.stderr.contains(option) && !ran.stderr.contains("panicked"), "{ran}");
    }
}

#[test]
fn options_that_none_of_the_rows_has_are_wrong_use() {
    let folder = Folder::new();
    for (option, patterns) in [
        ("--rate", "--rw reread --rate 100"),
        ("--rate", "--rw metadata --rate 100"),
        ("--rate", "--rw cold-blocks,reread --rate 100"),
        ("--split", "--split interleaved"),
        ("--split", "--rw read --split interleaved"),
        ("--split", "--rw randread --threads 2 --split interleaved"),
        ("--rwmixread", "--rw read,write --rwmixread 50"),
        ("--sync", "--rw read --sync each"),
        ("--threads", "--rw metadata --threads 4"),
        ("--caching", "--rw metadata --direct"),
    ] {
        let ran = disk(&folder, ".", patterns).run();
        ran.exits(2);
        refused(&ran, &[option]);
    }
    let some = "--rw read,randrw --threads 1,2 --split interleaved --rwmixread 50 --rate 1000";
    document(&disk_in(&folder, ".", some).run());
}

#[test]
fn places_that_hold_nothing_to_measure_are_refused() {
    let folder = Folder::new();
    mknodat(CWD, folder.join("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    random_file(&folder.join("empty"), 0, 1);
    random_file(&folder.join("data"), 1 << 20, 1);
    let places = [
        ("fifo", "fifo"),
        ("gone", "No such file"),
        ("no/such/directory", "No such file"),
        ("data/below", "Not a directory"),
        ("empty", "empty"),
        ("/dev/null", "/dev/null"),
        ("/dev/zero", "/dev/zero"),
        ("/proc", "/proc"),
        ("/proc/version", "/proc/version"),
    ];
    for (place, word) in places {
        refused(&disk(&folder, place, "--rw random-read").run(), &[place, word]);
    }
}

#[test]
fn names_that_need_more_open_files_than_there_may_be_say_so() {
    let folder = Folder::new();
    let run = disk(&folder, ".", "--rw metadata");
    let ran = run.with(|command| _ = limit(command, Resource::Descriptors, 20)).run();
    let document = ran.exits(0).document();
    let all = document["results"].as_array().unwrap();
    let lacking: Vec<_> = all.iter().filter(|row| row["status"] == "unsupported").collect();
    assert!(!lacking.is_empty() && lacking.len() < all.len(), "{ran}");
    for row in lacking {
        let said = row["warnings"].to_string();
        assert!(said.contains("Too many open files (ulimit -n: 20)"), "{row:#}");
    }
}

#[test]
fn a_file_below_a_block_is_refused_before_anything_is_announced() {
    let folder = Folder::new();
    random_file(&folder.join("data"), 5000, 1);
    for options in ["--rw random-read", "--rw sequential-read", "--rw write --overwrite"] {
        let ran = disk(&folder, "data", &format!("{options} --block-size 64KiB")).run();
        refused(&ran, &["data", "5 kB, less than one block of 64 KiB"]);
        assert!(!ran.stderr.contains("measuring"), "{ran}");
        let row = &ran.document()["results"][0];
        assert_eq!(row["warnings"][0]["code"], "short_file", "{row:#}");
    }
}

#[test]
fn a_pattern_named_twice_is_one_pattern_or_wrong_use() {
    let folder = Folder::new();
    random_file(&folder.join("data"), 1 << 20, 1);
    let ran = disk(&folder, "data", "--rw random-read,random-read --block-size 4KiB").run();
    if ran.code == Some(2) {
        refused(&ran, &["--rw", "random-read"]);
    } else {
        assert_eq!(rows(&document(&ran), "disk/random-read").len(), 1, "{ran}");
    }
}

#[test]
fn block_sizes_that_fit_nothing_still_measure() {
    let folder = Folder::new();
    random_file(&folder.join("data"), (1 << 20) + 777, 1);
    for options in
        ["--block-size 1000", "--block-size 1", "--block-size 1000 --caching direct", "--threads 3"]
    {
        for pattern in ["sequential-read", "random-read"] {
            let options = format!("--rw {pattern} {options}");
            let document = document(&disk(&folder, "data", &options).run());
            let row = rows(&document, &format!("disk/{pattern}"))[0];
            assert!(row["median"].as_f64().is_some_and(|rate| rate > 0.0), "{row:#}");
        }
    }
}
