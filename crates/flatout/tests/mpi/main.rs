//! Copies shared by processes that a real launcher starts: `mpirun` of the MPI library that this was
//! built with (`FLATOUT_TEST_MPIRUN` names another one), two and four processes on one machine. How
//! they share is tested without MPI, too, in `flatout_tree::copy`.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bench;
mod faults;
mod hosts;
mod random;
mod shares;
mod slurm;

use std::cell::RefCell;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The program, by another name where tests of the usual one run at the same time.
const FLATOUT: &str = match option_env!("FLATOUT_TEST_PROGRAM") {
    Some(program) => program,
    None => env!("CARGO_BIN_EXE_flatout"),
};
/// A job that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(600);

thread_local! {
    /// What this test's jobs have for a temporary folder; it goes when the test ends.
    static SESSIONS: RefCell<Vec<TempDir>> = const { RefCell::new(Vec::new()) };
}

/// A temporary folder for one job. Jobs that share one fail now and then: Open MPI makes and removes
/// a folder of one name for the host in it, and takes it for an error that another job was faster.
fn session() -> PathBuf {
    let made = tempfile::tempdir().unwrap();
    let path = made.path().to_owned();
    SESSIONS.with_borrow_mut(|sessions| sessions.push(made));
    path
}

/// A command line of mpirun, as often as root may need to be allowed.
fn mpirun(processes: u32, place: &Path, words: &[&str]) -> Command {
    let program = std::env::var_os("FLATOUT_TEST_MPIRUN");
    let mut command = Command::new(program.unwrap_or_else(|| "mpirun".into()));
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
    // Open MPI looks for ssh even where all processes run here, and there may be none.
    command.env("OMPI_MCA_plm_rsh_agent", "sh");
    command
        .env("TMPDIR", session())
        .env("FLATOUT_RESUME", "")
        .env("FLATOUT_PROFILE", "")
        .current_dir(place)
        .stdin(Stdio::null());
    command.args(["-n", &processes.to_string()]).args(words);
    command
}

/// Whether everything is to be tried, and not a sample.
fn is_full() -> bool {
    std::env::var_os("FLATOUT_TEST_FULL").is_some_and(|full| !full.is_empty())
}

/// Says that a test does nothing here.
fn skip(name: &str, reason: &str) {
    let Some(log) = std::env::var_os("FLATOUT_SKIP_LOG") else { return };
    let mut log = fs::OpenOptions::new().append(true).create(true).open(log).unwrap();
    writeln!(log, "{name}: {reason}").unwrap();
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Waits for a job; one that hangs is a failure. What it says goes to files, which never fill up.
fn run(command: &mut Command) -> Output {
    let [out, err] = [(); 2].map(|()| tempfile::NamedTempFile::new().unwrap());
    let [stdout, stderr] = [&out, &err].map(|file| file.reopen().unwrap());
    let mut child = command.stdout(stdout).stderr(stderr).spawn().unwrap();
    let status = wait(&mut child);
    let [stdout, stderr] = [out, err].map(|file| fs::read(file.path()).unwrap());
    Output { status, stdout, stderr }
}

fn wait(child: &mut Child) -> ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if begun.elapsed() > LIMIT {
            child.kill().unwrap();
            panic!("it hangs");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Files in many directories, some with several names, and what else there is.
fn plant(root: &Path, directories: u32) {
    for number in 0..directories {
        let directory = root.join(format!("{}/{number}", number % 9));
        fs::create_dir_all(&directory).unwrap();
        for file in 0..30 {
            fs::write(directory.join(format!("{file}")), vec![file as u8; file * 50]).unwrap();
        }
        fs::hard_link(root.join("0/0/7"), directory.join("seven")).unwrap();
        symlink("../nowhere", directory.join("link")).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o750)).unwrap();
    }
    fs::write(root.join("large"), vec![5; 20 << 20]).unwrap();
}

/// What `find` says of a tree: kinds, modes, owners, times, sizes, numbers of names. The size of a
/// directory is the filesystem's affair.
fn listing(root: &Path) -> Vec<String> {
    let files = "%y %m %U %G %T@ %P -> %l, %s bytes, %n names\\n";
    let directories = "%y %m %U %G %T@ %P\\n";
    let words = ["-type", "d", "-printf", directories, "-o", "-printf", files];
    let found = Command::new("find").arg(root).args(words).output().unwrap().stdout;
    let mut lines: Vec<_> = String::from_utf8(found).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[track_caller]
fn assert_same(source: &Path, target: &Path) {
    let [here, there] = [listing(source), listing(target)];
    let differs = here.iter().zip(&there).find(|(here, there)| here != there);
    assert!(
        here.len() == there.len() && differs.is_none(),
        "{} {} {differs:?}",
        here.len(),
        there.len()
    );
    let mut differences = Command::new("diff");
    let output =
        differences.args(["-r", "--no-dereference"]).args([source, target]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn two_and_four_processes_make_one_copy() {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("source");
    plant(&source, 60);
    for processes in [2, 4] {
        let target = place.path().join(format!("by {processes}"));
        let words = [FLATOUT, "copy", "-v", "source", target.to_str().unwrap()];
        let output = run(&mut mpirun(processes, place.path(), &words));
        assert!(output.status.success(), "{output:?}");
        assert_same(&source, &target);
        assert_eq!(fs::metadata(target.join("0/0/7")).unwrap().nlink(), 61);
        let lines = String::from_utf8_lossy(&output.stdout);
        let made = |name: &str| lines.lines().filter(|line| line.contains(name)).count();
        assert_eq!(made("source/large' -> "), 1, "each is told once: {lines}");
        assert_eq!(said(&output).matches("files").count(), 1, "one closing line: {output:?}");
    }
}

#[test]
fn what_cannot_be_copied_makes_the_job_fail() {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("source");
    plant(&source, 20);
    let target = place.path().join("target");
    fs::create_dir_all(target.join("3/12/5")).unwrap();
    let words = [FLATOUT, "copy", "source/.", "target"];
    let output = run(&mut mpirun(4, place.path(), &words));
    assert_eq!(output.status.code(), Some(1));
    let complaint = said(&output);
    assert_eq!(complaint.matches("cannot overwrite").count(), 1, "{complaint}");
    let absent = run(&mut mpirun(2, place.path(), &[FLATOUT, "copy", "absent", "other"]));
    assert_eq!(absent.status.code(), Some(1));
    assert_eq!(said(&absent).matches("No such file").count(), 1, "{absent:?}");
}

#[test]
fn a_process_that_sees_another_tree_is_named() {
    let place = tempfile::tempdir().unwrap();
    let script = format!(
        "mkdir -p $OMPI_COMM_WORLD_RANK$PMI_RANK/s && cd $OMPI_COMM_WORLD_RANK$PMI_RANK && exec '{FLATOUT}' copy s t"
    );
    let output = run(&mut mpirun(2, place.path(), &["sh", "-c", &script]));
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("does not find \"s\" as this one does"), "{output:?}");
    assert!(!place.path().join("0/t").exists() && !place.path().join("1/t").exists());
}

#[test]
fn other_commands_refuse_once_or_run_each_by_itself() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("f"), "x").unwrap();
    let output = run(&mut mpirun(3, place.path(), &[FLATOUT, "sum", "f"]));
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(said(&output).matches("started this 3 times").count(), 1, "{output:?}");
    let output = run(&mut mpirun(3, place.path(), &[FLATOUT, "--single", "sum", "f"]));
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 3);
}

/// Begins a copy by four processes, and waits until some of it is there.
fn begin(place: &Path, target: &Path) -> Child {
    let mut command = mpirun(4, place, &[FLATOUT, "copy", "source", target.to_str().unwrap()]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while !target.join("0").exists() && begun.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_millis(1));
    }
    child
}

/// Processes of a job: those whose command line names the target, but for mpirun.
fn processes(target: &Path) -> Vec<u32> {
    let wanted = target.as_os_str().as_encoded_bytes();
    let is_one = |pid: &u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = words.split(|&byte| byte == 0);
        words.next() == Some(FLATOUT.as_bytes()) && words.any(|word| word == wanted)
    };
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_one).collect()
}

fn signal(pid: u32, name: &str) {
    // It may be gone.
    let _ = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
}

#[test]
fn nothing_hangs_when_one_is_killed_or_all_are_stopped_and_a_rerun_finishes() {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("source");
    plant(&source, 150);
    for name in ["KILL", "INT"] {
        let target = place.path().join(name);
        let mut child = begin(place.path(), &target);
        match name {
            "KILL" => processes(&target).last().into_iter().for_each(|&pid| signal(pid, name)),
            _ => signal(child.id(), name),
        }
        // It may have been done already.
        wait(&mut child);
        let ended = Instant::now();
        while !processes(&target).is_empty() {
            assert!(ended.elapsed() < LIMIT, "all go");
            std::thread::sleep(Duration::from_millis(10));
        }
        let words = [FLATOUT, "copy", "source/.", target.to_str().unwrap()];
        fs::create_dir_all(&target).unwrap();
        let output = run(&mut mpirun(4, place.path(), &words));
        assert!(output.status.success(), "{output:?}");
        assert_same(&source, &target);
    }
}
