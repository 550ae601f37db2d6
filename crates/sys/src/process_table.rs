//! The processes that can be seen, with the CPU time of each: `/proc/PID/stat`, see proc_pid_stat(5).
//!
//! A container sees its own only. One that begins and ends between two readings is never seen.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use crate::attribute;

/// `PF_KTHREAD` of include/linux/sched.h: a thread of the kernel.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// A process as it was at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number, which another one may get later.
    pub pid: u32,
    /// That of the process that started it.
    pub parent: u32,
    /// When it began, in ticks since boot: tells two processes of one number apart.
    pub begun: u64,
    /// The name of its program, at most 15 bytes.
    pub name: String,
    /// Whether it is a thread of the kernel.
    pub is_kernel: bool,
    /// CPU time of all its threads, in ticks of [`crate::steal::tick_ns`].
    pub ticks: u64,
}

/// All processes below `root` (`/` for the real machine); those that end meanwhile are left out.
///
/// Cost: open, read and close per process; some 10 µs each.
pub fn processes(root: &Path) -> Vec<Process> {
    let Ok(entries) = fs::read_dir(root.join("proc")) else { return Vec::new() };
    let numbers = entries.flatten().filter(|entry| {
        entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit)
    });
    let stats = numbers.filter_map(|entry| attribute::bytes(&entry.path().join("stat")).ok());
    stats.filter_map(|text| parse_process(&String::from_utf8_lossy(&text))).collect()
}

/// Reads the text of `/proc/PID/stat`. The name may hold anything, parentheses included: it ends at
/// the last one.
fn parse_process(text: &str) -> Option<Process> {
    let (pid, name) = text.rsplit_once(')')?.0.split_once('(')?;
    let field = |at: usize| number(text, at);
    Some(Process {
        pid: pid.trim().parse().ok()?,
        parent: u32::try_from(field(4)?).ok()?,
        begun: field(22)?,
        name: name.to_owned(),
        is_kernel: field(9)? & KERNEL_THREAD != 0,
        ticks: field(14)?.saturating_add(field(15)?),
    })
}

/// A number that stands behind the name in such a text, by its place in proc_pid_stat(5).
pub(crate) fn number(text: &str, place: usize) -> Option<u64> {
    text.rsplit_once(')')?.1.split_ascii_whitespace().nth(place - 3)?.parse().ok()
}

/// What each process of `after` used since `before`, in ticks; those that began in between, with all
/// that they used.
pub fn since<'a>(before: &[Process], after: &'a [Process]) -> Vec<(&'a Process, u64)> {
    let known: HashMap<(u32, u64), u64> =
        before.iter().map(|process| ((process.pid, process.begun), process.ticks)).collect();
    let used = |process: &'a Process| {
        let earlier = known.get(&(process.pid, process.begun)).copied().unwrap_or(0);
        (process, process.ticks.saturating_sub(earlier))
    };
    after.iter().map(used).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_blanks_and_parentheses() {
        let text = "42 (a (b) c) S 7 42 42 0 -1 4194560 1 0 0 0 30 12 0 0 20 0 1 0 9001 0 0\n";
        let process = parse_process(text).unwrap();
        let name = "a (b) c".to_owned();
        let expected =
            Process { pid: 42, parent: 7, begun: 9001, name, is_kernel: false, ticks: 42 };
        assert_eq!(process, expected);
        let kernel = text.replace("4194560", "2129984");
        assert!(parse_process(&kernel).unwrap().is_kernel);
        assert_eq!(parse_process("42 (cut) S 7"), None);
        assert_eq!(parse_process(""), None);
    }

    #[test]
    fn a_reused_number_is_another_process() {
        let process = |begun, ticks| Process {
            pid: 5,
            parent: 1,
            begun,
            name: "p".to_owned(),
            is_kernel: false,
            ticks,
        };
        let used = |before: Process, after: Process| since(&[before], &[after])[0].1;
        assert_eq!(used(process(10, 100), process(10, 130)), 30);
        assert_eq!(used(process(10, 100), process(20, 7)), 7);
    }

    #[test]
    fn this_process_is_among_all() {
        let own = std::process::id();
        assert!(processes(Path::new("/")).iter().any(|process| process.pid == own));
    }
}
