//! What a symlink refers to: each entry on the way that it describes.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::path::Arg;

use super::directory::{Identity, identity};

/// Symlinks that the kernel follows at most (path_resolution(7)).
const MOST_SYMLINKS: u32 = 40;
/// What says that a way ends nowhere, or where this user cannot follow: then nothing is there that
/// could be lost by name.
const NOWHERE: [Errno; 6] =
    [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::ACCESS, Errno::NAMETOOLONG, Errno::NXIO];

/// Whether `wanted` is what a symlink in `directory` with this text refers to, or one of the symlinks
/// on the way there.
///
/// Cost: two calls for each of them, and a third for each that is a symlink.
/// Errors: those of the kernel, but for those that say that the way leads nowhere.
pub(super) fn is_on_the_way(
    directory: BorrowedFd<'_>,
    text: &CStr,
    wanted: Identity,
) -> Result<bool, Errno> {
    let mut text = text.to_owned();
    let mut here: Option<OwnedFd> = None;
    for _ in 0..MOST_SYMLINKS {
        let at = here.as_ref().map_or(directory, AsFd::as_fd);
        let reached = match open(at, &text, OFlags::NOFOLLOW) {
            Ok(reached) => reached,
            Err(errno) if NOWHERE.contains(&errno) => return Ok(false),
            Err(errno) => return Err(errno),
        };
        let facts = rustix::fs::fstat(&reached)?;
        if identity(&facts) == wanted {
            return Ok(true);
        }
        if !FileType::from_raw_mode(facts.st_mode).is_symlink() {
            return Ok(false);
        }
        // The next text counts from the directory in which this symlink lies.
        let above = match open(at, directory_of(&text), OFlags::DIRECTORY) {
            Ok(above) => above,
            Err(errno) if NOWHERE.contains(&errno) => return Ok(false),
            Err(errno) => return Err(errno),
        };
        text = rustix::fs::readlinkat(&reached, c"", Vec::new())?;
        here = Some(above);
    }
    Ok(false)
}

fn open(at: BorrowedFd<'_>, path: impl Arg, flags: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(at, path, OFlags::PATH | OFlags::CLOEXEC | flags, Mode::empty())
}

/// What stands before the last name of a path.
fn directory_of(path: &CStr) -> Vec<u8> {
    let bytes = path.to_bytes();
    match bytes.iter().rposition(|&byte| byte == b'/') {
        Some(slash) => bytes[..=slash].to_vec(),
        None => b".".to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    #[test]
    fn every_symlink_on_the_way_is_seen() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        std::fs::create_dir(at("sub")).unwrap();
        std::fs::write(at("sub/file"), "x").unwrap();
        symlink("file", at("sub/near")).unwrap();
        symlink("sub/near", at("far")).unwrap();
        symlink(at("far"), at("absolute")).unwrap();
        symlink("round", at("round")).unwrap();
        symlink("gone", at("dangling")).unwrap();
        let directory = rustix::fs::open(place.path(), OFlags::RDONLY, Mode::empty()).unwrap();
        let identity = |name: &str| {
            let facts = std::fs::symlink_metadata(at(name)).unwrap();
            (facts.dev(), facts.ino())
        };
        let is_on = |text: &CStr, wanted: &str| {
            is_on_the_way(directory.as_fd(), text, identity(wanted)).unwrap()
        };
        for wanted in ["sub/file", "sub/near", "far", "absolute"] {
            assert!(is_on(c"absolute", wanted), "{wanted}");
        }
        assert!(!is_on(c"far", "absolute") && !is_on(c"sub/file", "sub/near"));
        for text in [c"round", c"dangling", c"nowhere/at/all", c"sub/file/"] {
            assert!(!is_on(text, "sub/file"), "{text:?}");
        }
        assert!(is_on(c"round", "round"), "it refers to itself");
    }
}
