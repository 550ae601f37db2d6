//! Sizes and times as people write them, to bytes and nanoseconds; shares as people read them.
//!
//! Only whole results are taken: what would have to be rounded is refused. The way back,
//! from base units to prefixes, belongs to the report.

use std::fmt::Display;

const SIZE_UNITS: &str = "B, K, KiB (1024), kB, KB (1000), and M, G, T, P likewise";
const TIME_UNITS: &str = "ns, us, ms, s, m (minutes), h";

/// Reads a size.
///
/// Units: `K`, `k` and `KiB` are 1024 bytes, `kB` and `KB` 1000, and so on for M, G, T and P, as
/// small letters, too, but for the B of 1000, which others take for 1024; a bare number is bytes. `1.5G` is fine, `1.3K` is not a whole number of bytes, and the message says which is the next.
///
/// # Errors
///
/// One line that says why it cannot be read.
pub fn parse_size(text: &str) -> Result<u64, String> {
    parse(text, ("bytes", ""), SIZE_UNITS, size_factor)
}

/// Reads a time.
///
/// Units: nanoseconds out; `ns`, `us` (or `µs`), `ms`, `s`, `m`, `h` in. A bare number is seconds.
///
/// # Errors
///
/// One line that says why it cannot be read.
pub fn parse_time(text: &str) -> Result<u64, String> {
    parse(text, ("nanoseconds", "ns"), TIME_UNITS, time_factor)
}

/// A number before its noun in a message: `1 thread`, `2 threads`.
pub fn counted(number: impl Display, noun: &str) -> String {
    let number = number.to_string();
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// From here on nobody reads a number quickly.
const LEAST_LONG: u64 = 10_000;

/// A share as a percentage with as many digits as it deserves: `93 %`, `1.2 %`, `0.04 %`; what is ten times
/// as much or more as a factor: `2,048×`.
pub fn percent(ratio: f64) -> String {
    let percent = ratio * 100.0;
    match percent.abs() {
        size if !size.is_finite() => "?".to_owned(),
        size if size >= 999.5 => format!("{}×", separated(&format!("{ratio:.0}"))),
        size if size >= 9.95 => format!("{} %", separated(&format!("{percent:.0}"))),
        size if size >= 0.095 || size == 0.0 => format!("{percent:.1} %"),
        size if size >= 0.01 => format!("{percent:.2} %"),
        _ => "<0.01 %".to_owned(),
    }
}

/// Half the width of an interval as a percentage; from ten times the figure on it says no more.
pub fn half(ratio: f64) -> String {
    if ratio >= 9.995 { ">999 %".to_owned() } else { percent(ratio) }
}

/// A number with commas between thousands of its whole part.
pub fn separated(digits: &str) -> String {
    let (sign, rest) = match digits.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", digits),
    };
    let (whole, fraction) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
    let mut out = String::from(sign);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

/// A size for a message, as somebody would write it: `256 MiB`, `5 GB`, `1000 bytes`. With a decimal
/// only where no prefix tells it exactly. Figures of a record are shown by the report.
pub fn size_text(bytes: u64) -> String {
    let power = |base: u64| (1..=5).rev().find(|&power| bytes >= base.pow(power));
    let Some(binary) = power(1024) else {
        return counted(bytes, "byte");
    };
    let letter = |power: u32| char::from(b"KMGTP"[power as usize - 1]);
    let is_exact = |&power: &u32| {
        bytes.is_multiple_of(1024_u64.pow(power)) && bytes / 1024_u64.pow(power) < LEAST_LONG
    };
    let exact = (1..=binary).rev().take(2).find(is_exact);
    if let Some(power) = exact {
        return format!("{} {}iB", bytes / 1024_u64.pow(power), letter(power));
    }
    if let Some(decimal) = power(1000).filter(|&power| bytes.is_multiple_of(1000_u64.pow(power))) {
        let letter = if decimal == 1 { 'k' } else { letter(decimal) };
        return format!("{} {letter}B", bytes / 1000_u64.pow(decimal));
    }
    format!("{:.1} {}iB", bytes as f64 / 1024_f64.powi(binary as i32), letter(binary))
}

/// A time for a message, as somebody would write it: `5s`, `500ms`.
pub fn time_text(ns: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let exact = units.into_iter().find(|(unit, _)| ns.is_multiple_of(*unit));
    exact.map_or_else(|| format!("{ns}ns"), |(unit, name)| format!("{}{name}", ns / unit))
}

fn size_factor(suffix: &str) -> Option<u64> {
    if ["", "B"].contains(&suffix) {
        return Some(1);
    }
    let (letter, rest) = suffix.split_at_checked(1)?;
    let power = "KMGTP".find(&letter.to_ascii_uppercase())? as u32 + 1;
    match rest {
        "" | "iB" | "ib" => Some(1024_u64.pow(power)),
        "B" => Some(1000_u64.pow(power)),
        _ => None,
    }
}

fn time_factor(suffix: &str) -> Option<u64> {
    match suffix {
        "ns" => Some(1),
        "us" | "µs" | "μs" => Some(1_000),
        "ms" => Some(1_000_000),
        "" | "s" | "sec" => Some(1_000_000_000),
        "m" | "min" => Some(60_000_000_000),
        "h" => Some(3_600_000_000_000),
        _ => None,
    }
}

fn parse(
    text: &str,
    (base, unit): (&'static str, &str),
    known: &'static str,
    factor: fn(&str) -> Option<u64>,
) -> Result<u64, String> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err("a number is missing".to_owned());
    }
    if trimmed.starts_with(['-', '−']) {
        return Err(format!("{text:?} is negative"));
    }
    let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, suffix) = (&trimmed[..end], trimmed[end..].trim_start());
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(decimals) || number.ends_with('.') {
        return Err(format!("{text:?} does not begin with a number such as 4 or 1.5"));
    }
    let unknown = || format!("{suffix:?} in {text:?} is no unit; known are {known}");
    let factor = factor(suffix).ok_or_else(unknown)?;
    let overflow = || format!("{text:?} is too large");
    let whole =
        whole.parse::<u64>().ok().and_then(|n| n.checked_mul(factor)).ok_or_else(overflow)?;
    let (decimals, is_whole) = fraction(decimals, factor);
    let found = whole.checked_add(decimals).ok_or_else(overflow)?;
    let fractional = || format!("{text:?} is not a whole number of {base}; {found}{unit} is");
    is_whole.then_some(found).ok_or_else(fractional)
}

/// `0.decimals` × `factor` without what is behind the point of it, and whether nothing is.
fn fraction(decimals: &str, factor: u64) -> (u64, bool) {
    let decimals = decimals.trim_end_matches('0');
    // More digits than this cannot divide any factor above: 1024^5 has 50 factors of two but no
    // decimal with more than 50 digits is whole; u128 holds 38, enough for 18 digits × 2^50.
    const MOST_DIGITS: usize = 18;
    let known = &decimals[..decimals.len().min(MOST_DIGITS)];
    let digits = known.bytes().fold(0, |all, digit| all * 10 + u128::from(digit - b'0'));
    let scale = 10_u128.pow(known.len() as u32);
    let product = digits * u128::from(factor);
    let is_whole = decimals.len() <= MOST_DIGITS && product.is_multiple_of(scale);
    // Less than the factor.
    ((product / scale) as u64, is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_have_sizes_and_times_as_people_write_them() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1000, "1000 bytes"),
            (1024, "1 KiB"),
            (1536 << 20, "1536 MiB"),
            (36_768 << 10, "35.9 MiB"),
            (268_435_456, "256 MiB"),
            (5_000_000_000, "5 GB"),
            (4000, "4 kB"),
            (1 << 60, "1024 PiB"),
            (1_500_001, "1.4 MiB"),
        ] {
            assert_eq!(size_text(bytes), text);
        }
        let times = [5_000_000_000, 500_000_000, 1_500, 0].map(time_text);
        assert_eq!(times, ["5s", "500ms", "1500ns", "0s"]);
    }

    #[test]
    fn one_of_a_thing_has_no_plural() {
        let texts = [counted(1, "byte"), counted(0, "byte"), counted("1.5", "CPU")];
        assert_eq!(texts, ["1 byte", "0 bytes", "1.5 CPUs"]);
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("4096B", 4096),
            ("4K", 4096),
            ("4k", 4096),
            ("4KiB", 4096),
            ("4kB", 4000),
            ("4KB", 4000),
            ("8 MiB", 8 << 20),
            ("8M", 8 << 20),
            ("8m", 8 << 20),
            ("1gib", 1 << 30),
            ("8MB", 8_000_000),
            ("1.5G", 3 << 29),
            ("2T", 2 << 40),
            ("1TB", 1_000_000_000_000),
            ("0.5K", 512),
            ("1.0", 1),
            (" 1K ", 1024),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn times() {
        for (text, ns) in [
            ("0", 0),
            ("1ns", 1),
            ("100us", 100_000),
            ("100µs", 100_000),
            ("500ms", 500_000_000),
            ("5s", 5_000_000_000),
            ("1.5s", 1_500_000_000),
            ("2m", 120_000_000_000),
            ("1min", 60_000_000_000),
            ("1h", 3_600_000_000_000),
        ] {
            assert_eq!(parse_time(text), Ok(ns), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let says = |text: &str, why: &str| {
            let error = parse_size(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        };
        says("", "a number is missing");
        says("  ", "a number is missing");
        says("-4K", "\"-4K\" is negative");
        for text in ["K", ".5K", "1.2.3", "1.", "abc", "+4"] {
            says(text, "does not begin with a number");
        }
        for text in ["4X", "4KiBB", "4mb", "4b", "4e3", "0x10"] {
            says(text, "is no unit");
        }
        for text in ["1.3K", "0.5", "1.00000000000000000001K"] {
            says(text, "is not a whole number of bytes");
        }
        for (text, below) in [("4.74G", "5089536245"), ("1.3K", "1331"), ("0.5", "0")] {
            let said = parse_size(text).unwrap_err();
            assert_eq!(said, format!("{text:?} is not a whole number of bytes; {below} is"));
        }
        let said = parse_time("1.0000000005").unwrap_err();
        assert!(said.ends_with("is not a whole number of nanoseconds; 1000000000ns is"), "{said}");
        for text in ["18446744073709551616", "16384P", "99999999999999999999T"] {
            says(text, "is too large");
        }
        assert_eq!(parse_time("5"), Ok(5_000_000_000));
        assert_eq!(parse_time("0.5"), Ok(500_000_000));
        assert!(parse_time("5S").unwrap_err().contains("is no unit"));
        assert!(parse_time("0.5ns").unwrap_err().contains("whole number of nanoseconds"));
        assert_eq!(
            parse_size("4Q").unwrap_err(),
            "\"Q\" in \"4Q\" is no unit; known are \
             B, K, KiB (1024), kB, KB (1000), and M, G, T, P likewise"
        );
    }

    #[test]
    fn shares_are_short() {
        assert_eq!(percent(0.934), "93 %");
        assert_eq!(percent(0.0123), "1.2 %");
        assert_eq!(percent(0.0004), "0.04 %");
        assert_eq!(percent(1e-9), "<0.01 %");
        assert_eq!(percent(0.0), "0.0 %");
        assert_eq!(percent(9.9), "990 %");
        assert_eq!(percent(2048.0), "2,048×");
        assert_eq!((half(9.99), half(1.9e4)), ("999 %".to_owned(), ">999 %".to_owned()));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*") {
            let _ = parse_size(&text);
            let _ = parse_time(&text);
        }

        #[test]
        fn whole_numbers_come_through(bytes: u64) {
            prop_assert_eq!(parse_size(&bytes.to_string()), Ok(bytes));
        }

        #[test]
        fn decimals_agree_with_exact_arithmetic(whole in 0_u64..1000, eighths in 0_u64..8) {
            let text = format!("{whole}.{:03}K", eighths * 125);
            prop_assert_eq!(parse_size(&text), Ok(whole * 1024 + eighths * 128));
        }
    }
}
