//! `flatout compare --trend`: a folder of records over time.

use std::fs;

use serde_json::{Value, json};

use super::{compare, document, put, run};
use crate::bin::{Folder, Ran};

/// Whether all of this is in what it shows.
#[track_caller]
fn shows(ran: &Ran, words: &[&str]) {
    for word in words {
        assert!(ran.stdout.contains(word), "`{word}` is missing: {ran}");
    }
}

/// A folder of twelve runs, a day after each other: `slower` from the ninth on, `steady` always the same
/// but for two percent.
fn folder() -> Folder {
    let folder = Folder::new();
    fs::create_dir(folder.join("all")).unwrap();
    for day in 0..12 {
        let noise = 1.0 + f64::from(day * 5 % 12) / 600.0;
        let slower = if day < 8 { 2.0e9 } else { 1.4e9 };
        let levels = [("disk/slower", slower * noise), ("disk/steady", 5.0e9 * noise)];
        put(&folder, &format!("all/{day}.json"), &on_day(run(&levels), day + 1));
    }
    folder
}

fn on_day(mut run: Value, day: i32) -> Value {
    run["start"]["time"] = json!(format!("2026-03-{day:02}T04:00:00+00:00"));
    run["start"]["seed"] = json!(day);
    run
}

#[test]
fn runs_of_one_day_have_one_date() {
    let folder = Folder::new();
    fs::create_dir(folder.join("all")).unwrap();
    for hour in 0..8 {
        let mut run = on_day(run(&[("disk/steady", 5.0e9)]), 1);
        run["start"]["time"] = json!(format!("2026-03-01T0{hour}:00:00+00:00"));
        run["start"]["seed"] = json!(hour);
        put(&folder, &format!("all/{hour}.json"), &run);
    }
    let ran = compare(&folder, &["--trend", "all"]).run();
    shows(ran.exits(0), &["8 runs of one machine, 2026-03-01\n"]);
}

#[test]
fn what_became_slower_is_found_with_its_day() {
    let folder = folder();
    let ran = compare(&folder, &["--trend", "all"]).run();
    shows(
        ran.exits(1),
        &[
            "12 runs of one machine, 2026-03-01 to 2026-03-12",
            "1 worse, 1 without a change that is shown",
            "since 2026-03-09, run 9 of 12",
            "disk/steady",
        ],
    );
    let shown = compare(&folder, &["--trend", "all", "--format", "json"]).run();
    let found = document(&shown);
    let [slower, steady] = [0, 1].map(|row: usize| &found["trend"]["rows"][row]);
    assert_eq!(slower["id"], "disk/slower");
    assert_eq!(
        (&slower["change"]["since"], &slower["change"]["verdict"]),
        (&json!(8), &json!("worse"))
    );
    assert!(slower["change"]["p_corrected"].as_f64().unwrap() < 0.05, "{slower}");
    let after = slower["change"]["after"].as_f64().unwrap();
    assert!((1.4e9..1.44e9).contains(&after), "{slower}");
    assert_eq!(
        (&steady["change"], steady["figures"].as_array().unwrap().len()),
        (&Value::Null, 12)
    );
    let page = compare(&folder, &["--trend", "all", "--format", "html"]).run();
    assert!(page.exits(1).stdout.contains("figure of each run"), "{page}");
    let tables = compare(&folder, &["--trend", "all", "--format", "markdown"]).run();
    assert!(tables.exits(1).stdout.contains("2026-03-09"), "{tables}");
}

#[test]
fn runs_of_other_machines_and_too_few_runs_say_nothing() {
    let folder = folder();
    let mut other = on_day(run(&[("disk/slower", 9e9)]), 5);
    other["start"]["environment"]["cpu_model"] = json!("Another");
    put(&folder, "all/other.json", &other);
    let ran = compare(&folder, &["--trend", "all"]).run();
    shows(ran.exits(1), &["12 runs of one machine", "1 of other machines left out"]);
    for day in 0..6 {
        fs::remove_file(folder.join(&format!("all/{day}.json"))).unwrap();
    }
    let ran = compare(&folder, &["--trend", "all"]).run();
    shows(ran.exits(3), &["no row that 8 runs have: a trend needs as many"]);
    compare(&folder, &["--trend"]).run().complains(2, &["--trend needs FILEs"]);
    compare(&folder, &["--trend", "all", "--quick"]).run().complains(2, &["nothing is run"]);
}

#[test]
fn results_of_other_programs_have_a_trend_too() {
    let folder = Folder::new();
    let mut names = vec!["--trend".to_owned()];
    for run in 0..10 {
        let rate = if run < 5 { 1000.0 } else { 2000.0 } + f64::from(run % 3);
        let way = json!({"total_ios": 100, "bw_bytes": rate * 4096.0, "iops": rate});
        let job = json!({"jobname": "a", "error": 0, "read": way, "job options": {"bs": "4k"}});
        let time = 1_790_000_000 + run * 86_400;
        let document = json!({"fio version": "fio-3.33", "timestamp": time, "jobs": [job]});
        names.push(format!("{run}.json"));
        put(&folder, names.last().unwrap(), &document);
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let ran = compare(&folder, &names).run();
    shows(
        ran.exits(0),
        &["10 runs of one machine, 2026-09-21 to 2026-09-30", "2 better", "fio/read"],
    );
}
