//! Which CPUs this process may use, and tying a thread to one of them.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs that the calling thread may run on, ascending; never empty on a sane kernel.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Number of CPUs that the calling thread may run on; 1 when the kernel does not say.
pub fn allowed_cpu_count() -> u32 {
    allowed_cpus().map_or(1, |cpus| cpus.len().max(1) as u32)
}

/// Ties the calling thread to one CPU.
pub fn pin_to(cpu: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set)?;
    Ok(())
}
