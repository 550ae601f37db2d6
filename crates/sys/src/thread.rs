//! Starting threads where the addresses of the process may be limited.

use std::io;
use std::sync::mpsc;
use std::thread::{Builder, Scope, ScopedJoinHandle};

use crate::memory;

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
