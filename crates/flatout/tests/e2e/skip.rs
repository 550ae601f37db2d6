//! Skips that can be seen: a test that cannot run here says so, and why.
//!
//! The line goes to the terminal and to the file in `FLATOUT_SKIP_LOG`, which
//! `cargo xtask test` reads. A test that skips returns; it does not pass in silence.

use std::fs::OpenOptions;
use std::io::Write;

/// Leaves the test with a reason.
macro_rules! skip {
    ($($why:tt)*) => {{
        fn here() {}
        $crate::skip::record(std::any::type_name_of_val(&here), &format!($($why)*));
        return;
    }};
}

/// The value, or leaves the test with the reason why there is none.
macro_rules! needs {
    ($what:expr) => {
        match $what {
            Ok(value) => value,
            Err(reason) => $crate::skip::skip!("{reason}"),
        }
    };
}

pub(crate) use {needs, skip};

/// Writes down that the test that contains `marker` was skipped. Called by the macros.
pub fn record(marker: &str, reason: &str) {
    let name = marker.trim_end_matches("::here");
    let reason = reason.replace('\n', "; ");
    println!("skipped {name}: {reason}");
    let Some(log) = std::env::var_os("FLATOUT_SKIP_LOG") else { return };
    let mut file = OpenOptions::new().append(true).create(true).open(&log).unwrap();
    // One write, so that lines of tests that run at once do not mix.
    file.write_all(format!("{name}: {reason}\n").as_bytes()).unwrap();
}

#[test]
fn a_skip_is_named_after_its_test() {
    fn here() {}
    let marker = std::any::type_name_of_val(&here);
    assert_eq!(
        marker.trim_end_matches("::here"),
        "e2e::skip::a_skip_is_named_after_its_test",
        "the list of skips is written in these names"
    );
}
