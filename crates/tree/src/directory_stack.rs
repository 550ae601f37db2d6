//! A way down a tree and up again, by descriptor: no symlink is followed, no path is put together,
//! and however deep the tree is, only the lowest directories are held open.
//!
//! A directory that was let go is opened again through `..` of its child, and must be the one it
//! was: a tree that somebody moves meanwhile is an error, not another tree.

use std::cell::{Cell, RefCell};
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use flatout_io::MAX_INTERRUPTIONS;
use rustix::fs::{CWD, FileType, Mode, OFlags, RawDir, SeekFrom};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::copy::{Identity, identity};
use crate::file_data::open_unseen;

/// Directories held open at most. Far below the usual limit of 1024 descriptors, for there may be
/// two stacks and others beside them.
pub(crate) const HELD: usize = 64;
/// Bytes that getdents64 may fill at a time; the C library's size.
const LISTING_BYTES: usize = 32 << 10;

/// How directories are opened.
pub(crate) const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The directories from the root of a tree to the one that is looked at.
#[derive(Debug)]
pub(crate) struct DirectoryStack {
    levels: Vec<Level>,
    /// Whether no access time may change, be it that of somebody else's directory.
    is_strict: bool,
    /// What listings are read into, one after the other.
    space: RefCell<Vec<u8>>,
}

#[derive(Debug)]
struct Level {
    /// `None` while it is let go.
    descriptor: Option<Arc<OwnedFd>>,
    identity: Identity,
    /// Whether somebody else may have read from the descriptor, or an earlier listing did.
    is_read: Cell<bool>,
}

impl Level {
    fn of(descriptor: OwnedFd) -> io::Result<Self> {
        let facts = rustix::fs::fstat(&descriptor)?;
        let identity = identity(&facts);
        Ok(Self { descriptor: Some(Arc::new(descriptor)), identity, is_read: Cell::new(true) })
    }
}

impl DirectoryStack {
    /// Stands at the root of a tree. A symlink that the caller names is followed. Directories of this user
    /// keep their access times.
    ///
    /// Errors: it is no directory, or cannot be opened.
    pub(crate) fn open(root: &Path) -> io::Result<Self> {
        Self::at(open_unseen(CWD, root, DIRECTORY | OFlags::NOATIME)?)
    }

    /// As [`DirectoryStack::open`], and those of other users keep theirs, too.
    ///
    /// Errors: as there; `EPERM` where a directory belongs to another user, here and further down.
    pub(crate) fn open_strictly(root: &Path) -> io::Result<Self> {
        let root = rustix::fs::open(root, DIRECTORY | OFlags::NOATIME, Mode::empty())?;
        Ok(Self { is_strict: true, ..Self::at(root)? })
    }

    /// Stands at a directory that is open.
    ///
    /// Errors: nothing is known of it.
    pub(crate) fn at(root: OwnedFd) -> io::Result<Self> {
        Ok(Self { levels: vec![Level::of(root)?], is_strict: false, space: RefCell::default() })
    }

    /// Opens a directory beside or below one that is held.
    fn opened(&self, at: BorrowedFd<'_>, name: impl Arg + Copy) -> Result<OwnedFd, Errno> {
        let flags = DIRECTORY | OFlags::NOFOLLOW | OFlags::NOATIME;
        match self.is_strict {
            true => rustix::fs::openat(at, name, flags, Mode::empty()),
            false => open_unseen(at, name, flags),
        }
    }

    /// The directory that is looked at.
    pub(crate) fn here(&self) -> BorrowedFd<'_> {
        self.lowest().as_fd()
    }

    /// The same, to be held longer than it is looked at.
    pub(crate) fn lowest(&self) -> &Arc<OwnedFd> {
        let lowest = self.levels.last().and_then(|level| level.descriptor.as_ref());
        lowest.expect("the lowest level is held, unless the way back to it was lost")
    }

    /// Lets all go but the root and the lowest: others need descriptors, too.
    pub(crate) fn let_go(&mut self) {
        let between = 1..self.levels.len().saturating_sub(1).max(1);
        self.levels[between].iter_mut().for_each(|level| level.descriptor = None);
    }

    /// Goes down into `name`.
    ///
    /// Errors: it is no directory (a symlink is none), or cannot be opened; then nothing changes.
    pub(crate) fn descend(&mut self, name: impl Arg + Copy) -> io::Result<()> {
        self.enter(self.opened(self.here(), name)?)?;
        self.levels.last().inspect(|level| level.is_read.set(false));
        Ok(())
    }

    /// Goes down into a directory of the one that is looked at, which is open already.
    ///
    /// Errors: nothing is known of it; then nothing changes.
    pub(crate) fn enter(&mut self, below: OwnedFd) -> io::Result<()> {
        self.levels.push(Level::of(below)?);
        // The root is never let go: nobody asks it for its `..`.
        let let_go = self.levels.len().saturating_sub(HELD);
        if let_go > 0 {
            self.levels[let_go].descriptor = None;
        }
        Ok(())
    }

    /// Goes up again; at the root nothing happens.
    ///
    /// Errors: the directory above is not the one that was come through; then what is looked at is not held,
    /// and nothing but to go up further is possible.
    pub(crate) fn ascend(&mut self) -> io::Result<()> {
        if self.levels.len() < 2 {
            return Ok(());
        }
        let below = self.levels.pop();
        if self.levels.last().is_none_or(|above| above.descriptor.is_some()) {
            return Ok(());
        }
        let lost = || io::Error::other("the directory was moved meanwhile");
        let below = below.and_then(|level| level.descriptor).ok_or_else(lost)?;
        let found = Level::of(self.opened(below.as_fd(), "..")?)?;
        let Some(above) = self.levels.last_mut() else { return Ok(()) };
        if found.identity != above.identity {
            return Err(lost());
        }
        *above = found;
        Ok(())
    }

    /// Calls `each` with the name, type and inode number of all entries of the directory that is looked at, in
    /// the order of the filesystem, without `.` and `..`.
    ///
    /// Errors: those of the kernel, and that of `each`, which ends it.
    pub(crate) fn entries(
        &self,
        mut each: impl FnMut(&CStr, FileType, u64) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.levels.last().is_some_and(|level| level.is_read.replace(true)) {
            rustix::fs::seek(self.here(), SeekFrom::Start(0))?;
        }
        let mut space = self.space.take();
        space.reserve(LISTING_BYTES);
        let mut listing = RawDir::new(self.here(), space.spare_capacity_mut());
        let mut tries = 0;
        while let Some(entry) = listing.next() {
            match entry {
                Ok(entry) if matches!(entry.file_name().to_bytes(), b"." | b"..") => {}
                Ok(entry) => each(entry.file_name(), entry.file_type(), entry.ino())?,
                Err(Errno::INTR) if tries < MAX_INTERRUPTIONS => tries += 1,
                Err(errno) => return Err(errno.into()),
            }
        }
        self.space.replace(space);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;

    use super::*;

    impl DirectoryStack {
        /// Directories above the one that is looked at.
        pub(crate) fn depth(&self) -> usize {
            self.levels.len() - 1
        }

        /// Directories that are held open.
        pub(crate) fn held(&self) -> usize {
            self.levels.iter().filter(|level| level.descriptor.is_some()).count()
        }
    }

    #[test]
    fn a_tree_deeper_than_a_path_may_be_long_is_climbed_with_few_descriptors() {
        let directory = tempfile::tempdir().unwrap();
        let name = CString::new("d".repeat(200)).unwrap();
        let mut stack = DirectoryStack::open(directory.path()).unwrap();
        let root = rustix::fs::fstat(stack.here()).unwrap().st_ino;
        for depth in 1..=300 {
            rustix::fs::mkdirat(stack.here(), &name, Mode::RWXU).unwrap();
            stack.descend(&name).unwrap();
            assert_eq!(stack.depth(), depth);
        }
        assert!(stack.held() <= HELD, "{}", stack.held());
        // Where others need descriptors.
        stack.let_go();
        assert_eq!(stack.held(), 2);
        while stack.depth() > 0 {
            stack.ascend().unwrap();
        }
        assert_eq!(rustix::fs::fstat(stack.here()).unwrap().st_ino, root);
        let mut names = Vec::new();
        stack
            .entries(|found, _, _| {
                names.push(found.to_owned());
                Ok(())
            })
            .unwrap();
        assert_eq!(names, [name]);
    }

    #[test]
    fn a_symlink_is_no_way_down() {
        let directory = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/", directory.path().join("out")).unwrap();
        let mut stack = DirectoryStack::open(directory.path()).unwrap();
        assert!(stack.descend(c"out").is_err());
        assert_eq!(stack.depth(), 0);
    }
}
