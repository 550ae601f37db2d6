//! A way down a tree and up again, by descriptor: no symlink is followed, no path is put together,
//! and however deep the tree is, only the lowest directories are held open.
//!
//! A directory that was let go is opened again through `..` of its child, and must be the one it
//! was: a tree that somebody moves meanwhile is an error, not another tree.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, RawDir, SeekFrom};
use rustix::io::Errno;

/// Directories held open at most. Far below the usual limit of 1024 descriptors, for there may be
/// two ladders and others beside them.
const HELD: usize = 64;
/// Bytes that getdents64 may fill at a time; the C library's size.
const LISTING_BYTES: usize = 32 << 10;

/// How directories are opened.
pub(crate) const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The directories from the root of a tree to the one that is looked at.
#[derive(Debug)]
pub struct Ladder {
    rungs: Vec<Rung>,
    /// How all directories below the root, and those on the way back, are opened.
    flags: OFlags,
}

#[derive(Debug)]
struct Rung {
    /// `None` while it is let go.
    descriptor: Option<OwnedFd>,
    device: u64,
    inode: u64,
}

impl Rung {
    fn of(descriptor: OwnedFd) -> io::Result<Self> {
        let facts = rustix::fs::fstat(&descriptor)?;
        Ok(Self { descriptor: Some(descriptor), device: facts.st_dev, inode: facts.st_ino })
    }
}

impl Ladder {
    /// Stands at the root of a tree. A symlink that the caller names is followed.
    ///
    /// Errors: it is no directory, or cannot be opened.
    pub fn open(root: &Path) -> io::Result<Self> {
        Self::at(rustix::fs::open(root, DIRECTORY, Mode::empty())?)
    }

    /// As [`Ladder::open`], and nothing that is done here changes the access time of a directory.
    ///
    /// Errors: as there; `EPERM` where a directory belongs to another user, here and further down.
    pub fn open_unseen(root: &Path) -> io::Result<Self> {
        let flags = DIRECTORY | OFlags::NOATIME;
        let root = rustix::fs::open(root, flags, Mode::empty())?;
        Ok(Self { rungs: vec![Rung::of(root)?], flags })
    }

    /// As [`Ladder::open`], but a symlink is no directory.
    ///
    /// Errors: as there.
    pub fn open_itself(root: &Path) -> io::Result<Self> {
        Self::at(rustix::fs::open(root, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?)
    }

    /// Stands at a directory that is open.
    ///
    /// Errors: nothing is known of it.
    pub fn at(root: OwnedFd) -> io::Result<Self> {
        Ok(Self { rungs: vec![Rung::of(root)?], flags: DIRECTORY })
    }

    /// The directory that is looked at.
    pub fn here(&self) -> BorrowedFd<'_> {
        let lowest = self.rungs.last().and_then(|rung| rung.descriptor.as_ref());
        lowest.expect("the lowest rung is always held").as_fd()
    }

    /// Directories above the one that is looked at.
    pub fn depth(&self) -> usize {
        self.rungs.len() - 1
    }

    /// Goes down into `name`.
    ///
    /// Errors: it is no directory (a symlink is none), or cannot be opened; then nothing changes.
    pub fn descend(&mut self, name: &CStr) -> io::Result<()> {
        let flags = self.flags | OFlags::NOFOLLOW;
        self.enter(rustix::fs::openat(self.here(), name, flags, Mode::empty())?)
    }

    /// Goes down into a directory of the one that is looked at, which is open already.
    ///
    /// Errors: nothing is known of it; then nothing changes.
    pub fn enter(&mut self, below: OwnedFd) -> io::Result<()> {
        self.rungs.push(Rung::of(below)?);
        // The root is never let go: nobody asks it for its `..`.
        let let_go = self.rungs.len().saturating_sub(HELD + 1);
        if let_go > 0 {
            self.rungs[let_go].descriptor = None;
        }
        Ok(())
    }

    /// Goes up again; at the root nothing happens.
    ///
    /// Errors: the directory above is not the one that was come through.
    pub fn ascend(&mut self) -> io::Result<()> {
        if self.rungs.len() < 2 {
            return Ok(());
        }
        let below = self.rungs.pop();
        let Some(above) = self.rungs.last_mut() else { return Ok(()) };
        if let (None, Some(descriptor)) =
            (&above.descriptor, below.and_then(|rung| rung.descriptor))
        {
            let opened = rustix::fs::openat(&descriptor, "..", self.flags, Mode::empty())?;
            let found = Rung::of(opened)?;
            if (found.device, found.inode) != (above.device, above.inode) {
                return Err(io::Error::other("the directory was moved meanwhile"));
            }
            *above = found;
        }
        Ok(())
    }

    /// Calls `each` with the name and type of all entries of the directory that is looked at, in
    /// the order of the filesystem, without `.` and `..`.
    ///
    /// Errors: those of the kernel, and that of `each`, which ends it.
    pub fn entries(
        &self,
        mut each: impl FnMut(&CStr, FileType) -> io::Result<()>,
    ) -> io::Result<()> {
        rustix::fs::seek(self.here(), SeekFrom::Start(0))?;
        let mut space = vec![MaybeUninit::uninit(); LISTING_BYTES];
        let mut listing = RawDir::new(self.here(), &mut space);
        while let Some(entry) = listing.next() {
            match entry {
                Ok(entry) if matches!(entry.file_name().to_bytes(), b"." | b"..") => {}
                Ok(entry) => each(entry.file_name(), entry.file_type())?,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;

    use super::*;

    #[test]
    fn a_tree_deeper_than_a_path_may_be_long_is_climbed_with_few_descriptors() {
        let directory = tempfile::tempdir().unwrap();
        let name = CString::new("d".repeat(200)).unwrap();
        let mut ladder = Ladder::open(directory.path()).unwrap();
        let root = rustix::fs::fstat(ladder.here()).unwrap().st_ino;
        for depth in 1..=300 {
            rustix::fs::mkdirat(ladder.here(), &name, Mode::RWXU).unwrap();
            ladder.descend(&name).unwrap();
            assert_eq!(ladder.depth(), depth);
        }
        let held = ladder.rungs.iter().filter(|rung| rung.descriptor.is_some()).count();
        assert!(held <= HELD + 1, "{held}");
        while ladder.depth() > 0 {
            ladder.ascend().unwrap();
        }
        assert_eq!(rustix::fs::fstat(ladder.here()).unwrap().st_ino, root);
        let mut names = Vec::new();
        ladder
            .entries(|found, _| {
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
        let mut ladder = Ladder::open(directory.path()).unwrap();
        assert!(ladder.descend(c"out").is_err());
        assert_eq!(ladder.depth(), 0);
    }
}
