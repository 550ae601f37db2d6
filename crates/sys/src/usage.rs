//! What this process has used so far: CPU time, memory, context switches, bytes moved.
//!
//! Totals since the process began; a trial is the difference of two readings. See getrusage(2)
//! and the `io` section of proc(5).

use std::path::Path;

use crate::attribute::{number_after, text, whole};
use crate::process_table::number;
use crate::steal::tick_ns;

/// Totals of this process, all its threads included, finished ones too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user mode.
    pub user_ns: u64,
    /// CPU time in the kernel on behalf of this process.
    pub system_ns: u64,
    /// Largest resident set so far.
    pub peak_memory_bytes: u64,
    /// Page faults served without I/O.
    pub minor_faults: u64,
    /// Bytes that storage was asked to fetch; 0 where the kernel does not account I/O.
    pub device_read_bytes: u64,
    /// Times that a thread gave the CPU away.
    pub voluntary_switches: u64,
    /// Times that the scheduler took the CPU away.
    pub involuntary_switches: u64,
}

impl Usage {
    /// CPU time in either mode.
    pub fn cpu_ns(&self) -> u64 {
        self.user_ns + self.system_ns
    }
}

/// Bytes of this process at storage as the kernel's I/O accounting sees them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessIo {
    /// Bytes that storage was asked to fetch.
    pub device_read_bytes: u64,
    /// Bytes that were made dirty or sent to storage.
    pub device_write_bytes: u64,
}

/// Reads the totals of this process with getrusage(2).
///
/// Cost: one system call. CPU times are exact to the scheduler's clock as a sum; the split into
/// user and system may be an estimate by ticks.
pub fn usage() -> Usage {
    of(libc::RUSAGE_SELF)
}

/// Reads the totals of all children that ended and were waited for, and of theirs.
///
/// Cost: one system call.
pub fn children() -> Usage {
    of(libc::RUSAGE_CHILDREN)
}

/// CPU time of this process and of its children that ended and were waited for: all of it, and that
/// in user mode.
///
/// Cost: two system calls.
pub fn cpu_ns_with_children() -> [u64; 2] {
    let (own, children) = (usage(), children());
    [own.cpu_ns() + children.cpu_ns(), own.user_ns + children.user_ns]
}

/// Reads the totals of the calling thread; the peak of memory is still that of the process.
///
/// Cost: one system call.
pub fn thread() -> Usage {
    of(libc::RUSAGE_THREAD)
}

fn of(whom: libc::c_int) -> Usage {
    let mut raw = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: getrusage(2) writes one `rusage` through the pointer, which is valid for that.
    if unsafe { libc::getrusage(whom, raw.as_mut_ptr()) } == 0 {
        // SAFETY: it was written; zeros are a valid `rusage`, too, as all its fields are integers.
        return unsafe { raw.assume_init() }.into();
    }
    // A filter denies it (`ENOSYS`, `EPERM`): what we use would count as what others do.
    listed(whom).unwrap_or_default()
}

/// The times and faults that `/proc` lists, in whole ticks; see proc_pid_stat(5).
fn listed(whom: libc::c_int) -> Option<Usage> {
    let whose = if whom == libc::RUSAGE_THREAD { "thread-self" } else { "self" };
    let text = text(Path::new("/proc"), &format!("{whose}/stat"))?;
    let numbers = if whom == libc::RUSAGE_CHILDREN { [11, 16, 17] } else { [10, 14, 15] };
    let [minor_faults, user_ticks, system_ticks] = numbers.map(|at| number(&text, at).unwrap_or(0));
    let [user_ns, system_ns] = [user_ticks, system_ticks].map(|ticks: u64| ticks * tick_ns());
    Some(Usage { user_ns, system_ns, minor_faults, ..Usage::default() })
}

impl From<libc::rusage> for Usage {
    fn from(raw: libc::rusage) -> Self {
        Self {
            user_ns: timeval_ns(raw.ru_utime),
            system_ns: timeval_ns(raw.ru_stime),
            peak_memory_bytes: count(raw.ru_maxrss).saturating_mul(1024),
            minor_faults: count(raw.ru_minflt),
            device_read_bytes: count(raw.ru_inblock).saturating_mul(512),
            voluntary_switches: count(raw.ru_nvcsw),
            involuntary_switches: count(raw.ru_nivcsw),
        }
    }
}

fn timeval_ns(time: libc::timeval) -> u64 {
    count(time.tv_sec).saturating_mul(1_000_000_000).saturating_add(count(time.tv_usec) * 1_000)
}

fn count(value: libc::c_long) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// Reads `/proc/self/io`; `None` where the kernel was built without I/O accounting or `/proc`
/// is not there.
pub fn process_io() -> Option<ProcessIo> {
    parse_process_io(&whole(Path::new("/proc/self/io"))?)
}

/// Reads the text of `/proc/self/io`; `None` when a line is missing.
pub fn parse_process_io(text: &str) -> Option<ProcessIo> {
    Some(ProcessIo {
        device_read_bytes: number_after(text, "read_bytes:")?,
        device_write_bytes: number_after(text, "write_bytes:")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_used_memory_and_time_never_shrinks() {
        let first = usage();
        let second = usage();
        assert!(first.peak_memory_bytes > 0);
        assert!(second.user_ns + second.system_ns >= first.user_ns + first.system_ns);
        // Together: how both are shared out is a guess from who was seen at each tick. In whole microseconds.
        let all_ns = |usage: Usage| usage.user_ns + usage.system_ns;
        assert!(all_ns(thread()) <= all_ns(usage()) + 2000, "a thread is a part of its process");
    }

    #[test]
    fn what_a_filter_keeps_getrusage_from_telling_is_listed() {
        let off_ns = 2 * tick_ns();
        for whom in [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN, libc::RUSAGE_THREAD] {
            let (before, listed, after) = (of(whom), listed(whom).unwrap(), of(whom));
            assert!(listed.cpu_ns() + off_ns >= before.cpu_ns(), "{listed:?} {before:?}");
            assert!(listed.cpu_ns() <= after.cpu_ns() + off_ns, "{listed:?} {after:?}");
            let faults = before.minor_faults..=after.minor_faults;
            assert!(faults.contains(&listed.minor_faults), "{listed:?} {faults:?}");
        }
    }

    #[test]
    fn process_io_is_read_line_by_line() {
        let text = "rchar: 323934931\nwchar: 323929600\nsyscr: 632687\nsyscw: 632675\n\
                    read_bytes: 4096\nwrite_bytes: 323932160\ncancelled_write_bytes: 8192\n";
        let io = parse_process_io(text).unwrap();
        assert_eq!(io.device_read_bytes, 4096);
        assert_eq!(io.device_write_bytes, 323_932_160);
    }

    #[test]
    fn a_cut_process_io_is_none() {
        assert_eq!(parse_process_io("rchar: 1\nwchar: 2\n"), None);
        assert_eq!(parse_process_io(""), None);
    }
}
