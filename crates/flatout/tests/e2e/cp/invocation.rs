//! How the command is found: by its name, or as the first word.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::bin::{Folder, executable};
use crate::copy::oracle::{Aspect, Leeway, Portrait, differences};

#[test]
fn a_link_that_is_called_cp_is_cp() {
    let folder = Folder::new();
    symlink(executable(), folder.join("cp")).unwrap();
    symlink(executable(), folder.join("cpx")).unwrap();
    fs::write(folder.join("a"), "a").unwrap();
    let run = |name: &str, words: &[&str]| {
        Command::new(folder.join(name)).args(words).current_dir(folder.path()).output().unwrap()
    };
    let output = run("cp", &["a", "b"]);
    assert_eq!((output.status.code(), output.stdout, output.stderr), (Some(0), vec![], vec![]));
    assert_eq!(fs::read_to_string(folder.join("b")).unwrap(), "a");
    let wrong = run("cp", &["--wrong", "a", "b"]);
    let said = String::from_utf8(wrong.stderr).unwrap();
    assert!(wrong.status.code() == Some(1) && said.starts_with("cp: "), "{said}");
    assert_eq!(run("cpx", &["a", "b"]).status.code(), Some(2));
    // What comes after the name are its operands, whatever they mean to others.
    assert_eq!(run("cp", &["copy", "c"]).status.code(), Some(1));
    for words in [["--help"], ["--version"]] {
        let output = run("cp", &words);
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && said.contains("cp"), "{said}");
    }
}

#[test]
fn a_script_full_of_cp_yields_the_same_trees() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/cp/script.sh");
    let place = Folder::new();
    fs::create_dir(place.join("bin")).unwrap();
    symlink(executable(), place.join("bin/cp")).unwrap();
    let path = std::env::var("PATH").unwrap();
    let ours = format!("{}:{path}", place.join("bin").display());
    let portraits = [("theirs", &path), ("ours", &ours)].map(|(name, path)| {
        let folder = place.join(name);
        fs::create_dir(&folder).unwrap();
        let mut command = Command::new("sh");
        command.arg(script).current_dir(&folder).env("PATH", path).env("LC_ALL", "C");
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{name}: {said}");
        Portrait::of(&folder)
    });
    let leeway = Leeway::but(&[Aspect::Accessed, Aspect::Room, Aspect::Holes]);
    let mut all = differences(&portraits[0], &portraits[1], leeway);
    let is_symlink = |path: &[u8]| !portraits[0].entries[path].text.is_empty();
    all.retain(|one| one.aspect != Aspect::Modified || !is_symlink(&one.path));
    let lines: Vec<String> = all.iter().map(ToString::to_string).collect();
    assert!(portraits[0].entries.len() > 150 && lines.is_empty(), "{}", lines.join("\n"));
    assert_eq!(fs::read_to_string(place.join("ours/results")).unwrap().lines().count(), 5);
}

#[test]
fn an_existing_file_stays_the_same_inode() {
    use std::os::unix::fs::MetadataExt;
    let folder = Folder::new();
    fs::write(folder.join("a"), "new").unwrap();
    fs::write(folder.join("b"), "older").unwrap();
    fs::hard_link(folder.join("b"), folder.join("c")).unwrap();
    let before = fs::metadata(folder.join("b")).unwrap().ino();
    folder.flatout(["cp", "a", "b"]).run().exits(0);
    assert_eq!(fs::metadata(folder.join("b")).unwrap().ino(), before);
    assert_eq!(fs::read_to_string(folder.join("c")).unwrap(), "new");
}

#[test]
fn the_source_survives_what_would_destroy_it() {
    let folder = Folder::new();
    fs::write(folder.join("a"), "a").unwrap();
    fs::write(folder.join("gone"), "old").unwrap();
    symlink("a", folder.join("l")).unwrap();
    for words in [["a", "l"], ["l", "a"], ["-f", "a"], ["-P", "l"]] {
        let mut all = vec!["cp"];
        all.extend(words);
        all.extend((words[0].starts_with('-')).then_some("a"));
        folder.flatout(all).run().exits(1);
        assert_eq!(fs::read_to_string(folder.join("a")).unwrap(), "a", "{words:?}");
    }
    // cp removes what is there before it finds out that there is nothing to copy.
    folder.flatout(["cp", "--remove-destination", "nowhere", "gone"]).run().exits(1);
    assert_eq!(fs::read_to_string(folder.join("gone")).unwrap(), "old");
}
