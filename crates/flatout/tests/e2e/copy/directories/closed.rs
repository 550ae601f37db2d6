//! Directories that may be searched but not read, and those that let nobody in.

use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;

use super::super::entry::{chmod, date, mode};
use super::super::oracle::{Aspect, Kind, Leeway, Portrait, assert_same};
use super::{NOBODY, READ, by_nobody, folder_of_nobody, give, plant};
use crate::bin::Folder;
use crate::filesystem::needs_program;
use crate::skip::needs;

#[test]
fn parents_that_may_be_searched_but_not_read_are_no_obstacle() {
    let folder = needs!(folder_of_nobody());
    let (house, drop_box) = (folder.join("house"), folder.join("box"));
    for (place, mode) in [(&house, 0o711), (&drop_box, 0o1733)] {
        fs::create_dir(place).unwrap();
        chmod(place, mode);
    }
    plant(&house.join("tree"));
    let before = Portrait::of(&house.join("tree"));
    for (name, options) in
        [("plain", ""), ("whole", "--atomic"), ("durable", "--sync"), ("few", "--max-fds 40")]
    {
        let line = format!("./program copy {options} house/tree box/{name}");
        let ran = by_nobody(&folder, &line).run();
        assert_eq!(ran.exits(0).stderr, "", "{ran}");
        assert_same(&before, &Portrait::of(&drop_box.join(name)), READ, &ran);
        // One file, into the box, over itself and again.
        for _ in 0..2 {
            let line = format!("./program copy {options} --always house/tree/file box/{name}-file");
            let ran = by_nobody(&folder, &line).run();
            assert_eq!(ran.exits(0).stderr, "", "{ran}");
        }
        assert_eq!(fs::read(drop_box.join(format!("{name}-file"))).unwrap(), b"file");
    }
}

/// Durable is what is written where no directory can be opened to sync by, too.
#[test]
fn what_is_written_into_an_unreadable_directory_is_synced() {
    let folder = needs!(folder_of_nobody());
    needs!(needs_program("strace"));
    fs::create_dir(folder.join("box")).unwrap();
    chmod(&folder.join("box"), 0o733);
    fs::write(folder.join("file"), "durable").unwrap();
    let line = "strace -f -qq -o trace -e trace=syncfs,sync ./program copy --sync file box";
    by_nobody(&folder, line).leaves("trace").run().exits(0);
    let trace = fs::read_to_string(folder.join("trace")).unwrap();
    let is_done = |line: &str| line.contains("syncfs(") && line.ends_with("= 0");
    assert!(trace.lines().any(is_done), "{trace}");
}

#[test]
fn target_directories_that_may_be_written_but_not_read_are_merged_into() {
    let folder = needs!(folder_of_nobody());
    plant(&folder.join("tree"));
    for options in ["", "--max-fds 40", "--atomic", "--no-preserve=mode"] {
        let _none_yet = fs::remove_dir_all(folder.join("copy"));
        fs::create_dir_all(folder.join("copy/sub/deep")).unwrap();
        fs::write(folder.join("copy/sub/own"), "stays").unwrap();
        give(&folder.join("copy"));
        let directories = ["copy/sub/deep", "copy/sub", "copy"];
        directories.iter().for_each(|name| chmod(&folder.join(name), 0o333));
        let ran = by_nobody(&folder, &format!("./program copy {options} -T tree copy")).run();
        assert_eq!(ran.exits(0).stderr, "", "{ran}");
        let wanted = if options.contains("mode") { 0o333 } else { 0o755 };
        assert_eq!(directories.map(|name| mode(&folder.join(name))), [wanted; 3], "{ran}");
        fs::remove_file(folder.join("copy/sub/own")).unwrap();
        let leeway = Leeway::but(&[Aspect::Accessed, Aspect::Modified, Aspect::Mode]);
        let [before, after] = ["tree", "copy"].map(|name| Portrait::of(&folder.join(name)));
        assert_same(&before, &after, leeway, &ran);
    }
}

/// Of a deep chain not all directories are held open: they are found again, by `..` or by name.
#[test]
fn unreadable_directories_are_found_again() {
    let folder = needs!(folder_of_nobody());
    let names: Vec<String> = (1..=40).map(|depth| vec!["d"; depth].join("/")).collect();
    for place in ["tree", "copy"] {
        for name in &names {
            fs::create_dir_all(folder.join(place).join(name).join("aside")).unwrap();
            fs::write(folder.join(place).join(name).join("aside/file"), place).unwrap();
        }
        give(&folder.join(place));
    }
    names.iter().rev().for_each(|name| chmod(&folder.join("copy").join(name), 0o311));
    let ran = by_nobody(&folder, "./program copy --max-fds 40 --always -T tree copy").run();
    assert_eq!(ran.exits(0).stderr, "", "{ran}");
    let [before, after] = ["tree", "copy"].map(|name| Portrait::of(&folder.join(name)));
    assert_same(&before, &after, READ, &ran);
}

/// The time that is given to trees, in seconds.
const DATED_S: i64 = 1_000_000_000;

/// What `cp -a` and the copier make of the same, told by exit codes, modes and names.
fn assert_as_with_cp(folder: &Folder, prepare: impl Fn(&Path), context: &str) {
    let mut seen = Vec::new();
    for copier in ["cp -a", "./program copy"] {
        let place = folder.join("place");
        plant(&place.join("tree"));
        prepare(&place);
        chown(&place, Some(NOBODY), Some(NOBODY)).unwrap();
        let line = format!("{copier} -T place/tree place/copy");
        let ran = by_nobody(folder, &line).leaves("place").run();
        // As root, who sees it all.
        let portrait = Portrait::of(&place.join("copy"));
        let directories = portrait.entries.iter().map(|(path, entry)| {
            let is_directory = entry.kind == Kind::Directory;
            // The source's time, or that of the moment, which is never the same twice.
            let is_dated = is_directory.then_some(entry.modified.0 == DATED_S);
            (path.escape_ascii().to_string(), entry.mode, is_dated)
        });
        seen.push((ran.code, directories.collect::<Vec<_>>()));
        fs::remove_dir_all(&place).unwrap();
    }
    assert_eq!(seen[0], seen[1], "{context}");
}

/// Dates a tree, the directories in it, too.
fn date_all(path: &Path) {
    if path.is_dir() && !path.is_symlink() {
        fs::read_dir(path).unwrap().for_each(|entry| date_all(&entry.unwrap().path()));
    }
    date(path, DATED_S, 5);
}

#[test]
fn existing_directories_without_permissions_are_not_opened_up() {
    let folder = needs!(folder_of_nobody());
    for closed in ["copy", "copy/sub"] {
        for bits in [0o000, 0o111, 0o333, 0o444, 0o555, 0o700] {
            let prepare = |place: &Path| {
                date_all(&place.join("tree"));
                fs::create_dir_all(place.join("copy/sub")).unwrap();
                give(&place.join("copy"));
                chmod(&place.join(closed), bits);
            };
            assert_as_with_cp(&folder, prepare, &format!("{closed} {bits:o}"));
        }
    }
}

#[test]
fn a_source_directory_that_is_unreadable_gives_its_mode_and_times() {
    let folder = needs!(folder_of_nobody());
    for closed in ["tree", "tree/sub"] {
        for bits in [0o000, 0o100, 0o300, 0o311, 0o400, 0o644] {
            let prepare = |place: &Path| {
                date_all(&place.join("tree"));
                chmod(&place.join(closed), bits);
            };
            assert_as_with_cp(&folder, prepare, &format!("{closed} {bits:o}"));
        }
    }
    plant(&folder.join("tree"));
    chmod(&folder.join("tree/sub"), 0o300);
    let ran = by_nobody(&folder, "./program copy tree copy").leaves("copy").run();
    ran.exits(1);
    let named = ran.stderr.lines().filter(|line| line.ends_with("tree/sub\": Permission denied"));
    assert_eq!((named.count(), ran.stderr.lines().count()), (1, 1), "{ran}");
}

/// By the rules of cp the sticky bit of a directory that was there stays: this one was a mark.
#[test]
fn a_directory_that_a_kill_left_is_completed_with_options_of_cp_too() {
    for option in ["-u", "-n", "-b", "-L"] {
        let folder = Folder::new();
        for name in ["src/sub", "dst/sub"] {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        fs::write(folder.join("src/sub/file"), "whole").unwrap();
        let left =
            ["dst/", "dst/sub/"].map(|place| folder.join(&format!("{place}.flatout-copy-1-0-0")));
        left.iter().for_each(|left| fs::write(left, "a part").unwrap());
        for name in ["src", "src/sub"] {
            chmod(&folder.join(name), 0o755);
        }
        for name in ["dst/sub", "dst"] {
            chmod(&folder.join(name), 0o1700);
        }
        folder.flatout(["copy", option, "-T", "src", "dst"]).run().exits(0);
        assert_eq!(["dst", "dst/sub"].map(|name| mode(&folder.join(name))), [0o755; 2], "{option}");
        assert!(!left.iter().any(|left| left.exists()), "{option}");
    }
}
