//! Trees to be copied, described as data: so that their bytes can be announced before anything is
//! made, and one that was made earlier is known again.
//!
//! [`name`] says how they are called, [`make`] makes them.

pub mod make;
pub mod name;
mod source_tree;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use flatout_tree::visit::visit;
use serde::Serialize;
use serde_json::json;

use crate::{Error, IoError};

/// Seed of the contents, unless another is asked for: always the same, so that a corpus that was
/// kept is used again.
pub const CONTENT_SEED: u64 = 0x666c_6174_6f75_7431;
/// What filesystems hand out.
const BLOCK_BYTES: u64 = 4 << 10;
/// Inode and entry of a file.
const INODE_BYTES: u64 = 512;
/// Files in a directory where they are spread over several.
const FOLDER_FILES: u64 = 100;
/// The way a corpus of a description is made. To be raised when that changes.
const EDITION: u32 = 1;

/// How a tree is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Shape {
    /// Files of one size.
    Files {
        /// How many.
        files: u64,
        /// Length of each.
        file_bytes: u64,
        /// Directories that they are spread over.
        directories: u64,
        /// Directories, one in the other, at whose bottom they lie.
        depth: u64,
    },
    /// Like a repository of source code: sizes, names, links and modes as they are found there.
    SourceTree {
        /// How many files.
        files: u64,
    },
    /// Files that are mostly holes.
    Sparse {
        /// Length of all files together.
        length_bytes: u64,
    },
    /// A tree of the user's, only read.
    Given(PathBuf),
}

/// A tree to be copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Corpus {
    /// Its name; that of its directory, too.
    pub name: String,
    /// How it is made.
    pub shape: Shape,
    /// Bytes of all files together, holes counted: what a copier has to bring about.
    pub bytes: u64,
    /// Regular files, by name: a file with two names counts twice.
    pub files: u64,
    /// Entries of every kind.
    pub entries: u64,
    /// Seed of the contents.
    pub seed: u64,
}

impl Corpus {
    /// What names begin with that mean one file, copied as a file and not as a tree.
    pub const FILE: &'static str = "file-";

    /// The name of that file in the corpus, if it is one.
    pub fn single_file(&self) -> Option<&'static str> {
        self.name.starts_with(Self::FILE).then_some("file-000000")
    }

    /// A corpus of flatout's own.
    pub fn new(name: impl Into<String>, shape: Shape) -> Self {
        let (bytes, files, entries) = match &shape {
            Shape::Files { files, file_bytes, directories, depth } => {
                let folders = depth + if *directories > 1 { *directories } else { 0 };
                (files * file_bytes, *files, files + folders)
            }
            Shape::SourceTree { files } => {
                let plan = source_tree::Plan::new(*files, CONTENT_SEED);
                (plan.bytes, plan.files, plan.parts.len() as u64)
            }
            Shape::Sparse { length_bytes } => {
                (*length_bytes, make::SPARSE_FILES, make::SPARSE_FILES)
            }
            Shape::Given(_) => (0, 0, 0),
        };
        Self { name: name.into(), shape, bytes, files, entries, seed: CONTENT_SEED }
    }

    /// Files of one size, a hundred in each directory.
    pub(crate) fn spread(name: impl Into<String>, files: u64, file_bytes: u64) -> Self {
        let directories = files.div_ceil(FOLDER_FILES);
        Self::new(name, Shape::Files { files, file_bytes, directories, depth: 0 })
    }

    /// A tree of the user's: what is in it is counted.
    ///
    /// Errors: it cannot be read as a whole.
    pub fn given(path: &Path) -> Result<Self, Error> {
        let path = path.canonicalize().map_err(IoError::system("open the tree", path))?;
        let Tally { bytes, files, entries } = Tally::of(&path)?;
        let name = path.to_string_lossy().into_owned();
        Ok(Self { name, bytes, files, entries, seed: 0, shape: Shape::Given(path) })
    }

    /// Directories above the deepest file that its parameters name; 0 where they name none.
    pub fn depth(&self) -> u64 {
        if let Shape::Files { depth, .. } = self.shape { depth } else { 0 }
    }

    /// Bytes on the disk that a copy takes at most, holes filled.
    pub fn copy_bytes(&self) -> u64 {
        self.bytes.saturating_add(self.entries.saturating_mul(BLOCK_BYTES / 2 + INODE_BYTES))
    }

    /// Whether copies share the extents of its files, where files do from a length on.
    pub fn is_shared(&self, from_bytes: Option<u64>) -> bool {
        from_bytes.is_some_and(|from| self.bytes >= self.files.saturating_mul(from))
    }

    /// Bytes of its files, without holes.
    pub fn data_bytes(&self) -> u64 {
        match self.shape {
            Shape::Sparse { .. } => make::SPARSE_DATA_BYTES,
            _ => self.bytes,
        }
    }

    /// Bytes that a copy writes: where it shares extents, those of names alone.
    pub fn written_bytes(&self, shared_from_bytes: Option<u64>) -> u64 {
        match self.is_shared(shared_from_bytes) {
            true => self.entries.saturating_mul(INODE_BYTES),
            false => self.copy_bytes() - self.bytes + self.data_bytes(),
        }
    }

    /// Whether it lies, or is made, on the filesystem of this directory.
    pub fn is_beside(&self, directory: &Path) -> bool {
        let device = |path: &Path| path.metadata().ok().map(|facts| facts.dev());
        match &self.shape {
            Shape::Given(path) => device(path) == device(directory),
            _ => true,
        }
    }

    /// Bytes on the disk that making it takes.
    pub fn make_bytes(&self) -> u64 {
        match self.shape {
            Shape::Given(_) => 0,
            Shape::Sparse { .. } => make::SPARSE_DATA_BYTES,
            _ => self.copy_bytes(),
        }
    }

    /// What is written down beside a corpus of flatout's own that is complete.
    fn description(&self) -> String {
        format!("{}\n", json!({ "edition": EDITION, "corpus": self }))
    }
}

/// What is in a tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Length of all regular files.
    pub bytes: u64,
    /// Regular files, by name.
    pub files: u64,
    /// Entries of every kind, the root not counted.
    pub entries: u64,
}

impl Tally {
    /// Counts a tree.
    ///
    /// Errors: part of it cannot be read.
    pub fn of(root: &Path) -> Result<Self, Error> {
        let mut tally = Self::default();
        let visited = visit(root, |entry| {
            tally.entries += 1;
            if entry.is_file() {
                tally.files += 1;
                tally.bytes += entry.facts.st_size as u64;
            }
            Ok(())
        });
        visited.map_err(IoError::system("read the tree", root))?;
        Ok(tally)
    }
}
