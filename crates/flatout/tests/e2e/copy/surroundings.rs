//! Where a copy runs: under fakeroot, with few threads, with a profile of somebody else.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::process::{Command, Stdio};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, XattrFlags, mknodat,
    utimensat,
};
use rustix::process::Signal;

use crate::bin::{Folder, Ran, executable};
use crate::copy::likeness::{assert_alike, likeness};
use crate::faulty::{Faults, Faulty};
use crate::filesystem::{Mounted, is_root, needs_program, needs_root};
use crate::input::as_nobody;
use crate::skip::{needs, skip};

const NOBODY: u32 = 65_534;

/// A folder of nobody's, with something to copy.
fn folder() -> Folder {
    let folder = Folder::new();
    fs::create_dir(folder.join("src")).unwrap();
    for index in 0..100 {
        fs::write(folder.join(&format!("src/file{index}")), [7; 1000]).unwrap();
    }
    fs::write(folder.join("src/large"), vec![7; 20 << 20]).unwrap();
    if is_root() {
        let all = fs::read_dir(folder.join("src")).unwrap().map(|entry| entry.unwrap().path());
        for path in all.chain([folder.join("src"), folder.path().to_owned()]) {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }
    folder
}

#[test]
fn under_fakeroot_nothing_is_copied_and_a_way_out_is_named() {
    let folder = folder();
    for (name, value) in [
        ("FAKEROOTKEY", "1234"),
        ("LD_PRELOAD", "libfakeroot-sysv.so"),
        ("LD_PRELOAD", "libpseudo.so"),
    ] {
        // The program must start: what is not there cannot be loaded, which the loader says.
        let flatout = folder.flatout(["copy", "src", "new", "--log", "log"]);
        let ran = flatout.with(|command| {
            command.env(name, value);
        });
        let ran = ran.run();
        let said = ran.exits(1).stderr.lines().filter(|line| line.starts_with("flatout: "));
        let said: Vec<&str> = said.collect();
        assert_eq!(said.len(), 1, "{ran}");
        assert!(said[0].contains("cp -a") && said[0].contains("owners"), "{ran}");
    }
}

#[test]
fn fakeroot_itself_is_noticed() {
    needs!(needs_program("fakeroot"));
    let folder = folder();
    let words = [executable().as_os_str(), "copy".as_ref(), "src".as_ref(), "new".as_ref()];
    let words = words.map(OsString::from).to_vec();
    folder.program("fakeroot".as_ref(), words).run().complains(1, &["fakeroot", "cp -a"]);
}

#[test]
fn a_limit_on_threads_means_fewer_threads() {
    needs!(needs_root("running as somebody else"));
    needs!(needs_program("setpriv"));
    let folder = folder();
    as_nobody(&folder, "copy src new").leaves("new").run().exits(0);
    fs::remove_dir_all(folder.join("new")).unwrap();
    for (limit, options) in [(1, ""), (2, "--threads 8 --verify"), (1, "--engine uring")] {
        // The limit comes after the change of user: it is that of whoever is limited.
        let script = format!("ulimit -u {limit} && exec ./program copy {options} src new");
        let words = ["--reuid=65534", "--regid=65534", "--clear-groups", "bash", "-c", &script];
        let words = words.map(OsString::from).to_vec();
        let ran = folder.program("setpriv".as_ref(), words).leaves("new").run();
        let is_said = |line: &str| line.starts_with("flatout: uring from ");
        assert_eq!(ran.exits(0).stdout, "", "{ran}");
        assert!(ran.stderr.lines().all(|line| options.contains("uring") && is_said(line)), "{ran}");
        assert_eq!(Folder::names_in(&folder.join("new")).len(), 101, "{ran}");
        fs::remove_dir_all(folder.join("new")).unwrap();
    }
}

#[test]
fn a_profile_that_may_not_be_read_is_none() {
    needs!(needs_root("running as somebody else"));
    needs!(needs_program("setpriv"));
    let folder = folder();
    let private = folder.join("home/.config/flatout");
    fs::create_dir_all(&private).unwrap();
    let profile = private.join("profile.json");
    fs::write(&profile, "{}").unwrap();
    fs::set_permissions(&profile, Permissions::from_mode(0o600)).unwrap();
    for home_mode in [0o755, 0o700] {
        let home = folder.join("home");
        fs::set_permissions(&home, Permissions::from_mode(home_mode)).unwrap();
        for (name, value) in [("FLATOUT_PROFILE", &profile), ("HOME", &home)] {
            let ran = as_nobody(&folder, "copy src new").with(|command| {
                command.env_remove("FLATOUT_PROFILE").env_remove("XDG_CONFIG_HOME");
                command.env(name, value);
            });
            let ran = ran.leaves("new").run();
            assert_eq!(ran.exits(0).stderr, "", "{ran}");
            fs::remove_dir_all(folder.join("new")).unwrap();
        }
    }
    // One that can be read and makes no sense is worth a word.
    fs::set_permissions(&profile, Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(folder.join("home"), Permissions::from_mode(0o755)).unwrap();
    let ran = as_nobody(&folder, "copy src new").with(|command| {
        command.env("FLATOUT_PROFILE", &profile);
    });
    assert!(ran.leaves("new").run().exits(0).stderr.contains("cannot use the profile"));
}

/// Of what cannot be changed nothing is to be, though its source was read since.
#[test]
fn a_copy_that_cannot_be_written_to_is_found_to_be_the_same() {
    needs!(needs_root("mounts a directory read-only"));
    let folder = Folder::new();
    fs::create_dir_all(folder.join("src/sub")).unwrap();
    fs::write(folder.join("src/sub/file"), "bytes").unwrap();
    fs::hard_link(folder.join("src/sub/file"), folder.join("src/name")).unwrap();
    symlink("sub/file", folder.join("src/link")).unwrap();
    mknodat(CWD, folder.join("src/pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    let time = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
    let touch = |last_access, last_modification| {
        for name in ["sub/file", "sub", "link", "pipe", "."] {
            let (path, times) =
                (folder.join("src").join(name), Timestamps { last_access, last_modification });
            utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
        }
    };
    touch(time(1_000_000_000, 0), time(1_000_000_000, 0));
    folder.flatout(["copy", "-T", "src", "new"]).leaves("new").run().exits(0);
    touch(time(0, UTIME_NOW), time(0, UTIME_OMIT));
    let mounted = needs!(Mounted::read_only(&folder.join("new")));
    let target = mounted.path();
    let target = target.to_str().unwrap();
    for words in ["--quick-check", "--checksum", "--quick-check --delete"] {
        let words: Vec<&str> =
            ["copy"].into_iter().chain(words.split(' ')).chain(["-T", "src", target]).collect();
        let ran = folder.flatout(words).run();
        assert_eq!(ran.exits(0).stderr, "", "{ran}");
    }
    fs::write(folder.join("src/sub/file"), "other").unwrap();
    let ran = folder.flatout(["copy", "--quick-check", "-T", "src", target]).run();
    assert!(ran.exits(1).stderr.contains("Read-only"), "{ran}");
    mounted.finish();
}

/// Takes a lease on the file that is named, says so, and gives it back as soon as it is asked to.
/// What is open has its attributes without it, and so has what is pinned and a directory. The calls that
/// take a name (Linux 6.13) take no pinned file (fget(9)), and a name may be another file's by then.
#[test]
fn without_proc_attributes_are_kept_but_for_those_of_symlinks_and_devices() {
    needs!(needs_root("takes /proc away"));
    needs!(needs_program("unshare"));
    let folder = Folder::new();
    fs::create_dir_all(folder.join("src/sub")).unwrap();
    fs::write(folder.join("src/sub/file"), "bytes").unwrap();
    symlink("sub/file", folder.join("src/link")).unwrap();
    for name in ["src/sub", "src/sub/file"] {
        let (path, none) = (folder.join(name), XattrFlags::empty());
        if rustix::fs::setxattr(&path, "user.k", b"v", none).is_err() {
            skip!("the filesystem of temporary files has no attributes");
        }
        fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
    }
    let run = |target: &str| {
        let script =
            format!("umount -l /proc && exec {} copy -T src {target}", executable().display());
        let words = ["--mount", "sh", "-c", &script].map(OsString::from).to_vec();
        folder.program("unshare".as_ref(), words).leaves(target).run()
    };
    let ran = run("new");
    assert_eq!(ran.exits(0).stderr, "", "{ran}");
    assert_alike(&likeness(&folder.join("src")), &likeness(&folder.join("new")), &ran);
    let (link, none) = (folder.join("src/link"), XattrFlags::empty());
    rustix::fs::lsetxattr(link, "trusted.k", b"v", none).unwrap();
    run("second").complains(1, &["set the extended attributes of", "second/link"]);
}

const LEASE_HOLDER: &str = "
import fcntl, signal, sys, time
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])
file = open(sys.argv[1])
# What another test starts has the files of all of them open for a moment.
for _ in range(1000):
    try:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        break
    except BlockingIOError:
        time.sleep(0.02)
else:
    sys.exit('no lease is to be had')
print('held', flush=True)
was_asked = signal.sigtimedwait([signal.SIGIO], 30)
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
sys.exit(was_asked is None)
";

/// The kernel answers EAGAIN to whoever opens such a file without waiting (fcntl(2)).
#[test]
fn what_is_under_a_lease_is_copied_when_it_is_given_back() {
    needs!(needs_program("python3"));
    for (words, name) in [
        (&["copy", "file", "copy"][..], "file"),
        (&["copy", "--in-place", "file", "copy"], "copy"),
        (&["cp", "file", "copy"], "copy"),
    ] {
        is_given_back(words, name);
    }
}

fn is_given_back(words: &[&str], leased: &str) {
    let folder = Folder::new();
    fs::write(folder.join("file"), "leased").unwrap();
    if leased != "file" {
        fs::write(folder.join(leased), "old").unwrap();
    }
    let mut holder = Command::new("python3")
        .args(["-c", LEASE_HOLDER, leased])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "held\n");
    let ran = folder.flatout(words).leaves("copy").run();
    let was_asked = holder.wait().unwrap().success();
    assert_eq!(ran.exits(0).stderr, "", "{ran}");
    assert_eq!(fs::read(folder.join("copy")).unwrap(), b"leased", "{ran}");
    assert!(was_asked, "the lease was in the way{ran}");
}

/// A signal that is no wish to stop (SIGUSR1, for example) may end a call that waits for a program that
/// serves files, and the kernel does not ask that again.
#[test]
fn what_a_signal_interrupts_is_opened_all_the_same() {
    needs!(needs_program("strace"));
    for name in ["from", "to"] {
        let folder = Folder::new();
        fs::write(folder.join("from"), "text").unwrap();
        let inject = ["-P", name, "-e", "inject=openat:error=EINTR:when=1"];
        let faulty = [&["strace", "-f", "-qq", "-o", "trace"][..], &inject].concat();
        let ran = folder.under(&faulty, &["copy", "from", "to"]).leaves("to").leaves("trace").run();
        ran.exits(0);
        assert_eq!(fs::read(folder.join("to")).unwrap(), b"text", "{name}");
        let trace = fs::read_to_string(folder.join("trace")).unwrap();
        assert!(trace.contains("INJECTED"), "{trace}");
    }
}

/// What a server is asked for when a tree is copied, and by which calls.
const SERVED: [(&str, &str); 5] = [
    ("from", "getdents64"),
    ("text", "openat"),
    ("from/text", "pread64"),
    ("from/long", "copy_file_range,splice,pread64"),
    ("to/text", "pwrite64"),
];

/// A copy whose calls of a kind are interrupted each time, and what strace(1) says of them.
fn interrupted((place, calls): (&str, &str), more: &str) -> (Ran, String) {
    let folder = Folder::new();
    fs::create_dir(folder.join("from")).unwrap();
    fs::write(folder.join("from/text"), "text").unwrap();
    fs::write(folder.join("from/long"), [1; 200_000]).unwrap();
    let inject = format!("inject={calls}:error=EINTR{more}");
    // A descriptor is known by its whole path, a name by what was given.
    let whole = folder.join(place);
    let path = if calls == "openat" { place } else { whole.to_str().unwrap() };
    let faulty = ["strace", "-f", "-qq", "-o", "trace", "-P", path, "-e", &inject];
    let words = ["copy", "-T", "from", "to"];
    let ran = folder.under(&faulty, &words).leaves("to").leaves("trace").run();
    (ran, fs::read_to_string(folder.join("trace")).unwrap())
}

/// A server may answer so whatever is asked: each loop would go on for ever, deaf to Ctrl-C.
#[test]
fn what_is_interrupted_each_time_is_an_error_and_no_loop() {
    needs!(needs_program("strace"));
    for served @ (place, calls) in SERVED {
        let (ran, _) = interrupted(served, "");
        let said = &ran.exits(1).stderr;
        assert!(said.contains(": Interrupted system call"), "{place} {calls}{ran}");
        assert!(said.contains(place), "{place} {calls}{ran}");
    }
}

/// A slow server would take as long once more.
#[test]
fn what_the_wish_to_stop_has_interrupted_is_not_asked_for_again() {
    needs!(needs_program("strace"));
    for served @ (place, calls) in SERVED {
        let (ran, trace) = interrupted(served, ":signal=TERM");
        ran.died_of(Signal::TERM);
        assert!(!ran.stderr.contains("cannot"), "{place} {calls}{ran}");
        assert_eq!(trace.matches("INJECTED").count(), 1, "{place} {calls}{ran}{trace}");
    }
}

/// Storage that is written once (WORM): what is made to find something out stays there, and is empty.
#[test]
fn a_server_that_lets_nothing_go_takes_a_copy() {
    let faulty =
        needs!(Faulty::new(Faults { unlink: Some(fuser::Errno::EPERM), ..Faults::default() }));
    let folder = Folder::new();
    fs::create_dir(folder.join("src")).unwrap();
    fs::write(folder.join("src/text"), "text").unwrap();
    let target = faulty.path().to_str().unwrap();
    let ran = folder.flatout(["copy", "-T", "src", target]).run();
    ran.exits(0).says(&["an empty file of this copy cannot be removed"]);
    assert_eq!(fs::read(faulty.path().join("text")).unwrap(), b"text", "{ran}");
    faulty.finish();
}
