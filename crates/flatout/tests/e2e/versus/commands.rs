//! Races of any commands.

use std::fs;

use flatout_sys::launcher::write_program;
use serde_json::Value;

use super::rows;
use crate::bin::Folder;
use crate::filesystem::{needs_program, needs_root};
use crate::schema::assert_valid;
use crate::skip::needs;

/// The times of a race, and how each was called.
fn times(document: &Value) -> Vec<(String, f64, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let time = |row: &Value| {
        let name = text(&row["parameters"]["contestant"]);
        (name, row["median"].as_f64().unwrap(), text(&row["audit"]["command"]))
    };
    rows(document, "versus/command").iter().map(time).collect()
}

/// As is what `compare` runs: the name of the program itself is found in /proc.
#[test]
fn commands_are_raced_where_proc_is_hidden() {
    needs!(needs_root("takes /proc away"));
    needs!(needs_program("unshare"));
    let folder = Folder::new();
    let hidden =
        ["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /proc && exec \"$@\"", "sh"];
    let race = "versus --runs 2 --command a=true --command b=true --format json";
    let ran = folder.under(&hidden, &race.split(' ').collect::<Vec<_>>()).run();
    assert_eq!(times(&ran.exits(0).document()).len(), 2, "{ran}");
    let runs = "compare --runs 2 -- bench syscall --quick --runs 1";
    let ran = folder.under(&hidden, &runs.split(' ').collect::<Vec<_>>()).run();
    assert!(!ran.stderr.contains("No such file"), "{ran}");
}

#[test]
fn each_command_is_raced_against_the_first() {
    let folder = Folder::new();
    let words = [
        "versus",
        "--quick",
        "-n",
        "6",
        "--command",
        "long=sleep 0.15",
        "--command",
        "none=sleep 0",
    ];
    let more = ["--command", "also=/bin/sleep 0.15", "--format", "json"];
    let ran = folder.flatout(words.iter().chain(&more)).run();
    let document = ran.exits(0).document();
    assert_valid(&document);
    let times = times(&document);
    let names: Vec<&str> = times.iter().map(|(name, ..)| &**name).collect();
    assert_eq!(names, ["long", "none", "also"]);
    let commands: Vec<&str> = times.iter().map(|(.., command)| &**command).collect();
    assert_eq!(commands, ["sleep 0.15", "sleep 0", "/bin/sleep 0.15"], "no shell is needed");
    assert!(times[0].1 >= 15e7 && times[2].1 >= 15e7, "{times:?}");
    let pairs = rows(&document, "versus/ratio");
    let against: Vec<_> = pairs.iter().map(|pair| &pair["parameters"]["against"]).collect();
    assert_eq!(against, ["long", "long"]);
    assert_eq!(pairs[0]["audit"]["result"], "win", "{}", pairs[0]);
    assert!(pairs[0]["median"].as_f64().unwrap() > 1.0, "{}", pairs[0]);
    let happened = document["end"]["verdict"].as_array().unwrap().last().unwrap();
    assert_eq!(happened["mark"], "unknown", "nobody looked at what they did: {happened}");
    assert!(ran.stderr.contains("running each command once"), "{ran}");
    assert!(!ran.stderr.contains("nobody wins or loses"), "{ran}");
    assert!(!ran.stderr.contains("not raced"), "of rivals nobody spoke: {ran}");
    assert_eq!(Folder::names_in(folder.path()).len(), 0, "nothing is left");
}

#[test]
fn what_is_to_be_done_before_is_done_before_each_run_and_does_not_count() {
    let folder = Folder::new();
    let note = "echo before >> said; sleep 0.2";
    let words = ["versus", "-n", "2", "--before", note, "--command", "a=echo a >> said"];
    let more = ["--command", "b=echo b >> said", "--format", "json"];
    let ran = folder.flatout(words.iter().chain(&more)).leaves("said").run();
    assert!(ran.stderr.contains("few rounds: nobody wins or loses"), "{ran}");
    let times = times(&ran.exits(0).document());
    assert!(times.iter().all(|(.., command)| command.starts_with("sh -c ")), "{times:?}");
    let said = fs::read_to_string(folder.join("said")).unwrap();
    let said: Vec<&str> = said.lines().collect();
    assert_eq!(said.len(), 2 * 2 * 3, "each once, then two rounds: {said:?}");
    assert!(said.chunks(2).all(|pair| pair[0] == "before" && pair[1] != "before"), "{said:?}");

    let fails = ["versus", "--before", "exit 7", "--command", "a=true", "--command", "b=true"];
    let ran = folder.flatout(fails).run();
    assert!(ran.exits(1).stderr.contains("what is done before failed with exit code 7"), "{ran}");
}

#[test]
fn a_command_that_fails_loses_its_row() {
    let folder = Folder::new();
    write_program(&folder.join("bad"), "#!/bin/sh\necho out of luck >&2; exit 3\n");
    let words = ["versus", "-n", "2", "--command", "good=true", "--command", "bad=./bad"];
    let ran = folder.flatout(words.iter().chain(&["--format", "json"])).run();
    let document = ran.exits(1).document();
    assert_valid(&document);
    assert!(ran.stderr.contains("bad failed with exit code 3: out of luck"), "{ran}");
    let rows = rows(&document, "versus/command");
    assert!(rows[0]["median"].is_number() && rows[1]["status"] == "failed", "{rows:#?}");
}

#[test]
fn what_makes_no_race_is_wrong_use() {
    let folder = Folder::new();
    let refused = |words: &[&str], why: &str| {
        let ran = folder.flatout(["versus"].iter().chain(words)).run();
        ran.complains(2, &[why]);
    };
    refused(&["--command", "sort -n x", "--command", "b=true"], "NAME=COMMAND");
    refused(&["--command", "a=true"], "nobody to race");
    refused(&["--command", "a=true", "--command", "a=false"], "two commands are called a");
    refused(&["--command", "a=true", "--command", "b=true", "dd"], "cannot be used with");
    refused(&["--before", "true", "dd"], "--before goes with --command");
    assert_eq!(Folder::names_in(folder.path()).len(), 0);
}
