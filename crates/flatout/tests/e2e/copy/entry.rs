//! What tests set of one entry of a tree, and what they see of it: mode, times, extended attributes.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, XattrFlags, lsetxattr, utimensat};

use crate::bin::wait_for;

pub fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// The permissions of an entry, a symlink's its own.
pub fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

/// Dates an entry, a symlink itself.
pub fn date(path: &Path, tv_sec: i64, tv_nsec: i64) {
    let time = Timespec { tv_sec, tv_nsec };
    let times = Timestamps { last_access: time, last_modification: time };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

/// Waits until a further change of what was written just now would show in its change time: the clock of
/// a filesystem stands still for some milliseconds.
pub fn settle(folder: &Path) {
    let probe = folder.join("probe");
    let changed = || {
        fs::write(&probe, "x").unwrap();
        let facts = probe.metadata().unwrap();
        facts.ctime() * 1_000_000_000 + facts.ctime_nsec()
    };
    let begun = changed();
    wait_for(|| changed() - begun >= 40_000_000);
    fs::remove_file(&probe).unwrap();
}

/// Sets an extended attribute.
pub fn set(path: &Path, name: &str, value: &[u8]) {
    lsetxattr(path, name, value, XattrFlags::empty()).unwrap();
}

/// Removes whatever bears a name.
pub fn remove(path: &Path) {
    match path.symlink_metadata() {
        Ok(facts) if facts.is_dir() => fs::remove_dir_all(path).unwrap(),
        Ok(_) => fs::remove_file(path).unwrap(),
        Err(_) => {}
    }
}
