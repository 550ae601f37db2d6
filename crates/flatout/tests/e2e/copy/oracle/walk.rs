//! A walk of any depth that holds one descriptor at a time.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::fs::{CWD, Dir, Mode, OFlags, fstat, openat};

/// A directory on the way down: what it is, where its path ends, and what is left to be seen.
struct Level {
    identity: (u64, u64),
    path_length: usize,
    names: Vec<CString>,
}

/// Shows every entry with its path, its directory and its name. `visit` says whether the entry is
/// a directory to be gone into; a directory comes before what is in it.
pub fn walk(root: &Path, mut visit: impl FnMut(&[u8], BorrowedFd<'_>, &CStr) -> bool) {
    let (parent, name) = match root.components().next_back() {
        Some(Component::Normal(name)) if root.parent() == Some(Path::new("")) => {
            (Path::new("."), name)
        }
        Some(Component::Normal(name)) => (root.parent().unwrap(), name),
        _ => panic!("{} has no name", root.display()),
    };
    let mut held = openat(CWD, parent, OFlags::DIRECTORY, Mode::empty()).unwrap();
    let name = CString::new(name.as_bytes()).unwrap();
    let mut levels = vec![Level { identity: identity(&held), path_length: 0, names: vec![name] }];
    let mut path = Vec::new();
    while let Some(level) = levels.last_mut() {
        path.truncate(level.path_length);
        let Some(name) = level.names.pop() else {
            levels.pop();
            if let Some(above) = levels.last() {
                held = go(&held, c"..");
                assert_eq!(identity(&held), above.identity, "the tree stands still");
            }
            continue;
        };
        if levels.len() > 1 {
            path.extend((!path.is_empty()).then_some(b'/'));
            path.extend_from_slice(name.to_bytes());
        }
        if visit(&path, held.as_fd(), &name) {
            held = go(&held, &name);
            let level =
                Level { identity: identity(&held), path_length: path.len(), names: names(&held) };
            levels.push(level);
        }
    }
}

fn go(from: &OwnedFd, name: &CStr) -> OwnedFd {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
    openat(from, name, flags | OFlags::NOATIME, Mode::empty())
        .or_else(|_| openat(from, name, flags, Mode::empty()))
        .unwrap_or_else(|error| panic!("{}: {error}", name.to_bytes().escape_ascii()))
}

fn identity(directory: &OwnedFd) -> (u64, u64) {
    let facts = fstat(directory).unwrap();
    (facts.st_dev, facts.st_ino)
}

fn names(directory: &OwnedFd) -> Vec<CString> {
    let entries = Dir::new(go(directory, c".")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_owned());
    names.filter(|name| name.as_c_str() != c"." && name.as_c_str() != c"..").collect()
}

#[test]
fn a_walk_sees_every_name_once_with_its_path() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("tree/a/b")).unwrap();
    for file in ["tree/1", "tree/a/2", "tree/a/b/3", "tree/c"] {
        std::fs::write(folder.path().join(file), "").unwrap();
    }
    let mut seen = Vec::new();
    walk(&folder.path().join("tree"), |path, directory, name| {
        seen.push(String::from_utf8(path.to_vec()).unwrap());
        super::within(directory, name).is_dir()
    });
    seen.sort();
    assert_eq!(seen, ["", "1", "a", "a/2", "a/b", "a/b/3", "c"]);
}
