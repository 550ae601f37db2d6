//! What a tree is, seen with the kernel's calls alone, and how two trees differ.
//!
//! It shares no code with the copier: its own walk, its own reading of holes, links and
//! attributes. It changes nothing that it looks at, not even an access time (symlinks apart).

mod control;
mod difference;
mod holes;
mod walk;

use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr};
use std::fs::{File, Metadata, OpenOptions};
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, OFlags, fadvise, lgetxattr, llistxattr, statfs};

pub use difference::{Aspect, Difference, Holes, Leeway, assert_same, differences};
pub use holes::digest_of;

/// The longest list or value of extended attributes (xattr(7)).
const LONGEST_ATTRIBUTE_BYTES: usize = 64 << 10;

/// Files below this length are looked at as they are. A longer one is written out and dropped from
/// the page cache before, because filesystems decide only then where it has holes, and xfs shows
/// what it has reserved as data while that is cached.
const WRITTEN_OUT_FROM_BYTES: u64 = 64 << 10;

/// The kind of an entry, as the kernel numbers it (inode(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Directory,
    File,
    Symlink,
    Fifo,
    Socket,
    CharacterDevice,
    BlockDevice,
}

/// One entry of a tree.
#[derive(Debug, Clone)]
pub struct Entry {
    pub kind: Kind,
    /// Permissions, set-id and sticky bits.
    pub mode: u32,
    pub owner: (u32, u32),
    pub length_bytes: u64,
    pub allocated_bytes: u64,
    pub modified: (i64, i64),
    pub accessed: (i64, i64),
    /// Names that the inode has, in and outside of the tree.
    pub names: u64,
    /// Device and inode.
    pub identity: (u64, u64),
    /// What a device node stands for.
    pub device: u64,
    /// Extended attributes, ACLs and capabilities among them.
    pub attributes: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Where a symlink points.
    pub text: Vec<u8>,
    /// Of a regular file: a digest of everything but holes and zeros.
    pub digest: u64,
    /// Of a regular file: where there is data.
    pub data: Vec<Range<u64>>,
}

/// Everything that can be seen of a tree; the path of its uppermost entry is empty.
#[derive(Debug, Clone)]
pub struct Portrait {
    pub entries: BTreeMap<Vec<u8>, Entry>,
}

impl Portrait {
    /// Looks at a tree, a file or anything else; a symlink is not followed.
    pub fn of(path: &Path) -> Self {
        let mut entries = BTreeMap::new();
        walk::walk(path, |path, directory, name| {
            let entry = Entry::of(&within(directory, name))
                .unwrap_or_else(|error| panic!("{}: {error}", path.escape_ascii()));
            let is_directory = entry.kind == Kind::Directory;
            entries.insert(path.to_vec(), entry);
            is_directory
        });
        Self { entries }
    }

    /// The entry of this path.
    #[track_caller]
    pub fn entry(&self, path: &str) -> &Entry {
        self.entries.get(path.as_bytes()).unwrap_or_else(|| panic!("no {path:?} in {self:#?}"))
    }

    /// How many entries are of this kind.
    pub fn count(&self, kind: Kind) -> usize {
        self.entries.values().filter(|entry| entry.kind == kind).count()
    }

    /// For each inode, the paths that are its names; the first one stands for all.
    pub fn groups(&self) -> BTreeMap<(u64, u64), Vec<&[u8]>> {
        let mut groups: BTreeMap<_, Vec<&[u8]>> = BTreeMap::new();
        for (path, entry) in &self.entries {
            groups.entry(entry.identity).or_default().push(path);
        }
        groups
    }
}

/// A path to a name in a held directory, whatever the length of the way there.
pub fn within(directory: BorrowedFd<'_>, name: &CStr) -> PathBuf {
    let held = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
    held.join(OsStr::from_bytes(name.to_bytes()))
}

impl Entry {
    fn of(path: &Path) -> std::io::Result<Self> {
        let mut facts = path.symlink_metadata()?;
        let kind = kind(&facts);
        let mut file = None;
        if kind == Kind::File {
            let opened = open(path, OFlags::NONBLOCK)?;
            let is_doubtful = facts.blocks() * 512 < facts.len() || is_on_xfs(path);
            let is_long = facts.len() >= WRITTEN_OUT_FROM_BYTES;
            if is_long && is_doubtful && opened.sync_all().is_ok() {
                let _ = fadvise(&opened, 0, None, Advice::DontNeed);
                facts = path.symlink_metadata()?;
            }
            file = Some(opened);
        }
        let data = file.as_ref().map_or(Vec::new(), |file| holes::data_of(file, facts.len()));
        let digest = match &file {
            Some(file) => digest_of(file, &data)?,
            None => 0,
        };
        let text = match kind {
            Kind::Symlink => std::fs::read_link(path)?.into_os_string().into_encoded_bytes(),
            _ => Vec::new(),
        };
        let is_device = matches!(kind, Kind::CharacterDevice | Kind::BlockDevice);
        Ok(Self {
            kind,
            mode: facts.mode() & 0o7777,
            owner: (facts.uid(), facts.gid()),
            length_bytes: facts.len(),
            allocated_bytes: facts.blocks() * 512,
            modified: (facts.mtime(), facts.mtime_nsec()),
            accessed: (facts.atime(), facts.atime_nsec()),
            names: facts.nlink(),
            identity: (facts.dev(), facts.ino()),
            device: if is_device { facts.rdev() } else { 0 },
            attributes: attributes(path)?,
            text,
            digest,
            data,
        })
    }
}

/// Opens without changing the access time, where the kernel allows that.
fn open(path: &Path, flags: OFlags) -> std::io::Result<File> {
    let with = |flags: OFlags| {
        let flags = (flags | OFlags::NOFOLLOW).bits().cast_signed();
        OpenOptions::new().read(true).custom_flags(flags).open(path)
    };
    with(flags | OFlags::NOATIME).or_else(|_| with(flags))
}

fn kind(facts: &Metadata) -> Kind {
    match facts.mode() & 0o170_000 {
        0o040_000 => Kind::Directory,
        0o100_000 => Kind::File,
        0o120_000 => Kind::Symlink,
        0o010_000 => Kind::Fifo,
        0o140_000 => Kind::Socket,
        0o020_000 => Kind::CharacterDevice,
        0o060_000 => Kind::BlockDevice,
        other => panic!("an inode of kind {other:o}"),
    }
}

/// What xfs calls its ACLs when somebody with privilege asks for all names; it is no attribute of
/// its own, and must not become one elsewhere.
const SECOND_NAMES_OF_XFS: &[u8] = b"trusted.SGI_ACL_";
const XFS: i64 = 0x5846_5342;

fn is_on_xfs(path: &Path) -> bool {
    statfs(path.parent().unwrap()).is_ok_and(|facts| facts.f_type == XFS)
}

/// All extended attributes of an entry, a symlink's own too; none where there are none at all.
fn attributes(path: &Path) -> std::io::Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    let mut buffer = vec![0; LONGEST_ATTRIBUTE_BYTES];
    let length = match llistxattr(path, &mut buffer[..]) {
        Err(rustix::io::Errno::OPNOTSUPP) => 0,
        answer => answer?,
    };
    let names = buffer[..length].split(|&byte| byte == 0).filter(|name| !name.is_empty());
    let names = names.filter(|name| !(name.starts_with(SECOND_NAMES_OF_XFS) && is_on_xfs(path)));
    let names: Vec<Vec<u8>> = names.map(<[u8]>::to_vec).collect();
    let value = |name: Vec<u8>| {
        let length = lgetxattr(path, OsStr::from_bytes(&name), &mut buffer[..])?;
        Ok((name, buffer[..length].to_vec()))
    };
    names.into_iter().map(value).collect()
}
