//! Ways around the page cache, for sources and targets alike: whether an open file has them, and how
//! it is opened for them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use flatout_sys::cause::cause_text;
use flatout_sys::descriptor::itself;
use flatout_sys::filesystem;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::{Errno, ReadWriteFlags};

use crate::fallback::Fallback;
use crate::tuning::Caching;

/// Alignment that direct I/O is given where the kernel does not say what it wants.
const USUAL_ALIGNMENT_BYTES: u64 = 4096;

/// `RWF_DONTCACHE`, new in Linux 6.14.
pub(crate) const DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

/// Why requests of `block_bytes` cannot have this caching on a file that ends at `end_bytes`.
pub(crate) fn obstacle(
    file: BorrowedFd<'_>,
    caching: Caching,
    (block_bytes, end_bytes): (u64, u64),
) -> Option<String> {
    match caching {
        Caching::Buffered => None,
        Caching::Direct => direct_obstacle(file, block_bytes),
        Caching::Dontcache => dontcache_obstacle(file, end_bytes),
    }
}

/// What is said where the file is `used` (read, written) buffered instead.
pub(crate) fn refused(caching: Caching, why: &str, used: &str) -> Fallback {
    let is_direct = caching == Caching::Direct;
    let code = if is_direct { "direct_refused" } else { "dontcache_refused" };
    Fallback::new(code, &format!("{caching} I/O"), why, &format!("{used} buffered"))
}

/// The same file with a descriptor of its own, which goes around the cache where `caching` wants it:
/// through /proc, and where that is missing by the name it had, if that still means it.
pub(crate) fn reopen(
    file: BorrowedFd<'_>,
    caching: Caching,
    (flags, name): (OFlags, &Path),
) -> Result<OwnedFd, Errno> {
    let direct = if caching == Caching::Direct { OFlags::DIRECT } else { OFlags::empty() };
    let flags = flags | direct | OFlags::CLOEXEC;
    match rustix::fs::open(itself(file), flags, Mode::empty()) {
        Err(Errno::NOENT) => {}
        answer => return answer,
    }
    let named = rustix::fs::open(name, flags | OFlags::NONBLOCK, Mode::empty())?;
    let identity = |file| rustix::fs::fstat(file).map(|facts| (facts.st_dev, facts.st_ino));
    if identity(named.as_fd())? != identity(file)? {
        return Err(Errno::NOENT);
    }
    // A ring would be told to try again where its reads must wait.
    rustix::fs::fcntl_setfl(&named, direct)?;
    Ok(named)
}

/// Asked at the end of the file, where nothing is read in.
fn dontcache_obstacle(file: BorrowedFd<'_>, end_bytes: u64) -> Option<String> {
    let mut byte = [0];
    let mut buffers = [io::IoSliceMut::new(&mut byte)];
    match rustix::io::preadv2(file, &mut buffers, end_bytes, DONTCACHE) {
        Ok(_) => None,
        Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) => {
            Some("the kernel or the filesystem does not know RWF_DONTCACHE".to_owned())
        }
        Err(errno) => Some(cause_text(&errno.into())),
    }
}

/// Why direct I/O in requests of `block_bytes` cannot be done on this file, if so.
///
/// Cost: fstat, fstatfs and statx.
fn direct_obstacle(file: BorrowedFd<'_>, block_bytes: u64) -> Option<String> {
    // A block device has storage of its own, whatever filesystem its name lies on.
    let is_regular = rustix::fs::fstat(file)
        .is_ok_and(|facts| FileType::from_raw_mode(facts.st_mode) == FileType::RegularFile);
    if let Ok(filesystem) = filesystem::of(file)
        && filesystem.in_memory
        && is_regular
    {
        return Some(format!("{} keeps its files in memory", filesystem.name));
    }
    let alignment = match filesystem::direct_alignment(file) {
        Ok(Some(0)) => return Some("the filesystem takes none for this file".to_owned()),
        Ok(Some(bytes)) => u64::from(bytes),
        Ok(None) | Err(_) => USUAL_ALIGNMENT_BYTES,
    };
    (!block_bytes.is_multiple_of(alignment)).then(|| {
        format!("a block of {block_bytes} bytes is no multiple of the {alignment} it asks for")
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_file_in_memory_is_an_obstacle_and_a_device_there_is_not() {
        let proc = File::open("/proc/self/status").unwrap();
        assert!(
            direct_obstacle(proc.as_fd(), 4096).unwrap().contains("proc keeps its files in memory")
        );
        let device = File::open("/dev/null").unwrap();
        let text = direct_obstacle(device.as_fd(), 4096).unwrap_or_default();
        assert!(!text.contains("in memory"), "{text}");
    }

    #[test]
    fn a_block_of_one_byte_is_an_obstacle_everywhere() {
        let file = tempfile::tempfile().unwrap();
        assert!(direct_obstacle(file.as_fd(), 1).is_some());
    }
}
