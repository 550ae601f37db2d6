//! What is swapped for what.

use std::cell::Cell;
use std::fs;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, mknodat, openat2};

use super::arena::{Arena, TEMPORARY};

/// Parts of a tree that may be swapped: what it lies in, itself, directories, and everything else.
const DIRECTORIES: [&str; 5] = ["..", "", "dir", "dir/deep", "hollow"];
const LEAVES: [&str; 8] =
    ["file", "again", "link", "pipe", "dir/inner", "dir/one", "dir/deep/leaf", "dir/deep/two"];

/// Which tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Source,
    Target,
}

/// What comes in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// A symlink to what bears the same name outside.
    Symlink,
    /// A symlink to a name outside that nothing bears.
    Dangling,
    /// A regular file.
    File,
    /// A directory with nothing in it.
    Directory,
    /// A pipe, which makes whoever opens it wait.
    Fifo,
    /// Another name of a file outside.
    HardLink,
    Nothing,
}

/// How long it stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stay {
    /// To the end.
    ForGood,
    /// While one call happens.
    OneCall,
}

/// One swap.
#[derive(Debug, Clone, Copy)]
pub struct Attack {
    pub side: Side,
    /// The part of the tree; none: whatever has a temporary name just then.
    pub part: Option<&'static str>,
    pub planted: Planted,
    pub stay: Stay,
}

/// Every swap that there is.
pub fn all() -> Vec<Attack> {
    let mut all = Vec::new();
    for stay in [Stay::ForGood, Stay::OneCall] {
        for side in [Side::Source, Side::Target] {
            let mut add = |part, planted: &[Planted]| {
                all.extend(planted.iter().map(|&planted| Attack { side, part, planted, stay }));
            };
            for part in DIRECTORIES {
                add(Some(part), &[Planted::Symlink, Planted::Dangling, Planted::File]);
                add(Some(part), &[Planted::Directory, Planted::Nothing]);
            }
            for part in LEAVES {
                add(Some(part), &[Planted::Symlink, Planted::Dangling, Planted::File]);
                add(Some(part), &[Planted::Directory, Planted::Fifo, Planted::Nothing]);
            }
            if side == Side::Target {
                for part in LEAVES {
                    add(Some(part), &[Planted::HardLink]);
                }
            }
            // Put back when it has got its proper name, it would be litter of our own.
            if side == Side::Target && stay == Stay::ForGood {
                add(None, &[Planted::Symlink, Planted::Dangling, Planted::File, Planted::Nothing]);
            }
        }
    }
    all
}

impl Attack {
    /// Whether it swaps what the operands lie in.
    pub fn is_above(&self) -> bool {
        self.part == Some("..")
    }

    /// Does it; none where there is nothing to be swapped.
    pub fn strike(&self, arena: &Arena) -> Option<Struck> {
        let (root, outer) = match self.side {
            Side::Source => (arena.source(), arena.path("outside/tree")),
            Side::Target => (arena.target(), arena.path("outside/copy")),
        };
        let (path, counterpart) = match self.part {
            Some("") => (root, outer),
            Some("..") => (parent(&root), parent(&outer)),
            Some(part) => (root.join(part), outer.join(part)),
            None => (temporary(&root)?, outer.join("file")),
        };
        // The copier may rightly have copied a symlink that was planted; who swaps does not go
        // through it either.
        let (flags, rules) = (OFlags::PATH | OFlags::DIRECTORY, ResolveFlags::NO_SYMLINKS);
        let held = openat2(CWD, parent(&path), flags, Mode::empty(), rules).ok()?;
        let here = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()));
        let path = here.join(path.file_name()?);
        let aside = path.symlink_metadata().is_ok().then(|| unused(arena));
        if let Some(aside) = &aside {
            fs::rename(&path, aside).ok()?;
        }
        let struck = Struck { _held: held, path, aside };
        self.plant(&struck.path, &counterpart);
        Some(struck)
    }

    fn plant(&self, path: &Path, counterpart: &Path) {
        // Who runs freely may come second: then it is not planted.
        let _taken = match self.planted {
            Planted::Symlink => symlink(counterpart, path),
            Planted::Dangling => symlink(counterpart.with_file_name("absent"), path),
            // Not what is there by now: it may be a pipe, on which we would wait.
            Planted::File => {
                fs::File::create_new(path).and_then(|mut file| file.write_all(b"another file"))
            }
            Planted::Directory => fs::create_dir(path),
            Planted::HardLink => fs::hard_link(counterpart, path),
            Planted::Fifo => {
                let mode = Mode::from_raw_mode(0o600);
                mknodat(CWD, path, FileType::Fifo, mode, 0).map_err(Into::into)
            }
            Planted::Nothing => Ok(()),
        };
    }
}

/// What was done, so that it can be undone.
pub struct Struck {
    /// The directory in which it was done; the path begins there.
    _held: OwnedFd,
    path: PathBuf,
    aside: Option<PathBuf>,
}

impl Struck {
    /// Puts back what was there, in place of whatever is there now.
    pub fn undo(self) {
        let _none = match self.path.symlink_metadata() {
            Ok(facts) if facts.is_dir() => fs::remove_dir_all(&self.path),
            _ => fs::remove_file(&self.path),
        };
        if let Some(aside) = self.aside {
            let _taken = fs::rename(aside, self.path);
        }
    }
}

fn parent(path: &Path) -> PathBuf {
    path.parent().unwrap().to_owned()
}

/// A name to which something can be moved away.
fn unused(arena: &Arena) -> PathBuf {
    thread_local!(static COUNT: Cell<u64> = const { Cell::new(0) });
    let number = COUNT.replace(COUNT.get() + 1);
    arena.path("aside").join(number.to_string())
}

/// What stands under a temporary name now.
fn temporary(root: &Path) -> Option<PathBuf> {
    ["", "dir", "dir/deep"].iter().find_map(|directory| {
        let mut entries = fs::read_dir(root.join(directory)).ok()?.flatten();
        let is_one = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with(TEMPORARY);
        entries.find(|entry| is_one(&entry.file_name())).map(|entry| entry.path())
    })
}
