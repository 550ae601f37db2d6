//! Answers the kernel out of a [`Store`], unless the request is the one that goes wrong.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;

use fuser::{
    BsdFileFlags, Errno, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite,
    ReplyXattr, Request, TimeOrNow, WriteFlags,
};

use super::answer::{NOT_REMEMBERED, Server, handed, kind_of, moment};
use super::request::{Kind, Portion};
use super::store::{Node, Store, part};

/// Bytes of a request to write; a small file takes several.
const WRITE_BYTES: u32 = 16 << 10;

impl Filesystem for Server {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        let _nearest = config.set_max_write(WRITE_BYTES);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.entry(Kind::Lookup, reply, |store| {
            let number = store.find(&(parent.0, name.into()))?;
            store.facts(number)
        });
    }

    fn forget(&self, _: &Request, number: INodeNo, _lookups: u64) {
        self.0.lock().unwrap().store.forget(number.0);
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.admit(Kind::Getattr).and_then(|(state, _)| state.store.facts(number.0)) {
            Ok(facts) => reply.attr(&NOT_REMEMBERED, &facts),
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
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _changed: Option<SystemTime>,
        _: Option<FileHandle>,
        _created: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _backed_up: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let change = |store: &mut Store| {
            let node = store.node(number.0)?;
            if let Some(size) = size {
                node.bytes.resize(size as usize, 0);
                node.times[1] = SystemTime::now();
            }
            if let Some(mode) = mode {
                node.permissions = (mode & 0o7777) as u16;
            }
            node.owner = (uid.unwrap_or(node.owner.0), gid.unwrap_or(node.owner.1));
            node.times[0] = accessed.map_or(node.times[0], moment);
            node.times[1] = modified.map_or(node.times[1], moment);
            node.times[2] = SystemTime::now();
            store.facts(number.0)
        };
        match self.admit(Kind::Setattr).and_then(|(mut state, _)| change(&mut state.store)) {
            Ok(facts) => reply.attr(&NOT_REMEMBERED, &facts),
            Err(errno) => reply.error(errno),
        }
    }

    fn readlink(&self, _: &Request, number: INodeNo, reply: ReplyData) {
        match self.admit(Kind::Readlink) {
            Ok((mut state, _)) => match state.store.node(number.0) {
                Ok(node) => reply.data(&node.bytes),
                Err(errno) => reply.error(errno),
            },
            Err(errno) => reply.error(errno),
        }
    }

    fn mknod(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let node = Node { device, ..Node::new(kind_of(mode), mode & !umask) };
        self.entry(Kind::Mknod, reply, |store| store.add((parent.0, name.into()), node));
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
        let node = Node::new(FileType::Directory, mode & !umask);
        self.entry(Kind::Mkdir, reply, |store| store.add((parent.0, name.into()), node));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.empty(Kind::Unlink, reply, |store| store.remove(&(parent.0, name.into())));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.empty(Kind::Rmdir, reply, |store| store.remove(&(parent.0, name.into())));
    }

    fn symlink(&self, _: &Request, parent: INodeNo, name: &OsStr, text: &Path, reply: ReplyEntry) {
        let bytes = text.as_os_str().as_bytes().to_vec();
        let node = Node { bytes, ..Node::new(FileType::Symlink, 0o777) };
        self.entry(Kind::Symlink, reply, |store| store.add((parent.0, name.into()), node));
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
        self.empty(Kind::Rename, reply, |store| {
            store.rename((parent.0, name.into()), (new_parent.0, new_name.into()))
        });
    }

    fn link(&self, _: &Request, number: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.entry(Kind::Link, reply, |store| store.link(number.0, (parent.0, name.into())));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.admit(Kind::Open) {
            Ok((state, _)) => reply.opened(FileHandle(0), handed(&state)),
            Err(errno) => reply.error(errno),
        }
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
        let node = Node::new(FileType::RegularFile, mode & !umask);
        let made = self.admit(Kind::Create).and_then(|(mut state, _)| {
            let facts = state.store.add((parent.0, name.into()), node)?;
            Ok((facts, handed(&state)))
        });
        match made {
            Ok((facts, flags)) => {
                reply.created(&NOT_REMEMBERED, &facts, Generation(0), FileHandle(0), flags);
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
        match self.admit(Kind::Read) {
            Ok((state, portion)) => match state.store.read(number.0, offset, size) {
                Ok(bytes) => reply.data(&bytes[..part(bytes.len(), portion)]),
                Err(errno) => reply.error(errno),
            },
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
        let written = self.admit(Kind::Write).and_then(|(mut state, portion)| {
            state.store.write(number.0, offset, &data[..part(data.len(), portion)])
        });
        match written {
            Ok(length) => reply.written(length),
            Err(errno) => reply.error(errno),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        self.empty(Kind::Flush, reply, |_| Ok(()));
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.empty(Kind::Fsync, reply, |_| Ok(()));
    }

    fn fallocate(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        _mode: i32,
        reply: ReplyEmpty,
    ) {
        self.empty(Kind::Fallocate, reply, |store| {
            let node = store.node(number.0)?;
            let end = node.bytes.len().max((offset + length) as usize);
            node.bytes.resize(end, 0);
            Ok(())
        });
    }

    fn lseek(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        const DATA: i32 = 3;
        let found = self.admit(Kind::Lseek).and_then(|(mut state, _)| {
            let length = state.store.node(number.0)?.bytes.len() as i64;
            match whence {
                _ if offset >= length => Err(Errno::ENXIO),
                DATA => Ok(offset),
                _ => Ok(length),
            }
        });
        match found {
            Ok(offset) => reply.offset(offset),
            Err(errno) => reply.error(errno),
        }
    }

    fn opendir(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.admit(Kind::Opendir) {
            Ok(_) => reply.opened(FileHandle(0), FopenFlags::empty()),
            Err(errno) => reply.error(errno),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let (state, portion) = match self.admit(Kind::Readdir) {
            Ok(admitted) => admitted,
            Err(errno) => return reply.error(errno),
        };
        // The offset is the number of names that came before: nothing is removed while we list.
        let names = state.store.list(number.0);
        let names = names.into_iter().enumerate().skip(offset as usize);
        let most = if portion == Portion::Part { 1 } else { usize::MAX };
        for (index, (child, kind, name)) in names.take(most) {
            if reply.add(INodeNo(child), index as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn setxattr(
        &self,
        _: &Request,
        number: INodeNo,
        name: &OsStr,
        value: &[u8],
        _flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        self.empty(Kind::Setxattr, reply, |store| {
            store.node(number.0)?.attributes.insert(name.into(), value.to_vec());
            Ok(())
        });
    }

    fn getxattr(&self, _: &Request, number: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        self.xattr(Kind::Getxattr, size, reply, |store| {
            store.node(number.0)?.attributes.get(name).cloned().ok_or(Errno::NO_XATTR)
        });
    }

    fn listxattr(&self, _: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        self.xattr(Kind::Listxattr, size, reply, |store| {
            let names = store.node(number.0)?.attributes.keys();
            Ok(names.flat_map(|name| [name.as_bytes(), b"\0"].concat()).collect())
        });
    }

    fn removexattr(&self, _: &Request, number: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.empty(Kind::Removexattr, reply, |store| {
            store.node(number.0)?.attributes.remove(name).map(drop).ok_or(Errno::NO_XATTR)
        });
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        reply.statfs(1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 4096, 255, 4096);
    }
}
