//! `--delete`: a target that becomes what its source is, as `rsync -a --delete` makes it; and what is
//! never deleted.

mod against_rsync;
mod dry_run;
mod garden;
mod itemized;
mod loss;
mod room;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::bin::{Flatout, Folder, Ran};
use crate::filesystem::{needs_program, needs_root};
use crate::input::as_nobody;
use crate::skip::needs;

/// Files, each of which holds its own name; a name that ends with a slash is a directory.
fn plant(folder: &Folder, names: &[&str]) {
    for name in names {
        let path = folder.join(name);
        match name.strip_suffix('/') {
            Some(_) => fs::create_dir_all(path).unwrap(),
            None => {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, name).unwrap();
            }
        }
    }
}

/// Paths of all that is below a directory.
fn paths(root: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            found.insert(path.strip_prefix(root).unwrap().to_string_lossy().into_owned());
            if path.symlink_metadata().unwrap().is_dir() {
                waiting.push(path);
            }
        }
    }
    found
}

fn assert_holds(root: &Path, expected: &[&str], ran: &Ran) {
    let expected: BTreeSet<String> = expected.iter().map(|&path| path.to_owned()).collect();
    assert_eq!(paths(root), expected, "{ran}");
}

fn mirror<'a>(folder: &'a Folder, options: &[&str]) -> Flatout<'a> {
    let words = [&["copy", "-T", "source", "target", "--delete"], options].concat();
    folder.flatout(words).leaves("target")
}

#[test]
fn what_the_source_does_not_have_goes_and_what_is_excluded_stays() {
    let folder = Folder::new();
    let planted = ["source/a", "source/d/b", "source/d/x.o", "target/a", "target/d/gone"];
    plant(&folder, &planted);
    plant(&folder, &["target/old/deep/er", "target/old/keep.o", "target/y.o", "target/empty/"]);
    let ran = mirror(&folder, &["--exclude", "*.o", "--format", "json"]).run();
    let audit = ran.exits(0).result()["audit"].clone();
    assert_holds(&folder.join("target"), &["a", "d", "d/b", "old", "old/keep.o", "y.o"], &ran);
    assert_eq!((&audit["deleted"], &audit["not_deleted"]), (&4.into(), &0.into()), "{ran}");
    let ran = mirror(&folder, &["--exclude", "*.o", "--delete-excluded"]).run();
    ran.exits(0);
    assert_holds(&folder.join("target"), &["a", "d", "d/b"], &ran);
}

/// A disk that is not there is no order to delete its copy.
#[test]
fn an_empty_directory_on_which_a_disk_is_to_be_mounted_deletes_nothing() {
    needs!(needs_root("mounts a directory in place of /etc"));
    needs!(needs_program("unshare"));
    let folder = Folder::new();
    plant(
        &folder,
        &["source/d/", "source/with blank/", "target/a", "target/d/b", "target/with blank/c"],
    );
    let at = |name: &str| folder.join(name).to_str().unwrap().replace(' ', "\\040");
    let lines = ["source/d", "source/with blank", "other"].map(|name| {
        format!("LABEL=disk\t{} ext4  defaults 0 2\n# {} {0}\n", at(name), at("source"))
    });
    plant(&folder, &["etc/", "other/"]);
    fs::write(folder.join("etc/fstab"), lines.concat()).unwrap();
    // In a namespace of its own, with another /etc.
    let script = format!("mount --bind {} /etc && exec \"$@\"", at("etc"));
    let run = |words: &[&str]| {
        let wrapper = ["unshare", "--mount", "sh", "-c", &script, "sh"];
        folder.under(&wrapper, words).leaves("target").run()
    };
    let all = ["a", "d", "d/b", "with blank", "with blank/c"];
    // Whichever directory of the source it is, and whatever else there is to do.
    for options in [&["-T", "source"][..], &["-T", "--dry-run", "other"], &["-T", "other"]] {
        let words = [&["copy", "--delete"], options, &["target"]].concat();
        let ran = run(&words);
        assert!(ran.exits(1).stderr.contains("is not mounted"), "{ran}");
        // A directory of which fstab says nothing is as the source has it.
        let left = if options.contains(&"source") { &all[1..] } else { &all[..] };
        assert_holds(&folder.join("target"), left, &ran);
        plant(&folder, &["target/a"]);
    }
    let ran = run(&["copy", "--delete", "-T", "--max-delete=9", "other", "target"]);
    assert_holds(&folder.join("target"), &[], ran.exits(0));
    // What is mounted may be empty, and so may a directory of which fstab says nothing.
    plant(&folder, &["target/a"]);
    let mounted = format!("mount -t tmpfs none {} && {script}", at("other"));
    let words = ["copy", "--delete", "-T", "other", "target"];
    let wrapper = ["unshare", "--mount", "sh", "-c", &mounted, "sh"];
    let ran = folder.under(&wrapper, &words).leaves("target").run();
    assert_holds(&folder.join("target"), &[], ran.exits(0));
    plant(&folder, &["target/a", "plain/"]);
    let ran = run(&["copy", "--delete", "-T", "plain", "target"]);
    assert_holds(&folder.join("target"), &[], ran.exits(0));
}

#[test]
fn letters_of_cp_and_a_mirror_go_together() {
    let planted = ["source/a", "source/d/b", "target/a", "target/d/gone", "target/gone/too"];
    for options in [["-u"], ["-n"]] {
        let folder = Folder::new();
        plant(&folder, &planted);
        let ran = mirror(&folder, &options).run();
        ran.exits(0);
        assert_holds(&folder.join("target"), &["a", "d", "d/b"], &ran);
    }
    let folder = Folder::new();
    plant(&folder, &planted);
    let kept = ["a", "a~", "d", "d/b", "d/gone~", "gone", "gone/too~"];
    for options in [&["-b"][..], &["-b", "-u"], &["--backup=numbered"]] {
        let ran = mirror(&folder, options).run();
        ran.exits(0);
        let mut held = paths(&folder.join("target"));
        // Each run makes backups of what it overwrites.
        held.retain(|name| !name.ends_with(".~1~") && name != "d/b~");
        assert_eq!(held, kept.map(str::to_owned).into(), "{options:?} {ran}");
    }
}

#[test]
fn a_symlink_that_leads_to_itself_makes_room() {
    let folder = Folder::new();
    plant(&folder, &["source/a", "target/"]);
    symlink("a", folder.join("target/a")).unwrap();
    folder.flatout(["copy", "-T", "source", "target"]).leaves("target").run().exits(1);
    mirror(&folder, &[]).run().exits(0);
    assert_eq!(fs::read_to_string(folder.join("target/a")).unwrap(), "source/a");
}

#[test]
fn things_of_another_kind_make_room() {
    let folder = Folder::new();
    plant(&folder, &["source/file", "source/dir/in", "source/dir2/", "outside/stays"]);
    symlink("nowhere", folder.join("source/link")).unwrap();
    plant(&folder, &["target/file/was/a/tree", "target/link/was/too", "target/dir2"]);
    symlink(folder.join("outside"), folder.join("target/dir")).unwrap();
    let ran = mirror(&folder, &[]).leaves("outside").run();
    ran.exits(0);
    assert_holds(&folder.join("target"), &["dir", "dir/in", "dir2", "file", "link"], &ran);
    assert_eq!(fs::read_link(folder.join("target/link")).unwrap(), Path::new("nowhere"));
    assert!(folder.join("outside/stays").exists(), "{ran}");
    // Without it, all of them are obstacles.
    fs::remove_file(folder.join("target/file")).unwrap();
    plant(&folder, &["target/file/again"]);
    folder.flatout(["copy", "-T", "source", "target"]).run().complains(1, &["target/file"]);
}

/// As what `cp -al` makes: there is nothing to do, as for rsync.
#[test]
fn names_of_the_source_itself_stay_where_they_are_compared() {
    for option in ["--quick-check", "--checksum"] {
        let folder = Folder::new();
        plant(&folder, &["source/a", "source/sub/b", "target/old", "target/sub/"]);
        let fifo = (FileType::Fifo, Mode::from_raw_mode(0o600));
        mknodat(CWD, folder.join("source/fifo"), fifo.0, fifo.1, 0).unwrap();
        for name in ["a", "sub/b", "fifo"] {
            let [source, target] = ["source", "target"].map(|side| folder.join(side).join(name));
            fs::hard_link(source, target).unwrap();
        }
        mirror(&folder, &[option, "--dry-run"]).run().exits(0);
        let ran = mirror(&folder, &[option]).run();
        ran.exits(0);
        assert_holds(&folder.join("target"), &["a", "fifo", "sub", "sub/b"], &ran);
        assert_eq!(folder.join("target/a").metadata().unwrap().nlink(), 2);
    }
}

#[test]
fn no_more_is_deleted_than_is_allowed() {
    let folder = Folder::new();
    plant(&folder, &["source/a", "target/1", "target/2", "target/3", "target/4/5"]);
    let ran = mirror(&folder, &["--max-delete", "2", "--format", "json"]).run();
    let result = ran.exits(1).result();
    assert_eq!(result["audit"]["deleted"], 2, "{ran}");
    assert_eq!(result["status"], "degraded", "{ran}");
    assert_eq!(paths(&folder.join("target")).len(), 1 + 5 - 2, "{ran}");
    let said = "3 were to be deleted and were not: --max-delete";
    mirror(&folder, &["--max-delete", "0"]).run().complains(1, &[said]);
    mirror(&folder, &["--max-delete", "3"]).run().exits(0);
    assert_eq!(Folder::names_in(&folder.join("target")), ["a".to_owned()].into());
    // What is in a directory counts, be it one that is to make room: it stays with the rest.
    for (name, all) in [("gone", 4), ("a", 3)] {
        let within = ["1", "2", "3"].map(|file| format!("target/{name}/{file}"));
        let _room = fs::remove_file(folder.join("target/a"));
        plant(&folder, &within.each_ref().map(String::as_str));
        mirror(&folder, &["--always", "--max-delete", "2"]).run().exits(1);
        assert_eq!(Folder::names_in(&folder.join("target").join(name)).len(), 1, "{name}");
        plant(&folder, &within.each_ref().map(String::as_str));
        mirror(&folder, &["--always", "--max-delete", &all.to_string()]).run().exits(0);
        assert_eq!(fs::read(folder.join("target/a")).unwrap(), b"source/a", "{name}");
    }
}

#[test]
fn nothing_is_deleted_once_a_source_cannot_be_read() {
    needs!(needs_root("running as somebody else"));
    needs!(needs_program("setpriv"));
    let folder = Folder::new();
    plant(&folder, &["source/closed/in", "source/sub/a", "target/closed/in", "target/gone"]);
    plant(&folder, &["target/closed/also"]);
    for name in ["target", "target/closed", "target/closed/in", "target/closed/also", "target/gone"]
    {
        chown(folder.join(name), Some(65_534), Some(65_534)).unwrap();
    }
    let close = |mode| {
        let closed = folder.join("source/closed");
        fs::set_permissions(closed, fs::Permissions::from_mode(mode)).unwrap();
    };
    close(0o700);
    let mirror = || as_nobody(&folder, "copy -T --delete source target").leaves("target").run();
    let ran = mirror();
    assert_eq!(ran.exits(1).stderr.lines().count(), 2, "{ran}");
    assert!(ran.stderr.contains("open \"source/closed\": Permission denied"), "{ran}");
    assert!(ran.stderr.contains("nothing more is deleted"), "{ran}");
    let found = paths(&folder.join("target"));
    assert!(found.contains("gone") && found.contains("closed/also"), "{ran}");
    fs::set_permissions(folder.join("target/closed"), fs::Permissions::from_mode(0o755)).unwrap();
    close(0o755);
    let ran = mirror();
    ran.exits(0);
    assert_holds(&folder.join("target"), &["closed", "closed/in", "sub", "sub/a"], &ran);
}

#[test]
fn a_target_in_which_something_else_belongs_is_not_mirrored() {
    let folder = Folder::new();
    plant(&folder, &["a/x", "b/y", "there/inner/z", "there/stays"]);
    for words in [
        &["copy", "--delete", "a/.", "b/.", "there"][..],
        &["copy", "--delete", "a/.", "b", "there"],
        &["copy", "--delete", "-T", "there/inner", "there"],
    ] {
        folder.flatout(words).run().complains(1, &["cannot mirror", "would be deleted"]);
        assert!(folder.join("there/stays").exists() && !folder.join("there/x").exists());
    }
    folder.flatout(["copy", "--delete", "a", "b", "there"]).run().exits(0);
    assert!(folder.join("there/stays").exists(), "what is beside the copies is not theirs");
}

#[test]
fn a_log_in_a_target_that_is_mirrored_is_refused() {
    let folder = Folder::new();
    plant(&folder, &["source/a", "target/b"]);
    mirror(&folder, &["--log", "target/log"]).run().complains(1, &["target/log"]);
    assert!(folder.join("target/b").exists());
}

#[test]
fn mounts_in_a_target_are_left() {
    use crate::filesystem::{Kind, Mounted};
    let folder = Folder::new();
    plant(&folder, &["source/a", "target/old/"]);
    let mounted = needs!(Mounted::new(Kind::Tmpfs(1 << 20)));
    fs::write(mounted.path().join("precious"), "x").unwrap();
    let at = folder.join("target/old/mounted");
    fs::create_dir(&at).unwrap();
    let mut mount = std::process::Command::new("mount");
    assert!(mount.arg("--bind").arg(mounted.path()).arg(&at).status().unwrap().success());
    let ran = mirror(&folder, &[]).run();
    assert!(std::process::Command::new("umount").arg(&at).status().unwrap().success());
    ran.complains(1, &["something is mounted there"]);
    assert!(mounted.path().join("precious").exists() && at.exists(), "{ran}");
}

#[test]
fn options_of_a_mirror_that_make_no_sense_are_refused() {
    let folder = Folder::new();
    for (words, said) in [
        (&["copy", "--max-delete", "1", "a", "b"][..], "--max-delete means nothing"),
        (&["copy", "--delete", "--files-from", "x", "a", "b"], "--files-from contradicts --delete"),
        (&["copy", "--files-from", "x", "a", "b", "c"], "--files-from takes one source"),
    ] {
        folder.flatout(words).run().complains(2, &[said]);
    }
}
