//! How many of the 95 % intervals that `flatout bench` prints hold what other runs find: whole runs,
//! one after the other, each row of each against the median of the same row in all others. Of records in
//! several folders each is held against those of the other folders: runs of one hour agree, of another they may not.
//!
//! Beside a quiet machine it should be 93 to 97 %. It takes as long as the runs; nothing else may
//! work on the machine, or as much as is to be measured. Rows without trials, such as the roofs of a
//! roofline, are left out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::steps;

/// Other runs that the truth of a row is the median of, at the least.
const LEAST_OTHERS: usize = 3;

/// A row in one run.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Figure {
    median: f64,
    interval: Option<[f64; 2]>,
    is_ok: bool,
}

/// What the intervals of some rows did.
#[derive(Debug, Clone, Default, PartialEq)]
struct Tally {
    figures: usize,
    intervals: usize,
    held: usize,
    ok: usize,
    ok_held: usize,
    half_widths: Vec<f64>,
}

impl Tally {
    fn add(&mut self, figure: &Figure, truth: f64) {
        self.figures += 1;
        let Some([low, high]) = figure.interval else { return };
        let holds = usize::from((low..=high).contains(&truth));
        self.intervals += 1;
        self.held += holds;
        if figure.is_ok {
            self.ok += 1;
            self.ok_held += holds;
        }
        self.half_widths.push((high - low) / 2.0 / figure.median.abs());
    }

    fn line(&self, name: &str) -> String {
        let percent = |part: usize, all: usize| match all {
            0 => "–".to_owned(),
            _ => format!("{:.1} %", 100.0 * part as f64 / all as f64),
        };
        let width = median(&self.half_widths)
            .map_or("–".to_owned(), |width| format!("±{:.1} %", 100.0 * width));
        format!(
            "| {name} | {} | {} | {} | {} | {width} |",
            self.figures,
            percent(self.intervals, self.figures),
            percent(self.held, self.intervals),
            percent(self.ok_held, self.ok)
        )
    }
}

/// Makes so many runs of `flatout bench` with these arguments, or takes records that there are, and
/// prints the table.
pub fn measure(root: &Path, first: &str, others: &[&str]) -> Result<(), String> {
    let all = match first.parse() {
        Ok(runs) => make(root, runs, others)?,
        Err(_) => [first].iter().chain(others).map(PathBuf::from).collect(),
    };
    if all.len() <= LEAST_OTHERS {
        let runs = all.len();
        return Err(format!("{runs} runs are too few: each is held against {LEAST_OTHERS} others"));
    }
    let read = |path: &PathBuf| {
        let name = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
        let record: Value =
            serde_json::from_str(&text).map_err(|error| format!("{name}: {error}"))?;
        Ok((path.parent().map_or_else(PathBuf::new, PathBuf::from), figures(&record)))
    };
    print!("{}", table(&all.iter().map(read).collect::<Result<Vec<_>, String>>()?));
    Ok(())
}

/// Makes so many runs; their records.
fn make(root: &Path, runs: usize, arguments: &[&str]) -> Result<Vec<PathBuf>, String> {
    let mut build = Command::new(steps::cargo());
    build.args(["build", "--release"]).current_dir(root);
    steps::succeeded(build.status(), "cargo build --release")?;
    let folder = root.join("target/coverage");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let make = |run: usize| {
        println!("run {run} of {runs}");
        let path = folder.join(format!("{run}.json"));
        let mut bench = Command::new(root.join("target/release/flatout"));
        bench.arg("bench").args(arguments).args(["--format", "json", "--output"]).arg(&path);
        steps::succeeded(bench.current_dir(&folder).status(), "flatout bench").map(|_| path)
    };
    (1..=runs).map(make).collect()
}

/// The rows of a record that have a figure of trials, by name.
fn figures(record: &Value) -> BTreeMap<String, Figure> {
    let rows = record["results"].as_array().map_or(&[][..], Vec::as_slice);
    let figure = |row: &Value| {
        let interval = row["ci95"].as_array().and_then(|ends| match &ends[..] {
            [low, high] => Some([low.as_f64()?, high.as_f64()?]),
            _ => None,
        });
        row["samples"].as_array().filter(|samples| !samples.is_empty())?;
        let name = format!("{} {}", row["id"].as_str()?, row["parameters"]);
        let (median, is_ok) = (row["median"].as_f64()?, row["status"] == "ok");
        Some((name, Figure { median, interval, is_ok }))
    };
    rows.iter().filter_map(figure).collect()
}

/// A run: the folder of its record, and its rows.
type Run = (PathBuf, BTreeMap<String, Figure>);

/// The table, a line per area.
fn table(runs: &[Run]) -> String {
    let mut areas: BTreeMap<&str, Tally> = BTreeMap::new();
    let has_several_folders = runs.iter().any(|run| run.0 != runs[0].0);
    for (index, (folder, record)) in runs.iter().enumerate() {
        let is_other = |&(other, run): &(usize, &Run)| match has_several_folders {
            true => run.0 != *folder,
            false => other != index,
        };
        for (name, figure) in record {
            let others = runs.iter().enumerate().filter(is_other);
            let others: Vec<f64> =
                others.filter_map(|(_, (_, other))| Some(other.get(name)?.median)).collect();
            let Some(truth) = median(&others).filter(|_| others.len() >= LEAST_OTHERS) else {
                continue;
            };
            let area = name.split_once('/').map_or(name.as_str(), |(area, _)| area);
            for key in [area, "all"] {
                areas.entry(key).or_default().add(figure, truth);
            }
        }
    }
    let head = "| area | figures | with an interval | intervals that hold | … of rows that are ok | \
                half-width |\n|---|---|---|---|---|---|\n";
    let last = areas.remove("all");
    let all = areas.into_iter().chain(last.map(|last| ("all", last)));
    head.to_owned() + &all.map(|(name, tally)| tally.line(name) + "\n").collect::<String>()
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let high = *sorted.get(sorted.len() / 2)?;
    let low = sorted[(sorted.len() - 1) / 2];
    Some(low + (high - low) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(median: f64, half_width: f64, status: &str) -> Run {
        let rows = figures(&serde_json::json!({"results": [
            {"id": "a/b", "parameters": {"threads": 1}, "median": median, "status": status,
             "samples": [median], "ci95": [median - half_width, median + half_width]},
            {"id": "c/d", "parameters": {}, "median": median, "status": "ok", "samples": [median]},
            {"id": "c/roof", "parameters": {}, "median": median, "status": "ok", "samples": []},
            {"id": "c/failed", "parameters": {}, "median": null, "status": "failed", "samples": []},
        ]}));
        (PathBuf::new(), rows)
    }

    #[test]
    fn an_interval_holds_the_median_of_the_other_runs_or_not() {
        let runs = [
            record(100.0, 1.0, "ok"),
            record(101.0, 2.0, "ok"),
            record(102.0, 0.5, "ok"),
            record(110.0, 2.0, "unstable"),
        ];
        // Others: 102, 102, 101, 101.
        let table = table(&runs);
        let lines: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(lines[0], "| a | 4 | 100.0 % | 25.0 % | 33.3 % | ±1.4 % |");
        assert_eq!(lines[1], "| c | 4 | 0.0 % | – | – | – |");
        assert!(lines[2].starts_with("| all | 8 | 50.0 % | 25.0 % |"), "{table}");
    }

    #[test]
    fn runs_of_one_folder_are_held_against_those_of_others() {
        let of = |folder: &str, median| (PathBuf::from(folder), record(median, 2.0, "ok").1);
        let hours = [[100.0, 101.0, 100.0], [103.0, 104.0, 103.0]];
        let all = ["one", "two"]
            .iter()
            .zip(hours)
            .flat_map(|(folder, hour)| hour.map(|median| of(folder, median)));
        let table = table(&all.collect::<Vec<_>>());
        assert!(table.contains("| a | 6 | 100.0 % | 16.7 % |"), "{table}");
    }

    #[test]
    fn a_row_that_few_other_runs_have_is_not_judged() {
        let runs = [record(1.0, 1.0, "ok"), record(1.0, 1.0, "ok"), record(1.0, 1.0, "ok")];
        assert_eq!(table(&runs).lines().count(), 2);
    }
}
