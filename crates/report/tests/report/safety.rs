//! What must hold for any record, whatever its text: nothing unsafe gets out, nothing gets lost.

use flatout_measure::record::{Ceiling, Outcome, Record, Status, Warning};
use flatout_report::{Format, Identity, Style, render, summary, text::visible};
use proptest::prelude::*;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use crate::{FIXTURES, FULL, extract, page_of, page_with, record};

/// Characters that could act on a terminal, line feeds between lines excepted.
fn unsafe_characters(output: &str) -> Vec<char> {
    output.chars().filter(|c| *c != '\n' && visible(&c.to_string()) != c.to_string()).collect()
}

fn assert_safe(record: &Record, style: &Style) {
    for format in Format::ALL {
        let mut output = render(record, format, style);
        if format == Format::Csv {
            output = output.replace("\r\n", "\n");
        }
        assert_eq!(unsafe_characters(&output), [], "{format}");
    }
    for outcome in &record.results {
        assert_eq!(unsafe_characters(&summary(outcome)), []);
    }
}

/// Whether the line is one that is never broken, so that it can be copied.
fn is_for_a_shell(record: &Record, line: &str) -> bool {
    let commands = record.results.iter().filter_map(|row| row.fact_text("fio_command"));
    commands.map(|command| visible(command.trim())).any(|command| line.trim() == command.trim())
}

fn assert_narrow(record: &Record, style: &Style) {
    for line in render(record, Format::Table, style).lines() {
        if is_for_a_shell(record, line) {
            continue;
        }
        assert!(line.width() <= style.width_columns, "{} columns: {line:?}", style.width_columns);
        assert_eq!(line.trim_end(), line, "space at the end");
    }
}

#[test]
fn fixtures_are_shown_safely_at_any_width() {
    for name in FIXTURES {
        let record = record(name);
        for width_columns in [40, 41, 60, 80, 99, 120, 200, 1000] {
            for unicode in [true, false] {
                let style = Style { width_columns, unicode, ..FULL };
                assert_narrow(&record, &style);
                assert!(unicode || render(&record, Format::Table, &style).is_ascii());
            }
        }
        assert_safe(&record, &FULL);
    }
}

#[test]
fn a_fact_with_a_long_name_makes_no_line_wider() {
    let mut record = record("read");
    record.results[0].audit.insert("long_name_".repeat(20), "a fact".into());
    for width_columns in [40, 80] {
        assert_narrow(&record, &Style { width_columns, ..FULL });
    }
}

#[test]
fn a_narrow_table_goes_on_below_before_it_cuts_names() {
    let at =
        |width_columns| render(&record("bench"), Format::Table, &Style { width_columns, ..FULL });
    for narrow in [at(60), at(40)] {
        for cut in ["paramet\n", "parameter\n", "sequent ", "function-c\n"] {
            assert!(!narrow.contains(cut), "{cut:?}: {narrow}");
        }
        assert!(narrow.lines().all(|line| line.trim() != ","));
    }
    for head in ["operations", "limit", "p99.99"] {
        assert!(at(40).contains(head), "{head}");
    }
}

#[test]
fn no_page_breaks_a_line_for_a_shell_or_hides_the_audit() {
    let record = record("disk");
    let commands: Vec<&str> =
        record.results.iter().filter_map(|row| row.fact_text("fio_command")).collect();
    for width_columns in [40, 80, 200] {
        let style = Style { width_columns, ..FULL };
        let table = render(&record, Format::Table, &style);
        for command in &commands {
            assert_eq!(table.matches(&format!("\n  {command}\n")).count(), 1, "{table}");
        }
    }
    // What goes into a pipe has 80 columns: every column of the audit must fit there.
    let piped = render(&record, Format::Table, &FULL);
    for head in ["asked", "by disk", "splits", "CPU/op", "CPU s/GiB", "overhead", "I/O wait"] {
        assert!(piped.contains(head), "{head}");
    }
}

#[test]
fn lines_of_many_charts_are_cut_and_counted() {
    let mut record = record("disk");
    let mut row = record.results.pop().unwrap();
    for depth in 100..110 {
        row.parameters.insert("depth".to_owned(), depth.into());
        row.audit.insert("fio_command".to_owned(), format!("fio --iodepth={depth}").into());
        record.results.push(row.clone());
    }
    let table = render(&record, Format::Table, &FULL);
    assert!(table.contains("\n  # 9 more lines of charts: --format html, csv and json"), "{table}");
    let page = page_of(&record);
    assert!((100..110).all(|depth| page.contains(&format!("<code>fio --iodepth={depth}</code>"))));
}

#[test]
fn colour_changes_nothing_but_colour() {
    for name in FIXTURES {
        let record = record(name);
        let plain = Style { width_columns: 100, ..FULL };
        let colored = render(&record, Format::Table, &Style { color: true, ..plain });
        let mut stripped = String::new();
        for (index, piece) in colored.split("\x1b[").enumerate() {
            let rest = if index == 0 { Some(piece) } else { piece.split_once('m').map(|(_, r)| r) };
            stripped.push_str(rest.expect("every sequence is a colour"));
        }
        assert_eq!(stripped, render(&record, Format::Table, &plain), "{name}");
    }
}

#[test]
fn documents_are_read_back_unchanged() {
    for name in FIXTURES {
        let record = record(name);
        let document = render(&record, Format::Json, &FULL);
        assert!(document.ends_with("}\n"));
        assert_eq!(serde_json::from_str::<Record>(&document).unwrap(), record, "{name}");
    }
}

#[test]
fn every_line_of_csv_has_as_many_fields() {
    for name in FIXTURES {
        let csv = render(&record(name), Format::Csv, &FULL);
        let counts: Vec<usize> = csv.split_terminator("\r\n").map(fields).collect();
        assert!(counts.iter().all(|count| *count == counts[0]), "{name}: {counts:?}");
        assert_eq!(counts.len(), record(name).results.len() + 1);
    }
}

#[test]
fn facts_of_a_read_have_columns_and_those_of_a_bench_have_none() {
    let csv = render(&record("read"), Format::Csv, &FULL);
    let heads = csv.lines().next().unwrap();
    for fact in ["bytes", "blocks", "seconds", "passes", "digest_xor32"] {
        assert!(heads.contains(&format!(",audit_{fact}")), "{heads}");
    }
    assert!(!heads.contains("audit_warmup_samples"), "lists are not written: {heads}");
    let bench = render(&record("bench"), Format::Csv, &FULL);
    assert!(!bench.contains("audit_"));
    let markdown = render(&record("write"), Format::Markdown, &FULL);
    assert!(markdown.contains("\n- digest: xor32 00ff10a2"), "{markdown}");
}

/// Number of fields by RFC 4180.
fn fields(line: &str) -> usize {
    let mut quoted = false;
    let commas = line.chars().filter(|c| {
        quoted ^= *c == '"';
        *c == ',' && !quoted
    });
    1 + commas.count()
}

#[test]
fn impossible_figures_are_printed_nowhere() {
    let mut record = record("bench");
    let row = record.results.iter_mut().find(|o| o.status == Status::Invalid).unwrap();
    (row.median, row.ci95) =
        (Some(987_654_321_000.0), Some([987_654_320_000.0, 987_654_322_000.0]));
    for format in [Format::Table, Format::Csv, Format::Markdown] {
        let output = render(&record, format, &FULL);
        assert!(!output.contains("987654") && !output.contains("941,900"), "{format}");
    }
}

/// Text with a liking for what hurts.
fn evil_text() -> impl Strategy<Value = String> {
    let evil = prop::sample::select(vec![
        "\x1b[2J",
        "\u{9b}",
        "\r\n",
        "\t",
        "\0",
        "</script>",
        "<!--",
        "]]>",
        "\"",
        "'",
        "|",
        ",",
        "\u{202e}",
        "\u{2028}",
        "é",
        "日本",
        "/home/x",
        " ",
        "a",
        "",
    ]);
    prop_oneof![
        "\\PC{0,30}",
        prop::collection::vec(evil, 0..12).prop_map(|parts| parts.concat()),
        any::<String>(),
    ]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let words = prop::collection::vec(evil_text(), 6);
    let samples = prop::collection::vec(-1e15..1e15_f64, 0..9);
    let status =
        prop::sample::select(vec![Status::Ok, Status::Unstable, Status::Failed, Status::Degraded]);
    (words, samples, status, any::<u32>()).prop_map(|(words, samples, status, number)| {
        let [id, key, value, unit, name, text] = <[String; 6]>::try_from(words).expect("six words");
        let mut outcome = Outcome {
            id,
            unit,
            median: samples.first().copied(),
            ci95: samples.get(1).map(|sample| [*sample, samples[0]]),
            n: samples.len() as u64,
            samples,
            status,
            warnings: vec![Warning::new(&name, text)],
            ceiling: Some(Ceiling { name: value.clone(), limiter: name, ..Ceiling::default() }),
            ..Outcome::default()
        };
        outcome.audit.insert(key.clone(), Value::from(value.clone()));
        outcome.audit.insert("fio_command".to_owned(), Value::from(key.clone()));
        outcome.audit.insert("disk_share_ratio".to_owned(), (f64::from(number) / 1e3).into());
        outcome.parameters.insert(key, Value::from(value));
        outcome.parameters.insert("block_bytes".to_owned(), number.into());
        outcome
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_shown_safely_and_kept_without_loss(
        results in prop::collection::vec(outcome(), 0..5),
        title in evil_text(),
        width_columns in 40_usize..160,
    ) {
        let mut record = record("hostile");
        record.start.argv = vec![title.clone()];
        let layer = |kind: &str| serde_json::json!({"kind": kind, "name": title, "options": title,
            "source": title, "backing": title, "upper": title, "model": title, "link": {"name": title}});
        record.start.environment = serde_json::json!({ title.clone(): title.clone(), "storage": [
            {"place": title, "nature": title, "layers": [layer("mount"), layer("loop"), layer(&title),
             layer("overlay"), layer("disk")], "limits": [{"group": title, "read_bytes_per_s": 1}]}] });
        record.end.errors = vec![title.clone()];
        for chart in &mut record.charts {
            chart.id = results.first().map_or_else(String::new, |outcome| outcome.id.clone());
            chart.title.clone_from(&title);
        }
        record.results = results;
        for (index, outcome) in record.results.iter_mut().enumerate().skip(1) {
            if index % 2 == 0 {
                outcome.id.clone_from(&record.charts[0].id);
            }
        }
        let style = Style { width_columns, ..FULL };
        assert_safe(&record, &style);
        assert_narrow(&record, &style);
        let page = page_with(&record, Identity::Shown);
        prop_assert_eq!(extract(&page), Some(record.clone()));
        prop_assert!(extract(&page_of(&record)).is_some());
        let document = render(&record, Format::Json, &style);
        prop_assert_eq!(&serde_json::from_str::<Record>(&document).unwrap(), &record);
    }
}
