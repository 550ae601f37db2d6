//! `flatout compare`: verdicts as exit codes, forms, noise, and files that are no results.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::bin::{Flatout, Folder, Ran, input};

/// A run with rows of twelve samples within a percent of these levels.
fn run(levels: &[(&str, f64)]) -> Value {
    let rows: Vec<Value> = levels
        .iter()
        .map(|(id, level)| {
            let samples: Vec<f64> =
                (0..12).map(|k| level * (1.0 + f64::from(k * 5 % 12) / 1000.0)).collect();
            json!({"id": id, "parameters": {"threads": 1}, "unit": "bytes/s", "better": "higher",
                "median": level, "ci95": [level, level * 1.011], "n": 12, "samples": samples,
                "status": "ok", "audit": {}, "ceiling": null, "warnings": []})
        })
        .collect();
    json!({"schema": "flatout/1",
        "start": {"tool": "flatout 0.1.0", "argv": ["flatout", "bench"], "seed": 1,
            "time": "2026-01-02T03:04:05+00:00",
            "environment": {"cpu_model": "Example", "cpus_online": 2, "memory_bytes": 8_000_000}},
        "results": rows,
        "end": {"elapsed_s": 1.0, "exit_code": 0, "errors": []}})
}

fn put(folder: &Folder, name: &str, run: &Value) {
    fs::write(folder.join(name), run.to_string()).unwrap();
}

fn compare<'a>(folder: &'a Folder, words: &[&str]) -> Flatout<'a> {
    let run = folder.flatout(["compare"].iter().chain(words));
    run.with(|command| _ = command.env("FLATOUT_NOISE", ""))
}

/// The document of a run in JSON, which agrees with its schema and with the exit code.
#[track_caller]
fn document(ran: &Ran) -> Value {
    let document: Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|e| panic!("{e}: {ran}"));
    crate::schema::assert_follows("flatout-comparison-1", &document);
    assert_eq!(document["exit_code"].as_i64(), ran.code.map(i64::from), "{ran}");
    document
}

#[test]
fn the_exit_code_is_the_verdict() {
    let folder = Folder::new();
    put(&folder, "old", &run(&[("a/x", 1e9), ("a/y", 2e9)]));
    put(&folder, "better", &run(&[("a/x", 1.5e9), ("a/y", 2e9)]));
    put(&folder, "worse", &run(&[("a/x", 0.5e9), ("a/y", 3e9)]));
    put(&folder, "other", &run(&[("b/x", 1e9)]));
    put(&folder, "nothing", &run(&[]));
    let mut few = run(&[("a/x", 1e9), ("a/y", 2e9)]);
    few["results"][0]["samples"] = json!([1e9, 1.1e9]);
    few["results"][0]["n"] = json!(2);
    few["results"][0]["ci95"] = json!(null);
    put(&folder, "few", &few);
    for (new, code, word) in [
        (&["old"][..], 0, "same: 2 the same"),
        (&["better"], 0, "better: 1 better, 1 the same"),
        (&["worse"], 1, "worse: 1 worse, 1 better"),
        (&["few"], 4, "too few samples, 12 and 2"),
        (&["other"], 3, "nothing matches"),
        (&["nothing"], 3, "only in OLD (2)"),
        (&["better", "worse"], 1, "NEW: worse"),
        (&["better", "few"], 4, "unclear: 1 unclear, 1 the same"),
        (&["better", "other"], 3, "nothing matches"),
    ] {
        let ran = compare(&folder, &[&["old"], new].concat()).run();
        assert_eq!(ran.stderr, "");
        assert!(ran.exits(code).stdout.contains(word), "{word}: {ran}");
        let ran = compare(&folder, &[&["--format=json", "old"], new].concat()).run();
        let said = document(ran.exits(code));
        assert_eq!(said["comparisons"].as_array().unwrap().len(), new.len());
    }
}

#[test]
fn the_same_files_give_the_same_answer_each_time() {
    let folder = Folder::new();
    put(&folder, "old", &run(&[("a/x", 1e9), ("a/y", 2e9)]));
    put(&folder, "new", &run(&[("a/x", 1.02e9), ("a/y", 2.2e9)]));
    let once = || compare(&folder, &["old", "new", "--format", "json"]).run().stdout;
    assert_eq!(once(), once());
}

#[test]
fn pages_and_standard_input_are_read_and_results_go_into_files() {
    let folder = Folder::new();
    let made = |arguments: &[&str], name: &str| {
        folder.flatout(arguments).leaves(name).run().exits(0);
    };
    fs::write(folder.join("data"), vec![7; 1 << 20]).unwrap();
    let read = ["read", "data", "--min-time", "10ms"];
    made(&[&read[..], &["--format", "json", "--output", "old.json"]].concat(), "old.json");
    made(&[&read[..], &["--format", "html", "--output", "new.html"]].concat(), "new.html");
    let ran = compare(&folder, &["old.json", "new.html"]).run();
    assert!(ran.stdout.contains("read/"), "{ran}");
    assert!(matches!(ran.code, Some(0 | 1 | 4)), "{ran}");
    let from_pipe =
        compare(&folder, &["old.json", "-"]).stdin(input(&folder.join("new.html"))).run();
    assert_eq!(from_pipe.code, ran.code);
    assert!(from_pipe.stdout.contains("NEW: standard input"), "{from_pipe}");
    let words = ["old.json", "old.json", "--format", "html", "--output", "page.html"];
    let ran = compare(&folder, &words).leaves("page.html").run();
    assert_eq!(ran.stdout, "");
    let page = fs::read_to_string(folder.join("page.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    assert!(!page.contains(folder.path().to_str().unwrap()), "a page tells no path");
    let words = ["old.json", "new.html", "--output", "old.json"];
    compare(&folder, &words).run().complains(2, &["old.json", "worked on"]);
}

#[test]
fn more_runs_settle_what_one_leaves_open() {
    let folder = Folder::new();
    let few = |from: usize| {
        let mut few = run(&[("a/x", 1e9)]);
        let samples = few["results"][0]["samples"].as_array().unwrap()[from..from + 3].to_vec();
        few["results"][0]["samples"] = json!(samples);
        few["results"][0]["median"] = few["results"][0]["samples"][0].clone();
        few["results"][0]["n"] = json!(3);
        few["results"][0]["ci95"] = json!(null);
        few
    };
    for (name, from) in [("old", 0), ("old2", 3), ("new", 6), ("new2", 9)] {
        put(&folder, name, &few(from));
    }
    let ran = compare(&folder, &["old", "new"]).run();
    assert!(ran.exits(4).stdout.contains("needs about 1 more run of each"), "{ran}");
    let words = ["old", "new", "--more-old", "old2", "--more-new", "new2"];
    let ran = compare(&folder, &words).run();
    assert!(ran.exits(0).stdout.contains("old and 1 more run "), "{ran}");
}

#[test]
fn noise_is_learned_from_files_and_used_on_its_machine_only() {
    let folder = Folder::new();
    for (name, level) in [("a", 1e9), ("b", 1.3e9), ("c", 0.9e9), ("new", 1.25e9)] {
        put(&folder, name, &run(&[("a/x", level), ("a/y", 2e9)]));
    }
    let mut foreign = run(&[("a/x", 1.25e9), ("a/y", 2e9)]);
    foreign["start"]["environment"]["cpu_model"] = json!("Another");
    put(&folder, "foreign", &foreign);
    let noise = folder.join("made/noise.json");
    let with_noise = |words: &[&str]| {
        let run = compare(&folder, words).leaves("made");
        run.with(|command| _ = command.env("FLATOUT_NOISE", &noise)).run()
    };
    assert!(with_noise(&["a", "new"]).exits(0).stdout.contains("better: 1 better"));
    let ran = with_noise(&["--noise", "a", "b", "c"]);
    assert!(ran.exits(0).stdout.contains("Noise from 3 runs"), "{ran}");
    assert!(ran.stderr.contains("2 rows"), "{ran}");
    let known = fs::read_to_string(&noise).unwrap();
    let ran = with_noise(&["a", "new"]);
    assert!(ran.exits(0).stdout.contains("same: 2 the same"), "{ran}");
    assert!(ran.stdout.contains("known from 3 runs"), "{ran}");
    let ran = with_noise(&["a", "new", "--threshold", "5%"]);
    assert!(ran.exits(0).stdout.contains("better: 1 better"), "{ran}");
    let ran = with_noise(&["a", "foreign"]);
    assert!(ran.exits(0).stdout.contains("Two machines"), "{ran}");
    assert!(ran.stdout.contains("is not known"), "{ran}");
    // Learned again, it takes the place of what was there.
    with_noise(&["--noise", "a", "b", "c", "--format", "json"]).exits(0);
    assert_eq!(fs::read_to_string(&noise).unwrap(), known);
    with_noise(&["--noise", "a", "foreign"]).complains(2, &["one machine"]);
    fs::write(&noise, "{\"schema\": \"flatout-noise/9\"}").unwrap();
    with_noise(&["--noise", "a", "b"]).complains(2, &["noise.json", "left as it is"]);
    let ran = with_noise(&["a", "a"]);
    assert!(ran.exits(0).stderr.contains("going on without"), "{ran}");
}

#[test]
fn noise_is_learned_from_runs_made_now() {
    let folder = Folder::new();
    let words = ["compare", "--noise", "--runs", "2", "--area", "syscall", "--quick"];
    let ran = folder
        .flatout(words)
        .with(|command| _ = command.env("FLATOUT_NOISE", folder.join("noise.json")))
        .leaves("noise.json")
        .run();
    assert!(ran.exits(0).stdout.contains("syscall/"), "{ran}");
    let known: Value =
        serde_json::from_str(&fs::read_to_string(folder.join("noise.json")).unwrap()).unwrap();
    assert_eq!(known["machines"][0]["runs"], 2);
}

#[test]
fn wrong_use_is_refused() {
    let folder = Folder::new();
    put(&folder, "old", &run(&[("a/x", 1e9)]));
    for (words, why) in [
        (&["old"][..], "OLD and NEW"),
        (&[], "OLD and NEW"),
        (&["-", "-"], "read once"),
        (&["old", "old", "--threshold", "0"], "percent"),
        (&["old", "old", "old", "--more-new", "old"], "one NEW"),
        (&["old", "old", "--runs", "3"], "--noise"),
        (&["--noise", "old"], "two FILEs"),
        (&["--noise", "old", "old", "--runs", "3"], "nothing is run"),
        (&["--noise", "--threshold", "3"], "cannot be used with"),
        (&["--noise", "--area", "roof"], "roof"),
        (&["old", "old", "--format", "csv"], "csv"),
    ] {
        compare(&folder, words).run().complains(2, &[why]);
    }
    compare(&folder, &["--noise", "old", "old"]).run().complains(2, &["FLATOUT_NOISE"]);
}

#[test]
fn what_is_no_result_is_refused_in_one_line() {
    let folder = Folder::new();
    let good = run(&[("a/x", 1e9)]);
    put(&folder, "good", &good);
    let text = good.to_string();
    fs::write(folder.join("cut"), &text[..text.len() / 2]).unwrap();
    fs::write(folder.join("text"), "not JSON\n").unwrap();
    fs::write(folder.join("foreign"), "{\"hello\": 1}").unwrap();
    fs::write(folder.join("empty"), "").unwrap();
    fs::write(folder.join("newer"), text.replace("flatout/1", "flatout/2")).unwrap();
    fs::write(folder.join("nan"), text.replace("\"median\":1000000000.0", "\"median\":NaN"))
        .unwrap();
    fs::write(folder.join("deep"), "[".repeat(100_000)).unwrap();
    fs::create_dir(folder.join("directory")).unwrap();
    for (name, why) in [
        ("missing", "No such file"),
        ("cut", "cut off"),
        ("text", "no flatout record"),
        ("foreign", "no flatout record"),
        ("empty", "empty"),
        ("newer", "newer flatout"),
        ("nan", "no flatout record"),
        ("deep", ""),
        ("directory", "directory"),
    ] {
        for words in [["good", name], [name, "good"]] {
            compare(&folder, &words).run().complains(2, &[name, why]);
        }
        let ran = compare(&folder, &["good", name, "--format", "json"]).run();
        let said = document(ran.complains(2, &[why]));
        assert!(said["errors"][0].as_str().unwrap().contains(name), "{said}");
    }
    // A line that cannot be understood must not depend on what the input is called.
    let ran = compare(&folder, &["good", "-"]).stdin(Stdio::null()).run();
    ran.complains(2, &["standard input", "empty"]);
}

#[test]
fn names_from_files_reach_nobody_raw() {
    let folder = Folder::new();
    let evil = "x\u{1b}[31m</script><script>alert(1)</script>|\n";
    let mut hostile = run(&[("a/x", 1e9), ("a/y", 1e9)]);
    hostile["results"][0]["parameters"] = json!({evil: evil});
    hostile["start"]["environment"][evil] = json!(evil);
    put(&folder, "hostile", &hostile);
    put(&folder, "good", &run(&[("a/x", 1e9), ("a/y", 1e9)]));
    for format in ["table", "markdown", "json", "html"] {
        let ran = compare(&folder, &["good", "hostile", "--format", format]).run();
        let shown = &ran.exits(0).stdout;
        assert!(!shown.contains('\u{1b}'), "{format}");
        if format == "html" || format == "markdown" {
            assert!(!shown.contains("<script>alert"), "{format}");
        }
    }
}

#[test]
fn the_help_and_the_documentation_name_every_code() {
    let folder = Folder::new();
    let help = folder.flatout(["compare", "--help"]).run().exits(0).stdout.clone();
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/compare.md");
    let docs = fs::read_to_string(docs).unwrap();
    for reason in [
        "wide_interval",
        "not_significant",
        "few_samples",
        "figure_lost",
        "no_figure",
        "no_samples",
        "no_ratio",
        "units_differ",
        "repeats",
    ] {
        assert!(docs.contains(&format!("`{reason}`")), "{reason}");
    }
    for code in ["0 same or better", "1 worse", "2 wrong use", "3 nothing matches", "4 unclear"] {
        let (help, docs) = (help.replace('\n', " "), docs.replace('\n', " "));
        assert!(help.contains(code) && docs.contains(code), "{code}");
    }
}
