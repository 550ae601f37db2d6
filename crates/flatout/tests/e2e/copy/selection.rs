//! What is copied and what is not: rules, lists, sizes and ages.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::bin::{Folder, Ran, input};
use crate::filesystem::needs_program;
use crate::skip::needs;

fn plant(folder: &Folder, names: &[&[u8]]) {
    for name in names {
        let path = folder.path().join("source").join(OsStr::from_bytes(name));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    }
}

/// Files in the copy.
fn files(root: &Path) -> BTreeSet<Vec<u8>> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.symlink_metadata().unwrap().is_dir() {
                true => waiting.push(path),
                false => {
                    let path = path.strip_prefix(root).unwrap();
                    found.insert(path.as_os_str().as_bytes().to_vec());
                }
            }
        }
    }
    found
}

fn copy(folder: &Folder, options: &[&[u8]]) -> Ran {
    let _none_yet = fs::remove_dir_all(folder.join("copy"));
    let words = [&[b"copy".as_slice(), b"-T", b"source", b"copy"], options].concat();
    let words = words.into_iter().map(OsStr::from_bytes);
    folder.flatout(words).leaves("copy").run()
}

fn assert_copies(folder: &Folder, options: &[&[u8]], expected: &[&[u8]]) {
    let ran = copy(folder, options);
    ran.exits(0);
    let expected: BTreeSet<Vec<u8>> = expected.iter().map(|name| name.to_vec()).collect();
    assert_eq!(files(&folder.join("copy")), expected, "{ran}");
}

#[test]
fn rules_select_as_rsync_does() {
    let folder = Folder::new();
    plant(&folder, &[b"a.c", b"a.o", b"d/a.c", b"d/tmp/x", b"tmp", b"\xff.o", b"\xfe"]);
    for (options, expected) in [
        (&[&b"--exclude=*.o"[..]][..], &[&b"a.c"[..], b"d/a.c", b"d/tmp/x", b"tmp", b"\xfe"][..]),
        (&[b"--exclude=tmp/"], &[b"a.c", b"a.o", b"d/a.c", b"tmp", b"\xff.o", b"\xfe"]),
        (&[b"--exclude=/a.c", b"--exclude=*.o"], &[b"d/a.c", b"d/tmp/x", b"tmp", b"\xfe"]),
        (&[b"--include=*/", b"--include=*.c", b"--exclude=*"], &[b"a.c", b"d/a.c"]),
        (&[b"--include=a.c", b"--exclude=*"], &[b"a.c"]),
        (&[b"--exclude=[!a]*", b"--exclude=*.o"], &[b"a.c"]),
        (&[b"--exclude=\xff*", b"--exclude=\xfe", b"--exclude=/d"], &[b"a.c", b"a.o", b"tmp"]),
    ] {
        assert_copies(&folder, options, expected);
    }
    copy(&folder, &[b"--exclude=[a"]).complains(2, &["a [ has no ]"]);
    copy(&folder, &[b"--exclude-from=nowhere"]).complains(1, &["nowhere"]);
    // Without end: nobody has so much memory.
    for list in [&b"--exclude-from=/dev/zero"[..], b"--files-from=/dev/zero"] {
        copy(&folder, &[list]).complains(2, &["/dev/zero", "entry 1: it has 1 MiB or more"]);
    }
    // What makes no sense is the same wrong use in a file, which is named with the line.
    fs::write(folder.join("rules"), "# these\n*.o\n[a\n").unwrap();
    copy(&folder, &[b"--exclude-from=rules"]).complains(2, &["\"rules\", line 3: ", "[a"]);
    assert!(!folder.join("copy").exists());
}

#[test]
fn files_that_are_named_are_selected_by_their_names_and_directories_always_copied() {
    let folder = Folder::new();
    plant(&folder, &[b"in"]);
    fs::write(folder.join("x.o"), "x").unwrap();
    fs::write(folder.join("x.c"), "x").unwrap();
    fs::create_dir(folder.join("there")).unwrap();
    let words = ["copy", "--exclude=*.o", "--exclude=source", "x.o", "x.c", "source", "there"];
    let ran = folder.flatout(words).run();
    ran.exits(0);
    assert_eq!(files(&folder.join("there")), [b"source/in".to_vec(), b"x.c".to_vec()].into());
}

#[test]
fn what_is_excluded_is_never_opened() {
    needs!(needs_program("strace"));
    let folder = Folder::new();
    plant(&folder, &[b"secret/in", b"x.key", b"large", b"fine"]);
    fs::write(folder.join("source/large"), [7; 5_000]).unwrap();
    let options = ["--exclude=secret", "--exclude=*.key", "--max-size=4K", "--threads=1"];
    let words = [&["copy", "-T", "source", "copy"][..], &options].concat();
    let wrapper = ["strace", "-f", "-e", "trace=%file", "-o", "trace"];
    folder.under(&wrapper, &words).leaves("copy").leaves("trace").run().exits(0);
    let trace = fs::read_to_string(folder.join("trace")).unwrap();
    let touches = |name: &str| trace.lines().filter(|line| line.contains(name)).count();
    assert_eq!((touches("\"secret"), touches("\"x.key\"")), (0, 0));
    assert!(trace.contains("\"fine\""));
    let opened = |line: &&str| line.contains("open") && line.contains("\"large\"");
    assert_eq!(trace.lines().find(opened), None, "it was looked at, no more");
}

#[test]
fn a_gitignore_counts_where_it_is_asked_for() {
    let folder = Folder::new();
    plant(&folder, &[b"a.o", b"keep.o", b"build/out", b"sub/build/out", b"sub/x.log", b"sub/a.o"]);
    fs::write(folder.join("source/.gitignore"), "*.o\n!keep.o\n/build\n").unwrap();
    fs::write(folder.join("source/sub/.gitignore"), "*.log\n!a.o\n").unwrap();
    let kept: &[&[u8]] =
        &[b".gitignore", b"keep.o", b"sub/.gitignore", b"sub/a.o", b"sub/build/out"];
    assert_copies(&folder, &[b"--gitignore"], kept);
    // Rules of the command line come first.
    let more = [&[b"a.o".as_slice()], kept].concat();
    assert_copies(&folder, &[b"--gitignore", b"--include=/a.o"], &more);
}

#[test]
fn only_what_is_listed_is_copied() {
    let folder = Folder::new();
    plant(&folder, &[b"a/b", b"a/c", b"whole/x/y", b"alone/z", b"\xff", b"new\nline", b"rest"]);
    let list = folder.join("list");
    fs::write(&list, b"a/b\0./whole/\0alone\0\xff\0new\nline\0").unwrap();
    let expected: &[&[u8]] = &[b"a/b", b"whole/x/y", b"\xff", b"new\nline"];
    assert_copies(&folder, &[b"--zero", b"--files-from=list"], expected);
    assert!(folder.join("copy/alone").is_dir());
    fs::write(&list, "a/b\nnowhere\n").unwrap();
    copy(&folder, &[b"--files-from=list"]).complains(1, &["source/nowhere"]);
    assert_eq!(files(&folder.join("copy")), [b"a/b".to_vec()].into());
    for outside in ["../list", "/etc/passwd", "a/../../list"] {
        fs::write(&list, outside).unwrap();
        copy(&folder, &[b"--files-from=list"])
            .complains(2, &["\"list\", line 1: ", "no path below the source"]);
        assert!(!folder.join("copy").exists());
    }
    fs::write(&list, "a/c\n").unwrap();
    let words = ["copy", "-T", "source", "copy", "--files-from", "-"];
    folder.flatout(words).stdin(input(&list)).leaves("copy").run().exits(0);
    assert_eq!(files(&folder.join("copy")), [b"a/c".to_vec()].into());
}

#[test]
fn sizes_and_ages_select_files() {
    let folder = Folder::new();
    plant(&folder, &[b"small", b"d/large", b"old"]);
    fs::write(folder.join("source/d/large"), [7; 10_000]).unwrap();
    let old = SystemTime::now() - Duration::from_secs(10 * 86_400);
    let file = fs::File::open(folder.join("source/old")).unwrap();
    file.set_modified(old).unwrap();
    let all: &[&[u8]] = &[b"small", b"d/large", b"old"];
    for (options, expected) in [
        (&[&b"--min-size=10000"[..]][..], &[&b"d/large"[..]][..]),
        (&[b"--max-size=9999"], &[b"small", b"old"]),
        (&[b"--newer=7d"], &[b"small", b"d/large"]),
        (&[b"--older=1w"], &[b"old"]),
        (&[b"--older=1w", b"--newer=2026-01-01", b"--min-size=1K"], &[]),
        (&[b"--newer=1999-12-31 23:59"], all),
    ] {
        assert_copies(&folder, options, expected);
        assert!(folder.join("copy/d").is_dir());
    }
    copy(&folder, &[b"--newer=yesterday"]).complains(2, &["neither an age"]);
}

#[test]
fn a_date_in_a_zone_that_nobody_knows_is_refused() {
    let folder = Folder::new();
    plant(&folder, &[b"name"]);
    fs::create_dir(folder.join("bogus")).unwrap();
    let copy = |newer: &str| {
        let run = folder.flatout(["copy", newer, "source", "copy"]).leaves("copy");
        run.with(|command| _ = command.env("TZ", "bogus")).run()
    };
    copy("--newer=2026-11-24").complains(2, &["--newer", "TZ=\"bogus\"", "no time zone"]);
    assert!(!folder.join("copy").exists());
    for newer in ["--newer=1d", "--newer=2026-11-24T00:00Z"] {
        copy(newer).exits(0);
    }
}
