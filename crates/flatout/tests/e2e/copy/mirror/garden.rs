//! Trees that change: a small generator of things of all kinds under few names, so that kinds change
//! often, and names with bytes that are no UTF-8.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, mknodat, utimensat};

use crate::copy::entry::remove;
use crate::fixture::Random;

const NAMES: [&[u8]; 10] = [
    b"a",
    b"b.o",
    b"c.txt",
    b"tmp",
    b"sp ace",
    b"d.tmp",
    b"\xff\xfe",
    b"keep",
    b".hidden",
    b"new\nline",
];

/// Changes a tree at random; the same numbers make the same changes in equal trees.
pub fn change(root: &Path, random: &mut Random, times: usize) {
    for _ in 0..times {
        let path = somewhere(root, random);
        match random.below(8) {
            0 | 1 => remove(&path),
            2 => directory(&path, random),
            3 => other(&path, random),
            _ => file(&path, random),
        }
    }
}

/// A path whose parents are directories, made so where they are not.
fn somewhere(root: &Path, random: &mut Random) -> PathBuf {
    let mut path = root.to_owned();
    for _ in 0..random.below(4) {
        path.push(name(random));
        if !path.symlink_metadata().is_ok_and(|facts| facts.is_dir()) {
            directory(&path, random);
        }
    }
    path.join(name(random))
}

fn name(random: &mut Random) -> OsString {
    OsStr::from_bytes(NAMES[random.below(NAMES.len())]).to_owned()
}

fn directory(path: &Path, random: &mut Random) {
    remove(path);
    fs::create_dir(path).unwrap();
    let mode = [0o755, 0o700, 0o511][random.below(3)];
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn file(path: &Path, random: &mut Random) {
    remove(path);
    let bytes = vec![random.below(256) as u8; random.below(5_000)];
    fs::write(path, bytes).unwrap();
    let mode = [0o644, 0o600, 0o444, 0o4755][random.below(4)];
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let modified = UNIX_EPOCH + Duration::from_nanos(random.next() >> 4);
    fs::File::open(path).unwrap().set_modified(modified).unwrap();
}

fn other(path: &Path, random: &mut Random) {
    remove(path);
    match random.below(3) {
        0 => mknodat(CWD, path, FileType::Fifo, Mode::RUSR, 0).unwrap(),
        _ => symlink(["nowhere", ".", "a"][random.below(3)], path).unwrap(),
    }
    let at = Timespec { tv_sec: (random.next() >> 33) as i64, tv_nsec: 0 };
    let times = Timestamps { last_access: at, last_modification: at };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}
