//! Locks whose holder may have panicked: what is kept under them is true at any time.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits for the lock, whatever became of those who held it.
#[inline]
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What was kept under a lock that nobody needs any more.
pub fn unlocked<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}
