//! Programs that end well, badly, late and not at all.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use super::*;

fn words(argv: &[&str]) -> Vec<OsString> {
    argv.iter().map(OsString::from).collect()
}

fn run_within(argv: &[&str], limits: &Limits) -> io::Result<Account> {
    let argv = words(argv);
    let program = Program { argv: &argv, stdout_bytes: 1 << 20 };
    run(&program, limits)
}

fn ran(argv: &[&str]) -> Account {
    let limits = Limits { time_ns: None, cancel: CancelToken::manual() };
    run_within(argv, &limits).unwrap()
}

#[test]
fn exit_codes_signals_and_output_are_told() {
    let account = ran(&["sh", "-c", "echo one; echo two >&2; exit 7"]);
    assert_eq!((account.exit_code, account.end), (7, End::Itself));
    assert_eq!((&account.stdout[..], &account.stderr[..]), (&b"one\n"[..], &b"two\n"[..]));
    assert!(account.elapsed_ns > 0);
    assert_eq!(ran(&["sh", "-c", "kill -9 $$"]).exit_code, 128 + 9);
    assert_eq!(ran(&["sh", "-c", "kill -15 $$"]).exit_code, 128 + 15);
}

#[test]
fn a_program_that_is_not_there_cannot_be_started() {
    let limits = Limits { time_ns: None, cancel: CancelToken::manual() };
    let error = run_within(&["/no/such/program"], &limits).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert!(run_within(&[], &limits).is_err());
}

#[test]
fn memory_is_the_programs_own_however_large_we_are() {
    let large = vec![1_u8; 300 << 20];
    let account = ran(&["true"]);
    assert!(large.iter().step_by(4096).all(|&byte| byte == 1));
    if account.peak_memory_of == MemoryOf::Itself {
        assert!(account.peak_memory_bytes < 20 << 20, "{account:?}");
        assert!(account.peak_memory_bytes > 64 << 10, "{account:?}");
    } else {
        // Where ptrace is denied the figure is too large, and says so.
        assert_eq!(account.peak_memory_of, MemoryOf::MayBeInherited, "{account:?}");
    }
}

#[test]
fn a_child_that_is_larger_than_we_are_is_seen() {
    let text = "head -c 400000000 /dev/zero | tail -c 399999999 | wc -c";
    let account = ran(&["sh", "-c", text]);
    assert_eq!(account.stdout, b"399999999\n");
    if account.peak_memory_of == MemoryOf::LargestProcess {
        assert!(account.peak_memory_bytes > 390_000_000, "{account:?}");
    }
}

#[test]
fn output_beyond_the_limit_is_drained_and_the_end_of_the_complaints_is_kept() {
    let text = "head -c 5000000 /dev/zero; i=0; while [ $i -lt 20000 ]; do echo line $i; \
                i=$((i+1)); done >&2";
    let account = ran(&["sh", "-c", text]);
    assert_eq!((account.exit_code, account.stdout.len()), (0, 1 << 20));
    assert!(account.stderr.len() <= STDERR_BYTES);
    assert!(account.stderr.ends_with(b"line 19999\n"));
}

#[test]
fn it_reads_nothing() {
    assert_eq!(ran(&["sh", "-c", "cat | wc -c"]).stdout, b"0\n");
}

/// Runs a program that does not end by itself for as long as it needs to come so far: beside others it may
/// not even have begun when a short time is over.
fn ended(argv: &[&str], has_come_so_far: impl Fn(&Account) -> bool) -> Account {
    let times_ns = [200_000_000, 2_000_000_000, 20_000_000_000];
    let run = |time_ns| {
        let limits = Limits { time_ns: Some(time_ns), cancel: CancelToken::manual() };
        run_within(argv, &limits).unwrap()
    };
    times_ns.into_iter().map(run).find(has_come_so_far).unwrap()
}

#[test]
fn a_program_whose_time_is_over_is_ended_with_its_children() {
    let script = "sleep 1000 & echo $!; wait";
    let account = ended(&["sh", "-c", script], |account| !account.stdout.is_empty());
    assert_eq!((account.end, account.exit_code), (End::TimeOver, 128 + 15));
    let child = String::from_utf8(account.stdout).unwrap();
    assert!(is_gone(child.trim()), "{child}");
}

#[test]
fn a_program_that_writes_without_end_is_ended_in_time() {
    let account = ended(&["yes"], |account| account.stdout.len() == 1 << 20);
    assert_eq!((account.end, account.exit_code), (End::TimeOver, 128 + 15));
    let script = "trap '' TERM; exec yes >&2";
    let is_full = |account: &Account| account.stderr.len() == STDERR_BYTES;
    let account = ended(&["sh", "-c", script], is_full);
    assert_eq!((account.end, account.exit_code), (End::TimeOver, 128 + 9));
}

/// Whether a process is dead, if perhaps not reaped yet by whoever adopted it.
fn is_gone(process: &str) -> bool {
    let dead = || match std::fs::read_to_string(format!("/proc/{process}/stat")) {
        Err(_) => true,
        Ok(stat) => stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(['Z', 'X'])),
    };
    let deadline = Instant::now() + Duration::from_secs(100);
    while !dead() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(2));
    }
    dead()
}

#[test]
fn a_program_that_ignores_the_polite_signal_is_killed() {
    let cancel = CancelToken::manual();
    let limits = Limits { time_ns: None, cancel };
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let text = format!("trap '' TERM; : > {}; while :; do sleep 0.05; done", mark.display());
    let runner = std::thread::spawn(move || run_within(&["sh", "-c", &text], &limits));
    while !mark.exists() {
        assert!(!runner.is_finished(), "it does nothing");
        std::thread::sleep(Duration::from_millis(2));
    }
    cancel.cancel();
    let account = runner.join().unwrap().unwrap();
    assert_eq!((account.end, account.exit_code), (End::Cancelled, 128 + 9));
}

#[test]
fn what_a_program_leaves_running_ends_with_it() {
    let account = ran(&["sh", "-c", "sleep 1000 & echo $!"]);
    assert_eq!((account.exit_code, account.end), (0, End::Itself));
    let child = String::from_utf8(account.stdout).unwrap();
    assert!(is_gone(child.trim()), "{child}");
}

#[test]
fn a_program_that_stops_itself_is_let_go_on() {
    let account = ran(&["sh", "-c", "kill -STOP $$; echo on"]);
    assert_eq!((account.exit_code, &account.stdout[..]), (0, &b"on\n"[..]));
}

#[test]
fn cpu_time_of_waited_children_counts() {
    let account = ran(&["sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done & wait"]);
    assert!(account.user_ns > 0, "{account:?}");
}
