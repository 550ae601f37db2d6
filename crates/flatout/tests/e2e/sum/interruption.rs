//! What happens to a run of `flatout sum` from outside: Ctrl-C, and files that are written to.

use std::cell::Cell;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;

use super::ABC;
use crate::bin::{Folder, Running, assert_warned};
use crate::filesystem::needs_program;
use crate::fixture::endless_file;
use crate::interruption::catches_interrupt;
use crate::schema;
use crate::skip::needs;

/// Enough to be in the middle, little enough to be there at once.
const BEGUN_TICKS: u64 = 10;

/// Waits until the process is reading the file `endless`: has it open, and has worked since. How
/// it reads does not matter; io_uring counts in no file of /proc.
fn wait_until_reading(running: &mut Running<'_>) {
    // Before that it may be a fork of this process, in which other tests have such a file open.
    running.wait_until("status", catches_interrupt);
    let begun = Cell::new(None);
    running.wait_until("stat", |stat| {
        let Some(process) = stat.split(' ').next().filter(|id| !id.is_empty()) else {
            return false;
        };
        let worked = ticks(stat);
        if begun.get().is_none() && has_open(process, "endless") {
            begun.set(Some(worked));
        }
        begun.get().is_some_and(|begun| worked >= begun + BEGUN_TICKS)
    });
}

/// CPU time of a process, in user mode and in the kernel, in clock ticks.
fn ticks(stat: &str) -> u64 {
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ').skip(11).take(2);
    fields.map(|field| field.parse::<u64>().unwrap_or(0)).sum()
}

fn has_open(process: &str, name: &str) -> bool {
    let Ok(descriptors) = std::fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    let target = |entry: std::fs::DirEntry| std::fs::read_link(entry.path()).ok();
    descriptors.flatten().filter_map(target).any(|path| path.ends_with(name))
}

fn folder_with_endless_file() -> Folder {
    let folder = Folder::new();
    std::fs::write(folder.join("abc"), "abc").unwrap();
    endless_file(&folder.join("endless"));
    folder
}

#[test]
fn an_interrupted_run_leaves_whole_lines() {
    let folder = folder_with_endless_file();
    for digest in ["blake3", "xxh3"] {
        let words = ["sum", "--digest", digest, "--tag", "abc", "endless", "abc"];
        let mut running = folder.flatout(words).start();
        wait_until_reading(&mut running);
        running.interrupt();
        let ran = running.wait();
        ran.died_of(Signal::INT).says(&["interrupted"]);
        assert_eq!(ran.stdout.lines().count(), 1, "{ran}");
        assert!(ran.stdout.ends_with('\n') && ran.stdout.contains("(abc) = "), "{ran}");
    }
}

#[test]
fn an_interrupted_run_replaces_no_file_by_half_a_manifest() {
    let folder = folder_with_endless_file();
    std::fs::write(folder.join("SUMS"), "old").unwrap();
    let mut running = folder.flatout(["sum", "abc", "endless", "--output", "SUMS"]).start();
    wait_until_reading(&mut running);
    running.interrupt();
    let ran = running.wait();
    ran.died_of(Signal::INT);
    assert!(ran.stderr.contains("\"SUMS\" was not written"), "{ran}");
    assert_eq!(std::fs::read_to_string(folder.join("SUMS")).unwrap(), "old");
}

#[test]
fn an_interrupted_run_leaves_a_document() {
    let folder = folder_with_endless_file();
    let mut running = folder.flatout(["sum", "abc", "endless", "--format", "json"]).start();
    wait_until_reading(&mut running);
    running.interrupt();
    let document = running.wait().died_of(Signal::INT).document();
    schema::assert_valid(&document);
    let results = document["results"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    assert_eq!(results[0]["audit"]["digest"], ABC);
    assert_eq!(results[1]["status"], "interrupted");
}

#[test]
fn waiting_for_a_manifest_or_for_data_can_be_interrupted() {
    let folder = Folder::new();
    for words in [vec!["sum", "-c"], vec!["sum"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        let mut running = folder.flatout(words).stdin(reader).start();
        running.wait_until("status", catches_interrupt);
        running.interrupt();
        running.wait().died_of(Signal::INT).says(&["interrupted"]);
        drop(writer);
    }
}

fn named_pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

/// What the process does, as a letter of proc_pid_stat(5).
fn state(stat: &str) -> Option<char> {
    stat.rsplit(") ").next().and_then(|rest| rest.chars().next())
}

fn wait_until_asleep(running: &mut Running<'_>) {
    running.wait_until("status", catches_interrupt);
    running.wait_until("stat", |stat| state(stat) == Some('S'));
}

#[test]
fn a_named_pipe_without_a_writer_can_be_interrupted() {
    let folder = Folder::new();
    named_pipe(&folder.join("pipe"));
    let mut running = folder.flatout(["sum", "-c", "pipe"]).start();
    wait_until_asleep(&mut running);
    running.interrupt();
    running.wait().died_of(Signal::INT).says(&["interrupted"]);
}

#[test]
fn a_stop_while_a_manifest_is_waited_for_is_no_wish_to_end() {
    let folder = Folder::new();
    std::fs::write(folder.join("abc"), "abc").unwrap();
    named_pipe(&folder.join("pipe"));
    let mut running = folder.flatout(["sum", "-c", "pipe"]).start();
    wait_until_asleep(&mut running);
    running.signal(Signal::STOP);
    running.wait_until("stat", |stat| state(stat) == Some('T'));
    running.signal(Signal::CONT);
    wait_until_asleep(&mut running);
    std::fs::write(folder.join("pipe"), format!("{ABC}  abc\n")).unwrap();
    assert_eq!(running.wait().exits(0).stdout, "abc: OK\n");
}

#[test]
fn a_file_that_changes_while_it_is_read_has_no_digest() {
    for format in ["manifest", "json"] {
        let folder = folder_with_endless_file();
        let words = ["sum", "endless", "abc", "--threads", "1", "--format", format];
        let mut running = folder.flatout(words).start();
        wait_until_reading(&mut running);
        let mut file = OpenOptions::new().write(true).open(folder.join("endless")).unwrap();
        file.write_all(b"changed").unwrap();
        file.set_len(8192).unwrap();
        let ran = running.wait();
        ran.complains(1, &["endless\" changed while it was read"]);
        if format == "json" {
            let document = ran.document();
            assert_warned(&document["results"][0], "changed");
            assert_eq!(document["results"][1]["audit"]["digest"], ABC);
        } else {
            assert_eq!(ran.stdout, format!("{ABC}  abc\n"));
        }
    }
}

/// No file ends before the length that this kernel itself tells of it.
#[test]
fn a_file_that_ends_before_its_length_has_no_digest() {
    needs!(needs_program("strace"));
    let folder = Folder::new();
    std::fs::write(folder.join("src"), [b'x'; 300_000]).unwrap();
    let wrapper = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", "src"];
    let wrapper = [&wrapper[..], &["-e", "inject=read:retval=0:when=2"]].concat();
    let ran = folder.under(&wrapper, &["sum", "src"]).run();
    let why = "it ended before the end that its length tells";
    assert!(ran.exits(1).stderr.contains(why) && ran.stdout.is_empty(), "{ran}");
}
