//! Letters of cp for `flatout copy`, together with what it promises.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::copier::under_test;
use crate::bin::{Folder, executable};
use crate::filesystem::{needs_program, needs_root};
use crate::skip::needs;

/// `src` with two files, and `dst` with an older version of one.
fn folder() -> Folder {
    let folder = Folder::new();
    for name in ["src/there", "src/new", "dst/there"] {
        fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
        fs::write(folder.join(name), name).unwrap();
    }
    let old = File::options().write(true).open(folder.join("dst/there")).unwrap();
    old.set_modified(UNIX_EPOCH + Duration::from_secs(1_000)).unwrap();
    folder
}

#[test]
fn what_is_copied_by_a_letter_of_cp_is_verified() {
    needs!(under_test());
    for letter in ["-u", "-L", "-H", "-n", "-b", "--update=older", "--backup=numbered", "-s", "-l"]
    {
        let folder = folder();
        let source = format!("{}/.", folder.join("src").display());
        let ran = folder.flatout(["copy", "--verify", "-f", letter, &source, "dst"]).run();
        assert_eq!(ran.exits(0).stderr, "", "{letter}{ran}");
        let there = if letter == "-n" { "dst/there" } else { "src/there" };
        assert_eq!(fs::read_to_string(folder.join("dst/there")).unwrap(), there, "{letter}");
        assert_eq!(fs::read_to_string(folder.join("dst/new")).unwrap(), "src/new", "{letter}");
    }
}

/// A file may lie on another filesystem than its directory: it is mounted, or a symlink leads there.
#[test]
fn files_of_another_filesystem_than_their_directory_are_synced() {
    needs!(under_test());
    needs!(needs_root("mounts a filesystem"));
    needs!(needs_program("unshare"));
    needs!(needs_program("strace"));
    let program = executable().display();
    for (place, letter) in
        [("mount --bind box/there dst/there", ""), ("ln -sf ../box/there dst/there", "-u")]
    {
        let folder = folder();
        fs::create_dir(folder.join("box")).unwrap();
        let script = format!(
            "mount -t tmpfs none box && cp -a dst/there box && {place} || exit 9\n\
             strace -f -qq -o trace -e trace=syncfs {program} copy {letter} --sync -T src dst\n\
             cat box/there trace"
        );
        let words = ["--mount", "sh", "-c", &script].map(Into::into).to_vec();
        let ran = folder.program("unshare".as_ref(), words).leaves("trace").run();
        ran.exits(0);
        assert!(ran.stdout.starts_with("src/there"), "{ran}");
        assert_eq!(ran.stdout.matches("syncfs(").count(), 2, "{ran}");
    }
}

/// Names of one file in `src`; what bears them in `dst` is two files, one of them newer.
#[test]
fn what_is_newer_is_not_lost_to_a_link() {
    needs!(under_test());
    for program in [&["copy", "-u"][..], &["copy", "-ub"], &["cp", "-au"]] {
        let folder = folder();
        fs::hard_link(folder.join("src/there"), folder.join("src/twin")).unwrap();
        fs::write(folder.join("dst/twin"), "edited").unwrap();
        let time = UNIX_EPOCH + Duration::from_secs(4_000_000_000);
        let newer = File::options().write(true).open(folder.join("dst/twin")).unwrap();
        newer.set_modified(time).unwrap();
        let words: Vec<&str> = [program, &["src/.", "dst"]].concat();
        let planned = [&words[..], &["--dry-run", "-v"]].concat();
        if program[0] == "copy" {
            let said = folder.flatout(planned).run();
            assert!(!said.exits(0).stdout.contains("dst/./twin'"), "{program:?}{said}");
        }
        folder.flatout(words).run().exits(0);
        assert_eq!(fs::read_to_string(folder.join("dst/twin")).unwrap(), "edited", "{program:?}");
    }
}

/// Nothing holds other bytes there: what is up to date and what is new become one, whichever comes first.
#[test]
fn names_of_one_fifo_stay_one_where_some_are_up_to_date() {
    needs!(under_test());
    for there in ["one", "two"] {
        for what in ["mkfifo one", "ln -s nowhere one", "true > one && chmod 600 one"] {
            let folder = Folder::new();
            let script = format!(
                "mkdir src && cd src && {what} && ln one two && cp -a . ../dst && cd ../dst && \
                 cp -a {there} other && rm one two && mv other {there}"
            );
            let words = ["-c", &script].map(Into::into).to_vec();
            folder.program("sh".as_ref(), words).leaves("src").leaves("dst").run().exits(0);
            folder.flatout(["copy", "-u", "-T", "src", "dst"]).run().exits(0);
            let found =
                ["one", "two"].map(|name| fs::symlink_metadata(folder.join("dst").join(name)));
            let [one, two] = found.map(|found| found.unwrap().ino());
            assert_eq!(one, two, "{there} was there, {what}");
        }
    }
}

/// Otherwise the one that comes last would be in both, or count as up to date for the time of the first.
#[test]
fn two_names_of_one_target_do_not_get_one_over_the_other() {
    needs!(under_test());
    for letters in ["-u", "-f", "-b", "--in-place", "--in-place --delta"] {
        for links in ["--preserve=all", "--no-preserve=links"] {
            let folder = folder();
            fs::hard_link(folder.join("dst/there"), folder.join("dst/new")).unwrap();
            let words = format!("copy {letters} {links} src/. dst");
            folder.flatout(words.split(' ')).run().exits(0);
            for name in ["new", "there"] {
                let held = fs::read_to_string(folder.join("dst").join(name)).unwrap();
                assert_eq!(held, format!("src/{name}"), "{letters} {links}");
            }
        }
    }
}

/// At whichever call: what bears a name of ours then is found by the next one.
#[test]
fn a_killed_copy_with_backups_leaves_nothing_that_stays() {
    needs!(under_test());
    needs!(needs_program("strace"));
    let calls =
        ["symlinkat", "mknodat", "linkat", "utimensat", "renameat", "renameat2", "unlinkat"];
    for (call, number) in calls.iter().flat_map(|call| (1..=3).map(move |number| (call, number))) {
        let folder = folder();
        for side in ["src", "dst"] {
            symlink(side, folder.join(side).join("link")).unwrap();
            mknodat(CWD, folder.join(side).join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        }
        let inject = format!("inject={call}:signal=SIGKILL:when={number}");
        let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &inject];
        for words in ["copy -b -T src dst", "copy -b src/link src/pipe dst"] {
            let words: Vec<&str> = words.split(' ').collect();
            folder.under(&strace, &words).run();
            folder.flatout(words).run().exits(0);
            let found = Folder::names_in(&folder.join("dst"));
            let left = found.iter().any(|name| name.starts_with('.'));
            assert!(!left, "{call} {number}: {found:?}");
            assert_eq!(fs::read_link(folder.join("dst/link")).unwrap(), Path::new("src"));
        }
    }
}

#[test]
fn no_backup_takes_the_place_of_what_another_operand_has_brought() {
    needs!(under_test());
    for program in ["copy", "cp"] {
        let folder = folder();
        fs::write(folder.join("src/there~"), "brought").unwrap();
        folder.flatout([program, "-b", "src/there~", "src/there", "dst"]).run().exits(0);
        let found = ["there", "there~", "there.~1~"];
        let found = found.map(|name| fs::read_to_string(folder.join("dst").join(name)).unwrap());
        assert_eq!(found, ["src/there", "brought", "dst/there"], "{program}");
    }
}

#[test]
fn what_follows_the_letter_of_a_suffix_is_the_suffix() {
    needs!(under_test());
    for (letters, suffix) in [
        ("-S=.x", "=.x"),
        ("-bS=.x", "=.x"),
        ("-j1 -S.x", ".x"),
        ("-j=1 -o=figures -S -S=.x", "-S=.x"),
        ("--suffix=.x --exclude=-S=", ".x"),
    ] {
        let folder = folder();
        let words = format!("copy -b {letters} -t=dst src/there");
        folder.flatout(words.split(' ')).leaves("figures").run().exits(0);
        let backup = folder.join("dst").join(format!("there{suffix}"));
        assert_eq!(fs::read_to_string(backup).unwrap(), "dst/there", "{letters}");
    }
}

#[test]
fn letters_of_cp_and_a_snapshot_for_links_contradict_each_other() {
    needs!(under_test());
    let folder = folder();
    for letter in ["-u", "-n", "-b", "-L"] {
        let ran = folder.flatout(["copy", letter, "--link-dest", "dst", "src/.", "new"]).run();
        ran.complains(2, &["--link-dest contradicts"]);
    }
}
