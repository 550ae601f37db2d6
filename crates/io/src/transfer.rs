//! Transfer: the bytes of one file go to another.
//!
//! The first method, read and write, works everywhere; reflink, copy_file_range, mmap and uring
//! join it behind the same function when the copier is built.

use std::os::fd::BorrowedFd;

use flatout_sys::buffer::AlignedBuffer;
use rustix::io::Errno;

use crate::stop::Stop;

/// How bytes get across.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// Extents are shared: FICLONE and FICLONERANGE.
    Reflink,
    /// copy_file_range(2): the kernel copies.
    CopyFileRange,
    /// pread(2) into a buffer, pwrite(2) out of it.
    Sync,
    /// pwrite(2) straight out of a mapping of the source.
    Mmap,
    /// io_uring: reads linked with writes, many at a time.
    Uring,
}

/// Which side of a transfer failed, and how.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// Reading the source.
    #[error("cannot read the source: {0}")]
    Source(#[source] Errno),
    /// Writing the target.
    #[error("cannot write the target: {0}")]
    Target(#[source] Errno),
}

/// A method with its buffer; serves any number of files, one after the other.
pub struct Transfer {
    method: Method,
    buffer: AlignedBuffer,
}

impl Transfer {
    /// Gets ready to move blocks of `block_bytes`.
    ///
    /// Errors: no memory for the buffer.
    pub fn new(method: Method, block_bytes: usize) -> std::io::Result<Self> {
        Ok(Self { method, buffer: AlignedBuffer::new(block_bytes)? })
    }

    /// Moves `length_bytes` from `offset_bytes` on, to the same place of the target. Returns the
    /// bytes moved: fewer when the source ends earlier or the stop is due.
    ///
    /// Cost: two system calls per block, one copy through user memory.
    pub fn run(
        &mut self,
        source: BorrowedFd<'_>,
        target: BorrowedFd<'_>,
        offset_bytes: u64,
        length_bytes: u64,
        stop: &mut Stop,
    ) -> Result<u64, TransferError> {
        match self.method {
            // The other methods join with the copier.
            _ => self.read_write(source, target, offset_bytes, length_bytes, stop),
        }
    }

    fn read_write(
        &mut self,
        source: BorrowedFd<'_>,
        target: BorrowedFd<'_>,
        offset_bytes: u64,
        length_bytes: u64,
        stop: &mut Stop,
    ) -> Result<u64, TransferError> {
        let mut moved = 0;
        while moved < length_bytes {
            let wanted = (length_bytes - moved).min(self.buffer.len() as u64) as usize;
            let bytes = &mut self.buffer.as_mut_slice()[..wanted];
            let got = match rustix::io::pread(source, &mut *bytes, offset_bytes + moved) {
                Ok(0) => break,
                Ok(got) => got,
                Err(Errno::INTR) => 0,
                Err(errno) => return Err(TransferError::Source(errno)),
            };
            let mut written = 0;
            while written < got {
                let place = offset_bytes + moved + written as u64;
                match rustix::io::pwrite(target, &bytes[written..got], place) {
                    Ok(0) => return Err(TransferError::Target(Errno::IO)),
                    Ok(more) => written += more,
                    Err(Errno::INTR) => {}
                    Err(errno) => return Err(TransferError::Target(errno)),
                }
            }
            moved += got as u64;
            if stop.is_due() {
                break;
            }
        }
        Ok(moved)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn bytes_arrive_where_they_were() {
        let mut source = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..100_000_u32).map(|i| (i >> 3) as u8).collect();
        source.write_all(&bytes).unwrap();
        for block in [1000, 4096, 1 << 20] {
            let mut target = tempfile::tempfile().unwrap();
            let mut transfer = Transfer::new(Method::Sync, block).unwrap();
            let moved = transfer
                .run(source.as_fd(), target.as_fd(), 0, u64::MAX, &mut Stop::never())
                .unwrap();
            assert_eq!(moved, 100_000);
            let mut copy = Vec::new();
            target.rewind().unwrap();
            target.read_to_end(&mut copy).unwrap();
            assert!(copy == bytes, "block {block}");
        }
    }

    #[test]
    fn the_failing_side_is_named() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let file = tempfile::tempfile().unwrap();
        let mut transfer = Transfer::new(Method::Sync, 16).unwrap();
        let stop = &mut Stop::never();
        let source = transfer.run(reader.as_fd(), file.as_fd(), 0, 1, stop).unwrap_err();
        assert!(matches!(source, TransferError::Source(Errno::SPIPE)));
        rustix::io::write(&file, b"x").unwrap();
        let target = transfer.run(file.as_fd(), writer.as_fd(), 0, 1, stop).unwrap_err();
        assert!(matches!(target, TransferError::Target(Errno::SPIPE)));
    }
}
