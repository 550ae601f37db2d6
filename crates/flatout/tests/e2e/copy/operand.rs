//! What the operands mean: held against what cp(1) makes of the same words in an equal folder. The
//! words stand in `operand/words.rs`.

mod words;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::bin::{Folder, Ran};
use crate::filesystem::Mounted;
use crate::skip::needs;
use words::{EQUAL, REFUSED, REPEATED, WRONG};

/// Everything that a case may need.
fn fill(folder: &Path) {
    for directory in ["src/sub", "src/empty", "d", "full/a", "other/src/sub"] {
        fs::create_dir_all(folder.join(directory)).unwrap();
    }
    let files =
        ["a", "b", "-dash", "src/f", "src/sub/g", "full/src", "other/a", "other/src/h", "other/f"];
    for file in files {
        fs::write(folder.join(file), file).unwrap();
    }
    // Of the same length and written within one tick of the clock, it would count as copied already.
    fs::write(folder.join("b"), "b, longer").unwrap();
    fs::hard_link(folder.join("a"), folder.join("hard")).unwrap();
    let links = [
        ("src", "lsrc"),
        ("a", "la"),
        ("b", "lb"),
        ("d", "ld"),
        ("nowhere", "dangling"),
        ("loop", "loop"),
    ];
    for (text, name) in links {
        symlink(text, folder.join(name)).unwrap();
    }
    mknodat(CWD, folder.join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
}

/// Every path below a folder, with its kind and what it holds.
fn listing(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let kind = fs::symlink_metadata(&path).unwrap().file_type();
            let what = match () {
                () if kind.is_dir() => "directory".to_owned(),
                () if kind.is_symlink() => format!("→ {}", fs::read_link(&path).unwrap().display()),
                () if kind.is_fifo() => "fifo".to_owned(),
                () => format!("file {:?}", fs::read_to_string(&path).unwrap()),
            };
            if kind.is_dir() {
                open.push(path.clone());
            }
            found.insert(path.strip_prefix(folder).unwrap().to_owned(), what);
        }
    }
    found
}

/// What is in only one of two listings.
fn compared(expected: &BTreeMap<PathBuf, String>, found: &BTreeMap<PathBuf, String>) -> String {
    let only = |one: &BTreeMap<PathBuf, String>, other: &BTreeMap<PathBuf, String>| {
        let more = one.iter().filter(|(path, what)| other.get(*path) != Some(what));
        more.map(|(path, what)| format!("{}: {what}; ", path.display())).collect::<String>()
    };
    format!("only cp: {}\nonly flatout: {}", only(expected, found), only(found, expected))
}

/// The folder in which a case runs: one deep, so that `..` is ours too.
fn place(folder: &Folder) -> PathBuf {
    let place = folder.join("place");
    fs::create_dir(&place).unwrap();
    fill(&place);
    place
}

/// What `cp -a` makes of the words, and how many lines it complained.
fn cp(words: &str) -> (BTreeMap<PathBuf, String>, bool, usize) {
    let folder = Folder::new();
    let place = place(&folder);
    let output = Command::new("cp")
        .arg("-a")
        .args(words.split(' '))
        .current_dir(&place)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let lines = String::from_utf8(output.stderr).unwrap().lines().count();
    (listing(&place), output.status.success(), lines)
}

/// What `flatout copy` makes of them.
fn flatout(words: &str) -> (BTreeMap<PathBuf, String>, Ran) {
    let folder = Folder::new();
    let place = place(&folder);
    let words = words.split(' ').filter(|word| !word.is_empty()).map(OsString::from);
    let all = [OsString::from("copy")].into_iter().chain(words);
    let ran = folder.flatout(all).with(|command| {
        command.current_dir(&place);
    });
    let ran = ran.run();
    (listing(&place), ran)
}

#[test]
fn operands_mean_what_they_mean_to_cp() {
    let mut differences = Vec::new();
    for words in EQUAL {
        let (expected, is_success, lines) = cp(words);
        let (found, ran) = flatout(words);
        let code = if is_success { 0 } else { 1 };
        let is_equal = found == expected;
        if !is_equal || ran.code != Some(code) || ran.stderr.lines().count() != lines {
            let more = if is_equal { String::new() } else { compared(&expected, &found) };
            differences.push(format!("{words}: cp ends with {code} and says {lines}: {ran}{more}"));
        }
        assert_eq!(ran.stdout, "", "{words}");
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn a_source_that_is_named_twice_is_copied_once() {
    for words in REPEATED {
        let (expected, is_success, _) = cp(words);
        let (found, ran) = flatout(words);
        assert!(is_success && ran.code == Some(0), "{words}: {ran}");
        assert_eq!(found, expected, "{words}: {ran}");
        assert!(ran.stderr.contains("more than once"), "{words}: {ran}");
    }
}

#[test]
fn what_cp_would_undo_half_way_is_refused_before_anything_is_touched() {
    let folder = Folder::new();
    let before = listing(&place(&folder));
    for (words, reason) in REFUSED {
        let (found, ran) = flatout(words);
        ran.complains(1, &[reason]);
        assert_eq!(found, before, "{words}: {ran}");
    }
}

#[test]
fn what_is_named_later_replaces_in_trees_that_are_merged() {
    let folder = Folder::new();
    let place = place(&folder);
    // Same size, same time: only the contents tell them apart.
    fs::write(place.join("other/src/f"), "SRC/F").unwrap();
    let time = fs::metadata(place.join("src/f")).unwrap().modified().unwrap();
    let file = fs::File::options().write(true).open(place.join("other/src/f")).unwrap();
    file.set_modified(time).unwrap();
    for _ in 0..2 {
        let ran = folder
            .flatout(["copy", "src", "other/src", "a", "d"])
            .with(|command| {
                command.current_dir(&place);
            })
            .run();
        ran.exits(0);
        assert_eq!(fs::read_to_string(place.join("d/src/f")).unwrap(), "SRC/F");
        assert_eq!(fs::read_to_string(place.join("d/src/sub/g")).unwrap(), "src/sub/g");
        assert!(place.join("d/src/h").exists() && place.join("d/a").exists());
    }
}

#[test]
fn words_that_make_no_sense_are_wrong_use() {
    let folder = Folder::new();
    let before = listing(&place(&folder));
    for (words, said) in WRONG {
        let (found, ran) = flatout(words);
        ran.complains(2, &[said]);
        assert_eq!(found, before, "{words}");
    }
}

#[test]
fn a_name_without_characters_is_a_file_that_is_not_there() {
    let folder = Folder::new();
    fs::write(folder.join("a"), "").unwrap();
    for words in [["copy", "", "new"], ["copy", "a", ""]] {
        folder.flatout(words).run().complains(1, &["\"\"", "No such file"]);
    }
    folder.flatout(["copy", "-t", "", "a"]).run().complains(1, &["\"\"", "No such file"]);
}

#[test]
fn names_are_bytes() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::new();
    fs::create_dir(folder.join("d")).unwrap();
    let long = "x".repeat(255);
    for name in [&b"new\nline"[..], b"\xff\xfe", b" ", b"-t", b"\\", b"*", long.as_bytes()] {
        let name = std::ffi::OsStr::from_bytes(name);
        fs::write(folder.path().join(name), name.as_bytes()).unwrap();
        let words = ["copy".as_ref(), "--".as_ref(), name, "d".as_ref()];
        let ran = folder.flatout(words).run();
        assert_eq!((ran.exits(0).stdout.as_str(), ran.stderr.as_str()), ("", ""));
        assert_eq!(fs::read(folder.path().join("d").join(name)).unwrap(), name.as_bytes());
    }
}

#[test]
fn a_second_mount_of_the_source_is_the_source() {
    let folder = Folder::new();
    let place = place(&folder);
    let mounted = needs!(Mounted::read_only(&place.join("src")));
    let before = listing(&place);
    let path = |name: &str| mounted.path().join(name).into_os_string();
    let run = |options: &[&str], source: &str, target: OsString| {
        let words = ["copy"].iter().chain(options).chain([&source]).map(OsString::from);
        let all: Vec<OsString> = words.chain([target]).collect();
        let ran = folder.flatout(all).with(|command| {
            command.current_dir(&place);
        });
        ran.run()
    };
    run(&[], "src", path("")).complains(1, &["inside"]);
    run(&[], "src", path("new")).complains(1, &["inside"]);
    run(&["-T"], "src", path("")).complains(1, &["same file"]);
    run(&[], "src/f", path("f")).complains(1, &["same file"]);
    run(&[], "src/f", path("")).complains(1, &["same file"]);
    assert_eq!(listing(&place), before);
    mounted.finish();
}

#[test]
fn a_mount_inside_the_source_takes_a_copy_of_its_filesystem_only() {
    let folder = Folder::new();
    let mounted = needs!(Mounted::new(crate::filesystem::Kind::Tmpfs(16 << 20)));
    let inner = folder.join("src");
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join("f"), "f").unwrap();
    let source = mounted.path().parent().unwrap().to_owned();
    fs::write(source.join("f"), "f").unwrap();
    let words = |options: &[&str]| {
        let mut words = vec![OsString::from("copy")];
        words.extend(options.iter().map(OsString::from));
        words
            .extend([source.clone().into_os_string(), mounted.path().join("new").into_os_string()]);
        words
    };
    folder.flatout(words(&[])).run().complains(1, &["inside"]);
    folder.flatout(words(&["-x"])).run().exits(0);
    assert_eq!(fs::read(mounted.path().join("new/f")).unwrap(), b"f");
    mounted.finish();
}
