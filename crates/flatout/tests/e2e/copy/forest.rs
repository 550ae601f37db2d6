//! Random trees: every kind of inode that privilege allows, and every way in which one can be odd.
//!
//! A seed decides all of it. The kinds come one after the other, so that each tree has each of
//! them; where they are, what they are called and what they carry is random. Everything is made
//! in held directories, so paths may be longer than the kernel takes.

mod attribute;
mod content;
mod name;

use std::ffi::{CStr, CString};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dev, FileType, Mode, OFlags, linkat, makedev, mkdirat, mknodat};
use rustix::fs::{openat, symlinkat};
use rustix::io::Errno;

use crate::filesystem::is_root;
use crate::fixture::Random;

pub use attribute::{Acl, acl, capability};

/// Directories, each held open until the tree is done.
const DIRECTORIES: usize = 12;

/// Names of 255 bytes, one in the other: more than PATH_MAX.
const DEEP_LEVELS: usize = 18;

/// The last minor number that xfs can keep, and 511 is the last major one.
const LAST_MINOR: u32 = (1 << 18) - 1;

/// What a tree is to be like.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub seed: u64,
    /// Entries that are no directories.
    pub entries: usize,
    pub largest_hole_bytes: u64,
}

impl Plan {
    /// A small tree that has everything.
    pub fn new(seed: u64) -> Self {
        Self { seed, entries: 70, largest_hole_bytes: 1 << 40 }
    }

    /// The same without holes that nobody wants to see filled.
    pub fn with_small_holes(self) -> Self {
        Self { largest_hole_bytes: 1 << 20, ..self }
    }
}

/// What an entry can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    File,
    Sparse,
    Symlink,
    Fifo,
    Socket,
    Link,
    CharacterDevice,
    BlockDevice,
}

/// Twice as many files as anything else.
const SORTS: [Sort; 10] = [
    Sort::File,
    Sort::Symlink,
    Sort::Sparse,
    Sort::Fifo,
    Sort::Link,
    Sort::File,
    Sort::Socket,
    Sort::Link,
    Sort::CharacterDevice,
    Sort::BlockDevice,
];

struct Forest {
    random: Random,
    plan: Plan,
    /// With the parent's index and the own name; a directory comes after its parent.
    directories: Vec<(usize, CString, OwnedFd)>,
    /// Sparse files so far: no way to have holes is left to chance.
    sparse: usize,
    /// What another name can be given to: the directory's index and the name.
    linkable: Vec<(usize, CString)>,
}

/// Makes a tree at a path where nothing is yet.
pub fn plant(path: &Path, plan: Plan) {
    let (parent, name) = (path.parent().unwrap(), path.file_name().unwrap());
    let parent = openat(CWD, parent, OFlags::DIRECTORY, Mode::empty()).unwrap();
    let name = CString::new(name.as_encoded_bytes()).unwrap();
    mkdirat(&parent, &name, Mode::RWXU).unwrap();
    let root = directory(&parent, &name);
    let mut forest = Forest {
        random: Random::new(plan.seed),
        plan,
        directories: vec![(0, name, root)],
        sparse: 0,
        linkable: Vec::new(),
    };
    forest.make_directories();
    for index in 0..plan.entries {
        forest.make(SORTS[index % SORTS.len()]);
    }
    forest.finish(&parent);
}

/// Opens a directory of this name, which is no symlink.
pub fn directory(parent: impl AsFd, name: &CStr) -> OwnedFd {
    openat(parent, name, OFlags::DIRECTORY | OFlags::NOFOLLOW, Mode::empty()).unwrap()
}

impl Forest {
    fn make_directories(&mut self) {
        for index in 0..DIRECTORIES + DEEP_LEVELS {
            let deep = index.checked_sub(DIRECTORIES);
            let parent = match deep {
                Some(0) => 0,
                Some(_) => self.directories.len() - 1,
                None => self.random.below(self.directories.len()),
            };
            let name = match deep {
                Some(_) => CString::new(vec![b'd'; 255]).unwrap(),
                None => name::random(&mut self.random),
            };
            match mkdirat(&self.directories[parent].2, &name, Mode::RWXU) {
                Ok(()) => {
                    let made = directory(&self.directories[parent].2, &name);
                    self.directories.push((parent, name, made));
                }
                Err(Errno::EXIST) => {}
                Err(error) => panic!("{}: {error}", name.to_bytes().escape_ascii()),
            }
        }
    }

    fn make(&mut self, sort: Sort) {
        if matches!(sort, Sort::CharacterDevice | Sort::BlockDevice) && !is_root() {
            return;
        }
        // The deepest and the first one, which stays empty, are not left to chance.
        let place = match self.random.below(8) {
            0 => self.directories.len() - 1,
            _ => self.random.below(self.directories.len()),
        };
        let name = name::random(&mut self.random);
        if place == 1 {
            return;
        }
        match self.try_make(sort, place, &name) {
            Ok(()) => {}
            // Another one of this name is there.
            Err(Errno::EXIST) => return,
            Err(error) => panic!("{sort:?} {}: {error}", name.to_bytes().escape_ascii()),
        }
        if sort != Sort::Link {
            let place_of = self.directories[place].2.as_fd();
            attribute::finish(place_of, &name, &mut self.random);
            self.linkable.push((place, name));
        }
    }

    fn try_make(&mut self, sort: Sort, place: usize, name: &CStr) -> Result<(), Errno> {
        let random = &mut self.random;
        let directory = &self.directories[place].2;
        let node = |kind: FileType, device: Dev| {
            mknodat(directory, name, kind, Mode::RUSR | Mode::WUSR, device)
        };
        match sort {
            Sort::File | Sort::Sparse => {
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR;
                let file: File = openat(directory, name, flags, Mode::RUSR | Mode::WUSR)?.into();
                self.sparse += usize::from(sort == Sort::Sparse);
                match sort {
                    Sort::Sparse => {
                        content::sparse(&file, random, (self.sparse, self.plan.largest_hole_bytes))
                    }
                    _ => content::dense(&file, random),
                }
                Ok(())
            }
            Sort::Symlink => symlinkat(name::link_text(random), directory, name),
            Sort::Fifo => node(FileType::Fifo, 0),
            Sort::Socket => node(FileType::Socket, 0),
            Sort::CharacterDevice => {
                node(FileType::CharacterDevice, makedev(1 + random.below(511) as u32, LAST_MINOR))
            }
            Sort::BlockDevice => {
                node(FileType::BlockDevice, makedev(7, random.below(LAST_MINOR as usize) as u32))
            }
            Sort::Link => {
                if self.linkable.is_empty() {
                    return Ok(());
                }
                let (from, old) = &self.linkable[random.below(self.linkable.len())];
                linkat(&self.directories[*from].2, old, directory, name, AtFlags::empty())
            }
        }
    }

    /// Directories get their attributes after all that is in them.
    fn finish(mut self, parent: &OwnedFd) {
        while let Some((above, name, _)) = self.directories.pop() {
            let above = match self.directories.get(above) {
                Some((_, _, above)) => above.as_fd(),
                None => parent.as_fd(),
            };
            attribute::finish(above, &name, &mut self.random);
        }
    }
}

#[test]
fn a_tree_has_every_kind_and_the_seed_decides() {
    use super::oracle::{Kind, Leeway, Portrait, assert_same};
    use std::collections::BTreeSet;
    let folder = crate::bin::Folder::new();
    for (name, seed) in [("tree", 1), ("again", 1), ("other", 2)] {
        plant(&folder.join(name), Plan::new(seed));
    }
    let tree = Portrait::of(&folder.join("tree"));
    for kind in [Kind::File, Kind::Symlink, Kind::Fifo, Kind::Socket, Kind::Directory] {
        assert!(tree.count(kind) >= 3, "{kind:?}");
    }
    if is_root() {
        assert!(tree.count(Kind::CharacterDevice) >= 3 && tree.count(Kind::BlockDevice) >= 3);
    }
    let linked: BTreeSet<&str> =
        tree.groups().values().filter(|paths| paths.len() > 1).map(|_| "a").collect();
    assert!(!linked.is_empty(), "there are hard links");
    assert!(tree.entries.keys().any(|path| path.len() > 4096), "there are long paths");
    assert!(tree.entries.values().any(|entry| entry.length_bytes >= 1 << 40), "a large hole");
    let again = Portrait::of(&folder.join("again"));
    assert_same(&tree, &again, Leeway::NONE, "the same seed");
    let other = Portrait::of(&folder.join("other"));
    assert_ne!(tree.entries.keys().collect::<Vec<_>>(), other.entries.keys().collect::<Vec<_>>());
}
