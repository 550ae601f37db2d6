//! What a copy lists of itself, and what is found out by it later.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{CWD, FileType, IFlags, Mode, XattrFlags, mknodat, setxattr};

use super::copier::under_test;
use crate::bin::{Folder, Ran};
use crate::filesystem::{Kind, Mounted, needs_program, needs_root};
use crate::fixture::{random_bytes, sparse_file};
use crate::input::as_nobody;
use crate::skip::needs;

const NAMES: [&[u8]; 8] =
    [b"plain", b" a b ", b"line\nfeed", b"#x=\\y", b"\xff\x01", b"\\012", b"-r", b"*"];

/// A tree with odd names and all kinds.
fn plant(folder: &Folder) {
    fs::create_dir_all(folder.join("src/dir/empty")).unwrap();
    for (index, name) in NAMES.iter().enumerate() {
        let path = folder.join("src").join(OsStr::from_bytes(name));
        fs::write(&path, random_bytes(index * 50_000, index as u64)).unwrap();
    }
    fs::write(folder.join("src/dir/large"), random_bytes(9 << 20, 9)).unwrap();
    sparse_file(&folder.join("src/dir/sparse"), 3 << 20);
    for name in ["src/same 1", "src/same 2"] {
        fs::write(folder.join(name), "same").unwrap();
        let file = File::options().write(true).open(folder.join(name)).unwrap();
        file.set_modified(UNIX_EPOCH).unwrap();
    }
    fs::hard_link(folder.join("src/plain"), folder.join("src/dir/linked")).unwrap();
    fs::hard_link(folder.join("src/dir/large"), folder.join("src/dir/large too")).unwrap();
    symlink(OsStr::from_bytes(b"no\nwhere"), folder.join("src/link")).unwrap();
    mknodat(CWD, folder.join("src/fifo"), FileType::Fifo, Mode::from_raw_mode(0o640), 0).unwrap();
    let _where_there_are_some =
        setxattr(folder.join("src/plain"), "user.note", b"1", XattrFlags::empty());
}

fn run(folder: &Folder, words: &[&str]) -> Ran {
    let mut run = folder.flatout(words);
    for name in ["new", "list", "list2", "again"] {
        run = run.leaves(name);
    }
    run.run()
}

fn check(folder: &Folder) -> Ran {
    run(folder, &["sum", "--check", "--strict", "--quiet", "list"])
}

#[test]
fn what_was_copied_is_found_as_it_was_by_every_way_to_copy() {
    needs!(under_test());
    let mounted = needs!(Mounted::new(Kind::Btrfs));
    let here = Folder::new();
    for folder in [&here, &Folder::inside(&mounted.path())] {
        plant(folder);
        let mut first: Option<Vec<String>> = None;
        for words in [
            &[][..],
            &["--verify"],
            &["--threads=4", "--engine=mmap", "--always"],
            &["--quick-check"],
            &["--checksum"],
            &["--in-place", "--delta", "--always"],
            &["--bwlimit=1G", "--atomic", "--always", "--sparse=always"],
            &["-u"],
        ] {
            let all = [&["copy"], words, &["--manifest", "list", "-T", "src", "new"]].concat();
            let ran = run(folder, &all);
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{words:?}{ran}");
            let ran = check(folder);
            assert_eq!(
                (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
                (Some(0), "", ""),
                "{words:?}{ran}"
            );
            let text = fs::read_to_string(folder.join("list")).unwrap();
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            assert_eq!(
                lines.len(),
                3 + usize::from(text.contains("\n#trusted\n")) + NAMES.len() + 11,
                "{text}"
            );
            // Whatever computed the digests: they are the same.
            let of_files = lines.iter().filter(|line| line.contains("blake3="));
            let without_inode =
                |line: &String| line.split(" resdevice=").next().unwrap().to_owned();
            let files: Vec<String> = of_files.map(without_inode).collect();
            assert_eq!(*first.get_or_insert_with(|| files.clone()), files, "{words:?}");
        }
        // As any other program computes it.
        let sum = run(folder, &["sum", "src/dir/large"]).stdout;
        let digest = sum.split(' ').next().unwrap();
        let list = fs::read_to_string(folder.join("list")).unwrap();
        assert!(list.contains(&format!("blake3={digest}")));
    }
    mounted.finish();
}

/// What is said of a change, whether it is seen without `--strict`, and the change.
type Change<'a> = (&'a str, bool, &'a dyn Fn());

fn copy_again(folder: &Folder) {
    let _gone = fs::remove_dir_all(folder.join("new"));
    run(folder, &["copy", "--manifest", "list", "-T", "src", "new"]).exits(0);
}

fn assert_found(folder: &Folder, changes: &[Change<'_>]) {
    for (said, is_always, change) in changes {
        copy_again(folder);
        change();
        let ran = check(folder);
        assert_eq!(ran.code, Some(1), "{said}{ran}");
        let said_it = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said_it.contains(said) && ran.stdout.contains(": FAILED "), "{said}{ran}");
        let loose = run(folder, &["sum", "--check", "--quiet", "list"]);
        let has_other_bytes = ran.stdout.contains("other bytes");
        assert_eq!(loose.code, Some(i32::from(*is_always || has_other_bytes)), "{said}{loose}");
    }
}

#[test]
fn whatever_is_otherwise_missing_or_extra_is_found() {
    needs!(under_test());
    let folder = Folder::new();
    plant(&folder);
    let at = |name: &str| folder.join("new").join(name);
    let time = |name: &str, seconds| {
        let time = UNIX_EPOCH + Duration::from_secs(seconds);
        File::options().write(true).open(at(name)).unwrap().set_modified(time).unwrap();
    };
    let kept = || fs::metadata(at("dir/large")).unwrap().modified().unwrap();
    let changes: [Change<'_>; 10] = [
        ("other bytes", true, &|| {
            let modified = kept();
            let file = File::options().write(true).open(at("dir/large")).unwrap();
            std::os::unix::fs::FileExt::write_all_at(&file, b"!", 77).unwrap();
            file.set_modified(modified).unwrap();
        }),
        ("No such file", true, &|| fs::remove_file(at("plain")).unwrap()),
        ("No such file", true, &|| fs::remove_dir(at("dir/empty")).unwrap()),
        ("dir instead of file", true, &|| {
            fs::remove_file(at("plain")).unwrap();
            fs::create_dir(at("plain")).unwrap();
        }),
        ("link ", true, &|| {
            fs::remove_file(at("link")).unwrap();
            symlink("elsewhere", at("link")).unwrap();
        }),
        ("mode 0600 instead of", false, &|| {
            fs::set_permissions(at("plain"), Permissions::from_mode(0o600)).unwrap();
        }),
        ("time 77.", false, &|| time("plain", 77)),
        ("not listed", false, &|| fs::write(at("dir/more"), "").unwrap()),
        ("mode 0700 instead of", false, &|| {
            fs::set_permissions(at("dir"), Permissions::from_mode(0o700)).unwrap();
        }),
        ("extended attributes", false, &|| {
            let path = at("dir/sparse");
            setxattr(&path, "user.more", b"1", XattrFlags::empty()).unwrap();
        }),
    ];
    assert_found(&folder, &changes);
    // A directory that becomes a symlink to another one like it.
    copy_again(&folder);
    fs::rename(at("dir"), folder.join("again")).unwrap();
    symlink("../again", at("dir")).unwrap();
    assert!(check(&folder).exits(1).stdout.contains("link instead of dir"));
    fs::remove_dir_all(folder.join("again")).unwrap();
}

#[test]
fn names_that_are_one_file_no_more_and_flags_are_found() {
    needs!(under_test());
    let folder = Folder::new();
    plant(&folder);
    let at = |name: &str| folder.join("new").join(name);
    let changes: [Change<'_>; 4] = [
        // One file becomes two, two become one, and a name moves from one to another.
        ("another file than its other names", false, &|| {
            let bytes = fs::read(at("plain")).unwrap();
            let facts = fs::metadata(at("plain")).unwrap();
            fs::remove_file(at("dir/linked")).unwrap();
            fs::write(at("dir/linked"), bytes).unwrap();
            fs::set_permissions(at("dir/linked"), facts.permissions()).unwrap();
            let file = File::options().write(true).open(at("dir/linked")).unwrap();
            file.set_modified(facts.modified().unwrap()).unwrap();
        }),
        ("listed apart", false, &|| {
            fs::remove_file(at("same 2")).unwrap();
            fs::hard_link(at("same 1"), at("same 2")).unwrap();
        }),
        ("listed apart", false, &|| {
            fs::remove_file(at("same 2")).unwrap();
            fs::hard_link(at("dir/large"), at("same 2")).unwrap();
        }),
        ("flags \"d\" instead of \"\"", false, &|| {
            let file = File::open(at("plain")).unwrap();
            let flags = rustix::fs::ioctl_getflags(&file).unwrap();
            rustix::fs::ioctl_setflags(&file, flags | IFlags::NODUMP).unwrap();
        }),
    ];
    assert_found(&folder, &changes);
}

/// btrfs says of a file that it found out not to be worth compressing, when it was written out.
#[test]
fn what_the_filesystem_itself_sets_is_no_change() {
    needs!(under_test());
    let mounted = needs!(Mounted::new(Kind::Btrfs));
    needs!(mounted.remount("compress=zstd"));
    let folder = Folder::inside(&mounted.path());
    plant(&folder);
    run(&folder, &["copy", "--reflink=never", "--manifest", "list", "-T", "src", "new"]).exits(0);
    let file = File::open(folder.join("new/same 1")).unwrap();
    file.sync_all().unwrap();
    let flags = rustix::fs::ioctl_getflags(&file).unwrap();
    // FS_NOCOMP_FL
    let is_set = flags.bits() & 0x400 != 0;
    needs!(is_set.then_some(()).ok_or("this btrfs tries to compress the file again"));
    drop(file);
    check(&folder).exits(0);
    drop(folder);
    mounted.finish();
}

/// Size and time are no proof, and what is read of the source tells.
#[test]
fn where_digests_are_made_no_other_bytes_come_from_a_snapshot() {
    needs!(under_test());
    let mounted = needs!(Mounted::new(Kind::Btrfs));
    let folder = Folder::inside(&mounted.path());
    for (name, byte) in [("mon/a", 1), ("mon/b", 2), ("src/a", 1), ("src/b", 3)] {
        fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
        fs::write(folder.join(name), vec![byte; 300_000]).unwrap();
        let file = File::options().write(true).open(folder.join(name)).unwrap();
        file.set_modified(UNIX_EPOCH).unwrap();
    }
    for option in ["--verify", "--manifest=list"] {
        run(&folder, &["copy", "--reflink-dest=mon", option, "-T", "src", "new"]).exits(0);
        for (name, byte) in [("new/a", 1), ("new/b", 3)] {
            assert!(fs::read(folder.join(name)).unwrap().iter().all(|&found| found == byte));
        }
    }
    check(&folder).exits(0);
    drop(folder);
    mounted.finish();
}

#[test]
fn a_file_whose_digest_is_lost_is_not_taken_for_right() {
    needs!(under_test());
    let folder = Folder::new();
    plant(&folder);
    copy_again(&folder);
    let text = fs::read_to_string(folder.join("list")).unwrap();
    for (old, new) in [(" blake3=", " blake2="), (" uid=", " vid="), (" mode=", " node=")] {
        fs::write(folder.join("list"), text.replacen(old, new, 1)).unwrap();
        for words in [&["--strict"][..], &[]] {
            let ran = run(&folder, &[&["sum", "--check", "--quiet"], words, &["list"]].concat());
            assert!(ran.stderr.contains("is not one of a manifest"), "{old}{ran}");
            assert_eq!(ran.code, Some(1), "{old}{ran}");
        }
    }
}

#[test]
fn a_manifest_that_is_cut_or_of_a_copy_that_failed_is_none() {
    needs!(under_test());
    needs!(needs_root("running as somebody else"));
    needs!(needs_program("setpriv"));
    let folder = Folder::new();
    plant(&folder);
    run(&folder, &["copy", "--manifest", "list", "-T", "src", "new"]).exits(0);
    let whole = fs::read(folder.join("list")).unwrap();
    for length in [whole.len() - 1, whole.len() - 20, whole.len() / 2, 18] {
        fs::write(folder.join("list"), &whole[..length]).unwrap();
        run(&folder, &["sum", "--check", "--strict", "--status", "list"]).exits(1);
    }
    // Half a line in the middle.
    let text = String::from_utf8(whole.clone()).unwrap();
    fs::write(folder.join("list"), text.replacen(" mode=", " mo\nde=", 1)).unwrap();
    run(&folder, &["sum", "--check", "--strict", "--status", "list"]).exits(1);
    // A line less that says where nothing else may lie.
    fs::write(folder.join("list"), text.replacen("#root ./new\n", "", 1)).unwrap();
    assert!(check(&folder).exits(1).stderr.contains("#root"));
    fs::write(folder.join("list"), &whole).unwrap();
    check(&folder).exits(0);
    // Into the pipe, from the pipe, and as a document.
    let json = run(&folder, &["sum", "--check", "--strict", "--format=json", "list"]);
    assert_eq!(json.exits(0).document()["end"]["exit_code"], 0);
    let ran = run(&folder, &["copy", "--manifest", "-", "--always", "-T", "src", "new"]);
    let start = ran.exits(0).stdout.replacen("#trusted\n", "", 1);
    assert!(start.starts_with("#mtree flatout 1\n#root ./new\n"), "{start}");
    // Who may not read a file lists no end.
    fs::set_permissions(folder.join("src/plain"), Permissions::from_mode(0o000)).unwrap();
    let words = "copy --manifest list2 -T src again";
    let nobody = as_nobody(&folder, words).leaves("list2").leaves("again");
    fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    nobody.run().exits(1);
    let ran = as_nobody(&folder, "sum --check --strict --status list2").run();
    assert!(ran.exits(1).stderr.contains("has no end"), "{ran}");
}

#[test]
fn a_manifest_destroys_nothing() {
    needs!(under_test());
    let folder = Folder::new();
    fs::create_dir_all(folder.join("src")).unwrap();
    fs::create_dir_all(folder.join("new")).unwrap();
    fs::write(folder.join("src/file"), "text").unwrap();
    symlink("src/file", folder.join("list")).unwrap();
    for place in ["src/file", "src/list", "new/list", "list", "new"] {
        let words = ["copy", "--manifest", place, "-T", "src", "new"];
        run(&folder, &words).exits(1);
        assert_eq!(fs::read(folder.join("src/file")).unwrap(), b"text", "{place}");
    }
    let words = ["copy", "--manifest", "again", "--log", "again", "-T", "src", "new"];
    run(&folder, &words).complains(1, &["--log and --manifest"]);
    let words = ["copy", "--manifest", "again", "--dry-run", "-T", "src", "new"];
    run(&folder, &words).complains(2, &["--dry-run"]);
}

#[test]
fn of_several_sources_for_one_place_the_last_one_is_listed() {
    needs!(under_test());
    let folder = Folder::new();
    plant(&folder);
    for (name, text) in [("plain", "later"), ("dir/only", "new"), ("dir/large", "small")] {
        let path = folder.join("more").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fs::create_dir(folder.join("new")).unwrap();
    for words in [&[][..], &["--checksum"], &["-n"], &["-u"]] {
        let sources = ["--manifest", "list", "src/.", "more/.", "new"];
        run(&folder, &[&["copy"], words, &sources[..]].concat()).exits(0);
        let ran = check(&folder);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{words:?}{ran}");
        let list = fs::read_to_string(folder.join("list")).unwrap();
        assert_eq!(list.matches("#root").count(), 1, "{list}");
        assert_eq!(list.matches("./new/plain type").count(), 1, "{list}");
        fs::write(folder.join("new/dir/only"), "other").unwrap();
        check(&folder).exits(1);
    }
}

#[test]
fn what_only_root_sees_is_listed_by_root_and_compared_by_root() {
    needs!(under_test());
    needs!(needs_root("attributes of the class trusted"));
    let folder = Folder::new();
    plant(&folder);
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let set = |path: &str, value: &[u8]| {
        setxattr(folder.join(path), "trusted.note", value, XattrFlags::empty()).unwrap();
    };
    set("src/plain", b"1");
    run(&folder, &["copy", "--manifest", "list", "-T", "src", "new"]).exits(0);
    check(&folder).exits(0);
    let nobody = as_nobody(&folder, "sum --check --strict --quiet list").run();
    assert!(nobody.exits(0).stderr.contains("only root sees"), "{nobody}");
    set("new/plain", b"2");
    assert!(check(&folder).exits(1).stdout.contains("trusted"));
    set("new/plain", b"1");
    set("new/dir", b"1");
    assert!(check(&folder).exits(1).stdout.contains("trusted"));
    // Who cannot see them says nothing of them.
    let list = fs::read_to_string(folder.join("list")).unwrap().replace("#trusted\n", "");
    fs::write(folder.join("list"), list).unwrap();
    assert!(check(&folder).exits(0).stderr.contains("only root sees"));
}
