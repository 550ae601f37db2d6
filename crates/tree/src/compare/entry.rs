//! One name in both trees: what it is, and what is known of it.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Stat};

use super::content::{COPY, Pair, SOURCE, Unread};
use super::{Kind, Walk};
use crate::copy::attributes::{Node, Place};
use crate::file_data::{self, find, kind_of};

/// Space that a copy may take beyond its source before holes count as filled: filesystems allocate
/// ahead, and in clusters.
const HOLE_TOLERANCE_BYTES: u64 = 1 << 20;
/// Of larger files, one part in this many.
const HOLE_TOLERANCE_PART: u64 = 16;

/// Attributes that belong to the place, not to the file.
const FOREIGN_ATTRIBUTES: [&[u8]; 1] = [b"security.selinux"];

impl Walk {
    /// Compares the roots themselves.
    pub(super) fn roots(&mut self) -> io::Result<()> {
        let source = rustix::fs::fstat(self.source.here())?;
        let target = rustix::fs::fstat(self.target.here())?;
        self.attributes_of_all(&source, &target);
        self.extended(c".");
        Ok(())
    }

    /// Compares what bears a name; returns whether both have a directory there.
    pub(super) fn entry(&mut self, name: &CStr) -> bool {
        let source = match find(self.source.here(), name) {
            Ok(Some(facts)) => facts,
            // It went away meanwhile: then the copy's is an extra name, and found as such.
            Ok(None) => return false,
            Err(error) => {
                self.differ(Kind::Unreadable, || format!("source: {error}"));
                return false;
            }
        };
        let kind = kind_of(source);
        let absence = match kind {
            FileType::RegularFile | FileType::Directory => Kind::Missing,
            FileType::Symlink => Kind::MissingSymlink,
            _ => Kind::MissingSpecial,
        };
        let target = match find(self.target.here(), name) {
            Ok(Some(facts)) => facts,
            Ok(None) => {
                self.differ(absence, String::new);
                return false;
            }
            Err(error) => {
                self.differ(Kind::Unreadable, || format!("copy: {error}"));
                return false;
            }
        };
        let copied = kind_of(target);
        if copied != kind {
            let broken = if absence == Kind::Missing { Kind::Type } else { absence };
            self.differ(broken, || format!("{kind:?} became {copied:?}"));
            return false;
        }
        match kind {
            FileType::RegularFile => self.file(name, &source, &target),
            FileType::Symlink => self.symlink(name),
            FileType::CharacterDevice | FileType::BlockDevice
                if source.st_rdev != target.st_rdev =>
            {
                self.differ(Kind::Device, || format!("{} {}", source.st_rdev, target.st_rdev));
            }
            _ => {}
        }
        self.attributes_of_all(&source, &target);
        self.extended(name);
        kind == FileType::Directory
    }

    fn file(&mut self, name: &CStr, source: &Stat, target: &Stat) {
        if self.asked.fidelity.has(Kind::HardLink)
            && let Some(complaint) = self.links.complaint(source, target)
        {
            self.differ(Kind::HardLink, || complaint.to_owned());
        }
        if source.st_size != target.st_size {
            let detail = || format!("{} bytes became {}", source.st_size, target.st_size);
            return self.differ(Kind::Size, detail);
        }
        let length_bytes = source.st_size as u64;
        let taken = [source, target].map(file_data::room_bytes);
        let tolerance = HOLE_TOLERANCE_BYTES.max(length_bytes / HOLE_TOLERANCE_PART);
        if taken[1] > taken[0] + tolerance {
            let detail = || format!("{} bytes on the disk became {}", taken[0], taken[1]);
            self.differ(Kind::Hole, detail);
        }
        if length_bytes == 0 || !self.asked.fidelity.has(Kind::Content) {
            return;
        }
        match self.first_difference(name, length_bytes) {
            Ok(None) => {}
            Ok(Some(offset)) => self.differ(Kind::Content, || format!("from byte {offset} on")),
            Err((whose, error)) => self.differ(Kind::Unreadable, || format!("{whose}: {error}")),
        }
    }

    fn first_difference(&mut self, name: &CStr, length_bytes: u64) -> Result<Option<u64>, Unread> {
        let source = open(self.source.here(), name).map_err(|error| (SOURCE, error))?;
        let target = open(self.target.here(), name).map_err(|error| (COPY, error))?;
        let [source, target] = [source.as_fd(), target.as_fd()];
        let sparse = [source, target].map(|file| {
            rustix::fs::fstat(file).is_ok_and(|facts| file_data::shows_its_holes(file, &facts))
        });
        let pair = Pair { source, target, length_bytes, sparse };
        let cancel = self.asked.cancel;
        self.comparer.first_difference(pair, || !cancel.is_cancelled())
    }

    fn symlink(&mut self, name: &CStr) {
        let read = |stack: &crate::directory_stack::DirectoryStack| {
            rustix::fs::readlinkat(stack.here(), name, Vec::new())
        };
        match (read(&self.source), read(&self.target)) {
            (Ok(source), Ok(target)) if source == target => {}
            (Ok(source), Ok(target)) => {
                self.differ(Kind::LinkTarget, || format!("{source:?} became {target:?}"));
            }
            (Err(errno), _) | (_, Err(errno)) => {
                self.differ(Kind::Unreadable, || errno.to_string());
            }
        }
    }

    /// Mode, owner, times.
    fn attributes_of_all(&mut self, source: &Stat, target: &Stat) {
        let kind = kind_of(source);
        let (mode_kind, time_kind) = match kind {
            FileType::Directory => (Kind::DirectoryMode, Kind::DirectoryTime),
            FileType::Symlink => (Kind::Mode, Kind::SymlinkTime),
            _ => (Kind::Mode, Kind::FileTime),
        };
        // The mode of a symlink is the kernel's.
        if kind != FileType::Symlink {
            for (kind, mask) in [(mode_kind, 0o777), (Kind::SpecialBits, 0o7000)] {
                let [from, to] = [source.st_mode & mask, target.st_mode & mask];
                if from != to {
                    self.differ(kind, || format!("{from:04o} became {to:04o}"));
                }
            }
        }
        if (source.st_uid, source.st_gid) != (target.st_uid, target.st_gid) {
            self.differ(Kind::Owner, || {
                let [from, to] = [source, target].map(|f| format!("{}:{}", f.st_uid, f.st_gid));
                format!("{from} became {to}")
            });
        }
        if source.st_mtime != target.st_mtime {
            self.differ(time_kind, || {
                format!("{} s became {} s", source.st_mtime, target.st_mtime)
            });
        } else if source.st_mtime_nsec != target.st_mtime_nsec {
            self.differ(Kind::TimeFraction, || {
                format!("{} ns became {} ns", source.st_mtime_nsec, target.st_mtime_nsec)
            });
        }
    }

    fn extended(&mut self, name: &CStr) {
        if !self.asked.fidelity.has(Kind::Attribute) {
            return;
        }
        let [source, target] =
            [&self.source, &self.target].map(|stack| attributes(stack.here(), name));
        match (source, target) {
            (Ok(source), Ok(target)) => {
                let odd = source
                    .iter()
                    .find(|one| !target.contains(one))
                    .or_else(|| target.iter().find(|one| !source.contains(one)));
                if let Some((name, _)) = odd {
                    self.differ(Kind::Attribute, || name.to_string_lossy().into_owned());
                }
            }
            (Err(error), _) | (_, Err(error)) => {
                self.differ(Kind::Unreadable, || format!("attributes: {error}"));
            }
        }
    }
}

/// Opens a file for reading, and nothing else: whatever bears the name by now.
fn open(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    let opened = file_data::open(directory, name)?;
    let facts = rustix::fs::fstat(&opened)?;
    if kind_of(facts).is_file() {
        Ok(opened)
    } else {
        Err(io::Error::other("it is no file any more"))
    }
}

/// Names and values, in the order of names.
fn attributes(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<Vec<(CString, Vec<u8>)>> {
    let node = Node::Named(Place { directory, name });
    let names = node.names()?;
    let mut found = Vec::new();
    for name in names.iter().filter(|name| !FOREIGN_ATTRIBUTES.contains(&name.to_bytes())) {
        if let Some(value) = node.value(name)? {
            found.push((name.to_owned(), value));
        }
    }
    found.sort();
    Ok(found)
}
