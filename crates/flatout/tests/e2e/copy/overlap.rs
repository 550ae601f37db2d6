//! Sources that lie where something is written: the order of the operands decides, as with cp, and
//! nothing is read that was written over meanwhile.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::copier::under_test;
use super::likeness::likeness;
use crate::bin::{Folder, Ran};
use crate::filesystem::Mounted;
use crate::skip::needs;

/// Large enough that one operand is still at it when the other begins.
const FILES: usize = 8;
const FILE_BYTES: usize = 2 << 20;

/// A target that holds a source, and a tree that goes over that.
fn folder() -> Folder {
    let folder = Folder::new();
    for (directory, byte, length) in
        [("T/d/sub/deep", b'o', FILE_BYTES), ("src/d/sub/deep", b'n', 100), ("other", b'e', 10)]
    {
        fs::create_dir_all(folder.join(directory)).unwrap();
        for index in 0..FILES {
            let path = folder.join(directory).join(format!("f{index}"));
            fs::write(path, vec![byte; length]).unwrap();
        }
    }
    folder
}

/// What the target holds.
fn contents(target: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let all = likeness(target);
    all.into_iter().map(|(path, entry)| (path, entry.content)).collect()
}

fn by_cp(folder: &Folder, words: &[&str]) -> Ran {
    let words = ["-a"].iter().chain(words).map(Into::into).collect();
    folder.program("cp".as_ref(), words).run()
}

#[test]
fn a_source_in_a_tree_that_another_operand_fills_is_copied_as_with_cp() {
    needs!(under_test());
    for words in [
        &["T/d/sub", "src/d", "T"][..],
        &["src/d", "T/d/sub", "T"],
        &["T/d/sub/deep/.", "src/d", "T"],
        &["T/d/sub", "src/.", "T"],
        &["src/.", "T/d/sub", "T"],
        &["T/d/sub/deep/f1", "T/d/sub/deep/f2", "src/d", "T"],
        &["T/d/sub", "src/d/", "T/"],
        &["-t", "T", "T/d/sub", "src/d"],
    ] {
        let (ours, theirs) = (folder(), folder());
        by_cp(&theirs, words).exits(0);
        for _ in 0..3 {
            let ran = ours.flatout(["copy", "--threads=8"].iter().chain(words)).leaves("T").run();
            ran.exits(0);
            assert!(contents(&theirs.join("T")) == contents(&ours.join("T")), "{words:?}{ran}");
            by_cp(&theirs, words);
        }
    }
}

/// Source and target of one operand: what is inside would take the place of what is being read.
#[test]
fn a_source_that_its_own_copy_would_reach_is_refused_there() {
    needs!(under_test());
    for words in [&["S/a/.", "S"][..], &["-T", "S/a", "S"], &["-T", "S/a", "shown/a/.."]] {
        let folder = Folder::new();
        fs::create_dir_all(folder.join("S/a/a")).unwrap();
        fs::create_dir_all(folder.join("S/a/b")).unwrap();
        std::os::unix::fs::symlink("S", folder.join("shown")).unwrap();
        for index in 0..100 {
            fs::write(folder.join(&format!("S/a/f{index}")), "outer").unwrap();
            fs::write(folder.join(&format!("S/a/a/f{index}")), "inner").unwrap();
        }
        let ran = folder.flatout(["copy"].iter().chain(words)).leaves("S").run();
        ran.complains(1, &["a\": it is the source itself"]);
        let all_are = |directory: &str, text: &str| {
            (0..100).all(|index| {
                let path = folder.join(directory).join(format!("f{index}"));
                fs::read_to_string(path).unwrap() == text
            })
        };
        assert!(all_are("S/a", "outer") && all_are("S/a/a", "inner"), "nothing is lost{ran}");
        assert!(all_are("S", "outer") && folder.join("S/b").is_dir(), "the rest is copied{ran}");
    }
    // Without a way back there is nothing to refuse.
    let folder = folder();
    folder.flatout(["copy", "T/d/.", "T"]).leaves("T").run().exits(0);
    assert_eq!(fs::read(folder.join("T/sub/deep/f0")).unwrap().len(), FILE_BYTES);
}

/// By a bind mount the way back has another name.
#[test]
fn a_source_that_is_mounted_in_its_target_is_refused_there() {
    needs!(under_test());
    let folder = folder();
    fs::create_dir(folder.join("src/d/sub/deep/sub")).unwrap();
    let shown = needs!(Mounted::shown_again(&folder.join("src/d/sub")));
    let place = shown.path();
    let (parent, name) = (place.parent().unwrap(), place.file_name().unwrap());
    fs::create_dir(folder.join("src/d/sub").join(name)).unwrap();
    fs::write(folder.join("src/d/sub").join(name).join("f"), "inner").unwrap();
    fs::write(folder.join("src/d/sub/f"), "outer").unwrap();
    let words = ["copy".as_ref(), "src/d/sub/.".as_ref(), parent.as_os_str()];
    folder.flatout(words).run().complains(1, &["it is the source itself"]);
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    assert_eq!(read(&folder.join("src/d/sub/f")), "outer");
    assert_eq!(read(&folder.join("src/d/sub").join(name).join("f")), "inner");
    shown.finish();
}

/// Layers below an overlay have other device numbers than what it shows of them.
#[test]
fn a_tree_seen_through_another_filesystem_is_not_copied_into_itself() {
    needs!(under_test());
    let (lower, upper) = (Folder::new(), Folder::new());
    let overlay = needs!(Mounted::overlay(lower.path(), upper.path()));
    let (below, shown) = (upper.join("upper"), overlay.path());
    let folder = Folder::new();
    fs::create_dir_all(shown.join("d/sub")).unwrap();
    fs::write(shown.join("d/small"), "x").unwrap();
    fs::write(shown.join("d/sub/large"), [b'x'; 5000]).unwrap();
    let run = |options: &[&str], source: PathBuf, target: PathBuf| {
        let words = ["copy"].iter().chain(options).map(Into::into);
        let words = words.chain([source.into_os_string(), target.into_os_string()]);
        folder.flatout(words.collect::<Vec<_>>()).run()
    };
    let refused = |options: &[&str], source: PathBuf, target: PathBuf, why: &str| {
        let ran = run(options, source, target);
        assert!(ran.exits(1).stderr.contains(why), "{ran}");
    };
    let before = contents(&below);
    let inside = "the target lies inside the source";
    refused(&[], below.clone(), shown.join("new"), inside);
    refused(&[], shown.clone(), below.join("newer"), inside);
    refused(&["-T"], below.join("d"), shown.join("d/sub/newest"), inside);
    refused(&["-T"], shown.join("d"), below.join("d"), "it is the same directory as the source");
    let holds = "a source lies in it";
    refused(&["--delete", "--max-size", "1K", "-T"], shown.join("d"), below.clone(), holds);
    refused(&["--delete", "-T"], below.join("d/sub"), shown.clone(), holds);
    assert!(contents(&below) == before, "nothing was changed");
    run(&["-T"], shown.join("d"), below.clone()).exits(0);
    run(&["--delete", "-T"], shown.join("d"), below.join("new")).exits(0);
    run(&["--delete", "-T"], below.join("sub"), shown.join("d/sub")).exits(0);
    assert_eq!(fs::read(below.join("new/sub/large")).unwrap(), [b'x'; 5000]);
    assert_eq!(Folder::names_in(&below), ["d", "new", "small", "sub"].map(Into::into).into());
    overlay.finish();
}
