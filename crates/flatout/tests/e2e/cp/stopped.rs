//! A copy by the rules of cp that is stopped, or finds no room: what is left, and what goes on.

use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::process::Stdio;

use rustix::process::Signal;

use crate::bin::Folder;

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
