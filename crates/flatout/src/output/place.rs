//! Where a file of our own goes, beside data that is not ours: looked up once, held by directory and
//! name, and written under a name of its own until it takes the place of what is there. So other
//! names of an existing file keep what they hold.
//!
//! A symlink at the end of the path is followed and stays. Devices, pipes, and what `/dev/stderr` or
//! `/dev/fd/3` stand for, are written in place, and never cut off.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use flatout_io::{cause_text, quote};
use flatout_sys::{descriptor, standard};
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, Stat, Uid};
use rustix::io::Errno;

use super::cannot;

/// Symlinks that are followed one after the other at most, as the kernel does.
const MOST_LINKS: usize = 40;
/// Tells the names of files that are not complete yet from each other.
static PARTS: AtomicU32 = AtomicU32::new(0);

/// A place for a file.
pub struct Place {
    /// As the user wrote it.
    path: PathBuf,
    way: Way,
    /// What is there now.
    found: Option<Stat>,
}

enum Way {
    /// Standard output.
    Standard,
    /// A device, a pipe, or a file that is open already.
    Through(PathBuf),
    /// A name in a directory.
    Named { directory: OwnedFd, name: OsString },
}

/// Tells a file from all others.
pub type Identity = (u64, u64);

/// What tells this file from all others.
pub fn identity(facts: &Stat) -> Identity {
    (facts.st_dev, facts.st_ino)
}

impl Place {
    /// Looks the place up. Nothing is made or opened for writing.
    ///
    /// Errors: no file can be there; the text says why.
    pub fn find(path: &Path) -> Result<Self, String> {
        let fail = |error| cannot(format_args!("write {path:?}"))(error);
        let (way, found) = look(path).map_err(fail)?;
        let kind = found.as_ref().map(|facts| FileType::from_raw_mode(facts.st_mode));
        match kind {
            Some(FileType::Directory) => Err(fail(Errno::ISDIR.into())),
            Some(FileType::BlockDevice) => {
                let reason = "it is a block device, which flatout never writes to";
                Err(format!("cannot write {path:?}: {reason}"))
            }
            _ => Ok(Self { path: path.to_owned(), way, found }),
        }
    }

    /// Standard output, whatever that is.
    pub fn standard_output() -> Self {
        let found = standard::output().and_then(|out| Ok(rustix::fs::fstat(out)?));
        Self { path: "-".into(), way: Way::Standard, found: found.ok() }
    }

    /// What messages call it.
    pub fn shown(&self) -> String {
        match &self.way {
            Way::Standard => "standard output".to_owned(),
            _ => quote(&self.path),
        }
    }

    /// The directory and the name in it, of a file that has them.
    pub fn named(&self) -> Option<(&OwnedFd, &OsStr)> {
        match &self.way {
            Way::Standard | Way::Through(_) => None,
            Way::Named { directory, name } => Some((directory, name)),
        }
    }

    /// The regular file that was there, opened without any right to it.
    pub fn existing(&self) -> Option<(Identity, OwnedFd)> {
        let facts = self.found.filter(|facts| FileType::from_raw_mode(facts.st_mode).is_file())?;
        Some((identity(&facts), self.itself().ok()?))
    }

    /// What is there, opened without any right to it.
    fn itself(&self) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        match &self.way {
            Way::Standard => rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3),
            Way::Through(path) => rustix::fs::open(path, flags, Mode::empty()),
            Way::Named { directory, name } => {
                rustix::fs::openat(directory, name, flags | OFlags::NOFOLLOW, Mode::empty())
            }
        }
    }

    /// Whether both are one file, or would be.
    pub fn is_same(&self, other: &Self) -> bool {
        if let (Some(one), Some(other)) = (&self.found, &other.found)
            && identity(one) == identity(other)
        {
            return true;
        }
        let name = |place: &Self| {
            let (directory, name) = place.named()?;
            Some((identity(&rustix::fs::fstat(directory).ok()?), name.to_owned()))
        };
        name(self).is_some_and(|one| Some(one) == name(other))
    }

    /// Whether a device, a pipe or the like is there.
    pub fn is_special(&self) -> bool {
        self.found.is_some_and(|facts| !FileType::from_raw_mode(facts.st_mode).is_file())
    }

    /// Refuses a place that cannot be written.
    pub fn check(&self) -> Result<(), String> {
        let directory = match &self.way {
            Way::Standard => {
                let open = standard::output();
                return open.map(drop).map_err(|error| self.failure(&error));
            }
            Way::Through(_) => return Ok(()),
            Way::Named { directory, .. } => directory,
        };
        match self.part(directory) {
            Ok((_, part)) => rustix::fs::unlinkat(directory, &part, AtFlags::empty()),
            Err(errno) if self.is_written_in_place(errno) => Ok(()),
            Err(errno) => Err(errno),
        }
        .map_err(|errno| self.failure(&errno.into()))
    }

    /// Puts an empty file there, to be written and read from now on. What was there is gone,
    /// except where it is no regular file.
    pub fn open(&self) -> Result<File, String> {
        self.opened().map_err(|error| self.failure(&error))
    }

    /// Puts a file there that holds `bytes`; nobody sees half of it.
    pub fn write(&self, bytes: &[u8]) -> Result<(), String> {
        let written = || {
            let part = self.named().and_then(|(directory, _)| self.part(directory).ok());
            let Some((mut file, part)) = part else { return self.opened()?.write_all(bytes) };
            let written = file.write_all(bytes).and_then(|()| self.complete(file, Some(&part)));
            if written.is_err() {
                self.abandon(&part);
            }
            match written.as_ref().map_err(Errno::from_io_error) {
                Err(Some(errno)) if self.is_written_in_place(errno) => {
                    self.opened()?.write_all(bytes)
                }
                _ => written,
            }
        };
        match written() {
            // Whoever closed the pipe has seen enough, as of standard output.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written.map_err(|error| self.failure(&error)),
        }
    }

    /// Waits until the file that is there is on storage, with its name.
    pub fn sync(&self) -> Result<(), String> {
        let Way::Named { directory, name } = &self.way else { return Ok(()) };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(directory, name, flags, Mode::empty());
        opened.and_then(rustix::fs::syncfs).map_err(|errno| self.failure(&errno.into()))
    }

    /// A file for what comes piece by piece; with a name, it is nobody's until [`Place::complete`].
    pub fn begin(&self) -> Result<(File, Option<OsString>), String> {
        let Some((directory, _)) = self.named() else { return Ok((self.open()?, None)) };
        let begun = self.part(directory).map_err(|errno| self.failure(&errno.into()));
        begun.map(|(file, part)| (file, Some(part)))
    }

    /// Hears what the filesystem says to what was begun, and gives it its place. What takes that of another file is on
    /// storage then: after a power cut xfs may have the name alone.
    pub fn complete(&self, file: File, part: Option<&OsStr>) -> io::Result<()> {
        if part.and(self.found).is_some() {
            file.sync_data()?;
        }
        descriptor::close(file.into())?;
        part.map_or(Ok(()), |part| Ok(self.rename(part)?))
    }

    /// Leaves what was there as it was.
    pub fn abandon(&self, part: &OsStr) {
        if let Way::Named { directory, .. } = &self.way {
            // It is ours alone; what cannot be removed does no harm.
            let _stays = rustix::fs::unlinkat(directory, part, AtFlags::empty());
        }
    }

    /// Takes away what [`Place::open`] has made where there was nothing.
    pub fn withdraw(&self) {
        if let (Way::Named { directory, name }, None) = (&self.way, &self.found) {
            // It is empty: what cannot be removed does no harm.
            let _stays = rustix::fs::unlinkat(directory, name, AtFlags::empty());
        }
    }

    /// Why it cannot be written.
    pub fn failure(&self, error: &io::Error) -> String {
        match &self.way {
            Way::Standard => format!("cannot write to {}: {}", self.shown(), cause_text(error)),
            _ => format!("cannot write {:?}: {}", self.path, cause_text(error)),
        }
    }

    fn opened(&self) -> io::Result<File> {
        let directory = match &self.way {
            Way::Standard => return standard(),
            Way::Through(path) => return self.through(path),
            Way::Named { directory, .. } => directory,
        };
        let made = self.part(directory).and_then(|(file, part)| {
            self.rename(&part).map(|()| file).inspect_err(|_| self.abandon(&part))
        });
        match made {
            Err(errno) if self.is_written_in_place(errno) => self.cut(),
            made => Ok(made?),
        }
    }

    /// A new file under a name that nobody else has, with the mode and owner of what it replaces.
    fn part(&self, directory: &OwnedFd) -> Result<(File, OsString), Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = if self.found.is_some() { 0o600 } else { 0o666 };
        let (file, part) = loop {
            let number = PARTS.fetch_add(1, Ordering::Relaxed);
            let part = OsString::from(format!(".flatout-{}-{number}.part", std::process::id()));
            let mode = Mode::from_raw_mode(mode);
            match rustix::fs::openat(directory, &part, flags | OFlags::CLOEXEC, mode) {
                Err(Errno::EXIST) => {}
                made => break (made?, part),
            }
        };
        if let Some(facts) = &self.found {
            let (user, group) = (Uid::from_raw(facts.st_uid), Gid::from_raw(facts.st_gid));
            // What others could read of the old file, they read of a file of theirs.
            let kept = rustix::fs::fchown(&file, Some(user), Some(group));
            // The group bits of a file with a list are its mask: without the list they are its owner's.
            let is_plain = kept.is_ok() && !self.has_list();
            let mode = facts.st_mode & if is_plain { 0o777 } else { 0o600 };
            // A filesystem without modes has none to keep.
            let _private = rustix::fs::fchmod(&file, Mode::from_raw_mode(mode));
        }
        Ok((file.into(), part))
    }

    /// Whether an access control list says who may use what is there; not known is yes.
    fn has_list(&self) -> bool {
        let Ok(found) = self.itself() else { return true };
        let itself = descriptor::itself(&found);
        let list = rustix::fs::getxattr(itself, "system.posix_acl_access", &mut [0_u8; 0][..]);
        !matches!(list, Err(Errno::NODATA | Errno::OPNOTSUPP))
    }

    fn rename(&self, part: &OsStr) -> Result<(), Errno> {
        let Way::Named { directory, name } = &self.way else { return Ok(()) };
        if self.found.is_none() {
            let flags = RenameFlags::NOREPLACE;
            match rustix::fs::renameat_with(directory, part, directory, name, flags) {
                // Not every filesystem knows how.
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
                done => return done,
            }
        }
        rustix::fs::renameat(directory, part, directory, name)
    }

    /// Whether an existing file is cut off and rewritten, because it cannot be replaced: it is a
    /// mount point, or its directory takes no names. Never one that has other names.
    fn is_written_in_place(&self, errno: Errno) -> bool {
        let is_refused =
            matches!(errno, Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::BUSY | Errno::XDEV);
        is_refused && self.found.is_some_and(|facts| facts.st_nlink == 1)
    }

    fn cut(&self) -> io::Result<File> {
        let Way::Named { directory, name } = &self.way else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(directory, name, flags, Mode::empty())?;
        let facts = rustix::fs::fstat(&file)?;
        if self.found.is_none_or(|found| identity(&found) != identity(&facts))
            || !FileType::from_raw_mode(facts.st_mode).is_file()
            || facts.st_nlink != 1
        {
            return Err(io::Error::other("it was replaced meanwhile"));
        }
        rustix::fs::ftruncate(&file, 0)?;
        Ok(file.into())
    }

    fn through(&self, path: &Path) -> io::Result<File> {
        let standard = match path.to_str() {
            Some("/proc/self/fd/1") => Some(standard()),
            Some("/proc/self/fd/2") => {
                Some(io::stderr().as_fd().try_clone_to_owned().map(File::from))
            }
            _ => None,
        };
        let file = match standard {
            // With the same position, so that neither writes over the other.
            Some(copy) => copy?,
            // Not that of `File`, which a signal does not end: nobody may ever read a pipe.
            None => {
                let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC;
                rustix::fs::open(path, flags, Mode::empty())?.into()
            }
        };
        let facts = rustix::fs::fstat(&file)?;
        if self.found.is_some_and(|found| identity(&found) != identity(&facts)) {
            return Err(io::Error::other("it was replaced meanwhile"));
        }
        Ok(file)
    }
}

/// Standard output under another number, which can be closed.
fn standard() -> io::Result<File> {
    standard::output()?.as_fd().try_clone_to_owned().map(File::from)
}

/// Follows the symlinks at the end of a path to the place where a file would be made.
fn look(path: &Path) -> io::Result<(Way, Option<Stat>)> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let above = match path.parent() {
            Some(above) if !above.as_os_str().is_empty() => above,
            _ => Path::new("."),
        };
        let Some(name) = path.file_name().filter(|_| !ends_in_directory(&path)) else {
            let is_empty = path.as_os_str().is_empty();
            return Err(if is_empty { Errno::NOENT } else { Errno::ISDIR }.into());
        };
        let directory = rustix::fs::open(above, flags, Mode::empty())?;
        let facts = match rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(facts) => facts,
            Err(Errno::NOENT) => {
                return Ok((Way::Named { directory, name: name.to_owned() }, None));
            }
            Err(errno) => return Err(errno.into()),
        };
        match FileType::from_raw_mode(facts.st_mode) {
            FileType::Symlink => {
                // Its links in `fd` lead to open files and not to names.
                if flatout_sys::filesystem::of(directory.as_fd())?.name == "proc" {
                    let facts = rustix::fs::stat(&path)?;
                    return Ok((Way::Through(path), Some(facts)));
                }
                let text = rustix::fs::readlinkat(&directory, name, Vec::new())?;
                let text: &OsStr = std::os::unix::ffi::OsStrExt::from_bytes(text.as_bytes());
                path = above.join(text);
            }
            FileType::RegularFile | FileType::Directory => {
                return Ok((Way::Named { directory, name: name.to_owned() }, Some(facts)));
            }
            _ => return Ok((Way::Through(path), Some(facts))),
        }
    }
    Err(Errno::LOOP.into())
}

/// Whether a slash or a dot ends the path, so that it means a directory whatever it names.
fn ends_in_directory(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes.ends_with(b"/") || bytes.ends_with(b"/.") || bytes == b"."
}
