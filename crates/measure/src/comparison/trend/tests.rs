//! Runs that nothing changed, or something did.

use serde_json::json;

use super::*;
use crate::fixture::{record, row};
use crate::random::Draw;

/// The runs of a machine, a day after each other, with these figures of each row.
fn runs(rows: &[Vec<f64>]) -> Vec<Record> {
    let run = |run: usize| {
        let figure = |(index, figures): (usize, &Vec<f64>)| {
            let figure = figures.get(run).copied().filter(|figure| *figure > 0.0)?;
            let named = row(&format!("area/row-{index}"));
            Some(Outcome { n: 1, median: Some(figure), samples: vec![figure], ..named })
        };
        let mut record = record(rows.iter().enumerate().filter_map(figure).collect());
        record.start.time = format!("2026-11-{:02}T12:00:00Z", run + 1);
        record
    };
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    (0..count).map(run).collect()
}

/// Rows of so many runs that differ by 3 %.
fn noise(random: &mut SplitMix64, rows: usize, runs: usize) -> Vec<Vec<f64>> {
    let mut figure = |_| 100.0 * (0.03 * random.normal()).exp();
    (0..rows).map(|_| (0..runs).map(&mut figure).collect()).collect()
}

fn changed(trend: &Trend) -> Vec<(&str, &LevelChange)> {
    let changes = trend.rows.iter().filter_map(|row| Some((&*row.id, row.change.as_ref()?)));
    changes.collect()
}

#[test]
fn with_nothing_changed_one_trend_in_twenty_calls_a_row_changed() {
    let mut random = SplitMix64::new(3);
    for (rows, count) in [(1, 8), (20, 12)] {
        let alarms = (0..200)
            .filter(|_| !changed(&trend(&runs(&noise(&mut random, rows, count)))).is_empty())
            .count();
        assert!((1..=18).contains(&alarms), "{alarms} of 200 with {rows} rows");
    }
}

#[test]
fn a_row_that_changed_is_found_with_the_run_since_when() {
    let mut random = SplitMix64::new(5);
    let mut rows = noise(&mut random, 20, 12);
    rows[3].iter_mut().skip(7).for_each(|figure| *figure *= 0.7);
    rows[9].iter_mut().skip(5).for_each(|figure| *figure *= 1.5);
    let trend = trend(&runs(&rows));
    let found = changed(&trend);
    let named: Vec<_> = found.iter().map(|(id, one)| (*id, one.since, one.verdict)).collect();
    let expected = [("area/row-3", 7, Verdict::Worse), ("area/row-9", 5, Verdict::Better)];
    assert_eq!(named, expected);
    let ratio = found[0].1.after / found[0].1.before;
    assert!((0.65..0.75).contains(&ratio) && found[0].1.p_corrected < 0.05, "{found:?}");
    assert_eq!(trend.times[7], "2026-11-08T12:00:00Z");
}

#[test]
fn less_is_better_where_the_row_says_so_and_a_last_digit_is_no_change() {
    let mut all = runs(&[vec![100.0, 101.0, 99.0, 100.0, 50.0, 51.0, 49.0, 50.0]]);
    for record in &mut all {
        record.results[0].better = Better::Lower;
    }
    assert_eq!(changed(&trend(&all))[0].1.verdict, Verdict::Better);
    let digits = vec![100.0, 100.0, 100.0, 100.0, 100.1, 100.1, 100.1, 100.1];
    let mut random = SplitMix64::new(7);
    let mut rows = noise(&mut random, 3, 8);
    rows.push(digits);
    assert!(changed(&trend(&runs(&rows))).is_empty());
}

#[test]
fn runs_are_put_in_the_order_of_time_and_those_of_other_machines_left_out() {
    let mut all = runs(&[(1..=10).map(|run| if run <= 4 { 100.0 } else { 60.0 }).collect()]);
    for (index, record) in all.iter_mut().enumerate() {
        let model = if index == 2 { "another" } else { "this" };
        record.start.environment = json!({"cpu_model": model});
    }
    // A clock of another zone: noon there is before that of the run after it.
    all[6].start.time = "2026-11-07T14:00:00+02:00".to_owned();
    all.reverse();
    let trend = trend(&all);
    assert_eq!((trend.times.len(), trend.runs_left_out), (9, 1));
    assert_eq!(trend.times[5], "2026-11-07T14:00:00+02:00");
    let figures: Vec<f64> = trend.rows[0].figures.iter().flatten().copied().collect();
    assert_eq!(figures, [100.0, 100.0, 100.0, 60.0, 60.0, 60.0, 60.0, 60.0, 60.0]);
}

#[test]
fn runs_without_the_row_stand_in_its_place_and_few_runs_say_nothing() {
    let mut rows = vec![vec![100.0, 102.0, 0.0, 99.0, 101.0, 0.0, 60.0, 61.0, 59.0, 60.0]];
    rows.push(vec![100.0, 50.0, 50.0, 50.0, 50.0]);
    let trend = trend(&runs(&rows));
    assert_eq!(trend.rows.len(), 1, "a row of five runs is none");
    assert_eq!(trend.rows[0].figures[2], None);
    assert_eq!(changed(&trend)[0].1.since, 6);
    assert_eq!(super::trend(&[]).rows.len(), 0);
}
