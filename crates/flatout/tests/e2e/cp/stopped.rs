//! A copy by the rules of cp that is stopped, or finds no room: what is left, and what goes on.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Stdio;

use rustix::fs::{CWD, FileType, Mode, XattrFlags, mknodat, setxattr};
use rustix::process::Signal;

use crate::bin::{Folder, executable};
use crate::copy::entry::chmod;
use crate::copy::forest::acl;
use crate::filesystem::{Kind, Mounted, needs_program};
use crate::skip::needs;

/// Nobody has to answer first.
#[test]
fn an_interrupt_ends_a_question_and_is_no_consent() {
    for words in ["cp -i a b", "copy -i a b"] {
        let folder = Folder::new();
        fs::write(folder.join("a"), "new").unwrap();
        fs::write(folder.join("b"), "old").unwrap();
        let (mut said, stderr) = std::io::pipe().unwrap();
        let asking = folder.flatout(words.split(' ')).stdin(Stdio::piped());
        let asking = asking
            .with(|command| {
                command.stderr(stderr);
            })
            .start();
        let mut letter = [0];
        while letter != *b"?" {
            said.read_exact(&mut letter).unwrap();
        }
        asking.interrupt();
        // Its input stays open until it has ended.
        asking.wait().died_of(Signal::INT);
        assert_eq!(fs::read_to_string(folder.join("b")).unwrap(), "old", "{words}");
    }
}

/// The next copy changes no mode of what is there.
#[test]
fn a_stopped_copy_leaves_directories_as_open_as_their_sources() {
    for (options, modes, has_list) in [
        ("-r", [0o755, 0o750, 0o700], false),
        ("-r", [0o755, 0o750, 0o700], true),
        ("-r --no-preserve=mode", [0o755; 3], false),
        ("-r --preserve=ownership", [0o700; 3], false),
        ("-a", [0o700; 3], false),
    ] {
        let folder = Folder::new();
        if has_list {
            let list = acl([7, 7, 5, 7, 7, 5]);
            let name = "system.posix_acl_default";
            if setxattr(folder.path(), name, &list, XattrFlags::empty()).is_err() {
                continue;
            }
        }
        let names = ["open", "shared", "closed"];
        for (name, mode) in names.into_iter().zip([0o777, 0o750, 0o700]) {
            let directory = folder.join("s").join(name);
            fs::create_dir_all(&directory).unwrap();
            mknodat(CWD, directory.join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
            chmod(&directory, mode);
        }
        let script = format!("umask 022; exec \"$0\" cp --copy-contents {options} s t");
        let words = ["-c".into(), script.into(), executable().into()].to_vec();
        let mut running = folder.program("sh".as_ref(), words).leaves("t").start();
        // Nobody writes into the pipes.
        while !names.iter().all(|name| folder.join("t").join(name).exists()) {
            assert!(running.step().is_none());
        }
        running.interrupt();
        running.wait().died_of(Signal::INT);
        let found = names.map(|name| {
            fs::metadata(folder.join("t").join(name)).unwrap().permissions().mode() & 0o7777
        });
        assert_eq!(found, modes, "{options}");
    }
}

/// The next copy changes no mode of these, either.
#[test]
fn a_killed_copy_leaves_files_as_open_as_they_are_to_be() {
    for (options, mode) in [
        ("-r", 0o644),
        ("-r --no-preserve=mode", 0o644),
        ("-r --preserve=ownership", 0o600),
        ("-a", 0o600),
    ] {
        let folder = Folder::new();
        fs::create_dir(folder.join("s")).unwrap();
        mknodat(CWD, folder.join("s/pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        chmod(&folder.join("s/pipe"), 0o664);
        let script = format!("umask 022; exec \"$0\" cp --copy-contents {options} s t");
        let words = ["-c".into(), script.into(), executable().into()].to_vec();
        let mut running = folder.program("sh".as_ref(), words).leaves("t").start();
        // Nobody writes into the pipe.
        while !folder.join("t/pipe").exists() {
            assert!(running.step().is_none());
        }
        running.signal(Signal::KILL);
        running.wait().died_of(Signal::KILL);
        let found = fs::metadata(folder.join("t/pipe")).unwrap().permissions().mode() & 0o7777;
        assert_eq!(found, mode, "{options}");
    }
}

/// The next copy leaves what lies above as it is.
#[test]
fn directories_above_that_get_no_attributes_are_as_open_as_others() {
    needs!(needs_program("strace"));
    for (options, mode) in [("-r", 0o750), ("-r --no-preserve=mode", 0o755), ("-p", 0o700)] {
        let folder = Folder::new();
        fs::create_dir_all(folder.join("s/below")).unwrap();
        fs::create_dir(folder.join("t")).unwrap();
        fs::write(folder.join("s/below/file"), "bytes").unwrap();
        chmod(&folder.join("s"), 0o750);
        let script = format!(
            "umask 022; exec strace -f -qq -o /dev/null -e inject=fchmod:error=EIO \"$0\" \
             cp {options} --parents s/below/file t"
        );
        let words = ["-c".into(), script.into(), executable().into()].to_vec();
        let ran = folder.program("sh".as_ref(), words).run();
        let found = fs::metadata(folder.join("t/s")).unwrap().permissions().mode() & 0o7777;
        assert_eq!((ran.code, found), (Some(1), mode), "{options}{ran}");
    }
}

#[test]
fn a_copy_without_room_leaves_directories_as_they_are_to_be() {
    let mounted = needs!(Mounted::new(Kind::Tmpfs(1 << 20)));
    let folder = Folder::new();
    fs::create_dir(folder.join("s")).unwrap();
    fs::write(folder.join("s/too-large"), vec![1; 2 << 20]).unwrap();
    chmod(&folder.join("s"), 0o775);
    for (options, mode) in [("-r", 0o775), ("-a", 0o775), ("-r --preserve=ownership", 0o775)] {
        let target = mounted.path().join(options.replace(' ', ""));
        let script = format!("umask 002; exec \"$0\" cp {options} s {}", target.display());
        let words = ["-c".into(), script.into(), executable().into()].to_vec();
        let ran = folder.program("sh".as_ref(), words).run();
        assert!(ran.exits(1).stderr.contains("No space left"), "{options}{ran}");
        let found = fs::metadata(&target).unwrap().permissions().mode() & 0o7777;
        assert_eq!(found, mode, "{options}");
    }
    mounted.finish();
}

/// What has no room is known by its device: whatever else is named, and lies elsewhere, is copied.
#[test]
fn a_full_device_in_the_target_ends_nothing_else() {
    for words in ["cp -r", "copy -L"] {
        let folder = Folder::new();
        for tree in ["a", "b", "t"] {
            fs::create_dir(folder.join(tree)).unwrap();
        }
        fs::write(folder.join("a/full"), "lost").unwrap();
        symlink("/dev/full", folder.join("t/full")).unwrap();
        let others = ["a/1", "a/2", "a/3", "b/4"];
        others.iter().for_each(|path| fs::write(folder.join(path), path).unwrap());
        let ran = folder.flatout(words.split(' ').chain(["a/.", "b/.", "t"])).run();
        assert!(ran.exits(1).stderr.contains("/full"), "{ran}");
        for path in others {
            let copied = fs::read_to_string(folder.join("t").join(&path[2..])).unwrap_or_default();
            assert_eq!(copied, path, "{words}{ran}");
        }
    }
}
