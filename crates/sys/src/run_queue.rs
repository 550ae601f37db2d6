//! How long threads of this process were ready to run and waited for a CPU.
//!
//! The kernel counts it per thread, in nanoseconds (`/proc/PID/schedstat`, second field; see
//! Documentation/scheduler/sched-stats.rst). It is the direct sign that somebody else had the
//! CPU, whoever that was and however short the time. What the hypervisor took is not in it.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

/// What threads that have ended had waited, as far as they were [`counted`].
static ENDED_NS: AtomicU64 = AtomicU64::new(0);

/// Time that the calling thread and all workers that ended have waited so far; a total that only
/// grows. `None` where the kernel does not say.
///
/// Cost: open, read, close; some 10 µs.
pub fn waited_ns() -> Option<u64> {
    Some(thread_waited_ns()?.saturating_add(ENDED_NS.load(Ordering::Acquire)))
}

/// Does `work` in a thread other than the one that asks for [`waited_ns`], and adds what this thread
/// waits meanwhile to that total.
///
/// Cost: two readings of a file in `/proc`.
pub fn counted<T>(work: impl FnOnce() -> T) -> T {
    let before = thread_waited_ns();
    let done = work();
    if let (Some(before), Some(after)) = (before, thread_waited_ns()) {
        ENDED_NS.fetch_add(after.saturating_sub(before), Ordering::Release);
    }
    done
}

fn thread_waited_ns() -> Option<u64> {
    parse_waited_ns(&fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// The second of three numbers: time on CPUs, time waiting for one, turns.
fn parse_waited_ns(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_the_second_number() {
        assert_eq!(parse_waited_ns("9448814 1234 17\n"), Some(1234));
        assert_eq!(parse_waited_ns("9448814"), None);
        assert_eq!(parse_waited_ns(""), None);
    }

    #[test]
    fn a_worker_that_shares_a_cpu_adds_what_it_waited() {
        let Some(before) = waited_ns() else {
            eprintln!("skipped: this kernel counts no waiting (CONFIG_SCHED_INFO)");
            return;
        };
        let cpu = crate::affinity::allowed_cpus().unwrap()[0];
        // Two on one CPU until one of them has waited: a turn takes milliseconds.
        let has_waited = std::sync::atomic::AtomicBool::new(false);
        let wait = || {
            crate::affinity::pin_to(cpu).unwrap();
            let start = thread_waited_ns();
            while !has_waited.load(Ordering::Relaxed) {
                has_waited.fetch_or(thread_waited_ns() != start, Ordering::Relaxed);
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| counted(wait));
            scope.spawn(|| counted(wait));
        });
        assert!(waited_ns().is_some_and(|after| after > before));
    }
}
