//! Which CPUs this process may use, and tying a thread to one of them.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs that the calling thread may run on, ascending; never empty on a sane kernel.
///
/// # Errors
/// The error of `sched_getaffinity`.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Number of CPUs that the calling thread may run on; 1 when the kernel does not say.
///
/// This is what more threads are held against to be called oversubscribed. A CPU quota of the
/// control group takes away time, not CPUs; it stands in the environment of the record.
pub fn allowed_cpu_count() -> u32 {
    allowed_cpus().map_or(1, |cpus| cpus.len().max(1) as u32)
}

/// Ties the calling thread to one CPU, for good.
///
/// # Errors
/// The error of `sched_setaffinity`, `EINVAL` for a CPU that is not allowed or cannot be.
pub fn pin_to(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_may_run_on_one_cpu_only() {
        let cpu = *allowed_cpus().unwrap().last().unwrap();
        let pinned = move || pin_to(cpu).map(|()| (allowed_cpus(), allowed_cpu_count()));
        let (cpus, count) = std::thread::spawn(pinned).join().unwrap().unwrap();
        assert_eq!((cpus.unwrap(), count), (vec![cpu], 1));
    }

    #[test]
    fn a_cpu_that_cannot_be_is_refused() {
        for cpu in [CpuSet::MAX_CPU, usize::MAX] {
            assert_eq!(pin_to(cpu).unwrap_err().raw_os_error(), Some(libc::EINVAL));
        }
    }
}
