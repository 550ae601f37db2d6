//! Files of our own: `--log` and `--output` destroy nothing of a source or a target, however they
//! are reached.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::bin::{Folder, executable};
use crate::filesystem::{Kind, Mounted, needs_program, needs_root};
use crate::skip::needs;

const OPTIONS: [&str; 2] = ["--log", "--output"];

/// A source with a file and a directory, a target that has an older copy, and a place aside.
fn folder() -> Folder {
    let folder = Folder::new();
    for name in ["src/sub", "dst/sub", "aside"] {
        fs::create_dir_all(folder.join(name)).unwrap();
    }
    for name in ["src/f", "src/sub/g", "dst/f", "dst/sub/g", "aside/log"] {
        fs::write(folder.join(name), name).unwrap();
    }
    folder
}

/// Something shown a second time, until this goes.
struct Bound(PathBuf);

impl Bound {
    fn new(from: &Path, to: PathBuf) -> Result<Self, String> {
        needs_root("mounts a part of a tree")?;
        let status = Command::new("mount").arg("--bind").arg(from).arg(&to).status();
        assert!(status.unwrap().success());
        Ok(Self(to))
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let status = Command::new("umount").arg(&self.0).status();
        assert!(status.unwrap().success());
    }
}

/// Everything that must be as it was.
fn assert_untouched(folder: &Folder, context: &dyn std::fmt::Display) {
    for name in ["src/f", "src/sub/g", "dst/f", "dst/sub/g"] {
        let found = fs::read(folder.join(name)).unwrap();
        assert_eq!(found, name.as_bytes(), "{name}: {context}");
    }
    assert_eq!(Folder::names_in(&folder.join("src")).len(), 2, "{context}");
    assert_eq!(Folder::names_in(&folder.join("src/sub")).len(), 1, "{context}");
    assert_eq!(Folder::names_in(&folder.join("dst")).len(), 2, "{context}");
    assert_eq!(Folder::names_in(&folder.join("dst/sub")).len(), 1, "{context}");
}

#[track_caller]
fn assert_refused(folder: &Folder, operands: [&str; 2], place: &Path) {
    for option in OPTIONS {
        let words = ["copy", operands[0], operands[1], option, place.to_str().unwrap()];
        let ran = folder.flatout(words).run();
        ran.complains(1, &["cannot write"]);
        assert_untouched(folder, &ran);
    }
}

#[test]
fn a_symlink_leads_no_file_of_ours_into_source_or_target() {
    let folder = folder();
    let links = [
        ("../src/f", "an old file"),
        ("../src/new", "a new one"),
        ("../dst/f", "a copy"),
        ("../dst/new", "beside the copies"),
        ("../src/sub/g", "below"),
        ("chain", "a link to a link"),
    ];
    symlink("../dst/sub/new", folder.join("aside/chain")).unwrap();
    for (target, what) in links {
        println!("{what}");
        symlink(target, folder.join("aside/link")).unwrap();
        assert_refused(&folder, ["src/.", "dst"], Path::new("aside/link"));
        assert_eq!(fs::read_link(folder.join("aside/link")).unwrap(), Path::new(target));
        fs::remove_file(folder.join("aside/link")).unwrap();
    }
    symlink("../src", folder.join("aside/directory")).unwrap();
    assert_refused(&folder, ["src/.", "dst"], Path::new("aside/directory/log"));
    assert_refused(&folder, ["src/.", "dst"], Path::new("aside/../dst/sub/log"));
}

#[test]
fn a_name_that_a_copy_is_to_get_is_refused() {
    let folder = folder();
    let folders = folder.names();
    for place in ["new", "./new", "aside/../new", "aside/link"] {
        if place == "aside/link" {
            symlink("../new", folder.join(place)).unwrap();
        }
        for source in ["src", "src/f"] {
            assert_refused(&folder, [source, "new"], Path::new(place));
        }
    }
    assert_refused(&folder, ["src/sub", "aside"], Path::new("aside/sub"));
    assert_refused(&folder, ["src", "new/"], Path::new("new"));
    assert_eq!(folder.names(), folders);
}

/// Lists of names and rules, and snapshots.
#[test]
fn what_is_read_besides_is_not_replaced_by_a_file_of_ours() {
    let folder = folder();
    fs::write(folder.join("names"), "f\n").unwrap();
    symlink("names", folder.join("link")).unwrap();
    for option in ["--log", "--output", "--manifest"] {
        for (reads, read, place) in [
            ("--files-from", "names", "names"),
            ("--files-from", "names", "link"),
            ("--exclude-from", "names", "names"),
            ("--link-dest", "aside", "aside/log"),
            ("--reflink-dest", "aside", "aside/new"),
        ] {
            let ran = folder.flatout(["copy", reads, read, option, place, "src", "new"]).run();
            ran.complains(1, &[place, "is read"]);
            assert_eq!(fs::read_to_string(folder.join("names")).unwrap(), "f\n", "{ran}");
            assert_eq!(fs::read_to_string(folder.join("aside/log")).unwrap(), "aside/log", "{ran}");
        }
    }
    // A device loses nothing.
    let words = ["copy", "--exclude-from", "/dev/null", "--log", "/dev/null", "src", "new"];
    folder.flatout(words).leaves("new").run().exits(0);
}

#[test]
fn a_bind_mount_leads_no_file_of_ours_into_source_or_target() {
    let folder = folder();
    for part in ["src", "src/sub", "dst", "dst/sub"] {
        let mounted = needs!(Mounted::shown_again(&folder.join(part)));
        for name in ["new", "g", "f"] {
            assert_refused(&folder, ["src/.", "dst"], &mounted.path().join(name));
        }
        mounted.finish();
    }
    // What is mounted in a source is copied, too.
    let aside = folder.join("aside");
    let mounted = needs!(Mounted::new(Kind::Tmpfs(1 << 20)));
    let tree = mounted.path().join("tree");
    fs::create_dir_all(tree.join("inner")).unwrap();
    let bound = needs!(Bound::new(&aside, tree.join("inner")));
    let words = ["copy", tree.to_str().unwrap(), "new", "--log", "aside/log"];
    folder.flatout(words).run().complains(1, &["aside/log", "is copied"]);
    drop(bound);
    assert_eq!(fs::read(folder.join("aside/log")).unwrap(), b"aside/log");
    mounted.finish();
}

#[test]
fn a_file_mounted_over_the_log_is_not_cut_off() {
    let folder = folder();
    let log = folder.join("aside/log");
    for part in ["src/f", "dst/f"] {
        let _bound = needs!(Bound::new(&folder.join(part), log.clone()));
        for option in OPTIONS {
            let ran = folder.flatout(["copy", "src/.", "dst", option, "aside/log"]).run();
            assert_eq!(ran.code, Some(1), "{ran}");
            assert_untouched(&folder, &ran);
        }
    }
    // What is mounted there and is nobody else's is written in place.
    fs::write(folder.join("own"), "old").unwrap();
    let bound = needs!(Bound::new(&folder.join("own"), log));
    let ran = folder.flatout(["copy", "src", "new", "--log", "aside/log"]).leaves("new").run();
    drop(bound);
    ran.exits(0);
    assert!(fs::read_to_string(folder.join("own")).unwrap().starts_with('{'));
}

#[test]
fn another_name_of_a_log_keeps_what_it_holds() {
    let folder = folder();
    for (option, part) in [("--log", "src/f"), ("--output", "src/sub/g"), ("--log", "dst/sub/g")] {
        let log = folder.join("aside/second");
        fs::hard_link(folder.join(part), &log).unwrap();
        let words = ["copy", "src", "new", option, "aside/second"];
        let ran = folder.flatout(words).leaves("new").run();
        ran.exits(0);
        assert_untouched(&folder, &ran);
        assert_ne!(fs::read(&log).unwrap(), part.as_bytes(), "{ran}");
        fs::remove_file(&log).unwrap();
        fs::remove_dir_all(folder.join("new")).unwrap();
    }
    // A name of an operand itself is refused.
    fs::hard_link(folder.join("src/f"), folder.join("aside/second")).unwrap();
    assert_refused(&folder, ["src/f", "new"], Path::new("aside/second"));
}

#[test]
fn a_log_keeps_mode_and_symlink_and_can_be_read_while_it_is_written() {
    let folder = folder();
    let log = folder.join("aside/log");
    fs::set_permissions(&log, fs::Permissions::from_mode(0o600)).unwrap();
    let before = fs::metadata(&log).unwrap().ino();
    symlink("log", folder.join("aside/link")).unwrap();
    let ran = folder.flatout(["copy", "src", "new", "--log", "aside/link"]).leaves("new").run();
    ran.exits(0);
    let facts = fs::metadata(&log).unwrap();
    assert_eq!(facts.mode() & 0o777, 0o600, "{ran}");
    assert_ne!(facts.ino(), before, "{ran}");
    assert!(folder.join("aside/link").is_symlink());
    assert!(fs::read_to_string(&log).unwrap().starts_with('{'), "{ran}");
    symlink("made", folder.join("aside/dangling")).unwrap();
    let words = ["copy", "src", "again", "--log", "aside/dangling"];
    folder.flatout(words).leaves("again").run().exits(0);
    assert!(fs::read_to_string(folder.join("aside/made")).unwrap().starts_with('{'));
    let names: Vec<String> = Folder::names_in(&folder.join("aside")).into_iter().collect();
    assert_eq!(names, ["dangling", "link", "log", "made"]);
}

#[test]
fn a_log_has_its_name_before_anything_is_copied() {
    let folder = folder();
    let out = folder.join("aside/out");
    mknodat(CWD, &out, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let words = ["copy", "src", "new", "--log", "aside/first", "--output", "aside/out"];
    let mut running = folder.flatout(words).leaves("new").start();
    // The figures come at the end, and wait for their reader: until then the log is there.
    running.wait_until("status", |_| folder.join("new").exists());
    assert!(folder.join("aside/first").is_file());
    assert!(fs::read_to_string(out).unwrap().contains("files"));
    running.wait().exits(0);
}

#[test]
fn devices_pipes_and_open_files_are_written_in_place() {
    let folder = folder();
    let script = "\"$0\" copy src new --log /dev/fd/3 3>>aside/log";
    let words = |script: &str| ["-c".into(), script.into(), executable().into()].to_vec();
    let ran = folder.program("bash".as_ref(), words(script)).leaves("new").run();
    ran.exits(0);
    let log = fs::read_to_string(folder.join("aside/log")).unwrap();
    assert!(log.starts_with("aside/log{"), "what was there stays: {log}");
    for (place, is_seen) in [("/dev/stderr", true), ("/dev/null", false)] {
        for option in OPTIONS {
            let ran = folder.flatout(["copy", "src/.", "new", option, place]).run();
            assert_eq!(!ran.exits(0).stderr.is_empty(), is_seen, "{ran}");
        }
    }
    let script = "\"$0\" copy src new --format json --log /dev/stdout >aside/both";
    folder.program("bash".as_ref(), words(script)).run().exits(0);
    let both = fs::read_to_string(folder.join("aside/both")).unwrap();
    assert!(both.starts_with("{\"action\"") && both.contains("flatout/1"), "{both}");
    // An open file of the source is not written through either.
    let script = "\"$0\" copy src/. dst --log /dev/fd/3 3<>src/f";
    folder.program("bash".as_ref(), words(script)).run().complains(1, &["is copied"]);
    assert_untouched(&folder, &"an open file");
}

#[test]
fn log_and_figures_are_two_files_whatever_they_are_called() {
    let folder = folder();
    symlink("log", folder.join("aside/link")).unwrap();
    symlink("new", folder.join("aside/dangling")).unwrap();
    fs::hard_link(folder.join("aside/log"), folder.join("aside/second")).unwrap();
    let pairs = [
        ("log", "log"),
        ("log", "./log"),
        ("link", "log"),
        ("second", "log"),
        ("dangling", "new"),
        ("../aside/new", "new"),
    ];
    for (one, other) in pairs {
        let [one, other] = [one, other].map(|name| format!("aside/{name}"));
        for [log, output] in [[&one, &other], [&other, &one]] {
            let words = ["copy", "src", "copy", "--log", log, "--output", output];
            folder.flatout(words).run().complains(1, &["same file"]);
        }
    }
    assert_eq!(fs::read(folder.join("aside/log")).unwrap(), b"aside/log");
    assert!(!folder.join("aside/new").exists());
}

#[test]
fn with_one_file_system_a_log_may_lie_on_another_one() {
    let mounted = needs!(Mounted::new(Kind::Tmpfs(1 << 20)));
    let folder = folder();
    let inner: PathBuf = folder.join("src/inner");
    fs::create_dir(&inner).unwrap();
    let bound = needs!(Bound::new(&mounted.path(), inner));
    let copy = |options: &[&str]| {
        let words = ["copy", "src", "new", "--log", "src/inner/log"];
        folder.flatout(words.iter().chain(options)).leaves("new").run()
    };
    let refused = copy(&[]);
    let done = copy(&["-x"]);
    drop(bound);
    refused.complains(1, &["is copied"]);
    done.exits(0);
    assert!(mounted.path().join("log").exists());
    mounted.finish();
}

/// Some filesystems say only at the end that bytes were lost; and what is durable has a durable log.
#[test]
fn the_last_word_about_a_log_is_heard_and_it_is_synced() {
    needs!(needs_program("strace"));
    for option in ["--log", "--manifest", "--output"] {
        let folder = folder();
        let log = folder.path().canonicalize().unwrap().join("aside/log");
        let words = ["copy", "--sync", option, "aside/log", "-T", "src", "dst"];
        let filter = ["strace", "-f", "-qq", "-o", "aside/trace", "-P", log.to_str().unwrap()];
        let traced = [&filter[..], &["-e", "trace=syncfs"]].concat();
        folder.under(&traced, &words).run().exits(0);
        let trace = fs::read_to_string(folder.join("aside/trace")).unwrap();
        assert_eq!(trace.matches("syncfs(").count(), 1, "{option}: {trace}");
        // What is replaced as a whole is closed under another name.
        let is_renamed = option == "--output";
        for inject in
            &["inject=close:error=EIO", "inject=syncfs:error=EIO"][usize::from(is_renamed)..]
        {
            let faulty = [&filter[..], &["-e", inject]].concat();
            folder.under(&faulty, &words).run().complains(1, &["cannot write", "aside/log"]);
        }
    }
}
