//! Whether direct I/O on an open file can be done, for sources and targets alike.

use std::os::fd::BorrowedFd;

use flatout_sys::filesystem::{self, DirectAlignment};
use rustix::fs::FileType;

/// Alignment that direct I/O is given where the kernel does not say what it wants.
const USUAL_ALIGNMENT_BYTES: u64 = 4096;

/// Why direct I/O in requests of `block_bytes` cannot be done on this file, if so.
///
/// Cost: fstat, fstatfs and statx.
pub(crate) fn obstacle(file: BorrowedFd<'_>, block_bytes: u64) -> Option<String> {
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
        Ok(DirectAlignment::Refused) => {
            return Some("the filesystem takes none for this file".to_owned());
        }
        Ok(DirectAlignment::Bytes { offset, .. }) => u64::from(offset),
        Ok(DirectAlignment::Unknown) | Err(_) => USUAL_ALIGNMENT_BYTES,
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
        assert!(obstacle(proc.as_fd(), 4096).unwrap().contains("proc keeps its files in memory"));
        let device = File::open("/dev/null").unwrap();
        let text = obstacle(device.as_fd(), 4096).unwrap_or_default();
        assert!(!text.contains("in memory"), "{text}");
    }

    #[test]
    fn a_block_of_one_byte_is_an_obstacle_everywhere() {
        let file = tempfile::tempfile().unwrap();
        assert!(obstacle(file.as_fd(), 1).is_some());
    }
}
