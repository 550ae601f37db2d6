//! Directories that do not let everybody do everything: searched but not read, closed, shared; and
//! those that a umask makes so. `cp -a` says what is to come of them.

mod closed;
mod shared;
mod umask;

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{chown, lchown, symlink};
use std::path::Path;

use super::copier::copy;
use super::entry::{chmod, mode};
use super::oracle::{Aspect, Leeway, Portrait, assert_same};
use crate::bin::{Flatout, Folder};
use crate::filesystem::{Kind, Mounted, needs_program, needs_root};
use crate::skip::needs;

const NOBODY: u32 = 65_534;
const READ: Leeway = Leeway::but(&[Aspect::Accessed]);

/// Gives a tree to nobody.
fn give(path: &Path) {
    lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.is_dir() && !path.is_symlink() {
        fs::read_dir(path).unwrap().for_each(|entry| give(&entry.unwrap().path()));
    }
}

/// A folder of nobody's, with the program in it.
fn folder_of_nobody() -> Result<Folder, String> {
    needs_root("running as somebody else")?;
    needs_program("setpriv")?;
    let folder = Folder::new();
    folder.admit_all();
    chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    Ok(folder)
}

/// A line for the shell, run by nobody.
fn by_nobody<'a>(folder: &'a Folder, line: &str) -> Flatout<'a> {
    let words = ["--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", line];
    folder.program("setpriv".as_ref(), words.map(OsString::from).to_vec())
}

/// A tree with something of each kind, of nobody's.
fn plant(tree: &Path) {
    fs::create_dir_all(tree.join("sub/deep")).unwrap();
    for name in ["file", "sub/file", "sub/deep/file"] {
        fs::write(tree.join(name), name).unwrap();
    }
    symlink("file", tree.join("link")).unwrap();
    fs::hard_link(tree.join("file"), tree.join("sub/other-name")).unwrap();
    give(tree);
}

/// What a umask and a kill leave of a directory, and what is shared, on one filesystem.
fn assert_the_same_on(place: &Path, program: &Path) {
    let folder = Folder::inside(place);
    chmod(folder.path(), 0o755);
    chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let (tree, target) = (folder.join("tree"), folder.join("copy"));
    plant(&tree);
    chmod(&tree.join("sub/deep"), 0o555);
    let before = Portrait::of(&tree);
    let inject = "strace -f -qq -o /dev/null -e inject=fchmod:signal=KILL:when=";
    for (mask, killed) in [("277", None), ("111", Some(1)), ("022", Some(2))] {
        let _none_yet = fs::remove_dir_all(&target);
        let line = format!("{} copy --threads 1 -T tree copy", program.display());
        if let Some(when) = killed {
            let line = format!("umask {mask}; {inject}{when} {line}");
            assert_ne!(by_nobody(&folder, &line).leaves("copy").run().code, Some(0));
        }
        let ran = by_nobody(&folder, &format!("umask {mask}; {line}")).leaves("copy").run();
        assert_eq!(ran.exits(0).stderr, "", "{ran}");
        assert_same(&before, &Portrait::of(&target), READ, &ran);
    }
    fs::create_dir(folder.join("shared")).unwrap();
    chown(folder.join("shared"), None, Some(50)).unwrap();
    chmod(&folder.join("shared"), 0o2775);
    copy(&["--no-preserve=mode"], &tree, &folder.join("shared/new")).exits(0);
    copy(&["-T"], &tree, &folder.join("shared")).exits(0);
    assert_eq!(["shared", "shared/new/sub"].map(|name| mode(&folder.join(name))), [0o2755; 2]);
}

#[test]
fn directories_are_the_same_on_all_filesystems() {
    let home = needs!(folder_of_nobody());
    needs!(needs_program("strace"));
    let program = home.join("program");
    let lower = Folder::new();
    for kind in [Kind::Ext4, Kind::Xfs, Kind::Btrfs, Kind::Tmpfs(64 << 20)] {
        let mounted = needs!(Mounted::new(kind));
        println!("{kind:?}");
        assert_the_same_on(&mounted.path(), &program);
        if kind == Kind::Ext4 {
            println!("overlay");
            let overlay = needs!(Mounted::overlay(lower.path(), &mounted.path()));
            assert_the_same_on(&overlay.path(), &program);
            overlay.finish();
        }
        mounted.finish();
    }
}

/// A second operand finds what the first one left, be its mode that of an unfinished directory.
#[test]
fn a_merge_of_two_operands_keeps_the_bits_of_a_shared_directory() {
    let folder = Folder::new();
    for (name, bits) in [("a", 0o700), ("b", 0o755), ("t", 0o3770)] {
        fs::create_dir(folder.join(name)).unwrap();
        chmod(&folder.join(name), bits);
    }
    folder.flatout(["copy", "a/.", "b/.", "t"]).run().exits(0);
    assert_eq!(mode(&folder.join("t")), 0o3755);
}
