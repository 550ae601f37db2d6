//! Rows held against each other as bars: what a call costs, copiers on the same tree, passes over
//! a file.
//!
//! What is drawn is data, here and in [`VIEWS`]; `html/bars.rs` draws it.

use flatout_measure::record::{Chart, Outcome};

use super::axis::Axis;
use super::plot::{self, Point};
use crate::page::race::{Entry, Race, Test, Workload};
use crate::page::tuned;
use crate::{label, order, quantity::Scale};

/// Bars with one unit and one axis.
pub(crate) struct Bars {
    /// Names the picture in the page: `bars-syscall`.
    pub key: String,
    pub title: String,
    pub scale: Scale,
    pub groups: Vec<Group>,
}

/// Bars that belong together.
pub(crate) struct Group {
    /// What they have in common; empty for the only group.
    pub name: String,
    pub bars: Vec<Bar>,
}

/// One row.
pub(crate) struct Bar {
    pub name: String,
    pub hue: usize,
    pub point: Point,
}

/// A picture of bars: its key, its title, the unit of its rows, how their ids begin (the longest list
/// of rows is one area), and which parameter must be 1 where a row has it.
type View = [&'static str; 5];

const PASSES: &str = "One file, pass by pass: first, again, after clearing the cache";
const VIEWS: [View; 11] = [
    ["passes", PASSES, "bytes/s", "cache/series", ""],
    ["calls", "What a call costs, one thread", "ns", "syscall/", "threads"],
    ["throughput", "Throughput of the disk", "bytes/s", "disk/sequential-", ""],
    ["operations", "IOPS of the disk", "IOPS", "disk/random- disk/mixed", ""],
    ["metadata", "Operations on files and directories", "operations/s", METADATA, ""],
    ["products", "Matrices", "flop/s", "cpu/dgemm cpu/linpack", ""],
    ["stream", "Memory bandwidth: STREAM", "bytes/s", "memory/stream", ""],
    ["tcp", "TCP, one stream", "bit/s", "network/tcp-throughput", "streams"],
    ["udp", "UDP, one stream", "bit/s", "network/udp-throughput", "streams"],
    ["trees", "Copy time of each tree", "ns", TREES, ""],
    ["levels", "Latency of the levels of memory", "ns", "memory/level", ""],
];
const METADATA: &str = "disk/create disk/stat disk/open-close disk/rename disk/readdir disk/fsync \
                        disk/unlink";
const TREES: &str = "copy/tree copy/single copy/memory copy/deviation";
/// A bar that is so many times as long as the middle one has a picture with others like it.
const LARGEST: f64 = 15.0;
/// More bars than these are a sweep, and have a chart.
const MOST_BARS: usize = 40;

/// The pictures of bars of the rows of an area: a part of them, or those that have no chart.
pub(crate) fn of_rows(charts: &[Chart], rows: &[&Outcome]) -> Vec<Bars> {
    VIEWS.iter().flat_map(|view| of_view(charts, rows, view)).chain(of_tuning(rows)).collect()
}

/// What `tune` tried, a picture for each work; the settings that were picked in another colour.
fn of_tuning(rows: &[&Outcome]) -> Vec<Bars> {
    let rows = rows.iter().copied().filter(|row| label::area(&row.id) == "tune");
    let works = order::grouped(rows.map(|row| (tuned::work(row), row)));
    let one = |(work, rows): (String, Vec<&Outcome>)| {
        let bars = rows.iter().filter_map(|row| match tuned::is_picked(row) {
            true => bar(row, &format!("{}: picked", tuned::settings(row)), 1),
            false => bar(row, &tuned::settings(row), 0),
        });
        Bars::of_one(&format!("tune-{work}"), &work, &rows[0].unit, bars.collect())
    };
    works.into_iter().filter_map(one).collect()
}

/// One picture; two where some figures are so large that the others would be no bars beside them.
fn of_view(charts: &[Chart], rows: &[&Outcome], &[key, title, unit, ids, one]: &View) -> Vec<Bars> {
    let is_charted = |row: &Outcome| charts.iter().any(|chart| chart.id == row.id);
    let rows: Vec<&Outcome> = rows
        .iter()
        .copied()
        .filter(|row| row.unit == unit && label::figure(row).is_some())
        .filter(|row| ids.split(' ').any(|start| row.id.starts_with(start)))
        .filter(|row| row.parameter_count(one).is_none_or(|count| count == 1))
        .filter(|row| !one.is_empty() || !is_charted(row))
        .collect();
    if rows.len() < 2 || rows.len() > MOST_BARS {
        return Vec::new();
    }
    let mut names = label::short_names(&rows);
    if rows.iter().all(|row| row.id == rows[0].id) {
        let test = format!("{}, ", label::test(&rows[0].id));
        names.iter_mut().for_each(|name| *name = name.replacen(&test, "", 1));
    }
    let bars: Vec<Bar> =
        rows.iter().zip(names).filter_map(|(row, name)| bar(row, &name, 0)).collect();
    let mut figures: Vec<f64> = bars.iter().map(|bar| bar.point.y).collect();
    figures.sort_by(f64::total_cmp);
    let limit = LARGEST * figures.get(figures.len() / 2).copied().unwrap_or(f64::INFINITY);
    let (usual, large): (Vec<Bar>, Vec<Bar>) =
        bars.into_iter().partition(|bar| bar.point.y <= limit);
    let usual = Bars::of_one(key, title, unit, usual);
    let (key, title) = (format!("{key}-large"), format!("{title}: the largest"));
    usual.into_iter().chain(Bars::of_one(&key, &title, unit, large)).collect()
}

fn bar(row: &Outcome, name: &str, hue: usize) -> Option<Bar> {
    Some(Bar { name: name.to_owned(), hue, point: Point::of(0.0, row)? })
}

/// The contestants of each test, workload by workload; by speed where there is one.
pub(crate) fn of_race(race: &Race<'_>) -> Vec<Bars> {
    race.tests.iter().filter_map(|test| of_test(test, race)).collect()
}

fn of_test(test: &Test<'_>, race: &Race<'_>) -> Option<Bars> {
    let by_speed = test.entries().all(|entry| entry.speed.is_some());
    let contestants = order::distinct(race.entries().map(|entry| entry.contestant));
    let hue = |name: &str| contestants.iter().position(|known| *known == name).unwrap_or(0);
    let bar_of = |entry: &Entry<'_>| {
        let row = if by_speed { entry.speed? } else { entry.outcome };
        bar(row, entry.contestant, hue(entry.contestant))
    };
    let group = |workload: &Workload<'_>| {
        let bars: Vec<Bar> = workload.entries.iter().filter_map(bar_of).collect();
        (bars.len() > 1).then(|| Group { name: workload.words.join(", "), bars })
    };
    let groups = test.workloads.iter().filter_map(group).collect();
    let first = test.entries().next()?;
    let unit = if by_speed { &first.speed?.unit } else { &first.outcome.unit };
    let what = if by_speed { "speed" } else { test.figure_head() };
    let title = format!("{}: {what} of each", test.title());
    let bars = Bars::new(&format!("race-{}", test.name), &title, unit, groups);
    (!bars.groups.is_empty()).then_some(bars)
}

impl Bars {
    /// Bars of one group; a single one has no picture.
    fn of_one(key: &str, title: &str, unit: &str, bars: Vec<Bar>) -> Option<Self> {
        (bars.len() > 1).then(|| {
            let group = Group { name: String::new(), bars };
            Self::new(key, title, unit, vec![group])
        })
    }

    fn new(key: &str, title: &str, unit: &str, groups: Vec<Group>) -> Self {
        let figures = groups.iter().flat_map(|group| &group.bars).map(|bar| bar.point.y);
        let scale = Scale::of_all(unit, figures);
        let (key, title) = (format!("bars-{key}"), title.to_owned());
        Self { key, title, scale, groups }
    }

    /// All bars, group by group.
    pub fn bars(&self) -> impl Iterator<Item = &Bar> {
        self.groups.iter().flat_map(|group| &group.bars)
    }

    /// The axis of the figures and of what has room of their intervals, from zero, in the shown unit: a bar
    /// is as long as its figure is large.
    pub fn axis(&self) -> Option<Axis> {
        let points: Vec<Point> = self.bars().map(|bar| bar.point).collect();
        Axis::from_zero(plot::figures_and_ends(&points).map(|base| base / self.scale.divisor))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn rows(rows: &[(&str, Value, f64)]) -> Vec<Outcome> {
        let row = |(id, parameters, median): &(&str, Value, f64)| Outcome {
            id: (*id).to_owned(),
            parameters: parameters.as_object().cloned().unwrap(),
            unit: "ns".to_owned(),
            median: Some(*median),
            ..Outcome::default()
        };
        rows.iter().map(row).collect()
    }

    fn bars_of(charts: &[Chart], rows: &[Outcome]) -> Vec<Bars> {
        of_rows(charts, &rows.iter().collect::<Vec<_>>())
    }

    #[test]
    fn calls_of_one_thread_are_bars() {
        let rows = rows(&[
            ("syscall/getppid", json!({"threads": 1}), 70.0),
            ("syscall/getppid", json!({"threads": 2}), 80.0),
            ("syscall/read", json!({}), 400.0),
            ("syscall/lseek", json!({}), 90.0),
            ("syscall/pipe-ping-pong", json!({}), 40_000.0),
            ("syscall/fork-exit", json!({}), 300_000.0),
        ]);
        let bars = bars_of(&[], &rows);
        let names = |at: usize| bars[at].bars().map(|bar| bar.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(0), ["getppid", "read", "lseek"], "they would be nothing beside a fork");
        assert_eq!(names(1), ["pipe-ping-pong", "fork-exit"]);
        assert_eq!((bars[0].scale.unit.as_str(), bars[1].scale.unit.as_str()), ("ns", "µs"));
    }

    #[test]
    fn an_interval_many_times_as_long_as_all_bars_leaves_these_their_length() {
        let mut rows =
            rows(&[("syscall/getppid", json!({}), 70.0), ("syscall/read", json!({}), 100.0)]);
        let high = |rows: &[Outcome]| bars_of(&[], rows)[0].axis().unwrap().high;
        rows[0].ci95 = Some([60.0, 140.0]);
        assert_eq!(high(&rows), 150.0, "it has room");
        rows[0].ci95 = Some([-9e9, 9e9]);
        assert_eq!(high(&rows), 200.0);
    }

    #[test]
    fn rows_with_a_chart_are_no_bars() {
        let rows = rows(&[
            ("memory/level", json!({"level": "L1"}), 1.0),
            ("memory/level", json!({"level": "L2"}), 4.0),
        ]);
        assert_eq!(bars_of(&[], &rows).len(), 1);
        let chart = Chart { id: "memory/level".to_owned(), ..Chart::default() };
        assert!(bars_of(&[chart], &rows).is_empty());
    }
}
