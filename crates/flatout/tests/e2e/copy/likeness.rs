//! What must be alike in a tree and its copy, as far as the tests of faults need it: small trees,
//! no holes, no depth.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{lgetxattr, llistxattr};

/// The longest list or value of extended attributes in these trees.
const ATTRIBUTE_BYTES: usize = 4096;

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Kind and permissions.
    pub mode: u32,
    pub owner: (u32, u32),
    pub modified: (i64, i64),
    pub device: u64,
    /// Of a file its bytes, of a symlink its text.
    pub content: Vec<u8>,
    pub attributes: BTreeMap<OsString, Vec<u8>>,
    /// The first of the names that it has in this tree.
    pub first_name: PathBuf,
}

/// Entries by their path below the top, whose path is empty.
pub type Likeness = BTreeMap<PathBuf, Entry>;

/// Looks at a tree; an empty one where there is none.
pub fn likeness(top: &Path) -> Likeness {
    let mut all = Likeness::new();
    let mut first_names = BTreeMap::new();
    if top.symlink_metadata().is_ok() {
        look(top, Path::new(""), &mut first_names, &mut all);
    }
    all
}

fn look(
    path: &Path,
    name: &Path,
    first_names: &mut BTreeMap<(u64, u64), PathBuf>,
    all: &mut Likeness,
) {
    let facts = path.symlink_metadata().unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let first_name = first_names.entry((facts.dev(), facts.ino())).or_insert(name.to_owned());
    let entry = Entry {
        mode: facts.mode(),
        owner: (facts.uid(), facts.gid()),
        modified: (facts.mtime(), facts.mtime_nsec()),
        device: facts.rdev(),
        content: content(path, &facts),
        attributes: attributes(path),
        first_name: first_name.clone(),
    };
    all.insert(name.to_owned(), entry);
    if facts.is_dir() {
        let names = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
        for below in names.collect::<BTreeSet<_>>() {
            look(&path.join(&below), &name.join(&below), first_names, all);
        }
    }
}

fn content(path: &Path, facts: &Metadata) -> Vec<u8> {
    if facts.is_file() {
        return fs::read(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    }
    if facts.is_symlink() {
        return fs::read_link(path).unwrap().as_os_str().as_bytes().to_vec();
    }
    Vec::new()
}

fn attributes(path: &Path) -> BTreeMap<OsString, Vec<u8>> {
    let mut buffer = [0; ATTRIBUTE_BYTES];
    let length = llistxattr(path, &mut buffer[..]).unwrap_or(0);
    let names: Vec<OsString> = buffer[..length]
        .split(|&byte| byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| OsStr::from_bytes(name).to_owned())
        .collect();
    let value = |name: OsString| {
        let length = lgetxattr(path, &name, &mut buffer[..]).unwrap();
        (name, buffer[..length].to_vec())
    };
    names.into_iter().map(value).collect()
}

/// Paths at which two trees differ, and in what, without the bytes.
pub fn differences(source: &Likeness, target: &Likeness) -> Vec<(PathBuf, String)> {
    let paths: BTreeSet<&PathBuf> = source.keys().chain(target.keys()).collect();
    let differs = paths.into_iter().filter(|path| source.get(*path) != target.get(*path));
    differs.map(|path| (path.clone(), difference(source.get(path), target.get(path)))).collect()
}

fn difference(source: Option<&Entry>, target: Option<&Entry>) -> String {
    let (Some(source), Some(target)) = (source, target) else {
        return if source.is_none() { "is only in the target" } else { "is missing" }.to_owned();
    };
    let mut words = Vec::new();
    if source.content != target.content {
        words.push(format!("{} bytes, {}", source.content.len(), target.content.len()));
    }
    let short = |entry: &Entry| Entry { content: Vec::new(), ..entry.clone() };
    if short(source) != short(target) {
        words.push(format!("{:?}, {:?}", short(source), short(target)));
    }
    words.join("; ")
}

/// Fails unless a copy is like its source.
#[track_caller]
pub fn assert_alike(source: &Likeness, target: &Likeness, context: impl std::fmt::Display) {
    let differences = differences(source, target);
    assert!(differences.is_empty(), "{differences:#?}{context}");
}

#[test]
fn trees_that_differ_in_one_thing_are_not_alike() {
    let folder = crate::bin::Folder::new();
    fs::write(folder.join("file"), "content").unwrap();
    fs::hard_link(folder.join("file"), folder.join("link")).unwrap();
    std::os::unix::fs::symlink("file", folder.join("symlink")).unwrap();
    let source = likeness(folder.path());
    assert_eq!(source[Path::new("link")].first_name, Path::new("file"));
    let mut target = source.clone();
    assert_alike(&source, &target, "");
    target.get_mut(Path::new("file")).unwrap().content.push(0);
    target.remove(Path::new("link"));
    target.get_mut(Path::new("symlink")).unwrap().modified.1 += 1;
    let found = differences(&source, &target);
    let paths: Vec<_> = found.iter().map(|(path, _)| path.to_str().unwrap()).collect();
    assert_eq!(paths, ["file", "link", "symlink"], "{found:?}");
}
