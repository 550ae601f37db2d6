//! The files that the calls work on: unnamed, small, in the page cache, full of random bytes.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use flatout_measure::case::TrialError;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::row::MAX_THREADS;

/// Least length of the file that all threads use: going back to its start once per pass is less
/// than a thousandth of the pass, also when eight threads share the position.
const COMMON_FILE_BYTES: u64 = 2 << 20;
/// Least length of a file that one thread has to itself.
const OWN_FILE_BYTES: u64 = 1 << 20;

/// Length of the file that all threads use: room for one block of each at a shared position.
pub(super) fn common_file_bytes(block_bytes: u64) -> u64 {
    COMMON_FILE_BYTES.max(block_bytes * u64::from(MAX_THREADS))
}

/// Length of a file that one thread has to itself.
pub(super) fn own_file_bytes(block_bytes: u64) -> u64 {
    OWN_FILE_BYTES.max(block_bytes)
}

/// Length of the writes that fill a file: the block size of the rows, within bounds.
///
/// The page cache remembers it, as the size of its folios, and a small write into a large folio is
/// dear: on ext4 of Linux 6.18 (a virtual Xeon, November 2026) writing one byte took 0.6 µs in a file
/// filled 4 KiB at a time, 2.3 µs at 1 MiB, and 9 µs at 16 MiB. Reads did not differ.
pub(super) fn fill_bytes(block_bytes: u64) -> usize {
    (block_bytes as usize).next_power_of_two().clamp(4 << 10, 1 << 20)
}

/// The place of the measurement; its files are made when a row first asks for them.
pub(super) struct Site {
    directory: PathBuf,
    pub(super) block_bytes: u64,
    common: OnceLock<WorkFile>,
    own: [OnceLock<WorkFile>; MAX_THREADS as usize],
}

impl Site {
    pub(super) fn new(directory: &Path, block_bytes: u64) -> Self {
        Self {
            directory: directory.to_owned(),
            block_bytes,
            common: OnceLock::new(),
            own: Default::default(),
        }
    }

    /// The file that all threads use.
    pub(super) fn common(&self) -> Result<&WorkFile, TrialError> {
        self.file(&self.common, common_file_bytes(self.block_bytes))
    }

    /// The file that thread number `thread` has to itself.
    pub(super) fn own(&self, thread: usize) -> Result<&WorkFile, TrialError> {
        self.file(&self.own[thread], own_file_bytes(self.block_bytes))
    }

    fn file<'s>(
        &self,
        slot: &'s OnceLock<WorkFile>,
        length_bytes: u64,
    ) -> Result<&'s WorkFile, TrialError> {
        if let Some(file) = slot.get() {
            return Ok(file);
        }
        let file =
            WorkFile::new(&self.directory, length_bytes, self.block_bytes).map_err(|error| {
                TrialError::Failed(format!(
                    "cannot make a file of {length_bytes} bytes in {}: {error}",
                    self.directory.display()
                ))
            })?;
        Ok(slot.get_or_init(|| file))
    }
}

/// An unnamed file with content.
pub(super) struct WorkFile {
    file: File,
    pub(super) length_bytes: u64,
    /// The type of the file system that holds it.
    pub(super) filesystem: String,
}

impl WorkFile {
    fn new(directory: &Path, length_bytes: u64, block_bytes: u64) -> io::Result<Self> {
        let mut file = File::from(unnamed(directory)?);
        let mut bytes = vec![0; fill_bytes(block_bytes)];
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut left = length_bytes;
        while left > 0 {
            for word in bytes.chunks_exact_mut(8) {
                // xorshift64: noise enough that no file system stores it as a hole.
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                word.copy_from_slice(&state.to_le_bytes());
            }
            let now = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
            file.write_all(&bytes[..now])?;
            left -= now as u64;
        }
        let filesystem = filesystem_name(file.as_fd())?;
        Ok(Self { file, length_bytes, filesystem })
    }

    /// A new descriptor of the file with a position of its own, seen by this thread's table.
    pub(super) fn open(&self) -> io::Result<File> {
        // Not `/proc/self`: that is the table of the first thread, which may be another one.
        let place = format!("/proc/thread-self/fd/{}", self.file.as_raw_fd());
        OpenOptions::new().read(true).write(true).open(place)
    }
}

/// Opens an unnamed file; where the file system has none, a named one that is removed at once.
fn unnamed(directory: &Path) -> io::Result<OwnedFd> {
    let access = OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    match rustix::fs::open(directory, access | OFlags::TMPFILE, mode) {
        // EISDIR is what a kernel says that knows no such files at all.
        Err(Errno::OPNOTSUPP | Errno::ISDIR) => created_and_removed(directory),
        other => Ok(other?),
    }
}

fn created_and_removed(directory: &Path) -> io::Result<OwnedFd> {
    const ATTEMPTS: u32 = 100;
    let access = OFlags::RDWR | OFlags::CLOEXEC | OFlags::CREATE | OFlags::EXCL;
    for attempt in 0..ATTEMPTS {
        let name = format!(".flatout-{}-{attempt}", std::process::id());
        let path = directory.join(name);
        match rustix::fs::open(&path, access, Mode::RUSR | Mode::WUSR) {
            Ok(file) => {
                rustix::fs::unlink(&path)?;
                return Ok(file);
            }
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Errno::EXIST.into())
}

/// The type of the file system, by the magic number of statfs(2); hexadecimal if not known here.
fn filesystem_name(file: impl AsFd) -> io::Result<String> {
    let magic = rustix::fs::fstatfs(file)?.f_type as u64;
    let name = match magic {
        0xef53 => "ext4",
        0x5846_5342 => "xfs",
        0x9123_683e => "btrfs",
        0x0102_1994 => "tmpfs",
        0x794c_7630 => "overlay",
        0x2fc1_2fc1 => "zfs",
        0xf2f5_2010 => "f2fs",
        0xca45_1a4e => "bcachefs",
        0x6969 => "nfs",
        0xff53_4d42 | 0xfe53_4d42 => "cifs",
        0x0102_1997 => "9p",
        0x6573_5546 => "fuse",
        0x0bd0_0bd0 => "lustre",
        _ => return Ok(format!("{magic:#x}")),
    };
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek};

    #[test]
    fn a_work_file_has_no_name_and_no_zero_pages() {
        let place = tempfile::tempdir().unwrap();
        let site = Site::new(place.path(), 1);
        let file = site.own(3).unwrap();
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
        let mut bytes = Vec::new();
        assert_eq!(file.open().unwrap().read_to_end(&mut bytes).unwrap() as u64, OWN_FILE_BYTES);
        assert!(bytes.chunks(4096).all(|page| page.iter().any(|&byte| byte != 0)));
        assert!(std::ptr::eq(file, site.own(3).unwrap()), "made once");
    }

    #[test]
    fn a_file_system_without_unnamed_files_is_served_too() {
        let place = tempfile::tempdir().unwrap();
        let mut file = File::from(created_and_removed(place.path()).unwrap());
        file.write_all(b"x").unwrap();
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn two_descriptors_of_a_file_have_two_positions() {
        let place = tempfile::tempdir().unwrap();
        let site = Site::new(place.path(), 1);
        let (mut one, mut other) =
            (site.own(0).unwrap().open().unwrap(), site.own(0).unwrap().open().unwrap());
        one.seek(io::SeekFrom::Start(5)).unwrap();
        assert_eq!(other.stream_position().unwrap(), 0);
    }

    #[test]
    fn a_missing_directory_fails_with_its_name() {
        let site = Site::new(Path::new("/nowhere/at/all"), 1);
        let Err(TrialError::Failed(text)) = site.common() else { panic!("it cannot work") };
        assert!(text.contains("/nowhere/at/all"), "{text}");
    }

    #[test]
    fn a_block_of_each_thread_fits_the_common_file() {
        assert_eq!(common_file_bytes(1), COMMON_FILE_BYTES);
        assert_eq!(common_file_bytes(16 << 20), 128 << 20);
    }
}
