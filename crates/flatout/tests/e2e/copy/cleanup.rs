//! What is removed when a copy is given up: what it made itself, and nothing else.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::copier::under_test;
use super::race::held::{Call, Held};
use crate::bin::{Folder, Ran};
use crate::faulty::{Begin, Fault, Faults, Faulty};
use crate::filesystem::needs_program;
use crate::skip::needs;

const FOREIGN: &str = "finished by somebody else";

/// Whether the bytes of somebody else lie there under any name.
fn survives(place: &Path) -> bool {
    fs::read_dir(place)
        .unwrap()
        .any(|entry| fs::read(entry.unwrap().path()).unwrap() == FOREIGN.as_bytes())
}

/// How often a copy is begun that was complete before it heard of the interrupt, as happens on a
/// busy machine.
const ATTEMPTS: u32 = 20;

/// A copy into `t/f` that is interrupted, where somebody else moves a file to that name before the
/// call `index` after that. Says what came of it; none: it has ended before, each time.
fn interrupted(options: &[&str], index: usize) -> Result<Option<(Folder, Ran)>, String> {
    let attempts = if index == 0 { ATTEMPTS } else { 1 };
    for _ in 0..attempts {
        if let Some(came) = interrupted_once(options, index)? {
            return Ok(Some(came));
        }
    }
    Ok(None)
}

fn interrupted_once(options: &[&str], index: usize) -> Result<Option<(Folder, Ran)>, String> {
    let folder = Folder::new();
    fs::create_dir(folder.join("t")).unwrap();
    fs::write(folder.join("big"), vec![7; 3 << 20]).unwrap();
    fs::write(folder.join("foreign"), FOREIGN).unwrap();
    if options.contains(&"--in-place") {
        fs::write(folder.join("t/f"), "old").unwrap();
    }
    let words = [&["copy", "--engine=sync", "--threads=1"][..], options, &["-T", "big", "t/f"]];
    let more = [first_write()];
    let mut held = Held::start(folder.flatout(words.concat()), &more)?;
    let mut count = None;
    let mut has_struck = false;
    while let Some(stop) = held.next() {
        let is_write = stop.number == more[0];
        if count.is_none() && is_write {
            held.running().interrupt();
            count = Some(0);
        } else if let Some(count) = &mut count
            && Call::of(&stop).is_some()
        {
            if *count == index {
                fs::rename(folder.join("foreign"), folder.join("t/f")).unwrap();
                has_struck = true;
            }
            *count += 1;
        }
        held.go_on(stop);
    }
    let ran = held.finish();
    Ok(has_struck.then_some((folder, ran)))
}

/// The number of pwrite64, before which a copy has begun and is not complete.
fn first_write() -> i64 {
    flatout_sys::launcher::PWRITE
}

/// Whenever it comes: a file of somebody else is there in the end.
#[test]
fn what_somebody_else_finished_stays_when_a_copy_is_stopped() {
    needs!(under_test());
    for options in [&[][..], &["--atomic"]] {
        let mut struck = 0;
        while let Some((folder, ran)) = needs!(interrupted(options, struck)) {
            struck += 1;
            // One that was complete already takes its place, as at any other time.
            let is_complete = fs::metadata(folder.join("t/f")).is_ok_and(|f| f.len() == 3 << 20);
            let stays = is_complete || survives(&folder.join("t"));
            assert!(stays, "{options:?} before call {struck}{ran}");
            let names = Folder::names_in(&folder.join("t"));
            assert!(names.contains("f") || ran.stderr.contains("lies beside it"), "{names:?}{ran}");
            assert!(names.iter().all(|name| !name.starts_with(".flatout-copy-")), "{names:?}{ran}");
        }
        assert!(struck > 0, "{options:?}");
    }
}

/// Who stops a copy is told what the next run will do, and no more.
#[test]
fn who_stops_a_copy_is_told_what_is_true() {
    needs!(under_test());
    for (options, said, unsaid) in [
        (&["--checksum"][..], "to go on", "noted"),
        (&["--quick-check"], "to go on", "noted"),
        (&[], "copies everything anew", "noted"),
        (&["--resume=never"], "copies everything anew", "noted"),
        (&["--always"], "without --always", "noted"),
    ] {
        // Nothing is noted there: the tests set FLATOUT_RESUME to nothing.
        let stopped =
            || interrupted(options, 0).map(|came| came.filter(|came| came.1.code != Some(0)));
        let came = (0..ATTEMPTS).map(|_| stopped()).find(|came| !matches!(came, Ok(None)));
        let (_, ran) = needs!(came.unwrap()).unwrap();
        assert!(ran.stderr.contains(said) && !ran.stderr.contains(unsaid), "{options:?}{ran}");
    }
}

/// The case that was reported: another run of the program finishes the same target meanwhile.
#[test]
fn a_second_copy_to_the_same_name_outlives_the_first() {
    needs!(under_test());
    let folder = Folder::new();
    fs::create_dir(folder.join("t")).unwrap();
    fs::write(folder.join("big"), vec![7; 3 << 20]).unwrap();
    fs::write(folder.join("small"), FOREIGN).unwrap();
    let words = ["copy", "--engine=sync", "--threads=1", "big", "t/f"];
    let more = [first_write()];
    let mut held = needs!(Held::start(folder.flatout(words), &more));
    while let Some(stop) = held.next() {
        if stop.number == more[0] {
            folder.flatout(["copy", "small", "t/f"]).run().exits(0);
            held.running().signal(rustix::process::Signal::TERM);
            held.go_on(stop);
            break;
        }
        held.go_on(stop);
    }
    let ran = held.finish();
    assert_ne!(ran.code, Some(0), "{ran}");
    assert_eq!(fs::read(folder.join("t/f")).unwrap(), FOREIGN.as_bytes(), "{ran}");
    assert_eq!(Folder::names_in(&folder.join("t")).len(), 1, "{ran}");
}

/// Bytes may be lost that the kernel tells of only now: the file must not look finished.
#[test]
fn a_file_whose_close_failed_does_not_look_finished() {
    needs!(under_test());
    needs!(needs_program("strace"));
    let folder = Folder::new();
    fs::create_dir(folder.join("t")).unwrap();
    fs::write(folder.join("f"), "whole").unwrap();
    let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    fs::File::open(folder.join("f")).unwrap().set_modified(long_ago).unwrap();
    let path = folder.join("t/f");
    let filter = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", path.to_str().unwrap()];
    let strace = [&filter[..], &["-e", "inject=close:error=EIO"]].concat();
    folder
        .under(&strace, &["copy", "--threads=1", "f", "t/f"])
        .run()
        .complains(1, &["close", "t/f"]);
    let facts = fs::metadata(&path).unwrap();
    assert_eq!(facts.permissions().mode() & 0o777, 0o600);
    assert_ne!(facts.modified().unwrap(), long_ago);
    fs::write(&path, "lost!").unwrap();
    folder.flatout(["copy", "--quick-check", "f", "t/f"]).run().exits(0);
    assert_eq!(fs::read(&path).unwrap(), b"whole");
}

/// What several threads write is closed twice, and some filesystems tell of lost bytes the first time only.
#[test]
fn an_error_on_closing_a_file_that_threads_share_is_an_error() {
    needs!(under_test());
    needs!(needs_program("strace"));
    let folder = Folder::new();
    fs::create_dir(folder.join("t")).unwrap();
    fs::write(folder.join("f"), vec![7; 9 << 20]).unwrap();
    let path = folder.join("t/f");
    let filter = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", path.to_str().unwrap()];
    let strace = [&filter[..], &["-e", "inject=close:error=EIO:when=1"]].concat();
    let words = ["copy", "--threads=2", "--engine=sync", "f", "t/f"];
    folder.under(&strace, &words).run().complains(1, &["t/f", "Input/output error"]);
    assert!(!path.exists());
}

/// Bytes were lost: the old ones, moved aside for them, come back, and nothing else is wrong.
#[test]
fn a_backup_comes_back_where_closing_fails() {
    needs!(under_test());
    needs!(needs_program("strace"));
    let folder = Folder::new();
    fs::create_dir(folder.join("t")).unwrap();
    fs::write(folder.join("f"), "new").unwrap();
    fs::write(folder.join("t/f"), "old").unwrap();
    let path = folder.join("t/f");
    let filter = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", path.to_str().unwrap()];
    let strace = [&filter[..], &["-e", "inject=close:error=EIO:when=1"]].concat();
    for words in [&["copy", "-b", "f", "t/f"][..], &["cp", "-b", "f", "t/f"]] {
        let ran = folder.under(&strace, words).run();
        assert_eq!(ran.exits(1).complaints().len(), 1, "{ran}");
        assert_eq!(Folder::names_in(&folder.join("t")), ["f".to_owned()].into(), "{ran}");
        assert_eq!(fs::read(&path).unwrap(), b"old", "{ran}");
    }
}

/// What gets other bytes in its place, and those are not for everybody, is closed first.
#[test]
fn a_file_that_cannot_be_closed_to_others_is_not_written() {
    needs!(under_test());
    needs!(needs_program("strace"));
    let folder = Folder::new();
    fs::create_dir(folder.join("t")).unwrap();
    let mode = |name: &str, mode| {
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    fs::write(folder.join("f"), "secret").unwrap();
    mode("f", 0o600);
    for words in [&["--in-place"][..], &["--in-place", "--delta"]] {
        fs::write(folder.join("t/f"), "public").unwrap();
        mode("t/f", 0o644);
        let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "inject=fchmod:error=EIO"];
        let words = [&["copy"], words, &["f", "t/f"]].concat();
        folder.under(&strace, &words).run().complains(1, &["cannot close to others", "t/f"]);
        assert_eq!(fs::read(folder.join("t/f")).unwrap(), b"public");
    }
}

/// The same where the device fails.
#[test]
fn what_somebody_else_finished_stays_when_a_copy_fails() {
    needs!(under_test());
    let faulty = needs!(Faulty::new(Faults { is_uncached: true, ..Faults::default() }));
    let folder = Folder::new();
    fs::write(folder.join("big"), vec![7; 3 << 20]).unwrap();
    faulty.change(|faults| faults.write = Fault::broken(Begin::AtByte(1 << 20)));
    let target = faulty.path().join("f");
    let words = ["copy".as_ref(), "--engine=sync".as_ref(), "big".as_ref(), target.as_os_str()];
    let more = [first_write()];
    let mut held = needs!(Held::start(folder.flatout(words), &more));
    let mut has_struck = false;
    while let Some(stop) = held.next() {
        if stop.number == more[0] && !has_struck {
            fs::write(faulty.path().join("foreign"), FOREIGN).unwrap();
            fs::rename(faulty.path().join("foreign"), &target).unwrap();
            has_struck = true;
        }
        held.go_on(stop);
    }
    let ran = held.finish();
    assert!(has_struck, "{ran}");
    ran.exits(1);
    assert_eq!(faulty.bytes("f").unwrap(), FOREIGN.as_bytes(), "{ran}");
    faulty.finish();
}
