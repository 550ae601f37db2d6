//! A file opened for reading, and the ways to open it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use flatout_sys::{extent, filesystem, usage};
use rustix::fs::{FileType, Mode, OFlags, SeekFrom};
use rustix::io::{Errno, ReadWriteFlags};

use crate::around;
use crate::error::{Error, cause_text};
use crate::fallback::Fallback;
use crate::tuning::Caching;

/// The name that stands for standard input.
pub const STANDARD_INPUT: &str = "-";

/// What can be done with a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Known length, any part at any time: regular files and block devices.
    Sized,
    /// Read from front to end until there is no more, and reading never waits for somebody:
    /// memory devices, a file that was begun by somebody else.
    Endless,
    /// Read from front to end as somebody sends it: pipes, sockets, terminals, and the files of
    /// /proc and /sys, whose length means nothing.
    Stream,
}

/// A file opened for reading.
#[derive(Debug)]
pub struct Source {
    file: OwnedFd,
    path: PathBuf,
    kind: Kind,
    length_bytes: u64,
    caching: Caching,
    regular: bool,
}

impl Source {
    /// Gives the source the caching asked for, or leaves it buffered and says why.
    /// `block_bytes` is the request size for which direct I/O has to be possible.
    pub fn with_caching(self, caching: Caching, block_bytes: u64) -> (Self, Option<Fallback>) {
        match self.reopened_around(caching, block_bytes) {
            Ok(Some(file)) => (Self { file, caching, ..self }, None),
            Ok(None) => (Self { caching, ..self }, None),
            Err(why) => (self, Some(around::refused(caching, &why, "read"))),
        }
    }

    /// The file opened anew for a caching, where that needs a descriptor of its own; or why it cannot
    /// be had.
    fn reopened_around(
        &self,
        caching: Caching,
        block_bytes: u64,
    ) -> Result<Option<OwnedFd>, String> {
        if caching != Caching::Buffered && self.kind != Kind::Sized {
            return Err("it is not a file of known length".to_owned());
        }
        let lengths = (block_bytes, self.length_bytes);
        around::obstacle(self.file(), caching, lengths).map_or(Ok(()), Err)?;
        if caching != Caching::Direct {
            return Ok(None);
        }
        let opened = around::reopen(self.file(), caching, (OFlags::RDONLY, &self.path));
        let why = |errno: Errno| format!("opening with O_DIRECT: {}", cause_text(&errno.into()));
        opened.map(Some).map_err(why)
    }

    /// Opens `path` (`-`: standard input) buffered.
    ///
    /// Errors: the open's; a directory is refused.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let fail = |operation| Error::system(operation, path);
        let file = if path == Path::new(STANDARD_INPUT) {
            rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).map_err(fail("open"))?
        } else {
            // Without NONBLOCK, opening a named pipe waits for its writer and obeys no deadline.
            let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
            let file = rustix::fs::open(path, flags, Mode::empty()).map_err(fail("open"))?;
            rustix::fs::fcntl_setfl(&file, OFlags::empty()).map_err(fail("open"))?;
            file
        };
        Self::of(file, path)
    }

    /// A file that is open already, which `path` names in messages.
    ///
    /// Errors: it cannot be examined; a directory is refused.
    pub fn of(file: OwnedFd, path: &Path) -> Result<Self, Error> {
        let fail = |operation| Error::system(operation, path);
        let facts = rustix::fs::fstat(&file).map_err(fail("examine"))?;
        let (kind, length_bytes) = match FileType::from_raw_mode(facts.st_mode) {
            FileType::Directory => {
                let source = std::io::Error::from(Errno::ISDIR);
                return Err(Error::System { operation: "read", path: path.to_owned(), source });
            }
            FileType::RegularFile if facts.st_size > 0 && !is_pseudo(&file, &facts) => {
                (Kind::Sized, facts.st_size as u64)
            }
            FileType::RegularFile => (Kind::Stream, 0),
            FileType::BlockDevice => (Kind::Sized, end_of(&file).map_err(fail("measure"))?),
            FileType::CharacterDevice if is_memory_device(facts.st_rdev) => (Kind::Endless, 0),
            _ => (Kind::Stream, 0),
        };
        let regular = FileType::from_raw_mode(facts.st_mode) == FileType::RegularFile;
        // Whoever used standard input before us has read a part of it: we go on from there.
        let begun = rustix::fs::tell(&file).is_ok_and(|position| position > 0);
        let kind = if kind == Kind::Sized && begun { Kind::Endless } else { kind };
        Ok(Self {
            file,
            path: path.to_owned(),
            kind,
            length_bytes,
            caching: Caching::Buffered,
            regular,
        })
    }

    /// The same file with a descriptor (and position) of its own, for another lane. A stream has
    /// one position only, and opening a named pipe again would wait for another writer: there,
    /// and where /proc is missing, the descriptor is a copy.
    ///
    /// Errors: `EMFILE` and the like.
    pub fn reopen(&self) -> Result<Self, Error> {
        let own_position = match self.kind {
            Kind::Sized => around::reopen(self.file(), self.caching, (OFlags::RDONLY, &self.path)),
            Kind::Endless | Kind::Stream => Err(Errno::NODEV),
        };
        let file = match own_position {
            Ok(file) => file,
            Err(errno @ (Errno::MFILE | Errno::NFILE)) => {
                return Err(Error::system("open", &self.path)(errno));
            }
            Err(_) => rustix::io::fcntl_dupfd_cloexec(&self.file, 3)
                .map_err(Error::system("open", &self.path))?,
        };
        Ok(Self { file, path: self.path.clone(), ..*self })
    }

    /// The descriptor.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The descriptor alone.
    pub fn into_file(self) -> OwnedFd {
        self.file
    }

    /// The name under which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What can be done with it.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Length when it was opened; 0 for streams.
    pub fn length_bytes(&self) -> u64 {
        self.length_bytes
    }

    /// How the page cache takes part.
    pub fn caching(&self) -> Caching {
        self.caching
    }

    /// Length now, which is another one when somebody cut or extended the file.
    pub fn length_now_bytes(&self) -> Result<u64, Error> {
        match rustix::fs::fstat(&self.file) {
            Ok(facts) if self.regular => Ok(facts.st_size as u64),
            Ok(_) => Ok(self.length_bytes),
            Err(errno) => Err(Error::system("examine", &self.path)(errno)),
        }
    }

    /// Share of the file in the page cache in percent, from a sample of reads that must not wait
    /// (`RWF_NOWAIT`); for files about which cachestat(2) tells this process nothing. `None` when
    /// the filesystem does not know such reads.
    pub fn sampled_cache_percent(&self, end_bytes: u64) -> Option<u8> {
        const SAMPLES: u64 = 32;
        let mut cached = 0;
        for sample in 0..SAMPLES {
            let mut byte = [0];
            let mut buffers = [std::io::IoSliceMut::new(&mut byte)];
            let offset = end_bytes / SAMPLES * sample;
            let fetched_bytes = || usage::process_io().map(|totals| totals.device_read_bytes);
            let before = fetched_bytes();
            match rustix::io::preadv2(&self.file, &mut buffers, offset, ReadWriteFlags::NOWAIT) {
                // The kernel asks the device even so, and some devices answer before it looks.
                Ok(_) => cached += u64::from(fetched_bytes() == before),
                Err(Errno::AGAIN) => {}
                Err(_) => return None,
            }
        }
        Some((cached * 100 / SAMPLES) as u8)
    }

    /// Reads a few bytes outside of any scan. False when they are not there.
    pub fn sample(&self, offset_bytes: u64, bytes: &mut [u8]) -> bool {
        if self.kind != Kind::Sized {
            return false;
        }
        // Direct descriptors want aligned memory; a fresh buffered one does not.
        let opened = around::reopen(self.file(), Caching::Buffered, (OFlags::RDONLY, &self.path));
        let Ok(file) = opened else { return false };
        rustix::io::pread(file, &mut *bytes, offset_bytes).is_ok_and(|got| got == bytes.len())
    }

    /// Bytes of storage that belong to the file; `None` for what is no regular file.
    pub fn allocated_bytes(&self) -> Option<u64> {
        let facts = rustix::fs::fstat(&self.file).ok()?;
        self.regular.then_some((facts.st_blocks as u64).saturating_mul(512))
    }

    /// Bytes in holes and in extents that were allocated but never written: they cost no device
    /// any work. Looks at no more than the first 4096 pieces. Cost: two lseeks per piece.
    pub fn hole_bytes(&self) -> u64 {
        const MAX_PIECES: u32 = 4096;
        if !self.regular || self.kind != Kind::Sized {
            return 0;
        }
        // The offset of the descriptor is shared with nobody who reads by it.
        let found = extent::by_seeking(self.file(), 0..self.length_bytes, MAX_PIECES);
        found.map_or(0, |found| found.hole_bytes)
    }

    /// Bytes that the filesystem stores compressed, as far as the first pieces tell. Cost: 16 ioctls
    /// at most.
    pub fn compressed_bytes(&self) -> u64 {
        let is_file = self.regular && self.kind == Kind::Sized;
        let found = is_file.then(|| extent::compressed_bytes(self.file(), self.length_bytes));
        found.flatten().unwrap_or(0)
    }
}

/// Where a file ends. Its position stays where it was.
fn end_of(file: &OwnedFd) -> Result<u64, Errno> {
    let position = rustix::fs::tell(file)?;
    let end = rustix::fs::seek(file, SeekFrom::End(0))?;
    rustix::fs::seek(file, SeekFrom::Start(position)).map(|_| end)
}

/// Whether a file is made up as it is read, so that its length means nothing (sysfs says 4096).
fn is_pseudo(file: &OwnedFd, facts: &rustix::fs::Stat) -> bool {
    const MOST_BYTES: i64 = 1 << 20;
    let name = filesystem::of(file.as_fd()).map_or("unknown", |filesystem| filesystem.name);
    match name {
        "proc" | "sysfs" => true,
        // debugfs, cgroupfs and their like have no blocks; a short file of a real filesystem may
        // have none either, and loses nothing by being read from front to end.
        "unknown" => facts.st_blocks == 0 && facts.st_size <= MOST_BYTES,
        _ => false,
    }
}

/// /dev/null, zero, full, random and urandom: character devices of major 1 that never wait, unlike
/// /dev/kmsg (1:11).
fn is_memory_device(device: u64) -> bool {
    const KMSG_MINOR: u32 = 11;
    rustix::fs::major(device) == 1 && rustix::fs::minor(device) != KMSG_MINOR
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &str) -> Source {
        Source::open(Path::new(path)).unwrap()
    }

    #[test]
    fn kinds_are_told_apart() {
        assert_eq!(open("/proc/self/status").kind(), Kind::Stream);
        assert_eq!(open("/sys/kernel/mm/transparent_hugepage/enabled").kind(), Kind::Stream);
        assert_eq!(open("/dev/zero").kind(), Kind::Endless);
        assert_eq!(open("/proc/self/exe").kind(), Kind::Sized);
    }

    #[test]
    fn a_directory_is_refused_with_its_name() {
        let error = Source::open(Path::new("/proc")).unwrap_err();
        assert_eq!(error.to_string(), "cannot read \"/proc\": Is a directory");
    }

    #[test]
    fn direct_with_an_odd_block_falls_back_and_says_so() {
        let opened = open("/proc/self/exe").with_caching(Caching::Direct, 1000);
        assert_eq!(opened.0.caching(), Caching::Buffered);
        assert_eq!(opened.1.unwrap().code, "direct_refused");
    }

    #[test]
    fn looking_for_the_end_moves_no_position() {
        use std::io::Seek;
        let mut file = tempfile::tempfile().unwrap();
        file.set_len(10).unwrap();
        file.seek(std::io::SeekFrom::Start(3)).unwrap();
        let file = OwnedFd::from(file);
        assert_eq!((end_of(&file), rustix::fs::tell(&file)), (Ok(10), Ok(3)));
    }

    #[test]
    fn holes_are_counted() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        let source = open(file.path().to_str().unwrap());
        assert_eq!(source.hole_bytes(), 1 << 20);
        std::fs::write(file.path(), vec![1; 1 << 20]).unwrap();
        assert_eq!(open(file.path().to_str().unwrap()).hole_bytes(), 0);
    }
}
