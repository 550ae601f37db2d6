//! Races against a library and against STREAM, which are what the test makes them.

use std::fs;

use super::{Stable, rows};
use crate::bin::warnings;
use crate::schema::assert_valid;

const TABLE: &str = "echo 'Function    Best Rate MB/s  Avg time'; for one in Copy Scale Add Triad; do \
                     echo \"$one:           1000.5     0.1\"; done";

#[test]
fn the_table_of_stream_is_held_against_our_streams() {
    let stable = Stable::new();
    stable.rival("stream", &format!("{TABLE}; echo 'Solution Validates: avg error'"));
    let ran = stable.race(&["stream", "--max-time", "600s", "--format", "json"]);
    let document = ran.exits(0).document();
    assert_valid(&document);
    assert!(ran.stderr.contains("racing stream: 4 races, arrays in memory, takes"), "{ran}");
    let row = &rows(&document, "versus/stream")[1];
    // It went through a time, and may be rounded.
    let median = row["median"].as_f64().unwrap();
    assert!((median / 1000.5e6 - 1.0).abs() < 1e-12 && row["unit"] == "bytes/s", "{row:#}");
    let pairs = rows(&document, "versus/ratio");
    assert!(!pairs.is_empty());
    for row in [row, &pairs[0]] {
        assert!(warnings(row).contains(&"done_otherwise"), "nobody knows its threads: {row:#}");
    }
}

#[test]
fn a_stream_that_does_not_validate_and_a_library_that_is_none_fail_their_rows() {
    let stable = Stable::new();
    stable.rival("stream", &format!("{TABLE}; echo 'Failed Validation on array a[]'"));
    fs::write(stable.0.join("bin/libopenblas.so.0"), "no library").unwrap();
    let place = stable.0.join("place");
    let words = ["stream", "openblas", "--max-time", "600s", "--format", "json"];
    let libraries = stable.0.join("bin");
    let ran = stable.flatout(&place, &words).with(|command| {
        command.env("LD_LIBRARY_PATH", libraries);
    });
    let ran = ran.run();
    let document = ran.exits(1).document();
    assert!(ran.stderr.contains("stream printed no figure"), "{ran}");
    assert!(ran.stderr.contains("cannot load"), "{ran}");
    assert!(ran.stderr.contains("races, matrices in memory, arrays in memory, takes"), "{ran}");
    assert_eq!(fs::read_dir(&place).unwrap().count(), 0, "no race needs files");
    for row in rows(&document, "versus/ratio") {
        assert_eq!(row["status"], "failed", "{row:#}");
    }
}
