//! The summary: one screen of any record, and what it says of those in `tests/fixtures`.

use flatout_measure::record::Record;
use flatout_report::{Extent, Format, Identity, Style, render};
use unicode_width::UnicodeWidthStr;

use crate::golden::same;
use crate::{FIXTURES, FULL, record};

const MOST_LINES: usize = 30;

fn summary(record: &Record, width_columns: usize) -> String {
    let style = Style { width_columns, extent: Extent::Summary, ..FULL };
    render(record, Format::Table, &style)
}

#[test]
fn a_summary_is_what_a_person_has_looked_at() {
    for name in FIXTURES {
        for width in [80, 100, 120] {
            same(summary(&record(name), width), &format!("summary-{name}-{width}.txt"));
        }
    }
}

#[test]
fn a_summary_of_each_area_is_what_a_person_has_looked_at() {
    for area in ["cache", "disk", "syscall", "cpu", "memory", "network", "copy"] {
        let mut record = record("whole");
        record.results.retain(|row| row.id.split('/').next() == Some(area));
        for width in [80, 100, 120] {
            same(summary(&record, width), &format!("summary-of-{area}-{width}.txt"));
        }
    }
}

#[test]
fn no_summary_is_longer_than_a_screen_or_wider_than_its_columns() {
    for name in FIXTURES {
        for width in [40, 60, 80, 100, 120, 200] {
            let shown = summary(&record(name), width);
            let widest = shown.lines().map(UnicodeWidthStr::width).max().unwrap_or(0);
            assert!(widest <= width, "{name} at {width}: {widest}\n{shown}");
            assert!(width < 80 || name == "hostile" || !shown.contains('…'), "{name}\n{shown}");
            let lines = shown.lines().count();
            assert!(lines <= MOST_LINES, "{name} at {width}: {lines} lines\n{shown}");
            assert_ne!(shown.matches("usual").count(), 1, "{name}: a legend of nothing\n{shown}");
        }
    }
}

#[test]
fn the_gravest_of_what_is_wrong_is_always_shown() {
    let graves = ["FAIL  ", "WARN  ", "NOTE  "];
    let areas = ["cache", "disk", "syscall", "cpu", "memory", "network", "copy"];
    let whole = record("whole");
    let of_areas = areas.map(|area| {
        let mut record = whole.clone();
        record.results.retain(|row| row.id.split('/').next() == Some(area));
        record
    });
    let many = whole.results.iter().find(|row| row.id == "disk/random-read").cloned().unwrap();
    let mut sweep = whole.clone();
    sweep.results = (0..8_u64)
        .map(|row| {
            let mut one = many.clone();
            one.parameters.insert("depth".to_owned(), (64 >> row).into());
            one
        })
        .collect();
    for record in FIXTURES.map(record).into_iter().chain(of_areas).chain([sweep]) {
        let full = render(&record, Format::Table, &Style { width_columns: 80, ..FULL });
        let grave = graves.iter().find(|grave| full.contains(*grave));
        for width in [40, 60, 80] {
            let shown = summary(&record, width);
            assert!(grave.is_none_or(|grave| shown.contains(grave)), "{grave:?}: {shown}");
        }
    }
}

#[test]
fn all_forms_say_the_same_lines() {
    let record = record("whole");
    let page = render(&record, Format::Html, &FULL);
    let markdown = render(&record, Format::Markdown, &FULL);
    for line in ["read IOPS, depth 1", "loopback round trip", "CPU peak, f64"] {
        assert!(summary(&record, 80).contains(line), "{line}");
        assert!(page.contains(line) && markdown.contains(line), "{line}");
    }
}

#[test]
fn what_is_usual_stands_in_a_column_and_cuts_nothing() {
    let record = record("whole");
    let earlier: Vec<Record> = (1..4_u64)
        .map(|seed| {
            let mut earlier = record.clone();
            earlier.start.seed = seed;
            earlier
        })
        .collect();
    let style = Style { extent: Extent::Summary, ..FULL };
    let shown =
        flatout_report::render_beside(&record, &earlier, Format::Table, &style, Identity::Hidden);
    assert!(shown.contains("usual: this machine in 3 other records"), "{shown}");
    assert!(shown.lines().count() <= MOST_LINES && !shown.contains('…'), "{shown}");
}
