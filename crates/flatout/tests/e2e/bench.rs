//! `flatout bench`: rows, ceilings, verdict, what it leaves behind, and how it ends early.

use flatout_sys::launcher::{EPERM, IO_URING_SETUP, PRCTL, Resource, deny, limit};
use rustix::process::Signal;
use serde_json::Value;

use crate::bin::{Folder, Ran, closed_pipe, in_enough_time, warnings};
use crate::filesystem::{Kind, Mounted, needs_program, needs_root, needs_storage};
use crate::schema::assert_valid;
use crate::skip::needs;
use crate::throttle::Throttle;

/// As little as possible: no test waits for a narrow interval.
const LITTLE: [&str; 4] = ["--rounds", "1", "--max-write", "24M"];

fn bench(folder: &Folder, arguments: &[&str]) -> Ran {
    folder.flatout(["bench"].iter().chain(&LITTLE).chain(arguments)).run()
}

fn rows(document: &Value, area: &str) -> Vec<Value> {
    let own = |row: &&Value| row["id"].as_str().is_some_and(|id| id.starts_with(area));
    document["results"].as_array().unwrap().iter().filter(own).cloned().collect()
}

#[test]
fn the_bare_command_leaves_a_record_of_all_areas_and_a_page_and_no_test_file() {
    let folder = Folder::new();
    let place = folder.join("place");
    std::fs::create_dir(&place).unwrap();
    let running = folder.flatout(["bench", "--max-time", "12s"].iter().chain(&LITTLE));
    let ran = running
        .with(|command| {
            command.current_dir(&place);
        })
        .run();
    ran.exits(0);
    let names = Folder::names_in(&place);
    let ending = |end: &str| names.iter().filter(|name| name.ends_with(end)).count();
    assert_eq!((names.len(), ending(".json"), ending(".html")), (2, 1, 1), "{names:?}");
    let json = names.iter().find(|name| name.ends_with(".json")).unwrap();
    let text = std::fs::read_to_string(place.join(json)).unwrap();
    holds_all_areas_with_limits_and_six_answers(&serde_json::from_str(&text).unwrap());
    assert!(ran.stderr.contains("writes"), "said beforehand: {ran}");
    assert!(ran.stdout.contains(&format!("flatout report --verbose {json}\n")), "{ran}");
    assert!(ran.stdout.lines().count() <= 30 && !ran.stdout.contains("Verdict"), "{ran}");
    let all = folder.flatout(["report", "--verbose", place.join(json).to_str().unwrap()]).run();
    assert!(all.exits(0).stdout.contains("\nVerdict\n"), "{all}");
}

fn holds_all_areas_with_limits_and_six_answers(document: &Value) {
    assert_valid(document);
    let (cache, syscall) = (rows(document, "cache/"), rows(document, "syscall/"));
    assert!(cache.len() >= 16 && syscall.len() >= 15, "{} and {}", cache.len(), syscall.len());
    for area in ["disk/", "cpu/", "memory/", "network/"] {
        assert!(rows(document, area).len() >= 4, "{area}");
    }
    assert!(document["results"].as_array().unwrap().len() <= 70);
    for row in cache.iter().chain(&syscall) {
        let is_warned = !row["warnings"].as_array().unwrap().is_empty();
        assert!(row["median"].is_number() || is_warned, "{row:#}");
        let limited = row["ceiling"]["limiter"].as_str().is_some_and(|text| !text.is_empty());
        assert!(limited || row["ceiling"].is_null(), "{row:#}");
    }
    let answers = document["end"]["verdict"].as_array().unwrap();
    assert_eq!(answers.len(), 6);
    assert!(answers.iter().all(|answer| !answer["rests_on"].as_array().unwrap().is_empty()));
}

#[test]
fn rows_for_which_there_is_no_time_are_the_last_and_say_so() {
    let folder = Folder::new();
    let ran = in_enough_time(2, |time| {
        let words =
            ["bench", "cache", "--max-time", time, "--max-write", "24M", "--format", "json"];
        folder.flatout(words).run().if_measured()
    });
    let document = ran.exits(0).document();
    assert_valid(&document);
    let is_late = |row: &&Value| warnings(row).contains(&"time_short");
    let late: Vec<_> = document["results"].as_array().unwrap().iter().filter(is_late).collect();
    assert!(!late.is_empty());
    for row in late {
        assert_eq!((&row["status"], &row["median"]), (&"unsupported".into(), &Value::Null));
    }
}

#[test]
fn a_memory_limit_leaves_rows_out_and_ends_nobody() {
    let few: &[&[&str]] = &[&["cache"], &[]];
    for (mebibytes, areas) in [(64, &[&["cache"][..], &["memory"], &["copy"], &[]][..]), (256, few)]
    {
        let group = needs!(Throttle::memory(mebibytes << 20));
        let folder = Folder::new();
        let wrapper = group.wrapper();
        let wrapper: Vec<&str> = wrapper.iter().map(String::as_str).collect();
        for &area in areas {
            let ran = in_enough_time(2, |time| {
                let options = ["--quick", "--max-time", time, "--format", "json"];
                let words = [&["bench"], area, &options].concat();
                folder.under(&wrapper, &words).run().if_measured()
            });
            let document = ran.exits(0).document();
            assert_valid(&document);
            for row in document["results"].as_array().unwrap() {
                let is_said = row["median"].is_number() || !warnings(row).is_empty();
                assert!(is_said, "{mebibytes} MiB {area:?}: {row:#}");
            }
        }
    }
}

#[test]
fn a_named_area_runs_its_full_grid() {
    let folder = Folder::new();
    let document = bench(&folder, &["syscall", "--format", "json"]).exits(0).document();
    let rows = rows(&document, "syscall/");
    let ids: std::collections::BTreeSet<_> = rows.iter().map(|row| row["id"].to_string()).collect();
    assert!(rows.len() > 40 && ids.len() >= 18, "{} rows of {} kinds", rows.len(), ids.len());
    let threads = |n: u64| rows.iter().filter(move |row| row["parameters"]["threads"] == n).count();
    assert!((1..=3).all(|log2| threads(1 << log2) >= 4), "2, 4 and 8 threads");
}

#[test]
fn cold_rows_begin_with_nothing_in_the_cache() {
    let folder = Folder::new();
    let document = bench(&folder, &["cache", "--quick", "--format", "json"]).exits(0).document();
    let rows = rows(&document, "cache/");
    let cold: Vec<_> =
        rows.iter().filter(|row| row["parameters"]["cache_state"] == "cold").collect();
    assert!(cold.len() >= 5);
    // Without io_uring one of them has no figure.
    for row in cold.into_iter().filter(|row| row["status"] != "unsupported") {
        let warned = row["warnings"].to_string().contains("not_cold");
        let held = row["audit"]["cached_before_bytes"].as_f64();
        assert!(warned || held == Some(0.0), "{row:#}");
    }
}

#[test]
fn no_room_and_no_directory_are_one_line() {
    let folder = Folder::new();
    for area in [&[][..], &["syscall"], &["disk"]] {
        let ran = bench(&folder, &[area, &["--directory", "nowhere"]].concat());
        ran.complains(1, &["cannot open the directory \"nowhere\": No such file or directory"]);
    }
    bench(&folder, &["cpu", "--directory", "."]).complains(2, &["--directory is for cache, disk"]);
    let ran = folder.flatout(["bench", "--max-write", "1000"]).run();
    ran.complains(1, &["--max-write"]);
    let ran = bench(&folder, &["syscall", "--block-size", "0"]);
    ran.complains(2, &["--block-size"]);
}

#[test]
fn an_interrupted_bench_still_leaves_one_document() {
    let folder = Folder::new();
    let arguments = "bench cache --max-write 8M --format json".split(' ');
    let mut running = folder.flatout(arguments).start();
    running.wait_until_read(1 << 20);
    running.interrupt();
    let ran = running.wait();
    let document = ran.died_of(Signal::INT).document();
    assert_valid(&document);
    assert_eq!(document["end"]["exit_code"], 130);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let folder = Folder::new();
    let arguments = ["bench", "syscall", "--quick", "--format", "csv"];
    folder.flatout(arguments.iter().chain(&LITTLE)).stdout(closed_pipe()).run().exits(0);
}

#[test]
fn rows_of_an_engine_that_is_denied_hold_no_figure() {
    let folder = Folder::new();
    let arguments = ["bench", "cache", "--quick", "--format", "json"];
    let running = folder.flatout(arguments.iter().chain(&LITTLE));
    let ran = running
        .with(|command| {
            deny(command, &[(IO_URING_SETUP, EPERM)]);
        })
        .run();
    let document = ran.exits(0).document();
    let uring = |row: &&Value| row["parameters"]["engine"] == "uring";
    let rows = rows(&document, "cache/");
    assert!(rows.iter().filter(uring).count() > 3);
    for row in rows.iter().filter(uring) {
        assert_eq!(row["status"], "unsupported", "{row:#}");
        assert!(row["median"].is_null() && row["warnings"].to_string().contains("EPERM"));
    }
}

/// Files without a name are opened once more through /proc, elsewhere. Before Linux 6.4 prctl(2) does not tell the
/// size of a page in its place.
#[test]
fn a_hidden_proc_ends_no_measurement() {
    needs!(needs_root("takes /proc away"));
    needs!(needs_program("unshare"));
    let folder = Folder::new();
    let script = "mount -t tmpfs none /proc && exec \"$@\"";
    let words = ["bench", "disk", "cache", "--quick", "--format", "json"];
    let words: Vec<&str> = words.into_iter().chain(LITTLE).collect();
    let running = folder.under(&["unshare", "--mount", "sh", "-c", script, "sh"], &words);
    let ran = running.with(|command| _ = deny(command, &[(PRCTL, EPERM)])).run();
    let document = ran.exits(0).document();
    assert_valid(&document);
    for id in ["disk/random-read", "disk/sequential-write", "cache/"] {
        let rows = rows(&document, id);
        assert!(rows.iter().any(|row| row["median"].is_number()), "{id}: {document:#}");
    }
    assert!(Folder::names_in(folder.path()).is_empty());
}

#[test]
fn rows_that_a_memory_limit_keeps_from_being_hot_say_so() {
    needs!(needs_storage(&std::env::temp_dir()));
    let group = needs!(Throttle::memory(352 << 20));
    let folder = Folder::new();
    let wrapper = group.wrapper();
    let wrapper: Vec<&str> = wrapper.iter().map(String::as_str).collect();
    let ran = in_enough_time(6, |time| {
        let words = format!("bench cache --quick --max-time {time} --max-write 320M --format json");
        let arguments: Vec<&str> = words.split(' ').collect();
        folder.under(&wrapper, &arguments).run().if_measured()
    });
    let document = ran.exits(0).document();
    assert_valid(&document);
    let rows = rows(&document, "cache/");
    let hot: Vec<&Value> =
        rows.iter().filter(|row| row["parameters"]["cache_state"] == "hot").collect();
    assert!(hot.len() > 3, "{document:#}");
    for row in hot.into_iter().filter(|row| !row["median"].is_null()) {
        let audit = |key: &str| row["audit"][key].as_f64().unwrap_or_else(|| panic!("{row:#}"));
        let is_hot = audit("device_read_bytes") <= 0.01 * audit("bytes");
        let expected = if is_hot { "yes" } else { "no" };
        assert_eq!(row["audit"]["evidence"]["happened"], expected, "{row:#}");
        assert!(is_hot || warnings(row).contains(&"not_hot"), "{row:#}");
    }
}

#[test]
fn nothing_is_cold_in_memory() {
    let mounted = needs!(Mounted::new(Kind::Tmpfs(64 << 20)));
    let folder = Folder::inside(&mounted.path());
    let document = bench(&folder, &["cache", "--quick", "--format", "json"]).exits(0).document();
    for row in rows(&document, "cache/") {
        if row["parameters"]["cache_state"] == "cold" {
            assert_eq!(row["status"], "unsupported", "{row:#}");
        }
    }
    drop(folder);
    mounted.finish();
}

#[test]
fn a_place_that_cannot_be_written_is_refused_before_measuring() {
    let folder = Folder::new();
    let ran = folder.flatout(["bench", "cache", "--output", "no/such/folder.json"]).run();
    ran.complains(1, &["no/such/folder.json"]);
}

#[test]
fn test_files_are_no_longer_than_the_limit_on_files_allows() {
    let folder = Folder::new();
    for area in ["cache", "disk"] {
        let words = ["bench", area, "--quick", "--runs", "1", "--max-write", "48M"];
        let ran = folder.flatout(words.into_iter().chain(["--format", "json"])).with(|command| {
            limit(command, Resource::FileSize, 4 << 20);
        });
        let document = ran.run().exits(0).document();
        let is_said = |row: &Value| {
            warnings(row).contains(&"size_reduced")
                && row["warnings"].to_string().contains("ulimit -f")
        };
        assert!(document["results"].as_array().unwrap().iter().any(is_said), "{document:#}");
    }
}

/// clap's definition of all options is deep: on a small stack it gets a thread of its own.
#[test]
fn a_small_limit_of_the_stack_ends_nothing() {
    let folder = Folder::new();
    for (words, has_rows) in [("bench syscall --quick --runs 1", true), ("help bench", false)] {
        let ran = folder.flatout(words.split(' ').chain(has_rows.then_some("--format=json")));
        let ran = ran.with(|command| {
            limit(command, Resource::Stack, 100 << 10);
        });
        let ran = ran.run();
        ran.exits(0);
        assert!(!has_rows || !rows(&ran.document(), "syscall/").is_empty());
    }
}
