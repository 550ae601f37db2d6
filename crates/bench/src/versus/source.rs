//! Files that races read: made once per directory, kept, and brought into a state of the cache.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use flatout_io::Error as IoError;
use flatout_measure::fact::Facts;
use flatout_sys::cancel::CancelToken;
use flatout_sys::generator::fill_random;
use flatout_tree::remove::remove_tree;

use super::fact;
use crate::corpus::Tally;
use crate::error::Error;
use crate::file_trial::evidence::MISSED_SHARE;
use crate::file_trial::page_cache::{CacheStart, Clearing, Pages};
use crate::versus::{State, state};

/// Bytes written and compared at a time.
const CHUNK_BYTES: usize = 1 << 20;
/// Files per folder where there are many.
const FILES_PER_FOLDER: u64 = 100;

/// One file, or many of one length.
#[derive(Debug, Clone)]
pub(super) struct Source {
    /// The file or the folder of the files.
    pub(super) path: PathBuf,
    /// Files; 0: the path is the one file itself.
    pub(super) files: u64,
    /// Length of each.
    pub(super) file_bytes: u64,
    pub(super) seed: u64,
    pub(super) cancel: CancelToken,
}

impl Source {
    /// Makes the files unless they are there, whole, from an earlier race. What was begun and not
    /// ended has another name and is made again.
    ///
    /// Errors: those of the filesystem; the wish to stop; the time was over. Nothing half is left.
    pub(super) fn make(&self, ends_ns: u64) -> Result<(), Error> {
        if self.is_whole() {
            return Ok(());
        }
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).map_err(IoError::system("make the folder", folder))?;
        }
        let mut name = self.path.clone().into_os_string();
        name.push(".part");
        let part = PathBuf::from(name);
        remove(&part)?;
        remove(&self.path)?;
        let filler = Self { cancel: self.cancel.until(ends_ns), ..self.clone() };
        let made = filler.fill(&part).and_then(|()| {
            let rename = fs::rename(&part, &self.path);
            Ok(rename.map_err(IoError::system("name", &self.path))?)
        });
        if made.is_err() {
            // The first error is the one to tell.
            let _ = remove(&part);
        }
        made
    }

    /// Whether an earlier race left what is needed. The name comes with the last byte, but files
    /// may have been lost, changed or added since.
    fn is_whole(&self) -> bool {
        let is_file = |path: PathBuf| {
            fs::symlink_metadata(path)
                .is_ok_and(|facts| facts.is_file() && facts.len() == self.file_bytes)
        };
        self.paths().all(is_file)
            && (self.files == 0
                || Tally::of(&self.path).is_ok_and(|found| {
                    let folders = self.files.div_ceil(FILES_PER_FOLDER);
                    found.entries == self.files + folders
                }))
    }

    fn fill(&self, part: &Path) -> Result<(), Error> {
        if self.files == 0 {
            return self.fill_file(part, 0);
        }
        for number in 0..self.files {
            let path = part.join(relative(number));
            if number.is_multiple_of(FILES_PER_FOLDER)
                && let Some(folder) = path.parent()
            {
                fs::create_dir_all(folder).map_err(IoError::system("make the folder", folder))?;
            }
            self.fill_file(&path, number)?;
        }
        let folder = File::open(part).map_err(IoError::system("open", part))?;
        rustix::fs::syncfs(&folder).map_err(IoError::system("sync", part))?;
        Ok(())
    }

    fn fill_file(&self, path: &Path, number: u64) -> Result<(), Error> {
        use std::os::unix::fs::FileExt;
        let file = File::create(path).map_err(IoError::system("make", path))?;
        let mut chunk = vec![0; CHUNK_BYTES.min(self.file_bytes as usize)];
        let mut done = 0;
        while done < self.file_bytes {
            if self.cancel.is_cancelled() {
                return Err(Error::Usage("interrupted".to_owned()));
            }
            let wanted = chunk.len().min((self.file_bytes - done) as usize);
            fill_random(&mut chunk[..wanted], self.seed.wrapping_add(number), done);
            file.write_all_at(&chunk[..wanted], done).map_err(IoError::system("write", path))?;
            done += wanted as u64;
        }
        if self.files == 0 {
            rustix::fs::fdatasync(&file).map_err(IoError::system("sync", path))?;
        }
        Ok(())
    }

    /// All bytes together.
    pub(super) fn bytes(&self) -> u64 {
        self.files.max(1) * self.file_bytes
    }

    /// The files.
    pub(super) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        let many = (0..self.files).map(|number| self.path.join(relative(number)));
        let one = (self.files == 0).then(|| self.path.clone());
        one.into_iter().chain(many)
    }

    /// Makes the files, brings them into the state, and proves it.
    ///
    /// Errors: those of [`Self::make`]; the state is not there although everything was done.
    pub(super) fn prepare(&self, state: State, ends_ns: u64) -> Result<Facts, Error> {
        self.make(ends_ns)?;
        let is_hot = state != State::Cold;
        // What earlier runs wrote would be written back while the next one is timed.
        state::settle(&self.path)?;
        let start = if is_hot { CacheStart::Hot } else { CacheStart::Cold(Clearing::File) };
        let (mut cached, mut is_proved) = (0_u64, true);
        for path in self.paths() {
            let file = File::open(&path).map_err(IoError::system("open", &path))?;
            let length_bytes = self.file_bytes;
            match (Pages { file: file.as_fd(), path: &path, length_bytes })
                .bring(start, self.cancel)?
            {
                // Whole pages are counted.
                Some(held) => cached = cached.saturating_add(held.cached_bytes.min(length_bytes)),
                None => is_proved = false,
            }
        }
        let wanted = if is_hot { self.bytes() } else { 0 };
        // All contestants find the same; what little a kernel takes back all the time is told.
        let missing = (MISSED_SHARE * wanted as f64) as u64;
        if is_proved && (cached > wanted || cached < wanted - missing) {
            return Err(Error::NoRoom(format!(
                "{cached} of {} bytes of {:?} are in the page cache, which should hold {wanted}",
                self.bytes(),
                self.path
            )));
        }
        let mut facts = Facts::default().with(fact::CACHE_STATE_PROVED, is_proved);
        let cached_bytes = is_proved.then_some(cached);
        facts.set_known(fact::cached_bytes_before(is_hot), cached_bytes);
        Ok(facts)
    }
}

/// Where the file with this number lies below its folder.
fn relative(number: u64) -> PathBuf {
    let folder = number / FILES_PER_FOLDER;
    PathBuf::from(format!("{folder:03}")).join(format!("{number:05}.dat"))
}

/// Removes a file or a folder with all that is in it; what is not there is removed already.
pub(super) fn remove(path: &Path) -> Result<(), Error> {
    let removed = match fs::symlink_metadata(path) {
        Ok(facts) if facts.is_dir() => remove_tree(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(IoError::system("remove", path)(error).into())
        }
        _ => Ok(()),
    }
}

/// Whether two files hold the same bytes.
pub(super) fn is_same(one: &Path, other: &Path) -> Result<bool, Error> {
    use std::os::unix::fs::FileExt;
    let open = |path: &Path| File::open(path).map_err(IoError::system("open", path));
    let (first, second) = (open(one)?, open(other)?);
    let length = |file: &File, path: &Path| {
        file.metadata().map(|facts| facts.len()).map_err(IoError::system("examine", path))
    };
    let bytes = length(&first, one)?;
    if bytes != length(&second, other)? {
        return Ok(false);
    }
    let mut chunks = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
    let mut done = 0;
    while done < bytes {
        let wanted = CHUNK_BYTES.min((bytes - done) as usize);
        let (a, b) = (&mut chunks.0[..wanted], &mut chunks.1[..wanted]);
        first.read_exact_at(a, done).map_err(IoError::system("read", one))?;
        second.read_exact_at(b, done).map_err(IoError::system("read", other))?;
        if a != b {
            return Ok(false);
        }
        done += wanted as u64;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use flatout_sys::page_cache;

    use super::*;

    fn source(path: PathBuf, files: u64) -> Source {
        Source { path, files, file_bytes: 5000, seed: 7, cancel: CancelToken::manual() }
    }

    #[test]
    fn files_are_made_once_and_reused() {
        let folder = tempfile::tempdir().unwrap();
        for files in [0, 250] {
            let source = source(folder.path().join(format!("corpora/of-{files}")), files);
            source.make(u64::MAX).unwrap();
            let paths: Vec<_> = source.paths().collect();
            assert_eq!(paths.len() as u64, files.max(1));
            assert!(paths.iter().all(|path| fs::metadata(path).unwrap().len() == 5000));
            let before = fs::metadata(&paths[0]).unwrap().modified().unwrap();
            source.make(u64::MAX).unwrap();
            assert_eq!(fs::metadata(&paths[0]).unwrap().modified().unwrap(), before);
        }
        assert_eq!(fs::read_dir(folder.path().join("corpora")).unwrap().count(), 2);
    }

    #[test]
    fn what_was_lost_changed_or_added_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let source = source(folder.path().join("many"), 101);
        source.make(u64::MAX).unwrap();
        let some = source.paths().nth(100).unwrap();
        let harms: [&dyn Fn(); 4] = [
            &|| fs::remove_file(&some).unwrap(),
            &|| fs::write(&some, "short").unwrap(),
            &|| fs::write(some.with_file_name("more"), "x").unwrap(),
            &|| fs::rename(&some, some.with_file_name("other")).unwrap(),
        ];
        for harm in harms {
            harm();
            assert!(!source.is_whole());
            source.make(u64::MAX).unwrap();
            assert!(source.is_whole());
        }
    }

    #[test]
    fn nothing_is_left_to_be_written_when_a_run_begins() {
        let folder = tempfile::tempdir().unwrap();
        let other = File::create(folder.path().join("other")).unwrap();
        if flatout_sys::filesystem::of(other.as_fd()).unwrap().in_memory {
            return;
        }
        let source = source(folder.path().join("many"), 3);
        source.make(u64::MAX).unwrap();
        fs::write(folder.path().join("other"), vec![1; 1 << 20]).unwrap();
        source.prepare(State::Hot, u64::MAX).unwrap();
        if let Ok(state) = page_cache::state(other.as_fd(), 0, 1 << 20) {
            assert_eq!(state.dirty_bytes.unwrap_or(0), 0);
        }
    }

    #[test]
    fn what_was_cut_short_is_made_again_and_a_stop_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("one");
        fs::write(&path, b"short").unwrap();
        fs::write(folder.path().join("one.part"), b"shorter").unwrap();
        source(path.clone(), 0).make(u64::MAX).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), 5000);
        fs::remove_file(&path).unwrap();
        let stopped = source(path, 0);
        stopped.cancel.cancel();
        assert!(stopped.make(u64::MAX).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn differing_files_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let mut bytes = vec![1; CHUNK_BYTES + 10];
        fs::write(path("a"), &bytes).unwrap();
        fs::write(path("b"), &bytes).unwrap();
        assert!(is_same(&path("a"), &path("b")).unwrap());
        bytes[CHUNK_BYTES + 5] = 2;
        fs::write(path("b"), &bytes).unwrap();
        assert!(!is_same(&path("a"), &path("b")).unwrap());
        fs::write(path("b"), b"").unwrap();
        assert!(!is_same(&path("a"), &path("b")).unwrap());
        assert!(is_same(&path("a"), &path("gone")).is_err());
    }
}
