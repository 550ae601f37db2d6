//! File trees: what is in them, and what they hold.
//!
//! Rule: no statistics, no printing, and threads belong to the caller. No symlink inside a tree is
//! ever followed: directories are held by descriptor, and names are looked up in them.
//!
//! [`mod@copy`] copies trees, [`compare`] says whether one is a copy of another; [`sum`] digests many files, and
//! large ones in parts, which [`walk`] or a [`manifest`] names as an [`item`] each; [`inventory`] lists what there
//! is in a tree, [`mod@visit`] shows every entry, [`mod@remove`] takes a tree away, [`selection`] says what is
//! taken of one, [`wire`] is what one process says to another.

#![forbid(unsafe_code)]

pub mod compare;
pub mod copy;
mod directory_stack;
mod file_data;
pub mod inventory;
pub mod item;
pub mod manifest;
mod path;
pub mod remove;
pub mod selection;
mod spool;
pub mod sum;
pub mod visit;
pub mod walk;
pub mod wire;

use flatout_sys::lock;

pub use spool::unnamed::unnamed_file;
