//! `flatout bench disk`: rows, audit and chain, and everything that must be warned of or refused.
//!
//! `trap` sets up what makes a figure mean something else, `rail` what must not be touched,
//! `misuse` wrong arguments, `pace` storage that slows down, `failure` storage that breaks and Ctrl-C, `layer` what lies between
//! a path and its device.

mod failure;
mod layer;
mod misuse;
mod pace;
mod rail;
mod trap;

use serde_json::{Value, json};

use crate::bin::{Flatout, Folder, Ran, assert_warned, warnings};
use crate::filesystem::{Backing, Kind, Mounted, needs_program, needs_uring};
use crate::fixture::{self, random_file};
use crate::schema::assert_valid;
use crate::skip::needs;

/// Little: no test waits for a narrow interval.
const LITTLE: &str = "--quick --time 20ms --runs 3 --format json";

/// The same for a run whose trials are long enough for something to happen.
const LONGER: &str = "--quick --runs 2 --format json";

/// The length of the files that are measured, and of those that tests make.
const LENGTH_BYTES: usize = 8 << 20;

const READS: [&str; 2] = ["sequential-read", "random-read"];
const WRITES: [&str; 5] =
    ["sequential-write", "random-write", "mixed", "readwrite", "sequential-copy"];

/// A short run on a place, with further options.
fn disk<'a>(folder: &'a Folder, place: &str, options: &str) -> Flatout<'a> {
    let words = ["bench", "disk", place].into_iter();
    let usual = if options.contains("--time") { LONGER } else { LITTLE };
    folder.flatout(words.chain(usual.split(' ')).chain(options.split_whitespace()))
}

/// The same in a directory, which makes files of its own: these have to be told their length.
fn disk_in<'a>(folder: &'a Folder, place: &str, options: &str) -> Flatout<'a> {
    disk(folder, place, &format!("--size 8MiB {options}"))
}

/// The document of a run that went well.
#[track_caller]
fn document(ran: &Ran) -> Value {
    let document = ran.exits(0).document();
    assert_valid(&document);
    document
}

/// The rows of an id.
fn rows<'a>(document: &'a Value, id: &str) -> Vec<&'a Value> {
    let rows = document["results"].as_array().unwrap().iter();
    rows.filter(|row| row["id"] == id).collect()
}

/// Fails unless there is a row of this id and all of them have the warning.
#[track_caller]
fn all_warned(document: &Value, id: &str, code: &str) {
    let rows = rows(document, id);
    assert!(!rows.is_empty(), "no row {id}: {document:#}");
    for row in rows {
        assert_warned(row, code);
    }
}

/// Fails if any row has the warning.
#[track_caller]
fn nobody_warned(document: &Value, code: &str) {
    for row in document["results"].as_array().unwrap() {
        assert!(!warnings(row).contains(&code), "{code}: {row:#}");
    }
}

/// What was complained about besides the announcement of what will be done.
fn complaints(ran: &Ran) -> Vec<&str> {
    ran.stderr.lines().filter(|line| !line.starts_with("flatout: measuring ")).collect()
}

/// Fails unless it failed without a figure, and with one line that holds these words.
#[track_caller]
fn refused(ran: &Ran, words: &[&str]) {
    assert!(matches!(ran.code, Some(1 | 2)), "{ran}");
    let complaints = complaints(ran);
    assert_eq!(complaints.len(), 1, "one line: {ran}");
    for word in words {
        assert!(complaints[0].contains(word), "`{word}` is missing: {ran}");
    }
    if !ran.stdout.is_empty() {
        // There may be a row that bears the code of the reason, but never a figure.
        for row in ran.document()["results"].as_array().unwrap() {
            assert_eq!(
                (&row["id"], &row["median"]),
                (&json!("disk/refused"), &Value::Null),
                "{ran}"
            );
            assert_eq!(row["warnings"].as_array().unwrap().len(), 1, "{ran}");
        }
    }
}

/// A number of a row's audit.
#[track_caller]
fn audit(row: &Value, key: &str) -> f64 {
    row["audit"][key].as_f64().unwrap_or_else(|| panic!("no {key}: {row:#}"))
}

#[test]
fn what_ends_before_the_time_that_was_asked_for_announces_less() {
    let folder = Folder::new();
    let words = "bench disk --rw sequential-write --size 8MiB --max-time 900s --format json";
    let ran = folder.flatout(words.split(' ')).run();
    let rows = document(&ran)["results"].as_array().unwrap().clone();
    assert!(!rows.is_empty() && rows.iter().all(|row| row["n"].as_u64().unwrap() <= 20), "{ran}");
    let said = ran.stderr.split("takes about ").nth(1).and_then(|rest| rest.split(' ').next());
    let seconds: f64 = said.and_then(|word| word.parse().ok()).unwrap_or(f64::INFINITY);
    assert!(seconds < 900.0, "twenty trials are soon over: {ran}");
}

#[test]
fn writes_that_are_synced_each_are_durable_one_by_one() {
    needs!(needs_uring());
    let folder = Folder::new();
    let words = "bench disk --rw randwrite --sync each --iodepth 1,4 --size 8M --runs 1 -t 20ms \
                 --format json";
    let document = document(&folder.flatout(words.split_whitespace()).run());
    let rows = document["results"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "the row that is synced once at the end has nothing to add");
    for row in rows {
        let told = ["until", "sync"].map(|name| row["parameters"][name].as_str().unwrap());
        assert_eq!(told, ["durable", "each"], "{row:#}");
        assert!(!warnings(row).contains(&"not_durable"), "{row:#}");
        let line = row["audit"]["fio_command"].as_str().unwrap_or_default();
        assert!(line.contains("--sync=dsync"), "{line}");
    }
}

#[test]
fn what_syncing_each_write_costs_besides_is_nobody_elses_and_no_split() {
    let mounted = needs!(Mounted::on_image(Kind::Ext4, 256 << 20, Backing::Cached));
    let folder = Folder::inside(&mounted.path());
    let words = "bench disk --rw write,randwrite --sync each -b 4K --iodepth 1 --size 16M --runs 2 -t 1s \
                 --format json";
    let document = document(&folder.flatout(words.split_whitespace()).run());
    for row in document["results"].as_array().unwrap() {
        // It has flushes and a journal.
        assert!(audit(row, "disk_requests_per_request_ratio") > 1.5, "{row:#}");
        for code in ["shared_device", "requests_split"] {
            assert!(!warnings(row).contains(&code), "{row:#}");
        }
    }
    drop(folder);
    mounted.finish();
}

#[test]
fn what_the_cache_holds_afterwards_is_that_of_the_file_that_was_written() {
    let folder = Folder::new();
    let document = document(&disk_in(&folder, ".", "--rw write --caching buffered").run());
    for row in rows(&document, "disk/sequential-write") {
        // Others may need the memory; but not each page of each trial.
        assert!(audit(row, "cached_after_bytes") > 0.0, "{row:#}");
    }
}

#[test]
fn every_pattern_has_its_row_with_what_was_asked() {
    let folder = Folder::new();
    let expected = [
        ("disk/sequential-read", "bytes/s"),
        ("disk/sequential-write", "bytes/s"),
        ("disk/sequential-copy", "bytes/s"),
        ("disk/random-read", "operations/s"),
        ("disk/random-write", "operations/s"),
        ("disk/mixed", "operations/s"),
        ("disk/sequential-mixed", "bytes/s"),
    ];
    let patterns = READS.iter().chain(&WRITES).copied().collect::<Vec<_>>().join(",");
    for engine in ["sync", "uring"] {
        if engine == "uring" && needs_uring().is_err() {
            continue;
        }
        let options = format!("--rw {patterns} --block-size 16KiB --engine {engine}");
        let document = document(&disk_in(&folder, ".", &options).run());
        for (id, unit) in expected {
            let rows = rows(&document, id);
            assert!(!rows.is_empty(), "no row {id}: {document:#}");
            for row in rows {
                assert!(row["median"].as_f64().is_some_and(|rate| rate > 0.0), "{row:#}");
                assert_eq!(row["unit"], unit, "{row:#}");
                assert_eq!(row["parameters"]["block_bytes"], 16 << 10, "{row:#}");
                assert_eq!(row["parameters"]["engine"], engine, "{row:#}");
                assert!(audit(row, "bytes") >= 16384.0 && audit(row, "requests") >= 1.0);
            }
        }
    }
    assert!(folder.names().is_empty());
}

#[test]
fn an_honest_file_on_storage_raises_no_trap() {
    // A device of its own: on the one of the temporary files, other tests are at work.
    let mounted = needs!(Mounted::on_image(Kind::Ext4, 64 << 20, Backing::Direct));
    let folder = Folder::inside(&mounted.path());
    random_file(&folder.join("data"), LENGTH_BYTES, 1);
    std::fs::File::open(folder.join("data")).unwrap().sync_all().unwrap();
    let options = "--rw random-read --caching direct --block-size 4KiB";
    let document = document(&disk(&folder, "data", options).run());
    for code in [
        "sparse_file",
        "unwritten_extents",
        "zero_blocks",
        "direct_refused",
        "direct_cached",
        "dirty_pages",
        "memory_filesystem",
        "overlay_filesystem",
        "network_filesystem",
        "userspace_filesystem",
        "io_limit",
        "nearly_full",
        "size_reduced",
        "loop_cached",
        "not_from_device",
    ] {
        nobody_warned(&document, code);
    }
    let row = rows(&document, "disk/random-read")[0];
    assert!(audit(row, "disk_share_ratio") > 0.9, "{row:#}");
    assert_eq!(audit(row, "hole_bytes") + audit(row, "unwritten_bytes"), 0.0, "{row:#}");
    assert!(audit(row, "zero_block_ratio") < 0.01, "{row:#}");
    drop(folder);
    mounted.finish();
}

#[test]
fn writes_say_up_to_where_and_over_what() {
    let folder = Folder::new();
    let options = "--rw sequential-write --block-size 64KiB --caching buffered";
    let document = document(&disk_in(&folder, ".", options).run());
    let has = |key: &str, value: &str| {
        let rows = rows(&document, "disk/sequential-write");
        rows.iter().any(|row| row["parameters"][key] == value)
    };
    for (key, value) in
        [("until", "cache"), ("until", "durable"), ("extents", "fresh"), ("extents", "written")]
    {
        assert!(has(key, value), "no row {key} {value}: {document:#}");
    }
}

#[test]
fn open_loop_rows_say_their_rate() {
    let folder = Folder::new();
    let options = "--rw random-read --rate 200 --block-size 4KiB --time 500ms";
    let document = document(&disk_in(&folder, ".", options).run());
    let row = rows(&document, "disk/random-read")[0];
    assert_eq!(row["parameters"]["rate_operations_per_s"].as_f64(), Some(200.0), "{row:#}");
    assert_eq!(row["latency"]["loop_kind"], "open", "{row:#}");
}

#[test]
fn every_row_can_be_checked_with_fio() {
    needs!(needs_program("fio"));
    let folder = Folder::new();
    let options = "--rw sequential-read,random-write,mixed --rwmixread 70 --block-size 16KiB";
    let document = document(&disk_in(&folder, ".", options).run());
    for row in document["results"].as_array().unwrap() {
        let line = row["audit"]["fio_command"].as_str().unwrap_or_else(|| panic!("{row:#}"));
        let rest = line.strip_prefix("fio ").unwrap_or_else(|| panic!("{line}"));
        let words = ["-c".into(), format!("fio --parse-only {rest}").into()].to_vec();
        let ran = folder.program("sh".as_ref(), words).run();
        assert_eq!(ran.code, Some(0), "{line}: {ran}");
    }
}

/// Whoever checks a row with the line beside it must not find the row wrong. Only in full, where
/// the machine may be expected to do nothing else: both are measured, in turn.
#[test]
fn fio_finds_what_the_row_says() {
    needs!(needs_program("fio"));
    if !fixture::is_full() {
        return;
    }
    let folder = Folder::new();
    let rows_of = |options: &str| {
        let words =
            format!("bench disk . --quick --rw {options} --size 512MiB --runs 6 --format json");
        document(&folder.flatout(words.split(' ')).run())["results"].as_array().unwrap().clone()
    };
    for (options, is_bytes) in [
        ("sequential-read --iodepth 16 --engine uring", true),
        ("random-read --iodepth 64 --engine uring --block-size 4KiB", false),
        ("random-read --iodepth 1 --engine sync --block-size 4KiB", false),
    ] {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _round in 0..3 {
            let row = rows_of(options).remove(0);
            let line = row["audit"]["fio_command"].as_str().unwrap();
            let line = format!("{line} --output-format=json");
            let ran = folder.program("sh".as_ref(), vec!["-c".into(), line.into()]).run();
            let said: Value = serde_json::from_str(&ran.exits(0).stdout).unwrap();
            let read = &said["jobs"][0]["read"];
            let figure = if is_bytes { &read["bw_bytes"] } else { &read["iops"] };
            theirs.push(figure.as_f64().unwrap());
            ours.push(row);
        }
        let end = |at: usize| ours.iter().filter_map(move |row| row["ci95"][at].as_f64());
        let (low, high) = (end(0).fold(f64::MAX, f64::min), end(1).fold(0.0, f64::max));
        theirs.sort_by(f64::total_cmp);
        assert!((low..=high).contains(&theirs[1]), "{options}: {low} to {high}, fio {theirs:?}");
    }
}
