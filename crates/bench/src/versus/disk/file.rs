//! The test file that all heats of the disk share: random bytes, made once and kept.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use flatout_io::Error as IoError;
use flatout_sys::cancel::CancelToken;
use flatout_sys::generator::fill_random;
use flatout_sys::page_cache;
use serde_json::{Map, Value, json};

use super::seen::wrong;
use crate::error::Error;

const CHUNK_BYTES: usize = 1 << 20;

/// The file, there or to be made.
#[derive(Debug, Clone)]
pub(super) struct TestFile {
    pub(super) path: PathBuf,
    pub(super) length_bytes: u64,
    pub(super) seed: u64,
    pub(super) cancel: CancelToken,
}

impl TestFile {
    /// Where it lies among the corpora.
    pub(super) fn path_in(corpora: &Path) -> PathBuf {
        corpora.join("disk").join("file.bin")
    }

    /// Makes it unless it is there in its full length. It has its name only once it is complete.
    ///
    /// Errors: those of the kernel; the user wants to stop. What was begun is removed.
    fn ensure(&self) -> Result<(), Error> {
        let is_there = fs::symlink_metadata(&self.path)
            .is_ok_and(|facts| facts.is_file() && facts.len() == self.length_bytes);
        if is_there {
            return Ok(());
        }
        let parent = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(parent).map_err(IoError::system("create", parent))?;
        let begun = self.path.with_extension("part");
        let made = self.fill(&begun).and_then(|()| {
            fs::rename(&begun, &self.path).map_err(|e| IoError::system("rename", &begun)(e).into())
        });
        if made.is_err() {
            // What went wrong first is what is told.
            let _ = fs::remove_file(&begun);
        }
        made
    }

    fn fill(&self, path: &Path) -> Result<(), Error> {
        let fail = |error| Error::from(IoError::system("write the test file", path)(error));
        // Left by a run that was killed.
        let _ = fs::remove_file(path);
        let mut file = OpenOptions::new().write(true).create_new(true).open(path).map_err(fail)?;
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut done = 0;
        while done < self.length_bytes {
            if self.cancel.is_cancelled() {
                return Err(wrong("interrupted while the test file was made"));
            }
            let part = CHUNK_BYTES.min((self.length_bytes - done) as usize);
            fill_random(&mut chunk[..part], self.seed, done);
            file.write_all(&chunk[..part]).map_err(fail)?;
            done += part as u64;
        }
        file.sync_data().map_err(fail)
    }

    /// Makes it where it is not, takes it out of the page cache, and tells what is left there.
    ///
    /// Errors: it cannot be made or opened, or nobody can tell what the cache holds.
    pub(super) fn evict(&self) -> Result<Cleared, Error> {
        self.ensure()?;
        let fail =
            |error| Error::from(IoError::system("clear from the page cache", &self.path)(error));
        let file = File::open(&self.path).map_err(fail)?;
        let left = page_cache::evict(file.as_fd(), 0, self.length_bytes).map_err(fail)?;
        Ok(Cleared { cached_bytes: left.cached_bytes, length_bytes: self.length_bytes })
    }
}

/// What the page cache still holds of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cleared {
    pub(super) cached_bytes: u64,
    length_bytes: u64,
}

impl Cleared {
    /// Less than one part in this many is no reason to doubt a cold read.
    const SLACK: u64 = 100;

    pub(super) fn is_cold(self) -> bool {
        self.cached_bytes <= self.length_bytes / Self::SLACK
    }

    pub(super) fn audit(self) -> Map<String, Value> {
        let mut audit = Map::new();
        audit.insert("cached_before_bytes".to_owned(), json!(self.cached_bytes));
        audit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(directory: &Path, length_bytes: u64, cancel: CancelToken) -> TestFile {
        TestFile { path: TestFile::path_in(directory), length_bytes, seed: 1, cancel }
    }

    #[test]
    fn it_is_made_once_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let length = (3 << 20) + 5;
        let made = file(directory.path(), length, CancelToken::manual());
        made.evict().unwrap();
        let first = fs::read(&made.path).unwrap();
        assert_eq!(first.len() as u64, length);
        assert!(first.chunks(4096).all(|block| block.iter().any(|&byte| byte != block[0])));
        fs::write(&made.path, vec![7; length as usize]).unwrap();
        made.evict().unwrap();
        assert_eq!(fs::read(&made.path).unwrap()[0], 7, "a complete file is left as it is");
        fs::write(&made.path, b"short").unwrap();
        made.evict().unwrap();
        assert_eq!(fs::read(&made.path).unwrap(), first, "an incomplete one is made anew");
    }

    #[test]
    fn nothing_half_made_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let cancel = CancelToken::manual();
        cancel.cancel();
        let made = file(directory.path(), 8 << 20, cancel);
        assert!(made.evict().unwrap_err().to_string().contains("interrupted"));
        assert_eq!(fs::read_dir(made.path.parent().unwrap()).unwrap().count(), 0);
    }
}
