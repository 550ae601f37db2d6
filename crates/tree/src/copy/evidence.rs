//! Which files of the target this program itself is known to have made, and of which source.
//!
//! A file that is complete is noted as a fingerprint of what the kernel says of the source and of
//! the copy: device, inode, size, modification time and change time of both, and what the copy was to
//! be like. Whoever changes one of them by a call changes its change time, which nobody can set: a
//! fingerprint that is found again proves that both are what they were. Neither names nor contents
//! are kept. What a mapping stores that was writable before changes no time at all.
//!
//! Not noted are files on filesystems that make up inode numbers or change times, files that lost an
//! attribute, further names of a file, and sources that were changed a moment before they were
//! opened, which could be changed again without a sign of it.
//! Read next: `evidence/ledger.rs`, the file in which fingerprints outlive the process.

mod ledger;
mod noted;

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use flatout_io::digest::{Algorithm, Hasher};
use flatout_io::transfer::Method;
use rustix::fs::{AtFlags, Stat, StatxFlags, statx};

use self::ledger::Ledger;
use self::noted::Noted;
use super::{CopyOptions, When};
use crate::file_data::Moment;
use crate::lock::lock;
use crate::wire::{message, take};

/// A source that was changed so short a time before it was opened may change again within the same
/// tick of the kernel's clock (10 ms at most, with CONFIG_HZ=100), and before Linux 6.13 nothing
/// would tell.
const SETTLED_AFTER: Duration = Duration::from_millis(20);
/// A copy that has taken so long notes what is finished: to do that again would be felt.
const NOTE_AFTER: Duration = Duration::from_secs(1);

/// A number of a mount that no later one gets (`STATX_MNT_ID_UNIQUE`, Linux 6.8); before, the next mount may
/// have the same.
const NEVER_AGAIN: StatxFlags = StatxFlags::from_bits_retain(0x4000);

/// What the kernel says of a file, and the directory in which it lies.
pub(super) type Known<'c> = (&'c Stat, BorrowedFd<'c>);

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
    /// What the copies are to be like, as far as two of them may differ by it.
    manner: [u8; 7],
    /// What was known before.
    known: Noted,
    begun: Instant,
    is_noting: AtomicBool,
    /// Device numbers mean the same to all who take part.
    knows_devices: bool,
    /// Devices of targets and of sources, and the numbers of their mounts: a disk that was pulled out, and is mounted again, may have
    /// lost what was noted, and another image of a disk may bear the number of one that was mounted before.
    mounts: Mutex<Vec<((u64, bool), u64)>>,
    /// Storage has lost bytes, and nobody knows of which files.
    is_void: AtomicBool,
    notes: Mutex<Notes>,
}

/// Where notes go.
#[derive(Debug)]
enum Notes {
    /// There is no place for any.
    Nowhere,
    To(Ledger),
    /// To the first process, which has the ledger, with what it is told next.
    Told(Vec<u8>),
}

/// Where the processes of a copy run.
#[derive(Debug, Clone)]
pub struct Hosts {
    /// Changes when one of them is booted, and where they are others.
    pub boots: String,
    /// They are one machine: device numbers mean the same to all processes.
    pub is_one: bool,
}

impl Evidence {
    /// Nothing is known, and nothing is noted.
    pub fn none() -> Self {
        Self {
            manner: [0; 7],
            known: Noted::none(),
            begun: Instant::now(),
            is_noting: AtomicBool::new(false),
            knows_devices: true,
            mounts: Mutex::default(),
            is_void: AtomicBool::new(false),
            notes: Mutex::new(Notes::Nowhere),
        }
    }

    /// What the ledger at `path` holds; `memory_bytes` may stay in memory, 16 bytes a file. Notes are
    /// added to it.
    ///
    /// A ledger that cannot be read is none; where none can be written nothing is noted.
    /// `hosts`: those of the processes that copy, if there are several; they know what is in memory.
    /// Cost: an open that mostly fails; else 16 bytes are read and sorted for each file.
    pub fn open(
        path: &Path,
        options: &CopyOptions,
        noting: Noting,
        (memory_bytes, hosts): (u64, Option<&Hosts>),
    ) -> Self {
        let most = usize::try_from(memory_bytes).unwrap_or(usize::MAX) / size_of::<Fingerprint>();
        let last = if hosts.is_some() { most } else { usize::MAX };
        let ledger = Ledger::new(path, hosts.map(|hosts| hosts.boots.clone()));
        let (known, has_place) = match ledger.known((last, most)) {
            Some(known) => (known, true),
            None => (Noted::none(), false),
        };
        // What was known before is noted again, or it would be lost with the old ledger.
        let notes_at_once = noting == Noting::AtOnce || !known.is_empty();
        Self {
            manner: manner(options),
            known,
            is_noting: AtomicBool::new(notes_at_once && has_place),
            knows_devices: hosts.is_none_or(|hosts| hosts.is_one),
            notes: Mutex::new(if has_place { Notes::To(ledger) } else { Notes::Nowhere }),
            ..Self::none()
        }
    }

    /// For a copy to where nothing is: nothing can have been done, and what was noted of files that are
    /// gone need not be read. Notes go to the ledger at `path`, in whose place.
    pub fn of_nothing(path: &Path, options: &CopyOptions, noting: Noting) -> Self {
        Self {
            manner: manner(options),
            is_noting: AtomicBool::new(noting == Noting::AtOnce),
            notes: Mutex::new(Notes::To(Ledger::new(path, None))),
            ..Self::none()
        }
    }

    /// What is known, for the other processes.
    pub fn packed(&self) -> Vec<u8> {
        let has_place = !matches!(*lock(&self.notes), Notes::Nowhere);
        message(&[&has_place, &self.is_noting(), &self.knows_devices, &self.known.near])
    }

    /// What [`Evidence::packed`] made, in a process that tells the first one what is to be noted.
    pub fn unpacked(bytes: &[u8], options: &CopyOptions) -> Self {
        let from = &mut &*bytes;
        let [has_place, is_noting, knows_devices] = take(from).unwrap_or_default();
        Self {
            manner: manner(options),
            known: take::<Vec<Fingerprint>>(from).unwrap_or_default().into(),
            is_noting: AtomicBool::new(is_noting),
            knows_devices,
            notes: Mutex::new(if has_place { Notes::Told(Vec::new()) } else { Notes::Nowhere }),
            ..Self::none()
        }
    }

    /// What the first process is to note for this one.
    pub(super) fn take_notes(&self) -> Vec<u8> {
        match &mut *lock(&self.notes) {
            Notes::Told(notes) => std::mem::take(notes),
            _ => Vec::new(),
        }
    }

    /// Notes what another process has taken.
    pub(super) fn note_for_another(&self, notes: &[u8]) {
        fingerprints(notes).for_each(|fingerprint| self.add(fingerprint));
    }

    /// The same, and nothing is noted.
    pub fn without_notes(self) -> Self {
        let (is_noting, notes) = (AtomicBool::new(false), Mutex::new(Notes::Nowhere));
        Self { is_noting, notes, ..self }
    }

    /// Begins to note when the copy has taken long enough, if there is a place for that.
    pub(super) fn look_at_the_clock(&self) {
        let is_due = !self.is_noting() && self.begun.elapsed() >= NOTE_AFTER;
        if is_due && !matches!(*lock(&self.notes), Notes::Nowhere) {
            self.is_noting.store(true, Ordering::Relaxed);
        }
    }

    /// Whether finished files are noted.
    pub(super) fn is_noting(&self) -> bool {
        self.is_noting.load(Ordering::Relaxed)
    }

    /// Whether anything was noted before.
    pub(super) fn knows_any(&self) -> bool {
        !self.known.is_empty()
    }

    /// Whether `found` is the copy of `source` that this program made, and neither was changed since.
    pub(super) fn proves(&self, source: Known<'_>, found: Known<'_>) -> bool {
        self.knows_any() && self.known.has(self.fingerprint(source, found))
    }

    /// Notes a file that is complete: `source` when it was opened, at that moment, `made` when nothing
    /// more was to be done to its copy.
    pub(super) fn note(&self, source: Known<'_>, opened: Moment, made: Known<'_>) {
        if !self.is_noting() || !is_settled(source.0, opened) {
            return;
        }
        self.add(self.fingerprint(source, made));
    }

    fn add(&self, fingerprint: Fingerprint) {
        let mut notes = lock(&self.notes);
        let is_added = match &mut *notes {
            Notes::Nowhere => false,
            Notes::To(ledger) => ledger.add(fingerprint),
            Notes::Told(notes) => {
                notes.extend_from_slice(&fingerprint.to_le_bytes());
                true
            }
        };
        if !is_added {
            *notes = Notes::Nowhere;
            self.is_noting.store(false, Ordering::Relaxed);
        }
    }

    /// Storage has lost bytes of files that were complete, of this run or of earlier ones: none of them
    /// counts as done.
    pub(super) fn forget(&self) {
        self.is_void.store(true, Ordering::Relaxed);
    }

    /// Whether nothing that was noted counts any more.
    pub(super) fn is_void(&self) -> bool {
        self.is_void.load(Ordering::Relaxed)
    }

    /// The copy has ended. What was noted before stays known only where this run did not get
    /// everywhere.
    pub(super) fn finish(&self, reached: Reached) {
        self.is_noting.store(false, Ordering::Relaxed);
        let reached = if self.is_void() { Reached::Nothing } else { reached };
        let notes = std::mem::replace(&mut *lock(&self.notes), Notes::Nowhere);
        if let Notes::To(ledger) = notes {
            ledger.finish(reached, &self.known);
        }
    }

    /// The number of the mount in which something lies; 0: there is none that other processes know, too.
    fn mount(&self, (facts, directory): Known<'_>, is_source: bool) -> u64 {
        if !self.knows_devices {
            return 0;
        }
        let mut mounts = lock(&self.mounts);
        let key = (facts.st_dev, is_source);
        if let Some((_, mount)) = mounts.iter().find(|(known, _)| *known == key) {
            return *mount;
        }
        let wanted = StatxFlags::MNT_ID | NEVER_AGAIN;
        let looked = statx(directory, c"", AtFlags::EMPTY_PATH, wanted);
        let mount = looked.map_or(0, |looked| looked.stx_mnt_id);
        mounts.push((key, mount));
        mount
    }

    fn fingerprint(&self, source: Known<'_>, target: Known<'_>) -> Fingerprint {
        let mut hasher = Hasher::new(Algorithm::Blake3);
        hasher.update(&self.manner);
        for (side, is_source) in [(target, false), (source, true)] {
            let (facts, _) = side;
            let numbers = [
                self.mount(side, is_source),
                if self.knows_devices { facts.st_dev } else { 0 },
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

fn fingerprints(bytes: &[u8]) -> impl Iterator<Item = Fingerprint> {
    let (all, _) = bytes.as_chunks();
    all.iter().map(|bytes| Fingerprint::from_le_bytes(*bytes))
}

/// By what one copy of a file differs from another: options, and whether owners can be kept.
fn manner(options: &CopyOptions) -> [u8; 7] {
    let is_root = rustix::process::geteuid().is_root();
    let when = |when: When| when as u8;
    let shares = options.method == Some(Method::Reflink);
    let [low, high] = options.preserve.bits().to_le_bytes();
    let (sparse, reflink) = (when(options.sparse), when(options.reflink));
    [low, high, sparse, reflink, shares.into(), options.assurance as u8, is_root.into()]
}

/// How far a run got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    /// Everything was looked at.
    Everything,
    /// It was stopped, or something failed.
    Part,
    /// Storage has not kept what it was given.
    Nothing,
}

/// Whether a file had been left alone for so long, when it was opened, that a further change shows.
fn is_settled(facts: &Stat, opened: Moment) -> bool {
    let changed = Duration::new(
        u64::try_from(facts.st_ctime).unwrap_or_default(),
        u32::try_from(facts.st_ctime_nsec).unwrap_or_default(),
    );
    // Inodes of 128 bytes (ext4) know whole seconds only.
    let fraction = Duration::from_secs(if facts.st_ctime_nsec == 0 { 1 } else { 0 });
    opened.since(changed) >= SETTLED_AFTER + fraction
}

#[cfg(test)]
mod tests {
    use rustix::fs::CWD;

    use super::*;
    use crate::copy::options::Preserve;
    use crate::copy::tests::options;

    fn facts(path: &Path) -> Stat {
        rustix::fs::stat(path).unwrap()
    }

    /// As it is after a second.
    fn settled(path: &Path) -> Stat {
        let mut facts = facts(path);
        facts.st_ctime -= 5;
        facts
    }

    /// One of many that are alike.
    fn numbered(path: &Path, number: u64) -> Stat {
        let mut facts = settled(path);
        facts.st_ino = number;
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
        let open = |options: CopyOptions| {
            Evidence::open(&ledger, &options, Noting::AtOnce, (1 << 20, None))
        };
        let first = open(options());
        let (from, to) = (settled(&source), facts(&target));
        // However slow this machine is.
        let mut just_now = facts(&source);
        just_now.st_ctime += 3600;
        assert!(!first.proves((&from, CWD), (&to, CWD)));
        first.note((&from, CWD), Moment::now(), (&to, CWD));
        first.note((&just_now, CWD), Moment::now(), (&to, CWD));
        first.finish(Reached::Everything);
        let second = open(options());
        assert!(second.proves((&from, CWD), (&to, CWD)));
        assert!(!second.proves((&just_now, CWD), (&to, CWD)));
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
            assert!(!second.proves((&other_from, CWD), (&to, CWD)));
            assert!(!second.proves((&from, CWD), (&other_to, CWD)));
        }
        for other in [
            CopyOptions { preserve: Preserve::NOTHING, ..options() },
            CopyOptions { sparse: When::Never, ..options() },
            CopyOptions { reflink: When::Never, ..options() },
            CopyOptions { method: Some(Method::Reflink), ..options() },
        ] {
            assert!(!open(other).proves((&from, CWD), (&to, CWD)), "it was to be another copy");
        }
        assert!(!Evidence::none().proves((&from, CWD), (&to, CWD)));
    }

    #[test]
    fn a_copy_to_where_nothing_is_notes_in_the_place_of_what_was() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        std::fs::write(&path, "x").unwrap();
        let ledger = place.path().join("state/ledger");
        let open = || Evidence::open(&ledger, &options(), Noting::AtOnce, (1 << 10, None));
        let [old, gone, new] = [1, 2, 3].map(|number| numbered(&path, number));
        let note = |evidence: &Evidence, facts| {
            evidence.note((facts, CWD), Moment::now(), (facts, CWD));
        };
        let is_proved = |facts| open().proves((facts, CWD), (facts, CWD));
        let first = open();
        note(&first, &old);
        first.finish(Reached::Everything);
        let killed = open();
        note(&killed, &gone);
        drop(killed);
        let fresh = Evidence::of_nothing(&ledger, &options(), Noting::AtOnce);
        note(&fresh, &new);
        fresh.finish(Reached::Everything);
        assert_eq!([&old, &gone, &new].map(is_proved), [false, false, true]);
        Evidence::of_nothing(&ledger, &options(), Noting::Later).finish(Reached::Everything);
        assert!(is_proved(&new), "without notes nothing is changed");
    }

    /// What a device did not take may be of any file that was complete.
    #[test]
    fn nothing_counts_as_done_when_storage_has_lost_bytes() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        std::fs::write(&path, "x").unwrap();
        let (ledger, file) = (place.path().join("state/ledger"), settled(&path));
        let open = || Evidence::open(&ledger, &options(), Noting::AtOnce, (1 << 10, None));
        for reached in [Reached::Everything, Reached::Part] {
            let evidence = open();
            assert!(!evidence.proves((&file, CWD), (&file, CWD)), "it was forgotten");
            evidence.note((&file, CWD), Moment::now(), (&file, CWD));
            evidence.finish(Reached::Everything);
            let again = open();
            assert!(again.proves((&file, CWD), (&file, CWD)));
            again.note((&file, CWD), Moment::now(), (&file, CWD));
            again.forget();
            again.finish(reached);
        }
        assert!(!open().proves((&file, CWD), (&file, CWD)));
    }

    #[test]
    fn a_run_that_is_stopped_adds_to_what_was_known() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        std::fs::write(&path, "x").unwrap();
        let ledger = place.path().join("state/ledger");
        let open = || Evidence::open(&ledger, &options(), Noting::AtOnce, (1 << 10, None));
        let file = |number| numbered(&path, number);
        let note = |evidence: &Evidence, number| {
            evidence.note((&file(number), CWD), Moment::now(), (&file(number), CWD));
        };
        let proved = |evidence: &Evidence| {
            (0..9)
                .filter(|&n| evidence.proves((&file(n), CWD), (&file(n), CWD)))
                .collect::<Vec<_>>()
        };
        let length = || std::fs::metadata(&ledger).unwrap().len();
        for (numbers, reached, known) in [
            (&[1, 2][..], Reached::Part, &[1, 2][..]),
            (&[3, 2, 1], Reached::Part, &[1, 2, 3]),
            (&[3, 4], Reached::Everything, &[3, 4]),
            (&[], Reached::Part, &[3, 4]),
        ] {
            let evidence = open();
            numbers.iter().for_each(|&number| note(&evidence, number));
            evidence.finish(reached);
            assert_eq!(proved(&open()), known, "{numbers:?}");
            assert_eq!(length(), 64 + 16 * known.len() as u64, "nothing stands there twice");
        }
        // One that was killed has finished nothing.
        let killed = open();
        note(&killed, 7);
        drop(killed);
        assert_eq!(proved(&open()), [3, 4, 7]);
        // Where memory takes less, the others are in a file.
        let little = Evidence::open(&ledger, &options(), Noting::AtOnce, (32, None));
        assert_eq!(proved(&little), [3, 4, 7]);
    }
}
