//! What other copiers have stumbled over, each a test of its own.

mod attribute;
mod change;
mod depth;
mod fault;
mod hole;
mod identity;
mod kind;
mod limit;
mod privilege;
mod room;
mod stop;
mod swap;

use std::path::{Path, PathBuf};

use super::copier::{copy, under_test};
use super::oracle::{Leeway, Portrait, assert_same};
use crate::bin::{Folder, Ran};

/// Every method that can be asked for and that any file allows.
const ENGINES: [&str; 6] = ["auto", "copy-file-range", "splice", "sync", "mmap", "uring"];

/// The source and the target of a test, side by side.
fn pair(folder: &Folder) -> (PathBuf, PathBuf) {
    (folder.join("tree"), folder.join("copy"))
}

/// Copies a tree to where nothing is, without a word, and finds it equal.
#[track_caller]
fn copies_whole(options: &[&str], source: &Path, target: &Path) -> Ran {
    let before = Portrait::of(source);
    let ran = copy(options, source, target);
    ran.exits(0);
    assert_eq!(ran.stderr, "", "{ran}");
    assert_same(&before, &Portrait::of(target), Leeway::NONE, &ran);
    ran
}

/// Fails when a copy has left anything in a tree that its source does not have.
#[track_caller]
fn assert_no_litter(source: &Path, target: &Path) {
    let (wanted, found) = (Portrait::of(source), Portrait::of(target));
    let litter: Vec<String> = found
        .entries
        .keys()
        .filter(|path| !wanted.entries.contains_key(*path))
        .map(|path| path.escape_ascii().to_string())
        .collect();
    assert!(litter.is_empty(), "left behind: {litter:?}");
}
