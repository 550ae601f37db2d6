//! What may be skipped: only what this program is known to have made of that very source.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::PathBuf;

use super::copier::under_test;
use super::entry::{date, settle};
use super::race::held::{Call, Held};
use crate::bin::{Flatout, Folder, Ran};
use crate::filesystem::{Kind, Mounted, needs_program, needs_root};
use crate::input::as_nobody;
use crate::skip::needs;

const NOBODY: u32 = 65_534;

fn write(path: PathBuf, text: &str) {
    fs::write(&path, text).unwrap();
    date(&path, 1, 0);
}

fn read(path: PathBuf) -> String {
    fs::read_to_string(path).unwrap()
}

/// Copies with a ledger in `state`, and says how many files were copied, and how many skipped.
fn noted(folder: &Folder, words: &[&str]) -> (Ran, [u64; 2]) {
    let words = ["copy", "--format", "json"].iter().chain(words);
    let state = folder.join("state");
    let ran = folder
        .flatout(words)
        .leaves("state")
        .leaves("dst")
        .with(|command| _ = command.env("FLATOUT_RESUME", state))
        .run();
    let audit = ran.result()["audit"].clone();
    let count = |key: &str| audit[key].as_u64().unwrap();
    let counts = [count("files"), count("unchanged")];
    (ran, counts)
}

#[test]
fn equal_sizes_and_times_are_no_reason_to_skip() {
    needs!(under_test());
    for options in [&[][..], &["--atomic"], &["--in-place"], &["--resume=always"]] {
        let folder = Folder::new();
        let paths = ["f", "g", "src/a", "src/b", "dst/a", "dst/b"];
        for name in ["src", "dst"] {
            fs::create_dir(folder.join(name)).unwrap();
        }
        paths.iter().for_each(|name| write(folder.join(name), &format!("{name:8}")));
        let copy = |words: &[&str]| {
            let words = [&["copy"][..], options, words].concat();
            folder.flatout(words).run().exits(0);
        };
        copy(&["f", "g"]);
        assert_eq!(read(folder.join("g")), "f       ", "{options:?}");
        copy(&["src/.", "dst"]);
        assert_eq!(read(folder.join("dst/b")), "src/b   ", "{options:?}");
        copy(&["-T", "src", "dst"]);
        copy(&["src/a", "dst/b"]);
        assert_eq!(read(folder.join("dst/b")), "src/a   ", "{options:?}");
    }
}

/// rsync's rule, for those who want it.
#[test]
fn the_quick_check_assumes_what_it_says() {
    needs!(under_test());
    let folder = Folder::new();
    write(folder.join("f"), "one");
    write(folder.join("g"), "two");
    let copy = |option: &str| folder.flatout(["copy", option, "f", "g"]).run().exits(0).code;
    copy("--quick-check");
    assert_eq!(read(folder.join("g")), "two");
    copy("--checksum");
    assert_eq!(read(folder.join("g")), "one");
}

/// Four names that hold two contents never become one file.
#[test]
fn names_that_hold_different_bytes_never_become_one_file() {
    needs!(under_test());
    for options in [&[][..], &["--quick-check"], &["--in-place"], &["--threads=1", "--quick-check"]]
    {
        for bonds in [["a1", "a2", "b1", "b2"], ["a1", "b1", "a2", "b2"], ["b2", "b1", "a2", "a1"]]
        {
            let folder = Folder::new();
            for name in ["src", "dst"] {
                fs::create_dir(folder.join(name)).unwrap();
            }
            for (first, second, text) in [("a1", "a2", "AAAA"), ("b1", "b2", "BBBB")] {
                write(folder.join("src").join(first), text);
                fs::hard_link(folder.join("src").join(first), folder.join("src").join(second))
                    .unwrap();
            }
            // In the target other names are one file, or all of them.
            write(folder.join("dst").join(bonds[0]), "AAAA");
            for pair in bonds.windows(2).step_by(1 + usize::from(options.is_empty())) {
                let _ = fs::hard_link(
                    folder.join("dst").join(pair[0]),
                    folder.join("dst").join(pair[1]),
                );
            }
            let words = [&["copy"][..], options, &["-T", "src", "dst"]].concat();
            let ran = folder.flatout(&words).run();
            ran.exits(0);
            let inode = |name: &str| folder.join("dst").join(name).metadata().unwrap().ino();
            let context = format!("{options:?} {bonds:?}{ran}");
            assert_ne!(inode("a1"), inode("b1"), "{context}");
            assert_eq!(inode("a1"), inode("a2"), "{context}");
            assert_eq!(inode("b1"), inode("b2"), "{context}");
            if !options.contains(&"--quick-check") {
                assert_eq!(read(folder.join("dst/a1")), "AAAA", "{context}");
                assert_eq!(read(folder.join("dst/b1")), "BBBB", "{context}");
            }
        }
    }
}

/// Of two names that count as done by size and time, one may hold other bytes than the source: it does
/// not take the place of the other.
#[test]
fn what_counts_as_done_by_its_time_replaces_no_name_that_holds_the_bytes() {
    needs!(under_test());
    let folder = Folder::new();
    let (source, target) = (folder.join("src"), folder.join("dst"));
    fs::create_dir(&source).unwrap();
    // Names come in the order of the directory, so that of some pairs the wrong one is first.
    let names = || (0..40).map(|number| [format!("{number}"), format!("{number} too")]);
    for [name, other] in names() {
        write(source.join(&name), &format!("{name:0>4}"));
        fs::hard_link(source.join(&name), source.join(other)).unwrap();
        fs::hard_link(source.join(&name), source.join(format!("{name} again"))).unwrap();
    }
    folder.flatout(["copy", "-T", "src", "dst"]).leaves("dst").run().exits(0);
    // The third name is a file of its own.
    for [name, _] in names() {
        let third = target.join(format!("{name} again"));
        fs::remove_file(&third).unwrap();
        write(third, &format!("{name:0>4}"));
    }
    let others: Vec<_> = names().map(|[_, other]| target.join(other)).collect();
    for pair in others.chunks(2) {
        fs::rename(&pair[0], target.join("between")).unwrap();
        fs::rename(&pair[1], &pair[0]).unwrap();
        fs::rename(target.join("between"), &pair[1]).unwrap();
    }
    let words = ["copy", "--quick-check", "-j1", "-T", "src", "dst", "--format", "json"];
    let planned = folder.flatout([&words[..], &["--dry-run"]].concat()).run();
    let ran = folder.flatout(words).run();
    for [name, _] in names() {
        assert_eq!(read(target.join(&name)), format!("{name:0>4}"), "{name}{ran}");
        let third = format!("{name} again");
        assert_eq!(read(target.join(&third)), format!("{name:0>4}"), "{third}{ran}");
    }
    for ran in [&ran, &planned] {
        assert!(ran.exits(1).stderr.contains("some names of one file became files of their own"));
    }
    let counts = |ran: &Ran| {
        let audit = &ran.result()["audit"];
        ["files", "linked", "unchanged", "incomplete"].map(|key| audit[key].clone())
    };
    assert_eq!(counts(&planned), counts(&ran), "{planned}{ran}");
    folder.flatout(["copy", "--checksum", "-T", "src", "dst"]).run().exits(0);
    let inode = |name: &str| target.join(name).metadata().unwrap().ino();
    for [name, other] in names() {
        assert_eq!(
            (read(target.join(&name)), inode(&name)),
            (read(target.join(&other)), inode(&other))
        );
    }
}

#[test]
fn a_rerun_skips_what_it_noted_until_either_side_changes() {
    needs!(under_test());
    let folder = Folder::new();
    fs::create_dir(folder.join("src")).unwrap();
    for number in 0..20 {
        write(folder.join(&format!("src/{number}")), &format!("text {number:3}"));
    }
    fs::hard_link(folder.join("src/1"), folder.join("src/again")).unwrap();
    settle(folder.path());
    let words = ["--resume=always", "-T", "src", "dst"];
    assert_eq!(noted(&folder, &words).1, [20, 0]);
    // A file with several names is not noted: each further name changes it.
    let linked = noted(&folder, &words).1;
    assert_eq!(linked[0], 1, "{linked:?}");
    // Changes that size and time do not tell.
    write(folder.join("src/3"), "text  X3");
    write(folder.join("dst/4"), "text  X4");
    fs::remove_file(folder.join("dst/5")).unwrap();
    write(folder.join("dst/5"), "text  X5");
    fs::rename(folder.join("dst/6"), folder.join("dst/7")).unwrap();
    write(folder.join("dst/6"), "text  X6");
    settle(folder.path());
    let (ran, counts) = noted(&folder, &words);
    assert_eq!(counts[0], 6, "{ran}");
    for number in 0..20 {
        let [from, to] = ["src", "dst"].map(|side| read(folder.join(&format!("{side}/{number}"))));
        assert_eq!(from, to, "{number}");
    }
    assert_eq!(noted(&folder, &words).1[0], 1);
    // Another set of attributes is another copy; so is another command.
    assert_eq!(
        noted(&folder, &["--resume=always", "--no-preserve=mode", "-T", "src", "dst"]).1[0],
        20
    );
    assert_eq!(noted(&folder, &["--resume=always", "--always", "-T", "src", "dst"]).1[0], 20);
    assert_eq!(noted(&folder, &["--resume=always", "src/.", "dst"]).1[0], 20);
    assert_eq!(noted(&folder, &["--resume=never", "-T", "src", "dst"]).1[0], 20);
}

/// A disk that was pulled out has lost what it was still to get: a file that has its length and times may
/// be full of zeros.
#[test]
fn what_is_mounted_again_is_copied_again() {
    needs!(under_test());
    let folder = Folder::new();
    fs::create_dir(folder.join("src")).unwrap();
    write(folder.join("src/file"), "text");
    settle(folder.path());
    fs::create_dir(folder.join("there")).unwrap();
    // Another image of a disk may bear the number of one that was mounted as the source.
    for (side, from, to) in [("there", "src/.", "mounted/."), ("src", "mounted/.", "there/.")] {
        for _ in 0..2 {
            let mounted = needs!(Mounted::shown_again(&folder.join(side)));
            std::os::unix::fs::symlink(mounted.path(), folder.join("mounted")).unwrap();
            for counts in [[1, 0], [0, 1]] {
                let words = ["--resume=always", from, to];
                assert_eq!(noted(&folder, &words).1, counts, "{side}");
            }
            fs::remove_file(folder.join("mounted")).unwrap();
            mounted.finish();
        }
    }
}

/// Root of a namespace can give files away: what the same user noted before does not say that they were.
#[test]
fn what_was_noted_without_privilege_is_no_proof_with_it() {
    needs!(under_test());
    needs!(needs_root("running as somebody else"));
    needs!(needs_program("setpriv"));
    needs!(needs_program("unshare"));
    let folder = Folder::new();
    fs::create_dir(folder.join("src")).unwrap();
    write(folder.join("src/file"), "text");
    for name in [".", "src", "src/file"] {
        chown(folder.join(name), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    settle(folder.path());
    let state = folder.join("state");
    let words = "copy --format json --resume=always -T src dst";
    let counts = |run: Flatout<'_>| {
        let run = run.leaves("state").leaves("dst");
        let ran = run.with(|command| _ = command.env("FLATOUT_RESUME", &state)).run();
        if ran.stderr.contains("unshare") {
            return Err(format!("no user namespaces here: {}", ran.stderr));
        }
        let audit = ran.exits(0).result()["audit"].clone();
        Ok(["files", "unchanged"].map(|key| audit[key].as_u64().unwrap()))
    };
    assert_eq!(counts(as_nobody(&folder, words)), Ok([1, 0]));
    assert_eq!(counts(as_nobody(&folder, words)), Ok([0, 1]));
    let as_root = "--reuid=65534 --regid=65534 --clear-groups unshare -r ./program";
    let words = format!("{as_root} {words}").split(' ').map(Into::into).collect();
    assert_eq!(needs!(counts(folder.program("setpriv".as_ref(), words))), [1, 0]);
}

/// What a device did not take may be of any of the files that were complete.
#[test]
fn after_storage_lost_bytes_all_files_are_copied_again() {
    needs!(under_test());
    needs!(needs_program("strace"));
    let folder = Folder::new();
    fs::create_dir(folder.join("src")).unwrap();
    (0..3).for_each(|number| write(folder.join(&format!("src/{number}")), "text"));
    settle(folder.path());
    let words = ["--resume=always", "--sync", "-T", "src", "dst"];
    let counts = || noted(&folder, &words).1;
    assert_eq!([counts(), counts()], [[3, 0], [0, 3]]);
    for (errno, text) in [("EIO", "Input/output error"), ("ENOSPC", "No space left on device")] {
        let inject = format!("inject=syncfs:error={errno}");
        let faulty = ["strace", "-f", "-qq", "-o", "trace", "-e", &inject];
        let (words, state) = ([&["copy"][..], &words].concat(), folder.join("state"));
        let ran = folder.under(&faulty, &words).leaves("state").leaves("dst").leaves("trace");
        let ran = ran.with(|command| _ = command.env("FLATOUT_RESUME", state)).run();
        // It is not said that what was noted is skipped.
        ran.complains(1, &["write to storage", text]);
        assert_eq!(counts(), [3, 0]);
    }
}

/// A copy that is over within a second leaves nothing behind.
#[test]
fn a_short_copy_leaves_no_ledger() {
    needs!(under_test());
    let folder = Folder::new();
    fs::create_dir(folder.join("src")).unwrap();
    write(folder.join("src/f"), "x");
    let (ran, _) = noted(&folder, &["-T", "src", "dst"]);
    let took_long = ran.result()["audit"]["elapsed_ns"].as_u64().unwrap() > 900_000_000;
    assert!(took_long || !folder.join("state").exists());
}

/// Trees that are merged bring different files to the same names, whatever their size and time.
#[test]
fn merged_operands_replace_each_other_and_keep_their_links() {
    needs!(under_test());
    for options in [&[][..], &["--quick-check"], &["--threads=1"]] {
        let folder = Folder::new();
        for name in ["a", "b", "d"] {
            fs::create_dir(folder.join(name)).unwrap();
        }
        write(folder.join("a/x"), "of a");
        write(folder.join("b/x"), "of b");
        write(folder.join("a/one"), "link");
        fs::hard_link(folder.join("a/one"), folder.join("b/two")).unwrap();
        fs::hard_link(folder.join("a/x"), folder.join("b/was-x")).unwrap();
        let ran = folder.flatout([&["copy"][..], options, &["a/.", "b/.", "d"]].concat()).run();
        assert!(ran.exits(0).stderr.lines().count() <= 1, "{ran}");
        assert_eq!(read(folder.join("d/x")), "of b");
        assert_eq!(read(folder.join("d/was-x")), "of a", "its first name was replaced");
        let inode = |name: &str| folder.join(name).metadata().unwrap().ino();
        assert_eq!(inode("d/one"), inode("d/two"), "{options:?}");
    }
}

/// The next copy does not assume that size and time prove anything.
#[test]
fn what_was_taken_for_the_bytes_of_the_source_is_not_known_to_be_finished() {
    needs!(under_test());
    let mounted = needs!(Mounted::new(Kind::Btrfs));
    let folder = Folder::inside(&mounted.path());
    for (name, text) in [("mon", "old"), ("src", "new")] {
        fs::create_dir(folder.join(name)).unwrap();
        write(folder.join(name).join("f"), text);
    }
    settle(folder.path());
    for (words, text) in [(&["--reflink-dest=mon"][..], "old"), (&[], "new"), (&[], "new")] {
        let words = [&["--resume=always"], words, &["-T", "src", "dst"]].concat();
        noted(&folder, &words).0.exits(0);
        assert_eq!(read(folder.join("dst/f")), text, "{words:?}");
    }
    drop(folder);
    mounted.finish();
}

#[test]
fn what_is_known_to_be_finished_is_looked_at_and_not_opened() {
    needs!(under_test());
    let folder = Folder::new();
    fs::create_dir(folder.join("src")).unwrap();
    ["a", "b"].iter().for_each(|name| write(folder.join("src").join(name), name));
    settle(folder.path());
    let words = ["--resume=always", "-T", "src", "dst"];
    assert_eq!(noted(&folder, &words).1, [2, 0]);
    let again = folder.flatout(["copy"].iter().chain(&words)).leaves("state").leaves("dst");
    let again = again.with(|command| _ = command.env("FLATOUT_RESUME", folder.join("state")));
    let mut held = needs!(Held::start(again, &[]));
    let mut seen = Vec::new();
    while let Some(stop) = held.next() {
        let call = Call::of(&stop).filter(|call| ["a", "b"].contains(&call.path.as_str()));
        seen.extend(call.map(|call| call.name));
        held.go_on(stop);
    }
    let ran = held.finish();
    ran.exits(0);
    assert!(seen.len() >= 4 && seen.iter().all(|name| *name == "newfstatat"), "{seen:?}{ran}");
}
