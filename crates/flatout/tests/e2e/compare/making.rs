//! Runs that are made: each in its state, and ended with the comparison.

use std::fs::{self, OpenOptions};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;

use super::{SHORT, compare};
use crate::bin::Folder;

#[test]
fn a_run_is_ended_by_the_signal_that_ends_the_comparison() {
    let folder = Folder::new();
    let fifo = folder.join("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let program = env!("CARGO_BIN_EXE_flatout");
    // Neither ends by itself. To open the other end waits until it has begun.
    let words = ["--runs=2", "--format=json", program, program, "--", "read", "fifo"];
    let running = compare(&folder, &words).start();
    let writer = OpenOptions::new().write(true).open(&fifo).unwrap();
    running.signal(Signal::TERM);
    let ran = running.wait();
    ran.died_of(Signal::TERM);
    let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    crate::schema::assert_follows("flatout-comparison-1", &document);
    assert_eq!(document["errors"][0], "interrupted: nothing is compared", "{ran}");
    drop(writer);
    // One says no more, the other one waits for what it started.
    for script in ["echo >fifo; exec sleep 600 2>&-", "echo >fifo; sleep 600; true"] {
        let before = ["--runs=2", "--before-old", script];
        let running = compare(&folder, &[&before[..], &SHORT].concat()).start();
        fs::read(&fifo).unwrap();
        running.signal(Signal::TERM);
        // It ends when all have closed its standard error.
        running.wait().died_of(Signal::TERM);
    }
}

#[test]
fn a_program_that_prints_without_end_is_no_flatout() {
    let ran = compare(&Folder::new(), &["--runs=2", "yes", "yes", "--", "--"]).run();
    let said = &ran.exits(2).stderr;
    assert!(
        said.contains("\"yes\" printed no record (") && said.contains("longer than 64 MiB"),
        "{ran}"
    );
}

#[test]
fn each_run_is_made_in_its_state() {
    let folder = Folder::new();
    fs::write(folder.join("data"), vec![7; 1 << 20]).unwrap();
    let states = ["--runs=2", "--before-old", "echo old >>log", "--before-new", "echo new >>log"];
    let ran = compare(&folder, &[&states[..], &SHORT].concat()).leaves("log").run();
    assert!(matches!(ran.code, Some(0 | 1 | 4)), "{ran}");
    assert!(ran.stdout.contains("after echo old >>log"), "{ran}");
    assert_eq!(fs::read_to_string(folder.join("log")).unwrap(), "old\nnew\nnew\nold\n");
    let fails = ["--runs=2", "--before-new", "echo no such knob >&2; exit 3"];
    let ran = compare(&folder, &[&fails[..], &SHORT].concat()).run();
    assert!(ran.exits(2).stderr.contains("exit status: 3: no such knob"), "{ran}");
    let silent = ["--runs=2", "--before-old", "false"];
    let ran = compare(&folder, &[&silent[..], &SHORT].concat()).run();
    assert!(ran.exits(2).stderr.ends_with("exit status: 1\n"), "{ran}");
    let nothing = ["--runs=2", "--before-new", "true", "--", "read", "missing"];
    let ran = compare(&folder, &nothing).run();
    assert!(ran.exits(2).stderr.contains("has no figure: "), "{ran}");
    let ran = compare(&folder, &["--runs=2", "./nobody", "./nobody"]).run();
    assert!(ran.exits(2).stderr.contains("cannot start \"./nobody\""), "{ran}");
}
