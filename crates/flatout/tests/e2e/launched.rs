//! Started several times by a launcher, which says so in the environment.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::bin::executable;

#[test]
fn several_processes_do_not_each_do_all_of_the_work() {
    for (size, rank) in [
        ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
        ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
        ("PMI_SIZE", "PMI_RANK"),
    ] {
        let sum = |words: &[&str], processes: &str, which: &str| {
            let mut command = Command::new(executable());
            command.args(words).env(size, processes).env(rank, which).arg("/dev/null");
            let output = command.output().unwrap();
            let [stdout, stderr] =
                [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap());
            (output.status.code(), stdout, stderr)
        };
        let (code, stdout, stderr) = sum(&["sum"], "64", "0");
        assert_eq!((code, stdout.as_str()), (Some(2), ""));
        assert!(
            stderr.contains("started this 64 times") && stderr.contains("--single"),
            "{stderr}"
        );
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        for alone in [sum(&["sum"], "1", "0"), sum(&["--single", "sum"], "64", "7")] {
            assert_eq!((alone.0, alone.1.lines().count()), (Some(0), 1), "{alone:?}");
        }
    }
}

#[test]
fn the_first_one_speaks_before_another_ends_the_job() {
    // mpirun ends all processes as soon as one fails.
    let all = [&["sum", "/dev/null"][..], &["sum", "--no-such-option"]];
    let begun = Instant::now();
    let started = all.map(|words| {
        let mut command = Command::new(executable());
        command.args(words).env("PMI_SIZE", "64").env("PMI_RANK", "7");
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    });
    for (words, started) in all.into_iter().zip(started) {
        let output = started.wait_with_output().unwrap();
        assert!(begun.elapsed() > Duration::from_secs(2), "{words:?}: {:?}", begun.elapsed());
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert_eq!((output.stdout.len(), output.stderr.len()), (0, 0), "said once: {output:?}");
    }
    let mut help = Command::new(executable());
    help.arg("--help").env("PMI_SIZE", "64").env("PMI_RANK", "7");
    assert_eq!(help.output().unwrap().status.code(), Some(0));
}

#[test]
fn what_a_single_process_starts_is_not_one_of_several() {
    let words = "--single compare -n 1 --before-old true --before-new true -- read /proc/self/exe";
    let mut command = Command::new(executable());
    command.args(words.split(' ')).env("PMI_SIZE", "2").env("PMI_RANK", "1");
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(!stderr.contains("started this") && !output.stdout.is_empty(), "{stderr}");
}
