//! Directories that mkdirat(2) does not make as it is asked: the umask and default ACLs mask them.

use std::fs;

use rustix::fs::{XattrFlags, lsetxattr};

use super::super::forest::{Acl, acl};
use super::super::oracle::{Portrait, assert_same};
use super::{READ, by_nobody, folder_of_nobody, give, mode, plant};
use crate::bin::Folder;
use crate::filesystem::needs_program;
use crate::skip::needs;

#[test]
fn directories_are_made_whatever_the_umask() {
    let folder = needs!(folder_of_nobody());
    plant(&folder.join("tree"));
    let before = Portrait::of(&folder.join("tree"));
    for mask in ["111", "277", "333", "777"] {
        let name = format!("copy{mask}");
        let line = format!("umask {mask}; ./program copy tree {name}");
        let ran = by_nobody(&folder, &line).leaves(&name).run();
        assert_eq!(ran.exits(0).stderr, "", "{ran}");
        assert_same(&before, &Portrait::of(&folder.join(&name)), READ, &ran);
    }
    let line = "umask 277; ./program copy --no-preserve=mode tree masked";
    let ran = by_nobody(&folder, line).leaves("masked").run();
    assert_eq!((ran.exits(0).stderr.as_str(), mode(&folder.join("masked/sub"))), ("", 0o500));
}

#[test]
fn directories_are_made_below_a_narrow_default_list() {
    let folder = needs!(folder_of_nobody());
    plant(&folder.join("tree"));
    let before = Portrait::of(&folder.join("tree"));
    fs::create_dir(folder.join("place")).unwrap();
    give(&folder.join("place"));
    let narrow = acl([5, 5, 5, 5, 5, 0]);
    let set =
        lsetxattr(folder.join("place"), Acl::Default.attribute(), &narrow, XattrFlags::empty());
    needs!(set.map_err(|error| format!("no lists here: {error}")));
    let ran = by_nobody(&folder, "./program copy tree place/copy").run();
    assert_eq!(ran.exits(0).stderr, "", "{ran}");
    assert_same(&before, &Portrait::of(&folder.join("place/copy")), READ, &ran);
}

/// Killed before and after the mode is set right, and while the directory is filled.
#[test]
fn a_copy_killed_under_a_narrow_umask_is_completed() {
    let folder = needs!(folder_of_nobody());
    needs!(needs_program("strace"));
    plant(&folder.join("tree"));
    let before = Portrait::of(&folder.join("tree"));
    for (mask, call, preserve) in [
        ("277", "fchmod:signal=KILL:when=1", ""),
        ("111", "fchmod:signal=KILL:when=2", ""),
        ("777", "chmod,fchmodat:signal=KILL:when=1", ""),
        ("111", "flistxattr:signal=KILL:when=1", ""),
        ("277", "fchmod:signal=KILL:when=1", "--no-preserve=mode"),
    ] {
        let _none_yet = fs::remove_dir_all(folder.join("copy"));
        let copy = format!("./program copy --threads 1 {preserve} -T tree copy");
        let line = format!("umask {mask}; strace -f -qq -o /dev/null -e inject={call} {copy}");
        let killed = by_nobody(&folder, &line).leaves("copy").run();
        assert_ne!(killed.code, Some(0), "{call}{killed}");
        let ran = by_nobody(&folder, &format!("umask {mask}; {copy}")).run();
        assert_eq!(ran.exits(0).stderr, "", "{mask} {call}{ran}");
        if preserve.is_empty() {
            assert_same(&before, &Portrait::of(&folder.join("copy")), READ, &ran);
        } else {
            assert_eq!(mode(&folder.join("copy")), 0o500, "{ran}");
        }
    }
}

/// A file that was begun, and has bytes, is private to its owner, who may go on with it.
#[test]
fn a_file_killed_under_a_narrow_umask_is_completed() {
    let folder = needs!(folder_of_nobody());
    needs!(needs_program("strace"));
    plant(&folder.join("tree"));
    fs::write(folder.join("file"), "whole").unwrap();
    fs::create_dir(folder.join("t")).unwrap();
    give(&folder.join("file"));
    give(&folder.join("t"));
    for mask in ["277", "777", "177"] {
        for option in ["--threads=1", "--atomic"] {
            let _none_yet = fs::remove_file(folder.join("t/copy"));
            let copy = format!("./program copy {option} file t/copy");
            let inject = "inject=flistxattr:signal=KILL:when=1";
            let line = format!("umask {mask}; strace -f -qq -o /dev/null -e {inject} {copy}");
            let killed = by_nobody(&folder, &line).run();
            assert_ne!(killed.code, Some(0), "{mask}{killed}");
            let ran = by_nobody(&folder, &format!("umask {mask}; {copy}")).run();
            assert_eq!(ran.exits(0).stderr, "", "{mask}{ran}");
            assert_eq!(fs::read(folder.join("t/copy")).unwrap(), b"whole");
            assert_eq!(Folder::names_in(&folder.join("t")).len(), 1, "{ran}");
        }
    }
}
