//! A place with two trees that are copied, and a third one outside that nobody may touch.
//!
//! What lies outside has the names of the trees and is what a symlink planted in them leads to. It
//! is so old that reading it would show in its access times.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, XattrFlags, lsetxattr};
use rustix::fs::{mknodat, utimensat};

use super::super::entry::remove;
use super::super::oracle::{Aspect, Leeway, Portrait, assert_same};
use crate::bin::{Flatout, Folder, Ran, executable};

/// What a file outside begins with, and what it has as an attribute.
pub const SECRET: &str = "secret: this lies outside";
/// When it was written.
const SECRET_TIME: i64 = 1_111_111_111;
const ANCIENT: i64 = 1_000_000_000;
/// When files of the source, and of an older copy, were written.
pub const NEW: i64 = 1_600_000_000;
pub const OLD: i64 = 1_500_000_000;

const ATTRIBUTE: &str = "user.mark";
pub const TEMPORARY: &str = ".flatout-copy-";

/// Regular files of the trees.
pub const FILES: [&str; 5] = ["file", "dir/inner", "dir/deep/leaf", "dir/one", "big"];
/// Further names of some of them.
const LINKS: [(&str, &str); 2] = [("again", "dir/inner"), ("dir/deep/two", "dir/one")];

/// What the target is before the copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// There is none.
    Nothing,
    /// An older copy: all files will be replaced.
    Older,
    /// A copy that has all contents and times, and lacks attributes.
    Same,
}

/// The folder of a test: `above/tree` is the source, `below/copy` the target, `aside` where what is
/// swapped away lies, `outside` what nobody may touch.
pub struct Arena {
    folder: Folder,
    outside: Portrait,
}

impl Arena {
    pub fn new() -> Self {
        let folder = folder();
        for name in ["tree", "copy"] {
            plant_outside(&folder.join("outside").join(name));
        }
        make_ancient(&folder.join("outside"));
        let outside = Portrait::of(&folder.join("outside"));
        let arena = Self { folder, outside };
        arena.assert_outside_untouched(&"nothing has happened yet");
        arena
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub fn source(&self) -> PathBuf {
        self.path("above/tree")
    }

    pub fn target(&self) -> PathBuf {
        self.path("below/copy")
    }

    /// Puts everything in its place again.
    pub fn reset(&self, before: Before) {
        for name in ["above", "below", "aside"] {
            let path = self.path(name);
            remove(&path);
            fs::create_dir(&path).unwrap();
        }
        plant(&self.source(), "new", NEW);
        match before {
            Before::Nothing => {}
            Before::Older => plant(&self.target(), "old", OLD),
            Before::Same => {
                plant(&self.target(), "new", NEW);
                for name in FILES {
                    let plain = fs::Permissions::from_mode(0o611);
                    fs::set_permissions(self.target().join(name), plain).unwrap();
                }
            }
        }
    }

    /// The program, asked to copy the source to the target.
    pub fn copy(&self, options: &[&str]) -> Flatout<'_> {
        self.copy_of(options, ["above/tree", "below/copy"])
    }

    /// The program, asked to copy something to the very name that is given.
    pub fn copy_of(&self, options: &[&str], [source, target]: [&str; 2]) -> Flatout<'_> {
        let operands = ["-T", source, target];
        let words = ["copy"].iter().chain(options).chain(&operands);
        self.folder.program(executable().as_os_str(), words.map(Into::into).collect())
    }

    /// Fails when anything outside was read, changed or linked.
    #[track_caller]
    pub fn assert_outside_untouched(&self, context: &dyn std::fmt::Display) {
        let found = Portrait::of(&self.path("outside"));
        let leeway =
            if self.sees_reading() { Leeway::NONE } else { Leeway::but(&[Aspect::Accessed]) };
        assert_same(&self.outside, &found, leeway, context);
    }

    /// Whether this filesystem notes that a file was read (mount(8), `noatime`).
    fn sees_reading(&self) -> bool {
        let path = self.path("outside").join("probe");
        let times = |path: &Path| fs::metadata(path).unwrap().accessed().unwrap();
        static SEEN: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
        *SEEN.get_or_init(|| {
            let other = Folder::inside(path.parent().unwrap().parent().unwrap().parent().unwrap());
            let probe = other.join("probe");
            fs::write(&probe, "x").unwrap();
            date(&probe, SECRET_TIME, ANCIENT);
            let before = times(&probe);
            fs::read(&probe).unwrap();
            times(&probe) != before
        })
    }

    /// Fails when a temporary name is left anywhere.
    #[track_caller]
    pub fn assert_no_litter(&self, context: &dyn std::fmt::Display) {
        for place in ["above", "below", "aside"] {
            visit(&self.path(place), &mut |path, _| {
                let name = path.file_name().unwrap().to_string_lossy();
                let said = path.display();
                assert!(!name.starts_with(TEMPORARY), "left behind: {said}\n{context}");
            });
        }
    }

    /// Fails when anything from outside has come into the trees.
    #[track_caller]
    pub fn assert_nothing_came_in(&self, context: &dyn std::fmt::Display) {
        let known: BTreeSet<(u64, u64)> =
            self.outside.entries.values().map(|entry| entry.identity).collect();
        for place in ["below", "aside"] {
            visit(&self.path(place), &mut |path, facts| {
                let said = path.display();
                // What the attack itself has linked here.
                if known.contains(&(facts.dev(), facts.ino())) {
                    return;
                }
                assert_ne!(facts.mtime(), SECRET_TIME, "dated as outside: {said}\n{context}");
                if facts.is_file() {
                    let text = fs::read(path).unwrap();
                    let is_secret = text.windows(6).any(|part| part == &SECRET.as_bytes()[..6]);
                    assert!(!is_secret, "the secret came in as {said}\n{context}");
                }
                assert!(!marked(path).contains(SECRET), "marked as outside: {said}\n{context}");
            });
        }
    }

    /// Fails unless a run ended in one of the ways that a copy may end.
    #[track_caller]
    pub fn assert_ended_well(&self, ran: &Ran, context: &dyn std::fmt::Display) {
        assert!(matches!(ran.code, Some(0 | 1)), "{context}\n{ran}");
        assert!(!ran.stderr.contains("panicked"), "{context}\n{ran}");
    }
}

/// A new folder, in memory where that can be had: there are thousands of runs.
fn folder() -> Folder {
    Folder::in_memory().unwrap_or_else(|_| Folder::new())
}

/// A tree with one of each: files, further names of them, a symlink, a FIFO, directories.
pub fn plant(root: &Path, word: &str, seconds: i64) {
    fs::create_dir_all(root.join("dir/deep")).unwrap();
    fs::create_dir(root.join("hollow")).unwrap();
    for name in FILES {
        fs::write(root.join(name), text(word, name)).unwrap();
    }
    for (name, other) in LINKS {
        fs::hard_link(root.join(other), root.join(name)).unwrap();
    }
    symlink(format!("{word}-text"), root.join("link")).unwrap();
    mknodat(CWD, root.join("pipe"), FileType::Fifo, Mode::from_raw_mode(0o640), 0).unwrap();
    let marked = root.join("dir/inner");
    let _not_supported =
        lsetxattr(&marked, OsStr::new(ATTRIBUTE), word.as_bytes(), XattrFlags::empty());
    fs::set_permissions(root.join("file"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::set_permissions(root.join("dir"), fs::Permissions::from_mode(0o711)).unwrap();
    visit(root, &mut |path, _| date(path, seconds, seconds));
    date(root, seconds, seconds);
}

/// The contents of a file.
pub fn text(word: &str, name: &str) -> Vec<u8> {
    let line = format!("{word} {name}\n");
    let lines = if name == "big" { 4000 } else { 1 };
    line.repeat(lines).into_bytes()
}

/// The same names, and none of it is to be touched. No symlinks: reading one would have to be told
/// from our own looking.
fn plant_outside(root: &Path) {
    fs::create_dir_all(root.join("dir/deep")).unwrap();
    fs::create_dir(root.join("hollow")).unwrap();
    let others = ["link", "pipe", "again", "dir/deep/two"];
    for name in FILES.iter().chain(&others) {
        let path = root.join(name);
        fs::write(&path, format!("{SECRET} {name}\n")).unwrap();
        let _not_supported =
            lsetxattr(&path, OsStr::new(ATTRIBUTE), SECRET.as_bytes(), XattrFlags::empty());
    }
}

fn make_ancient(root: &Path) {
    visit(root, &mut |path, _| date(path, SECRET_TIME, ANCIENT));
    date(root, SECRET_TIME, ANCIENT);
}

fn date(path: &Path, modified: i64, accessed: i64) {
    let time = |tv_sec| Timespec { tv_sec, tv_nsec: 123_456_789 };
    let times = Timestamps { last_access: time(accessed), last_modification: time(modified) };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

fn marked(path: &Path) -> String {
    let mut value = [0; 100];
    let length = rustix::fs::lgetxattr(path, OsStr::new(ATTRIBUTE), &mut value[..]).unwrap_or(0);
    String::from_utf8_lossy(&value[..length]).into_owned()
}

/// Shows everything in a directory, what is deeper first. No symlink is followed.
pub fn visit(directory: &Path, show: &mut dyn FnMut(&Path, &fs::Metadata)) {
    if !directory.symlink_metadata().is_ok_and(|facts| facts.is_dir()) {
        return;
    }
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let Ok(facts) = path.symlink_metadata() else { continue };
        if facts.is_dir() {
            visit(&path, show);
        }
        show(&path, &facts);
    }
}
