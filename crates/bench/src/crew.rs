//! A crew of threads that begins together and is timed from the first start to the last end.

use std::sync::Barrier;
use std::thread;

use flatout_sys::clock::monotonic_ns;

/// Most threads that a bench or a read takes.
pub const MAX_THREADS: u32 = 1024;

/// Where a member of a crew says that it is ready, and that it has finished. Threads implement
/// it here; the ranks of a cluster can do so elsewhere.
pub trait Gate: Sync {
    /// Waits until all members are ready. Returns the time at which this one goes.
    fn ready(&self) -> u64;
    /// Returns the time at which this member has finished.
    fn finished(&self) -> u64;
}

/// The gate of a crew of threads.
struct ThreadGate(Barrier);

impl Gate for ThreadGate {
    fn ready(&self) -> u64 {
        self.0.wait();
        monotonic_ns()
    }

    fn finished(&self) -> u64 {
        monotonic_ns()
    }
}

/// What a crew did, and when.
#[derive(Debug)]
pub struct Crewed<T> {
    /// One result per member, in order.
    pub results: Vec<T>,
    /// From the first start to the last end.
    pub elapsed_ns: u64,
}

/// Runs `prepare` and then `work` in `count` threads. The clock runs for `work` alone; all
/// members start it together. A member whose preparation fails hands its error on without
/// holding up the others. One member runs in the calling thread.
pub fn run<P, T: Send, E: Send>(
    count: u32,
    prepare: impl Fn(u32) -> Result<P, E> + Sync,
    work: impl Fn(u32, &mut P) -> Result<T, E> + Sync,
) -> Crewed<Result<T, E>> {
    let gate = ThreadGate(Barrier::new(count.max(1) as usize));
    let member = |index| {
        let prepared = prepare(index);
        let start_ns = gate.ready();
        // Buffers are given back after the clock has stopped.
        let (result, _prepared) = match prepared {
            Ok(mut prepared) => (work(index, &mut prepared), Some(prepared)),
            Err(error) => (Err(error), None),
        };
        (result, start_ns, gate.finished())
    };
    let members: Vec<_> = if count <= 1 {
        vec![member(0)]
    } else {
        thread::scope(|scope| {
            let threads: Vec<_> =
                (0..count).map(|index| scope.spawn(move || member(index))).collect();
            let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).collect()
        })
    };
    let start_ns = members.iter().map(|member| member.1).min().unwrap_or(0);
    let end_ns = members.iter().map(|member| member.2).max().unwrap_or(0);
    let results = members.into_iter().map(|member| member.0).collect();
    Crewed { results, elapsed_ns: end_ns.saturating_sub(start_ns) }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn all_are_ready_before_anybody_works() {
        let ready = AtomicU32::new(0);
        let crew = run(
            4,
            |index| Ok::<_, ()>((ready.fetch_add(1, Ordering::SeqCst), index).1),
            |_, index| Ok((*index, ready.load(Ordering::SeqCst))),
        );
        let expected: Vec<_> = (0..4).map(|index| Ok((index, 4))).collect();
        assert_eq!(crew.results, expected);
    }

    #[test]
    fn a_failed_preparation_holds_nobody_up() {
        let crew = run(3, |index| if index == 1 { Err("no") } else { Ok(()) }, |_, ()| Ok(1));
        assert_eq!(crew.results, [Ok(1), Err("no"), Ok(1)]);
    }
}
