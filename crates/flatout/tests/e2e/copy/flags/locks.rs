//! What is locked by chattr(1), and gives way, is locked again.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::{APPEND, IMMUTABLE, KEPT, NODUMP, copy, flags, set, under_test, unlock};
use crate::filesystem::{Kind, Mounted};
use crate::skip::needs;

/// What is merged into keeps what its source has not.
#[test]
fn a_directory_that_gives_way_by_force_is_locked_again() {
    needs!(under_test());
    let mounted = needs!(Mounted::new(Kind::Ext4));
    let (source, target) = (mounted.path().join("source"), mounted.path().join("target"));
    for tree in [&source, &target] {
        fs::create_dir_all(tree.join("append")).unwrap();
    }
    fs::write(source.join("append/new"), "new").unwrap();
    let locked = [("append/", APPEND), ("", IMMUTABLE | NODUMP)];
    locked.iter().for_each(|(name, flags)| set(&target.join(name), *flags));
    copy(&[KEPT], &source, &target).exits(1);
    for threads in ["--threads=1", "--threads=3"] {
        copy(&[KEPT, "--force", "--always", threads], &source, &target).exits(0);
        assert_eq!(fs::read(target.join("append/new")).unwrap(), b"new");
        assert_eq!(locked, locked.map(|(name, _)| (name, flags(&target.join(name)))));
    }
    unlock(&target);
    mounted.finish();
}

#[test]
fn other_names_of_a_locked_file_that_gives_way_stay_locked() {
    needs!(under_test());
    let mounted = needs!(Mounted::new(Kind::Ext4));
    let (source, target) = (mounted.path().join("source"), mounted.path().join("target"));
    for tree in [&source, &target] {
        fs::create_dir(tree).unwrap();
        fs::write(tree.join("file"), tree.as_os_str().as_bytes()).unwrap();
    }
    fs::hard_link(source.join("file"), source.join("link")).unwrap();
    for name in ["file", "link"] {
        let other = target.join(format!("other {name}"));
        fs::write(&other, "old").unwrap();
        let _was_there = fs::remove_file(target.join(name));
        fs::hard_link(&other, target.join(name)).unwrap();
        set(&other, IMMUTABLE);
    }
    copy(&[KEPT, "--force", "--threads=1"], &source, &target).exits(0);
    let found =
        |name: &str| (fs::read(target.join(name)).unwrap().len() > 3, flags(&target.join(name)));
    for name in ["file", "link"] {
        assert_eq!(found(name), (true, 0), "{name}");
        assert_eq!(found(&format!("other {name}")), (false, IMMUTABLE), "{name}");
    }
    unlock(&target);
    mounted.finish();
}

/// Where times are not kept, those of the two differ.
#[test]
fn a_locked_file_of_which_the_mode_is_put_right_is_locked_again() {
    needs!(under_test());
    let mounted = needs!(Mounted::new(Kind::Ext4));
    let (source, target) = (mounted.path().join("source"), mounted.path().join("target"));
    for (path, mode, second) in [(&source, 0o640, 1), (&target, 0o600, 2)] {
        fs::write(path, "text").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let moment = std::time::UNIX_EPOCH + std::time::Duration::from_secs(second);
        File::options().write(true).open(path).unwrap().set_modified(moment).unwrap();
        set(path, IMMUTABLE);
    }
    copy(&["--preserve=mode,flags", "--checksum"], &source, &target).exits(0);
    let mode = fs::metadata(&target).unwrap().mode() & 0o7777;
    assert_eq!((mode, flags(&target)), (0o640, IMMUTABLE));
    [&source, &target].into_iter().for_each(|path| set(path, 0));
    mounted.finish();
}
