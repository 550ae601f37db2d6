//! The file in which fingerprints outlive the process: a head with the number of this boot, and 16
//! bytes for each file.
//!
//! What this run notes goes to a file beside it, which takes its place when the run got everywhere,
//! and is added to it otherwise. It counts until the next boot: a machine that lost its power may
//! have kept a note and lost the file. Whatever goes wrong with a ledger, a copy goes on without.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{FlockOperation, OFlags};

use super::{Fingerprint, Reached};
use crate::copy::failure::Refusal;

const MAGIC: &[u8] = b"flatout evidence 1\n";
/// Magic, the boot's number, and a line end.
const HEAD_BYTES: usize = 64;
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
/// Notes that wait to be written at most, in number and in time: what SIGKILL may cost.
const MOST_WAITING_BYTES: usize = 4 << 10;
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Ledgers that are kept, and bytes of them all: 16 million files.
const MOST_LEDGERS: usize = 64;
const MOST_BYTES: u64 = 256 << 20;

/// A ledger that was read, and what is added to it.
#[derive(Debug)]
pub(super) struct Ledger {
    path: PathBuf,
    /// Begun when there is something to note; locked as long as this process lives.
    next: Option<File>,
    waiting: Vec<u8>,
    /// When notes were written last; the first one is written at once.
    written: Option<Instant>,
}

impl Ledger {
    /// Reads what there is. `None`: there is no place for a ledger.
    ///
    /// An error of `each` ends the reading, no more.
    pub(super) fn open(
        path: &Path,
        mut each: impl FnMut(Fingerprint) -> Result<(), Refusal>,
    ) -> Option<Self> {
        if !is_in_place_of_ours(path) {
            return None;
        }
        adopt(path);
        let _as_far_as_it_can_be_read = read(path, &mut each);
        Some(Self { path: path.to_owned(), next: None, waiting: Vec::new(), written: None })
    }

    /// Begins to note. False where that cannot be, or another process does it.
    pub(super) fn begin(&mut self) -> bool {
        self.next = make(&self.path).ok();
        self.next.is_some()
    }

    /// Adds a note; false when that cannot be done any more.
    pub(super) fn add(&mut self, fingerprint: Fingerprint) -> bool {
        self.waiting.extend_from_slice(&fingerprint.to_le_bytes());
        let is_due = self.waiting.len() >= MOST_WAITING_BYTES
            || self.written.is_none_or(|written| written.elapsed() >= LONGEST_WAIT);
        !is_due || self.write()
    }

    fn write(&mut self) -> bool {
        let Some(next) = &mut self.next else { return false };
        let is_written = next.write_all(&self.waiting).is_ok();
        self.waiting.clear();
        self.written = Some(Instant::now());
        is_written
    }

    /// What was noted becomes the ledger, or a part of it.
    pub(super) fn finish(mut self, reached: Reached) {
        if self.next.is_none() {
            return;
        }
        let is_whole = self.write();
        let next = beside(&self.path);
        if is_whole && reached == Reached::Everything {
            // Where that fails the old one is as true as before.
            let _old_one_stays = fs::rename(&next, &self.path);
        } else {
            let _next_run_does_it = append(&next, &self.path);
        }
    }
}

/// Whether the nearest directory that is there belongs to this user: what lies at somebody else's is
/// not ours to fill, and sudo keeps `$HOME`.
fn is_in_place_of_ours(path: &Path) -> bool {
    let found = path.ancestors().skip(1).find_map(|above| fs::metadata(above).ok());
    found.is_some_and(|facts| facts.uid() == rustix::process::geteuid().as_raw())
}

/// Where the notes of a run stand.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().map(OsString::from).unwrap_or_default();
    name.push(".next");
    path.with_file_name(name)
}

/// The first bytes of a ledger of this boot.
fn head() -> io::Result<[u8; HEAD_BYTES]> {
    let mut head = [b'\n'; HEAD_BYTES];
    let boot = fs::read(BOOT)?;
    let bytes = MAGIC.iter().chain(boot.trim_ascii_end());
    head[..HEAD_BYTES - 1].iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    Ok(head)
}

/// Opens a file of ours: no symlink, nothing that somebody else put there.
fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = options.custom_flags(flags).mode(0o600).open(path)?;
    let facts = file.metadata()?;
    if !facts.is_file() || facts.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(file)
}

fn lock(file: &File) -> io::Result<()> {
    Ok(rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive)?)
}

/// Begins a file of notes, and makes room for it among the others.
fn make(path: &Path) -> io::Result<File> {
    let head = head()?;
    if let Some(above) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(above)?;
        make_room(above);
    }
    let mut file = open(&beside(path), OpenOptions::new().append(true).create_new(true))?;
    lock(&file)?;
    file.write_all(&head)?;
    Ok(file)
}

/// Calls `each` with all notes of a ledger of this boot; removes one of another.
fn read(path: &Path, each: &mut impl FnMut(Fingerprint) -> Result<(), Refusal>) -> io::Result<()> {
    let mut file = io::BufReader::new(open(path, OpenOptions::new().read(true))?);
    let mut found = [0; HEAD_BYTES];
    let is_whole = file.read_exact(&mut found).is_ok();
    if !is_whole || found != head()? {
        return fs::remove_file(path);
    }
    let mut note = [0; size_of::<Fingerprint>()];
    // What breaks off in the middle of a note was being written when its maker was killed.
    while file.read_exact(&mut note).is_ok() {
        if each(Fingerprint::from_le_bytes(note)).is_err() {
            break;
        }
    }
    Ok(())
}

/// Adds to a ledger what a run has left beside it that was killed.
fn adopt(path: &Path) {
    let next = beside(path);
    let Ok(left) = open(&next, OpenOptions::new().read(true)) else { return };
    if lock(&left).is_ok() {
        let _without_it = append(&next, path);
    }
}

/// Adds the notes of one ledger to another, and removes it.
fn append(from: &Path, to: &Path) -> io::Result<()> {
    if fs::symlink_metadata(to).is_err() {
        return fs::rename(from, to);
    }
    let mut notes = Vec::new();
    let mut ledger = open(to, OpenOptions::new().append(true))?;
    let whole = ledger.metadata()?.len();
    let broken_off = whole.saturating_sub(HEAD_BYTES as u64) % size_of::<Fingerprint>() as u64;
    ledger.set_len(whole - broken_off)?;
    let mut written = Ok(());
    read(from, &mut |fingerprint| {
        notes.extend_from_slice(&fingerprint.to_le_bytes());
        if notes.len() >= MOST_WAITING_BYTES {
            written = ledger.write_all(&notes);
            notes.clear();
        }
        match written {
            Ok(()) => Ok(()),
            Err(_) => Err(Refusal::interrupted("note")),
        }
    })?;
    written.and_then(|()| ledger.write_all(&notes))?;
    match fs::remove_file(from) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes the oldest ledgers where there are too many.
fn make_room(directory: &Path) {
    let facts = |entry: io::Result<fs::DirEntry>| {
        let entry = entry.ok()?;
        let facts = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        Some((facts.modified().unwrap_or(SystemTime::UNIX_EPOCH), facts.len(), entry.path()))
    };
    let Ok(entries) = fs::read_dir(directory) else { return };
    let mut ledgers: Vec<_> = entries.filter_map(facts).collect();
    ledgers.sort();
    let mut bytes: u64 = ledgers.iter().map(|(_, bytes, _)| bytes).sum();
    let mut count = ledgers.len();
    for (_, length, path) in ledgers {
        if count < MOST_LEDGERS && bytes <= MOST_BYTES {
            return;
        }
        let _stays = fs::remove_file(path);
        (count, bytes) = (count - 1, bytes - length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(path: &Path) -> Vec<u8> {
        let mut notes = Vec::new();
        let each = |fingerprint: Fingerprint| {
            notes.push(fingerprint as u8);
            Ok(())
        };
        assert!(Ledger::open(path, each).is_some());
        notes
    }

    #[test]
    fn a_ledger_of_another_boot_is_removed_and_a_broken_one_read_as_far_as_it_goes() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("state/ledger");
        let mut ledger = Ledger::open(&path, |_| Ok(())).unwrap();
        assert!(ledger.begin() && ledger.add(1) && ledger.add(2));
        ledger.finish(Reached::Everything);
        assert_eq!(notes(&path), [1, 2]);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 3]).unwrap();
        assert_eq!(notes(&path), [1]);
        let mut ledger = Ledger::open(&path, |_| Ok(())).unwrap();
        assert!(ledger.begin() && ledger.add(3));
        ledger.finish(Reached::Part);
        assert_eq!(notes(&path), [1, 3], "what broke off does not shift the rest");
        let mut other = fs::read(&path).unwrap();
        other[30] ^= 1;
        fs::write(&path, other).unwrap();
        assert_eq!(notes(&path), [0_u8; 0]);
        assert!(!path.exists());
    }

    #[test]
    fn two_runs_do_not_write_one_ledger() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("state/ledger");
        let open = || Ledger::open(&path, |_| Ok(())).unwrap();
        let (mut one, mut other) = (open(), open());
        assert!(one.begin());
        assert!(!other.begin(), "it is locked");
        assert!(one.add(1));
        let third = open();
        one.finish(Reached::Part);
        third.finish(Reached::Everything);
        assert_eq!(notes(&path), [1]);
    }

    #[test]
    fn no_symlink_is_followed_and_old_ledgers_make_room() {
        let place = tempfile::tempdir().unwrap();
        let state = place.path().join("state");
        fs::create_dir(&state).unwrap();
        let elsewhere = place.path().join("elsewhere");
        fs::write(&elsewhere, "precious").unwrap();
        std::os::unix::fs::symlink(&elsewhere, state.join("ledger.next")).unwrap();
        let mut ledger = Ledger::open(&state.join("ledger"), |_| Ok(())).unwrap();
        assert!(!ledger.begin());
        assert_eq!(fs::read(&elsewhere).unwrap(), b"precious");
        for number in 0..MOST_LEDGERS + 10 {
            fs::write(state.join(number.to_string()), "x").unwrap();
        }
        let mut ledger = Ledger::open(&state.join("new"), |_| Ok(())).unwrap();
        assert!(ledger.begin());
        assert!(fs::read_dir(&state).unwrap().count() <= MOST_LEDGERS + 1);
    }
}
