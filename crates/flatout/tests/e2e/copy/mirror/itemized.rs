//! `--itemize` prints the lines that `rsync -i` prints for the same changes, dry or not.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{XattrFlags, setxattr};

use super::garden::change;
use super::plant;
use crate::bin::Folder;
use crate::filesystem::{needs_program, needs_root};
use crate::fixture::{Random, is_full, seed};
use crate::skip::needs;

/// Options of ours, and of rsync for the same.
const OPTIONS: [(&[&str], &[&str]); 6] = [
    (&["--always"], &["-I"]),
    (&["--quick-check"], &[]),
    (&["--checksum"], &["-c"]),
    (&["--quick-check", "--exclude=*.o"], &["--exclude=*.o"]),
    (&["--checksum", "--no-preserve=timestamps,mode"], &["-c", "--no-times", "--no-perms"]),
    (
        &["--quick-check", "--no-preserve=ownership,xattr"],
        &["--no-owner", "--no-group", "--no-xattrs"],
    ),
];

/// Owners, attributes and times that differ from those on the other side.
fn disturb(root: &Path, random: &mut Random) {
    let mut waiting = vec![root.to_owned()];
    while let Some(path) = waiting.pop() {
        if path.is_dir() && !path.is_symlink() {
            let mut below: Vec<_> =
                fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect();
            // The order of a listing is another one in an equal tree.
            below.sort();
            waiting.extend(below);
        }
        if random.below(6) == 0 {
            let [user, group] = [0, 1].map(|_| Some(random.below(3) as u32));
            lchown(&path, user, group).unwrap();
        }
        if !path.is_file() || path.is_symlink() {
            continue;
        }
        // Of a file that loses such a bit with its owner rsync does not say what else it changed.
        let mode = path.metadata().unwrap().mode() & 0o777;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        if random.below(6) == 0 {
            let value = [random.below(2) as u8];
            setxattr(&path, "user.key", &value, XattrFlags::empty()).unwrap();
        }
    }
}

fn rsync(words: &[&str], folder: &Folder) -> BTreeSet<String> {
    let base = ["-aiX", "--delete", "--modify-window=-1", "--no-inc-recursive"];
    let mut command = Command::new("rsync");
    command.args(base).args(words).arg("source/").arg("theirs/").current_dir(folder.path());
    let ran = command.env("LC_ALL", "C.UTF-8").output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    lines(&String::from_utf8_lossy(&ran.stdout))
}

fn lines(text: &str) -> BTreeSet<String> {
    text.lines().map(str::to_owned).collect()
}

#[test]
fn each_line_is_that_of_rsync() {
    needs!(needs_root("keeping owners"));
    needs!(needs_program("rsync"));
    let seed = seed();
    let mut random = Random::new(seed);
    for series in 0..if is_full() { 60 } else { OPTIONS.len() } {
        let (ours, theirs) = OPTIONS[series % OPTIONS.len()];
        let folder = Folder::new();
        for name in ["source", "ours"] {
            fs::create_dir(folder.join(name)).unwrap();
        }
        for round in 0..if is_full() { 5 } else { 2 } {
            change(&folder.join("source"), &mut random, if round == 0 { 60 } else { 12 });
            disturb(&folder.join("source"), &mut random);
            change(&folder.join("ours"), &mut random, 8);
            disturb(&folder.join("ours"), &mut random);
            // rsync may have left a directory with another time.
            let _ = fs::remove_dir_all(folder.join("theirs"));
            let same = ["-a", "ours", "theirs"];
            let copied = Command::new("cp").args(same).current_dir(folder.path()).status();
            assert!(copied.unwrap().success());
            for dry in [&["--dry-run"][..], &[]] {
                let words = ["copy", "-T", "--delete", "--itemize", "source", "ours"];
                let words = [&words, ours, dry].concat();
                let ran = folder.flatout(words).leaves("ours").run();
                let mut found = lines(&ran.exits(0).stdout);
                let mut expected = rsync(&[theirs, dry].concat(), &folder);
                // What stays for what is excluded in it goes by rsync's dry run.
                let is_guess = !dry.is_empty() && ours.contains(&"--exclude=*.o");
                for lines in [&mut found, &mut expected] {
                    lines.retain(|line| {
                        let is_other = line.starts_with("dry run: ")
                            || line.starts_with("cannot delete non-empty directory: ")
                            || is_guess && line.starts_with("*deleting");
                        !is_other
                    });
                }
                let context = format!("FLATOUT_TEST_SEED={seed} {series} {round} {ours:?} {dry:?}");
                let [more, fewer] = [&found - &expected, &expected - &found];
                assert!(more.is_empty() && fewer.is_empty(), "{context} {more:#?} {fewer:#?}");
            }
        }
    }
}

/// A list that lets a user and a group in.
fn list(user: u32) -> Vec<u8> {
    let entry = |tag: u16, permissions: u16, id: u32| {
        [&tag.to_le_bytes()[..], &permissions.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    let entries = [(1, 6, !0), (2, 4, user), (4, 4, !0), (0x10, 4, !0), (0x20, 4, !0)];
    let entries = entries.map(|(tag, permissions, id)| entry(tag, permissions, id));
    [2_u32.to_le_bytes().to_vec(), entries.concat()].concat()
}

#[test]
fn lists_links_and_hostile_names_have_the_letters_of_rsync() {
    needs!(needs_root("keeping owners"));
    needs!(needs_program("rsync"));
    let folder = Folder::new();
    plant(&folder, &["source/a", "source/b", "source/d/c", "ours/", "theirs/"]);
    let path = |name: &str| folder.join("source").join(name);
    fs::hard_link(path("a"), path("d/z")).unwrap();
    for name in ["-n", "\\#123", "gr\u{f6}\u{df}e", " ", "back\\slash", "esc\x1b[31m"] {
        fs::write(path(name), name).unwrap();
        symlink(name, path(&format!("{name}.link"))).unwrap();
    }
    // Neither target was made in the tick of the clock in which this was filled.
    let long_ago = UNIX_EPOCH + Duration::from_secs(1 << 30);
    fs::File::open(folder.join("source")).unwrap().set_modified(long_ago).unwrap();
    let both = |more: &[&str], theirs: &[&str]| {
        let words = ["copy", "-T", "--delete", "--itemize", "--quick-check", "source", "ours"];
        let ran = folder.flatout([&words, more].concat()).leaves("ours").run();
        let [mut found, expected] =
            [lines(&ran.exits(0).stdout), rsync(&[&["-H"], theirs].concat(), &folder)];
        found.retain(|line| !line.starts_with("dry run: "));
        // Which name is the first one is left open.
        let letters = |line: &String| match line.contains(" => ") || line.ends_with(['a', 'z']) {
            true => line[..11].to_owned(),
            false => line.clone(),
        };
        let [found, expected] = [&found, &expected]
            .map(|lines| lines.iter().map(letters).collect::<BTreeSet<String>>());
        assert_eq!(found, expected, "{more:?}");
        expected
    };
    assert!(both(&[], &[]).contains("hf+++++++++"));
    setxattr(path("b"), "system.posix_acl_access", &list(7), XattrFlags::empty()).unwrap();
    assert_eq!(both(&[], &["-A"]), lines(".f.......a. b"));
    setxattr(path("b"), "system.posix_acl_access", &list(8), XattrFlags::empty()).unwrap();
    fs::set_permissions(path("d"), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(both(&[], &["-A"]), lines(".d...p..... d/\n.f.......a. b"));
    assert_eq!(both(&[], &["-A"]), lines(""));
    // What a directory has besides goes, as with rsync.
    for name in ["d", "."] {
        for target in ["ours", "theirs"] {
            let place = folder.join(target).join(name);
            setxattr(&place, "user.besides", b"1", XattrFlags::empty()).unwrap();
        }
    }
    let expected = lines(".d........x ./\n.d........x d/");
    assert_eq!(both(&["--dry-run"], &["-X", "--dry-run"]), expected);
    assert_eq!(both(&[], &["-X"]), expected);
    assert_eq!(both(&[], &["-X"]), lines(""));
}

#[test]
fn names_are_those_below_the_target() {
    let folder = Folder::new();
    plant(&folder, &["source/a", "there/"]);
    let run = |words: &[&str]| -> String {
        let words = [&["copy", "--itemize"], words].concat();
        let ran = folder.flatout(words).leaves("there").leaves("new").leaves("other").run();
        ran.exits(0).stdout.clone()
    };
    assert_eq!(run(&["source", "there"]), "cd+++++++++ source/\n>f+++++++++ source/a\n");
    assert_eq!(run(&["source", "new"]), "cd+++++++++ ./\n>f+++++++++ a\n");
    assert_eq!(run(&["source/a", "other"]), ">f+++++++++ a\n");
    assert_eq!(run(&["-l", "source/a", "there/b"]), "hf+++++++++ a => source/a\n");
    assert_eq!(run(&["-n", "source/a", "there/b"]), "");
    let ran = folder.flatout(["copy", "--itemize", "--format=json", "source", "there"]).run();
    ran.exits(2);
}
