//! Output compared with files that a person has looked at.

use flatout_report::{Format, Style, csv, render, summary};
use snapbox::{Assert, Data};

use crate::{FULL, record};

pub(crate) fn same(actual: String, name: &str) {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    let expected = Data::read_from(std::path::Path::new(&path), None).raw();
    Assert::new().action_env("SNAPSHOTS").eq(Data::text(actual).raw(), expected);
}

#[test]
fn table_of_a_bench_at_80_columns() {
    same(render(&record("bench"), Format::Table, &FULL), "bench-80.txt");
}

#[test]
fn table_of_a_bench_at_60_columns() {
    let style = Style { width_columns: 60, ..FULL };
    same(render(&record("bench"), Format::Table, &style), "bench-60.txt");
}

#[test]
fn table_of_a_bench_at_120_columns_in_colour() {
    let style = Style { width_columns: 120, color: true, ..FULL };
    same(render(&record("bench"), Format::Table, &style), "bench-120-color.txt");
}

#[test]
fn table_of_a_bench_in_ascii() {
    let style = Style { width_columns: 100, unicode: false, ..FULL };
    let table = render(&record("bench"), Format::Table, &style);
    assert!(table.is_ascii());
    same(table, "bench-100-ascii.txt");
}

#[test]
fn table_of_hostile_text() {
    same(render(&record("hostile"), Format::Table, &FULL), "hostile-80.txt");
}

#[test]
fn table_of_a_disk() {
    same(render(&record("disk"), Format::Table, &FULL), "disk-80.txt");
    let style = Style { width_columns: 120, unicode: false, ..FULL };
    same(render(&record("disk"), Format::Table, &style), "disk-120-ascii.txt");
}

#[test]
fn markdown_and_lines_of_a_disk() {
    same(render(&record("disk"), Format::Markdown, &FULL), "disk.md");
    same(render(&record("disk"), Format::Csv, &FULL), "disk.csv");
}

#[test]
fn table_of_a_race() {
    same(render(&record("versus"), Format::Table, &FULL), "versus-80.txt");
    let style = Style { width_columns: 120, unicode: false, ..FULL };
    same(render(&record("versus"), Format::Table, &style), "versus-120-ascii.txt");
}

#[test]
fn markdown_lines_and_page_of_a_race() {
    same(render(&record("versus"), Format::Markdown, &FULL), "versus.md");
    same(render(&record("versus"), Format::Csv, &FULL), "versus.csv");
    same(render(&record("versus"), Format::Html, &FULL), "versus.html");
}

#[test]
fn table_of_nothing() {
    same(render(&record("empty"), Format::Table, &FULL), "empty-80.txt");
}

#[test]
fn summary_of_a_read() {
    same(summary(&record("read").results[0]), "read-summary.txt");
}

#[test]
fn summary_of_a_write() {
    same(summary(&record("write").results[0]), "write-summary.txt");
}

#[test]
fn summary_of_hostile_text() {
    same(summary(&record("hostile").results[0]), "hostile-summary.txt");
}

#[test]
fn lines_for_a_spreadsheet() {
    same(render(&record("bench"), Format::Csv, &FULL), "bench.csv");
    same(render(&record("hostile"), Format::Csv, &FULL), "hostile.csv");
    same(render(&record("read"), Format::Csv, &FULL), "read.csv");
}

#[test]
fn markdown_of_a_bench() {
    same(render(&record("bench"), Format::Markdown, &FULL), "bench.md");
}

#[test]
fn markdown_of_a_write() {
    same(render(&record("write"), Format::Markdown, &FULL), "write.md");
}

#[test]
fn page_of_a_read() {
    same(render(&record("read"), Format::Html, &FULL), "read.html");
}

#[test]
fn page_of_hostile_text() {
    same(render(&record("hostile"), Format::Html, &FULL), "hostile.html");
}

#[test]
fn document_of_a_write() {
    same(render(&record("write"), Format::Json, &FULL), "write.json");
}

#[test]
fn metrics_of_a_disk_and_of_hostile_text() {
    same(render(&record("disk"), Format::OpenMetrics, &FULL), "disk.prom");
    same(render(&record("hostile"), Format::OpenMetrics, &FULL), "hostile.prom");
}

#[test]
fn go_lines_of_a_disk_a_race_and_hostile_text() {
    same(render(&record("disk"), Format::GoBench, &FULL), "disk.bench");
    same(render(&record("versus"), Format::GoBench, &FULL), "versus.bench");
    same(render(&record("hostile"), Format::GoBench, &FULL), "hostile.bench");
}

#[test]
fn fio_document_of_a_disk() {
    same(render(&record("disk"), Format::FioJson, &FULL), "disk.fio.json");
}

#[test]
fn lines_of_two_records() {
    let records = ["read", "write"].map(|name| (format!("{name}, \"x\""), record(name)));
    let named = records.each_ref().map(|(name, record)| (Some(name.as_str()), record));
    same(csv::document(&named), "two.csv");
}
