//! The page in a real browser: nothing is loaded, nothing complains, what is drawn is what the record
//! says, and hover, switches, dark colours, small screens and paper work without any script.
//!
//! One browser does it all, since starting it takes longer than looking at a page. Where Chromium is
//! not installed the test says so.

#[path = "browser/chromium.rs"]
mod chromium;
#[path = "browser/look.rs"]
mod look;

use std::{
    io::Write,
    panic::{AssertUnwindSafe, catch_unwind},
};

use chromium::Browser;
use flatout_measure::record::Record;
use serde_json::Value;

use crate::{comparison, page_of, record, sample};

/// Pages that every check looks at, each with its record: all pictures there are, a race, text that
/// means harm; and a comparison, which has none.
fn pages() -> Vec<(&'static str, String, Record)> {
    let names = ["whole", "bench", "disk", "tune", "versus", "read", "hostile", "empty"];
    let stored = names.into_iter().map(|name| (name, record(name)));
    let records = std::iter::once(("everything", sample::everything())).chain(stored);
    let mut pages: Vec<_> =
        records.map(|(name, record)| (name, page_of(&record), record)).collect();
    let mut none = record("empty");
    none.end.verdict.clear();
    pages.push(("comparison", comparison::page(), none));
    pages
}

type Check = fn(&mut Browser, &str, &Record);

/// In this order: the first wants what happened since the page was opened.
const CHECKS: [(&str, Check); 9] = [
    ("nothing is loaded and nothing complains", nothing_is_loaded),
    ("every picture has its values", look::every_picture_has_its_values),
    ("hover shows the value", look::hover_shows_the_value),
    ("switches hide and show", look::switches_hide_and_show),
    ("the axis can be changed", look::the_axis_can_be_changed),
    ("colours can be read", look::colours_can_be_read),
    ("no label lies on another", look::no_label_lies_on_another),
    ("a small screen has no scroll bar", look::a_small_screen_has_no_scroll_bar),
    ("paper has everything", look::paper_has_everything),
];

#[test]
fn pages_in_a_browser() {
    let mut browser = match Browser::start() {
        Ok(browser) => browser,
        Err(reason) => return skip(&reason),
    };
    let mut failures = Vec::new();
    for (name, page, record) in pages() {
        browser.set_width(1200);
        let url = browser.open(name, &page);
        for (check, run) in CHECKS {
            browser.set_width(1200);
            browser.set_media("screen", "light");
            let run = AssertUnwindSafe(|| run(&mut browser, &url, &record));
            if catch_unwind(run).is_err() {
                failures.push(format!("{name}: {check}"));
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Says that the test did not run, on the terminal and where `cargo xtask test` reads it.
fn skip(reason: &str) {
    println!("skipped report::browser::pages_in_a_browser: {reason}");
    let Some(log) = std::env::var_os("FLATOUT_SKIP_LOG") else { return };
    let mut log = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(log)
        .expect("the log of skips can be written");
    log.write_all(format!("report::browser::pages_in_a_browser: {reason}\n").as_bytes())
        .expect("the log of skips can be written");
}

/// The only request is the one for the page itself, and neither console nor log has a complaint.
fn nothing_is_loaded(browser: &mut Browser, url: &str, _: &Record) {
    // What the page would ask for late, for example for a picture that is scrolled to.
    browser.value("window.scrollTo(0, document.body.scrollHeight)");
    let requests: Vec<&str> = browser
        .events
        .iter()
        .filter(|event| event["method"] == "Network.requestWillBeSent")
        .filter_map(|event| event["params"]["request"]["url"].as_str())
        .collect();
    assert_eq!(requests, [url]);
    let complaints: Vec<&Value> = browser
        .events
        .iter()
        .filter(|event| {
            let method = event["method"].as_str().unwrap_or_default();
            ["Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"]
                .contains(&method)
        })
        .collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
    assert_eq!(browser.value("document.compatMode"), "CSS1Compat");
}
