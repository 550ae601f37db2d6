//! The files that the calls work on: unnamed, small, in the page cache, full of random bytes.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use flatout_measure::TrialError;
use flatout_sys::{CancelToken, filesystem};

use super::row::MAX_THREADS;
use crate::scratch::Wanted;
use crate::{Error, Scratch};

/// Calls that a pass over a thread's share of a file has, unless that makes it too long: going
/// back to the start is one `lseek` per pass, a thousandth of the calls and less of the time.
const PASS_CALLS: u64 = 1024;
/// Least length of a thread's share.
const LEAST_SHARE_BYTES: u64 = 256 << 10;
/// Length of a share above which it need not have so many calls: an `lseek` takes 0.1 µs, copying
/// these bytes takes a thousand times as long also at 50 GB/s.
const MOST_SHARE_BYTES: u64 = 8 << 20;
/// Least length of a file that one thread has to itself.
const OWN_FILE_BYTES: u64 = 1 << 20;
/// Which random data; it matters only that no filesystem stores it as holes.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// Length of what one thread goes through at its position before it goes back to the start.
fn share_bytes(block_bytes: u64) -> u64 {
    (block_bytes * PASS_CALLS).clamp(LEAST_SHARE_BYTES, MOST_SHARE_BYTES).max(block_bytes)
}

/// Length of the file that all threads use: a share of each at a common position.
pub(super) fn common_file_bytes(block_bytes: u64) -> u64 {
    share_bytes(block_bytes) * u64::from(MAX_THREADS)
}

/// Length of a file that one thread has to itself.
pub(super) fn own_file_bytes(block_bytes: u64) -> u64 {
    share_bytes(block_bytes).max(OWN_FILE_BYTES)
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
    /// Why none is made.
    pub(super) no_room: Option<String>,
    common: OnceLock<WorkFile>,
    own: [OnceLock<WorkFile>; MAX_THREADS as usize],
}

impl Site {
    pub(super) fn new(directory: &Path, block_bytes: u64) -> Self {
        Self {
            directory: directory.to_owned(),
            block_bytes,
            no_room: None,
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
        if let Some(why) = &self.no_room {
            return Err(TrialError::Unsupported(why.clone()));
        }
        let file = WorkFile::new(&self.directory, length_bytes, self.block_bytes)?;
        Ok(slot.get_or_init(|| file))
    }
}

/// An unnamed file with content.
pub(super) struct WorkFile {
    pub(super) scratch: Scratch,
    /// A name under which each thread can open the file, for a position of its own.
    pub(super) path: PathBuf,
    /// The kernel's name for the type of the file system that holds it.
    pub(super) filesystem: &'static str,
}

impl WorkFile {
    fn new(directory: &Path, length_bytes: u64, block_bytes: u64) -> Result<Self, Error> {
        let (chunk_bytes, cancel) = (fill_bytes(block_bytes), CancelToken::manual());
        let wanted = Wanted { length_bytes, seed: SEED, chunk_bytes, ends_ns: u64::MAX, cancel };
        let scratch = Scratch::make(directory, wanted, &mut |_| {})?;
        let filesystem = filesystem::of(scratch.file())
            .map_err(flatout_io::Error::system("examine", directory))?
            .name;
        Ok(Self { path: scratch.path(), scratch, filesystem })
    }

    /// A new descriptor of the file with a position of its own.
    pub(super) fn open(&self) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).open(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek};

    impl Site {
        /// Lengths of the files that are there.
        pub(in crate::syscall) fn laid_down_bytes(&self) -> u64 {
            let slots = std::iter::once(&self.common).chain(&self.own);
            let lengths = slots
                .filter_map(OnceLock::get)
                .map(|file| rustix::fs::fstat(file.scratch.file()).unwrap().st_size as u64);
            lengths.sum()
        }
    }

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
    fn going_back_to_the_start_is_a_thousandth_at_most() {
        for log2 in 0..=24 {
            let block_bytes = 1 << log2;
            let common = common_file_bytes(block_bytes);
            for share in [common / u64::from(MAX_THREADS), own_file_bytes(block_bytes)] {
                let (calls, bytes) = (share / block_bytes, share);
                assert!(calls >= 1000 || bytes >= MOST_SHARE_BYTES, "{block_bytes}: {calls}");
                assert!(share >= block_bytes);
            }
        }
    }

    #[test]
    fn files_are_as_small_as_the_blocks_allow() {
        assert_eq!((common_file_bytes(1), own_file_bytes(1)), (2 << 20, 1 << 20));
        assert_eq!((common_file_bytes(4096), own_file_bytes(4096)), (32 << 20, 4 << 20));
        assert_eq!((common_file_bytes(1 << 20), own_file_bytes(1 << 20)), (64 << 20, 8 << 20));
        assert_eq!((common_file_bytes(16 << 20), own_file_bytes(16 << 20)), (128 << 20, 16 << 20));
    }
}
