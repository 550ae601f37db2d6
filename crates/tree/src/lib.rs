//! File trees: what is in them, and what they hold.
//!
//! Rule: no statistics, no printing, and threads belong to the caller. No symlink inside a tree is
//! ever followed: directories are held by descriptor, and names are looked up in them.
//!
//! - [`item`]: a file to be read, and where it is;
//! - [`walk`]: the files of a tree, in order;
//! - [`manifest`]: digests and names as lines of text;
//! - [`sum`]: digests of many files, and of large ones in parts, by the threads of the caller.

#![forbid(unsafe_code)]

pub mod item;
pub mod manifest;
pub mod sum;
pub mod walk;
