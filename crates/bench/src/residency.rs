//! Bringing a file into the page cache, or everything out of it, before a trial.

use std::io;
use std::os::fd::BorrowedFd;

use flatout_sys::cancel::CancelToken;
use flatout_sys::page_cache;
use rustix::io::Errno;

use crate::cache::Clearing;

/// Bytes read at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// Reads the first `length_bytes` of a file unless the page cache holds as many of it; a wish to
/// stop ends it early. To be called outside of any timed region.
///
/// Errors: those of the kernel. Where nobody tells what the cache holds, the file is read.
pub(crate) fn warm(file: BorrowedFd<'_>, length_bytes: u64, cancel: CancelToken) -> io::Result<()> {
    let state = page_cache::state(file, 0, length_bytes);
    if state.is_ok_and(|state| state.cached_bytes >= length_bytes) {
        return Ok(());
    }
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut offset = 0;
    while offset < length_bytes && !cancel.is_cancelled() {
        match rustix::io::pread(file, &mut buffer, offset) {
            Ok(0) => break,
            Ok(got) => offset += got as u64,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Drops the caches of the whole system, where that is asked for.
///
/// Errors: those of writing to `/proc/sys/vm/drop_caches`.
pub(crate) fn clear_system(clearing: Clearing) -> io::Result<()> {
    if clearing == Clearing::System {
        rustix::fs::sync();
        page_cache::drop_system_caches(3)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_file_that_was_dropped_is_brought_back() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![1; 3 << 20]).unwrap();
        page_cache::evict(file.as_fd(), 0, 3 << 20).unwrap();
        warm(file.as_fd(), 3 << 20, CancelToken::manual()).unwrap();
        let state = page_cache::state(file.as_fd(), 0, 3 << 20).unwrap();
        assert_eq!(state.cached_bytes, 3 << 20);
    }
}
