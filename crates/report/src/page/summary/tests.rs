//! The lines of records made by hand.

use flatout_measure::record::{Ceiling, End, Start};
use flatout_measure::warning::{self, Warning};
use serde_json::{Value, json};

use super::*;

pub(super) fn row(id: &str, parameters: Value, median: Option<f64>) -> Outcome {
    let parameters = parameters.as_object().cloned().unwrap_or_default();
    let unit = "bytes/s".to_owned();
    let samples = median.into_iter().collect();
    Outcome { id: id.to_owned(), parameters, unit, median, samples, ..Outcome::default() }
}

pub(super) fn record(results: Vec<Outcome>) -> Record {
    let (tool, time) = ("flatout 0".to_owned(), String::new());
    let start = Start { tool, argv: Vec::new(), seed: 0, time, environment: json!({}) };
    Record { schema: String::new(), start, results, charts: vec![], end: End::default() }
}

fn names(results: Vec<Outcome>) -> Vec<(String, Option<f64>)> {
    let record = record(results);
    rows(&record).into_iter().map(|(name, row)| (name, row.median)).collect()
}

fn told(name: &str, median: f64) -> (String, Option<f64>) {
    (name.to_owned(), Some(median))
}

#[test]
fn many_areas_have_a_line_for_what_people_compare() {
    let rows = vec![
        row("cpu/throughput", json!({"type": "f32", "operation": "multiply-add"}), Some(9.0)),
        row("cpu/throughput", json!({"type": "f64", "operation": "multiply-add"}), Some(5.0)),
        row("cpu/throughput", json!({"type": "f64", "operation": "add"}), Some(7.0)),
        row("cpu/sustained", json!({}), Some(4.0)),
        row("disk/random-read", json!({"depth": 1, "block_bytes": 4096}), Some(1.0)),
        row("disk/random-read", json!({"depth": 256, "block_bytes": 4096}), Some(8.0)),
        row("disk/random-read", json!({"depth": 64, "block_bytes": 4096}), Some(3.0)),
        row("disk/sequential-read", json!({}), None),
        row("odd/test", json!({}), Some(2.0)),
    ];
    let expected = [
        told("CPU peak, f64", 5.0),
        told("read IOPS, depth 1", 1.0),
        told("read IOPS, depth 64", 3.0),
        told("odd/test", 2.0),
    ];
    assert_eq!(names(rows), expected);
    assert!(names(Vec::new()).is_empty());
}

#[test]
fn one_area_has_a_line_for_each_test() {
    let mut rows = vec![row("disk/stat", json!({"threads": 1}), Some(6.0))];
    rows.push(row("disk/sequential-write", json!({"until": "device"}), Some(4.0)));
    rows.push(row("disk/sequential-write", json!({"until": "durable"}), Some(2.0)));
    let few = names(rows.clone());
    assert_eq!(few.len(), 3, "all have room: {few:?}");
    rows.extend((0..40).map(|size| row("disk/read", json!({"size": size}), Some(f64::from(size)))));
    let many = names(rows);
    assert_eq!(many.len(), 3, "{many:?}");
    assert_eq!(many[2].1, Some(39.0));
}

#[test]
fn no_two_lines_of_a_summary_are_called_the_same() {
    let ids = ["disk/sequential-read", "cache/device-read", "syscall/read", "memory/stream"];
    let found = names(ids.map(|id| row(id, json!({}), Some(1.0))).to_vec());
    let disk: Vec<_> = found.iter().filter(|(name, _)| name.contains("read")).collect();
    assert_eq!(disk[0].0, "disk read");
    assert!(disk[1].0.starts_with("cache/"), "{found:?}");
}

#[test]
fn one_pair_that_has_no_line_is_counted_as_one() {
    let pair = |bytes: usize| {
        let pair = json!({"test": "copy", "subject": "flatout", "against": "cp", "bytes": bytes});
        row("versus/ratio", pair, Some(2.0))
    };
    let rows: Vec<Outcome> = (0..=MOST_LINES).map(pair).collect();
    let race = crate::page::race::race(&rows.iter().collect::<Vec<_>>());
    let (.., rest) = race::lines(&race);
    assert!(rest.ends_with("; 1 more pair"), "{rest}");
}

#[test]
fn without_a_line_it_is_said_why() {
    let of = |rows| nothing(&record(rows));
    assert_eq!(of(Vec::new()), "no results");
    assert_eq!(of(vec![row("cpu/x", json!({}), None)]), "no row has a figure");
    assert_eq!(of(vec![row("tune/read", json!({}), Some(1.0))]), "no settings were picked");
}

#[test]
fn rows_of_another_program_are_shown_as_far_as_there_is_room() {
    let rows = (0..20_000).map(|n| row("other/time", json!({ "n": n }), Some(1.0))).collect();
    let mut record = record(rows);
    // The best of each test is found once for all rows.
    assert_eq!(super::rows(&record).len(), 1);
    record.start.tool = "other 1.0".to_owned();
    let names: Vec<String> = super::rows(&record).into_iter().map(|(name, _)| name).collect();
    assert_eq!((names.len(), names[1].as_str()), (MOST_LINES, "time, n 1"));
}

#[test]
fn a_line_says_what_the_figure_is_worth() {
    let ceiling = Ceiling {
        name: "peak".to_owned(),
        value: Some(4.0),
        provenance: Provenance::Measured,
        ratio: Some(0.5),
        limiter: "the sender's CPU, then nothing".to_owned(),
    };
    let mut row = Outcome {
        status: Status::Unstable,
        ci95: Some([1e9, 3e9]),
        ceiling: Some(ceiling.clone()),
        ..row("network/tcp-throughput", json!({}), Some(2e9))
    };
    let told = line("TCP", &row);
    assert_eq!((told.figure.as_str(), told.share), ("1,907 MiB/s", Some(0.5)));
    assert_eq!((told.word, told.bottleneck.as_str()), ("noisy", "sender's CPU"));
    let best_seen = Ceiling { provenance: Provenance::BestSeen, ..ceiling };
    row.ceiling = Some(best_seen);
    assert_eq!(line("TCP", &row).share, None);
    row.warnings = vec![Warning::new(warning::LOOPBACK, "")];
    assert_eq!(names(vec![row.clone()])[0].0, "loopback TCP");
    row.warnings = vec![Warning::new(warning::ONE_MACHINE, "")];
    assert_eq!(names(vec![row])[0].0, "one machine, TCP");
}

#[test]
fn what_speaks_against_a_figure_is_said_first_and_what_limits_it_next() {
    let told = || SummaryLine {
        word: "few trials",
        usual: "1–2".to_owned(),
        bottleneck: "device".to_owned(),
        remarks: vec!["p99 1 ms".to_owned()],
        ..SummaryLine::default()
    };
    let shown = |others: usize| {
        let lines = std::iter::once(told()).chain((0..others).map(|_| SummaryLine::default()));
        let mut section = Section::new(Part::Summary, "");
        push(&mut section, HEADS, &lines.collect::<Vec<_>>(), "");
        let Some((_, Block::Table(table))) = section.blocks.pop() else { panic!("no table") };
        let last = |table: &Table| table.rows[0].cells.last().map(|cell| cell.text.clone());
        (table.columns.len(), last(&table), table.narrow.and_then(|narrow| last(&narrow)))
    };
    let all = Some("few trials; device; usual 1–2; p99 1 ms".to_owned());
    let beside = Some("few trials; device; p99 1 ms".to_owned());
    assert_eq!(shown(2), (5, beside, all), "one of three has a column");
}

#[test]
fn a_figure_of_one_or_two_trials_says_so() {
    let of = |trials: usize, ci95| {
        let samples = vec![2.0; trials];
        line("x", &Outcome { samples, ci95, ..row("cpu/sustained", json!({}), Some(2.0)) }).word
    };
    let few = [of(1, None), of(2, None)];
    assert_eq!(few, [label::FEW_TRIALS; 2]);
    assert_eq!([of(3, None), of(2, Some([1.0, 3.0])), of(0, None)], [""; 3]);
}

#[test]
fn a_copy_of_many_files_is_told_in_files() {
    let mut row = row("copy/by-count", json!({"files": 500, "file_bytes": 4096}), Some(1e7));
    row.unit = "ns".to_owned();
    row.audit.insert("files_per_s".to_owned(), json!(36_487.0));
    assert_eq!(line("copy", &row).figure, "36.5 kfiles/s");
}

#[test]
fn a_bottleneck_is_told_by_its_first_statement() {
    let known = [
        ("the device, or what lies before it", "device"),
        (
            "contention by an SMT sibling in 76 % of the probes, then x",
            "contention by an SMT sibling",
        ),
        ("kernel entry and exit, mitigations included", "kernel entry and exit"),
        ("work in the call", "work in the call"),
        ("", ""),
    ];
    known.iter().for_each(|(whole, short)| assert_eq!(gist(whole), *short));
}

#[test]
fn a_figure_that_is_not_of_what_its_line_says_has_a_word_for_it() {
    let doubted = |code: &str| Outcome {
        warnings: vec![Warning::new(code, "why")],
        samples: vec![2.0; 5],
        ..row("memory/stream", json!({"kernel": "triad"}), Some(2.0))
    };
    assert_eq!(line("memory", &doubted(warning::FITS_IN_CACHE)).word, "in cache");
    let mut either = doubted(warning::FITS_IN_CACHE);
    either.audit.insert("level".to_owned(), json!("last cache or DRAM"));
    assert_eq!(line("memory", &either).word, "last cache or DRAM");
    assert_eq!(line("memory", &doubted(warning::NOT_HOT)).word, "not cached");
    assert_eq!(line("memory", &doubted(warning::OUTLIERS)).word, "");
}

#[test]
fn the_latency_of_a_cache_is_not_that_of_memory() {
    let with = |bytes: u64, level: Value, codes: &[&str]| {
        let mut row = row("memory/latency", json!({"working_set_bytes": bytes}), Some(9.0));
        row.audit = json!({"level": level}).as_object().unwrap().clone();
        row.warnings = codes.iter().map(|code| Warning::new(code, "why")).collect();
        row
    };
    let others = || {
        ["cpu/linpack", "disk/sequential-read", "syscall/getppid"]
            .map(|id| row(id, json!({}), Some(1.0)))
    };
    let has_line = |row: Outcome| {
        let rows = others().into_iter().chain([row]).collect();
        names(rows).iter().any(|(name, _)| name == "memory latency")
    };
    assert!(has_line(with(1 << 27, json!("DRAM"), &[])));
    assert!(has_line(with(1 << 27, json!("unknown"), &[])));
    assert!(!has_line(with(1 << 24, json!("L3"), &[])));
    assert!(!has_line(with(1 << 24, json!("unknown"), &[warning::SIZE_REDUCED])));
    let named = |sets: &[(u64, &str)]| {
        let rows =
            sets.iter().map(|(bytes, level)| with(*bytes, json!(level), &[warning::SIZE_REDUCED]));
        names(others().into_iter().chain(rows).collect()).pop().unwrap().0
    };
    assert_eq!(named(&[(1 << 14, "L1"), (1 << 22, "L2")]), "L1 latency");
    let unknown = named(&[(1 << 14, "unknown"), (1 << 22, "unknown")]);
    assert_eq!(unknown, "memory/latency, working set 16 KiB");
}

#[test]
fn ranges_of_other_records_are_not_said_to_be_worked_out() {
    let from = |told: [&str; 2]| {
        let line = |origin: &str| SummaryLine {
            usual_origin: origin.to_owned(),
            ..SummaryLine::default()
        };
        origins(&told.map(line))
    };
    let parts = "usual: worked out from the machine's parts; --verbose says how";
    assert_eq!(from(["80 % of a peak", "DRAM answers"]), parts);
    assert_eq!(from(["DRAM answers", ""]), "usual: DRAM answers");
    let records = ["this machine in 2 other records", "this machine in 3 other records"];
    assert_eq!(from(records), "usual: from other records of this machine; --verbose says how");
    assert_eq!(
        from([records[0], "DRAM answers"]),
        "usual: from other records of this machine, or worked out from its parts; --verbose says how"
    );
}

#[test]
fn lines_of_tune_say_which_of_several_directories_they_are_of() {
    let names = |places: &[Value]| {
        let rows = places.iter().map(|place| {
            let mut row = row("tune/copy", place.clone(), Some(1.0));
            row.parameters.insert("file_bytes".to_owned(), json!(4096));
            row.audit.insert("chosen".to_owned(), json!(true));
            row
        });
        let (_, lines, rest) = tuned::lines(&record(rows.collect()));
        let names: Vec<String> = lines.into_iter().map(|line| line.name).collect();
        (names, rest)
    };
    let both = json!({"source_place": 1, "target_place": 2});
    let (told, rest) = names(&[both, json!({"target_place": 2})]);
    assert_eq!(told, ["copy 1 to 2, file 4 KiB", "copy 2, file 4 KiB"]);
    assert!(rest.contains("the directories, in the order given"), "{rest}");
    let many: Vec<Value> = (0..MOST_LINES + 2)
        .map(|place| json!({"source_place": 1, "target_place": place}))
        .collect();
    let (told, rest) = names(&many);
    assert_eq!(told.len(), MOST_LINES);
    assert!(rest.ends_with("; 2 more"), "{rest}");
    let one = (vec!["copy, file 4 KiB".to_owned()], String::new());
    assert_eq!(names(&[json!({})]), one);
}

#[test]
fn a_line_of_a_pair_says_that_one_of_both_had_less_to_do() {
    let of = |code: Option<&str>| {
        let work = json!({"test": "copy", "subject": "xcp", "against": "cp-a"});
        let mut pair = row("versus/ratio", work, Some(1.5));
        (pair.unit, pair.ci95) = ("ratio".to_owned(), Some([1.4, 1.6]));
        pair.warnings.extend(code.map(|code| Warning::new(code, "")));
        let race = crate::page::race::race(&[&pair]);
        let (_, lines, _) = race::lines(&race);
        format!("{} {}", lines[0].word, lines[0].bottleneck)
    };
    assert_eq!(of(None), "win ");
    assert_eq!(of(Some(warning::KEEPS_LESS)), "win one keeps less");
    assert_eq!(of(Some(warning::DONE_OTHERWISE)), "win done otherwise");
}

#[test]
fn of_several_ways_the_summary_names_the_fastest_behind_the_bottleneck() {
    let of = |ways: u64| {
        let audit = json!({"ways_compared": ways, "sender": "write", "placement": "together"});
        let mut row = row("network/tcp-throughput", json!({"streams": 1}), Some(2e9));
        row.audit = audit.as_object().cloned().unwrap();
        row.ci95 = Some([1.9e9, 2.1e9]);
        row.ceiling = Some(Ceiling::unknown("the link").limited_by("the path: a link or a queue"));
        let line = figures(&record(vec![row]), &[]).remove(0);
        (line.bottleneck, line.remarks.concat())
    };
    let told = |ways: &str| ("path".to_owned(), ways.to_owned());
    assert_eq!(of(8), told("fastest of 8 ways: write, together"));
    assert_eq!(of(1), told(""), "nothing was compared");
}
