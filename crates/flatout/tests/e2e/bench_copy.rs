//! `flatout bench copy`: rows and pictures, what it refuses, where it runs, and how it ends early.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use crate::bin::{Folder, Ran, assert_warned};
use crate::filesystem::{Kind, Mounted, needs_program, needs_root};
use crate::interruption::catches_interrupt;
use crate::schema::assert_valid;
use crate::skip::needs;

/// A grid of small trees.
const SMALL: &str = "--files 1,20 --file-size 0,3K";

fn bench(folder: &Folder, arguments: &str) -> Ran {
    let words = ["bench", "copy"].into_iter().chain(arguments.split_whitespace());
    folder.flatout(words.chain(["--format", "json"])).run()
}

fn rows(document: &Value, id: &str) -> Vec<Value> {
    let all = document["results"].as_array().unwrap().iter();
    all.filter(|row| row["id"] == id).cloned().collect()
}

#[test]
fn a_small_grid_has_times_limits_and_a_picture() {
    let folder = Folder::new();
    let ran = bench(&folder, &format!("{SMALL} --rounds 2 --durable"));
    let document = ran.exits(0).document();
    assert_valid(&document);
    assert!(ran.stderr.contains("writes about"), "said beforehand: {ran}");
    let found = rows(&document, "copy/by-count");
    assert_eq!(found.len(), 8, "each until cache and until durable");
    for row in &found {
        assert_eq!((row["n"].as_u64(), row["unit"].as_str()), (Some(2), Some("ns")), "{row:#}");
        assert_warned(row, "few_trials");
        let audit = &row["audit"];
        assert_eq!(audit["source_cached_bytes"], audit["source_data_bytes"], "hot: {row:#}");
        assert_eq!(audit["compared_entries"], row["parameters"]["files"]);
        assert!(audit["peak_memory_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{row:#}");
        let is_empty = row["parameters"]["file_bytes"] == 0;
        assert_eq!(audit["rate_bytes_per_s"].is_null(), is_empty, "{row:#}");
        let limiter = row["ceiling"]["limiter"].as_str().unwrap();
        assert!(!limiter.is_empty(), "{row:#}");
    }
    for pair in found.chunks(2) {
        let [cached, durable] = pair else { panic!("{found:#?}") };
        assert_eq!(durable["parameters"]["until"], "durable");
        assert!(durable["median"].as_f64() >= cached["median"].as_f64());
    }
    let charts = document["charts"].as_array().unwrap();
    assert_eq!((charts.len(), &charts[0]["x_parameter"]), (1, &"files".into()));
    assert!(rows(&document, "copy/bare-write")[0]["median"].is_number());
}

#[test]
fn experiments_by_name_keep_their_ids_and_pictures() {
    let folder = Folder::new();
    let ran = bench(&folder, "--corpus 3x1K@2,source-tree --tree-depth 1,4 --rounds 1");
    let document = ran.exits(0).document();
    assert_valid(&document);
    assert_eq!(rows(&document, "copy/by-depth").len(), 2);
    let trees = rows(&document, "copy/tree");
    let names: Vec<_> = trees.iter().map(|row| &row["parameters"]["corpus"]).collect();
    assert_eq!(names, ["3x1K@2", "source-tree"]);
    assert_eq!(trees[1]["ceiling"]["provenance"], "unknown", "it has more than files");
    assert_eq!(document["charts"][0]["x_parameter"], "tree_depth");
}

#[test]
fn cold_copies_begin_with_nothing_in_the_cache() {
    let folder = Folder::new();
    let ran = bench(&folder, "--files 3 --cold --rounds 1 --format json");
    let document = ran.document();
    for row in rows(&document, "copy/by-count") {
        let is_known = row["status"] != "unsupported";
        assert!(!is_known || row["audit"]["source_cached_bytes"] == 0, "{row:#}");
        assert_eq!(row["parameters"]["cache_state"], "cold");
    }
}

#[test]
fn what_makes_no_sense_is_one_line() {
    let folder = Folder::new();
    fs::write(folder.join("file"), "").unwrap();
    for (arguments, code, word) in [
        ("--files 0", 2, "0x1M"),
        ("--tree-depth 1001", 2, "1x1M@1001"),
        ("--corpus nothing", 2, "nothing"),
        ("--files 1 --max-write 1000", 1, "no room"),
        ("file --files 1", 1, "file"),
        ("nowhere --files 1", 1, "nowhere"),
        ("one two", 2, "two"),
    ] {
        let words = ["bench", "copy"].into_iter().chain(arguments.split(' '));
        folder.flatout(words).run().complains(code, &[word]);
    }
    let words = ["bench", "copy", "--rounds", "0"];
    assert!(folder.flatout(words).run().exits(2).stderr.contains("--runs"));
    folder.flatout(["bench", "disk", "--cold"]).run().complains(2, &["--cold", "copy"]);
}

#[test]
fn a_place_where_nothing_can_be_made_is_an_error_that_names_it() {
    let folder = Folder::new();
    let ran = bench(&folder, "/proc --files 1 --max-write 1G");
    let document = ran.exits(1).document();
    let errors = document["end"]["errors"].to_string();
    assert!(errors.contains("/proc"), "{ran}");
}

#[test]
fn what_is_missing_for_a_program_to_start_is_named() {
    needs!(needs_root("hide /dev"));
    needs!(needs_program("unshare"));
    let folder = Folder::new();
    let script = "mount -t tmpfs none /dev && exec \"$@\"";
    let wrapper = ["unshare", "--mount", "sh", "-c", script, "sh"];
    let arguments = ["bench", "copy", "--files", "1", "--file-size", "1K", "--rounds", "1"];
    let ran = folder.under(&wrapper, &[&arguments[..], &["--format", "json"]].concat()).run();
    assert!(ran.stdout.contains("/dev/null"), "{ran}");
}

#[test]
fn in_memory_it_is_said_and_nothing_is_cold() {
    let mounted = needs!(Mounted::new(Kind::Tmpfs(64 << 20)));
    let folder = Folder::inside(&mounted.path());
    let hot = bench(&folder, "--files 2 --file-size 3K --rounds 1");
    for row in rows(&hot.exits(0).document(), "copy/by-count") {
        assert!(row["median"].is_number());
        assert_warned(&row, "memory_filesystem");
    }
    let cold = bench(&folder, "--files 2 --file-size 3K --rounds 1 --cold");
    for row in rows(&cold.exits(1).document(), "copy/by-count") {
        assert_eq!((&row["status"], &row["median"]), (&"unsupported".into(), &Value::Null));
    }
    // A tenth of what is free is less than this.
    let full = bench(&folder, "--files 1 --file-size 1K,16M --rounds 1");
    let found = rows(&full.exits(0).document(), "copy/by-count");
    assert!(found[0]["median"].is_number());
    assert_eq!(found[1]["status"], "unsupported", "{full}");
    drop(folder);
    mounted.finish();
}

#[test]
fn shared_extents_have_no_limit_in_bytes() {
    let mounted = needs!(Mounted::new(Kind::Btrfs));
    let folder = Folder::inside(&mounted.path());
    let ran = bench(&folder, "--files 2 --file-size 64K --rounds 1 --max-write 64M");
    let document = ran.exits(0).document();
    let [row] = &rows(&document, "copy/by-count")[..] else { panic!("{ran}") };
    assert_eq!(row["audit"]["extents"], "shared");
    assert!(row["ceiling"]["value"].is_null(), "{row:#}");
    drop(folder);
    mounted.finish();
}

#[test]
fn an_interrupt_at_any_time_leaves_a_document_and_no_litter() {
    let folder = Folder::new();
    let arguments = "bench copy --files 300 --file-size 16K --rounds 400 --format json";
    // Before anything is made, among the sources (5 MiB), among the copies.
    for (written_bytes, signal) in [
        (0, Signal::INT),
        (1 << 20, Signal::INT),
        (12 << 20, Signal::INT),
        (12 << 20, Signal::TERM),
    ] {
        let mut running = folder.flatout(arguments.split(' ')).start();
        running.wait_until("status", catches_interrupt);
        running.wait_until("io", |text| {
            let count = text.lines().find_map(|line| line.strip_prefix("wchar: "));
            count.is_some_and(|count| count.parse::<u64>().unwrap() >= written_bytes)
        });
        running.signal(signal);
        let ran = running.wait();
        let document = ran.died_of(signal).document();
        assert_valid(&document);
        for row in rows(&document, "copy/by-count") {
            assert_eq!(row["status"], "interrupted", "{row:#}");
        }
        assert!(folder.names().is_empty(), "{:?}", folder.names());
    }
}

#[test]
fn what_a_killed_run_left_is_gone_after_the_next() {
    let folder = Folder::new();
    let arguments = "bench copy --files 300 --file-size 16K --rounds 400 --format json";
    let mut running = folder.flatout(arguments.split(' ')).leaves(".flatout-copy").start();
    running.wait_until("io", |text| {
        let count = text.lines().find_map(|line| line.strip_prefix("wchar: "));
        count.is_some_and(|count| count.parse::<u64>().unwrap() >= 1 << 20)
    });
    running.signal(Signal::KILL);
    assert_eq!(running.wait().signal, Some(9));
    assert!(folder.join(".flatout-copy").exists());
    bench(&folder, "--files 1 --rounds 1").exits(0);
    assert!(folder.names().is_empty(), "{:?}", folder.names());
}
