//! What happens to a run from outside: Ctrl-C, a file that shrinks under it, a call that makes it
//! panic.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::process::Command;
use std::time::Duration;

use flatout_sys::launcher::{EIO, FDATASYNC, GETRANDOM, deny};
use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_getfl, fcntl_setfl, mknodat};
use rustix::process::Signal;

use crate::bin::{Folder, Ran, executable};
use crate::faulty::{Faults, Faulty};
use crate::filesystem::needs_program;
use crate::fixture::{endless_file, random_file};
use crate::skip::needs;

/// Enough to be in the middle, little enough to be there at once.
const BEGUN_BYTES: u64 = 16 << 20;

/// The command of a program that signals reach: a shell that started the tests in the background
/// ignores interrupts, nohup(1) ignores hangups, and children inherit that.
pub fn interruptible(program: &OsStr) -> Command {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let signals = [Signal::HUP, Signal::INT, Signal::TERM];
    if signals.iter().all(|signal| ignored & (1 << (signal.as_raw() - 1)) == 0) {
        return Command::new(program);
    }
    // Some tests have another PATH.
    let mut command = Command::new("/usr/bin/env");
    command.arg("--default-signal=HUP,INT,TERM").arg(program);
    command
}

#[track_caller]
fn is_interrupted(ran: &Ran) {
    let document = ran.died_of(Signal::INT).document();
    assert!(!ran.stderr.contains("panicked"), "{ran}");
    for result in document["results"].as_array().unwrap() {
        assert_eq!(result["status"], "interrupted", "{ran}");
    }
}

/// The standard library panics where the kernel has no randomness for a hash table.
#[test]
fn a_fault_of_the_program_ends_it_at_once_with_one_line() {
    let folder = Folder::new();
    fs::write(folder.join("a"), "content").unwrap();
    for arguments in ["copy a b", "cp a b", "bench syscall --quiet --format json"] {
        let run = folder.flatout(arguments.split(' ')).with(|command| {
            deny(command.env_remove("RUST_BACKTRACE"), &[(GETRANDOM, EIO)]);
        });
        let ran = run.run();
        ran.complains(101, &["a fault of this program", "random data", ".rs:"]);
        assert_eq!(ran.stdout, "", "{ran}");
    }
}

#[test]
fn an_interrupted_read_ends_with_a_document() {
    let folder = Folder::new();
    endless_file(&folder.join("endless"));
    for threads in ["1", "3"] {
        let arguments = "read endless --engine sync --format json --threads";
        let mut running = folder.flatout(arguments.split(' ').chain([threads])).start();
        running.wait_until_read(BEGUN_BYTES);
        running.interrupt();
        is_interrupted(&running.wait());
    }
}

#[test]
fn an_interrupted_read_ends_whatever_the_engine() {
    let folder = Folder::new();
    endless_file(&folder.join("endless"));
    for engine in ["mmap", "uring"] {
        let arguments = "read endless --format json --engine";
        let mut running = folder.flatout(arguments.split(' ').chain([engine])).start();
        // These engines do not count what they read, but from here on SIGINT has a handler.
        running.wait_until("status", catches_interrupt);
        running.interrupt();
        is_interrupted(&running.wait());
    }
}

/// The process dies of the signal, and its record is to say the same.
#[test]
fn a_write_that_is_interrupted_while_it_syncs_says_so_and_stays() {
    let folder = Folder::new();
    let delay = Duration::from_secs(1);
    let faulty = needs!(Faulty::new(Faults { delay, ..Faults::default() }));
    let words = "write --block-size 4096 --block-count 1 --format json".split(' ');
    let path = faulty.path().join("new");
    let mut running = folder.flatout(words.map(Into::into).chain([path.into_os_string()])).start();
    let call = format!("{FDATASYNC} ");
    running.wait_until("syscall", |text| text.starts_with(&call));
    running.interrupt();
    let document = running.wait().died_of(Signal::INT).document();
    assert_eq!(document["end"]["exit_code"], 130, "{document:#}");
    assert_eq!(faulty.bytes("new").map(|bytes| bytes.len()), Some(4096));
    faulty.finish();
}

/// No scan of one block has anything left when it sees the wish to stop.
#[test]
fn an_interrupt_ends_passes_over_a_file_of_one_block() {
    let folder = Folder::new();
    random_file(&folder.join("block"), 64 << 10, 1);
    for options in ["--engine mmap", "--engine mmap --threads 2", "--cold --engine sync"] {
        let arguments = "read block --min-time 3600 --format json ";
        let words = arguments.split_terminator(' ').chain(options.split(' '));
        let mut running = folder.flatout(words).start();
        running.wait_until("status", catches_interrupt);
        running.interrupt();
        is_interrupted(&running.wait());
    }
}

/// Whether the process has a handler for signal 2 (bit 1 of the mask in proc_pid_status(5)).
pub fn catches_interrupt(status: &str) -> bool {
    mask(status, "SigCgt:") & 0b10 != 0
}

/// A signal mask of proc_pid_status(5).
fn mask(status: &str, name: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix(name));
    mask.map_or(0, |mask| u64::from_str_radix(mask.trim(), 16).unwrap())
}

#[test]
fn a_read_that_waits_for_a_pipe_can_be_interrupted() {
    let folder = Folder::new();
    let path = folder.join("fifo");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let mut running = folder.flatout(["read", "fifo", "--format", "json"]).start();
    running.wait_until("status", catches_interrupt);
    let writer = OpenOptions::new().write(true).open(&path).unwrap();
    running.interrupt();
    is_interrupted(&running.wait());
    drop(writer);
}

/// Two gibibytes, for which there must be room: nobody waits for the end.
const LONG_WRITE: &str = "write new --block-size 1MiB --block-count 2048 --format json";

/// Begins a write of `new` and interrupts it in the middle.
fn interrupted_write(folder: &Folder, options: &str) -> Ran {
    let arguments = LONG_WRITE.split(' ').chain(options.split(' '));
    let mut running = folder.flatout(arguments).start();
    running.wait_until("io", |text| {
        let count = text.lines().find_map(|line| line.strip_prefix("write_bytes: "));
        let called = text.lines().find_map(|line| line.strip_prefix("wchar: "));
        let largest = [count, called].into_iter().flatten().map(|n| n.parse::<u64>().unwrap());
        largest.max().is_some_and(|count| count >= BEGUN_BYTES)
    });
    running.interrupt();
    let ran = running.wait();
    is_interrupted(&ran);
    assert_eq!(ran.stderr.lines().count(), 1, "{ran}");
    ran
}

#[test]
fn an_interrupted_write_leaves_a_document_and_no_file() {
    let folder = Folder::new();
    for options in ["--engine sync", "--engine uring", "--engine sync --threads 3"] {
        let ran = interrupted_write(&folder, options);
        let written = ran.result()["audit"]["bytes"].as_u64().unwrap();
        assert!(written > 0 && written < 2048 << 20, "{ran}");
        let says = ran.stderr.contains("interrupted after ") && ran.stderr.contains(" of 2 GiB; ");
        assert!(says, "{ran}");
        assert!(folder.names().is_empty(), "{ran}");
    }
}

#[test]
fn an_interrupted_overwrite_keeps_the_file_and_says_how_far_it_came() {
    let folder = Folder::new();
    for options in ["--overwrite --engine sync", "--overwrite --engine uring"] {
        fs::write(folder.join("new"), "old").unwrap();
        let ran = interrupted_write(&folder, options);
        let written = ran.result()["audit"]["bytes"].as_u64().unwrap();
        let line = format!("{written} bytes of 2 GiB of \"new\" were overwritten");
        assert!(ran.stderr.contains(&line), "{ran}");
        let length = fs::metadata(folder.join("new")).unwrap().len();
        assert!(length >= written, "{length}: {ran}");
    }
}

#[test]
fn the_second_interrupt_ends_a_run_that_cannot_heed_the_first() {
    let folder = Folder::new();
    // Nobody reads the pipe and it is full: the run has to wait for ever with its results.
    let (_reader, mut pipe) = std::io::pipe().unwrap();
    let flags = fcntl_getfl(&pipe).unwrap();
    fcntl_setfl(&pipe, flags | OFlags::NONBLOCK).unwrap();
    while pipe.write(&[0; 4096]).is_ok() {}
    while pipe.write(&[0]).is_ok() {}
    fcntl_setfl(&pipe, flags).unwrap();
    let arguments = "write new --block-count 1 --format json".split(' ');
    let mut running = folder.flatout(arguments).leaves("new").stdout(pipe).start();
    running.wait_until("status", catches_interrupt);
    // Several at once are one wish; those that come more than a second later end the run.
    while running.step().is_none() {
        running.interrupt();
        std::thread::sleep(Duration::from_millis(50));
    }
    let ran = running.wait();
    assert_eq!((ran.code, ran.signal), (None, Some(2)), "{ran}");
}

#[test]
fn two_interrupts_at_once_do_not_cut_off_the_cleaning_up() {
    let folder = Folder::new();
    let arguments = "write new --block-size 4K --block-count 500000 --format json".split(' ');
    let mut running = folder.flatout(arguments).start();
    running.wait_until("status", catches_interrupt);
    running.interrupt();
    running.interrupt();
    let ran = running.wait();
    ran.died_of(Signal::INT).document();
}

#[test]
fn a_run_dies_of_the_very_signal_that_stopped_it() {
    let folder = Folder::new();
    let path = folder.join("fifo");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut running = folder.flatout(["sum", "fifo"]).start();
        running.wait_until("status", catches_interrupt);
        running.signal(signal);
        running.wait().died_of(signal).says(&["interrupted"]);
    }
}

#[test]
fn a_signal_ends_the_wait_for_the_other_end_of_a_pipe() {
    let folder = Folder::new();
    let path = folder.join("fifo");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    fs::write(folder.join("file"), "content").unwrap();
    for arguments in [
        "compare fifo file",
        "copy --files-from fifo . /nowhere",
        "copy --exclude-from fifo . /nowhere",
        "serve --port 0 --token-file fifo",
        "sum file --output fifo",
    ] {
        let mut running = folder.flatout(arguments.split(' ')).start();
        let place = format!("/proc/{}/wchan", running.child.id());
        running.wait_until("status", |status| {
            let place = fs::read_to_string(&place).unwrap_or_default();
            // Where the kernel does not tell the place, 0 is all that it says, as while one runs.
            let is_there = place.contains("partner") || place.contains("poll") || place == "0";
            is_there && status.contains("State:\tS")
        });
        running.signal(Signal::TERM);
        running.wait().died_of(Signal::TERM);
    }
}

#[test]
fn a_transfer_dies_of_the_signal_too() {
    let folder = Folder::new();
    // Holes, which it reads and writes as zeros: seconds of work.
    fs::File::create(folder.join("long")).unwrap().set_len(8 << 30).unwrap();
    let mut running = folder.flatout(["transfer", "long", "out"]).leaves("out").start();
    running.wait_until("status", catches_interrupt);
    running.interrupt();
    running.wait().died_of(Signal::INT);
}

#[test]
fn an_interrupt_ends_the_loop_of_a_shell() {
    needs!(needs_program("bash"));
    let folder = Folder::new();
    let path = folder.join("fifo");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    for command in ["read fifo", "sum fifo"] {
        let script = format!("for i in 1 2 3; do \"$0\" {command} >&2; echo went on; done");
        let words = ["-c".into(), script.into(), executable().into()].to_vec();
        let running = folder.program("bash".as_ref(), words).start();
        // It is opened when somebody reads, who has got a handler by then.
        let writer = OpenOptions::new().write(true).open(&path).unwrap();
        running.interrupt_group();
        let ran = running.wait();
        drop(writer);
        assert_eq!(ran.died_of(Signal::INT).stdout, "", "{ran}");
    }
}

#[test]
fn a_series_of_runs_dies_of_the_interrupt_too() {
    let folder = Folder::new();
    let words = ["compare", "--noise", "--area", "memory"];
    let noise = folder.join("noise.json");
    let flatout = folder.flatout(words).with(|command| {
        command.env("FLATOUT_NOISE", noise);
    });
    let mut running = flatout.start();
    running.wait_until("status", catches_interrupt);
    running.interrupt_group();
    let ran = running.wait();
    assert!(ran.died_of(Signal::INT).stderr.contains("nothing is learned"), "{ran}");
    assert!(!ran.stderr.contains("run 2"), "{ran}");
}

#[test]
fn an_interrupt_that_the_parent_ignored_stays_ignored() {
    let folder = Folder::new();
    let path = folder.join("fifo");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let script = "trap '' INT; exec \"$0\" read fifo --format json";
    let words = ["-c".into(), script.into(), executable().into()].to_vec();
    let mut running = folder.program("sh".as_ref(), words).start();
    // SIGTERM (bit 14) has got its handler, so SIGINT has been looked at.
    running.wait_until("status", |status| mask(status, "SigCgt:") & (1 << 14) != 0);
    running.wait_until("status", |status| mask(status, "SigIgn:") & 0b10 != 0);
    running.interrupt();
    fs::write(&path, "abcd").unwrap();
    let result = running.wait().exits(0).result();
    assert_eq!(result["audit"]["bytes"], 4);
}

#[test]
fn a_file_that_is_truncated_while_mapped_is_an_error_and_no_signal() {
    let folder = Folder::new();
    let path = folder.join("endless");
    for threads in ["1", "2"] {
        endless_file(&path);
        let arguments = "read endless --engine mmap --format json --threads";
        let mut running = folder.flatout(arguments.split(' ').chain([threads])).start();
        running.wait_until("maps", |text| text.contains("/endless"));
        OpenOptions::new().write(true).open(&path).unwrap().set_len(4096).unwrap();
        let ran = running.wait();
        ran.complains(1, &["endless"]);
        assert!(!ran.document()["end"]["errors"].as_array().unwrap().is_empty(), "{ran}");
        fs::remove_file(&path).unwrap();
    }
}
