//! The help texts, word for word. `SNAPSHOTS=overwrite cargo test -p flatout` writes them anew.

use snapbox::{Assert, Data};

use crate::bin::Folder;

fn assert_help(arguments: &[&str], name: &str) {
    let folder = Folder::new();
    let ran = folder.flatout(arguments.iter().chain(&["--help"])).run();
    let path = format!("{}/tests/e2e/golden/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let golden = Data::read_from(std::path::Path::new(&path), None);
    Assert::new().action_env("SNAPSHOTS").eq(ran.exits(0).stdout.clone(), golden);
    assert_eq!(ran.stderr, "");
}

#[test]
fn the_help_of_the_program_is_as_reviewed() {
    assert_help(&[], "help");
}

#[test]
fn the_help_of_read_is_as_reviewed() {
    assert_help(&["read"], "help-read");
}

#[test]
fn the_help_of_write_is_as_reviewed() {
    assert_help(&["write"], "help-write");
}

#[test]
fn the_help_of_bench_is_as_reviewed() {
    assert_help(&["bench"], "help-bench");
}

/// The areas of `flatout bench`.
const AREAS: [&str; 7] = ["cache", "disk", "syscall", "cpu", "memory", "network", "copy"];

#[test]
fn the_help_of_each_area_is_as_reviewed() {
    for area in AREAS {
        assert_help(&["bench", area], &format!("help-bench-{area}"));
    }
}

#[test]
fn the_help_of_bench_fits_a_screen() {
    let folder = Folder::new();
    for words in [&["bench", "--help"][..], &["bench", "-h"], &["help", "bench"]] {
        let ran = folder.flatout(words).with(|command| {
            command.env("COLUMNS", "80");
        });
        let ran = ran.run();
        let lines: Vec<&str> = ran.exits(0).stdout.lines().collect();
        assert!(lines.len() <= 40, "{} lines: {ran}", lines.len());
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{ran}");
        assert!(AREAS.iter().all(|area| lines.iter().any(|line| line.contains(area))), "{ran}");
    }
}

#[test]
fn no_help_is_wider_than_the_terminal() {
    let folder = Folder::new();
    let commands = ["read", "write", "copy", "cp", "sum", "versus", "compare", "tune", "report"];
    for command in commands.into_iter().chain(["serve", "completions", "man", "bench"]) {
        // Zero is not known.
        let ran = folder.flatout(["help", command]).with(|command| {
            command.env("COLUMNS", "0");
        });
        let is_wide = |line: &&str| line.chars().count() > 100;
        assert_eq!(ran.run().exits(0).stdout.lines().find(is_wide), None, "{command}");
        let ran = folder.flatout(["help", command]).with(|command| {
            command.env("COLUMNS", "80");
        });
        let ran = ran.run();
        let is_wide = |line: &&str| line.chars().count() > 80;
        assert_eq!(ran.exits(0).stdout.lines().find(is_wide), None, "{command}");
    }
}

#[test]
fn an_area_is_helped_with_wherever_it_stands() {
    let folder = Folder::new();
    let help = |words: &[&str]| folder.flatout(words).run().exits(0).stdout.clone();
    let disk = help(&["bench", "disk", "--help"]);
    for words in [
        &["help", "bench", "disk"][..],
        &["bench", "--help", "disk"],
        &["bench", "/data", "disk", "--rw", "randread", "--help"],
    ] {
        assert_eq!(help(words), disk, "{words:?}");
    }
    assert!(disk.contains("--rwmixread") && !disk.contains("--connect"), "{disk}");
    let two = help(&["bench", "disk", "network", "-h"]);
    assert!(two.contains("--rwmixread") && two.contains("--connect"), "{two}");
    assert!(two.starts_with("The disk: ") && two.contains("\nTCP and UDP: "), "{two}");
    folder.flatout(["help", "bench", "dsik"]).run().complains(2, &["did you mean 'disk'"]);
    folder.flatout(["help", "cpoy"]).run().complains(2, &["did you mean 'flatout copy'"]);
}

#[test]
fn the_help_of_sum_is_as_reviewed() {
    assert_help(&["sum"], "help-sum");
}

#[test]
fn the_help_of_versus_is_as_reviewed() {
    assert_help(&["versus"], "help-versus");
}

#[test]
fn the_help_of_copy_is_as_reviewed() {
    assert_help(&["copy"], "help-copy");
}

#[test]
fn the_help_of_cp_is_as_reviewed() {
    assert_help(&["cp"], "help-cp");
}

#[test]
fn the_help_of_tune_is_as_reviewed() {
    assert_help(&["tune"], "help-tune");
}

#[test]
fn the_help_of_serve_is_as_reviewed() {
    assert_help(&["serve"], "help-serve");
}

#[test]
fn the_help_of_report_is_as_reviewed() {
    assert_help(&["report"], "help-report");
}

#[test]
fn the_help_of_completions_and_man_is_as_reviewed() {
    assert_help(&["completions"], "help-completions");
    assert_help(&["man"], "help-man");
}

#[test]
fn the_help_of_compare_is_as_reviewed() {
    assert_help(&["compare"], "help-compare");
}

#[test]
fn the_short_help_of_every_command_fits_a_screen() {
    let folder = Folder::new();
    let commands = ["read", "write", "copy", "sum", "versus", "compare", "tune", "report", "serve"];
    let areas = AREAS.map(|area| vec!["bench", area]);
    for mut words in commands.map(|command| vec![command]).into_iter().chain(areas) {
        words.push("-h");
        let ran = folder.flatout(&words).with(|command| {
            command.env("COLUMNS", "80");
        });
        let ran = ran.run();
        let lines: Vec<&str> = ran.exits(0).stdout.lines().collect();
        assert!(lines.len() <= 56, "{} lines: {ran}", lines.len());
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{ran}");
        assert!(lines.last().is_some_and(|line| line.ends_with("--help")), "{ran}");
    }
}
