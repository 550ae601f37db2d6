//! Rivals as data: what they are called, where they come from, what they can be raced at.
//!
//! The list stands in `rival/list.rs`, the search for their programs in `rival/search.rs`. How
//! one is called for a work is said where the work is.

mod list;
mod search;

use std::path::PathBuf;

pub use list::ALL;
pub use search::{find, look, named, path};

/// What a rival can be raced at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discipline {
    /// Copying one file, block by block, and reading one: `dd`.
    Blocks,
    /// Digests of files.
    Digest,
    /// Copying trees.
    Copy,
    /// Measuring a disk.
    Disk,
    /// Measuring the network, over loopback.
    Network,
    /// Products and factorisations of matrices, by a library.
    Matrix,
    /// The four kernels of STREAM.
    Stream,
    /// Known, and not raced.
    ToCome,
}

/// A program that does what flatout does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rival {
    /// One name per variant, for example `cp-a`.
    pub name: &'static str,
    /// The program, looked for along `PATH`; of a [`Discipline::Matrix`] the library. Empty where
    /// flatout itself has the other side, which is raced where it is named.
    pub program: &'static str,
    /// Where it comes from: a Debian package, or `cargo install NAME`.
    pub package: &'static str,
    /// The arguments that make it say its version; the first line of the answer counts.
    pub version: &'static [&'static str],
    /// What it can be raced at.
    pub discipline: Discipline,
    /// The command of flatout that does the same work, or what measures it where none can be raced.
    pub counterpart: &'static str,
}

/// A rival whose program is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The rival.
    pub rival: &'static Rival,
    /// Its program.
    pub path: PathBuf,
    /// Its version, as it says it; empty where it says none.
    pub version: String,
}
