//! What others did while runs were made: it is said, and is no change of the program.

use std::fs;

use serde_json::{Value, json};

use super::{compare, document, put, run};
use crate::bin::Folder;

/// A run of this level beside others who have so many of two CPUs.
fn beside(level: f64, others_cpus: f64) -> Value {
    // Each row has samples of its own: a row that repeats another one is not judged.
    let rows = [("a/x", level), ("a/y", 1.1 * level), ("a/z", 1.2 * level), ("a/u", 1.3 * level)];
    let mut run = run(&rows);
    run["start"]["seed"] = json!(level as u64);
    run["end"]["load"] = json!({"cpus": 2, "others_cpus": others_cpus, "stolen_ratio": 0.0,
        "run_queue_wait_ratio": 0.0, "cpu_pressure_ratio": null, "programs": []});
    run
}

#[test]
fn what_others_did_meanwhile_is_said_and_makes_no_row_worse() {
    let folder = Folder::new();
    for (side, level, others) in [("old", 2e9, 0.0), ("new", 1e9, 1.5), ("quiet", 1e9, 0.0)] {
        fs::create_dir(folder.join(side)).unwrap();
        for index in 0..5 {
            let run = beside(level * (1.0 + f64::from(index * 3 % 5) / 1000.0), others);
            put(&folder, &format!("{side}/{index}.json"), &run);
        }
    }
    compare(&folder, &["old", "quiet"]).run().exits(1);
    let ran = compare(&folder, &["old", "new"]).run();
    assert!(ran.exits(4).stdout.contains("unclear: 4 unclear"), "{ran}");
    assert!(
        ran.stdout.contains("Others had 0.0 % of the CPUs beside OLD and 75 % beside NEW"),
        "{ran}"
    );
    let document = document(&compare(&folder, &["old", "new", "--format", "json"]).run());
    assert_eq!(document["comparisons"][0]["rows"][0]["reason"], "load_differs");

    let noise = folder.join("noise.json");
    let with_noise = |words: &[&str]| {
        let run = compare(&folder, words).leaves("noise.json");
        run.with(|command| _ = command.env("FLATOUT_NOISE", &noise)).run()
    };
    with_noise(&["--noise", "old"]).exits(0);
    assert_eq!(with_noise(&["old/0.json", "old/1.json"]).exits(0).stderr, "");
    let ran = with_noise(&["new/0.json", "new/1.json"]);
    assert!(ran.exits(4).stderr.contains("busier than when its noise was learned"), "{ran}");
}
