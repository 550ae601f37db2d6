//! Which files of the target this program itself is known to have made, and of which source.
//!
//! A file that is complete is noted as a fingerprint of what the kernel says of the source and of
//! the copy: device, inode, size, modification time and change time of both, and which attributes
//! were kept. Whoever changes one of them changes its change time, which nobody can set: a
//! fingerprint that is found again proves that both are what they were. Neither names nor contents
//! are kept.
//!
//! Not noted are files on filesystems that make up inode numbers or change times, and sources that
//! were changed a moment ago, which could be changed again without a sign of it.
//! Read next: `evidence/ledger.rs`, the file in which fingerprints outlive the process.

mod ledger;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flatout_io::digest::{Algorithm, Hasher};
use rustix::fs::Stat;

use self::ledger::Ledger;
use super::failure::Refusal;
use super::links::Table;
use super::options::Preserve;
use crate::spool::Home;

/// A source that was changed so short a time ago may change again within the same tick of the
/// kernel's clock (10 ms at most, with CONFIG_HZ=100), and before Linux 6.13 nothing would tell.
const SETTLED_AFTER: Duration = Duration::from_millis(20);

/// What both files were, in 128 bits: that two differ and have the same is out of the question.
pub(super) type Fingerprint = u128;

/// From when on finished files are noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noting {
    /// From the first one on.
    AtOnce,
    /// When the copy has taken a second: who copies a small tree again loses less than a second, and
    /// has no file left behind.
    Later,
}

/// What is known of earlier runs, and what is noted of this one. Shared by all threads.
#[derive(Debug)]
pub struct Evidence {
    kept: Preserve,
    /// What was known before, sorted: as much as memory takes.
    known: Vec<Fingerprint>,
    has_more: bool,
    is_noting: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// What memory does not take of it.
    more: Table,
    /// `None`: there is no place for one.
    ledger: Option<Ledger>,
}

impl Evidence {
    /// Nothing is known, and nothing is noted.
    pub fn none() -> Self {
        Self {
            kept: Preserve::NOTHING,
            known: Vec::new(),
            has_more: false,
            is_noting: AtomicBool::new(false),
            state: Mutex::new(State { more: Table::new(Home::temporary(), 0), ledger: None }),
        }
    }

    /// What the ledger at `path` holds, which takes `memory_bytes` at most (some KiB at least); what
    /// is more goes to a file without a name. Notes are added to it.
    ///
    /// A ledger that cannot be read is none; where none can be written nothing is noted.
    /// Cost: an open that mostly fails; else 16 bytes are read and sorted for each file.
    pub fn open(path: &Path, kept: Preserve, noting: Noting, memory_bytes: u64) -> Self {
        let most = usize::try_from(memory_bytes).unwrap_or(usize::MAX) / size_of::<Fingerprint>();
        let mut known = Vec::new();
        let mut more = Table::new(Home::temporary(), 0);
        let mut has_more = false;
        // What was read of one that breaks off in the middle is as true as all of it.
        let ledger = Ledger::open(path, |fingerprint| {
            if known.len() < most {
                known.push(fingerprint);
                return Ok(());
            }
            has_more = true;
            let (key, rest) = halves(fingerprint);
            more.insert((0, key), u32::MAX, b"", (0, rest))
        });
        known.sort_unstable();
        let has_any = !known.is_empty() || has_more;
        let state = Mutex::new(State { more, ledger });
        let evidence = Self { kept, known, has_more, is_noting: AtomicBool::new(false), state };
        // What was known before must be noted again, or it would be lost with the old ledger.
        if noting == Noting::AtOnce || has_any {
            evidence.begin_noting();
        }
        evidence
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on finished files are noted, if there is a place for that.
    pub(super) fn begin_noting(&self) {
        if self.is_noting() {
            return;
        }
        let mut state = self.state();
        if state.ledger.as_mut().is_some_and(Ledger::begin) {
            self.is_noting.store(true, Ordering::Relaxed);
        } else {
            // It is not tried again.
            state.ledger = None;
        }
    }

    /// Whether finished files are noted.
    pub(super) fn is_noting(&self) -> bool {
        self.is_noting.load(Ordering::Relaxed)
    }

    /// Whether `found` is the copy of `source` that this program made, and neither was changed since.
    ///
    /// Errors: a temporary file cannot be read.
    pub(super) fn proves(&self, source: &Stat, found: &Stat) -> Result<bool, Refusal> {
        if self.known.is_empty() && !self.has_more {
            return Ok(false);
        }
        let fingerprint = self.fingerprint(source, found);
        if self.known.binary_search(&fingerprint).is_ok() {
            return Ok(true);
        }
        if !self.has_more {
            return Ok(false);
        }
        let (key, rest) = halves(fingerprint);
        let known = self.state().more.see((0, key))?;
        Ok(known.is_some_and(|known| known.mark.1 == rest))
    }

    /// Notes a file that is complete: `source` when it was opened, `made` when nothing more was to be
    /// done to its copy.
    pub(super) fn note(&self, source: &Stat, made: &Stat) {
        if !self.is_noting() || !is_settled(source) {
            return;
        }
        let fingerprint = self.fingerprint(source, made);
        let is_written = self.state().ledger.as_mut().is_some_and(|ledger| ledger.add(fingerprint));
        if !is_written {
            self.is_noting.store(false, Ordering::Relaxed);
        }
    }

    /// The copy has ended. What was noted before stays known only where this run did not get
    /// everywhere.
    pub(super) fn finish(&self, reached: Reached) {
        self.is_noting.store(false, Ordering::Relaxed);
        if let Some(ledger) = self.state().ledger.take() {
            ledger.finish(reached);
        }
    }

    fn fingerprint(&self, source: &Stat, target: &Stat) -> Fingerprint {
        let mut hasher = Hasher::new(Algorithm::Blake3);
        hasher.update(&[self.kept.bits()]);
        for facts in [source, target] {
            let numbers = [
                facts.st_dev,
                facts.st_ino,
                facts.st_size as u64,
                facts.st_mtime as u64,
                facts.st_mtime_nsec,
                facts.st_ctime as u64,
                facts.st_ctime_nsec,
            ];
            numbers.iter().for_each(|number| hasher.update(&number.to_le_bytes()));
        }
        let digest = hasher.finish();
        let first = std::array::from_fn(|index| digest.as_bytes()[index]);
        Fingerprint::from_le_bytes(first)
    }
}

/// How far a run got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    /// Everything was looked at.
    Everything,
    /// It was stopped, or something failed.
    Part,
}

/// Whether a file was last changed so long ago that a further change would show.
fn is_settled(facts: &Stat) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let changed = Duration::new(
        u64::try_from(facts.st_ctime).unwrap_or_default(),
        u32::try_from(facts.st_ctime_nsec).unwrap_or_default(),
    );
    now.saturating_sub(changed) >= SETTLED_AFTER
}

/// A fingerprint as the table knows it.
fn halves(fingerprint: Fingerprint) -> (u64, u64) {
    ((fingerprint >> 64) as u64, fingerprint as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(path: &Path) -> Stat {
        rustix::fs::stat(path).unwrap()
    }

    /// As it is after a second.
    fn settled(path: &Path) -> Stat {
        let mut facts = facts(path);
        facts.st_ctime -= 5;
        facts
    }

    #[test]
    fn what_was_noted_is_proved_until_either_side_changes() {
        let place = tempfile::tempdir().unwrap();
        let [source, target] = ["source", "target"].map(|name| place.path().join(name));
        for path in [&source, &target] {
            std::fs::write(path, "x").unwrap();
        }
        let ledger = place.path().join("state/ledger");
        let open = |kept| Evidence::open(&ledger, kept, Noting::AtOnce, 1 << 20);
        let first = open(Preserve::ALL);
        let (from, to) = (settled(&source), facts(&target));
        assert!(!first.proves(&from, &to).unwrap());
        first.note(&from, &to);
        first.note(&facts(&source), &to);
        first.finish(Reached::Everything);
        let second = open(Preserve::ALL);
        assert!(second.proves(&from, &to).unwrap());
        assert!(!second.proves(&facts(&source), &to).unwrap(), "it was changed just now");
        for change in [
            |facts: &mut Stat| facts.st_ino += 1,
            |facts: &mut Stat| facts.st_dev += 1,
            |facts: &mut Stat| facts.st_size += 1,
            |facts: &mut Stat| facts.st_mtime += 1,
            |facts: &mut Stat| facts.st_ctime_nsec += 1,
        ] {
            let (mut other_from, mut other_to) = (from, to);
            change(&mut other_from);
            change(&mut other_to);
            assert!(!second.proves(&other_from, &to).unwrap());
            assert!(!second.proves(&from, &other_to).unwrap());
        }
        assert!(!open(Preserve::NOTHING).proves(&from, &to).unwrap(), "less was kept");
        assert!(!Evidence::none().proves(&from, &to).unwrap());
    }

    #[test]
    fn a_run_that_is_stopped_adds_to_what_was_known() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        std::fs::write(&path, "x").unwrap();
        let ledger = place.path().join("state/ledger");
        // In memory, partly in a file, and nothing in memory.
        for memory_bytes in [1 << 10, 32, 0] {
            let _ = std::fs::remove_dir_all(place.path().join("state"));
            adds_up(&path, &|| {
                Evidence::open(&ledger, Preserve::ALL, Noting::AtOnce, memory_bytes)
            });
        }
    }

    fn adds_up(path: &Path, open: &dyn Fn() -> Evidence) {
        let file = |number| {
            let mut facts = settled(path);
            facts.st_ino = number;
            facts
        };
        let proved = |evidence: &Evidence| {
            (0..9).filter(|&n| evidence.proves(&file(n), &file(n)).unwrap()).collect::<Vec<_>>()
        };
        for (numbers, reached, known) in [
            (&[1, 2][..], Reached::Part, &[1, 2][..]),
            (&[3], Reached::Part, &[1, 2, 3]),
            (&[3, 4], Reached::Everything, &[3, 4]),
            (&[], Reached::Part, &[3, 4]),
        ] {
            let evidence = open();
            numbers.iter().for_each(|&number| evidence.note(&file(number), &file(number)));
            evidence.finish(reached);
            assert_eq!(proved(&open()), known, "{numbers:?}");
        }
        // One that was killed has finished nothing.
        let killed = open();
        killed.note(&file(7), &file(7));
        drop(killed);
        assert_eq!(proved(&open()), [3, 4, 7]);
    }
}
