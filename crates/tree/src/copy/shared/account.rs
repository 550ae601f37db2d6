//! What another process tells of its part: events as they happened, and how much was done.

use std::collections::HashSet;
use std::sync::Mutex;

use flatout_io::transfer::Method;

use super::super::content::{Done, Tally};
use super::super::event::{Lead, Notice, Watch};
use super::super::failure::Cause;
use super::super::tally::Snapshot;
use crate::copy::{Action, Event, Failure, Refusal};
use crate::inventory::{Line, Record, parse};
use crate::lock::lock;
use crate::wire::{Wire, goes_as, goes_by_fields, goes_by_variants, take};

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
    fn event(&self, event: &Event) {
        event.put(&mut lock(&self.events));
    }

    fn wants_each(&self) -> bool {
        self.wanted.each
    }

    fn wants_changes(&self) -> bool {
        self.wanted.changes
    }
}

goes_as!(Action, u8, |it| *it as u8, |index| Self::ALL.get(usize::from(index)).copied());
goes_by_variants!(Lead { 1 => Symlink(text), 2 => Link(text) });
goes_by_variants!(Cause { 1 => System(errno), 2 => Aside(errno), 3 => Reason(reason) });
goes_by_fields!(Refusal { operation, cause });
goes_by_fields!(Failure { refusal, path, other });
goes_by_fields!(Notice { code, text, first });
goes_as!(
    Box<Record>,
    Vec<u8>,
    |it| {
        let mut line = Vec::new();
        it.append(&mut line);
        line
    },
    |line| match parse(line.strip_suffix(b"\n")?)? {
        Line::Entry(record) => Some(record),
        _ => None,
    }
);
goes_by_variants!(Event {
    1 => Making { source, target, backup },
    2 => Done { action, source, bytes, method, elapsed_ns },
    3 => Failed(failure),
    4 => Incomplete { source, target, code, cause },
    5 => Notice(notice),
    6 => Deleted { target, below, is_directory },
    7 => Changed { letters, source, target, lead },
    8 => Listed(record),
});
goes_as!(Tally, [u64; Method::ALL.len()], |it| it.0, |numbers| Some(Self(numbers)));
goes_by_fields!(Done { end, tally, failure });

/// Tells `watch` what a message says. What every process finds for itself is told once: `said` is what was.
pub(super) fn tell(mut from: &[u8], watch: &dyn Watch, said: &mut HashSet<String>) {
    while let Some(event) = take(&mut from) {
        let is_new = match &event {
            Event::Notice(Notice { text, .. }) => said.insert(text.clone()),
            _ => true,
        };
        if is_new {
            watch.event(&event);
        }
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
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    use rustix::io::Errno;

    use super::*;

    #[derive(Default)]
    struct Heard(Mutex<Vec<String>>);

    impl Watch for Heard {
        fn event(&self, event: &Event) {
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
        let (code, text) = ("owner_not_kept", "owners".to_owned());
        let notice = Notice { code, text, first: Some(path()) };
        let mut events: Vec<Event> = failures.into_iter().map(Event::Failed).collect();
        events.push(Event::Notice(notice));
        events.push(Event::Incomplete {
            source: path(),
            target: OsString::new(),
            code: "acl_not_kept",
            cause: None,
        });
        events.push(Event::Deleted {
            target: path(),
            below: b"a/\xff".to_vec(),
            is_directory: true,
        });
        events.push(Event::Making { source: path(), target: path(), backup: Some(path()) });
        for lead in [None, Some(Lead::Symlink(path())), Some(Lead::Link(path()))] {
            let (source, target) = (path(), path());
            events.push(Event::Changed { letters: *b">f+++++++++", source, target, lead });
        }
        let line = "./a\\377 type=file uid=1 gid=2 mode=0644 time=-1.000000002 size=5 blake3=";
        let line = [line, &"0".repeat(64)].concat();
        let Some(Line::Entry(record)) = parse(line.as_bytes()) else { panic!("it is an entry") };
        events.push(Event::Listed(record));
        for (action, method) in Action::ALL.into_iter().zip(Method::ALL) {
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
        let (message, mut said) = (reporter.take(), HashSet::new());
        tell(&message, &heard, &mut said);
        let expected: Vec<String> = events.iter().map(|event| format!("{event:?}")).collect();
        assert_eq!(heard.0.into_inner().unwrap(), expected);
        assert!(reporter.take().is_empty());
        let again = Heard::default();
        tell(&message, &again, &mut said);
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
