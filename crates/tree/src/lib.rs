//! File trees: what is in them, and what they hold.
//!
//! Rule: no statistics, no printing, and threads belong to the caller. No symlink inside a tree is
//! ever followed: directories are held by descriptor, and names are looked up in them.
//!
//! - [`compare`]: is one tree a copy of another, and how faithful;
//! - [`mod@copy`]: trees copied;
//! - [`inventory`]: what there is in a tree as lines of text, to be held against it later;
//! - [`item`]: a file to be read, and where it is;
//! - `directory_stack`: down a tree and up again, by descriptor;
//! - `file_data`: the bytes and holes of an open file;
//! - [`mod@remove`]: a tree taken away;
//! - [`mod@visit`]: every entry of a tree, for whoever wants to look;
//! - [`walk`]: the files of a tree, in order;
//! - [`manifest`]: digests and names as lines of text;
//! - [`selection`]: what of a tree is taken;
//! - [`wire`]: what one process says to another, as bytes;
//! - `path`: paths as bytes;
//! - `spool`: bytes and names that may be more than memory takes;
//! - [`sum`]: digests of many files, and of large ones in parts, by the threads of the caller.

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
