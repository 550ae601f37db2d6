//! The state of the page cache before a run, and the proof of it.
//!
//! Whatever the state, what earlier runs left to be written is written first, outside the clock:
//! else a run would pay for the one before it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use flatout_measure::{Facts, Warning, size_text, warning};
use flatout_sys::{CancelToken, page_cache};
use flatout_tree::visit::{Entry, visit};
use rustix::fs::{Advice, SeekFrom, fadvise, seek};
use rustix::io::Errno;

use super::fact;
use crate::versus::State;
use crate::{Clearing, Error, IoError, file_trial};

/// Part of the source that must be in the cache for it to be hot.
const HOT_SHARE: f64 = 0.99;
/// Part of the source that may stay in the cache for it to be cold: what others have mapped cannot
/// be dropped.
const COLD_SHARE: f64 = 0.01;
/// Pages that readahead is still filling cannot be dropped; a moment later they can.
const SWEEPS: u32 = 5;
const SECTOR_BYTES: u64 = 512;

/// Writes out what was written before to the filesystem that `place` lies on.
///
/// Errors: those of syncfs(2), among them that earlier writes were lost.
pub fn settle(place: &Path) -> Result<(), Error> {
    let opened = File::open(place).map_err(IoError::system("open", place))?;
    Ok(rustix::fs::syncfs(&opened).map_err(IoError::system("sync the filesystem of", place))?)
}

/// Brings the files of a tree into a state, and tells what the cache holds then.
///
/// Errors: the state cannot be had: memory is short, or somebody holds the files; or part of the
/// tree cannot be read.
/// Cost: opens every file; reads those that are not in the cache and should be.
pub fn bring(
    root: &Path,
    state: State,
    clearing: Clearing,
    cancel: CancelToken,
) -> Result<Facts, Error> {
    let found = match state {
        State::Cold => cool(root, clearing, cancel)?,
        State::Hot | State::Durable | State::Refresh | State::Unchanged => {
            survey(root, "read the tree", cancel, |file, entry| warm(file, entry, cancel))?
        }
    };
    if !cancel.is_cancelled() {
        found.refuse_unless(state, root)?;
    }
    let mut facts = Facts::default();
    facts.set(fact::SOURCE_DATA_BYTES, found.data_bytes);
    facts.set(fact::CACHE_STATE_PROVED, found.is_known);
    let cached_bytes = found.is_known.then_some(found.cached_bytes);
    facts.set_known(fact::source_cached_bytes(state), cached_bytes);
    if state == State::Cold {
        // Names and inodes stay, unless the caches of the whole system are dropped.
        let cleared = if clearing == Clearing::System { "contents, names" } else { "contents" };
        facts.set(fact::COLD, cleared);
    }
    Ok(facts)
}

/// What is to be said where the state of the cache could not be proved.
pub(crate) fn doubt(facts: &Facts) -> Option<Warning> {
    let text = "the kernel does not tell what the page cache held before a run";
    let is_unproved = facts.flag(fact::CACHE_STATE_PROVED) == Some(false);
    is_unproved.then(|| Warning::new(warning::STATE_UNPROVED, text))
}

/// What the cache holds of the files of a tree.
#[derive(Debug, Clone, Copy)]
struct Found {
    /// Bytes of data, in whole pages.
    data_bytes: u64,
    cached_bytes: u64,
    /// Whether the kernel told it of all files.
    is_known: bool,
}

impl Found {
    fn refuse_unless(self, state: State, root: &Path) -> Result<(), Error> {
        if !self.is_known || self.data_bytes == 0 {
            return Ok(());
        }
        let Self { cached_bytes, data_bytes, .. } = self;
        let share = cached_bytes as f64 / data_bytes as f64;
        let (code, is_so, wanted) = match state {
            State::Cold => (warning::NOT_COLD, share <= COLD_SHARE, "nothing"),
            _ => (warning::NOT_HOT, share >= HOT_SHARE, "all"),
        };
        if is_so {
            return Ok(());
        }
        Err(Error::Warned(Warning::new(
            code,
            format!(
                "the page cache holds {} of the {} in {root:?}, but {wanted} of them is needed for \
                 the state {:?}",
                size_text(cached_bytes),
                size_text(data_bytes),
                state.name()
            ),
        )))
    }
}

/// Does something to each file of a tree, and sums up what the cache holds afterwards; a wish to stop
/// leaves the rest of it out.
fn survey(
    root: &Path,
    operation: &'static str,
    cancel: CancelToken,
    mut each: impl FnMut(BorrowedFd<'_>, &Entry<'_>) -> io::Result<()>,
) -> Result<Found, Error> {
    let page = rustix::param::page_size() as u64;
    let mut found = Found { data_bytes: 0, cached_bytes: 0, is_known: true };
    let visited = visit(root, |entry| {
        let length = entry.facts.st_size as u64;
        if cancel.is_cancelled() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if !entry.is_file() || length == 0 {
            return Ok(());
        }
        let file = entry.open()?;
        each(file.as_fd(), entry)?;
        let data = data_bytes(entry).min(length).next_multiple_of(page);
        found.data_bytes += data;
        match page_cache::state(file.as_fd(), 0, length) {
            // The holes of a sparse file may be cached, too.
            Ok(state) => found.cached_bytes += state.cached_bytes.min(data),
            Err(_) => found.is_known = false,
        }
        Ok(())
    });
    match visited {
        Err(_) if cancel.is_cancelled() => Ok(found),
        visited => Ok(visited.map(|()| found).map_err(IoError::system(operation, root))?),
    }
}

fn is_sparse(entry: &Entry<'_>) -> bool {
    (entry.facts.st_blocks as u64) * SECTOR_BYTES < entry.facts.st_size as u64
}

/// Bytes that are not holes. Small files may lie in their inode, and take no block at all.
fn data_bytes(entry: &Entry<'_>) -> u64 {
    let taken = entry.facts.st_blocks as u64 * SECTOR_BYTES;
    if is_sparse(entry) && entry.facts.st_size as u64 > rustix::param::page_size() as u64 {
        taken
    } else {
        entry.facts.st_size as u64
    }
}

/// Reads a file into the cache; of a sparse one only what is not a hole.
fn warm(file: BorrowedFd<'_>, entry: &Entry<'_>, cancel: CancelToken) -> io::Result<()> {
    let end = entry.facts.st_size as u64;
    if !is_sparse(entry) {
        return file_trial::page_cache::warm(file, end, cancel);
    }
    let data = |from| match seek(file, SeekFrom::Data(from)) {
        Ok(data) => Some((data, seek(file, SeekFrom::Hole(data)).unwrap_or(end))),
        Err(Errno::NXIO) => None,
        // A filesystem that does not tell: everything is read.
        Err(_) => Some((from, end)),
    };
    file_trial::page_cache::read(file, end, cancel, data)
}

/// Drops all files of a tree from the cache. They were written back by [`settle`], or by whoever
/// made them long ago; dirty pages would stay, and be found.
fn cool(root: &Path, clearing: Clearing, cancel: CancelToken) -> Result<Found, Error> {
    settle(root)?;
    file_trial::page_cache::clear_system(clearing)
        .map_err(IoError::system("drop the caches by", Path::new("/proc/sys/vm/drop_caches")))?;
    let mut sweep = 0;
    loop {
        let found = survey(root, "drop from the cache", cancel, |file, _| {
            Ok(fadvise(file, 0, None, Advice::DontNeed)?)
        })?;
        sweep += 1;
        if found.cached_bytes == 0 || sweep == SWEEPS || cancel.is_cancelled() {
            return Ok(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    fn tree() -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("a")).unwrap();
        std::fs::write(place.path().join("a/full"), vec![1; 300_000]).unwrap();
        std::fs::write(place.path().join("small"), "x").unwrap();
        std::fs::write(place.path().join("empty"), "").unwrap();
        let sparse = File::create(place.path().join("sparse")).unwrap();
        sparse.set_len(64 << 20).unwrap();
        sparse.write_all_at(&vec![1; 100_000], 40 << 20).unwrap();
        settle(place.path()).unwrap();
        place
    }

    #[test]
    fn cold_is_proved_and_so_is_hot() {
        let tree = tree();
        let opened = File::open(tree.path()).unwrap();
        if flatout_sys::filesystem::of(opened.as_fd()).unwrap().in_memory {
            return;
        }
        let bring = |state| bring(tree.path(), state, Clearing::File, CancelToken::manual());
        let cold = bring(State::Cold).unwrap();
        assert_eq!(cold.count(fact::source_cached_bytes(State::Cold)), Some(0));
        assert_eq!(cold.text(fact::COLD), Some("contents"));
        for state in [State::Hot, State::Durable, State::Refresh, State::Unchanged] {
            let hot = bring(state).unwrap();
            let data_bytes = hot.count(fact::SOURCE_DATA_BYTES).unwrap();
            assert_eq!(hot.count(fact::source_cached_bytes(state)), Some(data_bytes));
            assert!(data_bytes < 1 << 20, "holes are no data: {hot:?}");
        }
    }

    #[test]
    fn a_state_that_cannot_be_had_is_refused_by_its_code() {
        let found = Found { data_bytes: 1000, cached_bytes: 500, is_known: true };
        for (state, code) in [(State::Cold, warning::NOT_COLD), (State::Hot, warning::NOT_HOT)] {
            match found.refuse_unless(state, Path::new("tree")) {
                Err(Error::Warned(warning)) => assert_eq!(warning.code, code),
                other => panic!("{other:?}"),
            }
        }
        let mapped = Found { data_bytes: 1000, cached_bytes: 9, is_known: true };
        assert!(mapped.refuse_unless(State::Cold, Path::new("tree")).is_ok());
        let untold = Found { data_bytes: 1000, cached_bytes: 500, is_known: false };
        assert!(untold.refuse_unless(State::Cold, Path::new("tree")).is_ok());
    }
}
