//! FIFOs, devices and whatever has no length: what is read and written as it is.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{lchown, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{CWD, FileType, Mode, XattrFlags, mknodat, setxattr};

use super::{Pair, Trial};
use crate::bin::{Folder, executable};
use crate::copy::entry::chmod;
use crate::copy::forest::acl;
use crate::faulty::{Faults, Faulty};
use crate::filesystem::{Kind, Mounted, needs_program, needs_root};
use crate::skip::{needs, skip};

fn plant(folder: &Path) {
    fs::write(folder.join("a"), "some bytes").unwrap();
    mknodat(CWD, folder.join("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

#[test]
fn devices_are_read_and_written() {
    let pair = Pair::new(plant);
    for line in [
        "/dev/null new",
        "/dev/null a",
        "a /dev/null",
        "-f a /dev/null",
        "/proc/sys/kernel/ostype new",
        "-r pipe new",
        "-a pipe new",
        "-a pipe a",
        "-n a pipe",
        "-r a/ new",
    ] {
        pair.plant(plant);
        pair.same(line);
    }
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

/// Of these cp asks for all bits that the source has. A default list bounds them.
#[test]
fn fifos_and_sockets_get_the_modes_that_cp_gives_them() {
    let pair = Pair::new(|_| {});
    for (options, has_list) in [
        ("-r", false),
        ("-r", true),
        ("-r --preserve=ownership", false),
        ("-r --no-preserve=mode", false),
        ("-a --no-preserve=mode", false),
    ] {
        pair.plant(|folder| {
            fs::create_dir(folder.join("s")).unwrap();
            for mode in [0o640, 0o4755, 0o2711, 0o1666, 0o7777, 0o600] {
                for (kind, name) in [(FileType::Fifo, "pipe"), (FileType::Socket, "socket")] {
                    let path = folder.join(format!("s/{name}{mode:o}"));
                    mknodat(CWD, &path, kind, Mode::RWXU, 0).unwrap();
                    chmod(&path, mode);
                }
            }
            if has_list {
                let list = acl([7, 5, 5, 5, 5, 0]);
                let name = "system.posix_acl_default";
                let _where_there_are_lists = setxattr(folder, name, &list, XattrFlags::empty());
            }
        });
        pair.same(&format!("{options} s t"));
    }
}

/// Not the name that it has until it is complete.
#[test]
fn an_owner_that_cannot_be_kept_is_missed_under_the_name_of_the_copy() {
    needs!(needs_root("gives files away"));
    needs!(needs_program("unshare"));
    let folder = Folder::new();
    for side in ["src", "dst"] {
        fs::create_dir(folder.join(side)).unwrap();
        plant(&folder.join(side));
        symlink("a", folder.join(side).join("link")).unwrap();
    }
    for name in ["a", "pipe", "link"] {
        lchown(folder.join("src").join(name), Some(5), Some(5)).unwrap();
    }
    for options in ["-a", "-a --remove-destination", "-au"] {
        let program = executable().to_str().unwrap();
        let words = ["-r", program, "cp"].into_iter().chain(options.split(' '));
        let words = words.chain(["src/a", "src/pipe", "src/link", "dst"]).map(Into::into).collect();
        let ran = folder.program("unshare".as_ref(), words).run();
        if ran.stderr.contains("unshare") {
            skip!("no user namespaces here: {}", ran.stderr);
        }
        assert!(!ran.stderr.contains(".flatout-copy"), "{options}{ran}");
        for name in ["a", "pipe", "link"].into_iter().filter(|name| options != "-a" || *name != "a")
        {
            let said = format!("failed to preserve ownership for 'dst/{name}'");
            assert!(ran.exits(1).stderr.contains(&said), "{options} {name}{ran}");
        }
        // What is newer or missing is made with -u alone.
        for name in ["a", "pipe", "link"] {
            fs::remove_file(folder.join("dst").join(name)).unwrap();
        }
    }
}

/// Word for word, and once for each copy.
#[test]
fn what_the_target_cannot_hold_is_said_in_the_words_of_cp() {
    let mounted = needs!(Mounted::new(Kind::Ramfs));
    let folder = Folder::new();
    fs::create_dir_all(folder.join("src/d")).unwrap();
    for name in ["src/a", "src/d/b", "src/plain"] {
        fs::write(folder.join(name), name).unwrap();
    }
    for name in ["src/a", "src/d", "src/d/b"] {
        if setxattr(folder.join(name), "user.k", b"v", XattrFlags::empty()).is_err() {
            skip!("the filesystem of temporary files has no attributes");
        }
    }
    for options in ["-a", "-r --preserve=xattr", "-a --preserve=xattr", "-p --preserve=all,xattr"] {
        let [cp, flatout] = [("cp", &[][..]), ("flatout", &["cp"])].map(|(name, first)| {
            let program = if first.is_empty() { Path::new(name) } else { executable() };
            let _ = fs::remove_dir_all(mounted.path().join("new"));
            let trial = Trial {
                program,
                first,
                folder: &mounted.path(),
                user: None,
                input: None,
                environment: &[],
            };
            let source = folder.join(if options.starts_with("-p") { "src/a" } else { "src" });
            let words = options.split(' ').map(str::to_owned);
            let output = trial.run(
                &words.chain([source.display().to_string(), "new".into()]).collect::<Vec<_>>(),
            );
            let said = String::from_utf8(output.stderr).unwrap();
            let mut lines: Vec<String> = said.lines().map(str::to_owned).collect();
            lines.sort();
            let _ = fs::remove_file(mounted.path().join("new"));
            (output.status.code(), lines)
        });
        assert_eq!(cp, flatout, "{options}");
        assert_eq!(cp.1.is_empty(), options == "-a", "{options}: {cp:?}");
    }
    mounted.finish();
}

#[test]
fn a_fifo_is_read_until_its_writer_is_done() {
    let folder = Folder::new();
    plant(folder.path());
    let bytes = "0123456789".repeat(100_000);
    let mut child = Command::new(executable())
        .args(["cp", "pipe", "new"])
        .current_dir(folder.path())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    fs::write(folder.join("pipe"), &bytes).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(fs::read_to_string(folder.join("new")).unwrap(), bytes);
}

#[test]
fn what_is_copied_to_a_fifo_is_what_its_reader_gets() {
    let folder = Folder::new();
    plant(folder.path());
    let bytes = "0123456789".repeat(100_000);
    fs::write(folder.join("a"), &bytes).unwrap();
    let mut child = Command::new(executable())
        .args(["cp", "a", "pipe"])
        .current_dir(folder.path())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert_eq!(fs::read_to_string(folder.join("pipe")).unwrap(), bytes);
    assert!(child.wait().unwrap().success());
    assert!(fs::symlink_metadata(folder.join("pipe")).is_ok());
}

#[test]
fn standard_input_and_output_are_files() {
    let folder = Folder::new();
    plant(folder.path());
    let output = Command::new(executable())
        .args(["cp", "/dev/stdin", "/dev/stdout"])
        .current_dir(folder.path())
        .stdin(fs::File::open(folder.join("a")).unwrap())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.stdout, b"some bytes");
}

/// Whichever name comes first: what stands for it is a symlink, or what cannot be compared.
#[test]
fn no_name_becomes_a_link_to_what_is_up_to_date_and_no_file() {
    for (first, other) in [("1", "2"), ("2", "1")] {
        for is_symlink in [true, false] {
            let folder = Folder::new();
            for tree in ["s", "t"] {
                fs::create_dir(folder.join(tree)).unwrap();
            }
            let bytes = if is_symlink { "source" } else { "" };
            fs::write(folder.join("s/1"), bytes).unwrap();
            let past = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
            fs::File::open(folder.join("s/1")).unwrap().set_modified(past).unwrap();
            fs::hard_link(folder.join("s/1"), folder.join("s/2")).unwrap();
            fs::write(folder.join("newer"), "newer").unwrap();
            let in_the_way = folder.join("t").join(first);
            match is_symlink {
                true => symlink("../newer", in_the_way).unwrap(),
                false => {
                    let mode = Mode::from_raw_mode(0o600);
                    mknodat(CWD, in_the_way, FileType::Fifo, mode, 0).unwrap();
                }
            }
            let older = folder.join("t").join(other);
            fs::write(&older, "older").unwrap();
            let before = past - std::time::Duration::from_secs(9);
            fs::File::open(&older).unwrap().set_modified(before).unwrap();
            let ran = folder.flatout(["cp", "-au", "s/.", "t"]).run();
            let found = fs::symlink_metadata(&older).unwrap();
            assert!(ran.exits(0).stderr.is_empty() && found.is_file(), "{first} {is_symlink}{ran}");
            assert_eq!(fs::read_to_string(&older).unwrap(), bytes, "{first}{ran}");
            assert_eq!(fs::read_to_string(folder.join("newer")).unwrap(), "newer");
        }
    }
}

/// With hard links as by symlinks that are followed.
#[test]
fn a_further_name_of_what_went_through_a_symlink_is_no_link_to_that() {
    for (words, is_link) in [("-a", true), ("-aL", false)] {
        let folder = Folder::new();
        for tree in ["s", "t"] {
            fs::create_dir(folder.join(tree)).unwrap();
        }
        fs::write(folder.join("s/first"), "source").unwrap();
        match is_link {
            true => fs::hard_link(folder.join("s/first"), folder.join("s/second")).unwrap(),
            false => symlink("first", folder.join("s/second")).unwrap(),
        }
        symlink("../elsewhere", folder.join("t/first")).unwrap();
        fs::write(folder.join("elsewhere"), "").unwrap();
        let ran = folder.flatout(["cp", words, "s/.", "t"]).run();
        assert!(!folder.join("t/second").is_symlink(), "{words}{ran}");
        assert_eq!(fs::read_to_string(folder.join("t/second")).unwrap(), "source", "{words}{ran}");
    }
}

/// Two names of one file of a server that gives each a number of its own.
#[test]
fn a_source_that_goes_with_what_is_removed_keeps_its_bytes() {
    let served = Faults { folds: true, numbers_spellings: true, ..Faults::default() };
    let faulty = needs!(Faulty::new(Faults { asks_by_name: true, ..served }));
    faulty.put("file", b"precious");
    let [source, target] = ["file", "FILE"].map(|name| faulty.path().join(name));
    let words = ["cp", "--remove-destination"].map(OsStr::new);
    let folder = Folder::new();
    folder.flatout([&words[..], &[source.as_os_str(), target.as_os_str()]].concat()).run().exits(0);
    assert_eq!(fs::read(&target).unwrap(), b"precious");
    faulty.finish();
}

/// Nothing could be opened in its place, either.
#[test]
fn what_cannot_be_opened_just_now_is_not_removed_by_force() {
    needs!(needs_program("strace"));
    let folder = Folder::new();
    fs::write(folder.join("b"), "old").unwrap();
    fs::write(folder.join("a"), "newer").unwrap();
    for errno in ["EMFILE", "ENFILE", "ENOMEM", "EINTR"] {
        let inject = format!("inject=openat:error={errno}");
        let wrapper = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", "b", "-e", &inject];
        for words in [&["cp", "-f", "a", "b"][..], &["copy", "-fH", "a", "b"]] {
            let ran = folder.under(&wrapper, words).run();
            ran.exits(1);
            assert_eq!(fs::read_to_string(folder.join("b")).unwrap(), "old", "{ran}");
        }
    }
}

/// At whichever call that is found out.
#[test]
fn what_is_to_be_removed_stays_until_something_complete_takes_its_place() {
    needs!(needs_program("strace"));
    let calls = ["linkat", "pwrite64", "copy_file_range", "utimensat", "renameat"];
    for (call, number) in calls.iter().flat_map(|call| [1, 2].map(|number| (call, number))) {
        let folder = Folder::new();
        for tree in ["s", "t"] {
            fs::create_dir(folder.join(tree)).unwrap();
        }
        let names = ["one", "two", "three"];
        for (name, text) in [
            ("s/one", "new"),
            ("s/three", "new"),
            ("t/one", "old"),
            ("t/two", "old"),
            ("t/three", "old"),
        ] {
            fs::write(folder.join(name), text).unwrap();
        }
        fs::hard_link(folder.join("s/one"), folder.join("s/two")).unwrap();
        let inject = format!("inject={call}:error=EIO:when={number}");
        let wrapper = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &inject];
        let ran = folder.under(&wrapper, &["cp", "-a", "--remove-destination", "s/.", "t"]).run();
        let found = names.map(|name| fs::read_to_string(folder.join("t").join(name)));
        let found = found.map(|text| text.unwrap_or_default());
        let whole = |text: &String| text == "new" || text == "old" && ran.code == Some(1);
        assert!(found.iter().all(whole), "{call} {number} {found:?}{ran}");
        assert_eq!(Folder::names_in(&folder.join("t")).len(), names.len(), "{call} {number}{ran}");
    }
}

#[test]
fn who_has_too_few_descriptors_loses_nothing() {
    let folder = Folder::new();
    for option in ["-f", "--remove-destination", "--backup=simple", "-bS.x"] {
        for most in 4..12 {
            for (name, text) in [("a", "new"), ("b", "old")] {
                fs::write(folder.join(name), text).unwrap();
            }
            let limit = format!("ulimit -n {most}; exec \"$@\"");
            let ran = folder.under(&["sh", "-c", &limit, "sh"], &["cp", option, "a", "b"]);
            let ran = ran.leaves("b~").leaves("b.x").run();
            let found = fs::read_to_string(folder.join("b"));
            let expected = if ran.code == Some(0) { "new" } else { "old" };
            assert_eq!(found.ok().as_deref(), Some(expected), "{option} {most}{ran}");
            for backup in ["b~", "b.x"].map(|name| folder.join(name)) {
                assert!(ran.code == Some(0) || !backup.exists(), "{option} {most}{ran}");
                let _ = fs::remove_file(backup);
            }
        }
    }
}

/// It is found out when that is made already.
#[test]
fn what_made_room_comes_back_where_nothing_complete_takes_its_name() {
    let folder = Folder::new();
    plant(folder.path());
    symlink("a", folder.join("link")).unwrap();
    let (target, backup) = (folder.join("b"), folder.join("b~"));
    for name in ["link", "pipe"] {
        for most in 4..10 {
            fs::write(&target, "old").unwrap();
            let limit = format!("ulimit -n {most}; exec \"$@\"");
            let words = ["cp", "-R", "--backup=simple", name, "b"];
            let ran = folder.under(&["sh", "-c", &limit, "sh"], &words).leaves("b~").run();
            let is_old = fs::symlink_metadata(&target).is_ok_and(|found| found.is_file());
            let is_done = ran.code == Some(0);
            assert_eq!((is_old, backup.exists()), (!is_done, is_done), "{name} {most}{ran}");
            fs::remove_file(&target).unwrap();
            let _ = fs::remove_file(&backup);
        }
    }
}
