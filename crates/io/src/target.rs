//! A file opened for writing, and what is never written to.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use flatout_sys::filesystem;
use rustix::fs::{FileType, Mode, OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use crate::around;
use crate::error::{Error, cause_text};
use crate::fallback::Fallback;
use crate::tuning::Caching;

/// The unit of `st_blocks`, whatever the filesystem's own block is (inode(7)).
const STAT_BLOCK_BYTES: u64 = 512;

/// How a target is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TargetOptions {
    /// What to do when the file exists.
    pub existing: Existing,
    /// How the page cache takes part.
    pub caching: Caching,
    /// Request size for which direct I/O has to be possible.
    pub block_bytes: u64,
}

/// What to do when the file exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Refuse.
    Refuse,
    /// Write over it in place; it keeps its inode and its blocks.
    Overwrite,
}

/// A file opened for writing.
#[derive(Debug)]
pub struct Target {
    file: OwnedFd,
    path: PathBuf,
    caching: Caching,
    created: bool,
}

impl Target {
    /// Opens `path`; a new file gets mode 0666 less umask.
    ///
    /// Errors: `EEXIST` for an existing file unless it may be overwritten; anything but a regular
    /// file is refused always, before a byte is written.
    pub fn open(path: &Path, options: TargetOptions) -> Result<(Self, Option<Fallback>), Error> {
        let fail = || Error::system("create", path);
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOCTTY;
        let fresh = flags | OFlags::CREATE | OFlags::EXCL;
        let (file, created) = match rustix::fs::open(path, fresh, Mode::from_raw_mode(0o666)) {
            Ok(file) => (file, true),
            Err(Errno::EXIST) => (Self::open_existing(path, options.existing)?, false),
            Err(errno) => return Err(fail()(errno)),
        };
        let target = Self { file, path: path.to_owned(), caching: Caching::Buffered, created };
        Ok(match target.go_around(options) {
            Ok(()) => (Self { caching: options.caching, ..target }, None),
            Err(why) => (target, Some(around::refused(options.caching, &why, "written"))),
        })
    }

    /// Opens what is there, which must be a regular file. Nothing is truncated here.
    fn open_existing(path: &Path, existing: Existing) -> Result<OwnedFd, Error> {
        let refuse = |reason: &str| {
            let reason = reason.to_owned();
            Error::Refused { operation: "write to", path: path.to_owned(), reason }
        };
        // Looking first keeps devices from being opened at all; the descriptor is looked at again.
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        let facts = rustix::fs::stat(path).map_err(|errno| match errno {
            Errno::NOENT => refuse("it is a symlink that leads nowhere"),
            errno => Error::system("examine", path)(errno),
        })?;
        let kind_obstacle = |mode| match FileType::from_raw_mode(mode) {
            FileType::RegularFile => None,
            FileType::BlockDevice => Some("it is a block device, which flatout never writes to"),
            FileType::Directory => Some("it is a directory"),
            _ => Some("it is not a regular file"),
        };
        if let Some(reason) = kind_obstacle(facts.st_mode) {
            return Err(refuse(reason));
        }
        if existing == Existing::Refuse {
            return Err(refuse("it exists; --overwrite replaces its content"));
        }
        let file =
            rustix::fs::open(path, flags, Mode::empty()).map_err(Error::system("open", path))?;
        let facts = rustix::fs::fstat(&file).map_err(Error::system("examine", path))?;
        match kind_obstacle(facts.st_mode) {
            Some(reason) => Err(refuse(reason)),
            None => match fcntl_setfl(&file, OFlags::empty()) {
                Ok(()) => Ok(file),
                Err(errno) => Err(Error::system("open", path)(errno)),
            },
        }
    }

    /// Turns `O_DIRECT` on where it is asked for; or says why the caching cannot be had.
    fn go_around(&self, options: TargetOptions) -> Result<(), String> {
        let end_bytes = rustix::fs::fstat(&self.file).map_or(0, |facts| facts.st_size as u64);
        let lengths = (options.block_bytes, end_bytes);
        around::obstacle(self.file(), options.caching, lengths).map_or(Ok(()), Err)?;
        if options.caching != Caching::Direct {
            return Ok(());
        }
        fcntl_getfl(&self.file)
            .and_then(|flags| fcntl_setfl(&self.file, flags | OFlags::DIRECT))
            .map_err(|errno| format!("setting O_DIRECT: {}", cause_text(&errno.into())))
    }

    /// The same file with a descriptor of its own, for another lane.
    pub fn reopen(&self) -> Result<Self, Error> {
        let file = around::reopen(self.file(), self.caching, (OFlags::RDWR, &self.path))
            .or_else(|_| rustix::io::fcntl_dupfd_cloexec(&self.file, 3))
            .map_err(Error::system("open", &self.path))?;
        Ok(Self { file, path: self.path.clone(), ..*self })
    }

    /// Removes the file if this target made it and its name still means it. Called when a write
    /// did not end well.
    pub fn remove_if_created(&self) -> Result<(), Error> {
        if !self.created {
            return Ok(());
        }
        let fail = || Error::system("remove", &self.path);
        let ours = rustix::fs::fstat(&self.file).map_err(fail())?;
        let named = match rustix::fs::lstat(&self.path) {
            Ok(named) => named,
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(fail()(errno)),
        };
        if (ours.st_dev, ours.st_ino) == (named.st_dev, named.st_ino) {
            rustix::fs::unlink(&self.path).map_err(fail())?;
        }
        Ok(())
    }

    /// Makes the data of the file durable. Cost: one fdatasync.
    pub fn sync(&self) -> Result<(), Error> {
        rustix::fs::fdatasync(&self.file).map_err(Error::system("sync", &self.path))
    }

    /// Makes the file durable under its name: its directory is synced too.
    pub fn sync_name(&self) -> Result<(), Error> {
        let directory = match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fail = || Error::system("sync the directory of", &self.path);
        let directory = rustix::fs::open(directory, flags, Mode::empty()).map_err(fail())?;
        match rustix::fs::fsync(&directory) {
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(errno) => Err(fail()(errno)),
        }
    }

    /// Cuts or extends the file to a length. One that has it already is left alone: ext4 writes
    /// back on close(2) what was cut to nothing (`auto_da_alloc` in ext4(5)), even a new file, and
    /// that took as long again as the writing.
    pub fn set_length(&self, length_bytes: u64) -> Result<(), Error> {
        let facts = rustix::fs::fstat(&self.file).map_err(Error::system("examine", &self.path))?;
        if facts.st_size as u64 == length_bytes {
            return Ok(());
        }
        rustix::fs::ftruncate(&self.file, length_bytes)
            .map_err(Error::system("set the length of", &self.path))
    }

    /// The descriptor.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The descriptor alone.
    pub fn into_file(self) -> OwnedFd {
        self.file
    }

    /// The name under which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How the page cache takes part.
    pub fn caching(&self) -> Caching {
        self.caching
    }

    /// Bytes of the file that have storage already, so that writing over them needs no more.
    /// Neither holes nor blocks beyond its end count.
    pub fn owned_bytes(&self) -> Result<u64, Error> {
        let facts = rustix::fs::fstat(&self.file).map_err(Error::system("examine", &self.path))?;
        let allocated = (facts.st_blocks as u64).saturating_mul(STAT_BLOCK_BYTES);
        Ok(allocated.min(facts.st_size as u64))
    }

    /// Whether the file did not exist before.
    pub fn is_new(&self) -> bool {
        self.created
    }

    /// Bytes that an unprivileged process can still write to this filesystem; `None` if unknown.
    pub fn free_bytes(&self) -> Option<u64> {
        let told = filesystem::of(self.file.as_fd()).ok().filter(|told| told.size_bytes > 0);
        told.map(|filesystem| filesystem.free_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUFFERED: TargetOptions =
        TargetOptions { existing: Existing::Refuse, caching: Caching::Buffered, block_bytes: 4096 };

    #[test]
    fn an_existing_file_is_refused_and_untouched() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"keep").unwrap();
        let error = Target::open(file.path(), BUFFERED).unwrap_err();
        assert!(error.to_string().contains("it exists"), "{error}");
        assert_eq!(std::fs::read(file.path()).unwrap(), b"keep");
    }

    #[test]
    fn writes_may_wait_whether_the_file_is_new_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let options = TargetOptions { existing: Existing::Overwrite, ..BUFFERED };
        for is_new in [true, false] {
            let (target, _) = Target::open(&folder.path().join("file"), options).unwrap();
            assert_eq!(target.is_new(), is_new);
            let flags = fcntl_getfl(target.file()).unwrap();
            assert!(!flags.contains(OFlags::NONBLOCK), "new: {is_new}");
        }
    }

    #[test]
    fn a_hole_owns_no_bytes() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let options = TargetOptions { existing: Existing::Overwrite, ..BUFFERED };
        let owned = || Target::open(file.path(), options).unwrap().0.owned_bytes().unwrap();
        assert_eq!(owned(), 0);
        file.as_file().set_len(1 << 40).unwrap();
        assert!(owned() < 1 << 20, "{} bytes", owned());
        std::fs::write(file.path(), [1; 5000]).unwrap();
        file.as_file().sync_all().unwrap();
        assert_eq!(owned(), 5000);
    }

    #[test]
    fn devices_and_directories_are_refused_even_with_overwrite() {
        let options = TargetOptions { existing: Existing::Overwrite, ..BUFFERED };
        for path in ["/dev/null", "/tmp"] {
            assert!(matches!(Target::open(Path::new(path), options), Err(Error::Refused { .. })));
        }
    }

    #[test]
    fn only_a_file_of_our_own_making_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new");
        let (target, _) = Target::open(&path, BUFFERED).unwrap();
        std::fs::rename(&path, directory.path().join("moved")).unwrap();
        std::fs::write(&path, b"somebody else's").unwrap();
        target.remove_if_created().unwrap();
        assert!(path.exists());
        std::fs::rename(directory.path().join("moved"), &path).unwrap();
        target.remove_if_created().unwrap();
        assert!(!path.exists());
    }
}
