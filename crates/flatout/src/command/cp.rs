//! `flatout cp`: what GNU cp does, by the same copier as `flatout copy`. Nothing is said but what went
//! wrong, and with `--verbose` what is made.

pub mod complaint;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use flatout_io::cause_text;
use flatout_io::transfer::Method;
use flatout_sys::cancel::CancelToken;
use flatout_sys::lock::lock;
use flatout_tree::copy::Copy;
use flatout_tree::copy::backup::Backups;
use flatout_tree::copy::event::{Action, Event, UNSTABLE, Watch};
use flatout_tree::copy::operand::{self, Destination, Plan};
use flatout_tree::copy::rules::Follow;

use super::copy::{disguise, in_threads};
use crate::arguments::cp::Cp;
use crate::{conclusion, output};
use complaint::{of_failure, of_incomplete, of_objection, quote};

/// Copies all that is named. What cannot be copied does not stop the rest.
pub fn run(arguments: &Cp, cancel: CancelToken) -> ExitCode {
    if let Some(error) = disguise::obstacle() {
        return output::give_up(conclusion::FAILED, &error);
    }
    if let Some(warning) = arguments.warning {
        output::complain(&format!("warning: {warning}"));
    }
    let (destination, backups) = match place(arguments) {
        Ok(place) => place,
        Err(error) => return output::give_up(conclusion::FAILED, &error),
    };
    let (is_verbose, hole_search) = (arguments.verbose, arguments.hole_search());
    let witness = Witness { is_verbose, hole_search, ..Witness::default() };
    let plan = plan(arguments, &destination, &witness);
    let below = match &destination {
        Destination::Into(directory) if arguments.parents => Some(directory.clone()),
        _ => None,
    };
    let copy = Copy::new(arguments.options(cancel), &witness);
    // Symlinks may lead to one file more than once, however many names it has.
    let mut copy = copy.with_repeated_names().with_parents(below).with_rounds(&plan.rounds);
    copy.backups = backups;
    for round in plan.rounds {
        let ended = in_threads(&copy, round);
        if ended.interrupted {
            break;
        }
    }
    let is_interrupted = cancel.is_cancelled();
    output::exit(match witness.failures.load(Ordering::Relaxed) {
        _ if is_interrupted => conclusion::INTERRUPTED,
        0 => conclusion::DONE,
        _ => conclusion::FAILED,
    })
}

/// Where the sources go, and how what is overwritten is kept.
fn place(arguments: &Cp) -> Result<(Destination, Option<Backups>), String> {
    let backups = arguments.backups()?;
    let Some((target, backups)) = arguments.backed_up_itself().zip(backups.as_ref()) else {
        return Ok((arguments.destination(), backups));
    };
    // The backup is all that there is to be made.
    let name = backup_of(target, backups).map_err(|errno| {
        format!("cannot backup {}: {}", quote(target), cause_text(&errno.into()))
    })?;
    Ok((Destination::Exactly(name), None))
}

/// The path of a backup of this file.
fn backup_of(path: &Path, backups: &Backups) -> Result<PathBuf, rustix::io::Errno> {
    use rustix::fs::{Mode, OFlags};
    let above = operand::parent(path);
    let directory = rustix::fs::open(above, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let name = path.file_name().unwrap_or_default();
    let name = std::ffi::CString::new(name.as_bytes()).map_err(|_| rustix::io::Errno::INVAL)?;
    let backup = backups.name_of(std::os::fd::AsFd::as_fd(&directory), &name)?;
    Ok(path.with_file_name(OsStr::from_bytes(backup.to_bytes())))
}

/// Finds out what goes where, and says what does not.
fn plan(arguments: &Cp, destination: &Destination, witness: &Witness) -> Plan {
    let (sources, wording) = (arguments.sources(), arguments.wording());
    let plan = operand::plan(&sources, destination, arguments.reach, Some(wording));
    for source in &plan.repeated {
        let follows = wording.rules.follow != Follow::Never;
        let facts = if follows { source.metadata() } else { source.symlink_metadata() };
        let kind = if facts.is_ok_and(|facts| facts.is_dir()) { "directory" } else { "file" };
        let source = quote(source);
        output::complain(&format!("warning: source {kind} {source} specified more than once"));
    }
    for objection in &plan.objections {
        let is_named = arguments.target_directories.is_empty();
        let into = if is_named { "target" } else { "target directory" };
        witness.fail(&of_objection(objection, into));
    }
    plan
}

/// Says what happens.
#[derive(Default)]
struct Witness {
    is_verbose: bool,
    /// How each file was copied is said, and that holes were looked for in this way.
    hole_search: Option<&'static str>,
    failures: AtomicU64,
    /// Held while somebody is asked.
    asking: Mutex<()>,
}

impl Witness {
    /// What `--debug` wants to know.
    fn tell_how(&self, action: Action, source: &OsStr, method: Option<Method>) {
        let Some(holes) = self.hole_search else { return };
        let (offload, reflink) = match method {
            Some(Method::Reflink) => ("unknown", "yes"),
            Some(Method::CopyFileRange | Method::Splice) => ("yes", "no"),
            Some(_) => ("avoided", "no"),
            None => ("unknown", "no"),
        };
        match action {
            Action::Copied => output::say(&format!(
                "copy offload: {offload}, reflink: {reflink}, sparse detection: {holes}"
            )),
            Action::Unchanged => output::say(&format!("skipped {}", quote(source))),
            Action::Linked | Action::Made | Action::Directory => {}
        }
    }

    fn fail(&self, text: &str) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        output::complain(text);
    }
}

impl Watch for Witness {
    fn event(&self, event: &Event) {
        match event {
            Event::Making { source, target, backup } => {
                let backup = backup.as_ref().map(|name| format!(" (backup: {})", quote(name)));
                let backup = backup.unwrap_or_default();
                output::say(&format!("{} -> {}{backup}", quote(source), quote(target)));
            }
            Event::Failed(failure) => self.fail(&of_failure(failure)),
            // cp does not look, and scripts go by its exit code.
            Event::Incomplete { source, code: UNSTABLE, .. } => {
                let source = quote(source);
                output::complain(&format!("warning: {source} changed while it was copied"));
            }
            Event::Incomplete { target, code, cause, .. } => {
                self.fail(&of_incomplete(target, code, *cause));
            }
            Event::Done { action, source, method, .. } => self.tell_how(*action, source, *method),
            Event::Notice(_) | Event::Deleted { .. } | Event::Changed { .. } | Event::Listed(_) => {
            }
        }
    }

    fn consents(&self, target: &OsStr) -> bool {
        let _one_at_a_time = lock(&self.asking);
        output::consents(&format!("overwrite {}? ", quote(target)))
    }

    fn wants_each(&self) -> bool {
        self.is_verbose
    }
}
