//! A file of random data that has no name and goes away with its descriptor.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use flatout_measure::{Event, Warning, size_text, warning};
use flatout_sys::resource_limit::{Resource, soft_limit};
use flatout_sys::{
    CancelToken, Filesystem, Nature, descriptor, filesystem, fill_random, memory, monotonic_ns,
};
use rustix::fs::{Access, Mode, OFlags};

use crate::disk::metadata::test_directory::TestDirectory;
use crate::{Error, IoError};

/// Free space that is taken at most: one part in this many.
const FREE_PART: u64 = 10;
/// Free inodes that are taken at most: one part in this many.
const INODES_PART: u64 = 2;
/// Available memory that is taken at most, since a hot file lives there: one part in this many.
pub(crate) const MEMORY_PART: u64 = 4;
/// Below this a file says nothing about anything.
pub(crate) const LEAST_BYTES: u64 = 1 << 20;
/// Bytes written at a time where it does not matter.
pub const CHUNK_BYTES: usize = 1 << 20;
/// A file that must be ready in time is written back in so many pieces, each at most this large:
/// what storage takes is not seen before.
const PIECES: u64 = 16;
const MOST_PIECE_BYTES: u64 = 64 << 20;
/// Shorter files are copied without sharing extents on xfs.
const XFS_SHARED_BYTES: u64 = 8 << 10;

/// The free bytes of a filesystem; where nobody counts, as on ramfs, nothing is known to be short.
pub fn free_bytes(filesystem: &Filesystem) -> u64 {
    if filesystem.size_bytes == 0 { u64::MAX } else { filesystem.free_bytes }
}

/// The free inodes that may be taken in a directory, half of them; none where they are made as they are
/// needed: such filesystems show none, or as many free as there are. Nor where nobody tells.
pub fn inodes_part(directory: &Path) -> Option<u64> {
    let facts = rustix::fs::statvfs(directory).ok().filter(|facts| facts.f_files > 0)?;
    Some(facts.f_favail / INODES_PART)
}

/// The part of the available memory that files may take where they live in it.
pub fn memory_part(filesystem: &Filesystem, part: u64) -> u64 {
    let available = filesystem.in_memory.then(memory::available_bytes).flatten();
    available.map_or(u64::MAX, |bytes| bytes / part)
}

/// What the kind of a filesystem makes of every figure that is measured on it.
pub fn nature_warning(name: &str, nature: Nature) -> Option<Warning> {
    let (code, text) = match nature {
        Nature::Disk => return None,
        Nature::Memory => (
            warning::MEMORY_FILESYSTEM,
            format!("{name} keeps its files in memory: no storage is involved"),
        ),
        Nature::Network => (
            warning::NETWORK_FILESYSTEM,
            format!("{name} is a network filesystem: network and server are part of the figures"),
        ),
        Nature::Userspace => (
            warning::USERSPACE_FILESYSTEM,
            format!("{name} is served by a program (FUSE), which is part of the figures"),
        ),
        Nature::Overlay => (
            warning::OVERLAY_FILESYSTEM,
            "the directory is an overlay: files are made in its upper layer".to_owned(),
        ),
    };
    Some(Warning::new(code, text))
}

/// How large a file may be that lies in `directory`, when `wanted_bytes` would be best: at most
/// 10 % of the free space, a quarter of the available memory, and `most_bytes`. Then what limits it, where
/// it is less than that.
///
/// Errors: no directory, or no room for anything that makes sense.
pub fn size(
    directory: &Path,
    wanted_bytes: u64,
    most_bytes: Option<u64>,
) -> Result<(u64, Option<String>), Error> {
    let free = free_bytes(&on(directory)?);
    let memory = memory::available_bytes().unwrap_or(u64::MAX);
    let limits = [
        (most_bytes.unwrap_or(u64::MAX), "--max-write".to_owned()),
        (part_of(free), format!("{} free, of which one tenth", size_text(free))),
        (memory / MEMORY_PART, format!("{} of memory, of which a quarter", size_text(memory))),
    ];
    size_within(directory, wanted_bytes, limits)
}

/// The same within these limits, and that on the length of files which whoever started this process set.
///
/// Errors: no room for anything that makes sense.
pub(crate) fn size_within(
    directory: &Path,
    wanted_bytes: u64,
    limits: impl IntoIterator<Item = (u64, String)>,
) -> Result<(u64, Option<String>), Error> {
    let longest = soft_limit(Resource::Fsize).unwrap_or(u64::MAX);
    let own = [(wanted_bytes, "--size".to_owned()), (longest, "ulimit -f".to_owned())];
    // What leaves least is what is said.
    let all = own.into_iter().chain(limits);
    let (size, limit) = all.min_by_key(|(size, _)| *size).unwrap_or_default();
    if size < LEAST_BYTES {
        return Err(Error::NoRoom(format!(
            "cannot measure in {directory:?}: a test file of at least {} is needed, but {} may be taken \
             ({limit})",
            size_text(LEAST_BYTES),
            size_text(size)
        )));
    }
    let [size, wanted] = [size, wanted_bytes].map(|bytes| bytes - bytes % LEAST_BYTES);
    Ok((size, (size < wanted).then_some(limit)))
}

/// Bytes that may be taken where so many are free.
pub fn part_of(free_bytes: u64) -> u64 {
    free_bytes / FREE_PART
}

/// The filesystem of a directory.
pub fn on(directory: &Path) -> Result<Filesystem, Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(directory, flags, Mode::empty())
        .map_err(IoError::system("open the directory", directory))?;
    Ok(filesystem::of(opened.as_fd()).map_err(IoError::system("examine", directory))?)
}

/// From which length on copies of files share extents in this directory (FICLONE, ioctl_ficlone(2)), asked
/// without writing a byte; `None` where none do, and where no file can be made.
pub(crate) fn shared_from_bytes(directory: &Path) -> Option<u64> {
    let nameless = || open_unnamed(directory).ok();
    let (source, target) = nameless().zip(nameless())?;
    rustix::fs::ioctl_ficlone(&target, &source).ok()?;
    // `flatout copy` reads and writes shorter ones on xfs.
    let least_bytes = |name| if name == "xfs" { XFS_SHARED_BYTES } else { 0 };
    on(directory).ok().map(|filesystem| least_bytes(filesystem.name))
}

/// A test file that is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Length in bytes; less where time is short.
    pub length_bytes: u64,
    /// Which random data.
    pub seed: u64,
    /// Bytes written at a time, [`CHUNK_BYTES`] where it does not matter: the page cache remembers them.
    pub chunk_bytes: usize,
    /// When it should be ready, on the system's clock; [`u64::MAX`]: when it is.
    pub ends_ns: u64,
    /// The wish to stop.
    pub cancel: CancelToken,
}

/// An unnamed file.
pub struct Scratch {
    file: File,
    length_bytes: u64,
    /// Where it has a name nevertheless, because /proc, which would be the way to it, is missing.
    folder: Option<TestDirectory>,
}

impl Scratch {
    /// Makes an unnamed file of random data in `directory` and writes it back. Where it is not
    /// ready in time, it ends with what is written by then, a piece at least.
    ///
    /// Errors: those of the kernel. A wish to stop leaves the file short; its caller looks.
    pub fn make(
        directory: &Path,
        wanted: Wanted,
        events: &mut dyn FnMut(Event),
    ) -> Result<Self, Error> {
        let Wanted { length_bytes, seed, chunk_bytes, ends_ns, cancel } = wanted;
        let mut made = Self { length_bytes, ..Self::empty(directory)? };
        let sync = || IoError::system("sync the test file in", directory);
        let (piece_bytes, begun_ns) = (piece_bytes(length_bytes), monotonic_ns());
        let mut chunk = vec![0; chunk_bytes];
        let mut done = 0;
        while done < made.length_bytes {
            let part = chunk_bytes.min((length_bytes - done) as usize);
            fill_random(&mut chunk[..part], seed, done);
            let wrote = made.file.write_all_at(&chunk[..part], done);
            wrote.map_err(IoError::system("write a test file in", directory))?;
            done += part as u64;
            if done.is_multiple_of(16 << 20) {
                let what = "writing the test file".to_owned();
                events(Event::Preparing { what });
            }
            // Nobody will read it: what it takes to write it back is saved.
            if cancel.is_cancelled() {
                return Ok(made);
            }
            if ends_ns == u64::MAX || !done.is_multiple_of(piece_bytes) {
                continue;
            }
            rustix::fs::fdatasync(&made.file).map_err(sync())?;
            let now_ns = monotonic_ns();
            let each_ns = (now_ns - begun_ns) / (done / piece_bytes);
            if now_ns.saturating_add(each_ns) > ends_ns {
                made.length_bytes = done;
            }
        }
        rustix::fs::fsync(&made.file).map_err(sync())?;
        Ok(made)
    }

    /// Makes an unnamed file without content in `directory`.
    ///
    /// Errors: those of the kernel.
    pub fn empty(directory: &Path) -> Result<Self, Error> {
        let unnamed = Self { file: open_unnamed(directory)?, length_bytes: 0, folder: None };
        if rustix::fs::access(unnamed.path(), Access::EXISTS).is_ok() {
            return Ok(unnamed);
        }
        Self::named(directory)
    }

    /// Where no path leads to an unnamed file: one in a directory that goes away with it.
    fn named(directory: &Path) -> Result<Self, Error> {
        let folder = TestDirectory::make(directory)?;
        let opened = File::options().read(true).write(true).create_new(true).open(in_(&folder));
        let file = opened.map_err(IoError::system("make a test file in", directory))?;
        Ok(Self { file, length_bytes: 0, folder: Some(folder) })
    }

    /// A name under which this process can open the file once more.
    pub fn path(&self) -> PathBuf {
        let through_proc = || PathBuf::from(descriptor::itself(&self.file));
        self.folder.as_ref().map_or_else(through_proc, in_)
    }

    /// Length in bytes.
    pub fn length_bytes(&self) -> u64 {
        self.length_bytes
    }

    /// The descriptor.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The name of a test file that has one.
fn in_(folder: &TestDirectory) -> PathBuf {
    folder.path().join("file-0")
}

/// Whole chunks after which the time is looked at.
fn piece_bytes(length_bytes: u64) -> u64 {
    let chunk = CHUNK_BYTES as u64;
    let piece = (length_bytes / PIECES).clamp(chunk, MOST_PIECE_BYTES);
    piece - piece % chunk
}

/// A file without a name or content in `directory`.
///
/// Errors: those of the kernel.
pub(crate) fn open_unnamed(directory: &Path) -> Result<File, Error> {
    let made = flatout_tree::unnamed_file(directory).map(File::from);
    Ok(made.map_err(IoError::system("make a test file in", directory))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_its_bytes_and_no_name() {
        let directory = tempfile::tempdir().unwrap();
        let never = CancelToken::manual();
        let wanted = Wanted {
            length_bytes: 3 << 20,
            seed: 7,
            chunk_bytes: CHUNK_BYTES,
            ends_ns: u64::MAX,
            cancel: never,
        };
        let scratch = Scratch::make(directory.path(), wanted, &mut |_| {}).unwrap();
        assert_eq!(std::fs::read(scratch.path()).unwrap().len(), 3 << 20);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        // Time that was over before it began leaves a piece.
        let late = Wanted { ends_ns: 0, ..wanted };
        let scratch = Scratch::make(directory.path(), late, &mut |_| {}).unwrap();
        assert_eq!(scratch.length_bytes(), 1 << 20);
        assert_eq!(std::fs::read(scratch.path()).unwrap().len(), 1 << 20);
        // A wish to stop ends it after the chunk.
        let cancel = CancelToken::manual();
        cancel.cancel();
        let stopped = Wanted { chunk_bytes: 4096, cancel, ..wanted };
        let scratch = Scratch::make(directory.path(), stopped, &mut |_| {}).unwrap();
        assert_eq!(std::fs::read(scratch.path()).unwrap().len(), 4096);
    }

    #[test]
    fn time_is_looked_at_every_sixteenth_of_a_file_and_every_64_mib() {
        assert_eq!(piece_bytes(1 << 20), 1 << 20);
        assert_eq!(piece_bytes((256 << 20) + 5), 16 << 20);
        assert_eq!(piece_bytes(8 << 30), 64 << 20);
    }

    #[test]
    fn the_size_obeys_its_limits() {
        let directory = tempfile::tempdir().unwrap();
        let (bytes, limit) = size(directory.path(), 8 << 20, Some(2 << 20)).unwrap();
        assert_eq!((bytes, limit.as_deref()), (2 << 20, Some("--max-write")));
        assert_eq!(size(directory.path(), 2 << 20, None).unwrap(), (2 << 20, None));
        assert!(matches!(size(directory.path(), 8 << 20, Some(10)), Err(Error::NoRoom(_))));
        assert!(size(Path::new("/nowhere"), 1, None).is_err());
    }
}
