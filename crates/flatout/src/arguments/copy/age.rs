//! A moment, as an age or as a date.

use flatout_tree::selection::Moment;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::zone;

/// Units of an age, and their seconds.
const UNITS: [(char, i64); 5] = [('s', 1), ('m', 60), ('h', 3600), ('d', 86_400), ('w', 604_800)];

/// The moment of an age, counted from now, or of a date in the zone of the user.
pub fn age(text: &str) -> Result<Moment, String> {
    moment(text, Timestamp::now(), zone::of_user)
}

fn moment(
    text: &str,
    now: Timestamp,
    zone: impl FnOnce() -> Result<TimeZone, String>,
) -> Result<Moment, String> {
    if let Some(seconds) = seconds(text) {
        return Ok((now.as_second().saturating_sub(seconds), now.subsec_nanosecond() as u32));
    }
    let at = match (text.parse::<Timestamp>(), text.parse::<DateTime>()) {
        (Ok(at), _) => Some(at),
        (_, Ok(at)) => at.to_zoned(zone()?).ok().map(|at| at.timestamp()),
        _ => None,
    };
    match at {
        // Of a time before 1970 the parts of a second count back.
        Some(at) if at.subsec_nanosecond() >= 0 => {
            Ok((at.as_second(), at.subsec_nanosecond() as u32))
        }
        Some(at) => Ok((at.as_second() - 1, (at.subsec_nanosecond() + 1_000_000_000) as u32)),
        None => Err("it is neither an age (90s, 5m, 12h, 7d, 4w) nor a date (2026-11-24, '2026-11-24 18:30')".to_owned()),
    }
}

fn seconds(text: &str) -> Option<i64> {
    let unit = text.chars().next_back()?;
    let (_, seconds) = UNITS.iter().find(|(known, _)| *known == unit)?;
    let number: u32 = text.strip_suffix(unit)?.parse().ok()?;
    Some(i64::from(number) * seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_count_from_now_and_dates_in_the_zone_of_the_user() {
        let now = Timestamp::new(1_000_000_000, 5).unwrap();
        let moment = |text| moment(text, now, || Ok(TimeZone::fixed(jiff::tz::offset(2))));
        for (text, expected) in [
            ("90s", (999_999_910, 5)),
            ("2m", (999_999_880, 5)),
            ("7d", (1_000_000_000 - 7 * 86_400, 5)),
            ("1w", (1_000_000_000 - 604_800, 5)),
            ("1970-01-02", (86_400 - 7_200, 0)),
            ("1970-01-02 03:04", (86_400 + 3_840, 0)),
            ("1970-01-02T03:04:05.5", (86_400 + 3_845, 500_000_000)),
            ("1970-01-01T00:00:00Z", (0, 0)),
            ("1969-12-31T23:59:59.5Z", (-1, 500_000_000)),
        ] {
            assert_eq!(moment(text), Ok(expected), "{text}");
        }
        for text in ["", "d", "7", "-7d", "7y", "yesterday", "2026-13-01", "7dd"] {
            assert!(moment(text).is_err(), "{text}");
        }
        let unknown = |text| super::moment(text, now, || Err("no such zone".to_owned()));
        assert_eq!(unknown("2026-11-24"), Err("no such zone".to_owned()));
        assert_eq!(unknown("1970-01-01T00:00:00Z"), Ok((0, 0)), "it names its own");
    }
}
