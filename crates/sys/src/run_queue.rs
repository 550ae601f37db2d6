//! How long threads of this process were ready to run and waited for a CPU.
//!
//! The kernel counts it per thread, in nanoseconds (`/proc/PID/schedstat`, second field; see
//! Documentation/scheduler/sched-stats.rst). It is the direct sign that somebody else had the
//! CPU, whoever that was and however short the time. What the hypervisor took is not in it.

use std::io;
use std::sync::{Mutex, MutexGuard};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use crate::attribute::whole;
use crate::lock::lock;
use crate::occupation::this_thread as thread_number;
use crate::thread;

/// What the threads of [`spawn`] have waited.
static WORKERS: Mutex<Workers> = Mutex::new(Workers { ended_ns: 0, running: Vec::new() });

struct Workers {
    /// Those that have ended, all together.
    ended_ns: u64,
    /// Those that run: the number of each, and what it had waited when its work began.
    running: Vec<(i32, u64)>,
}

/// Time that the calling thread and all that were started by [`spawn`] have waited so far; a total
/// that only grows, but for [`restart`]. `None` where the kernel does not say.
///
/// Cost: open, read, close for the calling thread and each worker that runs; some 10 µs each.
pub fn waited_ns() -> Option<u64> {
    let (own_ns, own) = (waited_ns_of("thread-self")?, thread_number());
    let is_worker = workers().running.iter().any(|&(number, _)| number == own);
    Some(workers_waited_ns() + if is_worker { 0 } else { own_ns })
}

/// The part of [`waited_ns`] that threads of [`spawn`] have waited.
///
/// Cost: as [`waited_ns`].
pub fn workers_waited_ns() -> u64 {
    let workers = workers();
    let running = workers.running.iter().filter_map(|&(number, begun_ns)| {
        Some(waited_ns_of(&format!("self/task/{number}"))?.saturating_sub(begun_ns))
    });
    workers.ended_ns + running.sum::<u64>()
}

/// Starts `work` on a thread of `scope` whose waiting is part of [`waited_ns`] from its beginning on,
/// while it runs and when it has ended. Every thread that does work of a trial is started by this.
///
/// # Errors
/// The kernel's: no thread can be started.
///
/// Cost: two readings of a file in `/proc`, on that thread, before and after the work.
pub fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    builder: Builder,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    thread::spawn(scope, builder, || {
        let _worker = Worker::begin();
        work()
    })
}

/// Takes back what the calling thread has waited as a worker: it was tied to another CPU and woken,
/// and nothing was timed yet.
///
/// Cost: one reading of a file in `/proc`; nothing for a thread that is no worker.
pub fn restart() {
    let own = thread_number();
    if let Some(worker) = workers().running.iter_mut().find(|worker| worker.0 == own) {
        worker.1 = waited_ns_of("thread-self").unwrap_or(worker.1);
    }
}

/// Adds to [`waited_ns`] what threads have waited for others that wait for each other by their nature,
/// so that what the kernel counts would not tell.
pub fn add(waited_ns: u64) {
    workers().ended_ns += waited_ns;
}

/// A thread whose waiting is counted, until it is dropped on that thread.
struct Worker(i32);

impl Worker {
    fn begin() -> Option<Self> {
        let (number, begun_ns) = (thread_number(), waited_ns_of("thread-self")?);
        workers().running.push((number, begun_ns));
        Some(Self(number))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let mut workers = workers();
        let Some(at) = workers.running.iter().position(|&(number, _)| number == self.0) else {
            return;
        };
        let (_, begun_ns) = workers.running.swap_remove(at);
        workers.ended_ns +=
            waited_ns_of("thread-self").unwrap_or(begun_ns).saturating_sub(begun_ns);
    }
}

fn workers() -> MutexGuard<'static, Workers> {
    lock(&WORKERS)
}

/// What a thread has waited so far, by its folder in `/proc`.
fn waited_ns_of(thread: &str) -> Option<u64> {
    parse_waited_ns(&whole(format!("/proc/{thread}/schedstat").as_ref())?)
}

/// The second of three numbers: time on CPUs, time waiting for one, turns.
fn parse_waited_ns(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn waiting_is_the_second_number() {
        assert_eq!(parse_waited_ns("9448814 1234 17\n"), Some(1234));
        assert_eq!(parse_waited_ns("9448814"), None);
        assert_eq!(parse_waited_ns(""), None);
    }

    #[test]
    fn a_worker_that_shares_a_cpu_adds_what_it_waited_while_it_runs_and_afterwards() {
        if waited_ns().is_none() {
            return eprintln!("skipped: this kernel counts no waiting (CONFIG_SCHED_INFO)");
        }
        let cpu = crate::affinity::allowed_cpus().unwrap()[0];
        // Two on one CPU until one of them has waited: a turn takes milliseconds.
        let (before, seen) = (workers_waited_ns(), AtomicBool::new(false));
        let wait = || {
            crate::affinity::pin_to(cpu).unwrap();
            while !seen.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..2 {
                spawn(scope, Builder::new(), wait).unwrap();
            }
            while workers_waited_ns() == before {
                std::thread::yield_now();
            }
            seen.store(true, Ordering::Relaxed);
        });
        assert!(workers_waited_ns() > before);
    }

    #[test]
    fn what_a_worker_waited_before_it_began_is_taken_back() {
        if waited_ns().is_none() {
            return eprintln!("skipped: this kernel counts no waiting (CONFIG_SCHED_INFO)");
        }
        let cpu = crate::affinity::allowed_cpus().unwrap()[0];
        let (pin, is_over) = (|| crate::affinity::pin_to(cpu).unwrap(), AtomicBool::new(false));
        let begun_ns = || {
            let own = thread_number();
            workers().running.iter().find(|worker| worker.0 == own).unwrap().1
        };
        let work = || {
            pin();
            let before_ns = begun_ns();
            while waited_ns_of("thread-self").unwrap() == before_ns {
                std::hint::spin_loop();
            }
            restart();
            is_over.store(true, Ordering::Relaxed);
            assert!(begun_ns() > before_ns);
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                pin();
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            spawn(scope, Builder::new(), work).unwrap();
        });
        restart();
    }
}
