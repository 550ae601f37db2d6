//! Runs that `flatout compare` makes, each a process of its own: what a process keeps from one run
//! to the next would hide noise.
//!
//! The runs of two sides take turns, and turns at the first place, so that a machine that warms up, or
//! has a busy hour, does so to both.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use flatout_io::escape;
use flatout_measure::record::Record;
use flatout_report::comparison::Document;
use flatout_report::{Format, document};
use flatout_sys::cancel::{self, CancelToken, Ready};
use flatout_sys::process;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};

use super::{Failure, noise_file};
use crate::arguments::compare::Compare as Arguments;
use crate::command::own_program;
use crate::output::{self, cannot};

/// Bytes taken out of a pipe at a time.
const CHUNK_BYTES: usize = 64 << 10;
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
    pub fn own(arguments: &'a Arguments) -> Self {
        Self { program: own_program(), words: words(arguments), before: None }
    }

    /// Makes a run.
    pub fn run(&self, cancel: CancelToken) -> Result<Made, Failure> {
        let program = &self.program;
        // What came before there was a run to hear it.
        if cancel.is_cancelled() {
            return Err(None);
        }
        if let Some(command) = self.before {
            let mut shell = Command::new("sh");
            // Standard output is for the results.
            shell.arg("-c").arg(command).stdout(Stdio::null()).stderr(Stdio::piped());
            // What it starts is to end with it.
            shell.process_group(0);
            let ended = ended(&mut shell, cancel).map_err(cannot("start sh"))?;
            let Some((status, said)) = ended else { return Err(None) };
            if !status.success() {
                let said = String::from_utf8_lossy(&said);
                let last = said.lines().last().map(|last| format!(": {}", escape(last)));
                return Err(Some(format!("{command:?}: {status}{}", last.unwrap_or_default())));
            }
        }
        let mut run = Command::new(program);
        run.args(&self.words).args(["--format", "json"]).stdout(Stdio::piped());
        let ended = ended(&mut run, cancel).map_err(cannot(format_args!("start {program:?}")))?;
        let Some((status, document)) = ended else { return Err(None) };
        if STOPS.iter().any(|stop| Some(stop.as_raw()) == status.signal()) {
            return Err(None);
        }
        if document.is_empty() {
            return Err(Some(format!("{program:?} printed no record: {status}")));
        }
        let record = document::parse(&document, program)
            .map_err(|error| format!("{program:?} printed no record ({status}): {error}"))?;
        if record.results.iter().all(|row| row.median.is_none()) {
            let why = record.end.errors.first().map_or("it does not say why", String::as_str);
            return Err(Some(format!("the run of {program:?} has no figure: {why}")));
        }
        super::complain_of(&record, program);
        Ok(Made { record, document })
    }
}

/// How a program ended, and what it said to the one pipe that it has; `None` when interrupted, which
/// it is told, with all of its group if it has one.
fn ended(command: &mut Command, cancel: CancelToken) -> io::Result<Option<(ExitStatus, Vec<u8>)>> {
    // Whatever becomes of this process, the program does not go on without it.
    process::end_with_us(command);
    let mut child = command.stdin(Stdio::null()).spawn()?;
    let mut said = Vec::new();
    let pipes = [child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from)];
    let pipe = pipes.into_iter().flatten().next();
    let heard = pipe.map_or(Ok(true), |pipe| hear(pipe.into(), &mut said));
    let pid = Pid::from_child(&child);
    if !matches!(heard, Ok(true)) || !is_over(pid) {
        let _ = kill_process_group(pid, Signal::TERM).or_else(|_| kill_process(pid, Signal::TERM));
    }
    let status = child.wait()?;
    heard?;
    Ok((!cancel.is_cancelled()).then_some((status, said)))
}

/// Waits until a program that said all has ended; returns whether no signal came first. Before Linux 5.3
/// it cannot be waited for so.
fn is_over(pid: Pid) -> bool {
    let handle = pidfd_open(pid, PidfdFlags::empty());
    let waited = handle.map(|handle| cancel::wait_readable(handle.as_fd(), None));
    !matches!(waited, Ok(Ok(Ready::Cancelled)))
}

/// Reads a pipe to its end, or beyond what any document has; returns whether no signal came first.
fn hear(mut pipe: File, said: &mut Vec<u8>) -> io::Result<bool> {
    let mut chunk = vec![0; CHUNK_BYTES];
    while said.len() as u64 <= document::MAX_DOCUMENT_BYTES {
        if cancel::wait_readable(pipe.as_fd(), None)? != Ready::Readable {
            return Ok(false);
        }
        match pipe.read(&mut chunk)? {
            0 => break,
            length => said.extend_from_slice(&chunk[..length]),
        }
    }
    Ok(true)
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

/// Makes so many runs of each side and shows them compared.
pub(super) fn compared(
    arguments: &Arguments,
    runs: u32,
    cancel: CancelToken,
) -> Result<Document, Failure> {
    let befores = [arguments.before_old.as_deref(), arguments.before_new.as_deref()];
    let recipes = [0, 1].map(|index| {
        let own = Recipe { before: befores[index], ..Recipe::own(arguments) };
        let given = arguments.files.get(index).map(|path| found(path));
        Recipe { program: given.unwrap_or_else(|| own.program.clone()), ..own }
    });
    let folders = ["old", "new"].map(|side| arguments.keep.as_ref().map(|keep| keep.join(side)));
    for folder in folders.iter().flatten() {
        std::fs::create_dir_all(folder).map_err(cannot(format_args!("make {folder:?}")))?;
    }
    let mut sides = [Vec::new(), Vec::new()];
    for run in 1..=runs {
        // Whoever went second goes first: where a machine only gets slower, neither is favoured.
        for index in if run % 2 == 1 { [0, 1] } else { [1, 0] } {
            output::notice(&format!("run {run} of {runs}, {}", ["OLD", "NEW"][index]));
            let made = recipes[index].run(cancel)?;
            if let Some(folder) = &folders[index] {
                output::replace(&free_name(folder), &made.document)?;
            }
            sides[index].push(made.record);
        }
    }
    let names = [0, 1].map(|index| name(&recipes[index], arguments.format()));
    let held = super::held(arguments, &noise_file::load(), names, sides);
    Ok(super::of_states(vec![held]))
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
fn name(recipe: &Recipe<'_>, form: Format) -> String {
    match (form, recipe.program.file_name(), recipe.before) {
        (Format::Html, name, before) => {
            let program = name.map(escape).unwrap_or_default();
            if before.is_some() { format!("{program} in its state") } else { program }
        }
        (_, _, Some(before)) => format!("{} after {}", escape(&recipe.program), escape(before)),
        (_, _, None) => escape(&recipe.program),
    }
}
