//! Answers the kernel's requests from a tree in memory, with the faults of the moment.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, Generation, INodeNo,
    IoctlFlags, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyLseek, ReplyOpen, ReplyStatfs,
    ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};

use super::Faults;
use super::folding::plain;
use super::passage::{Passage, Stretch};
use super::state::{BLOCK_BYTES, State};

/// The side that the kernel talks to.
pub struct Server(Arc<Mutex<State>>);

impl Server {
    pub fn new(state: Arc<Mutex<State>>) -> Self {
        Self(state)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// The state, after the time that a request takes.
    fn after(
        &self,
        delay: impl FnOnce(&mut Passage, &Faults) -> Duration,
    ) -> MutexGuard<'_, State> {
        let mut state = self.state();
        let faults = state.faults;
        let delay = delay(&mut state.passage, &faults);
        drop(state);
        std::thread::sleep(delay);
        self.state()
    }

    fn remove(&self, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        match self.state().remove((plain(parent.0), name.into())) {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(errno),
        }
    }
}

/// Answers with what was found or made.
fn enter(state: &State, number: Result<u64, Errno>, reply: ReplyEntry) {
    match number.and_then(|number| state.attributes(number)) {
        Ok(attributes) => reply.entry(&state.faults.remembered, &attributes, Generation(0)),
        Err(errno) => reply.error(errno),
    }
}

impl Filesystem for Server {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let state = self.state();
        if name.len() > state.faults.name_bytes {
            return reply.error(Errno::ENAMETOOLONG);
        }
        enter(&state, state.number((plain(parent.0), name.into())), reply);
    }

    fn forget(&self, _: &Request, number: INodeNo, _lookups: u64) {
        let mut state = self.state();
        // Another spelling may still be open.
        let may_go = !state.faults.asks_by_name;
        if may_go && state.nodes.get(&plain(number.0)).is_some_and(|node| !node.is_named) {
            state.nodes.remove(&plain(number.0));
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let state = self.state();
        match state.attributes(number.0) {
            Ok(attributes) if state.faults.is_one && attributes.kind == FileType::RegularFile => {
                let attributes = FileAttr { ino: INodeNo(9999), nlink: 2, ..attributes };
                reply.attr(&state.faults.remembered, &attributes);
            }
            Ok(attributes) => reply.attr(&state.faults.remembered, &attributes),
            Err(errno) => reply.error(errno),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut state = self.state();
        if let Some(errno) = state.faults.owner.filter(|_| uid.or(gid).is_some()) {
            return reply.error(errno);
        }
        let mode = mode.filter(|_| !state.faults.forgets_modes);
        if state.faults.follows && mtime.is_some() && state.finds_none_to_shut(number.0) {
            return reply.error(Errno::ENOENT);
        }
        if let Some(node) = state.nodes.get_mut(&plain(number.0)) {
            if let Some(size) = size {
                node.bytes.resize(size as usize, 0);
            }
            if let Some(mode) = mode {
                node.permissions = (mode & 0o7777) as u16;
            }
        }
        match state.attributes(number.0) {
            Ok(attributes) => reply.attr(&state.faults.remembered, &attributes),
            Err(errno) => reply.error(errno),
        }
    }

    fn mkdir(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let mut state = self.state();
        let made = state.create((plain(parent.0), name.into()), FileType::Directory, mode & !umask);
        enter(&state, made, reply);
    }

    fn mknod(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _rdev: u32,
        reply: ReplyEntry,
    ) {
        let mut state = self.state();
        let made = state.create((plain(parent.0), name.into()), FileType::NamedPipe, mode & !umask);
        enter(&state, made, reply);
    }

    fn symlink(&self, _: &Request, parent: INodeNo, name: &OsStr, text: &Path, reply: ReplyEntry) {
        let mut state = self.state();
        let made = state.create((plain(parent.0), name.into()), FileType::Symlink, 0o777);
        if let Ok(number) = made {
            state.nodes.get_mut(&number).unwrap().bytes = text.as_os_str().as_bytes().to_vec();
        }
        enter(&state, made, reply);
    }

    fn readlink(&self, _: &Request, number: INodeNo, reply: ReplyData) {
        reply.data(&self.state().nodes[&plain(number.0)].bytes);
    }

    fn ioctl(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: IoctlFlags,
        _command: u32,
        _in: &[u8],
        _out_size: u32,
        reply: ReplyIoctl,
    ) {
        reply.error(self.state().faults.ioctl.unwrap_or(Errno::ENOSYS));
    }

    fn setxattr(
        &self,
        _: &Request,
        _: INodeNo,
        _name: &OsStr,
        _value: &[u8],
        _flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        match self.state().faults.forgets_attributes {
            true => reply.ok(),
            false => reply.error(Errno::ENOSYS),
        }
    }

    fn getxattr(&self, _: &Request, _: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let Faults { unlisted, forgets_attributes, .. } = self.state().faults;
        match name == "system.posix_acl_access" && !unlisted.is_empty() {
            true if size == 0 => reply.size(unlisted.len() as u32),
            true => reply.data(unlisted),
            false if forgets_attributes || !unlisted.is_empty() => reply.error(Errno::NO_XATTR),
            false => reply.error(Errno::ENOSYS),
        }
    }

    fn listxattr(&self, _: &Request, _: INodeNo, size: u32, reply: ReplyXattr) {
        let all = b"system.nfs4_acl\0";
        match self.state().faults.has_lists {
            true if size == 0 => reply.size(all.len() as u32),
            true if (size as usize) < all.len() => reply.error(Errno::ERANGE),
            true => reply.data(all),
            false => reply.error(Errno::ENOSYS),
        }
    }

    fn removexattr(&self, _: &Request, _: INodeNo, _name: &OsStr, reply: ReplyEmpty) {
        let has_lists = self.state().faults.has_lists;
        reply.error(if has_lists { Errno::EINVAL } else { Errno::ENOSYS });
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let refused = self.state().faults.unlink;
        match refused {
            Some(errno) => reply.error(errno),
            None => self.remove(parent, name, reply),
        }
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.remove(parent, name, reply);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        if !flags.is_empty() {
            return reply.error(Errno::EINVAL);
        }
        let mut state = self.state();
        let place = state.meant((plain(parent.0), name.into()));
        let Some(number) = state.names.remove(&place) else {
            return reply.error(Errno::ENOENT);
        };
        let place = state.meant((plain(new_parent.0), new_name.into()));
        if let Some(replaced) = state.names.insert(place, number) {
            state.nodes.get_mut(&replaced).unwrap().is_named = false;
        }
        reply.ok();
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), self.state().open_flags());
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let mut state = self.state();
        let made =
            state.create((plain(parent.0), name.into()), FileType::RegularFile, mode & !umask);
        let flags = state.open_flags();
        match made.and_then(|number| state.attributes(number)) {
            Ok(attributes) => {
                reply.created(
                    &state.faults.remembered,
                    &attributes,
                    Generation(0),
                    FileHandle(0),
                    flags,
                );
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn read(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let stretch = Stretch { node: number.0, offset, length: u64::from(size) };
        let mut state = self.after(|passage, faults| passage.read_delay(faults, stretch));
        match state.read(number.0, offset, size) {
            Ok(bytes) => reply.data(bytes),
            Err(errno) => reply.error(errno),
        }
    }

    fn write(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let length = data.len() as u64;
        let mut state = self.after(|passage, faults| passage.write_delay(faults, length));
        match state.write(number.0, offset, data) {
            Ok(length) => reply.written(length),
            Err(errno) => reply.error(errno),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        match self.state().faults.close {
            Some(errno) => reply.error(errno),
            None => reply.ok(),
        }
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        drop(self.after(|_, faults| faults.delay));
        reply.ok();
    }

    fn readdir(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let state = self.state();
        let children = state.names.iter().filter(|((parent, _), _)| *parent == plain(number.0));
        let mut children: Vec<_> = children.map(|((_, name), child)| (*child, name)).collect();
        children.sort_unstable();
        // Numbers stay what they are when others go, so a reader that removes misses nothing.
        let place = |child, told| if state.faults.leaves_out { told } else { child };
        let children =
            children.into_iter().zip(1..).map(|((child, name), told)| (child, name, told));
        for (child, name, told) in children.filter(|(child, _, told)| place(*child, *told) > offset)
        {
            let mut add = |next| reply.add(INodeNo(child), next, state.nodes[&child].kind, name);
            if state.faults.repeats && add(child - 1) || add(place(child, told)) {
                break;
            }
        }
        reply.ok();
    }

    fn lseek(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _offset: i64,
        _whence: i32,
        reply: ReplyLseek,
    ) {
        reply.error(if self.state().faults.denies_data { Errno::ENXIO } else { Errno::ENOSYS });
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let state = self.state();
        if let Some(errno) = state.faults.statfs {
            return reply.error(errno);
        }
        let name_bytes = if state.faults.cuts { 12 } else { 255 };
        let used: usize = state.nodes.values().map(|node| node.bytes.len()).sum();
        let free = state.faults.free_bytes / u64::from(BLOCK_BYTES);
        let blocks = free + (used as u64).div_ceil(u64::from(BLOCK_BYTES));
        reply.statfs(blocks, free, free, 1 << 20, 1 << 20, BLOCK_BYTES, name_bytes, BLOCK_BYTES);
    }
}
