//! The rate of a row over time in words.

use flatout_measure::fact::Key;
use flatout_measure::record::{Outcome, Series};
use flatout_measure::shape::{BURST_PER_S, KNEE_S, SUSTAINED_PER_S};
use flatout_measure::statistics;

use crate::{label, quantity, quantity::Scale};

/// The curves of a row whose x is time; one point makes no curve.
pub(crate) fn over_time(outcome: &Outcome) -> impl Iterator<Item = &Series> {
    let is_time = |series: &&Series| label::unit_of(&series.x) == "s" && series.points.len() > 1;
    outcome.series.iter().filter(is_time)
}

/// Least and largest value, and the time that it is over: `212 to 639 MiB/s, from 0.500 to 30.0 s`.
pub(crate) fn extent(series: &Series) -> String {
    let range = |axis: usize, unit: &str| {
        let values = series.points.iter().map(|point| point[axis]);
        let ends = statistics::extremes(values.filter(|value| value.is_finite()));
        let ends = ends.unwrap_or_default();
        let scale = Scale::of(unit, ends.1);
        quantity::range(ends, " to ", |value| scale.text(value))
    };
    let time = match label::unit_of(&series.x) {
        "s" => format!(", from {}", range(0, "s")),
        _ => String::new(),
    };
    range(1, &series.y) + &time
}

/// The levels that a rate over time had, as the audit names them.
pub(crate) struct Levels {
    pub first: Option<f64>,
    pub knee_s: Option<f64>,
    pub sustained: Option<f64>,
}

impl Levels {
    pub fn of(outcome: &Outcome) -> Self {
        let number = |key: Key| outcome.fact_number(key.name());
        let (first, sustained) = (number(BURST_PER_S), number(SUSTAINED_PER_S));
        Self { first, knee_s: number(KNEE_S), sustained }
    }

    /// What the level before the knee was.
    pub fn first_word(&self) -> &'static str {
        if self.sustained > self.first { "slow start" } else { "burst" }
    }
}

/// What became of the rate: `burst 639 MiB/s until 12.0 s, then sustained 212 MiB/s`; none where the
/// audit names neither.
pub(crate) fn sentence(outcome: &Outcome) -> Option<String> {
    let levels = Levels::of(outcome);
    let rate = |rate: Option<f64>, word: &str| {
        rate.map(|rate| format!("{word} {}", quantity::value(&outcome.unit, rate)))
    };
    let until = levels
        .knee_s
        .map_or_else(String::new, |knee| format!(" until {}", quantity::value("s", knee)));
    match (rate(levels.first, levels.first_word()), rate(levels.sustained, "sustained")) {
        (Some(burst), Some(sustained)) => Some(format!("{burst}{until}, then {sustained}")),
        (Some(burst), None) => Some(format!("{burst}{until}")),
        (None, sustained) => sustained,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn least_and_largest_share_a_unit() {
        let (name, x) = (String::new(), "time_s".to_owned());
        let y = "operations/s".to_owned();
        let mut series = Series { name, x, y, points: vec![[9.0, 800.0], [12.0, 1600.0]] };
        assert_eq!(extent(&series), "0.800 to 1.60 kop/s, from 9.00 to 12.0 s");
        series.points[1][1] = 800.0;
        assert_eq!(
            extent(&series),
            "800 op/s, from 9.00 to 12.0 s",
            "knees are told on the same clock"
        );
    }

    #[test]
    fn burst_and_knee_are_a_sentence() {
        let of = |audit: Value| {
            let audit = audit.as_object().cloned().unwrap();
            sentence(&Outcome { unit: "operations/s".to_owned(), audit, ..Outcome::default() })
        };
        let all = json!({"burst_per_s": 9000.0, "knee_s": 12.0, "sustained_per_s": 500.0});
        let expected = "burst 9.00 kop/s until 12.0 s, then sustained 500 op/s";
        assert_eq!(of(all).as_deref(), Some(expected));
        assert_eq!(of(json!({"sustained_per_s": 500.0})).as_deref(), Some("sustained 500 op/s"));
        let rising = json!({"burst_per_s": 1.0, "sustained_per_s": 2.0});
        assert_eq!(of(rising).as_deref(), Some("slow start 1.00 op/s, then sustained 2.00 op/s"));
        assert_eq!(of(json!({"knee_s": 1.0})), None);
    }
}
