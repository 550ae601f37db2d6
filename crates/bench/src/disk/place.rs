//! What the disk area works on: a directory, in which it makes its own files, or a file or block
//! device of the user's, which it only reads unless it is told otherwise.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use flatout_measure::{Warning, warning};
use flatout_sys::{Filesystem, filesystem};
use rustix::io::Errno;

use super::pattern::{IoType, Pattern};
use super::row::Row;
use super::trial;
use crate::{Error, IoError, scratch};

/// Whether a file of the user's may be written over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overwriting {
    /// No.
    Refused,
    /// Yes: its content is lost.
    Allowed,
}

/// The kind of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A block device.
    Device,
}

/// What is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    pub(super) overwriting: Overwriting,
    /// Whether files of the place live in memory and nowhere else.
    pub(super) is_in_memory: bool,
}

impl Place {
    /// Looks at what `path` is.
    ///
    /// Errors: it is not there, or neither a directory nor a regular file nor a block device.
    pub(super) fn find(path: &Path, overwriting: Overwriting) -> Result<Self, Error> {
        let facts = std::fs::metadata(path).map_err(IoError::system("examine", path))?;
        let kind = match facts.file_type() {
            kind if kind.is_dir() => Kind::Directory,
            kind if kind.is_file() => Kind::File,
            kind if kind.is_block_device() => Kind::Device,
            _ => {
                let reason = "it is neither a directory nor a regular file nor a block device";
                return Err(refusal("measure", path, reason).into());
            }
        };
        if kind == Kind::Device && overwriting == Overwriting::Allowed {
            let reason =
                "it is a block device, which flatout never writes to; --overwrite is for files";
            return Err(coded(warning::WRITE_REFUSED, refusal("write to", path, reason)));
        }
        if kind == Kind::File && facts.len() == 0 {
            return Err(coded(warning::EMPTY_FILE, refusal("measure", path, "it is empty")));
        }
        let mut place = Self { overwriting, ..Self::to_come(path, kind) };
        place.is_in_memory =
            kind != Kind::Device && place.filesystem().is_ok_and(|known| known.in_memory);
        Ok(place)
    }

    /// A place that is there when it is needed: a race makes its files later.
    pub(super) fn to_come(path: &Path, kind: Kind) -> Self {
        let overwriting = Overwriting::Allowed;
        Self { path: path.to_owned(), kind, overwriting, is_in_memory: false }
    }

    /// Whether it is a file of the user's that may be written over.
    pub(super) fn may_overwrite(&self) -> bool {
        self.kind == Kind::File && self.overwriting == Overwriting::Allowed
    }

    /// Refuses a pattern that would do here what must not be done.
    pub(super) fn check(&self, pattern: Pattern) -> Result<(), Error> {
        let io_type = pattern.io_type();
        let writes = matches!(io_type, IoType::Write | IoType::Mixed);
        let reason = match self.kind {
            _ if io_type == IoType::Read || writes && self.may_overwrite() => return Ok(()),
            Kind::Directory => return Ok(()),
            Kind::Device if writes => {
                "writes, and it is a block device, which flatout never writes to"
            }
            Kind::File if writes => "writes; --overwrite allows it, and the file's content is lost",
            _ => "makes files of its own and needs a directory",
        };
        let reason = format!("--rw {} {reason}", pattern.word());
        Err(coded(warning::WRITE_REFUSED, refusal("write to", &self.path, &reason)))
    }

    /// Refuses a directory in which no file can be made, a file or device that cannot be read, and one
    /// that cannot be written to but has to be.
    pub(super) fn check_access(&self, writes_over: bool) -> Result<(), Error> {
        let tried = match self.kind {
            Kind::Directory => scratch::open_unnamed(&self.path).map(drop),
            Kind::File | Kind::Device => {
                File::open(&self.path).map_err(IoError::system("open", &self.path))?;
                let opened = File::options().read(true).write(writes_over).open(&self.path);
                let fail = IoError::system("write to", &self.path);
                opened.map(drop).map_err(|error| fail(error).into())
            }
        };
        tried.map_err(|error| match error {
            Error::Io(IoError::System { ref source, .. }) if is_denied(source) => {
                coded(warning::READ_ONLY, error)
            }
            other => other,
        })
    }

    /// Refuses a file of which no row has a block.
    pub(super) fn check_length(&self, rows: &[Row], most_bytes: Option<u64>) -> Result<(), Error> {
        let least = rows.iter().map(|row| row.tuning.block_bytes).min();
        let (Kind::File, Some(least)) = (self.kind, least) else { return Ok(()) };
        let facts =
            std::fs::metadata(&self.path).map_err(IoError::system("examine", &self.path))?;
        let length = facts.len().min(most_bytes.unwrap_or(u64::MAX));
        if length >= least {
            return Ok(());
        }
        let reason = trial::too_short(length, least);
        Err(coded(warning::SHORT_FILE, refusal("measure", &self.path, &reason)))
    }

    /// The filesystem with the place on it; of a device, the one that its name lies on.
    pub(super) fn filesystem(&self) -> Result<Filesystem, Error> {
        let file = File::open(&self.path).map_err(IoError::system("open", &self.path))?;
        Ok(filesystem::of(file.as_fd()).map_err(IoError::system("examine", &self.path))?)
    }
}

fn refusal(operation: &'static str, path: &Path, reason: &str) -> IoError {
    IoError::Refused { operation, path: path.to_owned(), reason: reason.to_owned() }
}

/// An error that programs know by a code.
fn coded(code: &str, error: impl std::fmt::Display) -> Error {
    Error::Warned(Warning::new(code, error.to_string()))
}

fn is_denied(error: &std::io::Error) -> bool {
    let known = [Errno::ROFS, Errno::ACCESS, Errno::PERM];
    Errno::from_io_error(error).is_some_and(|errno| known.contains(&errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_only_until_the_user_says_otherwise() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(4096).unwrap();
        let place = Place::find(file.path(), Overwriting::Refused).unwrap();
        assert_eq!((place.kind, place.may_overwrite()), (Kind::File, false));
        assert!(place.check(Pattern::RandomRead).is_ok());
        for pattern in [Pattern::RandomWrite, Pattern::Mixed, Pattern::SequentialWrite] {
            let text = place.check(pattern).unwrap_err().to_string();
            assert!(text.contains("--overwrite allows it"), "{text}");
        }
        let place = Place::find(file.path(), Overwriting::Allowed).unwrap();
        assert!(place.check(Pattern::RandomWrite).is_ok());
        assert!(place.check(Pattern::SequentialCopy).is_err());
        assert!(place.check(Pattern::Metadata).is_err());
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let find = |path: &Path| Place::find(path, Overwriting::Refused);
        assert_eq!(find(directory.path()).unwrap().kind, Kind::Directory);
        let empty = directory.path().join("empty");
        std::fs::write(&empty, "").unwrap();
        assert!(find(&empty).unwrap_err().to_string().contains("it is empty"));
        assert!(find(&directory.path().join("missing")).is_err());
        assert!(find(Path::new("/dev/null")).unwrap_err().to_string().contains("neither"));
    }
}
