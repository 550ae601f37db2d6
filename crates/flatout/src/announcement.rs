//! How it is announced what a run will write.

use flatout_bench::tried;
use flatout_report::quantity;

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

/// What is likely written, with what was tried already.
pub fn written(likely_bytes: u64) -> String {
    format!("about {}", quantity::rounded_size(with_tried(likely_bytes)))
}

/// The most that may be written with that, where it is clearly more than is expected.
pub fn at_most(likely_bytes: u64, most_bytes: u64) -> String {
    let [likely_bytes, most_bytes] = [likely_bytes, most_bytes].map(with_tried);
    match most_bytes > likely_bytes.saturating_add(likely_bytes / 20) {
        true => format!(" (at most {})", quantity::rounded_size(most_bytes)),
        false => String::new(),
    }
}

fn with_tried(bytes: u64) -> u64 {
    bytes.saturating_add(tried::written_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_few_seconds_tenths_are_announced() {
        let said = [0, 760, 1000, 1210, 4999, 9950, 61_200].map(|ms| time(ms * 1_000_000));
        assert_eq!(said, ["0 s", "0.8 s", "1 s", "1.3 s", "5 s", "10 s", "62 s"]);
    }
}
