//! What a mirror must not take with it: what it has just brought, what a symlink stands for, what is
//! kept aside, and what nothing takes the place of in the end.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use super::{assert_holds, paths, plant};
use crate::bin::Folder;
use crate::faulty::{Faults, Faulty};
use crate::filesystem::{Kind, Mounted, needs_program};
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

/// What the target can have no name for is named, and keeps nothing there.
#[test]
fn names_that_are_too_long_for_the_target_let_others_go() {
    let faulty = needs!(Faulty::new(Faults { name_bytes: 100, ..Faults::default() }));
    let folder = Folder::new();
    plant(&folder, &["src/stays", &format!("src/{}", "n".repeat(101))]);
    // Its letters have other spellings, for which the target is asked by the names of the source.
    faulty.put("überflüssig", b"");
    let target = faulty.path().to_str().unwrap();
    let ran = folder.flatout(["copy", "--delete", "-T", "src", target]).run();
    ran.complains(1, &["nnnn"]);
    assert_eq!(faulty.names(), ["stays"]);
    faulty.finish();
}
