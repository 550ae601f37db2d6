//! What is known of directories that only wait for what is below them: packed, and beyond a bound
//! in a file without a name, so that memory does not grow with the depth of a tree.

use std::sync::{Arc, Mutex};

use rustix::fs::Stat;

use super::{Found, Identity, Named, identity};
use crate::copy::{Inheritance, Made, Refusal};
use crate::lock::lock;
use crate::spool::Spool;
use crate::wire::{goes_by_fields, message, take};

/// Bytes that stay in memory: some thousand directories.
const MEMORY_BYTES: usize = 512 << 10;
const CANNOT_READ: &str = "find";

/// What must be known of a directory to go on with it after it was closed.
#[derive(Debug, Clone)]
pub(in crate::copy) struct Closed {
    pub(in crate::copy) named: Named,
    pub(in crate::copy) source: Identity,
    pub(in crate::copy) target: Identity,
    mode: u32,
    owner: (u32, u32),
    /// Access and modification: seconds and nanoseconds.
    times: [u64; 4],
    inheritance: Inheritance,
    pub(super) made: Made,
}

impl Closed {
    pub(in crate::copy) fn of(found: &Found) -> Self {
        let Found { named, facts, target, inheritance, made } = found;
        Self {
            named: named.clone(),
            source: identity(facts),
            target: *target,
            mode: facts.st_mode,
            owner: (facts.st_uid, facts.st_gid),
            times: [
                facts.st_atime as u64,
                facts.st_atime_nsec as _,
                facts.st_mtime as u64,
                facts.st_mtime_nsec as _,
            ],
            inheritance: *inheritance,
            made: *made,
        }
    }

    /// What was known, where the source has been opened again and `now` is what it says of itself:
    /// whatever is copied of it is as it was at first.
    pub(super) fn found(self, mut now: Stat) -> Found {
        now.st_mode = self.mode;
        (now.st_uid, now.st_gid) = self.owner;
        let [accessed, accessed_ns, modified, modified_ns] = self.times;
        (now.st_atime, now.st_atime_nsec) = (accessed as _, accessed_ns as _);
        (now.st_mtime, now.st_mtime_nsec) = (modified as _, modified_ns as _);
        let Self { named, target, inheritance, made, .. } = self;
        Found { named, facts: now, target, inheritance, made }
    }

    /// The same of a directory that another process knows, where both sides have been opened here:
    /// devices have other numbers on another host.
    pub(in crate::copy) fn found_here(self, source: Stat, target: &Stat) -> Found {
        let found = self.found(source);
        let inheritance = found.inheritance.on_device(target.st_dev);
        Found { target: identity(target), inheritance, ..found }
    }
}

goes_by_fields!(Named { source, target });
goes_by_fields!(Closed { named, source, target, mode, owner, times, inheritance, made });

/// All records of a copy. Those that were made last are mostly dropped first, and their room is used
/// again; what goes out of order leaves a gap until there is no record.
#[derive(Debug)]
pub(super) struct Records(Mutex<Packed>);

#[derive(Debug)]
struct Packed {
    spool: Spool,
    count: u64,
}

/// A record, which gives its room back when it is dropped.
#[derive(Debug)]
pub(super) struct Record {
    records: Arc<Records>,
    offset: u64,
    length_bytes: u32,
}

impl Records {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Packed { spool: Spool::new(MEMORY_BYTES), count: 0 }))
    }
}

impl Record {
    /// Puts away what is known of a directory.
    ///
    /// Errors: no file can be made for it, or written.
    pub(super) fn of(closed: &Closed, records: &Arc<Records>) -> Result<Self, Refusal> {
        let bytes = message(&[closed]);
        let mut packed = lock(&records.0);
        let offset = packed.spool.append(&[&bytes])?;
        packed.count += 1;
        // A name ends at 4,095 bytes.
        Ok(Self { records: Arc::clone(records), offset, length_bytes: bytes.len() as u32 })
    }

    /// What was put away.
    ///
    /// Errors: the file cannot be read.
    pub(super) fn read(&self) -> Result<Closed, Refusal> {
        let mut bytes = vec![0; self.length_bytes as usize];
        let count = lock(&self.records.0).spool.read(self.offset, &mut bytes)?;
        take(&mut &bytes[..count])
            .ok_or_else(|| Refusal::because(CANNOT_READ, "what was known of it is lost"))
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let mut packed = lock(&self.records.0);
        packed.count -= 1;
        let end = self.offset + u64::from(self.length_bytes);
        if packed.count == 0 {
            packed.spool.cut(0);
        } else if packed.spool.length_bytes() == end {
            packed.spool.cut(self.offset);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::ffi::CString;

    use super::*;
    use crate::wire::Wire;

    pub(in crate::copy) fn closed(name: &str) -> Closed {
        let facts = rustix::fs::stat("/").unwrap();
        let name = CString::new(name).unwrap();
        let named = Named { source: name.clone(), target: CString::new("other").unwrap() };
        let made = Made::found(&facts);
        let inheritance = Inheritance::of_tests(u64::MAX, (u32::MAX, 7), Some(0o750));
        let mut found = Found { named, facts, target: (1 << 40, 3), inheritance, made };
        found.facts.st_atime = -5;
        found.facts.st_mtime_nsec = 999_999_999;
        Closed::of(&found)
    }

    #[test]
    fn a_record_comes_back_as_it_was() {
        let records = Arc::new(Records::new());
        for name in ["a", "\u{1}\u{2}", &"x".repeat(4095), "."] {
            let before = closed(name);
            let record = Record::of(&before, &records).unwrap();
            let after = record.read().unwrap();
            assert_eq!(format!("{before:?}"), format!("{after:?}"));
            let now = rustix::fs::stat("/proc").unwrap();
            let found = after.found(now);
            assert_eq!((found.facts.st_atime, found.facts.st_mtime_nsec), (-5, 999_999_999));
            assert_eq!(
                found.facts.st_ino, now.st_ino,
                "what it is was proved by whoever opened it"
            );
        }
        assert!(Closed::take(&mut [].as_slice()).is_none());
        assert!(Closed::take(&mut [1; 500].as_slice()).is_none(), "no name ends");
    }

    #[test]
    fn room_is_used_again() {
        let records = Arc::new(Records::new());
        let closed = closed("name");
        let mut kept: Vec<Record> =
            (0..20_000).map(|_| Record::of(&closed, &records).unwrap()).collect();
        assert!(lock(&records.0).spool.has_file(), "more than memory is to take");
        assert!(lock(&records.0).spool.memory_bytes() <= MEMORY_BYTES);
        assert_eq!(kept[3].read().unwrap().named.source, closed.named.source);
        let length = || lock(&records.0).spool.length_bytes();
        let whole = length();
        while kept.len() > 100 {
            kept.pop();
        }
        assert!(length() < whole / 100);
        drop(kept.remove(0));
        assert!(length() > 0);
        drop(kept);
        assert_eq!(length(), 0);
    }
}
