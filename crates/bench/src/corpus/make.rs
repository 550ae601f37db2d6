//! Making a corpus: under a name of its own first, then renamed, and only then is its description
//! written beside it. So one whose making was cut off is never taken for complete.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use flatout_measure::{Warning, warning};
use flatout_sys::{CancelToken, fill_random};
use flatout_tree::remove::remove_tree;

use super::source_tree::{Part, Plan};
use super::{Corpus, Shape, Tally};
use crate::versus::state;
use crate::{Error, IoError};

/// Bytes written at a time; a multiple of what the generator makes in one go.
const CHUNK_BYTES: usize = 1 << 20;
/// Contents of two files never share a piece of this length.
const CELL_BYTES: u64 = 4 << 10;
/// The layouts of sparse files, see [`sparse`].
pub(super) const SPARSE_FILES: u64 = 4;
/// Data in each of them, at most.
const SPARSE_PIECE_BYTES: u64 = 1 << 20;
pub(super) const SPARSE_DATA_BYTES: u64 = SPARSE_FILES * SPARSE_PIECE_BYTES;
const ENDING: &str = ".made";

/// Whether the corpus lies in `corpora`, complete and as it is described. Nothing is changed.
///
/// Cost: its description is read, not the tree.
pub fn is_made(corpus: &Corpus, corpora: &Path) -> bool {
    let is_described = |text| text == corpus.description();
    matches!(corpus.shape, Shape::Given(_))
        || fs::read_to_string(marker(corpus, corpora)).is_ok_and(is_described)
}

/// Bytes that making it in `corpora` writes: none where it is there.
///
/// Cost: that of [`is_made`].
pub fn new_bytes(corpus: &Corpus, corpora: &Path) -> u64 {
    if is_made(corpus, corpora) { 0 } else { corpus.make_bytes() }
}

/// The directory of the corpus, which is made unless it is there: one that is not complete, or
/// was made otherwise, is removed. A tree of the user's is as it is.
///
/// Errors: it cannot be made; what was made of it is gone again. A wish to stop is one.
/// Cost: counts the tree where it is there; else writes it and syncs the filesystem.
pub fn ensure(corpus: &Corpus, corpora: &Path, cancel: CancelToken) -> Result<PathBuf, Error> {
    if let Shape::Given(path) = &corpus.shape {
        return Ok(path.clone());
    }
    let tree = corpora.join(&corpus.name);
    let marker = marker(corpus, corpora);
    let Corpus { bytes, files, entries, .. } = *corpus;
    let is_whole = |found| found == Tally { bytes, files, entries };
    if is_made(corpus, corpora) && Tally::of(&tree).is_ok_and(is_whole) {
        return Ok(tree);
    }
    folder(corpora)?;
    remove_file(&marker)?;
    remove_tree(&tree).map_err(IoError::system("remove", &tree))?;
    // One name for all runs: what a killed one left is removed by the next.
    let draft = corpora.join(format!(".{}.tmp", corpus.name));
    let made = make(corpus, &draft, cancel).and_then(|()| {
        fs::rename(&draft, &tree).map_err(IoError::system("rename", &draft))?;
        fs::write(&marker, corpus.description()).map_err(IoError::system("write", &marker))?;
        state::settle(corpora)
    });
    if let Err(error) = made {
        // What could not be removed is less important than why.
        let _unread = (remove_file(&marker), remove_tree(&draft), remove_tree(&tree));
        return Err(error);
    }
    Ok(tree)
}

fn marker(corpus: &Corpus, corpora: &Path) -> PathBuf {
    corpora.join(format!("{}{ENDING}", corpus.name))
}

/// Removes a file that may be gone.
fn remove_file(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(IoError::system("remove", path)(error).into())
        }
        _ => Ok(()),
    }
}

fn make(corpus: &Corpus, root: &Path, cancel: CancelToken) -> Result<(), Error> {
    remove_tree(root).map_err(IoError::system("remove", root))?;
    let mut writer = Writer { seed: corpus.seed, position: 0, chunk: vec![0; CHUNK_BYTES], cancel };
    folder(root)?;
    match corpus.shape {
        Shape::Files { files, file_bytes, directories, depth } => {
            let bottom = (1..=depth).fold(root.to_owned(), |above, _| above.join("d"));
            folder(&bottom)?;
            for number in 0..directories {
                if directories > 1 {
                    folder(&bottom.join(format!("directory-{number}")))?;
                }
            }
            for number in 0..files {
                let name = format!("file-{number:06}");
                // What follows one another lies in one directory, as it does where people put it.
                let home = number * directories / files;
                let path = match directories {
                    0 | 1 => bottom.join(name),
                    _ => bottom.join(format!("directory-{home}")).join(name),
                };
                writer.file(&path, file_bytes)?;
            }
            Ok(())
        }
        Shape::SourceTree { files } => source_tree(root, files, &mut writer),
        Shape::Sparse { length_bytes } => sparse(root, length_bytes / SPARSE_FILES, &mut writer),
        Shape::Given(_) => Ok(()),
    }
}

fn folder(path: &Path) -> Result<(), Error> {
    Ok(fs::create_dir_all(path).map_err(IoError::system("make the directory", path))?)
}

fn source_tree(root: &Path, files: u64, writer: &mut Writer) -> Result<(), Error> {
    for part in Plan::new(files, super::CONTENT_SEED).parts {
        match part {
            Part::Directory(path) => folder(&root.join(path))?,
            Part::File { path, bytes, mode } => {
                let path = root.join(path);
                let file = writer.file(&path, bytes)?;
                file.set_permissions(Permissions::from_mode(mode))
                    .map_err(IoError::system("set the mode of", &path))?;
            }
            Part::HardLink { path, to } => {
                let path = root.join(path);
                fs::hard_link(root.join(to), &path).map_err(IoError::system("link", &path))?;
            }
            Part::Symlink { path, to } => {
                let path = root.join(path);
                std::os::unix::fs::symlink(to, &path).map_err(IoError::system("link", &path))?;
            }
        }
    }
    Ok(())
}

/// A hole at the start, in the middle (and many small ones), at the end, and nothing else.
fn sparse(root: &Path, length_bytes: u64, writer: &mut Writer) -> Result<(), Error> {
    let piece = SPARSE_PIECE_BYTES.min(length_bytes / 4);
    let path = root.join("hole-at-start");
    writer.pieces(&path, length_bytes, &[(length_bytes - piece, piece)])?;
    let few = CELL_BYTES.min(piece);
    let small: Vec<_> = (1..32).map(|step| (length_bytes / 32 * step, few)).collect();
    let middle = [&[(0, piece / 2)][..], &small, &[(length_bytes - few, few)]].concat();
    writer.pieces(&root.join("holes-in-the-middle"), length_bytes, &middle)?;
    writer.pieces(&root.join("hole-at-end"), length_bytes, &[(0, piece)])?;
    writer.pieces(&root.join("all-hole"), length_bytes, &[])?;
    Ok(())
}

/// Writes files of random data, each a stretch of one stream.
struct Writer {
    seed: u64,
    position: u64,
    chunk: Vec<u8>,
    cancel: CancelToken,
}

impl Writer {
    fn file(&mut self, path: &Path, length_bytes: u64) -> Result<File, Error> {
        self.pieces(path, length_bytes, &[(0, length_bytes)])
    }

    /// A file with data at these offsets and of these lengths, and holes elsewhere.
    fn pieces(
        &mut self,
        path: &Path,
        length_bytes: u64,
        pieces: &[(u64, u64)],
    ) -> Result<File, Error> {
        self.go_on()?;
        let file = File::create_new(path).map_err(IoError::system("create", path))?;
        for &(offset, length) in pieces {
            let mut done = 0;
            while done < length {
                self.go_on()?;
                let part = (length - done).min(CHUNK_BYTES as u64) as usize;
                fill_random(&mut self.chunk[..part], self.seed, self.position);
                self.position += (part as u64).next_multiple_of(CELL_BYTES);
                file.write_all_at(&self.chunk[..part], offset + done)
                    .map_err(IoError::system("write", path))?;
                done += part as u64;
            }
        }
        let end = pieces.last().map_or(0, |(offset, length)| offset + length);
        if end < length_bytes {
            file.set_len(length_bytes).map_err(IoError::system("lengthen", path))?;
        }
        Ok(file)
    }

    fn go_on(&self) -> Result<(), Error> {
        if self.cancel.is_cancelled() {
            let text = "the making of a corpus was interrupted";
            return Err(Error::Warned(Warning::new(warning::INTERRUPTED, text)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use flatout_sys::monotonic_ns;

    use super::*;

    fn made(corpus: &Corpus) -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let tree = ensure(corpus, place.path(), CancelToken::manual()).unwrap();
        (place, tree)
    }

    fn files(files: u64, file_bytes: u64, directories: u64, depth: u64) -> Corpus {
        Corpus::new("test", Shape::Files { files, file_bytes, directories, depth })
    }

    #[test]
    fn what_is_made_is_what_was_announced() {
        for corpus in [
            files(10, 5000, 3, 0),
            files(2, 3 << 20, 1, 4),
            files(1, 0, 1, 0),
            Corpus::new("test", Shape::SourceTree { files: 600 }),
            Corpus::new("test", Shape::Sparse { length_bytes: 64 << 20 }),
        ] {
            let (_place, tree) = made(&corpus);
            let Corpus { bytes, files, entries, .. } = corpus;
            assert_eq!(Tally::of(&tree).unwrap(), Tally { bytes, files, entries }, "{corpus:?}");
        }
    }

    #[test]
    fn contents_are_random_and_no_two_blocks_are_alike() {
        let (_place, tree) = made(&files(5, 6000, 1, 0));
        let mut blocks = std::collections::HashSet::new();
        for entry in fs::read_dir(tree).unwrap() {
            for block in fs::read(entry.unwrap().path()).unwrap().chunks(500) {
                assert!(blocks.insert(block.to_vec()));
            }
        }
    }

    #[test]
    fn sparse_files_take_little_space() {
        let (_place, tree) = made(&Corpus::new("test", Shape::Sparse { length_bytes: 256 << 20 }));
        let taken: u64 = fs::read_dir(tree)
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().blocks() * 512)
            .sum();
        assert!(taken > 0 && taken <= 2 * SPARSE_DATA_BYTES, "{taken}");
    }

    #[test]
    fn a_complete_corpus_is_used_again_and_a_damaged_or_other_one_is_made_anew() {
        let corpus = files(3, 100, 1, 0);
        let (place, tree) = made(&corpus);
        let inode = || fs::metadata(&tree).unwrap().ino();
        let ensured = |corpus| ensure(corpus, place.path(), CancelToken::manual());
        fs::write(tree.join("..").join(".keep"), "").unwrap();
        let first = inode();
        ensured(&corpus).unwrap();
        assert_eq!(inode(), first);
        assert!(is_made(&corpus, place.path()));
        fs::remove_file(tree.join("file-000001")).unwrap();
        ensured(&corpus).unwrap();
        assert_eq!(fs::read_dir(&tree).unwrap().count(), 3, "what was lost is back");
        let other = files(4, 100, 1, 0);
        assert!(!is_made(&other, place.path()));
        ensured(&other).unwrap();
        assert_eq!(fs::read_dir(&tree).unwrap().count(), 4);
        fs::remove_file(marker(&other, place.path())).unwrap();
        assert!(!is_made(&other, place.path()), "its making was cut off");
    }

    #[test]
    fn a_wish_to_stop_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        let cancel = CancelToken::manual();
        cancel.cancel();
        assert!(ensure(&files(3, 100, 1, 0), place.path(), cancel).is_err());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_wish_to_stop_within_a_file_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        // It comes once the file was begun: a gibibyte takes longer.
        let soon = CancelToken::manual().until(monotonic_ns() + 20_000_000);
        assert!(ensure(&files(1, 1 << 30, 1, 0), place.path(), soon).is_err());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_tree_of_the_user_is_counted_and_left_alone() {
        let (place, tree) = made(&files(3, 100, 1, 2));
        let given = Corpus::given(&tree).unwrap();
        assert_eq!((given.bytes, given.files, given.entries), (300, 3, 5));
        let used = ensure(&given, &place.path().join("none"), CancelToken::manual()).unwrap();
        assert_eq!(used, tree.canonicalize().unwrap());
        assert!(!place.path().join("none").exists());
    }
}
