//! The folder of a race, or of another bench that needs names, below the directory that was asked
//! for: one tenant at a time, and nothing followed out of it.
//!
//! A tenant locks its folder, so that what lies among its targets is left over from a process that
//! is gone, whatever its number means today.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use flatout_tree::remove::{remove_tree, remove_tree_at};
use rustix::fs::{AtFlags, Dir, IFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::disk::metadata::test_directory::DIRECTORY;
use crate::{Error, IoError};

/// Who has a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tenant {
    /// What the folder is called.
    pub folder: &'static str,
    /// What messages call whoever is at work there.
    pub noun: &'static str,
}

/// Races of `flatout versus`.
pub const RACE: Tenant = Tenant { folder: ".flatout-versus", noun: "race" };
/// Runs of `flatout tune`.
pub const TUNING: Tenant = Tenant { folder: ".flatout-tune", noun: "tuning run" };
/// Runs of `flatout bench copy`.
pub const COPYING: Tenant = Tenant { folder: ".flatout-copy", noun: "copying run" };

/// Where targets lie in the folder, and where corpora do.
const TARGETS: &str = "targets";
pub(crate) const CORPORA: &str = "corpora";

/// Where this process has its targets in the folder of a tenant.
pub(crate) fn own_targets(folder: &Path) -> PathBuf {
    folder.join(TARGETS).join(std::process::id().to_string())
}

/// The folder of a tenant, which no other one may use meanwhile.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
    tenant: Tenant,
    /// Locked as long as it is open.
    folder: File,
    /// Whether the filesystem has locks; without one nobody else's targets are touched.
    is_locked: bool,
}

impl Place {
    /// Makes the folder if need be, and locks it.
    ///
    /// Errors: another one runs there; the folder or one in it is a symlink; it cannot be made.
    pub fn take(directory: &Path, tenant: Tenant) -> Result<Self, Error> {
        let path = directory.join(tenant.folder);
        loop {
            match fs::create_dir(&path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(IoError::system("make the folder", &path)(error).into());
                }
                _ => {}
            }
            // It may go between the two: the race that just ended has taken it away.
            let Some(folder) = open(&path, tenant)? else { continue };
            let is_locked = lock(&folder, directory, tenant)?;
            let here = folder.metadata().map_err(IoError::system("examine", &path))?;
            let is_it = fs::symlink_metadata(&path)
                .is_ok_and(|named| (named.dev(), named.ino()) == (here.dev(), here.ino()));
            if !is_it {
                continue;
            }
            let place = Self { path: path.clone(), tenant, folder, is_locked };
            for name in [TARGETS, CORPORA] {
                place.refuse_symlink(name)?;
            }
            return Ok(place);
        }
    }

    fn refuse_symlink(&self, name: &str) -> Result<(), Error> {
        match rustix::fs::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(facts) if rustix::fs::FileType::from_raw_mode(facts.st_mode).is_symlink() => {
                Err(symlink(&self.path.join(name), self.tenant))
            }
            _ => Ok(()),
        }
    }

    /// Where this process puts what is removed in the end. Nobody has made it yet.
    pub fn targets(&self) -> PathBuf {
        own_targets(&self.path)
    }

    /// Removes the targets of runs that are gone. What cannot be removed is returned, a line each.
    ///
    /// Errors: what has the name of our own targets cannot be removed.
    pub fn remove_leftovers(&self) -> Result<Vec<String>, Error> {
        let own = std::process::id().to_string();
        let mut lines = Vec::new();
        for (name, error) in self.remove_targets(|name| self.is_locked || name == own) {
            let path = self.path.join(TARGETS).join(&name);
            let error = IoError::system("remove what an earlier run left in", &path)(error);
            if name == own {
                return Err(error.into());
            }
            lines.push(error.to_string());
        }
        Ok(lines)
    }

    /// Leaves, and leaves nothing: what was made to be read goes, too, where nobody else can be
    /// reading it.
    ///
    /// Errors: what cannot be removed.
    pub fn leave_nothing(self) -> Result<(), Error> {
        let removed = match self.is_locked {
            true => remove_entry(self.folder.as_fd(), CORPORA),
            false => Ok(()),
        };
        let path = self.path.join(CORPORA);
        self.leave()?;
        Ok(removed.map_err(IoError::system("remove", &path))?)
    }

    /// Removes the targets of this process, and the folders that are empty then; lets others in.
    ///
    /// Errors: what cannot be removed.
    pub fn leave(self) -> Result<(), Error> {
        let own = std::process::id().to_string();
        let failed = self.remove_targets(|name| name == own).pop();
        // What others left there, and corpora, stay.
        let _unread = rustix::fs::unlinkat(&self.folder, TARGETS, AtFlags::REMOVEDIR);
        let _unread = fs::remove_dir(&self.path);
        match failed {
            Some((name, error)) => {
                Err(IoError::system("remove", &self.path.join(TARGETS).join(name))(error).into())
            }
            None => Ok(()),
        }
    }

    /// Removes what is called like a process among the targets, where `is_meant` agrees.
    fn remove_targets(&self, is_meant: impl Fn(&str) -> bool) -> Vec<(String, io::Error)> {
        let targets: OwnedFd =
            match rustix::fs::openat(&self.folder, TARGETS, DIRECTORY, Mode::empty()) {
                Ok(targets) => targets,
                Err(_) => return Vec::new(),
            };
        let names = numbers_in(targets.as_fd());
        let removed = names.into_iter().filter(|name| is_meant(name)).map(|name| {
            let removed = remove_entry(targets.as_fd(), &*name);
            (name, removed)
        });
        removed.filter_map(|(name, removed)| Some((name, removed.err()?))).collect()
    }
}

/// `chattr +T`, which rustix has no name for.
const TOP_OF_TREES: IFlags = IFlags::from_bits_retain(0x2_0000);

/// Has ext4 give each directory that is made in this one a group of inodes of its own, which the name
/// picks. Without a journal it passes over what was deleted in the last minutes one by one, so files
/// beside those of an earlier run are made 10 to 40 times slower. Others refuse: nothing is lost.
pub(crate) fn spread_directories(directory: impl AsFd) {
    let flags = rustix::fs::ioctl_getflags(&directory);
    let _unread = flags.map(|flags| rustix::fs::ioctl_setflags(directory, flags | TOP_OF_TREES));
}

/// The same of a path.
pub(crate) fn spread_directories_of(path: &Path) {
    let opened = rustix::fs::open(path, DIRECTORY, Mode::empty());
    let _unread = opened.map(spread_directories);
}

/// A name that begins so and that no run gave to a directory, so that its group is another one.
pub(crate) fn unused_name(word: &str) -> String {
    format!("{word}-{:x}", flatout_sys::clock::monotonic_ns())
}

/// Takes the bytes out of all files of a tree, and leaves the files. What may not be written to keeps
/// its bytes until the tree is removed, and so does what has further names, which may be elsewhere.
///
/// Errors: the first of the kernel.
pub(crate) fn empty(root: &Path) -> io::Result<()> {
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            empty(&entry.path())?;
        } else if kind.is_file() {
            let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
            let opened = OpenOptions::new().write(true).custom_flags(flags).open(entry.path());
            match opened {
                Ok(file) if file.metadata()?.nlink() > 1 => {}
                Ok(file) => file.set_len(0)?,
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Names of digits alone: tenants call their targets so, and nothing else is touched.
fn numbers_in(targets: BorrowedFd<'_>) -> Vec<String> {
    let Ok(entries) = Dir::read_from(targets) else { return Vec::new() };
    let names =
        entries.flatten().filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
    names
        .filter(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()))
        .collect()
}

/// Removes a file, or a directory and all that is in it.
pub(crate) fn remove_entry(folder: BorrowedFd<'_>, name: impl Arg + Copy) -> io::Result<()> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(_) => remove_tree_at(folder, name),
    }
}

/// The folder, if it is there.
fn open(path: &Path, tenant: Tenant) -> Result<Option<File>, Error> {
    match rustix::fs::open(path, DIRECTORY, Mode::empty()) {
        Ok(folder) => Ok(Some(folder.into())),
        Err(Errno::NOENT) => Ok(None),
        Err(_) if path.is_symlink() => Err(symlink(path, tenant)),
        Err(errno) => Err(IoError::system("open the folder", path)(errno).into()),
    }
}

fn symlink(path: &Path, tenant: Tenant) -> Error {
    let noun = tenant.noun;
    Error::NoRoom(format!(
        "{path:?} is a symlink: {noun}s do not follow it, and remove nothing there"
    ))
}

/// Locks the folder; false where the filesystem has no locks.
fn lock(folder: &File, directory: &Path, tenant: Tenant) -> Result<bool, Error> {
    match folder.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => {
            Err(Error::NoRoom(format!("another {} runs in {directory:?}", tenant.noun)))
        }
        Err(TryLockError::Error(_)) => Ok(false),
    }
}

/// Removes everything that races left in a directory.
///
/// Errors: a race runs there; the folder is a symlink; the first thing that cannot be removed.
pub fn remove_all(directory: &Path) -> Result<(), Error> {
    let path = directory.join(RACE.folder);
    let Some(folder) = open(&path, RACE)? else { return Ok(()) };
    lock(&folder, directory, RACE)?;
    Ok(remove_tree(&path).map_err(IoError::system("remove", &path))?)
}

/// Makes sure that the tree of a user and the folder of a race have nothing in common: copies of
/// the tree would be copied with it, or corpora taken for it. What is not there is no hindrance.
///
/// Errors: [`Error::Usage`]. Paths are compared without their symlinks, and directories by device
/// and inode, so that a bind mount is seen through.
pub fn refuse_overlap(directory: &Path, tree: &Path) -> Result<(), Error> {
    let (Ok(directory), Ok(whole)) = (directory.canonicalize(), tree.canonicalize()) else {
        return Ok(());
    };
    let folder = directory.join(RACE.folder);
    let refuse = |how: &str| {
        let text = format!(
            "--tree {tree:?} {how} {folder:?}, where the race puts its files: choose another \
             --directory"
        );
        Err(Error::Usage(text))
    };
    if is_within(&folder, &whole) {
        return refuse("contains");
    }
    if is_within(&whole, &folder) { refuse("lies in") } else { Ok(()) }
}

/// Whether a path is `above`, or lies below it.
fn is_within(path: &Path, above: &Path) -> bool {
    let itself = |path: &Path| fs::metadata(path).map(|facts| (facts.dev(), facts.ino())).ok();
    let wanted = itself(above);
    path.ancestors().any(|path| wanted.is_some() && itself(path) == wanted)
}

#[cfg(test)]
mod tests;
