//! Where a loop runs: a thread that shares no descriptor table, and a thread pinned to one CPU.
//!
//! In a process with several threads each call on a descriptor counts references and may take
//! the lock of the file position; a program with one thread pays neither. [`apart`] gives a loop
//! the conditions of the latter, whatever other threads the process has.

use std::io;
use std::thread;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Who can see the descriptors that a loop opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DescriptorTable {
    /// Only the thread itself.
    Own,
    /// All threads of the process: `unshare` was refused, as some containers do.
    Shared,
}

/// Runs `work` on a new thread with a descriptor table of its own, and waits for it.
///
/// Descriptors of the process are there too, as copies; files that `work` opens itself are seen
/// by nobody else. `work` must open what it wants to be alone with, and must let no descriptor
/// out: its number means nothing outside, nor may it close one that came from outside.
///
/// # Errors
/// The error of starting a thread.
///
/// # Panics
/// If `work` panics.
pub fn apart<R: Send>(work: impl FnOnce(DescriptorTable) -> R + Send) -> io::Result<R> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, || work(unshare_table()))?;
        match thread.join() {
            Ok(result) => Ok(result),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn unshare_table() -> DescriptorTable {
    // SAFETY: only the descriptor table of this thread, new and without descriptors of its own,
    // is separated; that none crosses the border afterwards is the contract of `apart`.
    match unsafe { libc::unshare(libc::CLONE_FILES) } {
        0 => DescriptorTable::Own,
        _ => DescriptorTable::Shared,
    }
}

/// Numbers of the CPUs on which this thread may run, ascending.
///
/// # Errors
/// The error of `sched_getaffinity`.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Binds the calling thread to one CPU, for good.
///
/// # Errors
/// The error of `sched_setaffinity`, `EINVAL` for a CPU that is not allowed.
pub fn pin(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_file_opened_apart_is_not_seen_by_the_process() {
        let number = apart(|table| {
            let file = File::open("/dev/zero").unwrap();
            let place = format!("/proc/self/fd/{}", file.as_raw_fd());
            let outside = std::fs::read_link(place).ok();
            (table, outside)
        })
        .unwrap();
        if number.0 == DescriptorTable::Own {
            assert_ne!(number.1.as_deref(), Some(std::path::Path::new("/dev/zero")));
        } else {
            eprintln!("skipped: unshare is refused here");
        }
    }

    #[test]
    fn a_pinned_thread_may_run_on_one_cpu_only() {
        let cpu = *allowed_cpus().unwrap().last().unwrap();
        let after = thread::spawn(move || pin(cpu).map(|()| allowed_cpus())).join().unwrap();
        assert_eq!(after.unwrap().unwrap(), [cpu]);
        assert!(pin(CpuSet::MAX_CPU).is_err());
    }
}
