//! Whoever watches the copy: says what went wrong as it comes, and writes the log.

use std::ffi::OsStr;
use std::sync::Mutex;

use flatout_io::{escape, quote};
use flatout_sys::lock::{lock, unlocked};
use flatout_tree::copy::event::{Event, Watch};
use flatout_tree::copy::failure::Cause;
use flatout_tree::copy::operand::Objection;
use rustix::io::Errno;
use serde_json::{Value, json};

use super::changes::Changes;
use super::log::Log;
use super::manifest::Listing;
use super::terminal::Terminal;
use crate::arguments::copy::method_name;
use crate::conclusion::{Errors, FAILED};
use crate::output;

/// Descriptors with which every copy gets by, as tests hold.
const ENOUGH_FILES: &str = "64 open files are enough for any tree: ulimit -n 64";

/// What was said so far.
pub struct Witness<'a> {
    log: Option<Log>,
    /// What there is in the end.
    pub manifest: Option<Listing>,
    /// Where somebody looks on.
    pub terminal: Option<&'a Terminal>,
    told: Told,
    said: Mutex<Said>,
}

/// What people are told while it happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// What went wrong.
    Failures,
    /// What is made, too, on standard output.
    Everything,
    /// What is changed, too, on standard output.
    Changes(Changes),
}

#[derive(Default)]
struct Said {
    /// Those that are kept for the document; all of them are said, and logged.
    errors: Errors,
    objections: u64,
    /// That too few files may be open was said.
    told_limit: bool,
}

impl<'a> Witness<'a> {
    /// Nothing has happened yet.
    pub fn new(log: Option<Log>, terminal: Option<&'a Terminal>, told: Told) -> Self {
        Self { log, manifest: None, terminal, told, said: Mutex::new(Said::default()) }
    }

    /// Operands that were not even tried.
    pub fn objections(&self) -> u64 {
        lock(&self.said).objections
    }

    /// Does something to the terminal between two drawings, if anything is drawn.
    fn aside(&self, act: impl FnOnce()) {
        match self.terminal {
            Some(terminal) => terminal.bar.suspend(act),
            None => act(),
        }
    }

    /// Says something on standard output.
    fn say(&self, line: &str) {
        self.aside(|| output::say(line));
    }

    fn log(&self, line: impl FnOnce() -> Value) {
        if let Some(log) = &self.log {
            log.write(&line());
        }
    }

    fn note(&self, text: String) {
        self.remark(&text);
        self.keep(text);
    }

    /// Keeps an error for the document.
    fn keep(&self, text: String) {
        lock(&self.said).errors.keep(text);
    }

    /// Says something that is no failure.
    pub fn remark(&self, text: &str) {
        self.aside(|| output::complain(text));
    }

    /// Says that an operand is not copied.
    pub fn object(&self, objection: &Objection) {
        let text = objection.to_string();
        let path = objection.path().as_os_str();
        self.log(|| json!({"action": "refused", "path": escape(path), "cause": text}));
        lock(&self.said).objections += 1;
        self.note(text);
    }

    /// Says why nothing more is copied.
    pub fn give_up(&self, error: &str) {
        lock(&self.said).objections += 1;
        self.note(error.to_owned());
    }

    /// Ends the log. Returns the errors for the document.
    pub fn finish(self, code: &mut i32) -> Vec<String> {
        let listed = self.manifest.map(|manifest| manifest.finish(*code));
        for ended in [self.log.map(Log::finish), listed].into_iter().flatten() {
            if let Err(error) = ended {
                output::complain(&error);
                *code = (*code).max(FAILED);
            }
        }
        unlocked(self.said).errors.into_list()
    }
}

impl Watch for Witness<'_> {
    fn event(&self, event: &Event) {
        match event {
            Event::Making { source, target, .. } if self.told == Told::Everything => {
                self.say(&format!("'{}' -> '{}'", escape(source), escape(target)));
            }
            Event::Making { .. } => {}
            Event::Changed { letters, source, target, lead } => {
                if let Told::Changes(changes) = &self.told {
                    self.say(&changes.line(letters, (source, target), lead.as_ref()));
                }
            }
            Event::Done { action, source, bytes, method, elapsed_ns } => self.log(|| {
                json!({
                    "action": action.name(),
                    "path": escape(source),
                    "bytes": bytes,
                    "method": method.map(method_name),
                    "elapsed_ns": elapsed_ns,
                })
            }),
            Event::Listed(record) => {
                if let Some(manifest) = &self.manifest {
                    manifest.add(record);
                }
            }
            Event::Deleted { target, is_directory, .. } => {
                self.log(|| json!({"action": "deleted", "path": escape(target)}));
                match &self.told {
                    Told::Everything => self.say(&format!("removed '{}'", escape(target))),
                    Told::Changes(changes) => self.say(&changes.deleted(target, *is_directory)),
                    Told::Failures => {}
                }
            }
            Event::Failed(failure) => {
                self.log(|| {
                    json!({
                        "action": "failed",
                        "path": escape(&failure.path),
                        "operation": failure.refusal.operation,
                        "cause": failure.refusal.cause.to_string(),
                    })
                });
                self.note(failure.to_string());
                if failure.refusal.cause == Cause::System(Errno::MFILE)
                    && !std::mem::replace(&mut lock(&self.said).told_limit, true)
                {
                    self.remark(ENOUGH_FILES);
                }
            }
            Event::Incomplete { source, code, .. } => {
                let path = escape(source);
                self.log(|| json!({"action": "incomplete", "path": path, "code": code}));
                // What it is was said once; there may be a million of them.
                self.keep(format!("{path} is incomplete: {code}"));
            }
            Event::Notice(notice) => {
                let first = notice.first.as_ref();
                let first = first.map(|path| format!(" (first: {})", quote(path)));
                let text = notice.text.clone() + &first.unwrap_or_default();
                self.log(|| json!({"action": "notice", "code": notice.code, "text": text}));
                self.remark(&text);
            }
        }
    }

    fn consents(&self, target: &OsStr) -> bool {
        let question = format!("overwrite {}? ", quote(target));
        let mut answer = false;
        self.aside(|| answer = output::consents(&question));
        answer
    }

    fn wants_each(&self) -> bool {
        self.log.is_some() || self.told != Told::Failures
    }

    fn wants_changes(&self) -> bool {
        matches!(self.told, Told::Changes(_))
    }
}
