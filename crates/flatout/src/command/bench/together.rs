//! `flatout bench` by all processes that a launcher has started. Each measures its machine (`cpu`,
//! `memory`), and the first one tells what all have found, row by row; or all measure what they
//! share (`disk`, `network`), as the first one leads them.

mod shared;

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use flatout_measure::record::{Better, Outcome, Record, Status};
use flatout_mpi::World;
use flatout_report::text::Joined;
use flatout_report::{Format, document, json, parameters_text, quantity};
use flatout_sys::cancel::CancelToken;
use serde_json::Value;

use crate::arguments::bench::{Among, Bench as Arguments};
use crate::conclusion::{self, Keep};
use crate::group::Group;
use crate::launched::Launched;
use crate::output;

/// The parameter that says whose figure a row has, and the one that says what it is of all of them.
const PROCESS: &str = "process";
const ACROSS: &str = "across";

/// How the names of rows end that are computed of others.
const COMPUTED: &str = "/roofline";

/// What one process has found.
struct Part {
    /// Its number and its host.
    name: String,
    record: Record,
}

/// Measures at the same time as the others.
pub fn run(arguments: &Arguments, cancel: CancelToken, launched: &Launched) -> ExitCode {
    let is_shared = arguments.among_processes() == Some(Among::Together);
    if let Err(error) = if is_shared { arguments.check_together() } else { Ok(()) } {
        return launched.refuse(&error, conclusion::WRONG_USE);
    }
    let group = match Group::join(launched) {
        Ok((group, _)) => group,
        Err(code) => return code,
    };
    if is_shared {
        return shared::run(arguments, cancel, group);
    }
    let begun = Instant::now();
    let mut conclusion = super::run(arguments, cancel);
    let mut own = World::host().into_bytes();
    own.push(0);
    own.extend(json::document(&conclusion.record).into_bytes());
    // Another host may be far slower.
    let all = group.world.gather(&own, begun.elapsed());
    if !group.is_first() {
        return output::exit(conclusion.record.end.exit_code);
    }
    let mut parts = Vec::new();
    for (rank, said) in all.iter().enumerate() {
        let mut halves = said.splitn(2, |&byte| byte == 0);
        let host = String::from_utf8_lossy(halves.next().unwrap_or_default()).into_owned();
        let name = format!("{rank} {host}");
        match document::parse(halves.next().unwrap_or_default(), Path::new(&name)) {
            Ok(record) => parts.push(Part { name, record }),
            Err(error) => conclusion.record.end.fail(conclusion::FAILED, error),
        }
    }
    // What the first one says, too, is said once: all were interrupted, or had no time.
    let common = conclusion.record.end.errors.clone();
    for Part { name, record } in parts.iter().skip(1) {
        for error in record.end.errors.iter().filter(|&error| !common.contains(error)) {
            conclusion.record.end.fail(record.end.exit_code, format!("process {name}: {error}"));
        }
    }
    conclusion.keep = Keep::Nothing;
    let rows = rows(&parts);
    if arguments.output.format() == Format::Table && arguments.output.output.is_none() {
        conclusion.record.end.errors.iter().for_each(|error| output::complain(error));
        return output::deliver(None, table(&rows).as_bytes(), conclusion.record.end.exit_code);
    }
    conclusion.record.results = rows.iter().flat_map(Row::outcomes).collect();
    conclusion.record.charts.clear();
    output::conclude(conclusion, &arguments.output)
}

/// A row of all processes.
struct Row<'p> {
    /// Whose it is, and what it says.
    figures: Vec<(&'p str, &'p Outcome)>,
}

/// What each of the processes says of a row, in the order of the first one.
fn rows(parts: &[Part]) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for Part { name, record } in parts {
        for outcome in &record.results {
            let is_it = |row: &&mut Row<'_>| {
                let (_, first) = row.figures[0];
                (&first.id, &first.parameters) == (&outcome.id, &outcome.parameters)
            };
            match rows.iter_mut().find(is_it) {
                Some(row) => row.figures.push((name, outcome)),
                None => rows.push(Row { figures: vec![(name, outcome)] }),
            }
        }
    }
    rows
}

/// What a row says across all that have a figure of it.
struct Across<'p> {
    sum: f64,
    slowest: (&'p str, f64),
    fastest: (&'p str, f64),
    /// From the least to the greatest, as a share of the slowest.
    spread: f64,
}

impl<'p> Row<'p> {
    fn first(&self) -> &'p Outcome {
        self.figures[0].1
    }

    fn across(&self) -> Option<Across<'p>> {
        let known = self.figures.iter();
        let mut known: Vec<(&str, f64)> =
            known.filter_map(|(name, outcome)| Some((*name, outcome.median?))).collect();
        known.sort_by(|one, other| one.1.total_cmp(&other.1));
        let (least, most) = (*known.first()?, *known.last()?);
        let (slowest, fastest) = match self.first().better {
            Better::Higher => (least, most),
            Better::Lower => (most, least),
        };
        let sum = known.iter().map(|(_, figure)| figure).sum();
        let spread = (most.1 - least.1) / slowest.1.abs().max(f64::MIN_POSITIVE);
        Some(Across { sum, slowest, fastest, spread })
    }

    /// Rows of a record: those of each process, and what they are together.
    fn outcomes(&self) -> Vec<Outcome> {
        let of_process = |(name, outcome): &(&str, &Outcome)| {
            let mut outcome = Outcome::clone(outcome);
            outcome.parameters.insert(PROCESS.to_owned(), Value::from(*name));
            outcome
        };
        let mut outcomes: Vec<Outcome> = self.figures.iter().map(of_process).collect();
        let Some(across) = self.across() else { return outcomes };
        let first = self.first();
        let mut add = |what: &str, process: Option<&str>, unit: &str, figure: f64| {
            let mut parameters = first.parameters.clone();
            parameters.insert(ACROSS.to_owned(), Value::from(what));
            if let Some(process) = process {
                parameters.insert(PROCESS.to_owned(), Value::from(process));
            }
            outcomes.push(Outcome {
                id: first.id.clone(),
                parameters,
                unit: unit.to_owned(),
                better: first.better,
                median: Some(figure),
                n: 1,
                samples: vec![figure],
                status: self.status(),
                ..Outcome::default()
            });
        };
        let unit = first.unit.as_str();
        if first.better == Better::Higher {
            add("sum", None, unit, across.sum);
        }
        add("slowest", Some(across.slowest.0), unit, across.slowest.1);
        add("fastest", Some(across.fastest.0), unit, across.fastest.1);
        add("spread", None, "ratio", across.spread);
        // Processes that differ less are better, whatever they measure.
        if let Some(spread) = outcomes.last_mut() {
            spread.better = Better::Lower;
        }
        outcomes
    }

    /// The gravest.
    fn status(&self) -> Status {
        self.figures.iter().map(|(_, outcome)| outcome.status).max().unwrap_or_default()
    }
}

/// All rows, for people: what they are together, then each.
fn table(rows: &[Row<'_>]) -> String {
    let mut text = String::new();
    // What is computed of others says nothing more here.
    for row in rows.iter().filter(|row| !row.first().id.ends_with(COMPUTED)) {
        let first = row.first();
        let parameters = parameters_text(&first.parameters);
        let figure = |figure: f64| quantity::value(&first.unit, figure);
        let _to_memory = write!(text, "{} {parameters}\n   ", first.id);
        if let Some(across) = row.across() {
            if first.better == Better::Higher {
                let _to_memory = write!(text, " sum {},", figure(across.sum));
            }
            let (slow, fast) = (across.slowest, across.fastest);
            let _to_memory = writeln!(
                text,
                " slowest {} ({}), fastest {} ({}), spread {}",
                figure(slow.1),
                slow.0,
                figure(fast.1),
                fast.0,
                quantity::percent(across.spread)
            );
        } else {
            text.push_str(" no figure\n");
        }
        for (name, outcome) in &row.figures {
            let said = outcome.median.map_or_else(|| "none".to_owned(), figure);
            let codes = outcome.warnings.iter().map(|warning| &warning.code).joined(", ");
            let _to_memory = writeln!(text, "    {name}: {said}  {codes}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, figures: &[(&str, f64, Better)]) -> Part {
        let row = |&(id, median, better): &(&str, f64, Better)| Outcome {
            id: id.to_owned(),
            unit: "bytes/s".to_owned(),
            median: Some(median),
            better,
            ..Outcome::default()
        };
        let mut record = conclusion::ended(0, String::new()).record;
        record.results = figures.iter().map(row).collect();
        Part { name: name.to_owned(), record }
    }

    #[test]
    fn rows_of_all_are_put_together() {
        let parts = [
            part("0 a", &[("cpu/x", 4.0, Better::Higher), ("memory/y", 1.0, Better::Lower)]),
            part("1 b", &[("memory/y", 2.0, Better::Lower), ("cpu/x", 2.0, Better::Higher)]),
            part("2 c", &[("cpu/x", 3.0, Better::Higher), ("cpu/z", 1.0, Better::Higher)]),
        ];
        let rows = rows(&parts);
        assert_eq!(rows.iter().map(|row| row.figures.len()).collect::<Vec<_>>(), [3, 2, 1]);
        let rate = rows[0].across().unwrap();
        assert_eq!((rate.sum, rate.slowest, rate.fastest), (9.0, ("1 b", 2.0), ("0 a", 4.0)));
        assert_eq!(rate.spread, 1.0);
        let time = rows[1].across().unwrap();
        assert_eq!((time.slowest, time.fastest), (("1 b", 2.0), ("0 a", 1.0)));
        let outcomes = rows[0].outcomes();
        assert_eq!(outcomes.len(), 3 + 4);
        let said = |outcome: &Outcome| outcome.parameter_text(ACROSS).map(str::to_owned);
        let across: Vec<_> = outcomes.iter().filter_map(said).collect();
        assert_eq!(across, ["sum", "slowest", "fastest", "spread"]);
        let better: Vec<_> = outcomes[3..].iter().map(|outcome| outcome.better).collect();
        assert_eq!(better, [Better::Higher, Better::Higher, Better::Higher, Better::Lower]);
        assert_eq!(rows[1].outcomes().len(), 2 + 3, "a sum of times means nothing");
        let with = |status| Outcome { status, ..parts[0].record.results[0].clone() };
        let both = [Status::Degraded, Status::Failed].map(with);
        let failed = Row { figures: both.iter().map(|outcome| ("0 a", outcome)).collect() };
        assert_eq!(failed.status(), Status::Failed, "what one lacks is lacking in the sum");
        let table = table(&rows);
        let slowest = format!("slowest {} (1 b)", quantity::value("bytes/s", 2.0));
        assert!(table.contains(&slowest), "{table}");
    }
}
