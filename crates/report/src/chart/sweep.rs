//! The results of a chart put in order: x values down, one line per combination of parameters.
//!
//! Plots and matrices are made from this.

use std::collections::{BTreeMap, HashMap, HashSet};

use flatout_measure::record::{Chart, Outcome, Record};
use serde_json::Value;

use crate::{label, quantity::Scale, text};

/// One chart of a record with its results found.
pub struct Sweep<'a> {
    /// The record's own description.
    pub chart: &'a Chart,
    /// Base unit that all shown results share.
    pub unit: &'a str,
    /// Every x that occurs, ascending.
    pub x_values: Vec<f64>,
    /// The parameters whose values tell the lines apart.
    pub line_parameters: Vec<String>,
    /// The lines in order of first appearance.
    pub lines: Vec<Line<'a>>,
    /// Parameters that are equal in all rows, in words.
    pub constants: Vec<String>,
}

/// One line of a sweep.
pub struct Line<'a> {
    /// One word per line parameter.
    pub labels: Vec<String>,
    /// One entry per x value of the sweep.
    pub points: Vec<Option<&'a Outcome>>,
}

impl Line<'_> {
    /// The line's name in a legend.
    pub fn name(&self) -> String {
        let words = text::listed(&self.labels, ", ");
        if words.is_empty() { "all".to_owned() } else { words }
    }
}

impl<'a> Sweep<'a> {
    /// The chart's heading, or the test's name where it has none.
    pub fn title(&self) -> &str {
        match self.chart.title.as_str() {
            "" => label::test(&self.chart.id),
            title => title,
        }
    }

    /// The scale that suits all figures of the sweep together.
    pub fn scale(&self) -> Scale {
        Scale::of_all(self.unit, self.outcomes().into_iter().filter_map(label::figure))
    }

    /// An x value as it is written beside a row.
    pub fn x_text(&self, x: f64) -> String {
        label::plain(&self.chart.x_parameter, &number_value(x))
    }

    /// The rows that the sweep shows, line by line.
    pub(crate) fn outcomes(&self) -> Vec<&'a Outcome> {
        self.lines.iter().flat_map(|line| line.points.iter().flatten().copied()).collect()
    }
}

/// A float as JSON, whole numbers as such.
fn number_value(x: f64) -> Value {
    if x >= 0.0 && x.fract() == 0.0 && x < 9e15 { (x as u64).into() } else { x.into() }
}

/// Fewer points tell no more than a table does.
pub(crate) const LEAST_POINTS: usize = 3;

/// Lines of a sweep, and their places for points: nobody sees more, and a record may be made to harm.
const MOST_LINES: usize = 1000;
const MOST_PLACES: usize = 1 << 17;
/// Parameters in which rows of one picture differ.
const MOST_PARAMETERS: usize = 64;

/// All sweeps of a record that have something to show, in the record's order.
pub fn sweeps(record: &Record) -> Vec<Sweep<'_>> {
    record.charts.iter().filter_map(|chart| of(&record.results, chart)).collect()
}

/// The rows that sweeps show, by their places in memory; the others are listed.
pub(crate) fn rows_shown(sweeps: &[Sweep<'_>]) -> HashSet<*const Outcome> {
    sweeps.iter().flat_map(Sweep::outcomes).map(std::ptr::from_ref).collect()
}

/// The sweep that a chart makes of these results; none where no line has enough figures.
pub(crate) fn of<'a>(results: &'a [Outcome], chart: &'a Chart) -> Option<Sweep<'a>> {
    let own = results.iter().filter(|outcome| outcome.id == chart.id);
    let mut candidates: Vec<(f64, &Outcome)> =
        own.filter_map(|outcome| Some((x_of(outcome, chart)?, outcome))).collect();
    let unit = candidates.first()?.1.unit.as_str();
    candidates.retain(|(_, outcome)| outcome.unit == unit);

    let mut x_values: Vec<f64> = candidates.iter().map(|(x, _)| *x).collect();
    x_values.sort_by(f64::total_cmp);
    x_values.dedup();

    let rows: Vec<&Outcome> = candidates.iter().map(|(_, outcome)| *outcome).collect();
    let (varying, constants) = split_parameters(&rows, chart);
    let line_parameters: Vec<String> =
        chart.line_parameters.iter().cloned().chain(varying).collect();
    if line_parameters.len() > MOST_PARAMETERS {
        return None;
    }
    let mut sweep = Sweep { chart, unit, x_values, line_parameters, lines: Vec::new(), constants };
    let mut places = HashMap::new();
    candidates.into_iter().for_each(|(x, outcome)| place(&mut sweep, &mut places, x, outcome));
    let has_curve = |line: &Line<'_>| {
        let figures = line.points.iter().flatten().filter(|row| label::figure(row).is_some());
        figures.count() >= LEAST_POINTS
    };
    sweep.lines.iter().any(has_curve).then_some(sweep)
}

fn x_of(outcome: &Outcome, chart: &Chart) -> Option<f64> {
    // Minus zero is zero.
    let x = outcome.parameter_number(&chart.x_parameter)? + 0.0;
    (x.is_finite() && (x > 0.0 || !chart.x_log2)).then_some(x)
}

/// Parameters besides x and the named ones: names of those that vary, words for those that do not.
fn split_parameters(rows: &[&Outcome], chart: &Chart) -> (Vec<String>, Vec<String>) {
    let is_other =
        |key: &&String| **key != chart.x_parameter && !chart.line_parameters.contains(key);
    // Its first value, how many rows have it, and whether they agree.
    let mut known: BTreeMap<&String, (&Value, usize, bool)> = BTreeMap::new();
    for (key, value) in rows.iter().flat_map(|row| &row.parameters).filter(|(key, _)| is_other(key))
    {
        let (first, count, agree) = known.entry(key).or_insert((value, 0, true));
        *count += 1;
        *agree &= *first == value;
    }
    let mut varying = Vec::new();
    let mut constant = Vec::new();
    for (key, (value, count, agree)) in known {
        match agree && count == rows.len() {
            true => constant.push(label::parameter(key, value)),
            false => varying.push(key.clone()),
        }
    }
    (varying, constant)
}

/// Puts a row into its line. A second row with the same parameters is left to the list of rows, and so
/// are those of lines that are too many.
fn place<'a>(
    sweep: &mut Sweep<'a>,
    places: &mut HashMap<Vec<String>, usize>,
    x: f64,
    outcome: &'a Outcome,
) {
    let Ok(column) = sweep.x_values.binary_search_by(|known| known.total_cmp(&x)) else { return };
    let labels: Vec<String> = sweep
        .line_parameters
        .iter()
        .map(|key| {
            outcome.parameters.get(key).map_or_else(String::new, |v| label::parameter(key, v))
        })
        .collect();
    let at = match places.get(&labels) {
        Some(at) => *at,
        None if sweep.lines.len() >= MOST_LINES.min(MOST_PLACES / sweep.x_values.len()) => return,
        None => {
            places.insert(labels.clone(), sweep.lines.len());
            sweep.lines.push(Line { labels, points: vec![None; sweep.x_values.len()] });
            sweep.lines.len() - 1
        }
    };
    sweep.lines[at].points[column].get_or_insert(outcome);
}

#[cfg(test)]
mod tests {
    use flatout_measure::record::{End, Start};
    use serde_json::json;

    use super::*;

    fn row(parameters: Value) -> Outcome {
        Outcome {
            id: "cache/block-sweep".to_owned(),
            parameters: parameters.as_object().cloned().unwrap(),
            unit: "bytes/s".to_owned(),
            median: Some(1.0),
            ..Outcome::default()
        }
    }

    fn record(results: Vec<Outcome>) -> Record {
        let chart = Chart {
            id: "cache/block-sweep".to_owned(),
            x_parameter: "block_bytes".to_owned(),
            x_log2: true,
            line_parameters: vec!["engine".to_owned()],
            ..Chart::default()
        };
        let start = Start {
            tool: String::new(),
            argv: Vec::new(),
            seed: 0,
            time: String::new(),
            environment: json!({}),
        };
        Record { schema: String::new(), start, results, charts: vec![chart], end: End::default() }
    }

    /// The places of the rows that no sweep shows.
    fn rows_left(record: &Record) -> Vec<usize> {
        let shown = rows_shown(&sweeps(record));
        let is_left = |at: &usize| !shown.contains(&std::ptr::from_ref(&record.results[*at]));
        (0..record.results.len()).filter(is_left).collect()
    }

    #[test]
    fn a_parameter_that_varies_unasked_becomes_part_of_the_line() {
        let record = record(vec![
            row(json!({"block_bytes": 2, "engine": "read", "threads": 1})),
            row(json!({"block_bytes": 1, "engine": "read", "threads": 1})),
            row(json!({"block_bytes": 1, "engine": "read", "threads": 2})),
            row(json!({"block_bytes": 1, "engine": "read", "threads": 2})),
            row(json!({"engine": "read", "threads": 2})),
            row(json!({"block_bytes": 4, "engine": "read", "threads": 1})),
        ]);
        let sweeps = sweeps(&record);
        assert_eq!(sweeps[0].x_values, [1.0, 2.0, 4.0]);
        assert_eq!(sweeps[0].lines.len(), 2);
        assert_eq!(sweeps[0].lines[1].name(), "read, 2 threads");
        assert_eq!(rows_left(&record), [3, 4]);
    }

    #[test]
    fn rows_that_share_nothing_take_no_square_of_memory() {
        let apart = |at: u32| row(json!({"block_bytes": at % 1500 + 1, "engine": at.to_string()}));
        let joined = (0..3).map(|at| row(json!({"block_bytes": at + 1, "engine": "x"})));
        let record = record(joined.chain((0..3000).map(apart)).collect());
        let sweeps = sweeps(&record);
        let [sweep] = &sweeps[..] else { panic!("one line has three points") };
        assert_eq!(sweep.lines.len(), MOST_PLACES / 1500);
        assert_eq!(sweep.outcomes().len() + rows_left(&record).len(), 3003);
    }

    #[test]
    fn rows_that_differ_in_everything_are_no_picture() {
        let apart = |at: usize| {
            let mut row = row(json!({"block_bytes": at + 1}));
            row.parameters.insert(format!("p{at}"), 1.into());
            row
        };
        assert!(sweeps(&record((0..20_000).map(apart).collect())).is_empty());
    }

    #[test]
    fn two_points_are_no_sweep() {
        let row = |bytes: u32| row(json!({"block_bytes": bytes, "engine": "read"}));
        let record = record(vec![row(1), row(2)]);
        assert!(sweeps(&record).is_empty());
        assert_eq!(rows_left(&record), [0, 1]);
    }
}
