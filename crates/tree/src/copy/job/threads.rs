//! How many threads a copy has.

use flatout_io::Engine;
use flatout_io::transfer::Method;
use flatout_sys::memory;

use super::Copy;
use crate::copy::CopyOptions;
use crate::lock::lock;

/// Threads at most that are worth having where none is asked for: readers of cold small files,
/// which wait nearly all of the time.
const MOST_THREADS: u32 = 32;

/// Addresses for each thread where they are limited (`ulimit -v`, `-d`): its stack is 2 MiB, its buffers
/// are some more.
const THREAD_ADDRESSES_BYTES: u64 = 64 << 20;

impl Copy<'_> {
    /// How many descriptors a thread may have for files that it copies together.
    pub(in crate::copy) fn descriptors_each(&self) -> usize {
        let workers = lock(&self.workers);
        workers.spare / workers.hired.max(1) as usize
    }
}

/// Threads at most as long as the CPUs are what limits, and when it turns out that they wait.
pub(super) fn of(options: &CopyOptions, cpus: u32) -> (u32, u32) {
    within(planned(options, cpus), options, memory::address_space_left_bytes())
}

/// Those of which each has room where this process may map so many bytes more. Who asks for threads
/// gets them.
fn within((usual, most): (u32, u32), options: &CopyOptions, left_bytes: Option<u64>) -> (u32, u32) {
    let Some(left_bytes) = left_bytes.filter(|_| options.threads == 0) else {
        return (usual, most);
    };
    let fitting = u32::try_from(left_bytes / THREAD_ADDRESSES_BYTES).unwrap_or(u32::MAX).max(1);
    (usual.min(fitting), most.min(fitting))
}

/// The same where addresses are not limited.
fn planned(options: &CopyOptions, cpus: u32) -> (u32, u32) {
    let large = options.tuned.large;
    // Each thread of these has buffers or windows of its own.
    let has_own = matches!(options.method, Some(Method::Uring | Method::Mmap))
        || options.method.is_none() && large.is_some_and(|large| large.engine != Engine::Sync);
    match options.threads {
        0 if has_own => (cpus, cpus),
        0 => {
            let tuned = options.tuned;
            let small = tuned.usual_threads.unwrap_or(cpus);
            let usual = large.map_or(small, |large| small.max(large.threads));
            (usual, tuned.most_threads.unwrap_or(MOST_THREADS).max(cpus).max(usual))
        }
        threads => (threads, threads),
    }
}

#[cfg(test)]
mod tests {
    use flatout_io::{Caching, Split, Tuning};

    use super::*;
    use crate::copy::options::Tuned;
    use crate::copy::tests::options;

    #[test]
    fn threads_are_those_asked_for_those_measured_or_as_many_as_there_are_cpus() {
        let large = |engine, threads| Tuning {
            engine,
            caching: Caching::Buffered,
            block_bytes: 1 << 20,
            depth: 1,
            threads,
            split: Split::Contiguous,
        };
        let base = options();
        let with = |asked, tuned| planned(&CopyOptions { threads: asked, tuned, ..base }, 4);
        let nothing = Tuned::default();
        let by_cpus = [1, 2, 8, 64].map(|cpus| planned(&CopyOptions { threads: 0, ..base }, cpus));
        assert_eq!(by_cpus, [(1, 32), (2, 32), (8, 32), (64, 64)]);
        assert_eq!(with(0, nothing), (4, 32));
        assert_eq!(with(3, nothing), (3, 3));
        let tuned = Tuned { usual_threads: Some(1), most_threads: Some(8), large: None };
        assert_eq!(with(0, tuned), (1, 8));
        assert_eq!(with(5, tuned), (5, 5));
        let both = Tuned { large: Some(large(Engine::Sync, 2)), ..tuned };
        assert_eq!(with(0, both), (2, 8), "a large file is shared by two");
        let ring = Tuned { large: Some(large(Engine::Uring, 1)), ..tuned };
        assert_eq!(with(0, ring), (4, 4), "buffers of their own");
        let many = Tuned { usual_threads: Some(16), ..nothing };
        assert_eq!(with(0, many), (16, 32), "what was measured with as many CPUs is obeyed");
        let left = |asked, mebibytes: Option<u64>| {
            within(
                (4, 32),
                &CopyOptions { threads: asked, ..base },
                mebibytes.map(|left| left << 20),
            )
        };
        assert_eq!([left(0, None), left(0, Some(1 << 20))], [(4, 32); 2]);
        assert_eq!([left(0, Some(5)), left(0, Some(200))], [(1, 1), (3, 3)]);
        assert_eq!(left(4, Some(5)), (4, 32), "asked for");
    }
}
