//! Numbers for people: the only place where a base unit gets a prefix and loses digits.
//!
//! Binary prefixes for bytes, decimal ones for everything that is counted or timed; `flop/s` is
//! shown as FLOPS, and requests of a disk as IOPS, with their prefix. Three
//! significant digits, but whole numbers are never shortened; the comma separates thousands.

use flatout_measure::units::{self, separated};
pub use flatout_measure::units::{half, percent};

/// A divisor and the unit that it leads to, so that a whole column can share one.
#[derive(Debug, Clone, PartialEq)]
pub struct Scale {
    /// What a base value is divided by.
    pub divisor: f64,
    /// The unit afterwards, for example `MiB/s`; empty for bare numbers.
    pub unit: String,
}

impl Default for Scale {
    /// Bare numbers.
    fn default() -> Self {
        Self { divisor: 1.0, unit: String::new() }
    }
}

/// The largest rate shown in MiB/s; above it GiB/s is used.
const LARGEST_IN_MIB: f64 = 99_999.5 * MIB;
/// The least rate of a network shown in Gbit/s, the unit in which people compare them.
const LEAST_IN_GBIT: f64 = 1e7;
/// The unit of how many times as much; it stands at its number.
const TIMES: &str = "×";
const KIB: f64 = 1024.0;
const MIB: f64 = KIB * KIB;
const GIB: f64 = MIB * KIB;

/// Divisors with what stands for each, the largest first.
type Prefixes = [(f64, &'static str)];
const BINARY: &Prefixes = &[(GIB * KIB, "Ti"), (GIB, "Gi"), (MIB, "Mi"), (KIB, "Ki"), (1.0, "")];
const DECIMAL: &Prefixes = &[(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];
const TIMES_OF_NS: &Prefixes = &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];

/// The largest divisor that leaves one, or what is rounded to it.
fn prefix(prefixes: &Prefixes, value: f64, one: f64) -> (f64, &'static str) {
    let fits = |(divisor, _): &&(f64, &str)| value / divisor >= one;
    *prefixes.iter().find(fits).unwrap_or(&prefixes[prefixes.len() - 1])
}

/// What three digits round to 1.00.
const NEARLY_ONE: f64 = 0.9995;

impl Scale {
    /// The scale for values in `unit` of which `largest` is the largest magnitude.
    pub fn of(unit: &str, largest: f64) -> Self {
        let largest = largest.abs();
        let scale = |divisor: f64, unit: &str| Self { divisor, unit: unit.to_owned() };
        match unit {
            "bytes/s" if largest > LARGEST_IN_MIB => scale(GIB, "GiB/s"),
            "bytes/s" => scale(MIB, "MiB/s"),
            "bytes" if largest >= KIB => {
                let (divisor, prefix) = prefix(BINARY, largest, NEARLY_ONE);
                scale(divisor, &format!("{prefix}B"))
            }
            "bytes" => scale(1.0, "B"),
            "ns" => time_scale(largest, 1.0),
            "s" | "seconds" => time_scale(largest * 1e9, 1e9),
            "share" => scale(0.01, "%"),
            "ratio" => scale(1.0, TIMES),
            "operations/s" => decimal_prefix(largest, "op/s"),
            "flop/s" => decimal_prefix(largest, "FLOPS"),
            "IOPS" => decimal_prefix(largest, unit),
            "bit/s" if largest >= LEAST_IN_GBIT => scale(1e9, "Gbit/s"),
            "cycles" | "" => scale(1.0, unit),
            _ if unit.ends_with("/s") || unit == "Hz" => decimal_prefix(largest, unit),
            _ => scale(1.0, unit),
        }
    }

    /// The scale for a column: that of its largest finite value.
    pub fn of_all(unit: &str, values: impl IntoIterator<Item = f64>) -> Self {
        let largest =
            values.into_iter().filter(|v| v.is_finite()).fold(0.0_f64, |a, b| a.max(b.abs()));
        Self::of(unit, largest)
    }

    /// The bare number in this scale.
    pub fn number(&self, value: f64) -> String {
        match self.unit.as_str() {
            "B" if value.fract() == 0.0 => separated(&value.to_string()),
            _ => number(value / self.divisor),
        }
    }

    /// Number and unit.
    pub fn text(&self, value: f64) -> String {
        if self.unit.is_empty() || self.unit == TIMES {
            format!("{}{}", self.number(value), self.unit)
        } else {
            format!("{} {}", self.number(value), self.unit)
        }
    }
}

/// Scale of a time of `largest_ns`, for values of which `per_second` ÷ 1e9 make a nanosecond.
fn time_scale(largest_ns: f64, base_ns: f64) -> Scale {
    let (divisor_ns, unit) = prefix(TIMES_OF_NS, largest_ns, NEARLY_ONE);
    Scale { divisor: divisor_ns / base_ns, unit: unit.to_owned() }
}

fn decimal_prefix(value: f64, unit: &str) -> Scale {
    let (divisor, prefix) = prefix(DECIMAL, value, NEARLY_ONE);
    Scale { divisor, unit: format!("{prefix}{unit}") }
}

/// Both ends of a range with a word between them; one of two that read alike, and one unit where both
/// have it.
pub(crate) fn range(ends: (f64, f64), joint: &str, text: impl Fn(f64) -> String) -> String {
    let (low, high) = (text(ends.0), text(ends.1));
    let unit = high.find(' ').map_or("", |at| &high[at..]);
    match low.strip_suffix(unit) {
        _ if low == high => low,
        number => format!("{}{joint}{high}", number.unwrap_or(&low)),
    }
}

/// So many of something: `1 row`, `3 rows`.
pub fn counted(number: usize, noun: &str) -> String {
    units::counted(count(number as u64), noun)
}

/// A value in the scale that suits it alone, for example `12,345 MiB/s` or `85.2 ns`.
pub fn value(unit: &str, value: f64) -> String {
    Scale::of(unit, value).text(value)
}

/// A number with three significant digits, whole digits complete: `12,345`, `85.2`, `0.0123`.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "?".to_owned();
    }
    let magnitude = value.abs();
    if magnitude == 0.0 {
        return "0".to_owned();
    }
    let decimals = match magnitude {
        m if m >= 1e15 => return format!("{value:.2e}"),
        m if m >= 99.95 => 0,
        m if m >= 9.995 => 1,
        m if m >= 0.9995 => 2,
        m if m >= 1e-6 => 2 + (-m.log10()).ceil() as usize,
        _ => return format!("{value:.2e}"),
    };
    separated(&format!("{value:.decimals$}"))
}

/// A count with separated thousands.
pub fn count(value: u64) -> String {
    separated(&value.to_string())
}

/// A size that must stay exact, since it tells one row from another: `4 KiB`, `1.5 MiB`, `1,000 B`.
pub fn size(bytes: u64) -> String {
    let (divisor, prefix) = prefix(BINARY, bytes as f64, 1.0);
    let scaled = bytes as f64 / divisor;
    if divisor > 1.0 && bytes.is_multiple_of(divisor as u64 / 4) {
        return format!("{} {prefix}B", separated(&scaled.to_string()));
    }
    format!("{} B", count(bytes))
}

/// A number of bytes for reading: exact count, and the rounded size where that is shorter.
pub fn bytes(bytes: u64) -> String {
    let exact = units::counted(count(bytes), "byte");
    if (bytes as f64) < KIB { exact } else { format!("{exact} ({})", rounded_size(bytes)) }
}

/// A size for reading: exact where that is short, otherwise three digits: `7.75 GiB`.
pub fn rounded_size(bytes: u64) -> String {
    let exact = size(bytes);
    if exact.ends_with("iB") { exact } else { value("bytes", bytes as f64) }
}

/// What [`Outcome::half_width`](flatout_measure::record::Outcome::half_width) is, for the one place on a page that explains the sign `±`.
pub(crate) const PLUS_MINUS: &str =
    "half-width of the 95 % interval of the median, as a share of the median";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_stay_in_mib_until_they_get_long() {
        assert_eq!(value("bytes/s", 12_345.4 * MIB), "12,345 MiB/s");
        assert_eq!(value("bytes/s", 99_999.0 * MIB), "99,999 MiB/s");
        assert_eq!(value("bytes/s", 100_352.0 * MIB), "98.0 GiB/s");
        assert_eq!(value("bytes/s", 3.1e6), "2.96 MiB/s");
        assert_eq!(value("bytes/s", 12_800.0), "0.0122 MiB/s");
        assert_eq!(value("bytes/s", 0.0), "0 MiB/s");
    }

    #[test]
    fn few_bytes_are_whole_numbers() {
        assert_eq!(value("bytes", 6.0), "6 B");
        assert_eq!(value("bytes", 10.0), "10 B");
        assert_eq!(value("bytes", 2.5), "2.50 B");
        assert_eq!(value("bytes", 1536.0), "1.50 KiB");
        assert_eq!(value("bytes", 1_048_575.0), "1.00 MiB", "not 1,024 KiB");
        assert_eq!(value("bytes", 1_047_000.0), "1,022 KiB");
    }

    #[test]
    fn times_and_counts_get_decimal_prefixes() {
        assert_eq!(value("ns", 85.24), "85.2 ns");
        assert_eq!(value("ns", 999.6), "1.00 µs");
        assert_eq!(value("ns", 12_500_000.0), "12.5 ms");
        assert_eq!(value("s", 0.0005), "500 µs");
        assert_eq!(value("s", 75.0), "75.0 s");
        assert_eq!(value("operations/s", 3_912_000.0), "3.91 Mop/s");
        assert_eq!(value("operations/s", 950.0), "950 op/s");
        assert_eq!(value("flop/s", 45.2e9), "45.2 GFLOPS");
        assert_eq!(value("op/s", 1.5e12), "1.50 Top/s");
        assert_eq!(value("IOPS", 1.6e4), "16.0 kIOPS");
        assert_eq!(value("bit/s", 3.3e10), "33.0 Gbit/s");
        assert_eq!(value("bit/s", 4.74e8), "0.474 Gbit/s");
        assert_eq!(value("bit/s", 5e6), "5.00 Mbit/s");
        assert_eq!(value("share", 0.934), "93.4 %");
        assert_eq!(value("ratio", 1.4213), "1.42×");
        assert_eq!(value("ratio", 0.5), "0.500×");
        assert_eq!(value("Hz", 2.95e9), "2.95 GHz");
        assert_eq!(value("widgets", 7.0), "7.00 widgets");
    }

    #[test]
    fn sizes_stay_exact() {
        assert_eq!(size(1), "1 B");
        assert_eq!(size(4096), "4 KiB");
        assert_eq!(size(1000), "1,000 B");
        assert_eq!(size(80 << 20), "80 MiB");
        assert_eq!(size(3 << 19), "1.5 MiB");
        assert_eq!(size((1 << 30) + 1), "1,073,741,825 B");
        assert_eq!(size(u64::MAX), "18,446,744,073,709,551,615 B");
        assert_eq!(bytes(1), "1 byte");
        assert_eq!(bytes(1 << 30), "1,073,741,824 bytes (1 GiB)");
        assert_eq!(bytes(1_000_000), "1,000,000 bytes (977 KiB)");
    }

    #[test]
    fn digits_do_not_jump_at_boundaries() {
        assert_eq!(number(99.96), "100");
        assert_eq!(number(9.996), "10.0");
        assert_eq!(number(0.99961), "1.00");
        assert_eq!(number(0.0999), "0.0999");
        assert_eq!(number(-1234567.0), "-1,234,567");
        assert_eq!(number(f64::NAN), "?");
        assert_eq!(number(3e-9), "3.00e-9");
    }
}
