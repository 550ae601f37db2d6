//! `flatout sum --check`: the files that manifests list, held against them.

use std::cell::{Cell, RefCell};
use std::io::{self, BufRead, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use flatout_io::digest::{Algorithm, Digest};
use flatout_sys::input;
use flatout_tree::inventory::FIRST;
use flatout_tree::item::Wanted;
use flatout_tree::manifest::{Entry, Fault, Line, Reader};
use flatout_tree::sum::Summed;
use flatout_tree::walk::Yielded;

use super::in_threads;
use super::inventory;
use super::session::{Judged, Session};
use crate::conclusion::FAILED;
use crate::output;

/// What one manifest held.
#[derive(Debug, Default)]
struct Counts {
    /// Lines that name a file and a digest.
    proper: u64,
    /// Of these, those with 32 digits and no word that says of which algorithm they are.
    taken_for_xxh3: u64,
    /// Lines that do not.
    malformed: u64,
    /// Lines with a digest that is not computed here, or that are too long to be read.
    foreign: u64,
    unreadable: u64,
    mismatched: u64,
    matched: u64,
    /// The manifest could not be read to its end.
    is_cut: bool,
}

/// Checks all manifests.
pub fn run(mut session: Session<'_>) -> Session<'_> {
    for path in session.arguments.operands() {
        if session.is_over() {
            break;
        }
        match input::open(&path, session.cancel) {
            Ok(mut input) => {
                // A pipe may hand it out in pieces. What cannot be read is told of by whoever reads it.
                let mut start = Vec::new();
                let _told = input.by_ref().take(FIRST.len() as u64).read_to_end(&mut start);
                let is_inventory = start == FIRST;
                let input = io::Cursor::new(start).chain(input);
                session = match is_inventory {
                    true => inventory::check(session, &path, input),
                    false => check(session, &path, input),
                };
            }
            Err(error) => session.cannot("open", &path, &error),
        }
    }
    session
}

/// A manifest that is checked. The lines that are read and the files that are found come by turns,
/// in one thread.
struct Check<'a, 'b> {
    session: RefCell<Session<'b>>,
    counts: RefCell<Counts>,
    path: &'a Path,
    /// The algorithm of the last line that left it open and matched: the next one is likely its.
    likely: Cell<Option<Algorithm>>,
}

fn check<'b>(session: Session<'b>, path: &Path, input: impl BufRead) -> Session<'b> {
    let arguments = session.arguments;
    let (threads, cancel) = (arguments.threads, session.cancel);
    let (session, counts) = (RefCell::new(session), RefCell::default());
    let check = Check { session, counts, path, likely: Cell::new(None) };
    let lines = Reader::new(input, arguments.manifest().end, arguments.digest);
    let items = lines.filter_map(|line| check.item(line));
    in_threads(threads, cancel, items, |summed| check.found(summed));
    let (mut session, counts) = (check.session.into_inner(), check.counts.into_inner());
    if !session.is_over() {
        conclude(&mut session, path, &counts);
    }
    session
}

impl Check<'_, '_> {
    /// The file that a line names.
    fn item(&self, line: io::Result<Line>) -> Option<Yielded> {
        let Line { number, content } = match line {
            Ok(line) => line,
            Err(error) => {
                self.counts.borrow_mut().is_cut = true;
                self.session.borrow_mut().cannot("read", self.path, &error);
                return None;
            }
        };
        match content {
            Ok(entry) if entry.name == "-" && self.path.as_os_str() == "-" => {
                self.counts.borrow_mut().foreign += 1;
                let text = format!("line {number}: standard input is the manifest itself");
                self.session.borrow_mut().fail(FAILED, text);
                None
            }
            Ok(mut entry) => {
                let mut counts = self.counts.borrow_mut();
                counts.proper += 1;
                counts.taken_for_xxh3 += u64::from(self.is_taken_for_xxh3(&entry));
                if let Some(algorithm) = self.likely.get() {
                    entry.prefer(algorithm);
                }
                let path = PathBuf::from(entry.name);
                Some(Ok(super::item(path, Wanted::Match(entry.digests))))
            }
            Err(fault) => {
                self.fault(number, &fault);
                None
            }
        }
    }

    /// Whether it may as well be a line of md5sum.
    fn is_taken_for_xxh3(&self, entry: &Entry) -> bool {
        let is_asked = self.session.borrow().arguments.digest.is_some();
        let digest = entry.digests.first().map(Digest::algorithm);
        !is_asked && entry.is_untagged && digest == Some(Algorithm::Xxh3)
    }

    fn fault(&self, number: u64, fault: &Fault) {
        let (mut session, mut counts) = (self.session.borrow_mut(), self.counts.borrow_mut());
        let text = format!("{:?}: line {number}: {fault}", self.path);
        match fault {
            Fault::Malformed => {
                counts.malformed += 1;
                if session.arguments.warn {
                    output::complain(&text);
                }
            }
            // The file is listed, and nobody has looked at it: that is no success.
            Fault::TooLong | Fault::Foreign(_) | Fault::Unasked(_) => {
                counts.foreign += 1;
                session.fail(FAILED, text);
            }
        }
    }

    /// Takes in what was found of a file.
    fn found(&self, summed: Summed) -> ControlFlow<()> {
        let mut session = self.session.borrow_mut();
        let mut counts = self.counts.borrow_mut();
        let word = match session.judged(&summed)? {
            Judged::Matches(found) => {
                counts.matched += 1;
                self.likely.set(Some(found.digest.algorithm()));
                return session.right(&summed.shown);
            }
            Judged::LeftOut => return ControlFlow::Continue(()),
            Judged::Differs => {
                counts.mismatched += 1;
                "FAILED"
            }
            Judged::Failed => {
                counts.unreadable += 1;
                "FAILED open or read"
            }
        };
        session.tell(&summed.shown, word)
    }
}

/// Says what a manifest came to.
fn conclude(session: &mut Session<'_>, path: &Path, counts: &Counts) {
    if counts.proper == 0 {
        // Where other complaints were made, this one would only hide them.
        if counts.foreign == 0 && !counts.is_cut {
            let asked = session.arguments.digest;
            let known = asked.map_or_else(
                || Algorithm::ALL.map(Algorithm::name).join(", "),
                |asked| asked.name().to_owned(),
            );
            let text = format!("{path:?}: no properly formatted lines found of {known}");
            session.fail(FAILED, text);
        }
        return;
    }
    if session.arguments.strict && counts.malformed > 0 {
        session.differ();
    }
    if !session.arguments.status {
        let lines = ["line is improperly formatted", "lines are improperly formatted"];
        let files = ["listed file could not be read", "listed files could not be read"];
        let digests = ["computed digest did NOT match", "computed digests did NOT match"];
        for (count, words, is_failure) in [
            (counts.malformed, lines, session.arguments.strict),
            (counts.unreadable, files, true),
            (counts.mismatched, digests, true),
        ] {
            let text = format!("WARNING: {count} {}", words[usize::from(count > 1)]);
            match (count, is_failure) {
                (0, _) => {}
                (_, true) => session.fail(FAILED, text),
                (_, false) => output::complain(&text),
            }
        }
        if counts.mismatched > 0 && counts.matched == 0 && counts.taken_for_xxh3 == counts.proper {
            output::complain(&format!(
                "{path:?}: its 32 digits were taken for xxh3; those of md5sum, as many, cannot be checked"
            ));
        }
    }
    if session.arguments.ignore_missing && counts.matched == 0 {
        if session.arguments.status {
            session.differ();
        } else {
            session.fail(FAILED, format!("{path:?}: no file was verified"));
        }
    }
}
