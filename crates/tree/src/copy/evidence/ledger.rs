//! The file in which fingerprints outlive the process: a head with the number of this boot, and 16
//! bytes for each file.
//!
//! What this run notes goes to a file beside it, which takes its place when the run got everywhere,
//! and is added to it otherwise. It counts until the next boot: a machine that lost its power may
//! have kept a note and lost the file. Whatever goes wrong with a ledger, a copy goes on without.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{FlockOperation, OFlags};

use super::noted::Noted;
use super::{Fingerprint, Reached};

const MAGIC: &[u8] = b"flatout evidence 1\n";
/// Magic, the boot's number, and a line end.
const HEAD_BYTES: usize = 64;
/// What follows the name of a ledger in that of the notes of a run.
const NEXT: &str = ".next";
/// Hexadecimal digits of a name.
const NAME_DIGITS: usize = 32;
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
/// Notes that wait to be written at most, in number and in time: what SIGKILL may cost.
const MOST_WAITING_BYTES: usize = 4 << 10;
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Ledgers that are kept, and bytes of them all: 16 million files.
const MOST_LEDGERS: usize = 64;
const MOST_BYTES: u64 = 256 << 20;

/// A ledger, and what is added to it.
#[derive(Debug)]
pub(super) struct Ledger {
    path: PathBuf,
    /// What stands for this boot where several hosts take part.
    boot: Option<String>,
    /// Begun when there is something to write; locked as long as this process lives.
    next: Option<File>,
    waiting: Vec<u8>,
    /// When notes were written last; the first one is written at once.
    written: Option<Instant>,
}

impl Ledger {
    /// The ledger at `path`. Nothing is looked at.
    pub(super) fn new(path: &Path, boot: Option<String>) -> Self {
        Self { path: path.to_owned(), boot, next: None, waiting: Vec::new(), written: None }
    }

    /// Reads what there is, the last `last` notes of it: a run that is stopped adds to the end; `most`
    /// may stay in memory. `None`: there is no place for a ledger.
    pub(super) fn known(&self, (last, most): (usize, usize)) -> Option<Noted> {
        let (true, Ok(head)) = (is_in_place_of_ours(&self.path), self.head()) else { return None };
        let known = || {
            Noted::collect(most, |add| {
                // What was read of one that breaks off in the middle is as true as all of it.
                let _as_far_as_it_can_be_read = read(&self.path, (last, &head), add);
            })
        };
        let before = known();
        Some(if adopt(&self.path, (&before, &head)) { known() } else { before })
    }

    /// How a ledger of this boot begins.
    fn head(&self) -> io::Result<Head> {
        head(self.boot.as_deref())
    }

    /// Adds a note; false when that cannot be done, or another process does it.
    pub(super) fn add(&mut self, fingerprint: Fingerprint) -> bool {
        self.waiting.extend_from_slice(&fingerprint.to_le_bytes());
        let is_due = self.waiting.len() >= MOST_WAITING_BYTES
            || self.written.is_none_or(|written| written.elapsed() >= LONGEST_WAIT);
        !is_due || self.write()
    }

    fn write(&mut self) -> bool {
        if self.next.is_none() {
            self.next = self.begin().ok();
        }
        let Some(next) = &mut self.next else { return false };
        let is_written = next.write_all(&self.waiting).is_ok();
        self.waiting.clear();
        self.written = Some(Instant::now());
        is_written
    }

    /// Begins the notes of this run; those of one that was killed are added to the ledger first.
    fn begin(&self) -> io::Result<File> {
        let head = self.head()?;
        adopt(&self.path, (&Noted::none(), &head));
        make(&self.path, &head)
    }

    /// What was noted becomes the ledger, or a part of it, but for what is `known` already.
    pub(super) fn finish(mut self, reached: Reached, known: &Noted) {
        let next = beside(&self.path);
        if reached == Reached::Nothing {
            let _gone = [fs::remove_file(&self.path), fs::remove_file(next)];
            return;
        }
        if self.next.is_none() {
            return;
        }
        let is_whole = self.write();
        if is_whole && reached == Reached::Everything {
            // Where that fails the old one is as true as before.
            let _old_one_stays = fs::rename(&next, &self.path);
        } else {
            let _next_run_does_it =
                self.head().and_then(|head| append(&next, &self.path, (known, &head)));
        }
    }
}

/// Whether the nearest directory that is there belongs to this user: what lies at somebody else's is
/// not ours to fill, and sudo keeps `$HOME`.
fn is_in_place_of_ours(path: &Path) -> bool {
    let here = |above: &Path| above.as_os_str().is_empty().then_some(Path::new("."));
    let mut above = path.ancestors().skip(1);
    let found = above.find_map(|above| fs::metadata(here(above).unwrap_or(above)).ok());
    found.is_some_and(|facts| facts.uid() == rustix::process::geteuid().as_raw())
}

/// Where the notes of a run stand.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().map(OsString::from).unwrap_or_default();
    name.push(NEXT);
    path.with_file_name(name)
}

/// The first bytes of a ledger.
type Head = [u8; HEAD_BYTES];

fn head(boot: Option<&str>) -> io::Result<Head> {
    let mut head = [b'\n'; HEAD_BYTES];
    let boot = boot.map_or_else(|| fs::read(BOOT), |boot| Ok(boot.as_bytes().to_vec()))?;
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
fn make(path: &Path, head: &Head) -> io::Result<File> {
    if !is_in_place_of_ours(path) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    if let Some(above) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(above)?;
        make_room(above);
    }
    let mut file = open(&beside(path), OpenOptions::new().append(true).create_new(true))?;
    lock(&file)?;
    file.write_all(head)?;
    Ok(file)
}

/// Calls `each` with the last `most` notes of a ledger of this boot; removes one of another.
fn read(
    path: &Path,
    (most, head): (usize, &Head),
    each: &mut dyn FnMut(Fingerprint),
) -> io::Result<()> {
    let mut file = io::BufReader::new(open(path, OpenOptions::new().read(true))?);
    let mut found = [0; HEAD_BYTES];
    let is_whole = file.read_exact(&mut found).is_ok();
    if !is_whole || found != *head {
        return fs::remove_file(path);
    }
    let mut note = [0; size_of::<Fingerprint>()];
    let length = file.get_ref().metadata()?.len().saturating_sub(HEAD_BYTES as u64);
    let skipped = (length / note.len() as u64).saturating_sub(most as u64);
    file.seek(SeekFrom::Start(HEAD_BYTES as u64 + skipped * note.len() as u64))?;
    // What breaks off in the middle of a note was being written when its maker was killed.
    while file.read_exact(&mut note).is_ok() {
        each(Fingerprint::from_le_bytes(note));
    }
    Ok(())
}

/// Adds to a ledger what a run has left beside it that was killed, but for what is `known` already.
/// Whether there was such a rest.
fn adopt(path: &Path, (known, head): (&Noted, &Head)) -> bool {
    let next = beside(path);
    let Ok(left) = open(&next, OpenOptions::new().read(true)) else { return false };
    lock(&left).is_ok() && append(&next, path, (known, head)).is_ok()
}

/// Adds the notes of one ledger to another, but for those that are `known`; and removes it.
fn append(from: &Path, to: &Path, (known, head): (&Noted, &Head)) -> io::Result<()> {
    if fs::symlink_metadata(to).is_err() {
        return fs::rename(from, to);
    }
    let ledger = open(to, OpenOptions::new().append(true))?;
    let whole = ledger.metadata()?.len();
    let broken_off = whole.saturating_sub(HEAD_BYTES as u64) % size_of::<Fingerprint>() as u64;
    ledger.set_len(whole - broken_off)?;
    let (mut ledger, mut written) = (io::BufWriter::new(ledger), Ok(()));
    read(from, (usize::MAX, head), &mut |fingerprint| {
        if written.is_ok() && !known.has(fingerprint) {
            written = ledger.write_all(&fingerprint.to_le_bytes());
        }
    })?;
    written.and_then(|()| ledger.flush())?;
    match fs::remove_file(from) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Whether this is a ledger that nobody writes: its name is a digest, it is ours, and begins as one.
fn is_ledger(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let digits = name.strip_suffix(NEXT).unwrap_or(name);
    if digits.len() != NAME_DIGITS || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return false;
    }
    let Ok(mut file) = open(path, OpenOptions::new().read(true)) else { return false };
    let mut found = [0; MAGIC.len()];
    lock(&file).is_ok() && file.read_exact(&mut found).is_ok() && found == MAGIC
}

/// Removes the oldest ledgers where there are too many; nothing else that lies there.
fn make_room(directory: &Path) {
    let mut ledgers = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if let Ok(facts) = path.symlink_metadata()
            && facts.is_file()
            && is_ledger(&path)
        {
            let modified = facts.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            ledgers.push((modified, facts.len(), path));
        }
    }
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

    const NAME: &str = "0123456789abcdef0123456789abcdef";

    fn noted(path: &Path) -> Vec<Fingerprint> {
        open(path).0.near.clone()
    }

    fn open(path: &Path) -> (Noted, Ledger) {
        let ledger = Ledger::new(path, None);
        (ledger.known((usize::MAX, usize::MAX)).unwrap(), ledger)
    }

    #[test]
    fn a_ledger_of_another_boot_is_removed_and_a_broken_one_read_as_far_as_it_goes() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("state/ledger");
        let (_, mut ledger) = open(&path);
        assert!(ledger.add(1) && ledger.add(2));
        ledger.finish(Reached::Everything, &Noted::none());
        assert_eq!(noted(&path), [1, 2]);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 3]).unwrap();
        let (known, mut ledger) = open(&path);
        assert_eq!(*known.near, [1]);
        assert!(ledger.add(3) && ledger.add(1));
        ledger.finish(Reached::Part, &known);
        assert_eq!(noted(&path), [1, 3], "what broke off does not shift the rest");
        let mut other = fs::read(&path).unwrap();
        other[30] ^= 1;
        fs::write(&path, other).unwrap();
        assert_eq!(noted(&path), []);
        assert!(!path.exists());
    }

    #[test]
    fn what_was_noted_last_is_known_where_memory_takes_less() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("state/ledger");
        let (_, mut ledger) = open(&path);
        assert!((0..1000).all(|number| ledger.add(number)));
        ledger.finish(Reached::Part, &Noted::none());
        let ledger = Ledger::new(&path, None);
        let last = |most| ledger.known((most, most)).unwrap().near.clone();
        assert_eq!(last(3), [997, 998, 999]);
        assert_eq!(last(0), []);
        assert_eq!(last(2000).len(), 1000);
    }

    #[test]
    fn a_place_below_the_current_directory_is_one() {
        assert!(is_in_place_of_ours(Path::new("not-there-yet/at-all/ledger")));
        assert!(is_in_place_of_ours(Path::new("ledger")));
    }

    #[test]
    fn two_runs_do_not_write_one_ledger() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("state/ledger");
        let (mut one, mut other) = (open(&path).1, open(&path).1);
        assert!(one.add(1));
        assert!(!other.add(2), "it is locked");
        let third = open(&path).1;
        one.finish(Reached::Part, &Noted::none());
        third.finish(Reached::Everything, &Noted::none());
        assert_eq!(noted(&path), [1]);
    }

    #[test]
    fn what_killed_runs_noted_again_and_again_stands_there_once() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("state/ledger");
        for last in [1, 2, 2, 3] {
            let (_, mut killed) = open(&path);
            assert!((1..=last).all(|number| killed.add(number)) && killed.write());
        }
        assert_eq!(noted(&path), [1, 2, 3]);
        assert_eq!(fs::metadata(&path).unwrap().len(), HEAD_BYTES as u64 + 3 * 16);
    }

    #[test]
    fn no_symlink_is_followed() {
        let place = tempfile::tempdir().unwrap();
        let elsewhere = place.path().join("elsewhere");
        fs::write(&elsewhere, "precious").unwrap();
        std::os::unix::fs::symlink(&elsewhere, place.path().join("ledger.next")).unwrap();
        let (_, mut ledger) = open(&place.path().join("ledger"));
        assert!(!ledger.add(1));
        assert_eq!(fs::read(&elsewhere).unwrap(), b"precious");
    }

    #[test]
    fn old_ledgers_make_room_and_nothing_else_does() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let other = "f".repeat(NAME_DIGITS);
        for name in ["letter", "0123.json", &other] {
            fs::write(at(name), "precious").unwrap();
        }
        for number in 0..MOST_LEDGERS + 10 {
            fs::write(at(&format!("{number:032x}")), MAGIC).unwrap();
        }
        let (_, mut ledger) = open(&at(NAME));
        assert!(ledger.add(1));
        ledger.finish(Reached::Everything, &Noted::none());
        assert!(fs::read_dir(place.path()).unwrap().count() <= MOST_LEDGERS + 3);
        for name in ["letter", "0123.json", &other] {
            assert_eq!(fs::read(at(name)).unwrap(), b"precious", "{name}");
        }
    }
}
