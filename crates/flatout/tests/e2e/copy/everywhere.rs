//! What a copy neither loses nor widens, on each filesystem that does something its own way: in places
//! that share extents, keep no inode, or lie over another filesystem.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

use super::copier::is_control;
use super::entry::{date, settle};
use super::forest::{Acl, acl};
use super::oracle::Portrait;
use super::race::held::Held;
use crate::bin::{Folder, Ran};
use crate::filesystem::{Kind, Mounted};
use crate::skip::needs;

/// Runs the scenarios on one filesystem of each kind.
fn on_all(scenario: fn(&Folder)) -> Result<(), String> {
    if is_control() {
        return Err("cp stands in for the copier".into());
    }
    for kind in [Kind::Ext4, Kind::Xfs, Kind::Btrfs, Kind::Tmpfs(64 << 20)] {
        let mounted = Mounted::new(kind)?;
        let folder = Folder::inside(&mounted.path());
        scenario(&folder);
        drop(folder);
        mounted.finish();
    }
    let (lower, upper) = (Folder::new(), Mounted::new(Kind::Tmpfs(64 << 20))?);
    let overlay = Mounted::overlay(lower.path(), &upper.path())?;
    let folder = Folder::inside(&overlay.path());
    scenario(&folder);
    drop(folder);
    overlay.finish();
    upper.finish();
    Ok(())
}

fn write(folder: &Folder, name: &str, text: &str) {
    fs::write(folder.join(name), text).unwrap();
    date(&folder.join(name), 1, 0);
}

fn read(folder: &Folder, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

fn directories(folder: &Folder) {
    fs::create_dir(folder.join("src")).unwrap();
    fs::create_dir(folder.join("dst")).unwrap();
}

fn copy(folder: &Folder, words: &[&str]) -> Ran {
    folder.flatout(["copy"].iter().chain(words)).run()
}

#[test]
fn no_symlink_takes_the_place_of_its_referent_on_any_filesystem() {
    needs!(on_all(|folder| {
        directories(folder);
        write(folder, "dst/f", "DATA");
        symlink("../dst/f", folder.join("src/f")).unwrap();
        fs::hard_link(folder.join("dst/f"), folder.join("src/g")).unwrap();
        fs::hard_link(folder.join("dst/f"), folder.join("dst/g")).unwrap();
        let ran = copy(folder, &["src/.", "dst"]);
        assert_eq!(ran.exits(1).stderr.lines().count(), 2, "{ran}");
        assert_eq!((read(folder, "dst/f"), read(folder, "dst/g")), ("DATA".into(), "DATA".into()));
    }));
}

#[test]
fn equal_sizes_and_times_prove_nothing_on_any_filesystem() {
    needs!(on_all(|folder| {
        directories(folder);
        for name in ["a", "b"] {
            write(folder, &format!("src/{name}"), &format!("new {name}"));
            fs::hard_link(folder.join("src").join(name), folder.join(&format!("src/{name}2")))
                .unwrap();
        }
        write(folder, "dst/a", "old a");
        for name in ["a2", "b", "b2"] {
            fs::hard_link(folder.join("dst/a"), folder.join("dst").join(name)).unwrap();
        }
        copy(folder, &["-T", "src", "dst"]).exits(0);
        let inode = |name: &str| folder.join("dst").join(name).metadata().unwrap().ino();
        for name in ["a", "b"] {
            assert_eq!(read(folder, &format!("dst/{name}2")), format!("new {name}"));
            assert_eq!(inode(name), inode(&format!("{name}2")));
        }
        assert_ne!(inode("a"), inode("b"));
    }));
}

#[test]
fn what_was_noted_is_skipped_and_what_was_changed_is_not_on_any_filesystem() {
    needs!(on_all(|folder| {
        directories(folder);
        for number in 0..8 {
            write(folder, &format!("src/{number}"), &format!("text {number}"));
        }
        settle(folder.path());
        let noted = || {
            let words = ["copy", "--resume=always", "--format=json", "-T", "src", "dst"];
            let state = folder.join("state");
            let ran = folder.flatout(words).leaves("state");
            let ran = ran.with(|command| _ = command.env("FLATOUT_RESUME", state)).run();
            let audit = &ran.exits(0).result()["audit"];
            ["files", "unchanged"].map(|key| audit[key].as_u64().unwrap())
        };
        assert_eq!(noted(), [8, 0]);
        assert_eq!(noted(), [0, 8]);
        write(folder, "dst/3", "text X");
        fs::rename(folder.join("dst/4"), folder.join("dst/5")).unwrap();
        assert_eq!(noted(), [3, 5]);
        for number in 0..8 {
            assert_eq!(read(folder, &format!("dst/{number}")), format!("text {number}"));
        }
    }));
}

#[test]
fn what_is_not_copied_of_a_file_stays_on_any_filesystem() {
    needs!(on_all(|folder| {
        write(folder, "new", "new");
        write(folder, "old", "old");
        let old = folder.join("old");
        let list = acl([6, 4, 0, 4, 4, 0]);
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::lsetxattr(&old, Acl::Access.attribute(), &list, flags).unwrap();
        chown(&old, Some(7), Some(8)).unwrap();
        let kept = || {
            let portrait = Portrait::of(&old);
            let entry = portrait.entry("");
            (entry.mode, entry.owner, entry.attributes.clone())
        };
        let before = kept();
        for options in [&[][..], &["--atomic"], &["--in-place"]] {
            fs::write(&old, "old").unwrap();
            let words = [&["--no-preserve=mode,ownership"][..], options, &["new", "old"]].concat();
            copy(folder, &words).exits(0);
            assert_eq!(kept(), before, "{options:?}");
            assert_eq!(read(folder, "old"), "new");
        }
        fs::set_permissions(&old, fs::Permissions::from_mode(0o600)).unwrap();
        copy(folder, &["--no-preserve=mode", "new", "old"]).exits(0);
        assert_eq!(old.metadata().unwrap().mode() & 0o7777, 0o600);
    }));
}

#[test]
fn a_foreign_file_outlives_a_stopped_copy_on_any_filesystem() {
    needs!(on_all(|folder| {
        directories(folder);
        fs::write(folder.join("big"), vec![7; 3 << 20]).unwrap();
        write(folder, "foreign", "foreign");
        // The extents of the source are not shared: that would be over at once.
        let words = ["copy", "--engine=sync", "--reflink=never", "--threads=1", "big", "dst/f"];
        let more = [flatout_sys::launcher::PWRITE];
        let mut held = Held::start(folder.flatout(words), &more).unwrap();
        while let Some(stop) = held.next() {
            if stop.number == more[0] && folder.join("foreign").exists() {
                fs::rename(folder.join("foreign"), folder.join("dst/f")).unwrap();
                held.running().interrupt();
            }
            held.go_on(stop);
        }
        let ran = held.finish();
        assert_ne!(ran.code, Some(0), "{ran}");
        assert_eq!(read(folder, "dst/f"), "foreign", "{ran}");
        assert_eq!(Folder::names_in(&folder.join("dst")).len(), 1, "{ran}");
    }));
}
