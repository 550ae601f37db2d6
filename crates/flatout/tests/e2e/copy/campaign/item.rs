//! The entries of a case as data, and how they are made on disk. The same items make the same tree,
//! times and absolute links included, as often as it is asked for.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, XattrFlags};
use rustix::fs::{lsetxattr, makedev, mknodat, utimensat};

use super::super::forest::{Acl, acl};
use crate::fixture::random_bytes;

/// A path inside the world of a case, without a slash at its ends.
pub type Place = Vec<u8>;

/// What a symlink says.
#[derive(Debug, Clone)]
pub enum Text {
    /// These bytes.
    Plain(Vec<u8>),
    /// The full path of a place.
    Absolute(Place),
}

#[derive(Debug, Clone)]
pub enum Sort {
    Directory,
    File {
        length: usize,
        seed: u64,
    },
    /// A hole of 32 KiB and some data behind it.
    Sparse(u64),
    Symlink(Text),
    /// One more name of what was made before.
    Link(Place),
    Fifo,
    Socket,
    /// The character device that swallows all (null(4)), so that whoever writes to it does no harm.
    Null,
    /// A block device without driver.
    Block,
}

/// What an entry carries. A hard link has what its inode has.
#[derive(Debug, Clone)]
pub struct Attributes {
    pub mode: u32,
    pub owner: (u32, u32),
    pub access: Option<[u16; 6]>,
    pub default: Option<[u16; 6]>,
    /// The name and value of an extended attribute.
    pub note: Option<(&'static str, u8)>,
    pub seconds: i64,
}

#[derive(Debug, Clone)]
pub struct Item {
    pub place: Place,
    pub sort: Sort,
    pub attributes: Attributes,
}

/// The path on disk of a place.
pub fn path_of(world: &Path, place: &[u8]) -> PathBuf {
    world.join(OsStr::from_bytes(place))
}

/// Makes everything. An item whose directory or other name is not there is left out, so that any
/// part of a case is a case.
pub fn make(world: &Path, items: &[Item]) {
    fs::create_dir(world).unwrap();
    let made: Vec<&Item> = items.iter().filter(|item| create(world, item).is_ok()).collect();
    // Directories get their times after all that is in them.
    for item in made.into_iter().rev() {
        if !matches!(item.sort, Sort::Link(_)) {
            finish(&path_of(world, &item.place), item);
        }
    }
}

fn create(world: &Path, item: &Item) -> std::io::Result<()> {
    let path = path_of(world, &item.place);
    let node = |kind: FileType, device| {
        mknodat(CWD, &path, kind, Mode::RUSR, device).map_err(std::io::Error::from)
    };
    match &item.sort {
        Sort::Directory => fs::create_dir(&path),
        Sort::File { length, seed } => {
            File::create_new(&path)?.write_all_at(&random_bytes(*length, *seed), 0)
        }
        Sort::Sparse(seed) => {
            let file = File::create_new(&path)?;
            file.set_len(40_000)?;
            file.write_all_at(&random_bytes(40_000 - 32_768, *seed), 32_768)
        }
        Sort::Symlink(Text::Plain(text)) => symlink(OsStr::from_bytes(text), &path),
        Sort::Symlink(Text::Absolute(place)) => symlink(path_of(world, place), &path),
        Sort::Link(other) => fs::hard_link(path_of(world, other), &path),
        Sort::Fifo => node(FileType::Fifo, 0),
        Sort::Socket => node(FileType::Socket, 0),
        Sort::Null => node(FileType::CharacterDevice, makedev(1, 3)),
        Sort::Block => node(FileType::BlockDevice, makedev(240, 77)),
    }
}

fn finish(path: &Path, item: &Item) {
    let Attributes { mode, owner, access, default, note, seconds } = item.attributes;
    if crate::filesystem::is_root() {
        lchown(path, Some(owner.0), Some(owner.1)).unwrap();
    }
    if !matches!(item.sort, Sort::Symlink(_)) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        if let (Some((name, value)), true) = (note, !matches!(item.sort, Sort::Fifo)) {
            set(path, name, &[value]);
        }
        for (list, permissions) in [(Acl::Access, access), (Acl::Default, default)] {
            if let Some(permissions) = permissions {
                set(path, list.attribute(), &acl(permissions));
            }
        }
    }
    let time = Timespec { tv_sec: seconds, tv_nsec: 5 };
    let times = Timestamps { last_access: time, last_modification: time };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

/// User attributes are for files and directories only, and a filesystem may have no lists.
fn set(path: &Path, name: &str, value: &[u8]) {
    let _ = lsetxattr(path, OsStr::new(name), value, XattrFlags::empty());
}

/// Removes a world, however its directories are locked.
pub fn clear(world: &Path) {
    let mut open = vec![world.to_owned()];
    while let Some(directory) = open.pop() {
        fs::set_permissions(&directory, Permissions::from_mode(0o700)).unwrap();
        for entry in fs::read_dir(&directory).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
            }
        }
    }
    fs::remove_dir_all(world).unwrap();
}
