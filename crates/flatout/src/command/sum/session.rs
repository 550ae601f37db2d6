//! A run of `flatout sum`: where its lines go, what it has counted, and how it will end.

use std::ffi::OsStr;
use std::io::{self, IsTerminal};
use std::ops::ControlFlow;
use std::path::Path;

use flatout_io::cause_text;
use flatout_sys::cancel::CancelToken;
use flatout_sys::clock::monotonic_ns;
use flatout_tree::manifest::{self, Manifest};
use flatout_tree::sum::{Failure, Found, Summed};

use super::account::Account;
use super::document::Document;
use crate::arguments::sum::{Sum, SumFormat};
use crate::conclusion::{DONE, FAILED, INTERRUPTED};
use crate::output;
use crate::output::stream::{Stopped, Stream};

/// What came of a file that was to have a digest.
pub enum Judged<'s> {
    Matches(&'s Found),
    Differs,
    /// It could not be read.
    Failed,
    /// It is missing, as it may.
    LeftOut,
}

/// A run in the making.
pub struct Session<'a> {
    pub arguments: &'a Sum,
    pub cancel: CancelToken,
    pub stream: Stream,
    pub account: Account,
    document: Option<Document>,
    manifest: Manifest,
    begun_ns: u64,
    exit_code: i32,
    /// Nothing more can be written, or nobody wants it.
    is_stopped: bool,
    line: Vec<u8>,
}

impl<'a> Session<'a> {
    /// Begins now.
    pub fn begin(arguments: &'a Sum, cancel: CancelToken, stream: Stream) -> Self {
        let mut session = Self {
            arguments,
            cancel,
            stream,
            account: Account::default(),
            document: None,
            manifest: arguments.manifest(),
            begun_ns: monotonic_ns(),
            exit_code: DONE,
            is_stopped: false,
            line: Vec::new(),
        };
        if arguments.format() == SumFormat::Json {
            let (document, start) = Document::begin(arguments);
            session.document = Some(document);
            // A failure is remembered.
            let _ = session.write(start.as_bytes());
            // Describing the machine is no part of reading files.
            session.begun_ns = monotonic_ns();
        }
        session
    }

    /// Notes what went wrong, and says so.
    pub fn fail(&mut self, code: i32, text: String) {
        output::complain(&text);
        self.exit_code = self.exit_code.max(code);
        if let Some(document) = &mut self.document {
            document.fail(text);
        }
    }

    /// Says what cannot be done with a file, if anybody still waits for it.
    pub fn cannot(&mut self, operation: &str, path: &Path, error: &io::Error) {
        if !self.is_over() {
            self.fail(FAILED, format!("cannot {operation} {path:?}: {}", cause_text(error)));
        }
    }

    /// Notes that something is not as it should be, where a line about it stands elsewhere.
    pub fn differ(&mut self) {
        self.exit_code = self.exit_code.max(FAILED);
    }

    /// Takes in that an entry is not as it should be, and says how.
    pub fn wrong(&mut self, shown: &OsStr, what: &str) -> ControlFlow<()> {
        self.account.failed += 1;
        self.differ();
        self.tell_wrong(shown, what)
    }

    /// Says how an entry is not as it should be.
    pub fn tell_wrong(&mut self, shown: &OsStr, what: &str) -> ControlFlow<()> {
        let what = format!("FAILED {what}");
        if let Some(document) = &mut self.document {
            document.fail(String::from_utf8_lossy(&named(shown, &what)).into_owned());
        }
        self.tell(shown, &what)
    }

    /// Writes `NAME: WORD` where lines are written, unless the exit code is all that is wanted.
    pub fn tell(&mut self, shown: &OsStr, word: &str) -> ControlFlow<()> {
        if self.arguments.status || self.document.is_some() {
            return ControlFlow::Continue(());
        }
        let mut line = named(shown, word);
        line.push(b'\n');
        self.write(&line)
    }

    /// Takes in that an entry is as it should be.
    pub fn right(&mut self, shown: &OsStr) -> ControlFlow<()> {
        match self.arguments.quiet {
            true => ControlFlow::Continue(()),
            false => self.tell(shown, "OK"),
        }
    }

    /// Writes whole lines; breaks off when that is no use any more.
    pub fn write(&mut self, lines: &[u8]) -> ControlFlow<()> {
        if self.is_stopped {
            return ControlFlow::Break(());
        }
        match self.stream.write(lines) {
            Ok(()) => ControlFlow::Continue(()),
            Err(stopped) => {
                self.stop(stopped);
                ControlFlow::Break(())
            }
        }
    }

    fn stop(&mut self, stopped: Stopped) {
        self.is_stopped = true;
        if let Stopped::Failed(text) = stopped {
            output::complain(&text);
            self.exit_code = self.exit_code.max(FAILED);
        }
    }

    /// Whether the rest need not be done.
    pub fn is_over(&self) -> bool {
        self.is_stopped || self.cancel.is_cancelled()
    }

    /// Takes in the digest of a file.
    pub fn digested(&mut self, summed: Summed) -> ControlFlow<()> {
        match &summed.result {
            Ok(found) => {
                self.count(found);
                if self.document.is_some() {
                    return self.row(&summed);
                }
                let mut line = std::mem::take(&mut self.line);
                line.clear();
                self.manifest.append(&mut line, &found.digest, &summed.shown);
                let flow = self.write(&line);
                self.line = line;
                flow
            }
            Err(Failure::Interrupted) => ControlFlow::Break(()),
            Err(failure) => self.failed(&summed, failure),
        }
    }

    /// Takes in what came of a file that was to have a digest, with its row.
    pub fn judged<'s>(&mut self, summed: &'s Summed) -> ControlFlow<(), Judged<'s>> {
        ControlFlow::Continue(match &summed.result {
            Ok(found) => {
                self.count(found);
                if found.matches {
                    self.account.matched += 1;
                } else {
                    self.account.mismatched += 1;
                    self.account.failed += 1;
                    self.differ();
                }
                self.row(summed)?;
                if found.matches { Judged::Matches(found) } else { Judged::Differs }
            }
            Err(Failure::Interrupted) => return ControlFlow::Break(()),
            Err(failure) if failure.is_missing() && self.arguments.ignore_missing => {
                self.account.missing += 1;
                Judged::LeftOut
            }
            Err(failure) => {
                self.failed(summed, failure)?;
                Judged::Failed
            }
        })
    }

    /// Counts a file that was read.
    fn count(&mut self, found: &Found) {
        self.account.files += 1;
        self.account.bytes += found.length_bytes;
    }

    /// Takes in a file without a digest.
    fn failed(&mut self, summed: &Summed, failure: &Failure) -> ControlFlow<()> {
        self.account.failed += 1;
        self.account.missing += u64::from(failure.is_missing());
        let is_directory = matches!(failure, Failure::System { source, .. }
            if source.kind() == io::ErrorKind::IsADirectory);
        // What a manifest lists is a file.
        let hint = match is_directory && !self.arguments.check {
            true => "; -r reads all that is below it",
            false => "",
        };
        self.fail(FAILED, format!("{failure}{hint}"));
        self.row(summed)
    }

    /// Writes the row of a file where rows are written.
    fn row(&mut self, summed: &Summed) -> ControlFlow<()> {
        match &mut self.document {
            None => ControlFlow::Continue(()),
            Some(document) => {
                let row = document.row(summed);
                self.write(row.as_bytes())
            }
        }
    }

    /// Writes what is left; returns the exit code.
    pub fn end(mut self) -> i32 {
        let elapsed_ns = monotonic_ns() - self.begun_ns;
        // Who closes the pipe and then interrupts has interrupted all the same.
        if self.cancel.is_cancelled() {
            self.fail(INTERRUPTED, "interrupted".to_owned());
        } else if io::stderr().is_terminal()
            && let Some(line) = self.account.closing_line(elapsed_ns)
        {
            output::complain(&line);
        }
        let is_document = self.document.is_some();
        if let Some(document) = self.document.take() {
            let end = document.end(&self.account, elapsed_ns, self.exit_code);
            let _ = self.write(end.as_bytes());
        }
        // Half a manifest must not pass for a whole one; a document says how it ended.
        let is_whole = is_document || self.exit_code != INTERRUPTED;
        let ended = match (self.is_stopped, is_whole, &self.arguments.output) {
            (false, true, _) | (false, false, None) => self.stream.finish(),
            (_, _, Some(path)) => {
                if self.stream.discard() {
                    output::complain(&format!("{path:?} was not written"));
                }
                Ok(())
            }
            (true, _, None) => Ok(()),
        };
        match ended {
            Err(Stopped::Failed(text)) => {
                output::complain(&text);
                self.exit_code.max(FAILED)
            }
            Ok(()) | Err(Stopped::Closed) => self.exit_code,
        }
    }
}

fn named(shown: &OsStr, word: &str) -> Vec<u8> {
    [&*manifest::shown(shown), b": ", word.as_bytes()].concat()
}
