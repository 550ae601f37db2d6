//! A small copy with one request that goes wrong, and what must be true of it whatever that was.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, mknodat, utimensat};
use serde_json::Value;

use super::flaky::Flaky;
use super::request::{Effect, Kind, Trap};
use crate::bin::{Folder, Ran};
use crate::copy::entry::set;
use crate::copy::likeness::{Likeness, assert_alike, differences, likeness};
use crate::fixture::{is_full, random_bytes};

/// Several requests to read and to write.
const LONG_BYTES: usize = 70_000;
/// A copy that failed is repeated each time with `--full`, otherwise one of so many.
const RERUN_ONE_OF: u32 = 3;

/// Whether a copy that the n-th request of a kind failed is repeated.
pub fn is_rerun_after(nth: u32) -> bool {
    is_full() || nth % RERUN_ONE_OF == 1
}

/// How the names of unfinished files begin.
const TEMPORARY: &str = ".flatout-copy-";

/// What ENOSPC means for an extended attribute where there is room.
const TOO_LARGE: &str = "too large for the filesystem";

/// Which filesystem the trap is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Source,
    Target,
}

/// What is in the target before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    Nothing,
    /// An older copy, some entries of it other than they should be.
    Older,
    /// The same, and all of it older than the source.
    LongAgo,
    /// An older copy with what its source has not, and with things of other kinds.
    Mixed,
}

/// A source and a target, both of them with traps.
pub struct Bench {
    source: Flaky,
    target: Flaky,
    wanted: Likeness,
    before: Before,
    options: &'static [&'static str],
}

impl Bench {
    /// Mounts both and plants what is copied.
    pub fn new(before: Before, options: &'static [&'static str]) -> Result<Self, String> {
        let (source, target) = (Flaky::new()?, Flaky::new()?);
        let tree = source.path().join("tree");
        plant(&tree);
        let wanted = likeness(&tree);
        Ok(Self { source, target, wanted, before, options })
    }

    /// Whether files are read and written around the page cache.
    pub fn is_uncached(&self, is_uncached: bool) {
        self.source.is_uncached(is_uncached);
        self.target.is_uncached(is_uncached);
    }

    pub fn finish(self) {
        self.source.finish();
        self.target.finish();
    }

    fn side(&self, side: Side) -> &Flaky {
        match side {
            Side::Source => &self.source,
            Side::Target => &self.target,
        }
    }

    fn copy(&self, folder: &Folder) -> Ran {
        let (source, target) = (self.source.path().join("tree"), self.target.path().join("copy"));
        let mut words = vec!["copy".into(), "-T".into(), "--log".into(), folder.join("log")];
        words.extend(self.options.iter().map(PathBuf::from));
        words.extend([source, target]);
        folder.flatout(words).leaves("log").run()
    }

    fn found(&self) -> Likeness {
        likeness(&self.target.path().join("copy"))
    }

    fn prepare(&self) {
        self.source.set(None);
        self.target.set(None);
        self.target.clear();
        if self.before != Before::Nothing {
            plant_older(&self.target.path().join("copy"), self.before);
        }
    }

    /// Requests of a copy in which nothing goes wrong.
    pub fn requests(&self, side: Side) -> BTreeMap<Kind, u32> {
        self.prepare();
        self.source.set(None);
        self.target.set(None);
        let ran = self.copy(&Folder::new());
        let seen = self.side(side).seen();
        assert!(ran.exits(0).complaints().is_empty(), "{ran}");
        assert_alike(&self.wanted, &self.found(), &ran);
        seen
    }

    /// Copies with a trap, and looks at what came of it. Returns the exit code.
    pub fn spring(&self, side: Side, trap: Trap) -> i32 {
        self.prepare();
        self.side(side).set(Some(trap));
        let folder = Folder::new();
        let ran = self.copy(&folder);
        let sprung = self.side(side).disarm();
        let context = format!("{side:?} {trap:?} sprung: {sprung}{ran}");
        assert!(matches!(ran.code, Some(0 | 1)) && ran.signal.is_none(), "{context}");
        assert!(!ran.stderr.contains("panicked"), "{context}");
        let mut found = self.found();
        self.check_log(&folder, &found, &context);
        // Nobody can remove anything then.
        let removal_failed = side == Side::Target
            && (trap.kind == Kind::Unlink || trap.lasts && trap.kind == Kind::Lookup);
        if !removal_failed {
            assert!(litter(&found).is_empty(), "{:?}{context}", litter(&found));
        }
        if ran.code == Some(0) {
            if removal_failed && ran.stderr.contains("an empty file of this copy") {
                found.retain(|path, entry| !is_litter(path) || !entry.content.is_empty());
            }
            assert_alike(&self.wanted, &found, &context);
        } else {
            self.check_said(&ran, &found, trap, &context);
        }
        if ran.code == Some(1) && is_rerun_after(trap.nth) {
            let again = self.copy(&Folder::new());
            let context = format!("{context}and again:{again}");
            assert_eq!(again.code, Some(0), "{context}");
            let mut found = self.found();
            if removal_failed {
                // Not certain: a file that was complete, but neither renamed nor removed, has its mode
                // already, and the next copy does not take it for one of ours.
                found.retain(|path, _| !is_litter(path));
            }
            assert_alike(&self.wanted, &found, &context);
        }
        ran.code.unwrap()
    }

    /// What is logged as done is complete.
    fn check_log(&self, folder: &Folder, found: &Likeness, context: &str) {
        let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
        let top = self.source.path().join("tree");
        for line in log.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            if matches!(
                line["action"].as_str().unwrap(),
                "deleted" | "failed" | "notice" | "refused"
            ) {
                continue;
            }
            let path = Path::new(line["path"].as_str().unwrap()).strip_prefix(&top).unwrap();
            let (wanted, found) = (self.wanted.get(path), found.get(path));
            // A copy of a file whose other name failed is a file of its own. A link to what has its
            // bytes, but failed to get its attributes, is the link that it is to be.
            let is_link = line["action"] == "linked";
            let alone = |entry: Option<&crate::copy::likeness::Entry>| {
                let entry = entry?;
                let attributes = (!is_link).then_some((entry.mode, entry.modified));
                Some((entry.content.clone(), attributes))
            };
            assert!(alone(wanted) == alone(found), "{line} {wanted:?} {found:?}{context}");
        }
    }

    /// Each line names operation, path and cause, and what is not right is named.
    fn check_said(&self, ran: &Ran, found: &Likeness, trap: Trap, context: &str) {
        let (source, target) = (self.source.path().join("tree"), self.target.path().join("copy"));
        let mut is_stopped = false;
        let mut named = BTreeSet::new();
        for line in ran.complaints() {
            if line.starts_with("flatout: stopped: there is no room")
                || line == "flatout: a source could not be read: nothing more is deleted"
            {
                is_stopped = true;
                continue;
            }
            assert!(line.starts_with("flatout: cannot "), "{line}{context}");
            let (before_cause, cause) = line.rsplit_once(": ").unwrap();
            let start = before_cause.find('/').unwrap_or_else(|| panic!("{line}{context}"));
            let path = Path::new(before_cause[start..].trim_end_matches('"'));
            let below = path.strip_prefix(&source).or_else(|_| path.strip_prefix(&target));
            let above = path == self.source.path() || path == self.target.path();
            assert!(above || below.is_ok(), "{line}{context}");
            assert!(!cause.is_empty(), "{line}{context}");
            named.insert(below.unwrap_or(Path::new("")).to_owned());
        }
        if let Effect::Error(errno) = trap.effect {
            let cause = std::io::Error::from(errno).to_string();
            let cause = cause.split(" (os error").next().unwrap().to_owned();
            // ext4 has no other word for a list that is too long, so the copier looks for room.
            let is_said = |line: &str| line.ends_with(&cause) || line.ends_with(TOO_LARGE);
            let is_said = ran.stderr.lines().any(is_said);
            assert!(is_said, "`{cause}` is missing: {context}");
        }
        assert!(!named.is_empty(), "{context}");
        if is_stopped {
            return;
        }
        let is_named = |path: &Path| path.ancestors().any(|path| named.contains(path));
        for (path, what) in differences(&self.wanted, found) {
            // A directory in which something failed has another time or none of its own.
            let holds = named.iter().any(|named| named.parent() == Some(&path));
            // One that was to go stays with what stays in it.
            let stays = what.contains("only in the target")
                && named.iter().any(|named| named.starts_with(&path));
            // A second name of what was not copied.
            let first = self.wanted.get(&path).map(|entry| entry.first_name.clone());
            let is_other_name = first.is_some_and(|first| {
                let names = self.wanted.iter().filter(|(_, entry)| entry.first_name == first);
                names.into_iter().any(|(name, _)| is_named(name))
            });
            let is_litter = path.to_string_lossy().contains(TEMPORARY);
            assert!(
                is_named(&path) || holds || stays || is_other_name || is_litter,
                "nobody says that {path:?} {what}: {context}"
            );
        }
    }
}

fn litter(found: &Likeness) -> Vec<&PathBuf> {
    found.keys().filter(|path| is_litter(path)).collect()
}

fn is_litter(path: &Path) -> bool {
    path.to_string_lossy().contains(TEMPORARY)
}

fn date(path: &Path, seconds: u64) {
    let file = fs::File::open(path).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::new(seconds, 123_456_789)).unwrap();
}

/// One of each kind, with attributes of each kind.
fn plant(tree: &Path) {
    fs::create_dir_all(tree.join("sub/deep")).unwrap();
    fs::create_dir(tree.join("vacant")).unwrap();
    for (name, length) in [("empty", 0), ("long", LONG_BYTES), ("short", 5), ("sub/deep/leaf", 9)] {
        fs::write(tree.join(name), random_bytes(length, length as u64)).unwrap();
    }
    fs::hard_link(tree.join("short"), tree.join("sub/other-name")).unwrap();
    symlink("nowhere", tree.join("symlink")).unwrap();
    mknodat(CWD, tree.join("sub/pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    set(&tree.join("long"), "user.note", b"kept");
    set(&tree.join("sub"), "user.note", b"kept, too");
    chown(tree.join("short"), Some(7), Some(8)).unwrap();
    chown(tree.join("vacant"), Some(7), Some(8)).unwrap();
    let modes =
        [("long", 0o4755), ("sub/deep/leaf", 0o444), ("sub/deep", 0o555), ("vacant", 0o700)];
    for (name, mode) in modes {
        fs::set_permissions(tree.join(name), Permissions::from_mode(mode)).unwrap();
    }
    for (index, name) in
        ["empty", "long", "short", "sub/deep/leaf", "sub/deep", "sub", "vacant", ""]
            .into_iter()
            .enumerate()
    {
        date(&tree.join(name), 1_000_000_000 + index as u64);
    }
}

/// What a copy of long ago may have left.
fn plant_older(copy: &Path, before: Before) {
    fs::create_dir_all(copy.join("sub")).unwrap();
    fs::write(copy.join("long"), random_bytes(LONG_BYTES / 2, 3)).unwrap();
    fs::write(copy.join("short"), "older").unwrap();
    fs::write(copy.join("empty"), "").unwrap();
    date(&copy.join("empty"), 1_000_000_000);
    if before == Before::Mixed {
        for directory in ["symlink", "surplus/below"] {
            fs::create_dir_all(copy.join(directory)).unwrap();
            fs::write(copy.join(directory).join("file"), directory).unwrap();
        }
        return fs::write(copy.join("vacant"), "no directory").unwrap();
    }
    symlink("elsewhere", copy.join("symlink")).unwrap();
    set(&copy.join("sub"), "user.note", b"older");
    if before == Before::Older {
        set(&copy.join("long"), "user.other", b"older");
    }
    if before == Before::LongAgo {
        let time = Timespec { tv_sec: 900_000_000, tv_nsec: 0 };
        let times = Timestamps { last_access: time, last_modification: time };
        for name in ["empty", "long", "short", "symlink"] {
            utimensat(CWD, copy.join(name), &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
        }
    }
}
