//! A file to be read: where it is, under which name it is shown, and what is expected of it.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use flatout_io::digest::{Algorithm, Digest};

/// Where a file is found.
#[derive(Debug, Clone)]
pub enum Place {
    /// Standard input.
    StandardInput,
    /// A path as the user gave it; symlinks in it are followed.
    Path(PathBuf),
    /// A name in a directory that is held open; a symlink there is not followed.
    In {
        /// The directory.
        directory: Arc<OwnedFd>,
        /// The name.
        name: OsString,
    },
}

/// What is to be found out about a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// Its digest.
    Digest(Algorithm),
    /// Whether it has this digest. A line of a manifest may leave open by which algorithm: then
    /// all of them are tried, in this order, until one matches.
    Match(Vec<Digest>),
}

/// A file to be read.
#[derive(Debug, Clone)]
pub struct Item {
    /// Where it is.
    pub place: Place,
    /// The name under which it is shown, byte for byte.
    pub shown: OsString,
    /// What is to be found out.
    pub wanted: Wanted,
}
