//! How a command ended: its record, and what is said besides.

use flatout_bench::Error;
use flatout_io::escape;
use flatout_measure::clock::{Clock, SystemClock};
use flatout_measure::environment;
use flatout_measure::load::LoadWatch;
use flatout_measure::record::{End, Outcome, Record, SCHEMA, Start, Status};
use flatout_measure::{verdict, warning};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Map, Value};

use crate::zone;

/// Everything is done.
pub const DONE: i32 = 0;
/// Something failed.
pub const FAILED: i32 = 1;
/// The command line makes no sense.
pub const WRONG_USE: i32 = 2;
/// The user stopped it.
pub const INTERRUPTED: i32 = 130;
/// A fault of the program itself, as Rust has it.
pub const FAULT: i32 = 101;

/// The seed in the records of commands in which nothing is random.
pub const NO_SEED: u64 = 1;

/// Why a command does not begin.
pub struct Refused {
    /// What it exits with.
    pub code: i32,
    /// Said to the user.
    pub text: String,
}

impl Refused {
    /// What was asked for makes no sense.
    pub fn wrong_use(text: String) -> Self {
        Self { code: WRONG_USE, text }
    }
}

impl From<String> for Refused {
    fn from(text: String) -> Self {
        Self { code: FAILED, text }
    }
}

/// A finished command.
pub struct Conclusion {
    /// What is shown.
    pub record: Record,
    /// Earlier records, which say what is usual.
    pub earlier: Vec<Record>,
    /// What is left in the current directory besides.
    pub keep: Keep,
}

/// What a command leaves in the current directory besides showing its results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Nothing.
    Nothing,
    /// `flatout-DATE.json` and `flatout-DATE.html`.
    JsonAndPage,
}

/// A record in the making.
pub struct Draft {
    /// What there is so far.
    pub record: Record,
    started_ns: u64,
    load: Option<LoadWatch>,
}

impl Draft {
    /// Begins the record of a run that measures: it says what others did meanwhile.
    pub fn measure(seed: u64) -> Self {
        Self { load: Some(LoadWatch::begin()), ..Self::begin(seed) }
    }

    /// The same, where other processes of a launcher measure together with this one.
    #[cfg(feature = "mpi")]
    pub fn measure_in_job(seed: u64) -> Self {
        let mut load = LoadWatch::begin();
        load.is_in_job = true;
        Self { load: Some(load), ..Self::begin(seed) }
    }

    /// Begins a record now.
    pub fn begin(seed: u64) -> Self {
        // In UTC where nobody knows the zone.
        let now = Timestamp::now().to_zoned(zone::of_user().unwrap_or(TimeZone::UTC));
        let start = Start {
            tool: concat!("flatout ", env!("CARGO_PKG_VERSION")).to_owned(),
            argv: std::env::args_os().map(escape).collect(),
            seed,
            time: now.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
            environment: environment::capture(std::path::Path::new("/")).to_value(),
        };
        let record = Record {
            schema: SCHEMA.to_owned(),
            start,
            results: Vec::new(),
            charts: Vec::new(),
            end: End::default(),
        };
        Self { record, started_ns: SystemClock.now_ns(), load: None }
    }

    /// Notes that something went wrong. The gravest code stays: interrupted, wrong use, failed.
    pub fn fail(&mut self, code: i32, text: String) {
        self.record.end.fail(code, text);
    }

    /// Notes that nothing at all was measured, where nothing else has gone wrong.
    pub fn require_a_figure(&mut self) {
        let Record { results, end, .. } = &self.record;
        if end.exit_code != DONE || results.iter().any(|row| row.median.is_some()) {
            return;
        }
        let warned =
            || results.iter().flat_map(|row| row.warnings.iter().map(move |one| (&row.id, one)));
        // What is missing for want of time may be had; most others say how the row was measured.
        let codes = [warning::TIME_SHORT, warning::ABOVE_CEILING];
        let told = codes.into_iter().find_map(|code| warned().find(|(_, one)| one.code == code));
        let why = told.or_else(|| warned().next());
        let why = why.map(|(id, one)| format!(": {id}: {}", one.text));
        self.fail(FAILED, format!("nothing was measured{}", why.unwrap_or_default()));
    }

    /// Notes what of these rows failed, or beside them; each text once.
    pub fn note_failures<'r>(&mut self, rows: impl IntoIterator<Item = &'r Outcome>) {
        for warning in rows.into_iter().flat_map(|row| &row.warnings) {
            let is_new = !self.record.end.errors.contains(&warning.text);
            if warning.code == warning::FAILED && is_new {
                self.fail(FAILED, warning.text.clone());
            }
        }
    }

    /// Counts the rows that failed in one line; whether there are any.
    pub fn note_failed_rows(&mut self, rows: &[Outcome]) -> bool {
        let mut failed = rows.iter().filter(|row| row.status == Status::Failed);
        let Some(first) = failed.next() else { return false };
        let why = first.warnings.iter().find(|warning| warning.code == warning::FAILED);
        let why = why.map_or("", |warning| warning.text.as_str());
        let rows = match failed.count() {
            0 => "1 row failed:".to_owned(),
            more => format!("{} rows failed, the first is", more + 1),
        };
        self.fail(FAILED, format!("{rows} {}: {why}", first.id));
        true
    }

    /// The record of what was not done at all, and why.
    pub fn refused(mut self, error: &Error) -> Conclusion {
        self.refuse(error);
        self.conclude()
    }

    /// Notes why something was not done.
    pub fn refuse(&mut self, error: &Error) {
        let code = if matches!(error, Error::Usage(_)) { WRONG_USE } else { FAILED };
        self.fail(code, error.to_string());
    }

    /// Notes what lies between a place that was measured and its disks.
    pub fn add_storage(&mut self, storage: Value) {
        if let Value::Object(environment) = &mut self.record.start.environment
            && let Value::Array(places) =
                environment.entry("storage").or_insert_with(|| Value::Array(Vec::new()))
        {
            places.push(storage);
        }
    }

    /// Adds a row; its status may change the exit code.
    pub fn add(&mut self, outcome: Outcome) {
        let code = match outcome.status {
            Status::Interrupted => INTERRUPTED,
            Status::Failed => FAILED,
            _ => DONE,
        };
        self.record.end.exit_code = self.record.end.exit_code.max(code);
        self.record.results.push(outcome);
    }

    /// Completes the record, and answers the six questions about it.
    pub fn judge(self) -> Conclusion {
        let mut conclusion = self.conclude();
        conclusion.record.end.verdict = verdict::answer(&conclusion.record);
        conclusion
    }

    /// Completes the record.
    pub fn conclude(mut self) -> Conclusion {
        self.record.end.elapsed_s = (SystemClock.now_ns() - self.started_ns) as f64 / 1e9;
        self.record.end.load = self.load.map(|load| load.end());
        Conclusion { record: self.record, earlier: Vec::new(), keep: Keep::Nothing }
    }
}

/// Errors that a document lists, up to a limit: there may be millions.
#[derive(Debug, Default)]
pub struct Errors {
    first: Vec<String>,
    more: u64,
}

/// So many are kept.
const MAX_ERRORS: usize = 100;

impl Errors {
    /// Takes one in.
    pub fn keep(&mut self, text: String) {
        if self.first.len() < MAX_ERRORS {
            self.first.push(text);
        } else {
            self.more += 1;
        }
    }

    /// The list, and how many it leaves out.
    pub fn into_list(mut self) -> Vec<String> {
        if self.more > 0 {
            self.first.push(format!("and {} more", self.more));
        }
        self.first
    }
}

/// The row of all that a command moved; `rate` is in bytes per second.
pub fn total(id: &str, rate: Option<f64>) -> Outcome {
    Outcome {
        id: id.to_owned(),
        unit: "bytes/s".to_owned(),
        median: rate,
        n: u64::from(rate.is_some()),
        samples: rate.into_iter().collect(),
        ..Outcome::default()
    }
}

/// Bytes per second; `None` where nothing was moved.
pub fn rate(bytes: u64, elapsed_ns: u64) -> Option<f64> {
    (bytes > 0 && elapsed_ns > 0).then(|| bytes as f64 / (elapsed_ns as f64 / 1e9))
}

/// Members of an object.
pub fn members<const N: usize>(pairs: [(&str, Value); N]) -> Map<String, Value> {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A command that could not begin.
pub fn ended(code: i32, text: String) -> Conclusion {
    let mut draft = Draft::begin(0);
    draft.fail(code, text);
    draft.conclude()
}

#[cfg(test)]
mod tests {
    use flatout_measure::warning::{self, Warning};

    use super::*;

    #[test]
    fn a_run_without_any_figure_has_failed_and_says_why() {
        let row = |median| Outcome {
            id: "area/row".to_owned(),
            median,
            warnings: vec![Warning::new(warning::TIME_SHORT, "there was no time")],
            ..Outcome::default()
        };
        let end = |medians: &[Option<f64>]| {
            let mut draft = Draft::begin(0);
            medians.iter().for_each(|median| draft.add(row(*median)));
            draft.require_a_figure();
            draft.conclude().record.end
        };
        let nothing = end(&[None, None]);
        assert_eq!(nothing.exit_code, FAILED);
        assert_eq!(nothing.errors, ["nothing was measured: area/row: there was no time"]);
        assert_eq!(end(&[None, Some(1.0)]).exit_code, DONE);
        let mut draft = Draft::begin(0);
        let warnings = vec![Warning::new(warning::FAILED, "the CPU lacks it")];
        draft.add(Outcome { id: "area/other".to_owned(), warnings, ..Outcome::default() });
        draft.add(row(None));
        draft.require_a_figure();
        let said = draft.conclude().record.end.errors;
        assert_eq!(said, ["nothing was measured: area/row: there was no time"]);
    }

    #[test]
    fn a_figure_that_was_refused_is_named_for_that_and_not_for_how_it_was_measured() {
        let labelled = [
            Warning::new(warning::ONE_MACHINE, "no network"),
            Warning::new(warning::ABOVE_CEILING, "169 % of the link"),
        ];
        let mut draft = Draft::begin(0);
        let (id, warnings) = ("area/row".to_owned(), labelled.to_vec());
        draft.add(Outcome { id, warnings, ..Outcome::default() });
        draft.require_a_figure();
        let said = draft.conclude().record.end.errors;
        assert_eq!(said, ["nothing was measured: area/row: 169 % of the link"]);
    }

    #[test]
    fn rows_that_failed_are_one_line_however_many_they_are() {
        let row = |place: &str| Outcome {
            id: "area/row".to_owned(),
            status: Status::Failed,
            warnings: vec![Warning::new(warning::FAILED, format!("no room in {place}"))],
            ..Outcome::default()
        };
        let mut draft = Draft::begin(0);
        assert!(draft.note_failed_rows(&[row("a"), row("b"), row("c")]));
        assert!(!draft.note_failed_rows(&[]));
        let End { exit_code, errors, .. } = draft.conclude().record.end;
        let line = "3 rows failed, the first is area/row: no room in a";
        assert_eq!((exit_code, errors), (FAILED, vec![line.to_owned()]));
    }
}
