//! `flatout compare`: verdicts as exit codes, forms, noise, and files that are no results.

mod duplicates;
mod load;
mod making;
mod place;
mod trend;

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::bin::{Flatout, Folder, Ran, in_enough_time, input};

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

/// A folder of five runs, which differ by a permille.
fn put_runs(folder: &Folder, name: &str, levels: &[(&str, f64)]) {
    fs::create_dir(folder.join(name)).unwrap();
    for index in 0..5 {
        let factor = 1.0 + f64::from(index * 3 % 5) / 1000.0;
        let levels: Vec<_> = levels.iter().map(|(id, level)| (*id, level * factor)).collect();
        let mut run = run(&levels);
        // Runs that have begun in the same second with the same seed would be the same.
        run["start"]["seed"] = json!(name.len() * 10 + index as usize);
        put(folder, &format!("{name}/{index}.json"), &run);
    }
    fs::write(folder.join(name).join("notes.txt"), "no run").unwrap();
}

fn compare<'a>(folder: &'a Folder, words: &[&str]) -> Flatout<'a> {
    let run = folder.flatout(["compare", "--verbose"].iter().chain(words));
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
    put_runs(&folder, "old", &[("a/x", 1e9), ("a/y", 2e9)]);
    put_runs(&folder, "equal", &[("a/x", 1.001e9), ("a/y", 2.001e9)]);
    put_runs(&folder, "better", &[("a/x", 1.5e9), ("a/y", 2e9)]);
    put_runs(&folder, "worse", &[("a/x", 0.5e9), ("a/y", 3e9)]);
    put_runs(&folder, "other", &[("b/x", 1e9)]);
    put(&folder, "nothing", &run(&[]));
    put(&folder, "single", &run(&[("a/x", 1.3e9), ("a/y", 2e9)]));
    for (new, code, word) in [
        (&["old"][..], 0, "same: 2 the same"),
        (&["equal"], 0, "same: 2 the same"),
        (&["better"], 0, "better: 1 better, 1 the same"),
        (&["worse"], 1, "worse: 1 worse, 1 better"),
        (&["single"], 4, "unclear: 2 unclear"),
        (&["other"], 3, "nothing matches"),
        (&["nothing"], 3, "only in OLD (2)"),
        (&["better", "worse"], 1, "NEW: worse"),
        (&["better", "single"], 4, "unclear: 2 unclear"),
        (&["better", "other"], 3, "nothing matches"),
    ] {
        let ran = compare(&folder, &[&["old"], new].concat()).run();
        assert!(ran.exits(code).stdout.contains(word) && ran.stderr.is_empty(), "{word}: {ran}");
        let ran = compare(&folder, &[&["--format=json", "old"], new].concat()).run();
        let said = document(ran.exits(code));
        assert_eq!(said["comparisons"].as_array().unwrap().len(), new.len());
    }
}

#[test]
fn a_summary_has_what_differs() {
    let folder = Folder::new();
    let figures = |x: f64| (0..40).map(|n| (format!("a/{n}"), x * f64::from(n + 1))).collect();
    for (name, x) in [("old", 1e9), ("new", 1.5e9)] {
        let figures: Vec<(String, f64)> = figures(x);
        let named: Vec<(&str, f64)> = figures.iter().map(|(id, x)| (id.as_str(), *x)).collect();
        put(&folder, name, &run(&named));
    }
    let ran = folder.flatout(["compare", "old", "new"]).run();
    assert!(ran.stdout.lines().count() <= 30, "{ran}");
    assert!(ran.stdout.contains("26 more rows"), "{ran}");
    assert!(folder.flatout(["compare", "-v", "old", "new"]).run().stdout.lines().count() > 80);
}

#[test]
fn each_of_several_states_has_its_verdict_on_the_first_screen() {
    let folder = Folder::new();
    let ids: Vec<String> = (0..40).map(|index| format!("a/{index}")).collect();
    let at = |level: f64| ids.iter().map(|id| (id.as_str(), level)).collect::<Vec<_>>();
    for (name, level) in [("old", 1e9), ("better", 2e9), ("same", 1e9), ("worse", 5e8)] {
        put_runs(&folder, name, &at(level));
    }
    let ran = folder.flatout(["compare", "old", "better", "same", "worse"]).run();
    for line in
        ["NEW better: better: 1 better", "NEW same: same: 1 the same", "NEW worse: worse: 1 worse"]
    {
        assert!(ran.exits(1).stdout.contains(line), "{line}: {ran}");
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
    let made =
        |arguments: &[&str], name: &str| _ = folder.flatout(arguments).leaves(name).run().exits(0);
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
    put_runs(&folder, "a", &[("a/x", 1e9)]);
    put_runs(&folder, "bc", &[("a/x", 1.002e9)]);
    let ran = compare(&folder, &["a/0.json", "bc/0.json"]).run();
    assert!(ran.exits(4).stdout.contains("more runs of each"), "{ran}");
    assert!(ran.stdout.contains("about 8 runs of each,"), "{ran}");
    let mut words = vec!["a/0.json".to_owned(), "bc/0.json".to_owned()];
    for run in 1..5 {
        words.extend([format!("--more-old=a/{run}.json"), format!("--more-new=bc/{run}.json")]);
    }
    let ran = compare(&folder, &words.iter().map(String::as_str).collect::<Vec<_>>()).run();
    assert!(ran.exits(0).stdout.contains("a/0.json (5 runs) "), "{ran}");
    let folders = compare(&folder, &["a", "bc"]).run();
    assert!(folders.exits(0).stdout.contains("OLD: a (5 runs) "), "{folders}");
}

#[test]
fn noise_is_learned_from_files_and_used_on_its_machine_only() {
    let folder = Folder::new();
    let rows = |x: f64, others: f64| {
        run(&[("a/x", x), ("a/y", 2e9 * others), ("a/z", 3e9 * others), ("a/u", 4e9 * others)])
    };
    for (name, x, others) in
        [("a", 1e9, 1.0), ("b", 1.01e9, 1.003), ("c", 0.99e9, 0.998), ("new", 1.25e9, 1.001)]
    {
        put(&folder, name, &rows(x, others));
    }
    let mut foreign = rows(1.25e9, 1.0);
    foreign["start"]["environment"]["cpu_model"] = json!("Another");
    put(&folder, "foreign", &foreign);
    let noise = folder.join("made/noise.json");
    let with_noise = |words: &[&str]| {
        let run = compare(&folder, words).leaves("made");
        run.with(|command| _ = command.env("FLATOUT_NOISE", &noise)).run()
    };
    assert!(with_noise(&["a", "new"]).exits(4).stdout.contains("unclear: 4 unclear"));
    let ran = with_noise(&["--noise", "a", "b", "c"]);
    assert!(ran.exits(0).stdout.contains("Noise from 3 runs"), "{ran}");
    assert!(ran.stdout.contains("about 5 runs of each side"), "{ran}");
    assert!(ran.stderr.contains("4 rows"), "{ran}");
    let known = fs::read_to_string(&noise).unwrap();
    let ran = with_noise(&["a", "new"]);
    assert!(ran.exits(0).stdout.contains("better: 1 better, 3 the same"), "{ran}");
    assert!(ran.stdout.contains("known from 3 that compare"), "{ran}");
    let ran = with_noise(&["a", "new", "--threshold", "60%"]);
    assert!(ran.exits(0).stdout.contains("same: 4 the same"), "{ran}");
    let ran = with_noise(&["a", "foreign"]);
    assert!(ran.exits(4).stdout.contains("Two machines"), "{ran}");
    assert!(ran.stdout.contains("it is assumed"), "{ran}");
    // Learned again, it takes the place of what was there.
    with_noise(&["--noise", "a", "b", "c", "--format", "json"]).exits(0);
    assert_eq!(fs::read_to_string(&noise).unwrap(), known);
    with_noise(&["--noise", "a"]).complains(2, &["two runs"]);
    with_noise(&["--noise", "a", "foreign"]).complains(2, &["one machine"]);
    fs::write(&noise, "{\"schema\": \"flatout-noise/9\"}").unwrap();
    with_noise(&["--noise", "a", "b"]).complains(2, &["noise.json", "left as it is"]);
    let ran = with_noise(&["a", "a"]);
    assert!(ran.exits(0).stderr.contains("going on without"), "{ran}");
}

/// Short runs of a program that is there.
const SHORT: [&str; 5] = ["--", "read", "data", "--min-time", "10ms"];

#[test]
fn runs_of_two_programs_take_turns_and_are_kept() {
    let folder = Folder::new();
    fs::write(folder.join("data"), vec![7; 1 << 20]).unwrap();
    let program = env!("CARGO_BIN_EXE_flatout");
    std::os::unix::fs::symlink(program, folder.join("older")).unwrap();
    let words = ["--runs", "2", "older", program, "--keep", "runs", "--format", "json"];
    let made = || {
        let run = compare(&folder, &[&words[..], &SHORT].concat()).leaves("runs");
        let ran = run.run();
        assert!(matches!(ran.code, Some(0 | 1 | 4)), "{ran}");
        ran
    };
    let ran = made();
    let said = document(&ran);
    assert_eq!(said["comparisons"][0]["old"]["runs"], 2);
    assert_eq!(said["comparisons"][0]["rows"][0]["new"]["runs"], 2);
    let order = ["run 1 of 2, OLD", "run 1 of 2, NEW", "run 2 of 2, NEW", "run 2 of 2, OLD"];
    let places = order.map(|line| ran.stderr.find(line).unwrap_or_else(|| panic!("{ran}")));
    assert!(places.is_sorted(), "{ran}");
    made();
    for run in ["old/1.json", "old/4.json", "new/1.json", "new/4.json"] {
        assert!(folder.join("runs").join(run).exists(), "{run}");
    }
    let ran = compare(&folder, &["runs/old", "runs/new", "--format", "json"]).run();
    assert_eq!(document(&ran)["comparisons"][0]["new"]["runs"], 4);
}

#[test]
fn noise_is_learned_from_runs_made_now() {
    let folder = Folder::new();
    let place = folder.join("noise.json");
    let told = |words: String| {
        let run = folder.flatout(words.split(' ')).leaves("noise.json");
        run.with(|command| _ = command.env("FLATOUT_NOISE", &place)).run()
    };
    let learn = |time: &str| {
        let words = format!("compare --noise --runs 2 -- bench syscall --quick --max-time {time}");
        Some(told(words)).filter(|ran| ran.stdout.contains("syscall/getppid"))
    };
    in_enough_time(1, learn).exits(0);
    let mut known: Value = serde_json::from_slice(&fs::read(&place).unwrap()).unwrap();
    assert_eq!(known["machines"][0]["runs"], 2);
    // The intervals of the next run are made of it, unless others were at work meanwhile.
    for (load_share, source) in [(0.0, "learned"), (0.6, "assumed")] {
        known["machines"][0]["load_share"] = load_share.into();
        fs::write(&place, known.to_string()).unwrap();
        let own = in_enough_time(1, |time| {
            let ran = told(format!("bench syscall --quick --max-time {time} --format json"));
            let is_own = |row: &&Value| row["id"] == "syscall/getppid" && row["median"].is_number();
            ran.document()["results"].as_array().unwrap().iter().find(is_own).cloned()
        });
        assert_eq!(own["audit"]["between_runs"]["source"], source, "{own:#}");
    }
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
        (&["old", "--runs", "3"], "two programs"),
        (&["--runs", "3"], "two states"),
        (&["old", "old", "--runs", "3", "--more-old", "old"], "cannot be used with"),
        (&["old", "old", "--runs", "3", "--quick", "--", "bench"], "cannot be used with"),
        (&["old", "old", "--quick"], "--runs"),
        (&["old", "old", "--keep", "x"], "--runs"),
        (&["old", "old", "--", "bench"], "--runs"),
        (&["--noise", "--runs", "1", "--area", "copy,cpu"], "two runs"),
        (&["--noise", "old", "old", "--runs", "3"], "nothing is run"),
        (&["--noise", "old", "old", "--", "bench"], "nothing is run"),
        (&["--noise", "--threshold", "3"], "cannot be used with"),
        (&["--noise", "--area", "roof"], "roof"),
        (&["old", "old", "--format", "csv"], "possible values: table, markdown, json, html"),
        (&["old", "old", "--threshold", "-5"], "above 0"),
    ] {
        compare(&folder, words).run().complains(2, &[why]);
    }
    compare(&folder, &["--noise", "old", "old"]).run().complains(2, &["FLATOUT_NOISE"]);
    let ran = compare(&folder, &["--runs", "2", "false", "true"]).run();
    assert!(ran.exits(2).stderr.contains("\"false\" printed no record: exit status: 1"), "{ran}");
    let ran = compare(&folder, &["--runs", "2", "sh", "true", "--", "-c", "kill -SEGV $$"]).run();
    assert!(ran.exits(2).stderr.contains("printed no record: signal: 11"), "{ran}");
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
