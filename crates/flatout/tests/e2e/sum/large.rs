//! A manifest of 400,000 lines, with the memory of a few.

use std::io::Write;
use std::time::{Duration, Instant};

use super::EMPTY;
use crate::bin::{Folder, executable};

const LINES: usize = 400_000;
/// Files that are there; all other lines name files that are not.
const EVERY: usize = 50;
/// Lines that are repeated until there are so many.
const PIECE: usize = 1000;
const MEMORY_KIB: u64 = 24 << 10;

#[test]
fn many_lines_are_checked_in_little_memory() {
    let folder = Folder::new();
    for index in 0..4 {
        std::fs::write(folder.join(&format!("file-{index}")), "").unwrap();
    }
    let mut child = std::process::Command::new(executable())
        .args(["sum", "--check", "--ignore-missing", "--strict", "--threads=4"])
        .current_dir(folder.path())
        .stdin(std::process::Stdio::piped())
        .stdout(std::fs::File::create(folder.join("report")).unwrap())
        .spawn()
        .unwrap();
    let line = |line: usize| {
        let name = if line.is_multiple_of(EVERY) { "file" } else { "missing" };
        format!("{EMPTY}  {name}-{}\n", line / EVERY % 4)
    };
    let piece: String = (0..PIECE).map(line).collect();
    let mut pipe = child.stdin.take().unwrap();
    for _ in 0..LINES / PIECE {
        pipe.write_all(piece.as_bytes()).unwrap();
    }
    // The pipe holds 64 KiB, so nearly all lines have been read, and the rest takes no more.
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    drop(pipe);
    let begun = Instant::now();
    let ended = loop {
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        if begun.elapsed() > crate::bin::LIMIT {
            let _ = child.kill();
            panic!("the run hangs");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    assert_eq!(ended.code(), Some(0));
    let report = std::fs::read_to_string(folder.join("report")).unwrap();
    assert_eq!(report.lines().count(), LINES / EVERY);
    assert!(report.lines().all(|line| line.starts_with("file-") && line.ends_with(": OK")));
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak_kib: u64 = peak.trim().trim_end_matches(" kB").trim().parse().unwrap();
    assert!(peak_kib <= MEMORY_KIB, "{peak_kib} KiB");
}
