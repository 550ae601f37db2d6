//! No page is longer than 1 MiB, whatever the record; what it lost is said, and no more is lost than
//! must be.

use flatout_measure::record::Record;
use flatout_report::html::MOST_BYTES;

use crate::{FIXTURES, extract, page_of, record, sample};

fn page_within_bounds(record: &Record) -> String {
    let page = page_of(record);
    assert!(page.len() <= MOST_BYTES, "{} bytes", page.len());
    assert!(page.trim_end().ends_with("</html>"));
    page
}

fn said(page: &str) -> Option<&str> {
    let (_, rest) = page.split_once("id=\"left-out\">")?;
    rest.split_once("</p>").map(|(sentence, _)| sentence)
}

#[test]
fn usual_records_lose_nothing() {
    let stored = FIXTURES.iter().map(|name| record(name));
    for record in stored.chain([sample::everything()]) {
        assert_eq!(said(&page_within_bounds(&record)), None, "{:?}", record.start.argv);
    }
}

#[test]
fn a_thousand_rows_keep_their_record() {
    let record = sample::long(1000, 0, 8);
    let page = page_within_bounds(&record);
    assert_eq!(extract(&page), Some(record));
    assert!(said(&page).expect("something is missing").contains("rows of tables"));
    assert!(page.contains("<td class=\"number\"><b>"));
}

#[test]
fn every_link_within_a_long_page_leads_somewhere() {
    let mut record = sample::long(1000, 0, 8);
    for (at, row) in record.results.iter_mut().enumerate() {
        row.warn(&format!("code_{at}"), "a sentence of its own");
    }
    let page = page_within_bounds(&record);
    assert!(said(&page).expect("something is missing").contains("notes beyond the first"));
    let targets = page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next());
    let dead: Vec<&str> =
        targets.filter(|target| !page.contains(&format!("id=\"{target}\""))).collect();
    assert!(dead.is_empty(), "{dead:?}");
    assert!(page.contains("href=\"#left-out\""));
}

#[test]
fn curves_go_before_the_record_does() {
    let record = sample::long(100, 400, 8);
    let page = page_within_bounds(&record);
    let held = extract(&page).expect("a record without curves is a record");
    let without_curves = |mut record: Record| {
        record.results.iter_mut().for_each(|row| row.series.clear());
        record
    };
    assert_eq!(held, without_curves(record));
    let said = said(&page).expect("something is missing");
    assert!(said.contains("the curves over time of the embedded record"), "{said}");
    assert!(page.contains("data-chart=\"curve"));
}

#[test]
fn a_record_that_alone_is_too_long_is_left_out_and_this_is_said() {
    let record = sample::long(300, 0, 600);
    let page = page_within_bounds(&record);
    assert_eq!(extract(&page), None);
    let said = said(&page).expect("something is missing");
    assert!(said.contains("the record itself"), "{said}");
    assert!(page.contains("<table class=\"rows\">"));
}

#[test]
fn a_text_longer_than_a_page_leaves_a_page_that_says_so() {
    let mut record = sample::everything();
    record.start.environment["cpu_model"] = "<script>".repeat(50_000).into();
    let page = page_within_bounds(&record);
    assert!(said(&page).expect("everything is missing").contains("texts so long"));
    assert!(!page.contains("<script>"));
}
