//! `flatout compare`: records are read, or made, held against each other, and shown; the worst
//! verdict is the exit code. Making runs: `compare/making.rs`; learning the noise of the machine:
//! `compare/noise.rs`; the file in which it is kept: `compare/noise_file.rs`. With `--trend`, all records are
//! those of one machine over time.

mod making;
mod noise;
pub mod noise_file;

use std::iter::once;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use flatout_bench::option::distinct;
use flatout_measure::comparison::noise::{Learned, Noise};
use flatout_measure::comparison::trend::{LevelChange, trend};
use flatout_measure::comparison::{Comparison, Question, Runs, Verdict, are_one_run, compare};
use flatout_measure::record::Record;
use flatout_report::comparison::{Document, render};
use flatout_report::{Format, identity};
use flatout_sys::cancel::CancelToken;

use crate::arguments::compare::Compare as Arguments;
use crate::command::history;
use crate::conclusion::{DONE, INTERRUPTED, WRONG_USE};
use crate::output;

/// Program and version, as documents name them.
const TOOL: &str = concat!("flatout ", env!("CARGO_PKG_VERSION"));

/// Some row is worse.
const WORSE: i32 = 1;
/// No row is in both, or none of those can be compared.
const NOTHING: i32 = 3;
/// Too many rows are unclear, and none is worse.
const UNCLEAR: i32 = 4;

/// Why nothing is compared; `None`: the user wants to stop.
type Failure = Option<String>;

/// Compares, or learns.
pub fn run(arguments: &Arguments, cancel: CancelToken) -> ExitCode {
    // What cannot be listed is complained of where it is read.
    let listed = |path: &PathBuf| listed(path).unwrap_or_else(|_| vec![path.clone()]);
    let inputs: Vec<PathBuf> = arguments.inputs().flat_map(listed).collect();
    if let Err(error) = output::check(arguments.output.as_deref(), &inputs) {
        // In the form that was asked for, or meant, on standard output.
        let (wanted, output) = (Some(arguments.format()), None);
        return refuse(&Arguments { wanted, output, ..arguments.clone() }, WRONG_USE, error);
    }
    let found = match arguments.runs {
        _ if arguments.noise => noise::learn(arguments, cancel).map(|()| None),
        _ if arguments.trend => of_time(arguments).map(Some),
        Some(runs) => making::compared(arguments, runs, cancel).map(Some),
        None => comparisons(arguments).map(Some),
    };
    match found {
        Ok(Some(document)) => show(arguments, &document),
        Ok(None) => output::exit(DONE),
        Err(Some(error)) => refuse(arguments, WRONG_USE, error),
        Err(None) => {
            let done = if arguments.noise { "learned" } else { "compared" };
            refuse(arguments, INTERRUPTED, format!("interrupted: nothing is {done}"))
        }
    }
}

/// Comparisons shown; of several the gravest code stays.
fn of_states(comparisons: Vec<Comparison>) -> Document {
    let gravity = |code: &i32| [DONE, NOTHING, UNCLEAR, WORSE].iter().position(|one| one == code);
    let code = comparisons.iter().map(code).max_by_key(gravity).unwrap_or(NOTHING);
    Document::new(TOOL, comparisons, Vec::new(), code)
}

/// Each new side against the old one.
fn comparisons(arguments: &Arguments) -> Result<Document, Failure> {
    let (old_path, new_paths) =
        arguments.files.split_first().expect("the arguments rule out that no FILE is given");
    let old = read_all(once(old_path).chain(&arguments.more_old))?;
    let known = noise_file::load();
    let mut found = Vec::new();
    for new_path in new_paths {
        let new = read_all(once(new_path).chain(&arguments.more_new))?;
        let names = [name(old_path, arguments), name(new_path, arguments)];
        found.push(held(arguments, &known, names, [old.clone(), new]));
    }
    Ok(of_states(found))
}

/// The records as they are shown: a page does not tell where it comes from.
fn shaped(records: Vec<Record>, arguments: &Arguments) -> Vec<Record> {
    match arguments.format() {
        Format::Html => records.iter().map(identity::hidden).collect(),
        _ => records,
    }
}

/// What all records say of the machine over time.
fn of_time(arguments: &Arguments) -> Result<Document, Failure> {
    let trend = trend(&shaped(read_all(&arguments.files)?, arguments));
    let is_worse = |change: &LevelChange| change.verdict == Verdict::Worse;
    let code = match trend.rows.iter().any(|row| row.change.as_ref().is_some_and(is_worse)) {
        true => WORSE,
        false if trend.rows.is_empty() => NOTHING,
        false => DONE,
    };
    Ok(Document { trend: Some(trend), ..Document::new(TOOL, Vec::new(), Vec::new(), code) })
}

/// One side against another.
fn held(
    arguments: &Arguments,
    known: &[Learned],
    names: [String; 2],
    sides: [Vec<Record>; 2],
) -> Comparison {
    let [old, new] = sides.map(|side| shaped(side, arguments));
    let question = Question {
        threshold_ratio: arguments.threshold,
        noise: learned(known, old.iter().chain(&new)),
    };
    let old = Runs { name: &names[0], records: &old };
    compare(old, Runs { name: &names[1], records: &new }, &question)
}

/// The noise of the one machine that all runs are of, if it is known.
fn learned<'a>(
    known: &[Learned],
    records: impl Iterator<Item = &'a Record> + Clone,
) -> Option<Noise> {
    let first = records.clone().next()?;
    let own = known.iter().find(|learned| learned.is_of(&first.start.environment))?;
    if !records.clone().all(|record| own.is_of(&record.start.environment)) {
        return None;
    }
    if !own.holds_beside(records) {
        output::notice("the machine was busier than when its noise was learned: that is not used");
        return None;
    }
    Some(Noise::of(own))
}

/// Reads files, and the files of folders. A run that several of them hold, as a record and as its
/// page, counts once.
fn read_all<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<Vec<Record>, String> {
    let mut records = Vec::new();
    for path in paths {
        for run in listed(path)? {
            let record = history::document(&run)?;
            complain_of(&record, &run);
            records.push(record);
        }
    }
    let count = records.len();
    let kept = distinct(records, are_one_run);
    if kept.len() < count {
        let text =
            format!("of runs that are counted already: {} of {count} files", count - kept.len());
        output::notice(&text);
    }
    Ok(kept)
}

/// The runs of a folder, or the one of a file.
fn listed(path: &Path) -> Result<Vec<PathBuf>, String> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let runs = history::files(path, &["json", "html"])?;
    if runs.is_empty() {
        return Err(format!(
            "{path:?} is a directory without a .json or .html file; where two trees differ says \
             flatout copy --checksum --delete --dry-run --itemize -T OLD NEW"
        ));
    }
    Ok(runs)
}

/// Says so if a run did not end well.
fn complain_of(record: &Record, path: &Path) {
    if record.end.exit_code != DONE {
        let why = record.end.errors.first().map_or("it does not say why", String::as_str);
        output::complain(&format!("the run in {path:?} did not end well: {why}"));
    }
}

/// What a side is called; a page does not say where it lies.
fn name(path: &Path, arguments: &Arguments) -> String {
    let name = match (arguments.format(), path.file_name()) {
        (Format::Html, Some(name)) => name,
        _ => path.as_os_str(),
    };
    history::name(Path::new(name))
}

fn code(comparison: &Comparison) -> i32 {
    match comparison.verdict {
        Verdict::Worse => WORSE,
        Verdict::Unclear => UNCLEAR,
        Verdict::Incomparable => NOTHING,
        Verdict::Better | Verdict::Same => DONE,
    }
}

/// Says what is wrong; in JSON also in the document.
fn refuse(arguments: &Arguments, code: i32, error: String) -> ExitCode {
    output::complain(&error);
    if arguments.format() != Format::Json {
        return output::exit(code);
    }
    show(arguments, &Document::new(TOOL, Vec::new(), vec![error], code))
}

fn show(arguments: &Arguments, document: &Document) -> ExitCode {
    let code = document.exit_code;
    let place = arguments.output.as_deref();
    let style = output::style(place, arguments.verbose);
    let shown = render(document, arguments.format(), &style);
    match output::put(place, shown.as_bytes()) {
        Ok(()) => output::exit(code),
        Err(error) if document.errors.contains(&error) => output::exit(code),
        Err(error) => output::give_up(WRONG_USE, &error),
    }
}
