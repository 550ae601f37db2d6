//! A tree in memory with all that `cp -a` keeps: links, owners, times, extended attributes.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::time::{SystemTime, UNIX_EPOCH};

use fuser::{Errno, FileAttr, FileType, INodeNo};

use super::request::Portion;

const BLOCK_BYTES: u32 = 4096;

/// Parent and name.
pub type Place = (u64, OsString);

/// An inode.
pub struct Node {
    pub kind: FileType,
    pub permissions: u16,
    pub owner: (u32, u32),
    pub device: u32,
    /// Accessed, modified, changed.
    pub times: [SystemTime; 3],
    /// Of a symlink, its text.
    pub bytes: Vec<u8>,
    pub attributes: BTreeMap<OsString, Vec<u8>>,
    pub links: u32,
}

impl Node {
    pub fn new(kind: FileType, permissions: u32) -> Self {
        Self {
            kind,
            permissions: (permissions & 0o7777) as u16,
            owner: (0, 0),
            device: 0,
            times: [SystemTime::now(); 3],
            bytes: Vec::new(),
            attributes: BTreeMap::new(),
            links: 1,
        }
    }
}

/// The tree.
pub struct Store {
    nodes: BTreeMap<u64, Node>,
    names: BTreeMap<Place, u64>,
    last_number: u64,
}

impl Store {
    /// An empty directory.
    pub fn new() -> Self {
        let number = INodeNo::ROOT.0;
        let root = Node::new(FileType::Directory, 0o755);
        Self {
            nodes: BTreeMap::from([(number, root)]),
            names: BTreeMap::new(),
            last_number: number,
        }
    }

    /// Takes all names away. Numbers are never given twice, so the kernel confuses nothing.
    pub fn clear(&mut self) {
        self.names.clear();
        self.nodes.retain(|number, _| *number == INodeNo::ROOT.0);
    }

    pub fn node(&mut self, number: u64) -> Result<&mut Node, Errno> {
        self.nodes.get_mut(&number).ok_or(Errno::ENOENT)
    }

    pub fn find(&self, place: &Place) -> Result<u64, Errno> {
        self.names.get(place).copied().ok_or(Errno::ENOENT)
    }

    pub fn facts(&self, number: u64) -> Result<FileAttr, Errno> {
        let node = self.nodes.get(&number).ok_or(Errno::ENOENT)?;
        let length = node.bytes.len() as u64;
        Ok(FileAttr {
            ino: INodeNo(number),
            size: length,
            blocks: length.div_ceil(512),
            atime: node.times[0],
            mtime: node.times[1],
            ctime: node.times[2],
            crtime: UNIX_EPOCH,
            kind: node.kind,
            perm: node.permissions,
            nlink: node.links,
            uid: node.owner.0,
            gid: node.owner.1,
            rdev: node.device,
            blksize: BLOCK_BYTES,
            flags: 0,
        })
    }

    pub fn add(&mut self, place: Place, node: Node) -> Result<FileAttr, Errno> {
        if self.names.contains_key(&place) {
            return Err(Errno::EEXIST);
        }
        self.last_number += 1;
        self.nodes.insert(self.last_number, node);
        self.touch(place.0);
        self.names.insert(place, self.last_number);
        self.facts(self.last_number)
    }

    pub fn link(&mut self, number: u64, place: Place) -> Result<FileAttr, Errno> {
        if self.names.contains_key(&place) {
            return Err(Errno::EEXIST);
        }
        self.node(number)?.links += 1;
        self.touch(place.0);
        self.names.insert(place, number);
        self.facts(number)
    }

    pub fn remove(&mut self, place: &Place) -> Result<(), Errno> {
        let number = self.find(place)?;
        if self.names.keys().any(|(parent, _)| *parent == number) {
            return Err(Errno::ENOTEMPTY);
        }
        self.names.remove(place);
        self.touch(place.0);
        let node = self.node(number)?;
        node.links -= 1;
        Ok(())
    }

    pub fn rename(&mut self, from: Place, to: Place) -> Result<(), Errno> {
        let number = self.find(&from)?;
        if self.find(&to) == Ok(number) {
            return Ok(());
        }
        if self.find(&to).is_ok() {
            self.remove(&to)?;
        }
        self.touch(from.0);
        self.touch(to.0);
        self.names.remove(&from);
        self.names.insert(to, number);
        Ok(())
    }

    /// The kernel holds an inode no longer: without a name it is gone.
    pub fn forget(&mut self, number: u64) {
        if self.nodes.get(&number).is_some_and(|node| node.links == 0) {
            self.nodes.remove(&number);
        }
    }

    pub fn read(&self, number: u64, offset: u64, size: u32) -> Result<&[u8], Errno> {
        let bytes = &self.nodes.get(&number).ok_or(Errno::ENOENT)?.bytes;
        let start = bytes.len().min(offset as usize);
        let end = bytes.len().min(start + size as usize);
        Ok(&bytes[start..end])
    }

    pub fn write(&mut self, number: u64, offset: u64, data: &[u8]) -> Result<u32, Errno> {
        let node = self.node(number)?;
        let end = offset as usize + data.len();
        if node.bytes.len() < end {
            node.bytes.resize(end, 0);
        }
        node.bytes[offset as usize..end].copy_from_slice(data);
        node.times[1] = SystemTime::now();
        node.times[2] = node.times[1];
        Ok(data.len() as u32)
    }

    /// Names in a directory, in the order of their numbers, and what they are.
    pub fn list(&self, directory: u64) -> Vec<(u64, FileType, &OsStr)> {
        let inside = self.names.iter().filter(|((parent, _), _)| *parent == directory);
        inside.map(|((_, name), &n)| (n, self.nodes[&n].kind, name.as_os_str())).collect()
    }

    fn touch(&mut self, number: u64) {
        if let Some(node) = self.nodes.get_mut(&number) {
            node.times[1] = SystemTime::now();
            node.times[2] = node.times[1];
        }
    }
}

/// A part of what was asked for, at least a byte.
pub fn part(length: usize, portion: Portion) -> usize {
    match portion {
        Portion::Whole => length,
        Portion::Part => (length / 3).max(1).min(length),
    }
}
