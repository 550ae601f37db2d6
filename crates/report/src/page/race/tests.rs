//! A race put in order from rows in any order.

use flatout_measure::record::{Outcome, Status, Warning};
use serde_json::{Value, json};

use super::pair::Verdict;
use super::*;

fn row(id: &str, parameters: Value, median: f64) -> Outcome {
    Outcome {
        id: id.to_owned(),
        parameters: parameters.as_object().cloned().unwrap(),
        unit: if id.ends_with(RATIO) { "ratio" } else { "ns" }.to_owned(),
        median: Some(median),
        ..Outcome::default()
    }
}

fn pair(subject: &str, against: &str, bytes: u64, [low, median, high]: [f64; 3]) -> Outcome {
    let parameters =
        json!({"test": "copy", "subject": subject, "against": against, "bytes": bytes});
    Outcome { ci95: Some([low, high]), ..row("versus/ratio", parameters, median) }
}

fn of(rows: &[Outcome]) -> Race<'_> {
    race(&rows.iter().collect::<Vec<_>>())
}

#[test]
fn contestants_stand_by_workload() {
    let of_dd = |bytes: u64| json!({"contestant": "dd", "bytes": bytes, "cache_state": "hot"});
    let rows = [
        row(
            "versus/copy",
            json!({"contestant": "flatout", "bytes": 1024, "cache_state": "hot"}),
            1.0,
        ),
        row("versus/copy-speed", of_dd(1024), 9.0),
        row("versus/copy", of_dd(1024), 2.0),
        row("versus/copy", of_dd(2048), 4.0),
        row("versus/refused", json!({}), 0.0),
        row("versus/lone-speed", of_dd(1), 0.0),
    ];
    let race = of(&rows);
    assert_eq!(race.tests.len(), 1);
    let test = &race.tests[0];
    assert_eq!((test.title().as_str(), test.figure_head()), ("copy, warm", "time"));
    let workloads: Vec<(&str, usize)> = test
        .workloads
        .iter()
        .map(|workload| (workload.words[0].as_str(), workload.entries.len()))
        .collect();
    assert_eq!(workloads, [("size 1 KiB", 2), ("size 2 KiB", 1)]);
    assert!(
        test.workloads[0].entries[1].speed.is_some()
            && test.workloads[1].entries[0].speed.is_none()
    );
    let others: Vec<&str> = race.others.iter().map(|row| row.id.as_str()).collect();
    assert_eq!(others, ["versus/refused", "versus/lone-speed"]);
}

#[test]
fn trees_of_several_files_have_files_in_a_second() {
    let of_files = |contestant: &str, files: u64| {
        row("versus/copy", json!({"contestant": contestant, "files": files}), 1e8)
    };
    let rows = [of_files("flatout", 500), of_files("cp-a", 1)];
    let race = of(&rows);
    let told: Vec<Option<String>> = race.entries().map(Entry::files_text).collect();
    assert_eq!(told, [Some("5.00 kfiles/s".to_owned()), None]);
}

#[test]
fn losses_come_first_and_each_list_is_counted() {
    let mut failed = pair("flatout", "cat", 1024, [0.0; 3]);
    (failed.status, failed.median) = (Status::Failed, None);
    let rows = [
        pair("flatout", "dd", 1024, [1.38, 1.42, 1.47]),
        failed,
        pair("flatout", "dd", 2048, [0.99, 1.0, 1.02]),
        pair("flatout", "dd", 4096, [0.8, 0.9, 0.95]),
        pair("flatout", "cp", 4096, [0.5, 0.6, 0.7]),
        pair("xcp", "cp-a", 4096, [1.1, 1.21, 1.3]),
    ];
    let race = of(&rows);
    let ours = &race.pairs[0];
    assert_eq!(ours.heading, "flatout against its rivals");
    assert_eq!(ours.count(), "2 losses, 1 tie, 1 win, 1 without a figure");
    let ratios: Vec<Option<String>> = ours.pairs.iter().map(Pair::ratio).collect();
    let ratios: Vec<&str> = ratios.iter().map(|text| text.as_deref().unwrap_or("none")).collect();
    assert_eq!(ratios, ["0.600×", "0.900×", "1.00×", "1.42×", "none"]);
    assert_eq!(ours.pairs[3].interval().as_deref(), Some("[1.38, 1.47]"));
    assert_eq!(ours.pairs[3].work, ["copy", "size 1 KiB"]);
    assert_eq!(ours.pairs[4].interval(), None);
    assert!(race.pairs[1].heading.starts_with("the others against cp-a"));
    assert_eq!(race.pairs[1].count(), "0 losses, 0 ties, 1 win");
}

#[test]
fn of_several_trees_the_mean_against_the_fastest_of_each_is_told() {
    let of_tree = |rival: &str, corpus: &str, state: &str, ratio: f64| {
        let mut row = pair("flatout", rival, 1, [ratio; 3]);
        row.parameters.insert("corpus".to_owned(), json!(corpus));
        row.parameters.insert("cache_state".to_owned(), json!(state));
        row
    };
    let rows = [
        of_tree("xcp", "large", "hot", 2.0),
        of_tree("cpz", "large", "hot", 1.0),
        of_tree("cpz", "small-files", "hot", 4.0),
        of_tree("cpz", "large", "cold", 3.0),
    ];
    let count = of(&rows).pairs[0].count();
    assert!(count.ends_with("3 wins; warm, against the fastest, geometric mean 2.00"), "{count}");
}

#[test]
fn an_interval_decides_whatever_the_row_says() {
    for (interval, verdict) in [([0.8, 0.9, 1.2], Verdict::Tie), ([0.8, 0.9, 0.95], Verdict::Loss)]
    {
        let mut row = pair("flatout", "dd", 1, interval);
        row.audit.insert("result".to_owned(), json!("win"));
        assert_eq!(of(&[row]).pairs[0].pairs[0].verdict, verdict);
    }
}

#[test]
fn nothing_is_decided_without_an_interval() {
    let mut early = pair("flatout", "dd", 1, [0.8, 0.9, 1.2]);
    early.ci95 = None;
    early.audit.insert("result".to_owned(), json!("tie"));
    let rows = [early];
    let race = of(&rows);
    assert_eq!(race.pairs[0].count(), "0 losses, 0 ties, 0 wins, 1 undecided");
    assert_eq!(race.pairs[0].pairs[0].word(), "undecided");
}

#[test]
fn memory_that_may_be_inherited_is_an_upper_bound() {
    let mut row = row("versus/copy", json!({"contestant": "dd"}), 1.0);
    let facts = json!({"user_ns": 1000, "system_ns": 2000, "peak_memory_bytes": 2097152,
        "peak_memory_of": "may be inherited"});
    row.audit = facts.as_object().cloned().unwrap();
    let rows = [row];
    let race = of(&rows);
    let entry = &race.tests[0].workloads[0].entries[0];
    assert_eq!(entry.memory().as_deref(), Some("≤ 2.00 MiB"));
    assert_eq!(entry.cpu().as_deref(), Some("3.00 µs"));
}

#[test]
fn the_missing_and_the_incomparable_are_told_once() {
    let warned = |id: &str, parameters: Value, text: &str| Outcome {
        warnings: vec![Warning::new(warning::MISSING_RIVAL, text)],
        ..row(id, parameters, 0.0)
    };
    let incomparable =
        |name: &str| warned("versus/incomparable", json!({"against": "fio", "row": name}), "why");
    let mut missing = warned("versus/missing", json!({"rival": "xcp"}), "x");
    missing.audit.insert("package".to_owned(), "cargo install xcp".into());
    let rows = [
        missing,
        warned("versus/missing", json!({}), "only a sentence"),
        Outcome {
            warnings: vec![Warning::new("unsupported", "iperf3 is not raced: no network")],
            ..row("versus/missing", json!({"rival": "iperf3"}), 0.0)
        },
        incomparable("create"),
        incomparable("stat"),
    ];
    let race = of(&rows);
    assert_eq!(race.missing, ["xcp (cargo install xcp)", "only a sentence"]);
    assert_eq!(race.not_raced, ["iperf3 is not raced: no network"]);
    assert_eq!(race.incomparable, ["fio: create, stat: why"]);
}
