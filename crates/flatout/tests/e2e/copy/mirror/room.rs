//! What makes room for something of another kind, or of somebody else, and what stays until its place is taken.

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, chown, symlink};
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::{assert_holds, plant};
use crate::bin::Folder;
use crate::faulty::{Begin, Fault, Faults, Faulty};
use crate::filesystem::{needs_program, needs_root};
use crate::input::as_nobody;
use crate::skip::needs;

#[test]
fn a_directory_stays_until_the_file_in_its_place_is_complete() {
    let read = Fault::broken(Begin::AtByte(65_536));
    let faulty = needs!(Faulty::new(Faults { read, ..Faults::default() }));
    faulty.put("x", &[7; 300_000]);
    let folder = Folder::new();
    plant(&folder, &["target/x/precious"]);
    let source = faulty.path().to_str().unwrap().to_owned();
    let copy = || folder.flatout(["copy", "-T", "--delete", &source, "target"]).run();
    let ran = copy();
    assert!(ran.exits(1).stderr.contains("Input/output error"), "{ran}");
    assert_holds(&folder.join("target"), &["x", "x/precious"], &ran);
    faulty.change(|faults| faults.read = None);
    copy().exits(0);
    assert_eq!(fs::read(folder.join("target/x")).unwrap(), [7; 300_000]);
    assert_eq!(Folder::names_in(&folder.join("target")), ["x".to_owned()].into());
    faulty.finish();
}

#[test]
fn a_file_stays_where_the_directory_in_its_place_cannot_be_read() {
    needs!(needs_root("running as somebody else"));
    needs!(needs_program("setpriv"));
    let folder = Folder::new();
    plant(&folder, &["source/x/in", "target/x"]);
    for name in ["target", "target/x"] {
        chown(folder.join(name), Some(65_534), Some(65_534)).unwrap();
    }
    fs::set_permissions(folder.join("source/x"), PermissionsExt::from_mode(0o0)).unwrap();
    let ran = as_nobody(&folder, "copy -T --delete source target").leaves("program").run();
    ran.exits(1);
    assert_eq!(fs::read_to_string(folder.join("target/x")).unwrap(), "target/x", "{ran}");
}

/// At whichever call that is found out.
#[test]
fn a_file_stays_where_the_directory_in_its_place_cannot_be_made() {
    needs!(needs_program("strace"));
    let calls = [("mkdirat", 4), ("renameat", 4), ("renameat2", 4), ("unlinkat", 4), ("fstat", 40)];
    for (call, letters) in calls.iter().flat_map(|call| ["-T", "-Tb"].map(|it| (call, it))) {
        let (call, most) = call;
        for number in 1..=*most {
            let folder = Folder::new();
            plant(&folder, &["source/x/in", "target/x"]);
            let inject = format!("inject={call}:error=EIO:when={number}");
            let wrapper = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &inject];
            let words = ["copy", letters, "--delete", "source", "target"];
            let ran = folder.under(&wrapper, &words).run();
            let found = ["target/x", "target/x/in"].map(|name| fs::read(folder.join(name)));
            let is_there =
                |bytes: &[u8]| found.iter().any(|it| it.as_ref().is_ok_and(|it| it == bytes));
            let context = format!("{call} {letters} {number}{ran}");
            let is_said = ran.stderr.contains("/x/in\"");
            assert!(is_there(b"target/x") || is_there(b"source/x/in") || is_said, "{context}");
            assert!(ran.code == Some(1) || is_there(b"source/x/in"), "{context}");
        }
    }
}

/// Whether or not two names can be exchanged, and in whichever of both something of the directory is to stay.
#[test]
fn a_directory_stays_where_the_file_in_its_place_gets_no_name() {
    needs!(needs_program("strace"));
    for number in 0..=4 {
        for (exchange, words) in ["", "inject=renameat2:error=ENOSYS"]
            .iter()
            .flat_map(|it| [&[][..], &["--exclude", "stays"]].map(|words| (*it, words)))
        {
            let folder = Folder::new();
            plant(&folder, &["source/x", "target/x/precious", "target/x/sub/other"]);
            if !words.is_empty() {
                plant(&folder, &["target/x/sub/stays"]);
            }
            let call = if exchange.is_empty() { "renameat,renameat2" } else { "renameat" };
            let inject = format!("inject={call}:error=EIO:when={number}");
            let mut wrapper = vec!["strace", "-f", "-qq", "-o", "/dev/null"];
            let injects = [exchange, if number > 0 { &inject } else { "" }];
            for inject in injects.into_iter().filter(|it| !it.is_empty()) {
                wrapper.extend(["-e", inject]);
            }
            let mirror =
                [&["copy", "-T", "--delete", "--threads=1", "source", "target"], words].concat();
            let ran = folder.under(&wrapper, &mirror).run();
            let context = format!("{number} {exchange} {words:?}{ran}");
            let is_new = fs::read(folder.join("target/x")).is_ok_and(|it| it == b"source/x");
            assert_eq!(is_new, ran.code == Some(0), "{context}");
            let stays = folder.join("target/x/sub/stays").exists();
            let is_old = folder.join("target/x/precious").exists();
            assert!(if words.is_empty() { is_new || is_old } else { stays }, "{context}");
            if words.is_empty() {
                folder.flatout(mirror).run().exits(0);
                assert_holds(&folder.join("target"), &["x"], &ran);
            }
        }
    }
}

/// As rsync does it, in a directory that this user may write.
#[test]
fn a_file_of_somebody_else_that_may_not_be_written_goes_in_a_mirror() {
    needs!(needs_root("running as somebody else"));
    needs!(needs_program("setpriv"));
    let folder = Folder::new();
    plant(&folder, &["source/x", "target/x", "target/sticky"]);
    chown(folder.join("target"), Some(65_534), Some(65_534)).unwrap();
    fs::set_permissions(folder.join("target/x"), PermissionsExt::from_mode(0o400)).unwrap();
    let mirror = |words| as_nobody(&folder, &format!("copy {words} source target")).run();
    let ran = mirror("-T");
    assert!(ran.exits(1).stderr.contains("target/x"), "{ran}");
    assert_eq!(fs::read_to_string(folder.join("target/x")).unwrap(), "target/x", "{ran}");
    let ran = mirror("-T --delete");
    ran.exits(0);
    assert_eq!(fs::read_to_string(folder.join("target/x")).unwrap(), "source/x", "{ran}");
    // Where it may not be moved it stays.
    fs::remove_file(folder.join("target/x")).unwrap();
    plant(&folder, &["target/x"]);
    fs::set_permissions(folder.join("target/x"), PermissionsExt::from_mode(0o400)).unwrap();
    chown(folder.join("target"), Some(0), Some(0)).unwrap();
    fs::set_permissions(folder.join("target"), PermissionsExt::from_mode(0o1777)).unwrap();
    let ran = mirror("-T --delete");
    assert!(ran.exits(1).stderr.contains("target/x"), "{ran}");
    assert_eq!(fs::read_to_string(folder.join("target/x")).unwrap(), "target/x", "{ran}");
}

/// Its name is taken in one step.
#[test]
fn a_pipe_stays_where_the_file_in_its_place_gets_no_name() {
    needs!(needs_program("strace"));
    for call in ["renameat", "renameat2"] {
        let folder = Folder::new();
        plant(&folder, &["source/x", "target/"]);
        mknodat(CWD, folder.join("target/x"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        let inject = format!("inject={call}:error=EIO");
        let wrapper = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &inject];
        let ran = folder.under(&wrapper, &["copy", "-T", "--delete", "source", "target"]).run();
        let found = fs::symlink_metadata(folder.join("target/x")).unwrap().is_file();
        assert_eq!(found, ran.code == Some(0), "{call}{ran}");
    }
}

/// Be it a file, a symlink, a pipe or another name, and by whatever rules.
#[test]
fn a_directory_stays_where_what_takes_its_place_cannot_be_made() {
    needs!(needs_program("strace"));
    let kinds =
        ["file", "symlink", "pipe", "link"].map(|kind| ["-T", "-Tu", "-TL"].map(|it| (kind, it)));
    for (kind, letters, number) in
        kinds.iter().flatten().flat_map(|(kind, letters)| [1, 2, 3].map(|it| (*kind, letters, it)))
    {
        let folder = Folder::new();
        plant(&folder, &["target/x/precious", "target/x/sub/other", "source/"]);
        let [from, to] = ["source/x", "target/x"].map(|name| folder.join(name));
        fs::File::open(&to).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        match kind {
            "symlink" => symlink("a", &from).unwrap(),
            "pipe" => mknodat(CWD, &from, FileType::Fifo, Mode::RWXU, 0).unwrap(),
            _ => fs::write(&from, "new").unwrap(),
        }
        match kind {
            "link" => fs::hard_link(&from, folder.join("source/a")).unwrap(),
            _ => plant(&folder, &["source/a"]),
        }
        let inject =
            format!("inject=symlinkat,mknodat,linkat,renameat,renameat2:error=EIO:when={number}");
        let wrapper = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &inject];
        let mirror = ["copy", letters, "--delete", "--threads=1", "source", "target"];
        let ran = folder.under(&wrapper, &mirror).run();
        let is_new = || match fs::symlink_metadata(&to).unwrap().file_type() {
            found if found.is_symlink() => kind == "symlink",
            found => found.is_fifo() == (kind == "pipe") && !found.is_dir(),
        };
        let context = format!("{kind} {letters} {number}{ran}");
        assert!(to.join("precious").exists() || is_new(), "{context}");
        assert!(ran.code == Some(1) || is_new(), "{context}");
        folder.flatout(mirror).run().exits(0);
        assert_holds(&folder.join("target"), &["a", "x"], &ran);
        assert!(letters == &"-TL" || is_new(), "{context}");
    }
}

#[test]
fn things_of_another_kind_make_room_by_the_rules_of_cp_too() {
    let folder = Folder::new();
    plant(&folder, &["source/file", "target/file/in"]);
    folder.flatout(["copy", "-T", "-L", "source", "target"]).run().complains(1, &["target/file"]);
    folder.flatout(["copy", "-T", "-L", "--delete", "source", "target"]).run().exits(0);
    assert_eq!(fs::read_to_string(folder.join("target/file")).unwrap(), "source/file");
    // What cp cannot make, would write through, or into for ever.
    for option in ["-L", "-u"] {
        let folder = Folder::new();
        plant(&folder, &["target/pipe", "source/", "outside"]);
        let pipe = |name| mknodat(CWD, folder.join(name), FileType::Fifo, Mode::RWXU, 0).unwrap();
        pipe("target/file");
        symlink("../outside", folder.join("target/through")).unwrap();
        symlink("nowhere", folder.join("target/dangling")).unwrap();
        pipe("source/pipe");
        let files = ["file", "through", "dangling"];
        for name in files {
            let later = SystemTime::now() + Duration::from_secs(9);
            plant(&folder, &[&format!("source/{name}")]);
            let source = fs::File::options().write(true).open(folder.join("source").join(name));
            source.unwrap().set_modified(later).unwrap();
        }
        let target = fs::File::options().write(true).open(folder.join("target/pipe"));
        target.unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let ran = super::mirror(&folder, &[option]).run();
        ran.exits(0);
        for name in files {
            let found = folder.join("target").join(name);
            assert!(found.symlink_metadata().unwrap().is_file(), "{option} {name}");
            assert_eq!(fs::read_to_string(found).unwrap(), format!("source/{name}"));
        }
        let made = fs::symlink_metadata(folder.join("target/pipe")).unwrap();
        assert!(made.file_type().is_fifo(), "{option}");
        assert_eq!(fs::read_to_string(folder.join("outside")).unwrap(), "outside", "{option}");
    }
}

/// As `cp` says it of a directory that is named.
#[test]
fn what_is_named_makes_no_room() {
    let folder = Folder::new();
    plant(&folder, &["file", "target/in"]);
    fs::File::open(folder.join("target")).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    for letters in ["-T", "-TL", "-Tu"] {
        let ran = folder.flatout(["copy", letters, "--delete", "file", "target"]).run();
        ran.exits(1);
        assert!(folder.join("target/in").exists(), "{ran}");
    }
}

/// Its mode was changed so that it could be emptied.
#[test]
fn a_directory_that_stays_when_it_is_empty_keeps_its_mode() {
    let folder = Folder::new();
    plant(&folder, &["source/", "target/d/1"]);
    let mode = |name| fs::metadata(folder.join(name)).unwrap().permissions().mode() & 0o7777;
    fs::set_permissions(folder.join("target/d"), PermissionsExt::from_mode(0o2555)).unwrap();
    super::mirror(&folder, &["--max-delete", "1"]).run().exits(1);
    assert!(Folder::names_in(&folder.join("target/d")).is_empty());
    assert_eq!(mode("target/d"), 0o2555);
}

/// Nor does it for rsync (`--ignore-existing`).
#[test]
fn what_is_not_to_be_overwritten_makes_no_room_for_a_directory() {
    for option in ["-n", "--update=none-fail"] {
        let folder = Folder::new();
        plant(&folder, &["source/a/b", "target/a", "target/gone"]);
        for dry in [&["--dry-run"][..], &[]] {
            let ran = super::mirror(&folder, &[&[option], dry].concat()).run();
            ran.exits(1);
            assert!(ran.stderr.contains("cannot overwrite \"target/a\": it is no dir"), "{ran}");
        }
        assert_eq!(fs::read_to_string(folder.join("target/a")).unwrap(), "target/a");
    }
}

/// What it leads to may be on a disk that is not mounted just now.
#[test]
fn directories_that_their_owner_has_closed_are_mirrored() {
    let folder = Folder::new();
    plant(&folder, &["source/d/a", "source/d/sub/b", "target/d/gone", "target/d/sub/gone"]);
    let is_root = rustix::process::geteuid().is_root();
    for (mode, option) in [(0o555, ""), (0o300, ""), (0, ""), (0o555, " --no-preserve=mode")] {
        fs::write(folder.join("target/d/gone"), "").unwrap();
        fs::write(folder.join("source/d/a"), format!("{mode}{option}")).unwrap();
        plant(&folder, &["target/d/surplus/in"]);
        let surplus = "target/d/surplus";
        let both = ["source", "target", "target/d", "target/d/sub", "source/d", "source/d/sub"];
        for name in [surplus].into_iter().chain(both) {
            let path = folder.join(name);
            let mode = if name.starts_with("target/d") { mode } else { 0o555 };
            let mode = if name.ends_with('e') || name == "target" { 0o755 } else { mode };
            fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            if is_root {
                chown(&path, Some(65_534), Some(65_534)).unwrap();
            }
        }
        let words = format!("copy -T --delete --quick-check{option} source target");
        let ran = match is_root {
            true => as_nobody(&folder, &words).leaves("target").run(),
            false => folder.flatout(words.split(' ')).leaves("target").run(),
        };
        ran.exits(0);
        let kept = fs::metadata(folder.join("target/d/sub")).unwrap().permissions().mode() & 0o777;
        assert_eq!(kept, 0o555, "{mode:o}{option}");
        for name in ["target/d", "target/d/sub", "source/d", "source/d/sub"] {
            fs::set_permissions(folder.join(name), PermissionsExt::from_mode(0o755)).unwrap();
        }
        assert_holds(&folder.join("target"), &["d", "d/a", "d/sub", "d/sub/b"], &ran);
        assert_eq!(
            fs::read(folder.join("target/d/a")).unwrap(),
            format!("{mode}{option}").into_bytes()
        );
    }
}
