//! A tree in memory, what is wrong with it, and what has gone through.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::time::{Duration, UNIX_EPOCH};

use fuser::{Errno, FileAttr, FileType, FopenFlags, INodeNo};

use super::Faults;
use super::folding::{Place, plain};
use super::passage::{Passage, Stretch};

pub(super) const BLOCK_BYTES: u32 = 4096;

pub(super) struct Node {
    pub(super) kind: FileType,
    pub(super) permissions: u16,
    pub(super) bytes: Vec<u8>,
    /// Whether it has a name; without one it lives until the kernel forgets it.
    pub(super) is_named: bool,
}

/// The tree, what is wrong with it, and what has gone through.
pub struct State {
    pub faults: Faults,
    pub passage: Passage,
    pub(super) nodes: BTreeMap<u64, Node>,
    /// Parent and name to the number of a node.
    pub(super) names: BTreeMap<Place, u64>,
    last_number: u64,
}

impl State {
    /// An empty directory.
    pub fn new(faults: Faults) -> Self {
        let root = Node {
            kind: FileType::Directory,
            permissions: 0o755,
            bytes: Vec::new(),
            is_named: true,
        };
        let number = INodeNo::ROOT.0;
        Self {
            faults,
            passage: Passage::new(),
            nodes: BTreeMap::from([(number, root)]),
            names: BTreeMap::new(),
            last_number: number,
        }
    }

    pub(super) fn add(&mut self, place: (u64, OsString), kind: FileType, permissions: u16) -> u64 {
        self.last_number += 1;
        let node = Node { kind, permissions, bytes: Vec::new(), is_named: true };
        self.nodes.insert(self.last_number, node);
        self.names.insert(place, self.last_number);
        self.last_number
    }

    pub(super) fn create(
        &mut self,
        place: (u64, OsString),
        kind: FileType,
        mode: u32,
    ) -> Result<u64, Errno> {
        if !self.faults.can_create {
            return Err(Errno::EROFS);
        }
        if self.faults.cuts && place.1.as_encoded_bytes().starts_with(b".") {
            return Err(Errno::EINVAL);
        }
        let meant = self.meant(place.clone());
        if self.names.contains_key(&meant) {
            return Err(Errno::EEXIST);
        }
        let place = if self.faults.cuts { meant } else { place };
        Ok(self.add(place, kind, (mode & 0o7777) as u16))
    }

    pub(super) fn remove(&mut self, place: Place) -> Result<(), Errno> {
        let place = self.meant(place);
        let number = self.names.get(&place).copied().ok_or(Errno::ENOENT)?;
        if self.names.keys().any(|(parent, _)| *parent == number) {
            return Err(Errno::ENOTEMPTY);
        }
        self.names.remove(&place);
        self.nodes.get_mut(&number).unwrap().is_named = false;
        Ok(())
    }

    /// Shuts the file of the uppermost directory to which a symlink leads, and says whether there is none.
    pub(super) fn finds_none_to_shut(&mut self, number: u64) -> bool {
        let node = &self.nodes[&plain(number)];
        if node.kind != FileType::Symlink {
            return false;
        }
        let place = (INodeNo::ROOT.0, OsString::from_vec(node.bytes.clone()));
        let file = self.number(place).ok().and_then(|number| self.nodes.get_mut(&plain(number)));
        file.map(|file| file.permissions = 0).is_none()
    }

    pub(super) fn attributes(&self, number: u64) -> Result<FileAttr, Errno> {
        let node = self.nodes.get(&plain(number)).ok_or(Errno::ENOENT)?;
        let length = node.bytes.len() as u64;
        let is_other = self.faults.asks_by_name && !node.is_named;
        let changed = self.faults.changed + Duration::from_secs(is_other.into());
        let is_data = |block: &&[u8]| !self.faults.has_holes || block.iter().any(|&b| b != 0);
        Ok(FileAttr {
            ino: INodeNo(number),
            size: length.min(self.faults.told_bytes) + self.faults.added_bytes,
            blocks: node.bytes.chunks(512).filter(is_data).count() as u64,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH + changed,
            ctime: UNIX_EPOCH + self.faults.changed + Duration::from_secs(plain(number)),
            crtime: UNIX_EPOCH,
            kind: node.kind,
            perm: node.permissions,
            nlink: self.faults.names.unwrap_or(u32::from(node.is_named)),
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: BLOCK_BYTES,
            flags: 0,
        })
    }

    pub(super) fn read(&mut self, number: u64, offset: u64, size: u32) -> Result<&[u8], Errno> {
        let node = self.nodes.get(&plain(number)).ok_or(Errno::ENOENT)?;
        let start = node.bytes.len().min(offset as usize);
        let size = self.faults.answer_bytes.min(size as usize);
        let end = node.bytes.len().min(start + size);
        let stretch = Stretch { node: number, offset, length: (end - start) as u64 };
        self.passage.read(&self.faults, stretch)?;
        Ok(&node.bytes[start..end])
    }

    pub(super) fn write(&mut self, number: u64, offset: u64, data: &[u8]) -> Result<u32, Errno> {
        let node = self.nodes.get_mut(&plain(number)).ok_or(Errno::ENOENT)?;
        let data = &data[..data.len().min(self.faults.answer_bytes)];
        let end = offset as usize + data.len();
        let stretch = Stretch { node: number, offset, length: data.len() as u64 };
        self.passage.write(&self.faults, stretch)?;
        if node.bytes.len() < end {
            node.bytes.resize(end, 0);
        }
        node.bytes[offset as usize..end].copy_from_slice(data);
        Ok(data.len() as u32)
    }

    pub(super) fn open_flags(&self) -> FopenFlags {
        match self.faults.is_uncached {
            true => FopenFlags::FOPEN_DIRECT_IO,
            false => FopenFlags::empty(),
        }
    }
}
