//! Sources that are, by one way or another, the target itself: nothing is lost.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::copier::under_test;
use crate::bin::{Folder, Ran};
use crate::filesystem::{Kind, Mounted};
use crate::skip::needs;

fn copy(folder: &Folder, words: &[&str]) -> Ran {
    folder.flatout(["copy"].iter().chain(words)).run()
}

/// A folder with `src` and `dst`, and DATA in `dst/f`.
fn folder() -> Folder {
    let folder = Folder::new();
    fs::create_dir(folder.join("src")).unwrap();
    fs::create_dir(folder.join("dst")).unwrap();
    fs::write(folder.join("dst/f"), "DATA").unwrap();
    folder
}

#[track_caller]
fn has_data(path: &Path) {
    let facts = path.symlink_metadata().unwrap();
    assert!(facts.is_file(), "{path:?} is no file any more");
    assert_eq!(fs::read(path).unwrap(), b"DATA", "{path:?}");
}

/// A symlink of the source is never put in the place of what it refers to, at whatever remove.
#[test]
fn a_symlink_does_not_take_the_place_of_what_it_refers_to() {
    needs!(under_test());
    let texts =
        ["../dst/f", "../dst/./../dst/f", "../src/../dst/f", "near", "../dir/f", "ABSOLUTE"];
    for text in texts {
        for words in [
            &["src/.", "dst"][..],
            &["src/f", "dst"],
            &["-T", "src", "dst"],
            &["-T", "src/f", "dst/f"],
        ] {
            for option in [&[][..], &["--atomic"], &["--in-place"], &["--always"], &["-f"]] {
                let folder = folder();
                symlink("dst", folder.join("dir")).unwrap();
                symlink("../dst/f", folder.join("src/near")).unwrap();
                let absolute = folder.join("dst/f");
                let text = if text == "ABSOLUTE" { absolute.as_path() } else { Path::new(text) };
                symlink(text, folder.join("src/f")).unwrap();
                let ran = copy(&folder, &[option, words].concat());
                ran.exits(1);
                assert!(ran.stderr.contains("f\": ") || ran.stderr.contains("same file"), "{ran}");
                has_data(&folder.join("dst/f"));
            }
        }
    }
}

/// A symlink of the target is something that can be lost, too.
#[test]
fn a_symlink_does_not_take_the_place_of_a_symlink_to_which_it_refers() {
    needs!(under_test());
    let folder = folder();
    symlink("f", folder.join("dst/to-f")).unwrap();
    symlink("../dst/to-f", folder.join("src/to-f")).unwrap();
    copy(&folder, &["src/.", "dst"]).complains(1, &["to-f", "refers to it"]);
    assert_eq!(fs::read_link(folder.join("dst/to-f")).unwrap(), Path::new("f"));
    // The same text in another place refers to something else, and is a symlink as any.
    symlink("f", folder.join("src/other")).unwrap();
    symlink("elsewhere", folder.join("dst/other")).unwrap();
    fs::remove_file(folder.join("src/to-f")).unwrap();
    copy(&folder, &["src/.", "dst"]).exits(0);
    assert_eq!(fs::read_link(folder.join("dst/other")).unwrap(), Path::new("f"));
}

/// Nor of one through which it leads, in the middle of its text.
#[test]
fn a_symlink_does_not_take_the_place_of_a_symlink_through_which_it_leads() {
    needs!(under_test());
    let absolute = |folder: &Folder| folder.join("dst/link/x").to_str().unwrap().to_owned();
    for text in ["../dst/link/x", "../dst/link/gone", "over/link/../link/x", "ABSOLUTE"] {
        for words in
            [&["src/.", "dst"][..], &["src/link", "dst/"], &["--atomic", "src/link", "dst"]]
        {
            let folder = folder();
            fs::create_dir(folder.join("D")).unwrap();
            fs::write(folder.join("D/x"), "x").unwrap();
            symlink("../D", folder.join("dst/link")).unwrap();
            symlink("../dst", folder.join("src/over")).unwrap();
            let text = if text == "ABSOLUTE" { absolute(&folder) } else { text.to_owned() };
            symlink(text, folder.join("src/link")).unwrap();
            copy(&folder, words).complains(1, &["link", "refers to it"]);
            assert_eq!(fs::read_link(folder.join("dst/link")).unwrap(), Path::new("../D"));
        }
    }
}

#[test]
fn other_names_of_a_file_are_the_same_file() {
    needs!(under_test());
    for words in [&["src/.", "dst"][..], &["src/f", "dst"], &["-T", "src/f", "dst/f"]] {
        for option in [&[][..], &["--atomic"], &["--in-place"], &["--always"]] {
            let folder = folder();
            fs::hard_link(folder.join("dst/f"), folder.join("src/f")).unwrap();
            fs::hard_link(folder.join("dst/f"), folder.join("src/g")).unwrap();
            let ran = copy(&folder, &[option, words].concat());
            ran.exits(1);
            assert!(ran.stderr.contains("same file"), "{ran}");
            has_data(&folder.join("dst/f"));
            has_data(&folder.join("src/f"));
        }
    }
}

/// A symlink of the target that leads to the source would be all that is left of it.
#[test]
fn a_target_that_leads_to_the_source_is_the_same_file() {
    needs!(under_test());
    let folder = folder();
    fs::write(folder.join("src/g"), "DATA").unwrap();
    symlink("../src/g", folder.join("dst/g")).unwrap();
    for words in [&["src/.", "dst"][..], &["src/g", "dst"], &["-T", "src/g", "dst/g"]] {
        copy(&folder, words).complains(1, &["same file"]);
        has_data(&folder.join("src/g"));
        assert!(folder.join("dst/g").symlink_metadata().unwrap().is_symlink());
    }
}

#[test]
fn a_bind_mount_hides_nothing() {
    needs!(under_test());
    let folder = folder();
    let shown = needs!(Mounted::shown_again(&folder.join("dst")));
    let shown_f = shown.path().join("f");
    symlink(&shown_f, folder.join("src/f")).unwrap();
    copy(&folder, &["src/.", "dst"]).complains(1, &["refers to it"]);
    has_data(&folder.join("dst/f"));
    let place = shown.path();
    let place = place.to_str().unwrap();
    copy(&folder, &["src/.", place]).complains(1, &["refers to it"]);
    copy(&folder, &["dst/f", place]).complains(1, &["same file"]);
    has_data(&folder.join("dst/f"));
    shown.finish();
}

/// Names of one symlink on both sides: there is nothing to do, as for cp.
#[test]
fn hard_linked_symlinks_are_the_same_already() {
    needs!(under_test());
    let folder = folder();
    symlink("nowhere", folder.join("src/s")).unwrap();
    fs::hard_link(folder.join("src/s"), folder.join("dst/s")).unwrap();
    fs::hard_link(folder.join("src/s"), folder.join("src/t")).unwrap();
    fs::hard_link(folder.join("src/s"), folder.join("dst/t")).unwrap();
    for words in [&["src/.", "dst"][..], &["src/s", "dst"]] {
        assert_eq!(copy(&folder, words).exits(0).stderr, "");
    }
    let inode = |name: &str| folder.join(name).symlink_metadata().unwrap().ino();
    assert_eq!(inode("src/s"), inode("dst/s"));
}

/// As cp: a file would hide a directory that somebody reaches by that name.
#[test]
fn a_symlink_to_a_directory_is_not_replaced_by_a_file() {
    needs!(under_test());
    for words in [&["src/.", "dst"][..], &["-T", "src", "dst"]] {
        let folder = folder();
        fs::write(folder.join("src/d"), "file").unwrap();
        fs::create_dir(folder.join("elsewhere")).unwrap();
        symlink("../elsewhere", folder.join("dst/d")).unwrap();
        copy(&folder, words).complains(1, &["dst", "d\": it is a symlink to a directory"]);
        assert!(folder.join("dst/d").symlink_metadata().unwrap().is_symlink());
    }
}

/// What is set on one name of a FIFO is set on all: another one may be anybody's.
#[test]
fn a_fifo_with_another_name_is_replaced_and_not_put_right() {
    needs!(under_test());
    let folder = folder();
    let mode = |name: &str| folder.join(name).symlink_metadata().unwrap().mode() & 0o7777;
    for (name, mode) in [("src/p", 0o600), ("dst/p", 0o644)] {
        let mode = rustix::fs::Mode::from_raw_mode(mode);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            folder.join(name),
            rustix::fs::FileType::Fifo,
            mode,
            0,
        )
        .unwrap();
    }
    fs::hard_link(folder.join("dst/p"), folder.join("dst/q")).unwrap();
    copy(&folder, &["src/.", "dst"]).exits(0);
    assert_eq!((mode("dst/p"), mode("dst/q")), (0o600, 0o644));
}

/// An overlay shows files of its layers under numbers of its own. What is written in place is not cut off
/// then: it may be the source.
#[test]
fn another_filesystem_that_shows_the_source_costs_it_nothing() {
    needs!(under_test());
    let lower = Folder::new();
    let upper = needs!(Mounted::new(Kind::Tmpfs(16 << 20)));
    let overlay = needs!(Mounted::overlay(&lower.join("."), &upper.path()));
    let (layer, merged) = (upper.path().join("upper"), overlay.path());
    for words in [&["cp"][..], &["cp", "-rp"], &["cp", "-f"], &["copy", "--in-place"]] {
        for (from, to) in [(&layer, &merged), (&merged, &layer)] {
            for content in ["DATA", ""] {
                fs::write(merged.join("f"), content).unwrap();
                let both = [from, to].map(|side| side.join("f"));
                let facts = || {
                    fs::metadata(&both[0]).map(|facts| (facts.modified().unwrap(), facts.mode()))
                };
                let before = facts().unwrap();
                let words = words.iter().map(Path::new).chain(both.iter().map(PathBuf::as_path));
                lower.flatout(words).run().exits(0);
                assert_eq!(fs::read_to_string(&both[0]).unwrap(), content);
                assert_eq!(fs::read_to_string(&both[1]).unwrap(), content);
                assert_eq!(facts().unwrap(), before);
            }
        }
    }
    what_is_added_meanwhile_stays(&lower, [&layer, &merged]);
    fs::write(merged.join("f"), "more than DATA").unwrap();
    fs::write(lower.join("f"), "DATA").unwrap();
    copy(&lower, &["--in-place", "f", merged.join("f").to_str().unwrap()]).exits(0);
    has_data(&merged.join("f"));
    overlay.finish();
    upper.finish();
}

/// Files of the kernel have more than they say, and an empty file may be one of them by its length and time.
#[test]
fn a_file_of_the_kernel_is_copied_onto_a_new_empty_one() {
    needs!(under_test());
    let folder = Folder::new();
    // Not everywhere is tracefs mounted.
    let sources = ["/proc/version", "/sys/kernel/tracing/README"].map(Path::new);
    for source in sources.into_iter().filter(|source| source.exists()) {
        for words in [["cp"].as_slice(), &["copy", "--in-place"]] {
            fs::write(folder.join("new"), "").unwrap();
            let paths = [source, Path::new("new")];
            folder.flatout(words.iter().map(Path::new).chain(paths)).run().exits(0);
            assert_eq!(fs::read(folder.join("new")).unwrap(), fs::read(source).unwrap());
        }
    }
}

/// A log that is written to while it is copied onto itself.
fn what_is_added_meanwhile_stays(folder: &Folder, [layer, merged]: [&Path; 2]) {
    let (log, line) = (merged.join("log"), [b'x'; 100]);
    fs::write(&log, vec![b'x'; 1 << 20]).unwrap();
    let is_over = AtomicBool::new(false);
    let added = std::thread::scope(|scope| {
        let adds = scope.spawn(|| {
            let mut file = fs::OpenOptions::new().append(true).open(&log).unwrap();
            let mut added = 0;
            while !is_over.load(Ordering::Relaxed) && added < 4 << 20 {
                file.write_all(&line).unwrap();
                added += line.len() as u64;
                std::thread::yield_now();
            }
            added
        });
        for words in [["cp"].as_slice(), &["copy", "--in-place"]].iter().cycle().take(10) {
            let both = [layer.join("log"), log.clone()];
            let words = words.iter().map(Path::new).chain(both.iter().map(PathBuf::as_path));
            // It may say that the source changed, or refuse.
            let _ran = folder.flatout(words).run();
        }
        is_over.store(true, Ordering::Relaxed);
        adds.join().unwrap()
    });
    let bytes = fs::read(&log).unwrap();
    assert_eq!(bytes.len() as u64, (1 << 20) + added);
    assert!(bytes.iter().all(|&byte| byte == b'x'));
}
