//! The frame of all answers: a request is counted, goes wrong or not, and is answered.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use fuser::{
    Errno, FileAttr, FileType, FopenFlags, Generation, ReplyEmpty, ReplyEntry, ReplyXattr,
    TimeOrNow,
};

use super::request::{Counter, Kind, Portion};
use super::store::Store;

/// The kernel asks anew each time, so that every call of the copier is a request.
pub const NOT_REMEMBERED: Duration = Duration::ZERO;
/// inode(7): the kinds of mknod(2).
const KIND_MASK: u32 = 0o170_000;

/// What a filesystem is, and what is wrong with it.
pub struct State {
    pub store: Store,
    pub counter: Counter,
    /// Whether files are read and written around the page cache.
    pub is_uncached: bool,
}

/// The side that the kernel talks to.
pub struct Server(pub Arc<Mutex<State>>);

impl Server {
    /// Counts a request, and lets it go on or not.
    pub fn admit(&self, kind: Kind) -> Result<(MutexGuard<'_, State>, Portion), Errno> {
        let mut state = self.0.lock().unwrap();
        let (delay, admitted) = state.counter.admit(kind);
        if !delay.is_zero() {
            drop(state);
            std::thread::sleep(delay);
            state = self.0.lock().unwrap();
        }
        match admitted {
            Ok(portion) => Ok((state, portion)),
            Err(errno) => Err(Errno::from_i32(errno.raw_os_error())),
        }
    }

    pub fn entry(
        &self,
        kind: Kind,
        reply: ReplyEntry,
        make: impl FnOnce(&mut Store) -> Result<FileAttr, Errno>,
    ) {
        match self.admit(kind).and_then(|(mut state, _)| make(&mut state.store)) {
            Ok(facts) => reply.entry(&NOT_REMEMBERED, &facts, Generation(0)),
            Err(errno) => reply.error(errno),
        }
    }

    pub fn empty(
        &self,
        kind: Kind,
        reply: ReplyEmpty,
        work: impl FnOnce(&mut Store) -> Result<(), Errno>,
    ) {
        match self.admit(kind).and_then(|(mut state, _)| work(&mut state.store)) {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(errno),
        }
    }

    pub fn xattr(
        &self,
        kind: Kind,
        size: u32,
        reply: ReplyXattr,
        find: impl FnOnce(&mut Store) -> Result<Vec<u8>, Errno>,
    ) {
        match self.admit(kind).and_then(|(mut state, _)| find(&mut state.store)) {
            Ok(value) if size == 0 => reply.size(value.len() as u32),
            Ok(value) if value.len() > size as usize => reply.error(Errno::ERANGE),
            Ok(value) => reply.data(&value),
            Err(errno) => reply.error(errno),
        }
    }
}

pub fn kind_of(mode: u32) -> FileType {
    match mode & KIND_MASK {
        0o010_000 => FileType::NamedPipe,
        0o020_000 => FileType::CharDevice,
        0o060_000 => FileType::BlockDevice,
        0o140_000 => FileType::Socket,
        _ => FileType::RegularFile,
    }
}

pub fn moment(time: TimeOrNow) -> SystemTime {
    match time {
        TimeOrNow::SpecificTime(time) => time,
        TimeOrNow::Now => SystemTime::now(),
    }
}

pub fn handed(state: &State) -> FopenFlags {
    match state.is_uncached {
        true => FopenFlags::FOPEN_DIRECT_IO,
        false => FopenFlags::empty(),
    }
}
