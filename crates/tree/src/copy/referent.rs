//! What a symlink refers to: each entry on the way that it describes.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::path::Arg;

use super::{identity, kind_of};

/// Symlinks that the kernel follows at most (path_resolution(7)).
const MOST_SYMLINKS: u32 = 40;
/// What says that a way ends nowhere, or where this user cannot follow: then nothing is there that
/// could be lost by name.
const NOWHERE: [Errno; 6] =
    [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::ACCESS, Errno::NAMETOOLONG, Errno::NXIO];

/// Whether `wanted` is what a symlink in `directory` with this text refers to, or one of the symlinks
/// through which the way there leads, wherever in a path they stand.
///
/// Cost: two calls; where `wanted` is a symlink, two for each name on the way, and a third for each
/// that is a symlink.
/// Errors: those of the kernel, but for those that say that the way leads nowhere.
pub(super) fn is_on_the_way(
    directory: BorrowedFd<'_>,
    text: &CStr,
    wanted: &Stat,
) -> Result<bool, Errno> {
    let result = match is_the_end(directory, text, wanted) {
        Ok(false) if kind_of(wanted).is_symlink() => is_passed(directory, text, wanted),
        known => known,
    };
    match result {
        Err(errno) if NOWHERE.contains(&errno) => Ok(false),
        result => result,
    }
}

/// Whether the kernel finds it at the end of the way.
fn is_the_end(directory: BorrowedFd<'_>, text: &CStr, wanted: &Stat) -> Result<bool, Errno> {
    match open(directory, text, OFlags::empty()) {
        Ok(reached) => Ok(identity(&rustix::fs::fstat(&reached)?) == identity(wanted)),
        // It may lead through what is looked for, and nowhere after that.
        Err(errno) if NOWHERE.contains(&errno) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Whether a symlink is one of those through which the way leads: it is gone name by name.
fn is_passed(directory: BorrowedFd<'_>, text: &CStr, wanted: &Stat) -> Result<bool, Errno> {
    // What is still to go, the next name last.
    let mut ahead = Vec::new();
    let mut here = begin(directory, text.to_bytes(), &mut ahead)?;
    let mut symlinks = 0;
    while let Some(name) = ahead.pop() {
        let reached = open(here.as_fd(), name, OFlags::NOFOLLOW)?;
        let facts = rustix::fs::fstat(&reached)?;
        if identity(&facts) == identity(wanted) {
            return Ok(true);
        }
        if !kind_of(facts).is_symlink() {
            here = reached;
            continue;
        }
        symlinks += 1;
        if symlinks > MOST_SYMLINKS {
            return Ok(false);
        }
        let text = rustix::fs::readlinkat(&reached, c"", Vec::new())?;
        here = begin(here.as_fd(), text.to_bytes(), &mut ahead)?;
    }
    Ok(false)
}

/// Puts the names of a path before what is still to go; returns where they count from.
fn begin(here: BorrowedFd<'_>, text: &[u8], ahead: &mut Vec<Vec<u8>>) -> Result<OwnedFd, Errno> {
    let names = text.rsplit(|&byte| byte == b'/').filter(|name| !name.is_empty());
    ahead.extend(names.map(<[u8]>::to_vec));
    open(here, if text.starts_with(b"/") { c"/" } else { c"." }, OFlags::DIRECTORY)
}

fn open(at: BorrowedFd<'_>, path: impl Arg, flags: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(at, path, OFlags::PATH | OFlags::CLOEXEC | flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

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
        let is_on = |text: &CStr, wanted: &str| {
            let wanted = rustix::fs::lstat(at(wanted)).unwrap();
            is_on_the_way(directory.as_fd(), text, &wanted).unwrap()
        };
        for wanted in ["sub/file", "sub/near", "far", "absolute"] {
            assert!(is_on(c"absolute", wanted), "{wanted}");
        }
        assert!(!is_on(c"far", "absolute") && !is_on(c"sub/file", "sub/near"));
        for text in [c"round", c"dangling", c"nowhere/at/all", c"sub/file/"] {
            assert!(!is_on(text, "sub/file"), "{text:?}");
        }
        assert!(is_on(c"round", "round"), "it refers to itself");
        // In the middle of a path, too, be there an end to it or not.
        symlink("sub", at("way")).unwrap();
        symlink("way/near", at("through")).unwrap();
        for text in [c"way/near", c"./way/../way/file", c"through", c"way/gone", c"sub/../way/x/y"]
        {
            assert!(is_on(text, "way"), "{text:?}");
        }
        assert!(is_on(c"through", "sub/file") && !is_on(c"sub/near", "way"));
    }
}
