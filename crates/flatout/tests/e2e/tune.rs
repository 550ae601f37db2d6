//! `flatout tune`, and what other commands make of the profile that it leaves.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::bin::{Flatout, Folder, Ran};
use crate::filesystem::{Kind, Mounted, needs_storage};
use crate::interruption::catches_interrupt;
use crate::schema::assert_valid;
use crate::skip::needs;
use crate::throttle::Throttle;

mod entry;

/// The shortest run that measures everything.
const SHORT: &str = "tune place --quick --max-write 2G --max-time 600s --rounds 3";
const PROFILE: &str = "profile.json";

trait WithProfile {
    /// Names a profile of the test's own.
    fn with_profile(self, path: &Path) -> Self;
}

impl WithProfile for Flatout<'_> {
    fn with_profile(self, path: &Path) -> Self {
        self.with(|command| _ = command.env("FLATOUT_PROFILE", path))
    }
}

/// A folder with a place in it, and the profile of a run that was made once for all tests.
fn tuned() -> (Folder, &'static Ran) {
    static TUNED: LazyLock<(Vec<u8>, Ran)> = LazyLock::new(|| {
        let folder = place();
        let ran = tune(&folder, &["--format", "json"]);
        assert_eq!(Folder::names_in(&folder.join("place")).len(), 0);
        (fs::read(folder.join(PROFILE)).unwrap_or_default(), ran)
    });
    let folder = place();
    fs::write(folder.join(PROFILE), &TUNED.0).unwrap();
    (folder, &TUNED.1)
}

/// Runs it; again, where a file has not left the page cache beside others, so that its settings were not
/// measured.
fn tune(folder: &Folder, more: &[&str]) -> Ran {
    let run = || {
        let run = folder.flatout(SHORT.split(' ').chain(more.iter().copied()));
        run.with_profile(&folder.join(PROFILE)).leaves(PROFILE).run()
    };
    let is_complete = |ran: &Ran| !ran.to_string().contains("not_cold");
    (0..3).map(|_| run()).find(is_complete).unwrap_or_else(run)
}

/// A folder with an empty place in it.
fn place() -> Folder {
    let folder = Folder::new();
    fs::create_dir(folder.join("place")).unwrap();
    folder
}

fn profile(folder: &Folder) -> Value {
    serde_json::from_slice(&fs::read(folder.join(PROFILE)).unwrap()).unwrap()
}

/// The entries of a kind of work.
fn entries<'a>(profile: &'a mut Value, work: &str, size: &str) -> Vec<&'a mut Value> {
    let all = profile["entries"].as_array_mut().unwrap().iter_mut();
    all.filter(|entry| entry["key"]["work"] == work && entry["key"]["size"] == size).collect()
}

fn save(folder: &Folder, profile: &Value) {
    fs::write(folder.join(PROFILE), profile.to_string()).unwrap();
}

#[test]
fn a_run_leaves_settings_with_limits_and_nothing_else() {
    let (folder, ran) = tuned();
    let document = ran.exits(0).document();
    assert_valid(&document);
    assert!(ran.stderr.contains(" saved in"), "{ran}");
    let mut profile = profile(&folder);
    assert_eq!(profile["schema"], "flatout-profile/1");
    for (work, size) in [("read", "large"), ("copy", "large"), ("copy", "tiny")] {
        let found = entries(&mut profile, work, size);
        assert!(!found.is_empty(), "{work} {size}");
        for entry in found {
            let limit = entry["limit_bytes_per_s"].as_f64().unwrap();
            let chosen = document["results"].as_array().unwrap().iter().filter(|row| {
                row["audit"]["chosen"] == true
                    && row["id"] == format!("tune/{work}")
                    && row["parameters"]["file_bytes"] == entry["file_bytes"]
            });
            assert!(chosen.count() > 0, "{entry}");
            assert!(limit > 0.0, "{entry}");
        }
    }
    // Measured again, they are replaced, and others stay.
    let mut foreign = profile["entries"][0].clone();
    foreign["key"]["machine"] = json!("another");
    profile["entries"].as_array_mut().unwrap().push(foreign);
    save(&folder, &profile);
    tune(&folder, &[]).exits(0);
    let again = self::profile(&folder);
    assert_eq!(
        again["entries"].as_array().unwrap().len(),
        profile["entries"].as_array().unwrap().len()
    );
}

#[test]
fn settings_of_a_single_trial_are_shown_and_not_saved() {
    let folder = place();
    let words = SHORT.replace("--rounds 3", "--rounds 1");
    let ran = folder.flatout(words.split(' ')).with_profile(&folder.join(PROFILE)).run();
    assert!(ran.exits(1).stderr.contains("fewer than three trials each"), "{ran}");
    assert!(!folder.join(PROFILE).exists(), "{ran}");
}

#[test]
fn what_was_measured_is_used_for_reading_and_summing() {
    let (folder, ran) = tuned();
    ran.exits(0);
    fs::write(folder.join("place/large"), vec![7; 5 << 20]).unwrap();
    let mut profile = profile(&folder);
    for entry in entries(&mut profile, "read", "large") {
        entry["tuning"] = json!({ "engine": "sync", "caching": "buffered", "block_bytes": 12_288,
            "depth": 1, "threads": 3, "split": "contiguous" });
    }
    save(&folder, &profile);
    let read = |words: &str, path: &Path| {
        let arguments = format!("read place/large --format json {words}");
        let ran = folder.flatout(arguments.split_whitespace()).with_profile(path).run();
        let document = ran.exits(0).document();
        document["results"][0].clone()
    };
    let row = read("", &folder.join(PROFILE));
    assert_eq!(
        (&row["parameters"]["block_bytes"], &row["parameters"]["threads"]),
        (&json!(12_288), &json!(3))
    );
    let reason = row["audit"]["engine_reason"].as_str().unwrap();
    assert!(reason.starts_with("the best here by flatout tune of 20"), "{reason}");
    let digest = row["audit"]["digest_xor32"].clone();
    for (words, path) in [("--engine sync", PROFILE), ("--block-size 1M", PROFILE), ("", "none")] {
        let row = read(words, &folder.join(path));
        assert_ne!(row["parameters"]["block_bytes"], 12_288, "{words:?} {path}");
        assert_eq!(row["audit"]["digest_xor32"], digest);
    }
    let sum = |path: &Path| {
        let ran = folder.flatout(["sum", "place/large"]).with_profile(path).run();
        ran.exits(0).stdout.clone()
    };
    assert_eq!(sum(&folder.join(PROFILE)), sum(Path::new("")));
}

#[test]
fn a_write_as_tune_makes_them_is_held_against_the_best_of_these() {
    let (folder, ran) = tuned();
    needs!(needs_storage(folder.path()));
    ran.exits(0);
    let mut profile = profile(&folder);
    for entry in entries(&mut profile, "write", "large") {
        entry["evidence"]["ci95"] = json!([1e14, 1e15]);
    }
    save(&folder, &profile);
    let ceiling = |name: &str, words: &str, path: &Path| {
        // So slow that making the data is not what limits it.
        let arguments = format!("write place/{name} -b 64K --sync each --format json {words}");
        let ran = folder.flatout(arguments.split_whitespace()).with_profile(path).run();
        let result = ran.exits(0).result();
        assert_eq!(result["ceiling"]["limiter"], "device", "{ran}");
        result["ceiling"].clone()
    };
    let bound = ceiling("a", "--size 5M", &folder.join(PROFILE));
    assert_eq!((&bound["value"], &bound["provenance"]), (&json!(1e15), &json!("earlier")));
    assert!(bound["name"].as_str().unwrap().starts_with("the best write here, by flatout tune of"));
    assert!(bound["ratio"].as_f64().unwrap() < 0.01, "{bound}");
    let bound = ceiling("b", "--size 5M", Path::new(""));
    assert_eq!(bound["name"], "the best write here, which flatout tune measures", "{bound}");
    // It measures no other writes.
    for (name, words) in
        [("a", "--size 5M --overwrite"), ("c", "--size 5M --data zero"), ("d", "--size 1M")]
    {
        let bound = ceiling(name, words, &folder.join(PROFILE));
        assert_eq!((&bound["name"], &bound["value"]), (&json!("device"), &Value::Null), "{words}");
    }
}

#[test]
fn what_was_measured_is_used_for_copying_and_the_share_of_the_limit_is_said() {
    let (folder, ran) = tuned();
    ran.exits(0);
    let source = folder.join("place/source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("large"), vec![7; 9 << 20]).unwrap();
    for number in 0..8000 {
        fs::write(source.join(number.to_string()), [7; 100]).unwrap();
    }
    let mut profile = profile(&folder);
    for entry in entries(&mut profile, "copy", "large") {
        entry["tuning"] = json!({ "engine": "mmap", "caching": "buffered", "block_bytes": 65_536,
            "depth": 1, "threads": 1, "split": "contiguous" });
        entry["limit_bytes_per_s"] = json!(1e15);
    }
    for entry in entries(&mut profile, "copy", "tiny") {
        // Nobody makes files that fast: the copy takes at least a thousand times as long.
        entry["limit_bytes_per_s"] = json!(4096.0 * 1e9);
        // Nor so many of them in less than the tenth of a second that a limit is said from.
        entry["tuning"]["threads"] = json!(1);
    }
    for entry in entries(&mut profile, "write", "large") {
        entry["limit_bytes_per_s"] = json!(1e15);
    }
    save(&folder, &profile);
    let copy = |target: &str, path: &Path| {
        let arguments =
            ["copy", "--verbose", "--format", "json", "--reflink=never", "place/source", target];
        let ran = folder.flatout(arguments).with_profile(path).run();
        let document = ran.exits(0).document();
        assert_valid(&document);
        (document["results"][0]["audit"].clone(), ran)
    };
    let (audit, _) = copy("place/a", &folder.join(PROFILE));
    // ext4 moves short files in the kernel.
    let by_method = |audit: &Value| {
        let by = |method| audit["files_by_method"][method].as_u64().unwrap_or_default();
        (by("mmap"), by("sync") + by("copy-file-range") + by("splice"))
    };
    assert_eq!(by_method(&audit), (1, 8000), "{audit}");
    assert!(audit["elapsed_ns"].as_u64().unwrap() > 100_000_000, "{audit}");
    let ratio = audit["limit"]["ratio"].as_f64().unwrap();
    assert!(ratio > 0.0 && ratio < 0.01, "{audit}");
    assert_eq!(audit["limit"]["limit_low"], false);
    let (audit, _) = copy("place/b", Path::new(""));
    assert_eq!((&audit["limit"], by_method(&audit)), (&Value::Null, (0, 8001)), "{audit}");
    // Of this kernel nothing is known, of this machine, and of so many CPUs.
    let others =
        [("kernel", json!("another")), ("machine", json!("another")), ("cpus", json!(999))];
    for ((part, other), target) in others.into_iter().zip(["place/c", "place/d", "place/e"]) {
        let known = profile.clone();
        for entry in profile["entries"].as_array_mut().unwrap() {
            entry["key"][part] = other.clone();
        }
        save(&folder, &profile);
        assert_eq!(copy(target, &folder.join(PROFILE)).0["limit"], Value::Null);
        profile = known;
    }
    let all = profile["entries"].as_array_mut().unwrap();
    all.retain(|entry| entry["key"]["work"] != "copy" || entry["key"]["size"] != "tiny");
    save(&folder, &profile);
    let (audit, _) = copy("place/f", &folder.join(PROFILE));
    assert_eq!(audit["limit"]["left_out"], json!(["copying small files"]), "{audit}");
    assert_eq!((&audit["limit"]["ratio"], by_method(&audit).0), (&Value::Null, 1), "{audit}");
    let said = folder
        .flatout(["copy", "--verbose", "--always", "place/source", "place/a"])
        .with_profile(Path::new(""))
        .run();
    assert!(!said.exits(0).stderr.contains("limit"), "{said}");
}

#[test]
fn a_profile_that_is_none_is_complained_about_and_left_alone() {
    let folder = place();
    for name in ["file", "file2"] {
        fs::write(folder.join(name), "x").unwrap();
    }
    for text in ["", "{", r#"{"schema":"flatout-profile/9","entries":[]}"#, "\u{1b}[31m"] {
        fs::write(folder.join(PROFILE), text).unwrap();
        let with = |words: &str| {
            folder.flatout(words.split(' ')).with_profile(&folder.join(PROFILE)).run()
        };
        for words in ["read file", "sum file", "copy --always file file2 place"] {
            let ran = with(words);
            let lines: Vec<&str> = ran.exits(0).stderr.lines().collect();
            assert!(
                matches!(lines[..], [line] if line.contains("going on with the defaults")),
                "{ran}"
            );
            assert!(!ran.stderr.contains('\u{1b}'), "{ran}");
        }
        let refused = with(SHORT);
        assert!(refused.exits(1).stderr.contains("it is left as it is"), "{refused}");
        assert_eq!(fs::read_to_string(folder.join(PROFILE)).unwrap(), text);
    }
}

/// As with `HOME=/dev/null`, which services have.
#[test]
fn below_what_is_no_directory_there_is_no_profile() {
    let folder = place();
    for name in ["file", "file2"] {
        fs::write(folder.join(name), "x").unwrap();
    }
    for words in ["read file", "sum file", "copy --always file file2 place", "cp file file2"] {
        let run = folder.flatout(words.split(' '));
        let ran = run.with_profile(&folder.join("file/profile.json")).run();
        assert_eq!(ran.exits(0).stderr, "", "{words}: {ran}");
    }
}

#[test]
fn a_pipe_that_is_named_as_the_profile_is_not_waited_for() {
    let folder = place();
    fs::write(folder.join("file"), "x").unwrap();
    mknodat(CWD, folder.join(PROFILE), FileType::Fifo, Mode::RUSR, 0).unwrap();
    let ran = folder.flatout(["sum", "file"]).with_profile(&folder.join(PROFILE)).run();
    assert!(ran.exits(0).stderr.contains("no regular file; going on with the defaults"), "{ran}");
}

#[test]
fn what_cannot_be_tuned_is_refused_in_one_line() {
    let folder = place();
    fs::write(folder.join("file"), "x").unwrap();
    for (words, code, cause) in [
        ("tune nowhere", 1, "No such file or directory"),
        ("tune file", 1, "Not a directory"),
        ("tune place --max-write 1M", 1, "--max-write"),
        ("tune place place place place place", 2, "at most 4"),
        ("tune place --max-time 0s", 2, "--max-time"),
        ("tune place --threads 2", 2, "--threads"),
    ] {
        let ran = folder.flatout(words.split(' ')).with_profile(&folder.join(PROFILE)).run();
        let lines: Vec<&str> = ran.exits(code).stderr.lines().collect();
        assert!(matches!(lines[..], [line] if line.contains(cause)), "{words}: {ran}");
    }
    let nowhere = folder.flatout(SHORT.split(' ')).run();
    assert!(nowhere.exits(1).stderr.contains("FLATOUT_PROFILE is empty"), "{nowhere}");
    let blocked =
        folder.flatout(SHORT.split(' ')).with_profile(&folder.join("file/x/p.json")).run();
    assert!(blocked.exits(1).stderr.contains("cannot"), "{blocked}");
    assert_eq!(Folder::names_in(&folder.join("place")).len(), 0);
}

#[test]
fn a_filesystem_that_is_too_small_is_not_helped_by_more_writes() {
    let mounted = needs!(Mounted::new(Kind::Tmpfs(8 << 20)));
    let folder = Folder::new();
    let place = mounted.path();
    let words = ["tune", "--quick", "--no-save", place.to_str().unwrap()];
    let ran = folder.flatout(words).run();
    assert!(ran.exits(1).stderr.contains("one tenth of what is free"), "{ran}");
    assert!(!ran.stderr.contains("--max-write"), "{ran}");
    mounted.finish();
}

#[test]
fn an_interrupted_run_saves_nothing_and_leaves_nothing() {
    let folder = place();
    let words = "tune place --quick --max-write 2G --max-time 600s --format json";
    let mut running = folder.flatout(words.split(' ')).with_profile(&folder.join(PROFILE)).start();
    running.wait_until("status", catches_interrupt);
    // What is tried first reads 75 MiB.
    running.wait_until_read(160 << 20);
    running.interrupt();
    let ran = running.wait();
    assert_valid(&ran.died_of(Signal::INT).document());
    assert!(ran.stderr.contains("interrupted: nothing is saved"), "{ran}");
    assert_eq!(Folder::names_in(&folder.join("place")).len(), 0);
}

#[test]
fn a_place_in_memory_is_never_cold_nor_durable() {
    let folder = Folder::new();
    let place = needs!(Folder::in_memory());
    let arguments = ["tune", "--quick", "--no-save", "--max-write", "2G", "--rounds", "1"];
    let ran = folder
        .flatout(arguments.iter().map(Path::new).chain([place.path()]))
        .with(|command| _ = command.args(["--format", "json"]))
        .run();
    let document = ran.exits(0).document();
    let rows = document["results"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["parameters"]["cache_state"] == "hot"), "{ran}");
    assert!(rows.iter().any(|row| row["median"].is_number()), "{ran}");
    assert!(
        rows.iter().all(|row| row["audit"]["chosen"] != true),
        "one trial tells nothing: {ran}"
    );
}

#[test]
fn settings_for_whose_buffers_memory_is_short_are_left_out() {
    let group = needs!(Throttle::memory(64 << 20));
    let folder = place();
    let wrapper = group.wrapper();
    let wrapper: Vec<&str> = wrapper.iter().map(String::as_str).collect();
    let words = ["tune", "place", "--quick", "--no-save", "--runs", "1", "--format", "json"];
    let ran = folder.under(&wrapper, &words).run();
    let document = ran.exits(0).document();
    let rows = document["results"].as_array().unwrap();
    let is_short =
        |row: &&Value| row["warnings"].to_string().contains("half of the available memory");
    assert!(rows.iter().any(|row| is_short(&row)), "{ran}");
    assert!(rows.iter().filter(is_short).all(|row| row["status"] == "unsupported"), "{ran}");
}
