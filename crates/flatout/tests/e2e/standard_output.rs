//! Standard output that is closed, or that takes nothing: a command whose results go nowhere has
//! failed, as in coreutils, and says so once. So has one that is to read what nobody gave it.

use std::fs::{self, File};

use flatout_sys::launcher::{Resource, limit};

use crate::bin::{Folder, Ran};
use crate::faulty::{Faults, Faulty};
use crate::filesystem::{needs_program, needs_root};
use crate::fixture::random_file;
use crate::skip::needs;

/// Commands that print something at once.
const PRINTING: [&str; 21] = [
    "--help",
    "--version",
    "help copy",
    "man bench",
    "completions bash",
    "read data",
    "read data --format json",
    "write new --overwrite --block-size 4096 --block-count 1",
    "sum data",
    "sum --check sums",
    "copy data copied --force --format json",
    "copy data copied --force --verbose",
    "copy data copied --force --manifest -",
    "copy data copied --force --log -",
    "copy data copied --force --output -",
    "cp -v data copied",
    "report record.json",
    "compare record.json record.json",
    "compare record.json record.json --format json",
    "versus --list",
    "serve --port 0",
];

/// Commands that would measure first.
const MEASURING: [&str; 4] =
    ["bench syscall --quick", "bench --format json", "tune --quick", "compare --noise"];

fn folder() -> Folder {
    let folder = Folder::new();
    random_file(&folder.join("data"), 5000, 1);
    folder
        .flatout(["read", "data", "--format", "json", "-o", "record.json"])
        .leaves("record.json")
        .run();
    let sums = folder.flatout(["sum", "data"]).run().stdout;
    fs::write(folder.join("sums"), sums).unwrap();
    for name in ["new", "copied"] {
        fs::write(folder.join(name), "").unwrap();
    }
    folder
}

fn closed(folder: &Folder, words: &str) -> Ran {
    let words: Vec<&str> = words.split(' ').collect();
    folder.under(&["sh", "-c", "exec \"$@\" >&-", "sh"], &words).run()
}

/// Fails unless it failed and said why, once; what was done besides may have been said, too.
#[track_caller]
fn assert_lost(ran: &Ran, words: &str, why: &str) {
    // To compare, 1 is an answer.
    ran.exits(if words.starts_with("compare") { 2 } else { 1 });
    let said: Vec<&str> =
        ran.stderr.lines().filter(|line| line.contains("standard output")).collect();
    assert!(said.len() == 1 && said[0].contains(why), "{ran}");
}

#[test]
fn results_that_find_standard_output_closed_are_a_failure() {
    let folder = folder();
    for words in PRINTING.into_iter().chain(MEASURING) {
        println!("{words}");
        assert_lost(&closed(&folder, words), words, "Bad file descriptor");
    }
}

#[test]
fn what_is_to_be_read_from_a_closed_standard_input_is_not_nothing() {
    let folder = folder();
    for words in [
        "sum",
        "sum --check",
        "read -",
        "copy --files-from - . elsewhere",
        "copy --exclude-from - data elsewhere",
        "report -",
        "serve --port 0 --token-file -",
    ] {
        let under = ["sh", "-c", "exec \"$@\" <&-", "sh"];
        let ran = folder.under(&under, &words.split(' ').collect::<Vec<_>>()).run();
        println!("{words}: {ran}");
        assert!(
            ran.stderr.contains("Bad file descriptor") && !ran.stderr.contains("usage"),
            "{ran}"
        );
        assert_ne!(ran.code, Some(0), "{words}: {ran}");
        assert!(!folder.join("elsewhere").exists(), "{words}: {ran}");
    }
}

#[test]
fn results_that_standard_output_does_not_take_are_a_failure() {
    let folder = folder();
    for words in PRINTING {
        println!("{words}");
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ran = folder.flatout(words.split(' ')).stdout(full).run();
        assert_lost(&ran, words, "No space left");
    }
    let read_only = File::open("/dev/null").unwrap();
    let ran = folder.flatout(["sum", "data"]).stdout(read_only).run();
    ran.complains(1, &["standard output", "Bad file descriptor"]);
}

/// `ulimit -f`: the kernel sends a signal first, which would end the program without a word.
#[test]
fn results_that_the_limit_on_files_stops_are_a_failure() {
    let folder = folder();
    for words in ["--version", "--help", "report record.json", "compare record.json record.json"] {
        let file = File::create(folder.join("results")).unwrap();
        let run = folder.flatout(words.split(' ')).stdout(file);
        let ran = run.with(|command| _ = limit(command, Resource::FileSize, 0)).run();
        assert_lost(&ran, words, "File too large (ulimit -f: 0 bytes)");
    }
}

/// NFS, FUSE and quotas tell only at the end that bytes were lost.
#[test]
fn results_that_are_lost_when_they_are_closed_are_a_failure() {
    let faulty = needs!(Faulty::new(Faults::default()));
    let folder = folder();
    let target = faulty.path().join("results");
    for words in ["sum data", "sum data --format json", "read data --format json"] {
        let file = File::create(&target).unwrap();
        faulty.change(|faults| faults.close = Some(fuser::Errno::EIO));
        let ran = folder.flatout(words.split(' ')).stdout(file).run();
        assert_lost(&ran, words, "Input/output error");
        faulty.rewrite("results", b"old");
        let words = words.split(' ').chain(["--output", target.to_str().unwrap()]);
        let ran = folder.flatout(words).run();
        ran.complains(1, &["cannot write", "results\": Input/output error"]);
        assert_eq!(faulty.names(), ["results"], "{ran}");
        assert_eq!(faulty.bytes("results").unwrap(), b"old", "{ran}");
        faulty.change(|faults| faults.close = None);
    }
    faulty.finish();
}

/// In a chroot, say.
#[test]
fn standard_output_is_there_without_proc() {
    needs!(needs_root("mounts a filesystem"));
    needs!(needs_program("unshare"));
    let folder = folder();
    for option in ["--manifest", "--log", "--output"] {
        let script = "mount -t tmpfs none /proc && exec \"$@\"";
        let words = ["copy", "--always", option, "-", "-T", "data", "copied"];
        let ran = folder.under(&["unshare", "--mount", "sh", "-c", script, "sh"], &words).run();
        assert_eq!(ran.exits(0).stderr, "", "{ran}");
        assert!(!ran.stdout.is_empty(), "{ran}");
    }
}

/// A list that was cut is not whole, and whoever keeps it must know.
#[test]
fn a_list_of_a_copy_into_a_pipe_that_nobody_reads_is_a_failure() {
    let folder = folder();
    for option in ["--manifest", "--log"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let words = ["copy", "--always", option, "-", "-T", "data", "copied"];
        let ran = folder.flatout(words).stdout(writer).run();
        ran.complains(1, &["cannot write to standard output: Broken pipe"]);
    }
}

/// As by `-o /dev/stdout | head`.
#[test]
fn a_pipe_that_is_named_may_be_closed_as_standard_output_may() {
    let folder = folder();
    for words in [
        "read data --output /dev/stdout",
        "copy data copied --force --format json --output /dev/stdout",
        "copy data copied --force --format json --output -",
        "sum data --output /dev/stdout",
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ran = folder.flatout(words.split(' ')).stdout(writer).run();
        assert_eq!(ran.exits(0).stderr, "", "{words}: {ran}");
    }
}

#[test]
fn who_has_nothing_to_print_needs_no_standard_output() {
    let folder = folder();
    for words in [
        "copy data copied --force",
        "cp data copied",
        "sum data --output sums",
        "sum --check --quiet sums",
        "read data --output record.json",
    ] {
        let ran = closed(&folder, words);
        assert_eq!(ran.exits(0).stderr, "", "{words}: {ran}");
    }
}
