//! A set of files: how they are named, spread over directories and shared out among threads.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use flatout_measure::SplitMix64;
use rustix::fs::Mode;
use rustix::io::Errno;

use super::row::Directories;
use super::test_directory::{self, DIRECTORY, TestDirectory, c_string};
use crate::place;

/// What a file is called at present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    /// There is no such file.
    Absent,
    /// `file-000123`.
    First,
    /// `moved-000123`.
    Moved,
}

/// A set of files below a directory of its own.
pub(super) struct FileSet {
    own: OwnedFd,
    pub(super) path: PathBuf,
    pub(super) directories: u32,
    pub(super) spread: Directories,
    /// What each file is called; by its number.
    pub(super) files: Vec<Name>,
}

/// One file as a thread sees it.
pub(super) struct Item {
    pub(super) number: u32,
    /// Place of its directory in [`Share::directories`].
    pub(super) slot: usize,
    pub(super) name: CString,
    /// The name that it takes when it is renamed.
    pub(super) new_name: CString,
}

/// The part of a set that one thread works on.
pub(super) struct Share {
    pub(super) directories: Vec<OwnedFd>,
    /// Files in each of them, those of other threads included.
    pub(super) entries: Vec<u64>,
    pub(super) items: Vec<Item>,
}

impl FileSet {
    /// Makes the directories of a set; files come later.
    pub(super) fn make(
        place: &TestDirectory,
        files: u32,
        directories: u32,
        spread: Directories,
    ) -> Result<Self, Errno> {
        let text = place::unused_name("set");
        let path = place.path().join(&text);
        let own = test_directory::make_directory(place.descriptor(), &c_string(text))?;
        for index in 0..directories {
            test_directory::make_directory(own.as_fd(), &directory_name(index))?;
        }
        Ok(Self { own, path, directories, spread, files: vec![Name::Absent; files as usize] })
    }

    /// Opens thread `thread`'s part of the files that `wanted` picks.
    ///
    /// In one directory all threads take turns at its files; of many, each has its own. They come
    /// by number, as an unpacked archive would, or in the order of a seed.
    pub(super) fn share(
        &self,
        thread: u32,
        threads: u32,
        order_seed: Option<u64>,
        wanted: impl Fn(Name) -> bool,
    ) -> Result<Share, Errno> {
        let step = if self.spread == Directories::One { 1 } else { threads };
        let first = if self.spread == Directories::One { 0 } else { thread };
        let directories = (first..self.directories)
            .step_by(step as usize)
            .map(|index| {
                rustix::fs::openat(&self.own, directory_name(index), DIRECTORY, Mode::empty())
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut entries = vec![0; directories.len()];
        let mut items = Vec::new();
        for (number, &name) in (0_u32..).zip(&self.files) {
            let directory = number % self.directories;
            let turn = if self.spread == Directories::One { number } else { directory };
            let slot = (directory / step) as usize;
            if directory % step == first && name != Name::Absent {
                entries[slot] += 1;
            }
            if turn % threads == thread && wanted(name) {
                let (first, moved) = (file_name("file", number), file_name("moved", number));
                let (name, new_name) =
                    if name == Name::Moved { (moved, first) } else { (first, moved) };
                items.push(Item { number, slot, name, new_name });
            }
        }
        if let Some(seed) = order_seed {
            SplitMix64::new(seed.wrapping_add(u64::from(thread))).shuffle(&mut items);
        }
        Ok(Share { directories, entries, items })
    }

    /// Where a file lies, for messages.
    pub(super) fn path_of(&self, item: &Item) -> PathBuf {
        let directory = directory_name(item.number % self.directories);
        let name = |name: &CStr| name.to_string_lossy().into_owned();
        self.path.join(name(&directory)).join(name(&item.name))
    }

    /// The first directory, where an fsync brings the journal up to date.
    pub(super) fn first_directory(&self) -> Result<OwnedFd, Errno> {
        rustix::fs::openat(&self.own, directory_name(0), DIRECTORY, Mode::empty())
    }
}

impl Share {
    pub(super) fn directory(&self, item: &Item) -> BorrowedFd<'_> {
        self.directories[item.slot].as_fd()
    }
}

/// `d-003`.
fn directory_name(index: u32) -> CString {
    c_string(format!("d-{index:03}"))
}

/// `file-000123`: as long as names of photographs and objects usually are.
fn file_name(word: &str, number: u32) -> CString {
    c_string(format!("{word}-{number:06}"))
}
