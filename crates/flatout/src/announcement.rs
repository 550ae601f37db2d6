//! How it is announced what a run will write.

use flatout_bench::{slowdown, tried};
use flatout_report::quantity;

/// A machine that is no slower than this gets its work done as it was tried.
const QUIET: f64 = 1.2;
/// Beside other programs, which come and go, up to so many times as much or as little is written (0.4 to 1.9
/// times as much as was likely, in 16 runs beside six loops and a writer on 2 CPUs, 2026-11-28). So it is in a
/// short time: 0.3 to 1.8 times in 8 runs of `versus cp-a` in 6 and 8 s, 0.7 to 1.4 in 6 of `tune` in 6 s (the
/// same machine and day).
const ROUGH_PART: f64 = 1.5;
const TENTH_NS: u64 = 100_000_000;
/// Of so few tenths of a second, one matters.
const FEW_TENTHS: u64 = 100;

/// How long it likely takes: whole seconds, of a few of them tenths.
pub fn time(time_ns: u64) -> String {
    let tenths = time_ns.div_ceil(TENTH_NS);
    match tenths < FEW_TENTHS && !tenths.is_multiple_of(10) {
        true => format!("{}.{} s", tenths / 10, tenths % 10),
        false => format!("{} s", time_ns.div_ceil(10 * TENTH_NS)),
    }
}

/// What is likely written, with what was tried already, and at most; roughly where as much is written as time
/// allows, and that depends on how fast a few things turn out to be.
pub fn written(likely_bytes: u64, most_bytes: u64, is_rough: bool) -> String {
    written_at(|speed| (likely_bytes as f64 * speed) as u64, most_bytes, is_rough)
}

/// The same of what does not grow with how fast things turn out to be: `bytes_at` tells what is written where
/// they are so many times as fast as is likely.
pub fn written_at(bytes_at: impl Fn(f64) -> u64, most_bytes: u64, is_rough: bool) -> String {
    let is_rough = is_rough || slowdown::now() >= QUIET;
    text(|speed| with_tried(bytes_at(speed)), with_tried(most_bytes), is_rough)
}

/// The most that may be written with that, where it is clearly more than is expected.
pub fn at_most(likely_bytes: u64, most_bytes: u64) -> String {
    let most_bytes = with_tried(most_bytes);
    match is_clearly_more(most_bytes, with_tried(likely_bytes)) {
        true => format!(" (at most {})", quantity::rounded_size(most_bytes)),
        false => String::new(),
    }
}

fn with_tried(bytes: u64) -> u64 {
    bytes.saturating_add(tried::written_bytes())
}

fn is_clearly_more(most_bytes: u64, likely_bytes: u64) -> bool {
    most_bytes > likely_bytes.saturating_add(likely_bytes / 20)
}

fn text(bytes_at: impl Fn(f64) -> u64, most_bytes: u64, is_rough: bool) -> String {
    let [least, likely, most] =
        [1.0 / ROUGH_PART, 1.0, ROUGH_PART].map(|speed| bytes_at(speed).min(most_bytes));
    let (least, most) = (least.min(likely), most.max(likely));
    if !is_rough || likely == most_bytes || !is_clearly_more(most, least) {
        return format!("about {}", quantity::rounded_size(likely));
    }
    format!("about {} to {}", quantity::rounded_size(least), quantity::rounded_size(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_few_seconds_tenths_are_announced() {
        let said = [0, 760, 1000, 1210, 4999, 9950, 61_200].map(|ms| time(ms * 1_000_000));
        assert_eq!(said, ["0 s", "0.8 s", "1 s", "1.3 s", "5 s", "10 s", "62 s"]);
    }

    #[test]
    fn where_it_is_rough_a_range_is_announced_unless_it_is_known_exactly() {
        const MIB: u64 = 1 << 20;
        let grown = |speed| (60.0 * MIB as f64 * speed) as u64;
        assert_eq!(text(grown, u64::MAX, false), "about 60 MiB");
        assert_eq!(text(grown, u64::MAX, true), "about 40 MiB to 90 MiB");
        assert_eq!(text(grown, 70 * MIB, true), "about 40 MiB to 70 MiB");
        assert_eq!(text(grown, 60 * MIB, true), "about 60 MiB");
        assert_eq!(text(|_| 60 * MIB, u64::MAX, true), "about 60 MiB");
        // What there is only time for where things are fast is more than that.
        let large = |speed| if speed > 1.2 { 1 << 30 } else { 60 * MIB };
        assert_eq!(text(large, u64::MAX, true), "about 60 MiB to 1 GiB");
    }
}
