//! What another process tells of its part: events as they happened, and how much was done.

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::Mutex;

use flatout_io::transfer::Method;
use rustix::io::Errno;

use super::super::content::{Done, Tally};
use super::super::event::{Action, Event, Lead, Notice, Watch};
use super::super::failure::{Cause, Failure, Refusal};
use super::super::tally::{Snapshot, Waiting};
use super::parcel::{put, put_bytes, take, take_byte, take_bytes};
use crate::inventory::{Line, parse};
use crate::lock::lock;

const ACTIONS: [Action; 5] =
    [Action::Copied, Action::Unchanged, Action::Linked, Action::Made, Action::Directory];
const NO_METHOD: u8 = u8::MAX;

const MAKING: u8 = 1;
const DONE: u8 = 2;
const FAILED: u8 = 3;
const INCOMPLETE: u8 = 4;
const NOTICE: u8 = 5;
const DELETED: u8 = 6;
const CHANGED: u8 = 7;
const LISTED: u8 = 8;

const NO_LEAD: u8 = 0;
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
        Event::Making { source, target, backup } => {
            out.push(MAKING);
            put_bytes(out, source.as_bytes());
            put_bytes(out, target.as_bytes());
            out.push(u8::from(backup.is_some()));
            put_bytes(out, backup.as_ref().map_or(&[], |backup| backup.as_bytes()));
        }
        Event::Done { action, source, bytes, method, elapsed_ns } => {
            let action = ACTIONS.iter().position(|known| known == action).unwrap_or_default();
            out.extend([DONE, action as u8]);
            out.push(method.map_or(NO_METHOD, |method| method.index() as u8));
            put_bytes(out, source.as_bytes());
            put(out, *bytes);
            put(out, *elapsed_ns);
        }
        Event::Changed { letters, source, target, lead } => {
            let (kind, text) = match lead {
                None => (NO_LEAD, None),
                Some(Lead::Symlink(text)) => (SYMLINK, Some(text)),
                Some(Lead::Link(text)) => (LINK, Some(text)),
            };
            out.extend([CHANGED, kind]);
            let text = text.map_or(&[][..], |text| text.as_bytes());
            for bytes in [letters, source.as_bytes(), target.as_bytes(), text] {
                put_bytes(out, bytes);
            }
        }
        Event::Listed(record) => {
            let mut line = Vec::new();
            record.append(&mut line);
            out.push(LISTED);
            put_bytes(out, &line);
        }
        Event::Deleted { target, below, is_directory } => {
            out.extend([DELETED, u8::from(*is_directory)]);
            put_bytes(out, target.as_bytes());
            put_bytes(out, below);
        }
        Event::Failed(Failure { refusal, path, other }) => {
            out.push(FAILED);
            put_bytes(out, path.as_bytes());
            out.push(u8::from(other.is_some()));
            put_bytes(out, other.as_ref().map_or(&[], |other| other.as_bytes()));
            put_refusal(out, refusal);
        }
        Event::Incomplete { source, code, .. } => {
            out.push(INCOMPLETE);
            put_bytes(out, source.as_bytes());
            put_bytes(out, code.as_bytes());
        }
        Event::Notice(Notice { code, text }) => {
            out.push(NOTICE);
            put_bytes(out, code.as_bytes());
            put_bytes(out, text.as_bytes());
        }
    }
}

fn put_refusal(out: &mut Vec<u8>, refusal: &Refusal) {
    put_bytes(out, refusal.operation.as_bytes());
    let (kind, number, reason) = match refusal.cause {
        Cause::System(errno) => (SYSTEM, errno.raw_os_error(), ""),
        Cause::Aside(errno) => (ASIDE, errno.raw_os_error(), ""),
        Cause::Reason(reason) => (REASON, 0, reason),
    };
    out.push(kind);
    put(out, number as u64);
    put_bytes(out, reason.as_bytes());
}

fn take_refusal(from: &mut &[u8], words: &Words) -> Option<Refusal> {
    let operation = words.of(take_bytes(from)?);
    let (kind, number) = (take_byte(from)?, take(from)?);
    let reason = words.of(take_bytes(from)?);
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
    put(out, done.end);
    done.tally.numbers().into_iter().for_each(|bytes| put(out, bytes));
    out.push(u8::from(done.failure.is_some()));
    done.failure.iter().for_each(|refusal| put_refusal(out, refusal));
}

/// Takes from a message what [`put_done`] has added.
pub(super) fn take_done(from: &mut &[u8], words: &Words) -> Option<Done> {
    let end = take(from)?;
    let mut numbers = [0; Method::ALL.len()];
    for bytes in &mut numbers {
        *bytes = take(from)?;
    }
    let failure = match take_byte(from)? {
        0 => None,
        _ => Some(take_refusal(from, words)?),
    };
    Some(Done { end, tally: Tally::of(numbers), failure })
}

/// Tells `watch` what a message says. What every process finds for itself is told once.
pub(super) fn tell(mut from: &[u8], watch: &dyn Watch, words: &Words) {
    while tell_one(&mut from, watch, words).is_some() {}
}

fn tell_one(from: &mut &[u8], watch: &dyn Watch, words: &Words) -> Option<()> {
    let path = |from: &mut &[u8]| Some(OsString::from_vec(take_bytes(from)?.to_vec()));
    match take_byte(from)? {
        MAKING => {
            let (source, target) = (path(from)?, path(from)?);
            let has_backup = take_byte(from)? != 0;
            let backup = path(from)?;
            watch.event(&Event::Making { source, target, backup: has_backup.then_some(backup) });
        }
        DONE => {
            let action = *ACTIONS.get(usize::from(take_byte(from)?))?;
            let method = Method::ALL.get(usize::from(take_byte(from)?)).copied();
            let (source, bytes, elapsed_ns) = (path(from)?, take(from)?, take(from)?);
            watch.event(&Event::Done { action, source, bytes, method, elapsed_ns });
        }
        FAILED => {
            let (first, has_other) = (path(from)?, take_byte(from)? != 0);
            let other = path(from)?;
            let other = has_other.then_some(other);
            let refusal = take_refusal(from, words)?;
            watch.event(&Event::Failed(&Failure { refusal, path: first, other }));
        }
        CHANGED => {
            let kind = take_byte(from)?;
            let letters = take_bytes(from)?.try_into().ok()?;
            let (source, target, text) = (path(from)?, path(from)?, path(from)?);
            let lead = match kind {
                SYMLINK => Some(Lead::Symlink(text)),
                LINK => Some(Lead::Link(text)),
                _ => None,
            };
            watch.event(&Event::Changed { letters, source, target, lead });
        }
        LISTED => {
            let line = take_bytes(from)?;
            if let Some(Line::Entry(record)) = parse(line.strip_suffix(b"\n")?) {
                watch.event(&Event::Listed(&record));
            }
        }
        DELETED => {
            let is_directory = take_byte(from)? != 0;
            let (target, below) = (path(from)?, take_bytes(from)?);
            watch.event(&Event::Deleted { target, below, is_directory });
        }
        INCOMPLETE => {
            let (source, code) = (path(from)?, words.of(take_bytes(from)?));
            let target = OsString::new();
            watch.event(&Event::Incomplete { source, target, code, cause: None });
        }
        NOTICE => {
            let code = words.of(take_bytes(from)?);
            let text = String::from_utf8_lossy(take_bytes(from)?).into_owned();
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
    fn of(&self, bytes: &[u8]) -> &'static str {
        let text = String::from_utf8_lossy(bytes);
        let mut known = lock(&self.known);
        match known.get(text.as_ref()) {
            Some(word) => word,
            None => {
                let word: &'static str = Box::leak(text.into_owned().into_boxed_str());
                known.insert(word);
                word
            }
        }
    }

    fn is_new(&self, text: &str) -> bool {
        lock(&self.said).insert(text.to_owned())
    }
}

/// Adds what was done to a message.
pub(super) fn put_totals(out: &mut Vec<u8>, totals: &Snapshot) {
    for number in numbers(totals) {
        put(out, number);
    }
    for (_, files, bytes) in totals.by_method {
        put(out, files);
        put(out, bytes);
    }
}

/// Takes what was done from a message.
pub(super) fn take_totals(from: &mut &[u8]) -> Option<Snapshot> {
    let mut next = || take(from);
    let mut totals = Snapshot {
        files: next()?,
        directories: next()?,
        others: next()?,
        linked: next()?,
        unchanged: next()?,
        failed: next()?,
        incomplete: next()?,
        retried: next()?,
        deleted: next()?,
        spared: next()?,
        overwritten: 0,
        bytes_accepted: next()?,
        by_method: Method::ALL.map(|method| (method, 0, 0)),
        waiting: Waiting::Nothing,
    };
    for (_, files, bytes) in &mut totals.by_method {
        (*files, *bytes) = (next()?, next()?);
    }
    Some(totals)
}

fn numbers(totals: &Snapshot) -> [u64; 11] {
    [
        totals.files,
        totals.directories,
        totals.others,
        totals.linked,
        totals.unchanged,
        totals.failed,
        totals.incomplete,
        totals.retried,
        totals.deleted,
        totals.spared,
        totals.bytes_accepted,
    ]
}

impl Snapshot {
    /// What both did.
    pub(super) fn with(mut self, other: &Self) -> Self {
        self.files += other.files;
        self.directories += other.directories;
        self.others += other.others;
        self.linked += other.linked;
        self.unchanged += other.unchanged;
        self.failed += other.failed;
        self.incomplete += other.incomplete;
        self.retried += other.retried;
        self.deleted += other.deleted;
        self.spared += other.spared;
        self.bytes_accepted += other.bytes_accepted;
        for (own, (_, files, bytes)) in self.by_method.iter_mut().zip(other.by_method) {
            (own.1, own.2) = (own.1 + files, own.2 + bytes);
        }
        self
    }
}

#[cfg(test)]
mod tests {
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
        let mut one = take_totals(&mut [1; 500].as_slice()).unwrap();
        one.by_method[0].2 = 5;
        let mut bytes = Vec::new();
        put_totals(&mut bytes, &one);
        let other = take_totals(&mut bytes.as_slice()).unwrap();
        assert_eq!(one, other);
        let both = one.with(&other);
        assert_eq!((both.files, both.by_method[0].2), (2 * other.files, 10));
    }
}
