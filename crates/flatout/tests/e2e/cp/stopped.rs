//! A copy by the rules of cp that is stopped, or finds no room: what is left, and what goes on.

use std::fs;
use std::io::Read;
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
