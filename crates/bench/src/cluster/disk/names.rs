//! Names and small files of the disk area: what is done to one of them, and what is written into
//! blocks and files so that whoever reads them knows whose they are.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;

use flatout_io::cause_text;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::phase::{Phase, SMALL_BYTES, Target};
use super::worker::{OWNER_ONLY, Underway, Worker};
use crate::disk::metadata::test_directory::{
    DIRECTORY, c_string, each_entry, make_directory, no_listing,
};

/// A stamp stands at the beginning of each piece so long.
pub(super) const STAMPED_BYTES: usize = 4096;
const NOFOLLOW: AtFlags = AtFlags::SYMLINK_NOFOLLOW;

impl Worker {
    /// Lists the directory of a process and its part of the shared one.
    pub(super) fn find(&mut self, underway: &mut Underway) -> Result<(), Errno> {
        let own = self.directory.as_ref().ok_or(Errno::NOENT)?;
        let directory = underway.directory.as_ref().ok_or(Errno::NOENT)?;
        let mut names = Vec::new();
        let listed = rustix::fs::openat(directory, c".", DIRECTORY, Mode::empty())?;
        each_entry(listed.as_fd(), &mut no_listing(), |name| names.push(name.to_owned()))?;
        let shared = directory_name(Target::SharedDirectory, 0);
        let shared = rustix::fs::openat(own, &shared, DIRECTORY, Mode::empty())?;
        let prefix = format!("file-{}-", underway.of);
        let mut more = Vec::new();
        each_entry(shared.as_fd(), &mut no_listing(), |name| {
            if name.to_bytes().starts_with(prefix.as_bytes()) {
                more.push(name.to_owned());
            }
        })?;
        (underway.seen, underway.shared) = ([names, more], Some(shared));
        Ok(())
    }

    /// One operation on a small file, or on a name.
    pub(super) fn small(&mut self, underway: &Underway, number: u64) -> Result<(), String> {
        let directory = underway.directory.as_ref().ok_or("no directory is open")?;
        let create = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let of = underway.of;
        let name = match underway.phase.target() {
            Target::SharedDirectory => c_string(format!("file-{of}-{number:06}")),
            _ => c_string(format!("file-{number:06}")),
        };
        let open = |flags, mode| rustix::fs::openat(directory, &name, flags, mode).map_err(why);
        match underway.phase {
            Phase::Find => return underway.examine(number as usize),
            Phase::OwnCreate => drop(open(create, OWNER_ONLY)?),
            Phase::SharedCreate => {
                let file: File = open(create, OWNER_ONLY)?.into();
                let piece = &mut self.buffer.as_mut_slice()[..SMALL_BYTES];
                stamp(piece, self.seat.rank, number);
                file.write_all_at(piece, 0).map_err(why)?;
            }
            Phase::SharedRead => {
                let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
                let file: File = open(flags, Mode::empty())?.into();
                let piece = &mut self.buffer.as_mut_slice()[..SMALL_BYTES];
                file.read_exact_at(piece, 0).map_err(why)?;
                return check(piece, of, number);
            }
            Phase::OwnDelete | Phase::SharedDelete => {
                rustix::fs::unlinkat(directory, &name, AtFlags::empty()).map_err(why)?;
            }
            _ => drop(rustix::fs::statat(directory, &name, NOFOLLOW).map_err(why)?),
        }
        Ok(())
    }
}

impl Underway {
    /// Names that find has seen.
    pub(super) fn found(&self) -> u64 {
        self.seen.iter().map(|names| names.len() as u64).sum()
    }

    /// As find of IO500: of a name with 01 in it, whether it is one of the small files.
    fn examine(&self, number: usize) -> Result<(), String> {
        let [own, shared] = &self.seen;
        let (directory, name, length) = match own.get(number) {
            Some(name) => (&self.directory, name, 0),
            None => (&self.shared, &shared[number - own.len()], SMALL_BYTES as i64),
        };
        if !name.to_bytes().windows(2).any(|pair| pair == b"01") {
            return Ok(());
        }
        let directory = directory.as_ref().ok_or("no directory is open")?;
        match rustix::fs::statat(directory, name, NOFOLLOW).map_err(why)?.st_size {
            size if size == length => Ok(()),
            size => Err(format!("it has {size} bytes instead of {length}")),
        }
    }
}

/// Whoever comes first makes it.
pub(super) fn shared_directory(own: &OwnedFd, name: &CStr) -> Result<OwnedFd, Errno> {
    match make_directory(own.as_fd(), name) {
        Err(Errno::EXIST) => rustix::fs::openat(own, name, DIRECTORY, Mode::empty()),
        made => made,
    }
}

pub(super) fn why(error: impl Into<io::Error>) -> String {
    cause_text(&error.into()).to_string()
}

pub(super) fn directory_name(target: Target, of: usize) -> CString {
    c_string(match target {
        Target::OwnDirectory => format!("d-{of}"),
        _ => "set-shared".to_owned(),
    })
}

/// Says who wrote it, and which item it is.
pub(super) fn stamp(piece: &mut [u8], writer: usize, number: u64) {
    for part in piece.chunks_mut(STAMPED_BYTES).filter(|part| part.len() >= 16) {
        part[..8].copy_from_slice(&(writer as u64).to_le_bytes());
        part[8..16].copy_from_slice(&number.to_le_bytes());
    }
}

/// Whether it is the item of that writer, in every part.
pub(super) fn check(piece: &[u8], writer: usize, number: u64) -> Result<(), String> {
    let [writer, number] = [writer as u64, number].map(u64::to_le_bytes);
    let mut parts = piece.chunks(STAMPED_BYTES).filter(|part| part.len() >= 16);
    match parts.all(|part| part[..8] == writer && part[8..16] == number) {
        true => Ok(()),
        false => Err("it is not what was written there".to_owned()),
    }
}
