//! Runs that `flatout compare` makes, each a process of its own: what a process keeps from one run
//! to the next would hide noise.
//!
//! The runs of two sides take turns, so that a machine that warms up, or has a busy hour, does so
//! to both.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flatout_io::cause_text;
use flatout_io::escape;
use flatout_measure::comparison::Comparison;
use flatout_measure::record::Record;
use flatout_report::comparison::Form;
use flatout_report::document;
use flatout_sys::cancel::CancelToken;
use rustix::process::Signal;

use super::noise_file;
use crate::arguments::compare::Compare as Arguments;
use crate::output::{self, cannot};

/// A run that is ended by one of these was stopped; by any other it failed.
const STOPS: [Signal; 3] = [Signal::HUP, Signal::INT, Signal::TERM];

/// How a run is made.
pub(super) struct Recipe<'a> {
    program: PathBuf,
    words: Vec<OsString>,
    /// What a shell does before.
    before: Option<&'a OsStr>,
}

/// A run, and its document as it came.
pub(super) struct Made {
    pub record: Record,
    document: Vec<u8>,
}

impl<'a> Recipe<'a> {
    /// Runs of this very program.
    pub fn own(arguments: &'a Arguments) -> Result<Self, String> {
        let program =
            std::env::current_exe().map_err(|error| format!("who am I: {}", cause_text(&error)))?;
        Ok(Self { program, words: words(arguments), before: None })
    }

    /// Makes a run; `None` when interrupted.
    pub fn run(&self, cancel: CancelToken) -> Result<Option<Made>, String> {
        let program = &self.program;
        // What came before there was a run to hear it.
        if cancel.is_cancelled() {
            return Ok(None);
        }
        if let Some(command) = self.before {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(command).stdin(Stdio::null());
            // Standard output is for the results.
            let ended = shell.output().map_err(cannot("start sh"))?;
            if cancel.is_cancelled() {
                return Ok(None);
            }
            if !ended.status.success() {
                let said = String::from_utf8_lossy(&ended.stderr);
                let last = said.lines().last().unwrap_or_default();
                return Err(format!("{command:?}: {}: {}", ended.status, escape(last)));
            }
        }
        let mut run = Command::new(program);
        run.args(&self.words).args(["--format", "json"]);
        run.stdin(Stdio::null()).stderr(Stdio::inherit());
        let ended = run.output().map_err(cannot(format_args!("start {program:?}")))?;
        let signal = ended.status.signal();
        let is_stopped = STOPS.iter().any(|stop| Some(stop.as_raw()) == signal);
        if cancel.is_cancelled() || is_stopped {
            return Ok(None);
        }
        if ended.stdout.is_empty() {
            return Err(format!("{program:?} printed no record: {}", ended.status));
        }
        let record = document::parse(&ended.stdout, program).map_err(|error| {
            format!("{program:?} printed no record ({}): {error}", ended.status)
        })?;
        if record.results.iter().all(|row| row.median.is_none()) {
            let why = record.end.errors.first().map_or("it does not say why", String::as_str);
            return Err(format!("the run of {program:?} has no figure: {why}"));
        }
        super::complain_of(&record, program);
        Ok(Some(Made { record, document: ended.stdout }))
    }
}

/// What flatout is told to do.
fn words(arguments: &Arguments) -> Vec<OsString> {
    if !arguments.words.is_empty() {
        return arguments.words.clone();
    }
    let areas = arguments.area.iter().map(|area| area.word());
    let quick = arguments.quick.then_some("--quick");
    std::iter::once("bench").chain(areas).chain(quick).map(OsString::from).collect()
}

/// Makes so many runs of each side and compares them; `None` when interrupted.
pub(super) fn compared(
    arguments: &Arguments,
    runs: u32,
    cancel: CancelToken,
) -> Result<Option<Vec<Comparison>>, String> {
    let befores = [arguments.before_old.as_deref(), arguments.before_new.as_deref()];
    let recipe = |index: usize| -> Result<Recipe<'_>, String> {
        let own = Recipe { before: befores[index], ..Recipe::own(arguments)? };
        let given = arguments.files.get(index).map(|path| found(path));
        Ok(Recipe { program: given.unwrap_or_else(|| own.program.clone()), ..own })
    };
    let recipes = [recipe(0)?, recipe(1)?];
    let folders = ["old", "new"].map(|side| arguments.keep.as_ref().map(|keep| keep.join(side)));
    for folder in folders.iter().flatten() {
        std::fs::create_dir_all(folder).map_err(cannot(format_args!("make {folder:?}")))?;
    }
    let mut sides = [Vec::new(), Vec::new()];
    for run in 1..=runs {
        for (index, side) in ["OLD", "NEW"].into_iter().enumerate() {
            output::notice(&format!("run {run} of {runs}, {side}"));
            let Some(made) = recipes[index].run(cancel)? else { return Ok(None) };
            if let Some(folder) = &folders[index] {
                output::replace(&free_name(folder), &made.document)?;
            }
            sides[index].push(made.record);
        }
    }
    let names = [0, 1].map(|index| name(&recipes[index], arguments.format()));
    Ok(Some(vec![super::held(arguments, &noise_file::load(), names, sides)]))
}

/// A program in the current directory is meant before one in PATH.
fn found(program: &Path) -> PathBuf {
    match program.canonicalize() {
        Ok(found) if found.is_file() => found,
        _ => program.to_owned(),
    }
}

/// The first number that no run has.
fn free_name(folder: &Path) -> PathBuf {
    let names = (1_u32..).map(|number| folder.join(format!("{number}.json")));
    names.into_iter().find(|path| !path.exists()).unwrap_or_else(|| folder.join("run.json"))
}

/// What a side is called; a page does not say where it lies, nor what was done to the machine.
fn name(recipe: &Recipe<'_>, form: Form) -> String {
    match (form, recipe.program.file_name(), recipe.before) {
        (Form::Html, name, before) => {
            let program = name.map(escape).unwrap_or_default();
            if before.is_some() { format!("{program} in its state") } else { program }
        }
        (_, _, Some(before)) => format!("{} after {}", escape(&recipe.program), escape(before)),
        (_, _, None) => escape(&recipe.program),
    }
}
