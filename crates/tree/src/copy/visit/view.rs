//! Whether one side of a copy lies in the other where device and inode numbers do not tell it: a
//! filesystem that shows directories of another one (bindfs, the layers of an overlay, a share of this
//! very machine) has numbers of its own. A mark that is made in the target is looked for in the source.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use flatout_sys::filesystem::{self, Nature};

use crate::copy::Copy;
use crate::file_data::{look, path_of};

/// How the source and the target lie to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overlap {
    Same,
    TargetInSource,
    SourceInTarget,
}

/// `None`: neither lies in the other; or no mark can be made, and then no copy can either.
///
/// Cost: nothing where both are ordinary filesystems; else a new file, and a call for each directory above
/// the two.
pub(super) fn overlap(copy: &Copy<'_>, (source, target): (&OwnedFd, &OwnedFd)) -> Option<Overlap> {
    let shows_others = |side: &OwnedFd| {
        filesystem::of(side.as_fd()).is_ok_and(|it| {
            matches!(it.nature, Nature::Network | Nature::Userspace | Nature::Overlay)
        })
    };
    if !shows_others(source) && !shows_others(target) {
        return None;
    }
    let (target, temporaries) = (target.as_fd(), &copy.temporaries);
    let (_mark, name) = temporaries.file(target, temporaries.name()).ok()?;
    let found = found(source.as_fd(), target, name.to_bytes());
    copy.remove_mark(target, &name);
    found
}

fn found(source: BorrowedFd<'_>, target: BorrowedFd<'_>, mark: &[u8]) -> Option<Overlap> {
    let is_there = |way: &[u8]| {
        let path = [way, mark].concat();
        look(source, OsStr::from_bytes(&path)).is_ok()
    };
    if is_there(b"") {
        return Some(Overlap::Same);
    }
    // The source may show any directory above the target.
    let path = path_of(target).unwrap_or_default();
    let steps = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    // Of the root no part is left; a path that begins with a slash would not be one of the source.
    let mut parts = steps.rev().map(|(step, _)| &path[step + 1..]).filter(|part| !part.is_empty());
    if parts.any(|part| is_there(&[part, b"/"].concat())) {
        return Some(Overlap::TargetInSource);
    }
    let levels = path_of(source)?.iter().filter(|byte| **byte == b'/').count();
    let mut above = (1..=levels).map(|level| b"../".repeat(level));
    above.any(|above| is_there(&above)).then_some(Overlap::SourceInTarget)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_in_the_root_is_found_above_the_source_alone() {
        let (place, root) = (tempfile::tempdir().unwrap(), std::fs::File::open("/").unwrap());
        let source = std::fs::File::open(place.path()).unwrap();
        let found_at = |mark: &[u8]| found(source.as_fd(), root.as_fd(), mark);
        assert_eq!(found_at(b"proc"), Some(Overlap::SourceInTarget));
        assert_eq!(found_at(b"nothing-has-such-a-name"), None);
        std::fs::write(place.path().join("mark"), "").unwrap();
        assert_eq!(found_at(b"mark"), Some(Overlap::Same));
    }
}
