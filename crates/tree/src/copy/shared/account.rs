//! What another process tells of its part: events as they happened, and how much was done.

use std::collections::HashSet;
use std::ffi::OsString;
use std::sync::Mutex;

use rustix::io::Errno;

use super::super::content::{Done, Tally};
use super::super::event::{Action, Event, Lead, Notice, Watch};
use super::super::failure::{Cause, Failure, Refusal};
use super::super::tally::Snapshot;
use super::wire::{Wire, put, take};
use crate::inventory::{Line, parse};
use crate::lock::lock;

const ACTIONS: [Action; 5] =
    [Action::Copied, Action::Unchanged, Action::Linked, Action::Made, Action::Directory];

const MAKING: u8 = 1;
const DONE: u8 = 2;
const FAILED: u8 = 3;
const INCOMPLETE: u8 = 4;
const NOTICE: u8 = 5;
const DELETED: u8 = 6;
const CHANGED: u8 = 7;
const LISTED: u8 = 8;

const SYMLINK: u8 = 1;
const LINK: u8 = 2;

/// Numbers of errors that the kernel knows.
const ERRNOS: std::ops::Range<i32> = 1..4096;

const SYSTEM: u8 = 1;
const ASIDE: u8 = 2;
const REASON: u8 = 3;

/// What is told besides what goes wrong.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted {
    /// Every entry.
    pub each: bool,
    /// What changes of it.
    pub changes: bool,
}

/// Keeps what happens until it is sent to the process that tells the user.
#[derive(Debug, Default)]
pub struct Reporter {
    wanted: Wanted,
    events: Mutex<Vec<u8>>,
}

impl Reporter {
    /// Nothing has happened yet. It tells what the first process wants to know.
    pub fn new(wanted: Wanted) -> Self {
        Self { wanted, events: Mutex::default() }
    }

    /// What happened since this was called last; empty: nothing.
    pub(super) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *lock(&self.events))
    }
}

impl Watch for Reporter {
    fn event(&self, event: &Event<'_>) {
        write(event, &mut lock(&self.events));
    }

    fn wants_each(&self) -> bool {
        self.wanted.each
    }

    fn wants_changes(&self) -> bool {
        self.wanted.changes
    }
}

fn write(event: &Event<'_>, out: &mut Vec<u8>) {
    match event {
        Event::Making { source, target, backup } => put(out, &[&MAKING, source, target, backup]),
        Event::Done { action, source, bytes, method, elapsed_ns } => {
            put(out, &[&DONE, action, method, source, bytes, elapsed_ns]);
        }
        Event::Changed { letters, source, target, lead } => {
            put(out, &[&CHANGED, letters, source, target, lead]);
        }
        Event::Listed(record) => {
            let mut line = Vec::new();
            record.append(&mut line);
            put(out, &[&LISTED, &line]);
        }
        Event::Deleted { target, below, is_directory } => {
            put(out, &[&DELETED, is_directory, target, &below.to_vec()]);
        }
        Event::Failed(Failure { refusal, path, other }) => {
            put(out, &[&FAILED, path, other]);
            put_refusal(out, refusal);
        }
        Event::Incomplete { source, code, .. } => put(out, &[&INCOMPLETE, source, &word(code)]),
        Event::Notice(Notice { code, text }) => put(out, &[&NOTICE, &word(code), &word(text)]),
    }
}

fn word(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

impl Wire for Action {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(ACTIONS.iter().position(|known| known == self).unwrap_or_default() as u8);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        ACTIONS.get(usize::from(u8::take(from)?)).copied()
    }
}

impl Wire for Lead {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Symlink(text) => put(out, &[&SYMLINK, text]),
            Self::Link(text) => put(out, &[&LINK, text]),
        }
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        match take(from)? {
            SYMLINK => take(from).map(Self::Symlink),
            LINK => take(from).map(Self::Link),
            _ => None,
        }
    }
}

fn put_refusal(out: &mut Vec<u8>, refusal: &Refusal) {
    let (kind, number, reason) = match refusal.cause {
        Cause::System(errno) => (SYSTEM, errno.raw_os_error(), ""),
        Cause::Aside(errno) => (ASIDE, errno.raw_os_error(), ""),
        Cause::Reason(reason) => (REASON, 0, reason),
    };
    put(out, &[&word(refusal.operation), &kind, &(number as u64), &word(reason)]);
}

fn take_refusal(from: &mut &[u8], words: &Words) -> Option<Refusal> {
    let (operation, kind, number) = (words.take(from)?, take(from)?, take::<u64>(from)?);
    let reason = words.take(from)?;
    let errno = i32::try_from(number).ok().filter(|number| ERRNOS.contains(number));
    let cause = match (kind, errno.map(Errno::from_raw_os_error)) {
        (SYSTEM, Some(errno)) => Cause::System(errno),
        (ASIDE, Some(errno)) => Cause::Aside(errno),
        _ => Cause::Reason(reason),
    };
    Some(Refusal { operation, cause })
}

/// Adds what came of ranges of a file to a message.
pub(super) fn put_done(out: &mut Vec<u8>, done: &Done) {
    put(out, &[&done.end, &done.tally.0, &done.failure.is_some()]);
    done.failure.iter().for_each(|refusal| put_refusal(out, refusal));
}

/// Takes from a message what [`put_done`] has added.
pub(super) fn take_done(from: &mut &[u8], words: &Words) -> Option<Done> {
    let (end, tally) = (take(from)?, Tally(take(from)?));
    let failure = if take(from)? { Some(take_refusal(from, words)?) } else { None };
    Some(Done { end, tally, failure })
}

/// Tells `watch` what a message says. What every process finds for itself is told once.
pub(super) fn tell(mut from: &[u8], watch: &dyn Watch, words: &Words) {
    while tell_one(&mut from, watch, words).is_some() {}
}

fn tell_one(from: &mut &[u8], watch: &dyn Watch, words: &Words) -> Option<()> {
    match take(from)? {
        MAKING => {
            let (source, target, backup) = (take(from)?, take(from)?, take(from)?);
            watch.event(&Event::Making { source, target, backup });
        }
        DONE => {
            let (action, method, source) = (take(from)?, take(from)?, take(from)?);
            let (bytes, elapsed_ns) = (take(from)?, take(from)?);
            watch.event(&Event::Done { action, source, bytes, method, elapsed_ns });
        }
        FAILED => {
            let (path, other, refusal) = (take(from)?, take(from)?, take_refusal(from, words)?);
            watch.event(&Event::Failed(&Failure { refusal, path, other }));
        }
        CHANGED => {
            let (letters, source) = (take(from)?, take(from)?);
            let (target, lead) = (take(from)?, take(from)?);
            watch.event(&Event::Changed { letters, source, target, lead });
        }
        LISTED => {
            let line: Vec<u8> = take(from)?;
            if let Some(Line::Entry(record)) = parse(line.strip_suffix(b"\n")?) {
                watch.event(&Event::Listed(&record));
            }
        }
        DELETED => {
            let (is_directory, target, below) = (take(from)?, take(from)?, take::<Vec<u8>>(from)?);
            watch.event(&Event::Deleted { target, below: &below, is_directory });
        }
        INCOMPLETE => {
            let (source, code) = (take(from)?, words.take(from)?);
            let target = OsString::new();
            watch.event(&Event::Incomplete { source, target, code, cause: None });
        }
        NOTICE => {
            let (code, text) = (words.take(from)?, take::<Vec<u8>>(from)?);
            let text = String::from_utf8_lossy(&text).into_owned();
            if words.is_new(&text) {
                watch.event(&Event::Notice(&Notice { code, text }));
            }
        }
        _ => return None,
    }
    Some(())
}

/// Words of messages, which live as long as the program, as ours do: there are some hundred.
#[derive(Debug, Default)]
pub(super) struct Words {
    known: Mutex<HashSet<&'static str>>,
    said: Mutex<HashSet<String>>,
}

impl Words {
    fn take(&self, from: &mut &[u8]) -> Option<&'static str> {
        let bytes: Vec<u8> = take(from)?;
        let text = String::from_utf8_lossy(&bytes);
        let mut known = lock(&self.known);
        if let Some(word) = known.get(text.as_ref()) {
            return Some(word);
        }
        let word: &'static str = Box::leak(text.into_owned().into_boxed_str());
        known.insert(word);
        Some(word)
    }

    fn is_new(&self, text: &str) -> bool {
        lock(&self.said).insert(text.to_owned())
    }
}

impl Wire for Snapshot {
    fn put(&self, out: &mut Vec<u8>) {
        { *self }.numbers().for_each(|number| number.put(out));
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let mut totals = Self::default();
        for number in totals.numbers() {
            *number = take(from)?;
        }
        Some(totals)
    }
}

impl Snapshot {
    /// What both did.
    pub(super) fn with(mut self, other: &Self) -> Self {
        self.numbers().zip({ *other }.numbers()).for_each(|(sum, more)| *sum += *more);
        self
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use flatout_io::transfer::Method;

    use super::*;

    #[derive(Default)]
    struct Heard(Mutex<Vec<String>>);

    impl Watch for Heard {
        fn event(&self, event: &Event<'_>) {
            lock(&self.0).push(format!("{event:?}"));
        }
    }

    #[test]
    fn what_happened_elsewhere_is_told_as_it_would_be_here() {
        let path = || OsString::from_vec(b"a\xff".to_vec());
        let failure = |cause| Failure {
            other: Some(path()),
            ..Failure::of(Refusal { operation: "read", cause }, path())
        };
        let failures = [
            failure(Cause::System(Errno::IO)),
            failure(Cause::Aside(Errno::NOSPC)),
            failure(Cause::Reason("why")),
        ];
        let notice = Notice { code: "owner_not_kept", text: "owners".to_owned() };
        let mut events: Vec<Event<'_>> = failures.iter().map(Event::Failed).collect();
        events.push(Event::Notice(&notice));
        events.push(Event::Incomplete {
            source: path(),
            target: OsString::new(),
            code: "acl_not_kept",
            cause: None,
        });
        events.push(Event::Deleted { target: path(), below: b"a/\xff", is_directory: true });
        events.push(Event::Making { source: path(), target: path(), backup: Some(path()) });
        for lead in [None, Some(Lead::Symlink(path())), Some(Lead::Link(path()))] {
            let (source, target) = (path(), path());
            events.push(Event::Changed { letters: *b">f+++++++++", source, target, lead });
        }
        let line = b"./a\\377 type=file uid=1 gid=2 mode=0644 time=-1.000000002 size=5";
        let Some(Line::Entry(record)) = parse(line) else { panic!("it is an entry") };
        events.push(Event::Listed(&record));
        for (action, method) in ACTIONS.into_iter().zip(Method::ALL) {
            let (bytes, elapsed_ns) = (u64::MAX, 7);
            events.push(Event::Done {
                action,
                source: path(),
                bytes,
                method: Some(method),
                elapsed_ns,
            });
        }
        let (reporter, heard) = (Reporter::default(), Heard::default());
        events.iter().for_each(|event| reporter.event(event));
        let (message, words) = (reporter.take(), Words::default());
        tell(&message, &heard, &words);
        let expected: Vec<String> = events.iter().map(|event| format!("{event:?}")).collect();
        assert_eq!(heard.0.into_inner().unwrap(), expected);
        assert!(reporter.take().is_empty());
        let again = Heard::default();
        tell(&message, &again, &words);
        assert_eq!(
            again.0.into_inner().unwrap().len(),
            expected.len() - 1,
            "a notice is told once"
        );
    }

    #[test]
    fn totals_are_added_up() {
        let mut one = Snapshot::take(&mut [1; 500].as_slice()).unwrap();
        one.by_method[0].2 = 5;
        let mut bytes = Vec::new();
        one.put(&mut bytes);
        let other = Snapshot::take(&mut bytes.as_slice()).unwrap();
        assert_eq!(one, other);
        let both = one.with(&other);
        assert_eq!((both.files, both.by_method[0].2), (2 * other.files, 10));
    }
}
