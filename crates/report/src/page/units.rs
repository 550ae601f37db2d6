//! The units that people say: bits of a network, IOPS of a disk. Records keep base units.

use std::borrow::Cow;

use flatout_measure::fact::Key;
use flatout_measure::record::{Outcome, Record};
use flatout_measure::sampler::fact::{REJECTED_SAMPLES, WARMUP_SAMPLES};
use flatout_measure::shape::{BURST_PER_S, SUSTAINED_PER_S};
use serde_json::Value;

use crate::label;

/// Tests of a disk that count requests; the others of its area count files.
const REQUESTS: [&str; 4] = ["random-read", "random-write", "mixed", "depth-sweep"];

/// Facts in the unit of their row: one figure, or several.
pub(crate) const FIGURES: [Key; 4] =
    [BURST_PER_S, SUSTAINED_PER_S, WARMUP_SAMPLES, REJECTED_SAMPLES];

/// The unit in which a row is shown, and how many of it make one of the row's.
pub fn unit<'a>(id: &str, unit: &'a str) -> (&'a str, f64) {
    match (label::area(id), unit) {
        ("network" | "iperf3", "bytes/s") => ("bit/s", 8.0),
        ("disk", "operations/s") if REQUESTS.contains(&label::test(id)) => ("IOPS", 1.0),
        ("versus" | "fio", "operations/s") => ("IOPS", 1.0),
        _ => (unit, 1.0),
    }
}

/// The record with all its rows in the units in which they are shown.
pub(super) fn shown(record: &Record) -> Cow<'_, Record> {
    let is_other = |row: &Outcome| unit(&row.id, &row.unit).0 != row.unit;
    if !record.results.iter().any(is_other) {
        return Cow::Borrowed(record);
    }
    let mut shown = record.clone();
    shown.results.iter_mut().for_each(convert);
    Cow::Owned(shown)
}

fn convert(row: &mut Outcome) {
    let (unit, factor) = unit(&row.id, &row.unit);
    let unit = unit.to_owned();
    for series in row.series.iter_mut().filter(|series| series.y == row.unit) {
        series.y.clone_from(&unit);
        series.points.iter_mut().for_each(|point| point[1] *= factor);
    }
    row.unit = unit;
    row.median = row.median.map(|median| median * factor);
    row.ci95 = row.ci95.map(|interval| interval.map(|end| end * factor));
    row.samples.iter_mut().for_each(|sample| *sample *= factor);
    if let Some(ceiling) = &mut row.ceiling {
        ceiling.value = ceiling.value.map(|value| value * factor);
    }
    for key in FIGURES {
        match row.audit.get_mut(key.name()) {
            Some(Value::Array(figures)) => figures.iter_mut().for_each(|one| scale(one, factor)),
            Some(figure) => scale(figure, factor),
            None => {}
        }
    }
}

fn scale(figure: &mut Value, factor: f64) {
    if let Some(number) = figure.as_f64() {
        *figure = (number * factor).into();
    }
}

#[cfg(test)]
mod tests {
    use flatout_measure::record::Ceiling;

    use super::*;

    #[test]
    fn networks_are_told_in_bits_and_requests_of_a_disk_in_iops() {
        assert_eq!(unit("network/tcp-throughput", "bytes/s"), ("bit/s", 8.0));
        assert_eq!(unit("network/tcp-latency", "ns"), ("ns", 1.0));
        assert_eq!(unit("disk/random-read", "operations/s"), ("IOPS", 1.0));
        assert_eq!(unit("disk/create", "operations/s"), ("operations/s", 1.0));
        let mut row = Outcome {
            id: "network/tcp-throughput".to_owned(),
            unit: "bytes/s".to_owned(),
            median: Some(2.0),
            ci95: Some([1.0, 3.0]),
            ceiling: Some(Ceiling { value: Some(4.0), ..Ceiling::default() }),
            ..Outcome::default()
        };
        row.audit.insert(WARMUP_SAMPLES.name().to_owned(), vec![1.0, 2.0].into());
        row.audit.insert(BURST_PER_S.name().to_owned(), 5.0.into());
        convert(&mut row);
        assert_eq!(
            (row.unit.as_str(), row.median, row.ci95),
            ("bit/s", Some(16.0), Some([8.0, 24.0]))
        );
        assert_eq!(row.ceiling.and_then(|ceiling| ceiling.value), Some(32.0));
        let facts = serde_json::json!({"warmup_samples": [8.0, 16.0], "burst_per_s": 40.0});
        assert_eq!(Value::from(row.audit), facts);
    }
}
