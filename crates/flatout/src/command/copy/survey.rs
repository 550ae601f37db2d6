//! What there is to copy, counted beside the copy so that it can be said how long it still takes.
//! Only for people who look on; nothing depends on it, and nothing is changed by it: where the access
//! time of a directory would be, there is no count.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use flatout_tree::selection::Selection;
use flatout_tree::visit;
use rustix::fs::{FileType, Stat};

/// The unit of `st_blocks`, whatever the block size of the filesystem.
const SECTOR_BYTES: u64 = 512;

/// Files and bytes counted so far.
#[derive(Debug, Default)]
pub struct Survey {
    files: AtomicU64,
    bytes: AtomicU64,
    is_complete: AtomicBool,
    is_abandoned: AtomicBool,
}

/// What there is in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whole {
    /// Regular files.
    pub files: u64,
    /// Their bytes, without holes.
    pub bytes: u64,
}

impl Survey {
    /// Counts what is below these paths, until it is done or abandoned. What cannot be read is
    /// left to the copier to complain about.
    pub fn count(&self, paths: &[PathBuf], selection: &Selection) {
        for path in paths {
            let Ok(facts) = rustix::fs::lstat(path) else { continue };
            let is_directory = FileType::from_raw_mode(facts.st_mode).is_dir();
            let name = path.file_name().map(|name| name.as_bytes()).unwrap_or_default();
            if !(is_directory || selection.takes_operand(name) && selection.is_within(&facts)) {
                continue;
            }
            self.add(&facts);
            if is_directory {
                // Where the count ends early, no share of the whole is shown.
                let visited = visit::visit_unseen(path, selection, |entry| {
                    self.add(&entry.facts);
                    if self.is_abandoned.load(Ordering::Relaxed) {
                        return Err(io::Error::from(io::ErrorKind::Interrupted));
                    }
                    Ok(())
                });
                if visited.is_err() {
                    return;
                }
            }
        }
        self.is_complete.store(true, Ordering::Release);
    }

    fn add(&self, facts: &Stat) {
        if FileType::from_raw_mode(facts.st_mode).is_file() {
            let allocated = (facts.st_blocks as u64).saturating_mul(SECTOR_BYTES);
            self.files.fetch_add(1, Ordering::Relaxed);
            self.bytes.fetch_add((facts.st_size as u64).min(allocated), Ordering::Relaxed);
        }
    }

    /// Ends the count: nobody looks on any more.
    pub fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Relaxed);
    }

    /// What there is, once it is known.
    pub fn whole(&self) -> Option<Whole> {
        self.is_complete.load(Ordering::Acquire).then(|| Whole {
            files: self.files.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn counting_changes_no_access_time() {
        let place = tempfile::tempdir().unwrap();
        // Deep enough for directories that are let go and opened again.
        let mut paths = vec![place.path().to_owned()];
        for depth in 0..100 {
            let path = paths[depth].join("d");
            std::fs::create_dir(&path).unwrap();
            std::fs::create_dir(paths[depth].join("beside")).unwrap();
            paths.push(path);
        }
        let old = UNIX_EPOCH + Duration::from_secs(1);
        for path in &paths {
            let directory = std::fs::File::open(path).unwrap();
            directory.set_times(std::fs::FileTimes::new().set_accessed(old)).unwrap();
        }
        let survey = Survey::default();
        survey.count(&[place.path().to_owned()], &Selection::default());
        assert_eq!(survey.whole(), Some(Whole { files: 0, bytes: 0 }));
        for path in &paths {
            assert_eq!(path.metadata().unwrap().accessed().unwrap(), old, "{path:?}");
        }
    }

    #[test]
    fn files_are_counted_without_their_holes() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("below")).unwrap();
        std::fs::write(place.path().join("below/file"), [7; 10_000]).unwrap();
        std::fs::write(place.path().join("one"), [7; 5_000]).unwrap();
        std::fs::File::create(place.path().join("hole")).unwrap().set_len(1 << 40).unwrap();
        // Not every filesystem has given a file its blocks before it is written out.
        for file in ["below/file", "one"] {
            std::fs::File::open(place.path().join(file)).unwrap().sync_all().unwrap();
        }
        let survey = Survey::default();
        assert_eq!(survey.whole(), None);
        let paths = ["one", "below", "hole"].map(|name| place.path().join(name));
        survey.count(&paths, &Selection::default());
        assert_eq!(survey.whole(), Some(Whole { files: 3, bytes: 15_000 }));
        let abandoned = Survey::default();
        abandoned.abandon();
        abandoned.count(&[place.path().to_owned()], &Selection::default());
        assert_eq!(abandoned.whole(), None);
    }
    #[test]
    fn only_what_is_selected_is_counted() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(place.path().join("a/b")).unwrap();
        for name in ["a/keep", "a/b/keep", "a/b/drop", "large"] {
            let bytes = if name == "large" { 9_000 } else { 1_000 };
            std::fs::write(place.path().join(name), vec![7; bytes]).unwrap();
            std::fs::File::open(place.path().join(name)).unwrap().sync_all().unwrap();
        }
        std::fs::write(place.path().join("a/.gitignore"), "/b/drop\n.gitignore\n").unwrap();
        let survey = Survey::default();
        let selection =
            Selection { obeys_gitignore: true, sizes: (None, Some(5_000)), ..Selection::default() };
        survey.count(&[place.path().to_owned(), place.path().join("large")], &selection);
        assert_eq!(survey.whole(), Some(Whole { files: 2, bytes: 2_000 }));
    }
}
