//! Threads against rate, beside the peak: rows made of other rows, for a picture.

use flatout_measure::{
    Chart, DERIVED_FROM, Facts, Label, Measured, Outcome, Provenance, Row, blank,
};
use flatout_sys::throughput::{Kernel, Operation};

use super::row::{self, UnitRow};
use super::trial::Placement;

const FLOATING: &str = "cpu/scaling";
const INTEGER: &str = "cpu/integer-scaling";

/// A point of a curve.
struct Point {
    kernel: Kernel,
    threads: u32,
    curve: &'static str,
}

impl Row for Point {
    fn label(&self) -> Label {
        let id = if self.kernel.number.is_floating() { FLOATING } else { INTEGER };
        Label::new(id, row::unit(self.kernel))
            .with("type", self.kernel.number.word())
            .with("level", self.kernel.level.word())
            .with("threads", self.threads)
            .with("curve", self.curve)
    }
}

/// The kernel and threads of a row that a curve is made of: pinned multiply-add, of the level that has
/// several numbers of threads.
fn place(measured: &Measured<UnitRow>) -> Option<(Kernel, u32)> {
    match measured.row {
        UnitRow::Units { kernel, setting }
            if setting.placement == Placement::Pinned
                && kernel.operation == Operation::MultiplyAdd
                && row::NUMBERS.contains(&kernel.number)
                && measured.outcome.median.is_some() =>
        {
            Some((kernel, setting.threads))
        }
        _ => None,
    }
}

/// For each point of a curve the figure, and its peak where that is known; no curve of one point.
pub(super) fn rows(units: &[Measured<UnitRow>]) -> Vec<Outcome> {
    let points = || units.iter().filter_map(|one| Some((place(one)?, &one.outcome)));
    let mut rows = Vec::new();
    for ((kernel, threads), outcome) in points() {
        if points().filter(|((other, _), _)| *other == kernel).count() < 2 {
            continue;
        }
        let Outcome { median, ci95, n, ref samples, status, .. } = *outcome;
        let samples = samples.clone();
        let audit = Facts::default().with(DERIVED_FROM, "cpu/throughput").to_json();
        let figure = Outcome { audit, ..blank(&Point { kernel, threads, curve: "measured" }) };
        rows.push(Outcome { median, ci95, n, samples, status, ..figure });
        let peak = outcome.ceiling.as_ref().filter(|one| one.provenance != Provenance::Unknown);
        if let median @ Some(_) = peak.and_then(|peak| peak.value) {
            rows.push(Outcome { median, ..blank(&Point { kernel, threads, curve: "peak" }) });
        }
    }
    rows
}

/// The pictures that these rows make.
pub(super) fn charts(outcomes: &[Outcome]) -> Vec<Chart> {
    let titles = [
        (FLOATING, "Floating-point multiply-add by threads, and its peak"),
        (INTEGER, "Integer multiply-add by threads, and its peak"),
    ];
    let has = |id: &str| outcomes.iter().any(|outcome| outcome.id == id);
    let chart = |(id, title): (&str, &str)| {
        Chart::new(title, id, "threads", &["type", "curve", "level"]).by_powers_of_two()
    };
    titles.into_iter().filter(|(id, _)| has(id)).map(chart).collect()
}

#[cfg(test)]
mod tests {
    use flatout_measure::record::Ceiling;
    use flatout_sys::throughput::{Level, Number};

    use super::super::trial::Setting;
    use super::*;

    fn row(threads: u32, level: Level, peak: Option<f64>) -> Measured<UnitRow> {
        let kernel = Kernel { number: Number::F64, operation: Operation::MultiplyAdd, level };
        let setting = Setting { threads, placement: Placement::Pinned };
        let row = UnitRow::Units { kernel, setting };
        let ceiling = Some(Ceiling::known("peak", peak, Provenance::Inferred));
        let outcome =
            Outcome { median: Some(10.0), samples: vec![10.0], n: 1, ceiling, ..blank(&row) };
        Measured { row, outcome, facts: Facts::default(), further: Vec::new() }
    }

    #[test]
    fn a_curve_stands_beside_its_peak() {
        let units = [
            row(1, Level::Avx512, Some(11.0)),
            row(2, Level::Avx512, None),
            row(1, Level::Sse2, None),
        ];
        let rows = rows(&units);
        let figures: Vec<_> = rows
            .iter()
            .map(|row| (row.parameters["curve"].as_str().unwrap(), row.median.unwrap(), row.n))
            .collect();
        assert_eq!(figures, [("measured", 10.0, 1), ("peak", 11.0, 0), ("measured", 10.0, 1)]);
        assert!(rows.iter().all(|row| row.parameters["level"] == "avx512"), "one point, no curve");
        let charts = charts(&rows);
        assert_eq!((charts.len(), charts[0].id.as_str()), (1, "cpu/scaling"));
    }
}
