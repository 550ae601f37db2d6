//! Places where copies appear: what they must not be, and how they get to storage in the end.

use std::collections::{BTreeMap, HashSet};
use std::ffi::{CStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

use rustix::fs::{Mode, OFlags, Stat};
use rustix::io::Errno;

use super::directory::DIRECTORY;
use super::{Directory, Durability, Identity, Refusal, Side, identity};
use crate::file_data;
use crate::lock::lock;

/// Filesystems that are held open at most until they are synced: each subvolume of btrfs looks like one.
/// Others are opened again, by their path.
const MOST_HELD: usize = 16;

/// By what a filesystem is synced in the end.
#[derive(Debug)]
enum Held {
    /// A directory or file on it.
    Open(OwnedFd),
    /// Where one is.
    At(PathBuf),
    /// Nothing there could be opened so far.
    Unreadable,
}

/// The directory of the first operand, or the one in which all of them lie, which is this path then.
#[derive(Debug)]
struct LinksRoot {
    directory: OwnedFd,
    identity: Identity,
    holds_all: Option<PathBuf>,
}

/// What is known of the places where copies appear.
#[derive(Debug, Default)]
pub(super) struct Targets {
    durability: Durability,
    /// The directory below which links are looked up.
    links_root: OnceLock<LinksRoot>,
    /// Copies of what the user named: a source that is one of them would be copied into itself.
    copies: Mutex<HashSet<Identity>>,
    /// Directories that the user named and that are being copied now: a target that is one of them
    /// would be copied over itself while it is read.
    sources: Mutex<HashSet<Identity>>,
    /// Filesystems that were written to, by device.
    filesystems: Mutex<BTreeMap<u64, Held>>,
    /// There was one of which a directory could not be opened: maybe a file can.
    some_unreadable: AtomicBool,
}

impl Targets {
    pub(super) fn new(durability: Durability) -> Self {
        Self { durability, ..Self::default() }
    }

    /// Other operands begin: the sources of an earlier round are read, and may be written.
    pub(super) fn begin_round(&self) {
        lock(&self.sources).clear();
    }

    /// Remembers where links are looked up, if that is not known: below this directory, in which all operands lie,
    /// wherever in it, where it has a path here.
    pub(super) fn look_up_links_in(
        &self,
        directory: &OwnedFd,
        facts: &Stat,
        holds_all: Option<&Path>,
    ) -> Result<(), Errno> {
        if self.links_root.get().is_none() {
            let directory = rustix::io::fcntl_dupfd_cloexec(directory, 3)?;
            let (identity, holds_all) = (identity(facts), holds_all.map(Path::to_owned));
            let _others_did = self.links_root.set(LinksRoot { directory, identity, holds_all });
        }
        Ok(())
    }

    /// Where links are looked up, if this directory lies below it.
    pub(super) fn links_root(&self, directory: &Directory) -> Option<BorrowedFd<'_>> {
        let root = self.links_root.get()?;
        let is_below = match &root.holds_all {
            Some(path) => {
                !way(path, directory).components().any(|part| part == Component::ParentDir)
            }
            None => directory.is_below(root.identity),
        };
        is_below.then(|| root.directory.as_fd())
    }

    /// Where a name lies below that.
    ///
    /// Errors: a name on the way cannot be read.
    pub(super) fn link_path(&self, directory: &Directory, name: &CStr) -> Result<Vec<u8>, Refusal> {
        let path = directory.path_below_base(name)?;
        let root = self.links_root.get().and_then(|root| root.holds_all.as_ref());
        let above = root.map(|root| way(root, directory).into_os_string().into_vec());
        Ok(match above {
            Some(above) => [above, path].join(&b'/'),
            None => path,
        })
    }

    /// Remembers a directory that the user named, and its copy.
    pub(super) fn remember_top(&self, source: &Stat, copy: &Stat) {
        lock(&self.copies).insert(identity(copy));
        lock(&self.sources).insert(identity(source));
    }

    /// Whether a directory of the source is one of those that this copy makes.
    pub(super) fn is_copy(&self, source: &Stat) -> bool {
        lock(&self.copies).contains(&identity(source))
    }

    /// Whether a directory of the target is one of those that are being copied.
    pub(super) fn is_source(&self, target: Identity) -> bool {
        lock(&self.sources).contains(&target)
    }

    /// Notes that something is written to a filesystem, if that matters.
    ///
    /// Errors: no descriptor is left with which it could be synced in the end.
    pub(super) fn will_sync(&self, directory: BorrowedFd<'_>, device: u64) -> Result<(), Errno> {
        // syncfs(2) takes no descriptor of `O_PATH`.
        self.hold(device, || rustix::fs::openat(directory, c".", DIRECTORY, Mode::empty()))
    }

    /// The same of a file.
    pub(super) fn will_sync_file(&self, file: BorrowedFd<'_>, device: u64) -> Result<(), Errno> {
        self.hold(device, || rustix::io::fcntl_dupfd_cloexec(file, 3))
    }

    fn hold(
        &self,
        device: u64,
        open: impl FnOnce() -> Result<OwnedFd, Errno>,
    ) -> Result<(), Errno> {
        if self.durability == Durability::Cached {
            return Ok(());
        }
        let mut known = lock(&self.filesystems);
        if known.get(&device).is_some_and(|held| !matches!(held, Held::Unreadable)) {
            return Ok(());
        }
        let held = match open() {
            Ok(opened) => hold(&known, opened),
            Err(Errno::ACCESS) => {
                self.some_unreadable.store(true, Ordering::Relaxed);
                Held::Unreadable
            }
            Err(errno) => return Err(errno),
        };
        known.insert(device, held);
        Ok(())
    }

    /// Has the kernel begin to write a file to storage, if the copy ends only when it is there.
    pub(super) fn begin_writing(&self, file: BorrowedFd<'_>) {
        if self.durability == Durability::Cached {
            return;
        }
        let _told_by_syncfs = flatout_sys::page_cache::begin_writeback(file, 0, 0);
        if self.some_unreadable.load(Ordering::Relaxed)
            && let Ok(facts) = rustix::fs::fstat(file)
        {
            let mut known = lock(&self.filesystems);
            // It stands for its filesystem, where no directory of it could be opened.
            if matches!(known.get(&facts.st_dev), Some(Held::Unreadable))
                && let Ok(file) = rustix::io::fcntl_dupfd_cloexec(file, 3)
            {
                let held = hold(&known, file);
                known.insert(facts.st_dev, held);
            }
        }
    }

    /// Waits until storage has everything. Calls `fail` for each filesystem that does not take it.
    pub(super) fn sync(&self, fail: impl Fn(Errno)) {
        let filesystems = lock(&self.filesystems);
        if filesystems.values().any(|held| matches!(held, Held::Unreadable)) {
            rustix::fs::sync();
        }
        for (device, held) in filesystems.iter() {
            let synced = match held {
                Held::Open(file) => rustix::fs::syncfs(file),
                Held::At(path) => opened_again(path, *device).and_then(rustix::fs::syncfs),
                Held::Unreadable => Ok(()),
            };
            if let Err(errno) = synced {
                fail(errno);
            }
        }
    }
}

/// The way from a directory to that of an operand.
fn way(above: &Path, directory: &Directory) -> PathBuf {
    let base = PathBuf::from(directory.base_above().path(Side::Target, None));
    base.strip_prefix(above).unwrap_or(&base).to_owned()
}

/// Holds what was opened on one more filesystem, or its path. Without /proc there is none.
fn hold(known: &BTreeMap<u64, Held>, opened: OwnedFd) -> Held {
    if known.values().filter(|held| matches!(held, Held::Open(_))).count() < MOST_HELD {
        return Held::Open(opened);
    }
    match file_data::path_of(&opened) {
        Some(path) => Held::At(OsString::from_vec(path).into()),
        None => Held::Open(opened),
    }
}

/// Opens what lies on this filesystem.
///
/// Errors: those of open(2); the path leads to another one by now.
fn opened_again(path: &Path, device: u64) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty())?;
    if rustix::fs::fstat(&opened)?.st_dev == device { Ok(opened) } else { Err(Errno::XDEV) }
}
