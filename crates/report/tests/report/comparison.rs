//! Comparisons in every form: golden files, and what must hold for any of them.

use flatout_measure::comparison::noise::{Noise, learn};
use flatout_measure::comparison::{Question, Runs, compare};
use flatout_measure::record::{Better, Chart, Outcome, Record, Status};
use flatout_report::comparison::{Document, FORMATS, render};
use flatout_report::text::visible;
use flatout_report::{Extent, Format, Style};
use serde_json::{Value, json};
use snapbox::{Assert, Data};
use unicode_width::UnicodeWidthStr;

use crate::{FULL, record};

/// The text with numbers of ten digits at most: the last ones of logarithms differ between CPUs,
/// whose mathematical library takes the instructions that they have.
fn rounded(text: &str) -> String {
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | 'e');
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, number) = rest.split_at(start);
        let end = number.find(|c| !is_number(c)).unwrap_or(number.len());
        out.push_str(before);
        match number[..end].parse::<f64>() {
            Ok(value) if end > 12 => out.push_str(&format!("{value:.9e}")),
            _ => out.push_str(&number[..end]),
        }
        rest = &number[end..];
    }
    out + rest
}

fn same(actual: String, name: &str) {
    let actual = rounded(&actual);
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    let expected = Data::read_from(std::path::Path::new(&path), None).raw();
    Assert::new().action_env("SNAPSHOTS").eq(Data::text(actual).raw(), expected);
}

fn held(old: &[Record], new: &[Record], question: &Question) -> Document {
    let old = Runs { name: "old.json", records: old };
    let comparison = compare(old, Runs { name: "new.json", records: new }, question);
    Document::new("flatout 0.1.0", vec![comparison], Vec::new(), 1)
}

fn row(id: &str, level: f64, spread: f64) -> Outcome {
    let steps = (0..12).map(|k| f64::from(k * 5 % 12) - 5.5);
    let samples: Vec<f64> = steps.map(|step| level * (1.0 + spread * step / 10.0)).collect();
    Outcome {
        id: id.to_owned(),
        parameters: [("block_bytes", 4096), ("threads", 2)]
            .map(|(k, v)| (k.to_owned(), json!(v)))
            .into_iter()
            .collect(),
        unit: "bytes/s".to_owned(),
        median: Some(level),
        n: 12,
        samples,
        ..Outcome::default()
    }
}

/// A run with a row of each kind, at these levels.
fn run(cpus: u32, level: f64) -> Record {
    let mut run = record("empty");
    run.start.environment = json!({"cpu_model": "Example Xeon", "cpus_online": 2,
        "memory_bytes": 8_u64 << 30, "cpus_allowed": cpus, "governor": null,
        "mitigations": {"retbleed": "Mitigation: Enhanced IBRS"}});
    let lower = |row: Outcome| Outcome { unit: "ns".to_owned(), better: Better::Lower, ..row };
    let failed = Status::Failed;
    run.results = vec![
        row("cache/block-sweep", 8e9 * level, 0.02),
        lower(row("memory/latency", 80.0 * level, 0.02)),
        row("disk/sequential-read", 1.5e9, 0.02),
        row("disk/random-read", 3e8, 0.9),
        Outcome { samples: vec![1e6, 1.1e6], n: 2, ..row("syscall/read", 1e6, 0.0) },
        Outcome { samples: Vec::new(), n: 0, ..row("memory/roofline", 4e9, 0.0) },
        Outcome { status: failed, median: None, samples: Vec::new(), ..row("disk/trim", 1.0, 0.1) },
    ];
    if cpus == 1 {
        run.results.push(row("network/tcp-throughput", 2e9, 0.02));
    } else {
        run.results.push(row("cache/thread-sweep", 2e9, 0.02));
    }
    run
}

/// Five runs with levels around this one.
fn runs(cpus: u32, level: f64) -> Vec<Record> {
    let swing = |index: usize| if index.is_multiple_of(2) { 1.0 } else { 1.7 };
    let mut runs: Vec<Record> =
        (0..5).map(|k| run(cpus, level * (1.0 + 0.004 * f64::from(k)))).collect();
    for (index, run) in runs.iter_mut().enumerate() {
        for row in run.results.iter_mut().filter(|row| row.id == "disk/random-read") {
            row.samples.iter_mut().for_each(|sample| *sample *= swing(index + cpus as usize));
        }
    }
    runs
}

fn example() -> Document {
    held(&runs(2, 1.0), &runs(1, 0.7), &Question::default())
}

/// The page of one that has rows of every verdict.
pub(crate) fn page() -> String {
    render(&example(), Format::Html, &FULL)
}

#[test]
fn a_page_draws_the_sweeps_of_both_sides_in_one_picture() {
    let side = |level: f64| {
        let mut side = run(2, 1.0);
        side.results = [4096, 8192, 16384]
            .map(|bytes| {
                let mut row = row("disk/sequential-read", level * f64::from(bytes), 0.02);
                row.parameters.insert("block_bytes".to_owned(), json!(bytes));
                row
            })
            .into();
        let chart =
            Chart::new("Read rate by block size", "disk/sequential-read", "block_bytes", &[]);
        side.charts = vec![chart];
        side
    };
    let document = held(&[side(1e5)], &[side(1e4)], &Question::default());
    let page = render(&document, Format::Html, &FULL);
    let picture = &page[page.find("<figure").expect("a picture")..];
    let picture = &picture[..picture.find("</figure>").expect("its end")];
    for word in ["Read rate by block size", "OLD", "NEW", "<svg"] {
        assert!(picture.contains(word), "{word}: {picture}");
    }
    let table = render(&document, Format::Table, &FULL);
    assert!(!table.contains("Read rate"), "a terminal has no room for so many lines: {table}");
}

#[test]
fn several_comparisons_on_a_page_give_no_name_twice() {
    let mut document = example();
    document.comparisons.extend(example().comparisons);
    let page = render(&document, Format::Html, &FULL);
    let mut names: Vec<&str> =
        page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "{names:?}");
    assert_eq!(page.matches("<b>5,383 MiB/s</b>").count(), 2, "each has its summary");
}

#[test]
fn a_summary_names_what_differs_and_a_quota_that_is_not_set_is_none() {
    let with = |quota: Value| {
        let mut side = run(2, 1.0);
        side.start.environment["cpu_quota_cpus"] = quota;
        side.start.environment["load_average"] = json!([0.1, 0.1, 0.1]);
        vec![side]
    };
    let shown = |new: &[Record], extent| {
        let document = held(&with(Value::Null), new, &Question::default());
        render(&document, Format::Table, &Style { extent, ..FULL })
    };
    let mut limited = with(json!(0.6));
    limited[0].start.environment["load_average"] = json!([4.0, 4.0, 4.0]);
    let summary = shown(&limited, Extent::Summary);
    assert!(summary.contains("\ndiffers: CPU quota CPUs\n"), "{summary}");
    let whole = shown(&limited, Extent::Full);
    assert!(whole.contains("CPU quota CPUs  none"), "{whole}");
    assert!(!shown(&with(Value::Null), Extent::Summary).contains("differs:"));
}

#[test]
fn a_summary_fits_a_screen_of_80_and_120_columns() {
    for width_columns in [80, 120] {
        let style = Style { width_columns, extent: Extent::Summary, ..FULL };
        let shown = render(&example(), Format::Table, &style);
        assert!(shown.lines().count() <= 30, "{shown}");
        same(shown, &format!("summary-compare-{width_columns}.txt"));
    }
}

#[test]
fn a_comparison_in_every_form_is_as_reviewed() {
    let document = example();
    let style = |width_columns, color, unicode| Style { width_columns, color, unicode, ..FULL };
    same(render(&document, Format::Table, &FULL), "compare-80.txt");
    same(render(&document, Format::Table, &style(120, true, true)), "compare-120-color.txt");
    same(render(&document, Format::Table, &style(50, false, false)), "compare-50-ascii.txt");
    same(render(&document, Format::Markdown, &FULL), "compare.md");
    same(render(&document, Format::Json, &FULL), "compare.json");
    // What the style of all pages is, their own golden files hold.
    let page = render(&document, Format::Html, &FULL);
    let (head, rest) = page.split_once("<style>").unwrap();
    let (_, body) = rest.split_once("</style>").unwrap();
    same(format!("{head}<style></style>{body}"), "compare.html");
}

#[test]
fn two_machines_and_learned_noise_are_said() {
    let old = [run(2, 1.0), run(2, 1.1), run(2, 0.95)];
    let noise = Some(Noise::of(&learn(&old).unwrap()));
    let noise = Question { threshold_ratio: None, noise };
    let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = words(render(&held(&old[..1], &old[1..2], &noise), Format::Table, &FULL));
    assert!(text.contains("known from 3 that compare --noise"), "{text}");
    let mut other = run(2, 1.0);
    other.start.environment["cpu_model"] = json!("Another");
    for form in [Format::Table, Format::Markdown, Format::Html] {
        let document = held(
            &old[..1],
            &[other.clone()],
            &Question { threshold_ratio: Some(0.03), noise: None },
        );
        let text = words(render(&document, form, &FULL));
        let (first, second) = (text.find("Two machines"), text.find("cache/block-sweep"));
        assert!(first.is_some() && first < second, "{text}");
        assert!(text.contains("as asked for"), "{text}");
    }
}

#[test]
fn an_error_and_nothing_are_shown_too() {
    let failed = Document::new("flatout", Vec::new(), vec!["cannot read <x>".to_owned()], 2);
    for form in FORMATS {
        let text = render(&failed, form, &FULL);
        assert!(text.contains("cannot read"), "{text}");
        assert!(form == Format::Json || form == Format::Table || !text.contains("<x>"), "{text}");
    }
    let empty = held(&[record("empty")], &[record("empty")], &Question::default());
    assert!(render(&empty, Format::Table, &FULL).contains("nothing matches"));
}

#[test]
fn hostile_text_is_shown_safely_in_every_form_at_any_width() {
    let hostile = || {
        let mut hostile = record("hostile");
        for (index, row) in hostile.results.iter_mut().enumerate() {
            row.samples = (0..8).map(|k| (index + 1) as f64 * (100.0 + f64::from(k))).collect();
            (row.status, row.median) = (Status::Ok, Some(1.0));
        }
        hostile
    };
    let mut other = hostile();
    other.start.environment = json!({"cpu_model": "\u{1b}[31m</script><script>alert(1)</script>|"});
    other.results.truncate(2);
    let evil = "\u{1b}[2J</script><img src=x>|`";
    let mut document = held(&[hostile()], &[other], &Question::default());
    document.comparisons[0].old.name = evil.to_owned();
    document.errors.push(evil.to_owned());
    for form in FORMATS {
        let text = render(&document, form, &FULL);
        let acts = |c: &char| *c != '\n' && visible(&c.to_string()) != c.to_string();
        assert_eq!(text.chars().filter(acts).collect::<String>(), "", "{form}");
    }
    let html = render(&document, Format::Html, &FULL);
    assert_eq!(html.matches("<script").count(), 1, "only the data");
    assert_eq!(html.matches("</script").count(), 1);
    assert!(!html.contains("<img"));
    let (_, data) = html.split_once("id=\"comparison\">").unwrap();
    let (data, _) = data.split_once("</script>").unwrap();
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!(data, serde_json::to_value(&document).unwrap(), "nothing is lost");
    for width_columns in [40, 41, 60, 80, 120, 300] {
        for unicode in [true, false] {
            let style = Style { width_columns, unicode, ..FULL };
            let text = render(&document, Format::Table, &style);
            assert!(unicode || text.is_ascii());
            for line in text.lines() {
                assert!(line.width() <= width_columns, "{width_columns}: {line:?}");
            }
        }
    }
}

#[test]
fn rows_with_long_names_leave_room_for_each_other_and_none_is_cut() {
    let mut slower = record("whole");
    for row in &mut slower.results {
        row.samples.iter_mut().for_each(|sample| *sample *= 0.8);
        row.median = row.median.map(|median| median * 0.8);
    }
    let slower_rows = slower.results.len();
    let document = held(&[record("whole")], &[slower], &Question::default());
    let style = Style { extent: Extent::Summary, ..FULL };
    let shown = render(&document, Format::Table, &style);
    assert!(shown.lines().count() <= 30 && !shown.contains('…'), "{shown}");
    assert!(shown.contains("uring, 4 KiB"), "{shown}");
    // Rows without a line are counted once, those that the screen cuts among them.
    let listed = shown.lines().filter(|line| line.ends_with("  unclear")).count();
    let more = shown.lines().filter_map(|line| line.trim().split_once(" more"));
    let more: usize = more.filter_map(|(rows, _)| rows.parse::<usize>().ok()).sum();
    assert_eq!(listed + more, slower_rows, "{shown}");
    for form in [Format::Table, Format::Html] {
        let whole = render(&document, form, &FULL);
        assert!(whole.contains("Gbit/s") && whole.contains("kIOPS"), "networks and disks");
    }
}
