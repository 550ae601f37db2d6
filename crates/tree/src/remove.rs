//! A tree taken away, by descriptor: what a symlink points at stays, and depth has no limit.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::directory_stack::{DIRECTORY, DirectoryStack};
use crate::file_data;

/// Removes a directory and all that is in it. One that is not there is no error, a
/// symlink is no directory.
///
/// Errors: the first that came; as much as possible is gone nevertheless.
pub fn remove_tree(root: &Path) -> io::Result<()> {
    remove_tree_at(CWD, root)
}

/// As [`remove_tree`], of a directory that `name` stands for in `folder`. Whatever is done to the
/// path of `folder` meanwhile, nothing is removed elsewhere.
///
/// Errors: as there.
pub fn remove_tree_at(folder: BorrowedFd<'_>, name: impl Arg + Copy) -> io::Result<()> {
    let mut stack = match open_to_empty(folder, name) {
        Err(Errno::NOENT) => return Ok(()),
        opened => DirectoryStack::at(opened?.0)?,
    };
    let mut first = None;
    // Per level: its name in the one above, and what is still to be gone into.
    let mut levels = vec![(CString::default(), empty(&stack, &mut first))];
    while let Some((_, below)) = levels.last_mut() {
        if let Some(name) = below.pop() {
            let opened = open_to_empty(stack.here(), name.as_c_str()).map_err(io::Error::from);
            match opened.and_then(|(below, _)| stack.enter(below)) {
                Ok(()) => levels.push((name, empty(&stack, &mut first))),
                Err(error) => keep(&mut first, error),
            }
            continue;
        }
        let Some((name, _)) = levels.pop() else { break };
        if levels.is_empty() {
            break;
        }
        stack.ascend()?;
        if let Err(errno) = rustix::fs::unlinkat(stack.here(), &name, AtFlags::REMOVEDIR) {
            keep(&mut first, errno.into());
        }
    }
    let removed = rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR).map_err(io::Error::from);
    // What stopped the emptying says more than "not empty".
    first.map_or(removed, Err)
}

/// Unlinks all but the directories here, and gives the names of those.
fn empty(stack: &DirectoryStack, first: &mut Option<io::Error>) -> Vec<CString> {
    let mut below = Vec::new();
    let listed = stack.entries(|name, kind, _| {
        if kind == FileType::Directory {
            below.push(name.to_owned());
            return Ok(());
        }
        match rustix::fs::unlinkat(stack.here(), name, AtFlags::empty()) {
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

/// Opens a directory, and makes sure that entries can be removed there: copies have the modes of
/// their source, and may be read-only. Modes are changed by descriptor alone, so that a symlink
/// that takes the place of the directory changes nobody else's. Returns the mode that it had, where
/// that was changed.
pub(crate) fn open_to_empty(
    folder: BorrowedFd<'_>,
    name: impl Arg + Copy,
) -> rustix::io::Result<(OwnedFd, Option<Mode>)> {
    let flags = DIRECTORY | OFlags::NOFOLLOW;
    match rustix::fs::openat(folder, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => {
            let path = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let pinned = rustix::fs::openat(folder, name, path, Mode::empty())?;
            // fchmod(2) wants more than a pinned path; by this name it is the same directory.
            let mode = Mode::from_raw_mode(rustix::fs::fstat(&pinned)?.st_mode);
            rustix::fs::chmod(file_data::itself(&pinned), Mode::RWXU).map_err(|_| Errno::ACCESS)?;
            let opened = rustix::fs::openat(&pinned, c".", DIRECTORY, Mode::empty())?;
            Ok((opened, Some(mode)))
        }
        opened => {
            let opened = opened?;
            let mode = Mode::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode);
            let is_changed = !mode.contains(Mode::RWXU);
            if is_changed {
                // Where it is somebody else's, what follows says so.
                let _unread = rustix::fs::fchmod(opened.as_fd(), Mode::RWXU);
            }
            Ok((opened, is_changed.then_some(mode)))
        }
    }
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
    fn modes_are_no_hindrance_at_the_root_either() {
        for mode in [0o500, 0o600, 0o300, 0o000] {
            let place = tempfile::tempdir().unwrap();
            let tree = place.path().join("tree");
            fs::create_dir_all(tree.join("a")).unwrap();
            fs::write(tree.join("a/file"), "x").unwrap();
            for directory in [tree.join("a"), tree.clone()] {
                fs::set_permissions(directory, fs::Permissions::from_mode(mode)).unwrap();
            }
            remove_tree(&tree).unwrap();
            assert!(!tree.exists(), "{mode:o}");
        }
    }

    #[test]
    fn a_name_in_an_open_folder_is_removed_wherever_the_folder_went() {
        let place = tempfile::tempdir().unwrap();
        let (folder, moved) = (place.path().join("folder"), place.path().join("moved"));
        fs::create_dir_all(folder.join("7/below")).unwrap();
        let opened = fs::File::open(&folder).unwrap();
        fs::rename(&folder, &moved).unwrap();
        fs::create_dir_all(folder.join("7/below")).unwrap();
        remove_tree_at(opened.as_fd(), c"7").unwrap();
        assert!(folder.join("7/below").exists() && !moved.join("7").exists());
    }

    #[test]
    fn depth_has_no_limit() {
        let place = tempfile::tempdir().unwrap();
        let tree = place.path().join("tree");
        fs::create_dir(&tree).unwrap();
        let name = CString::new("d".repeat(200)).unwrap();
        let mut stack = DirectoryStack::open(&tree).unwrap();
        for _ in 0..200 {
            rustix::fs::mkdirat(stack.here(), &name, Mode::RWXU).unwrap();
            stack.descend(&name).unwrap();
        }
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
    }
}
