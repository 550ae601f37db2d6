//! Threads where the system gives less than the standard library expects: starting them, where addresses
//! may be limited, and having them sleep.

use std::io;
use std::panic::resume_unwind;
use std::sync::mpsc;
use std::thread::{Builder, Scope, ScopedJoinHandle, scope};
use std::time::Duration;

use rustix::thread::nanosleep;

use crate::clock::{monotonic_ns, timespec};
use crate::{memory, run_queue};

/// Starts `work` on a thread of `scope`. Where addresses are limited it returns when the thread has begun: a
/// thread allocates first, and maps a stack for signals where Rust's runtime began the program; the standard
/// library ends the process where what the caller or an earlier thread of its maps next has taken the room.
///
/// # Errors
/// There are too few addresses, or the kernel's: no thread can be started.
///
/// Cost: without a limit two getrlimit(2) beside the thread.
pub fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    builder: Builder,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    if memory::address_space_left_bytes().is_none() {
        return builder.spawn_scoped(scope, work);
    }
    memory::room_for_thread()?;
    let (begins, begun) = mpsc::channel::<()>();
    let thread = builder.spawn_scoped(scope, move || {
        drop(begins);
        work()
    })?;
    // Nothing is sent: the other end is gone when the thread has begun.
    let _ = begun.recv();
    Ok(thread)
}

/// What one of two threads does.
pub type Side<'a, T, E> = Box<dyn FnOnce() -> Result<T, E> + Send + 'a>;

/// Runs both sides on threads of their own, each tied to its CPU by `tie`; what each brings. Who fails, or
/// cannot be started, frees the other by `give_up`, or it would wait for ever.
///
/// # Errors
/// A thread cannot be started.
pub fn both<'a, T: Send, E: Send>(
    cpus: [usize; 2],
    tie: impl Fn(usize) -> Result<(), E> + Sync,
    [first, second]: [Side<'a, T, E>; 2],
    give_up: impl Fn() + Sync,
) -> io::Result<[Result<T, E>; 2]> {
    let (tie, give_up) = (&tie, &give_up);
    scope(|scope| {
        let start = |cpu, side: Side<'a, T, E>| {
            let tied = move || tie(cpu).map(|()| run_queue::restart());
            let work = move || tied().and_then(|()| side()).inspect_err(|_| give_up());
            // Not counted: what two on one CPU wait for each other.
            match cpus[0] == cpus[1] {
                true => spawn(scope, Builder::new(), work),
                false => run_queue::spawn(scope, Builder::new(), work),
            }
        };
        let second = start(cpus[1], second)?;
        let first = start(cpus[0], first).inspect_err(|_| give_up())?;
        Ok([first, second].map(|side| side.join().unwrap_or_else(|panic| resume_unwind(panic))))
    })
}

/// Sleeps; that of the standard library panics where a filter refuses clock_nanosleep(2). Where nanosleep(2)
/// is refused, too, the time passes awake.
pub fn sleep(time: Duration) {
    let ends_ns = monotonic_ns().saturating_add(time.as_nanos() as u64);
    while let left_ns @ 1.. = ends_ns.saturating_sub(monotonic_ns()) {
        let _ = nanosleep(&timespec(left_ns));
    }
}
