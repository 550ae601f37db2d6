//! Output compared with files that a person has looked at.

use flatout_report::{Format, Style, csv, render, summary};
use snapbox::{Assert, Data};

use crate::record;

fn same(actual: String, name: &str) {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    let expected = Data::read_from(std::path::Path::new(&path), None).raw();
    Assert::new().action_env("SNAPSHOTS").eq(Data::text(actual).raw(), expected);
}

#[test]
fn table_of_a_bench_at_80_columns() {
    same(render(&record("bench"), Format::Table, &Style::default()), "bench-80.txt");
}

#[test]
fn table_of_a_bench_at_60_columns() {
    let style = Style { width_columns: 60, ..Style::default() };
    same(render(&record("bench"), Format::Table, &style), "bench-60.txt");
}

#[test]
fn table_of_a_bench_at_120_columns_in_colour() {
    let style = Style { width_columns: 120, color: true, unicode: true };
    same(render(&record("bench"), Format::Table, &style), "bench-120-color.txt");
}

#[test]
fn table_of_a_bench_in_ascii() {
    let style = Style { width_columns: 100, color: false, unicode: false };
    let table = render(&record("bench"), Format::Table, &style);
    assert!(table.is_ascii());
    same(table, "bench-100-ascii.txt");
}

#[test]
fn table_of_hostile_text() {
    same(render(&record("hostile"), Format::Table, &Style::default()), "hostile-80.txt");
}

#[test]
fn table_of_a_disk() {
    same(render(&record("disk"), Format::Table, &Style::default()), "disk-80.txt");
    let style = Style { width_columns: 120, color: false, unicode: false };
    same(render(&record("disk"), Format::Table, &style), "disk-120-ascii.txt");
}

#[test]
fn markdown_and_lines_of_a_disk() {
    same(render(&record("disk"), Format::Markdown, &Style::default()), "disk.md");
    same(render(&record("disk"), Format::Csv, &Style::default()), "disk.csv");
}

#[test]
fn table_of_a_race() {
    same(render(&record("versus"), Format::Table, &Style::default()), "versus-80.txt");
    let style = Style { width_columns: 120, color: false, unicode: false };
    same(render(&record("versus"), Format::Table, &style), "versus-120-ascii.txt");
}

#[test]
fn markdown_lines_and_page_of_a_race() {
    same(render(&record("versus"), Format::Markdown, &Style::default()), "versus.md");
    same(render(&record("versus"), Format::Csv, &Style::default()), "versus.csv");
    same(render(&record("versus"), Format::Html, &Style::default()), "versus.html");
}

#[test]
fn table_of_nothing() {
    same(render(&record("empty"), Format::Table, &Style::default()), "empty-80.txt");
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
    same(render(&record("bench"), Format::Csv, &Style::default()), "bench.csv");
    same(render(&record("hostile"), Format::Csv, &Style::default()), "hostile.csv");
    same(render(&record("read"), Format::Csv, &Style::default()), "read.csv");
}

#[test]
fn markdown_of_a_bench() {
    same(render(&record("bench"), Format::Markdown, &Style::default()), "bench.md");
}

#[test]
fn markdown_of_a_write() {
    same(render(&record("write"), Format::Markdown, &Style::default()), "write.md");
}

#[test]
fn page_of_a_read() {
    same(render(&record("read"), Format::Html, &Style::default()), "read.html");
}

#[test]
fn page_of_hostile_text() {
    same(render(&record("hostile"), Format::Html, &Style::default()), "hostile.html");
}

#[test]
fn document_of_a_write() {
    same(render(&record("write"), Format::Json, &Style::default()), "write.json");
}

#[test]
fn metrics_of_a_disk_and_of_hostile_text() {
    same(render(&record("disk"), Format::OpenMetrics, &Style::default()), "disk.prom");
    same(render(&record("hostile"), Format::OpenMetrics, &Style::default()), "hostile.prom");
}

#[test]
fn go_lines_of_a_disk_a_race_and_hostile_text() {
    same(render(&record("disk"), Format::GoBench, &Style::default()), "disk.bench");
    same(render(&record("versus"), Format::GoBench, &Style::default()), "versus.bench");
    same(render(&record("hostile"), Format::GoBench, &Style::default()), "hostile.bench");
}

#[test]
fn fio_document_of_a_disk() {
    same(render(&record("disk"), Format::FioJson, &Style::default()), "disk.fio.json");
}

#[test]
fn lines_of_two_records() {
    let records = ["read", "write"].map(|name| (format!("{name}, \"x\""), record(name)));
    same(csv::documents(&records), "two.csv");
}
