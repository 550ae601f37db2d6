//! What races read: a corpus, as files of one size, made once per directory, kept, and brought into a
//! state of the cache.

use std::path::PathBuf;

use flatout_measure::Facts;
use flatout_sys::CancelToken;

use crate::corpus::{Corpus, Shape, make};
use crate::versus::{Ground, State, state};
use crate::{Clearing, Error};

/// A tree, or one file in it.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) corpus: Corpus,
    corpora: PathBuf,
    cancel: CancelToken,
    /// Whether it was found whole, or made.
    is_made: bool,
}

impl Source {
    /// So many files of so many bytes, to lie among the corpora.
    pub(super) fn new(ground: &Ground, files: u64, file_bytes: u64) -> Self {
        Self::of(ground, Corpus::spread(format!("{files}x{file_bytes}"), files, file_bytes))
    }

    /// A corpus, to lie among the others, or a tree of the user's.
    pub(super) fn of(ground: &Ground, corpus: Corpus) -> Self {
        Self { corpus, corpora: ground.corpora(), cancel: ground.cancel, is_made: false }
    }

    /// The same under a name of its own, for a race that writes to it.
    pub(super) fn named(mut self, name: &str) -> Self {
        self.corpus.name = name.to_owned();
        self
    }

    /// The file, or the directory above all of them.
    pub(super) fn path(&self) -> PathBuf {
        let root = self.root();
        if self.files().is_some() { root } else { root.join("file-000000") }
    }

    /// The directory above all files.
    pub(super) fn root(&self) -> PathBuf {
        match &self.corpus.shape {
            Shape::Given(path) => path.clone(),
            _ => self.corpora.join(&self.corpus.name),
        }
    }

    /// How many files, where it is not one.
    pub(super) fn files(&self) -> Option<u64> {
        Some(self.corpus.files).filter(|&files| files > 1)
    }

    /// Makes it unless it is there, in time: once that is over, as after a wish to stop, nothing is
    /// left.
    ///
    /// Errors: those of the kernel, and the end of the time.
    pub(super) fn make(&mut self, ends_ns: u64) -> Result<(), Error> {
        if !self.is_made {
            make::ensure(&self.corpus, &self.corpora, self.cancel.until(ends_ns))?;
            self.is_made = true;
        }
        Ok(())
    }

    /// Makes it and brings it wholly into the page cache, or wholly out of it.
    ///
    /// Errors: the state was not reached: memory is short, or somebody holds the file.
    pub(super) fn prepare(&mut self, state: State, ends_ns: u64) -> Result<Facts, Error> {
        self.make(ends_ns)?;
        let root = self.root();
        state::settle(&root)?;
        state::bring(&root, state, Clearing::File, self.cancel.until(ends_ns))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::fd::AsFd;
    use std::path::Path;

    use flatout_sys::page_cache;

    use super::*;

    fn source(corpora: &Path, files: u64) -> Source {
        let (corpora, cancel) = (corpora.to_owned(), CancelToken::manual());
        Source { corpus: Corpus::spread("test", files, 5000), corpora, cancel, is_made: false }
    }

    #[test]
    fn files_are_made_once_and_reused() {
        let folder = tempfile::tempdir().unwrap();
        for files in [1, 250] {
            let mut source = source(folder.path(), files);
            let mut again = source.clone();
            source.make(u64::MAX).unwrap();
            assert_eq!((source.path().is_file(), source.corpus.bytes), (files == 1, 5000 * files));
            let made = || fs::metadata(source.root()).unwrap().modified().unwrap();
            let before = made();
            again.make(u64::MAX).unwrap();
            assert_eq!(made(), before);
        }
    }

    #[test]
    fn nothing_is_left_to_be_written_when_a_run_begins() {
        let folder = tempfile::tempdir().unwrap();
        let other = File::create(folder.path().join("other")).unwrap();
        if flatout_sys::filesystem::of(other.as_fd()).unwrap().in_memory {
            return;
        }
        let mut source = source(folder.path(), 3);
        source.make(u64::MAX).unwrap();
        fs::write(folder.path().join("other"), vec![1; 1 << 20]).unwrap();
        source.prepare(State::Hot, u64::MAX).unwrap();
        if let Ok(state) = page_cache::state(other.as_fd(), 0, 1 << 20) {
            assert_eq!(state.dirty_bytes.unwrap_or(0), 0);
        }
    }
}
