//! What goes wrong in one process ends all of them, with one message, and a rerun finishes.

use super::*;

#[test]
fn programs_that_differ_refuse_once() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("s")).unwrap();
    let other = place.path().join("other");
    fs::copy(FLATOUT, &other).unwrap();
    fs::OpenOptions::new().append(true).open(&other).unwrap().write_all(b"newer").unwrap();
    let other = other.to_str().unwrap();
    let words = [FLATOUT, "copy", "s", "t", ":", "-n", "2", other, "copy", "s", "t"];
    let output = run(&mut mpirun(1, place.path(), &words));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(said(&output).matches("different versions").count(), 1, "{output:?}");
    assert!(!place.path().join("t").exists());
}

#[test]
fn a_host_that_does_not_see_the_target_is_named() {
    if !is_root() {
        return skip("a_host_that_does_not_see_the_target_is_named", "needs root for a mount");
    }
    let place = tempfile::tempdir().unwrap();
    fs::create_dir_all(place.path().join("s/d")).unwrap();
    fs::create_dir(place.path().join("there")).unwrap();
    let copy = format!("exec '{FLATOUT}' copy s there/t");
    let elsewhere = format!("mount -t tmpfs none there && {copy}");
    let words =
        [FLATOUT, "copy", "s", "there/t", ":", "-n", "1", "unshare", "-m", "sh", "-c", &elsewhere];
    let output = run(&mut mpirun(2, place.path(), &words));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let message = "process 2 on ";
    assert_eq!(said(&output).matches(message).count(), 1, "{output:?}");
    assert!(said(&output).contains("does not find \"there\" as this one does"), "{output:?}");
    assert!(!place.path().join("there/t").exists());
}

#[test]
fn a_process_without_room_ends_the_copy_and_a_rerun_finishes() {
    let name = "a_process_without_room_ends_the_copy_and_a_rerun_finishes";
    if Command::new("strace").arg("--version").stdout(Stdio::null()).status().is_err() {
        return skip(name, "strace is not installed");
    }
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("source");
    plant(&source, 60);
    fs::create_dir(place.path().join("target")).unwrap();
    // One of them has no room from its first write on.
    let inject = "inject=pwrite64:error=ENOSPC";
    let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=pwrite64", "-e", inject];
    let copy = [FLATOUT, "copy", "source/.", "target/."];
    let others = [&copy[..], &[":", "-n", "1"], &strace, &copy].concat();
    let output = run(&mut mpirun(1, place.path(), &others));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(said(&output).matches("there is no room left").count(), 1, "{output:?}");
    let output = run(&mut mpirun(3, place.path(), &copy));
    assert!(output.status.success(), "{output:?}");
    assert_same(&source, &place.path().join("target"));
}

#[test]
fn a_process_that_does_not_answer_ends_the_copy() {
    // It is waited for longer than anything else here.
    if !is_full() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("source");
    plant(&source, 300);
    let target = place.path().join("silent");
    let mut child = begin(place.path(), &target);
    let stopped = processes(&target).last().copied().unwrap();
    signal(stopped, "STOP");
    let status = wait(&mut child);
    signal(stopped, "KILL");
    // It may have been done already.
    assert!(status.success() || processes(&target).is_empty());
}

#[test]
fn a_process_that_does_not_answer_ends_a_measurement() {
    // It is waited for four minutes.
    if !is_full() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let measured = place.path().join("measured");
    fs::create_dir(&measured).unwrap();
    let words = [FLATOUT, "bench", "disk", measured.to_str().unwrap(), "--quick"];
    let mut command = mpirun(3, place.path(), &words);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while fs::read_dir(&measured).unwrap().count() == 0 && begun.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_millis(1));
    }
    let stopped = processes(&measured).last().copied().unwrap();
    signal(stopped, "STOP");
    let status = wait(&mut child);
    signal(stopped, "KILL");
    assert!(!status.success());
    assert_eq!(fs::read_dir(&measured).unwrap().count(), 0);
}
