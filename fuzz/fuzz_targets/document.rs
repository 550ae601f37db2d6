//! Feeds bytes to the reader of records: `cargo +nightly fuzz run document` in this repository's
//! root. What it takes for a record must come out in every form, and the document that is made of it
//! must be read back as the same record.

#![no_main]

use std::path::Path;

use flatout_report::{Format, Style, document, render, summary};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let record = match document::parse(bytes, Path::new("x")) {
        Ok(record) => record,
        Err(error) => {
            assert!(!error.to_string().contains('\n'));
            return;
        }
    };
    let style = Style { width_columns: 60, ..Style::default() };
    for format in Format::ALL {
        let shown = render(&record, format, &style);
        if format == Format::Json {
            let again = document::parse(shown.as_bytes(), Path::new("x"));
            assert_eq!(again.expect("what was written can be read"), record);
        }
    }
    for row in &record.results {
        summary(row);
    }
});
