//! A tree taken away, by descriptor: what a symlink points at stays, and depth has no limit.

use std::ffi::CString;
use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode};
use rustix::io::Errno;

use crate::ladder::Ladder;

/// Removes a directory and all that is in it. One that is not there is no error, a
/// symlink is no directory.
///
/// Errors: the first that came; as much as possible is gone nevertheless.
pub fn remove_tree(root: &Path) -> io::Result<()> {
    let mut ladder = match Ladder::open_itself(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let mut first = None;
    // Per rung: its name in the one above, and what is still to be gone into.
    let mut rungs = vec![(CString::default(), empty(&ladder, &mut first))];
    while let Some((_, below)) = rungs.last_mut() {
        if let Some(name) = below.pop() {
            match descend(&mut ladder, &name) {
                Ok(()) => rungs.push((name, empty(&ladder, &mut first))),
                Err(error) => keep(&mut first, error),
            }
            continue;
        }
        let Some((name, _)) = rungs.pop() else { break };
        if rungs.is_empty() {
            break;
        }
        ladder.ascend()?;
        if let Err(errno) = rustix::fs::unlinkat(ladder.here(), &name, AtFlags::REMOVEDIR) {
            keep(&mut first, errno.into());
        }
    }
    let removed = std::fs::remove_dir(root);
    // What stopped the emptying says more than "not empty".
    first.map_or(removed, Err)
}

/// Unlinks all but the directories here, and gives the names of those.
fn empty(ladder: &Ladder, first: &mut Option<io::Error>) -> Vec<CString> {
    let mut below = Vec::new();
    let listed = ladder.entries(|name, kind| {
        if kind == FileType::Directory {
            below.push(name.to_owned());
            return Ok(());
        }
        match rustix::fs::unlinkat(ladder.here(), name, AtFlags::empty()) {
            // Filesystems may leave the type open; unlinking says it then.
            Err(Errno::ISDIR) => below.push(name.to_owned()),
            Err(errno) => keep(first, errno.into()),
            Ok(()) => {}
        }
        Ok(())
    });
    if let Err(error) = listed {
        keep(first, error);
    }
    below
}

/// Goes down, and makes sure that entries can be removed there: copies have the modes of their
/// source, and may be read-only.
fn descend(ladder: &mut Ladder, name: &CString) -> io::Result<()> {
    let facts = rustix::fs::statat(ladder.here(), name, AtFlags::SYMLINK_NOFOLLOW)?;
    let mode = Mode::from_raw_mode(facts.st_mode);
    if !mode.contains(Mode::RWXU) && FileType::from_raw_mode(facts.st_mode).is_dir() {
        // Where it is somebody else's, what follows says so.
        let _unread = rustix::fs::chmodat(ladder.here(), name, Mode::RWXU, AtFlags::empty());
    }
    ladder.descend(name)
}

fn keep(first: &mut Option<io::Error>, error: io::Error) {
    first.get_or_insert(error);
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn all_is_gone_but_what_links_point_at() {
        let place = tempfile::tempdir().unwrap();
        let (tree, other) = (place.path().join("tree"), place.path().join("other"));
        fs::create_dir_all(tree.join("a/b/c")).unwrap();
        fs::create_dir(&other).unwrap();
        fs::write(other.join("stays"), "x").unwrap();
        fs::write(tree.join("a/b/file"), "x").unwrap();
        symlink(&other, tree.join("a/link")).unwrap();
        fs::set_permissions(tree.join("a/b"), fs::Permissions::from_mode(0o500)).unwrap();
        remove_tree(&tree).unwrap();
        assert!(!tree.exists() && other.join("stays").exists());
        remove_tree(&tree).unwrap();
        symlink(&other, &tree).unwrap();
        assert!(remove_tree(&tree).is_err() && other.join("stays").exists());
    }

    #[test]
    fn depth_has_no_limit() {
        let place = tempfile::tempdir().unwrap();
        let tree = place.path().join("tree");
        fs::create_dir(&tree).unwrap();
        let name = CString::new("d".repeat(200)).unwrap();
        let mut ladder = Ladder::open(&tree).unwrap();
        for _ in 0..200 {
            rustix::fs::mkdirat(ladder.here(), &name, Mode::RWXU).unwrap();
            ladder.descend(&name).unwrap();
        }
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
    }
}
