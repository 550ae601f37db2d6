//! Digests of many files at once, in the order in which they were asked for.
//!
//! The caller's threads call [`Sum::work`]; the thread that has the files calls [`Sum::feed`] and
//! gets the answers back in order.

use std::ffi::OsString;
use std::ops::ControlFlow;

use flatout_io::digest::Digest;

use crate::item::Item;

/// What was found out about one file.
#[derive(Debug)]
pub struct Summed {
    /// The name under which it is shown.
    pub shown: OsString,
    /// Digest and size, or why there is none.
    pub result: Result<Found, Failure>,
}

/// A file that was read from front to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The digest that was asked for. For a file to be checked: the one that matches, else that of
    /// the first algorithm.
    pub digest: Digest,
    /// Whether it is the digest expected; true where none was.
    pub matches: bool,
    /// Its length.
    pub length_bytes: u64,
    /// From opening it to knowing the digest.
    pub elapsed_ns: u64,
}

/// Why there is no digest.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It is not there.
    #[error("cannot open {path}: No such file or directory", path = .shown.display())]
    Missing {
        /// The file.
        shown: OsString,
    },
    /// The kernel said no.
    #[error("cannot {operation} {path}: {source}", path = .shown.display())]
    System {
        /// What was tried.
        operation: &'static str,
        /// The file.
        shown: OsString,
        /// Why.
        source: std::io::Error,
    },
    /// Somebody wrote it meanwhile: no digest would be that of any state of it.
    #[error("{path} changed while it was read", path = .shown.display())]
    Changed {
        /// The file.
        shown: OsString,
    },
    /// The user wants to stop.
    #[error("interrupted")]
    Interrupted,
}

/// Many files to be read.
#[derive(Debug, Default)]
pub struct Sum {}

impl Sum {
    /// Reads files until all are read. Called by each thread of the caller.
    pub fn work(&self) {}

    /// Hands the files to the threads, and what they find to `sink`, in the order of `items`.
    /// Returns when all is done, or `sink` breaks off. An item that cannot even be named (a
    /// directory that cannot be read) comes as an error, and goes to `sink` at its place.
    pub fn feed(
        &self,
        _items: impl Iterator<Item = Result<Item, (OsString, Failure)>>,
        _sink: impl FnMut(Summed) -> ControlFlow<()>,
    ) {
    }
}
