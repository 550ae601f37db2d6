//! The supervisor sees a call before it happens.

use std::process::Command;
use std::time::Duration;

use super::supervisor::supervise;

const PATIENCE: Duration = Duration::from_secs(100);

#[test]
fn a_call_is_held_until_it_may_happen() {
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("made");
    let mut command = Command::new("mkdir");
    command.arg(&made);
    let calls = [
        libc::SYS_mkdirat,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_mkdir,
    ];
    let expected = supervise(&mut command, &calls).unwrap();
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            println!("skipped: no listener is to be had here: {error}");
            return;
        }
    };
    let listener = expected.attach(&child).unwrap();
    let stop = listener.next(PATIENCE).unwrap().expect("mkdir makes a directory");
    assert!(calls.contains(&stop.number), "{stop:?}");
    assert!(!made.exists());
    listener.go_on(stop).unwrap();
    // Its end is heard of before it is waited for.
    assert_eq!(listener.next(PATIENCE).unwrap(), None);
    assert!(child.wait().unwrap().success());
    assert!(made.is_dir());
}

#[test]
fn one_who_is_killed_while_held_does_not_do_it() {
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("made");
    let mut command = Command::new("mkdir");
    command.arg(&made);
    let calls = [
        libc::SYS_mkdirat,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_mkdir,
    ];
    let expected = supervise(&mut command, &calls).unwrap();
    let Ok(mut child) = command.spawn() else { return };
    let listener = expected.attach(&child).unwrap();
    let stop = listener.next(PATIENCE).unwrap().expect("mkdir makes a directory");
    child.kill().unwrap();
    child.wait().unwrap();
    listener.go_on(stop).unwrap();
    assert!(!made.exists());
}
