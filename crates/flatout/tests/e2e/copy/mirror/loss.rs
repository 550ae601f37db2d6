//! What a mirror must not take with it: what it has just brought, what a symlink stands for, what is
//! kept aside, and what nothing takes the place of in the end.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::{assert_holds, paths, plant};
use crate::bin::Folder;
use crate::faulty::{Begin, Fault, Faults, Faulty};
use crate::filesystem::{Kind, Mounted, needs_program, needs_root};
use crate::input::as_nobody;
use crate::skip::needs;

#[test]
fn two_directories_of_one_name_are_refused_before_either_is_there() {
    let folder = Folder::new();
    plant(&folder, &["d1/s/a", "d2/s/b", "there/"]);
    for dry in [&["--dry-run"][..], &[]] {
        let words = [&["copy", "--delete", "d1/s", "d2/s", "there"], dry].concat();
        folder.flatout(words).run().complains(1, &["cannot mirror", "would be deleted"]);
        assert!(paths(&folder.join("there")).is_empty());
    }
}

#[test]
fn operands_that_are_followed_count_as_what_they_lead_to() {
    let folder = Folder::new();
    plant(&folder, &["d1/a", "d2/b", "one/", "two/", "there/in/sub/f", "there/in/precious"]);
    plant(&folder, &["there/s/stays", "there/other"]);
    for (link, to) in [("one/s", "../d1"), ("two/s", "../d2"), ("into", "there/in/sub")] {
        symlink(to, folder.join(link)).unwrap();
    }
    let before = paths(&folder.join("there"));
    for letter in ["-L", "-H"] {
        for words in [&["one/s", "two/s", "there"][..], &["-T", "into", "there"]] {
            let words = [&["copy", letter, "--delete"], words].concat();
            folder.flatout(words).run().complains(1, &["cannot mirror", "would be deleted"]);
            assert_eq!(paths(&folder.join("there")), before);
        }
    }
}

/// The rule for directories takes a symlink that stands for one.
#[test]
fn a_directory_behind_a_symlink_that_was_copied_stays() {
    let folder = Folder::new();
    plant(&folder, &["source/", "real/b.txt", "real/c.o", "target/link/gone.txt", "target/old"]);
    symlink("../real", folder.join("source/link")).unwrap();
    let rules = ["--include=*/", "--include=*.txt", "--exclude=*.o", "--exclude=b"];
    for _ in 0..2 {
        let words = [&["copy", "-T", "-L", "--delete", "source", "target"][..], &rules].concat();
        let ran = folder.flatout(words).run();
        ran.exits(0);
        assert_holds(&folder.join("target"), &["link", "link/b.txt"], &ran);
    }
}

#[test]
fn a_backup_does_not_take_the_place_of_a_copy() {
    let contents = |folder: &Folder| {
        let names = ["target/a~", "target/a.~1~"];
        names.map(|name| fs::read_to_string(folder.join(name)).unwrap_or_default())
    };
    for words in [&["--delete", "-b"][..], &["--delete", "--backup=simple"], &["--backup=simple"]] {
        let folder = Folder::new();
        plant(&folder, &["source/a~", "target/a"]);
        if !words.contains(&"--delete") {
            plant(&folder, &["source/a"]);
        }
        let words = [&["copy", "-T", "source", "target"], words].concat();
        folder.flatout(words).run().exits(0);
        assert_eq!(contents(&folder), ["source/a~", "target/a"]);
    }
}

#[test]
fn a_snapshot_in_the_target_is_no_surplus() {
    let folder = Folder::new();
    plant(&folder, &["source/a", "target/previous/a"]);
    for option in ["--link-dest", "--reflink-dest"] {
        let words = ["copy", "-T", "--delete", option, "target/previous", "source", "target"];
        let ran = folder.flatout(words).run();
        ran.complains(1, &["a snapshot lies in it"]);
        assert_holds(&folder.join("target"), &["previous", "previous/a"], &ran);
    }
}

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

#[test]
fn things_of_another_kind_make_room_by_the_rules_of_cp_too() {
    let folder = Folder::new();
    plant(&folder, &["source/file", "target/file/in"]);
    folder.flatout(["copy", "-T", "-L", "source", "target"]).run().complains(1, &["target/file"]);
    folder.flatout(["copy", "-T", "-L", "--delete", "source", "target"]).run().exits(0);
    assert_eq!(fs::read_to_string(folder.join("target/file")).unwrap(), "source/file");
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
fn nothing_is_deleted_where_a_symlink_that_is_followed_leads_nowhere() {
    let folder = Folder::new();
    plant(&folder, &["source/a", "target/gone", "target/link/kept"]);
    symlink("disk/data", folder.join("source/link")).unwrap();
    let ran = super::mirror(&folder, &["-L"]).run();
    ran.exits(1);
    assert!(ran.stderr.contains("\"source/link\": No such file"), "{ran}");
    assert!(ran.stderr.contains("nothing more is deleted"), "{ran}");
    assert_holds(&folder.join("target"), &["a", "gone", "link", "link/kept"], &ran);
}

/// As rsync, which lets their owner in meanwhile.
#[test]
fn directories_that_their_owner_has_closed_are_mirrored() {
    let folder = Folder::new();
    plant(&folder, &["source/d/a", "source/d/sub/b", "target/d/gone", "target/d/sub/gone"]);
    let is_root = rustix::process::geteuid().is_root();
    for (mode, option) in [(0o555, ""), (0o300, ""), (0, ""), (0o555, " --no-preserve=mode")] {
        fs::write(folder.join("target/d/gone"), "").unwrap();
        fs::write(folder.join("source/d/a"), format!("{mode}{option}")).unwrap();
        for name in ["source", "target", "target/d", "target/d/sub", "source/d", "source/d/sub"] {
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

#[test]
fn a_listed_path_behind_a_symlink_is_said_not_to_be_copied() {
    let folder = Folder::new();
    plant(&folder, &["source/real/f", "target/"]);
    symlink("real", folder.join("source/link")).unwrap();
    fs::write(folder.join("list"), "link/f\n").unwrap();
    let words = ["copy", "-T", "--files-from", "list", "source", "target"];
    folder.flatout(words).run().complains(1, &["source/link/f"]);
    fs::write(folder.join("list"), "link\nreal/f\n").unwrap();
    folder.flatout(words).run().exits(0);
    fs::write(folder.join("list"), "link/f\n").unwrap();
    fs::remove_dir_all(folder.join("target")).unwrap();
    let words = ["copy", "-T", "-L", "--files-from", "list", "source", "target"];
    folder.flatout(words).leaves("target").run().exits(0);
    assert!(folder.join("target/link/f").exists());
}

/// `cp -a` fails where a name cannot be a link to the copy of another.
#[test]
fn names_of_one_file_that_become_two_are_no_success() {
    let folder = Folder::new();
    plant(&folder, &["source/a", "source/sub/", "target/sub/"]);
    fs::hard_link(folder.join("source/a"), folder.join("source/sub/b")).unwrap();
    let mounted = needs!(Mounted::new(Kind::Tmpfs(1 << 20)));
    let at = folder.join("target/sub");
    let mut mount = Command::new("mount");
    assert!(mount.arg("--bind").arg(mounted.path()).arg(&at).status().unwrap().success());
    let copied = folder.flatout(["copy", "-T", "source", "target"]).run();
    let cp = folder.flatout(["cp", "-a", "source/.", "target"]).run();
    assert!(Command::new("umount").arg(&at).status().unwrap().success());
    assert_eq!(fs::read_to_string(mounted.path().join("b")).unwrap(), "source/a");
    copied.complains(1, &["became files of their own, \"target/", "\" first: "]);
    cp.complains(1, &["cannot create hard link"]);
    mounted.finish();
}

/// Names that are listed without a key are none of the source's, and all could be deleted, where nothing can
/// be made (fscrypt).
#[test]
fn an_encrypted_directory_without_its_key_is_not_emptied() {
    needs!(needs_program("xfs_io"));
    needs!(needs_program("tune2fs"));
    let mounted = needs!(Mounted::new(Kind::Ext4));
    let (folder, top) = (Folder::new(), mounted.path());
    let target = top.join("encrypted");
    fs::create_dir(&target).unwrap();
    plant(&folder, &["source/a", "source/sub/b"]);
    let run = |program: &str, words: &[&OsStr]| {
        let key = folder.join("key");
        fs::write(&key, [7; 64]).unwrap();
        let ran = Command::new(program).args(words).stdin(fs::File::open(key).unwrap()).output();
        let ran = ran.unwrap();
        let text = String::from_utf8_lossy(&ran.stdout).into_owned();
        if ran.status.success() { Ok(text) } else { Err(format!("{program} failed: {ran:?}")) }
    };
    let on = |place: &Path, command: &str| {
        run("xfs_io", &["-r".as_ref(), "-c".as_ref(), command.as_ref(), place.as_os_str()])
    };
    needs!(run("tune2fs", &["-O".as_ref(), "encrypt".as_ref(), mounted.node().as_os_str()]));
    let said = needs!(on(&top, "add_enckey"));
    let key = said.split_whitespace().last().unwrap_or_default();
    needs!(on(&target, &format!("set_encpolicy {key}")));
    let words = ["copy", "--delete", "-T", "source", target.to_str().unwrap()];
    folder.flatout(words).run().exits(0);
    needs!(on(&top, &format!("rm_enckey {key}")));
    needs!(
        fs::write(target.join("new"), "")
            .map_or(Ok(()), |()| Err("it still has its key".to_owned()))
    );
    for dry in [&["--dry-run"][..], &[]] {
        let ran = folder.flatout([&words[..], dry].concat()).run();
        let refusal = "cannot delete from \"";
        assert!(ran.exits(1).stderr.contains(refusal) && ran.stderr.contains("its key"), "{ran}");
        assert_eq!(fs::read_dir(&target).unwrap().count(), 2);
    }
    needs!(on(&top, "add_enckey"));
    assert_eq!(fs::read_to_string(target.join("sub/b")).unwrap(), "source/sub/b");
    mounted.finish();
}

/// A server fails once to say what bears a name, whichever look at one that is: what it spells otherwise is no
/// surplus for that.
#[test]
fn what_cannot_be_looked_at_once_is_not_deleted() {
    needs!(needs_program("strace"));
    let faulty = needs!(Faulty::new(Faults { folds: true, ..Faults::default() }));
    let folder = Folder::new();
    plant(&folder, &["src/README"]);
    faulty.put("readme", b"src/README");
    let words = ["copy", "--delete", "--threads=1", "-T", "src", faulty.path().to_str().unwrap()];
    for number in 1.. {
        let inject = format!("inject=newfstatat:error=EIO:when={number}");
        let wrapper = ["strace", "-f", "-qq", "-o", "trace", "-e", &inject];
        let ran = folder.under(&wrapper, &words).leaves("trace").run();
        assert_eq!(faulty.names(), ["readme"], "look {number}{ran}");
        if !fs::read_to_string(folder.join("trace")).unwrap().contains("INJECTED") {
            ran.exits(0);
            break;
        }
    }
    faulty.finish();
}

/// Some servers go on with a listing by how many names they have told.
#[test]
fn a_directory_goes_whose_server_leaves_out_names_while_others_go() {
    let faulty = needs!(Faulty::new(Faults { leaves_out: true, ..Faults::default() }));
    let folder = Folder::new();
    plant(&folder, &["src/stays"]);
    for below in ["gone", "gone/below"] {
        fs::create_dir(faulty.path().join(below)).unwrap();
        for number in 0..400 {
            fs::write(faulty.path().join(format!("{below}/{number:0200}")), "").unwrap();
        }
    }
    let target = faulty.path().to_str().unwrap();
    folder.flatout(["copy", "--delete", "-T", "src", target]).run().exits(0);
    assert_eq!(faulty.names(), ["stays"]);
    faulty.finish();
}

/// A source that knows no names so long has none of them.
#[test]
fn names_that_are_too_long_for_the_source_go() {
    let faulty = needs!(Faulty::new(Faults { name_bytes: 100, ..Faults::default() }));
    let folder = Folder::new();
    let long = format!("target/{}", "n".repeat(101));
    plant(&folder, &["target/stays", &long, "target/surplus"]);
    faulty.put("stays", b"stays");
    let source = faulty.path().to_str().unwrap();
    let ran = folder.flatout(["copy", "--delete", "-T", source, "target"]).run();
    assert_holds(&folder.join("target"), &["stays"], ran.exits(0));
    faulty.finish();
}
