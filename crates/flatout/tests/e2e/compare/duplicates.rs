//! A run that lies in a folder as a record, as its page and as a copy.

use std::fs;

use super::{compare, put_runs};
use crate::bin::Folder;

#[test]
fn a_run_that_several_files_hold_counts_once() {
    let folder = Folder::new();
    put_runs(&folder, "a", &[("a/x", 1e9)]);
    put_runs(&folder, "bc", &[("a/x", 1.002e9)]);
    let alone = compare(&folder, &["a", "bc"]).run();
    for name in ["a", "bc"] {
        for index in 0..5 {
            // A page with the same record, and a plain copy.
            let from = format!("{name}/{index}.json");
            let page = format!("{name}/{index}.html");
            let words = ["report", &from, "--format", "html", "--output", &page];
            folder.flatout(words).leaves(&page).run().exits(0);
            let copy = format!("{name}/copy-{index}.json");
            fs::copy(folder.join(&from), folder.join(&copy)).unwrap();
        }
    }
    let twice = compare(&folder, &["a", "bc"]).run();
    assert!(twice.stderr.contains("of runs that are counted already: 10 of 15 files"), "{twice}");
    assert_eq!((twice.stdout, twice.code), (alone.stdout, alone.code));
    let noise = folder.join("noise.json");
    let learning = compare(&folder, &["--noise", "a/0.json", "a/copy-0.json"]);
    let ran = learning.with(|command| _ = command.env("FLATOUT_NOISE", &noise)).run();
    assert!(ran.exits(2).stderr.contains("two runs"), "{ran}");
}
