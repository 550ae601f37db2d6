//! The names in a directory, and what they are, as getdents64(2) yields them.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;

use flatout_io::MAX_INTERRUPTIONS;
use flatout_sys::cancel::CancelToken;
use rustix::fs::{AtFlags, FileType, RawDir};
use rustix::io::Errno;

use super::Refusal;
use crate::file_data::{self, is_removed};

/// Bytes that getdents64(2) may fill at a time: some 1,500 names.
const LISTING_BYTES: usize = 64 << 10;

/// Reads directories into the same memory, which is taken when there is one.
#[derive(Default)]
pub(super) struct Lister(Vec<u8>);

impl Lister {
    /// Calls `visit` with all names of a directory from where it stands, and their kinds.
    pub(super) fn each<E: From<Refusal>>(
        &mut self,
        directory: BorrowedFd<'_>,
        mut visit: impl FnMut(&CStr, FileType) -> Result<(), E>,
    ) -> Result<(), E> {
        while self.once(directory, |name, kind, _| visit(name, kind))? {}
        Ok(())
    }

    /// Calls `visit` with the names that one call of the kernel yields, what they are, and the inode
    /// numbers that the directory has; false when there were none.
    pub(super) fn once<E: From<Refusal>>(
        &mut self,
        directory: BorrowedFd<'_>,
        mut visit: impl FnMut(&CStr, FileType, u64) -> Result<(), E>,
    ) -> Result<bool, E> {
        self.0.reserve(LISTING_BYTES);
        let mut listing = RawDir::new(directory, self.0.spare_capacity_mut());
        let (mut any, mut tries) = (false, 0);
        loop {
            let entry = match listing.next() {
                None => return Ok(any),
                Some(Err(Errno::INTR))
                    if tries < MAX_INTERRUPTIONS && !CancelToken::signals().is_cancelled() =>
                {
                    tries += 1;
                    continue;
                }
                // It was removed meanwhile: then nothing is in it.
                Some(Err(Errno::NOENT)) if is_removed(directory) => return Ok(false),
                Some(Err(errno)) => return Err(Refusal::of("list")(errno).into()),
                Some(Ok(entry)) => entry,
            };
            any = true;
            let name = entry.file_name();
            if !matches!(name.to_bytes(), b"." | b"..") {
                let kind = match entry.file_type() {
                    FileType::Unknown => kind_of(directory, name),
                    kind => kind,
                };
                visit(name, kind, entry.ino())?;
            }
            if listing.is_buffer_empty() {
                return Ok(any);
            }
        }
    }
}

/// The kind of an entry of a filesystem that does not list it. What cannot be told is a file: it
/// will be looked at again.
fn kind_of(directory: BorrowedFd<'_>, name: &CStr) -> FileType {
    file_data::look(directory, name).map_or(FileType::RegularFile, file_data::kind_of)
}

/// The kind of what a name leads to; that of a symlink which leads nowhere is its own.
pub(super) fn behind(directory: BorrowedFd<'_>, name: &CStr, kind: FileType) -> FileType {
    match kind {
        FileType::Symlink => {
            rustix::fs::statat(directory, name, AtFlags::empty()).map_or(kind, file_data::kind_of)
        }
        _ => kind,
    }
}
