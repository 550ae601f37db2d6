//! Requests that do nothing, through io_uring: what a request costs beyond its work.

use std::io;

use io_uring::{IoUring, opcode};

use crate::ring::entered;

/// A ring that completes no-operation requests in batches.
///
/// Set up with the kernel's defaults: no polling thread, no fixed files. The crate `io-uring`
/// enters the kernel through `libc::syscall`, not through this module's own instruction.
pub struct NopRing {
    ring: IoUring,
}

impl NopRing {
    /// Asks the kernel for a ring with room for `batch_requests` at once.
    ///
    /// # Errors
    /// The error of `io_uring_setup`: `ENOSYS` or `EPERM` where the kernel, a sysctl or a seccomp
    /// filter does not grant rings.
    pub fn new(batch_requests: u32) -> io::Result<Self> {
        Ok(Self { ring: IoUring::new(batch_requests)? })
    }

    /// Completes `requests` of them, `batch_requests` at a time: one system call per batch.
    ///
    /// Returns the number of completions seen.
    ///
    /// # Errors
    /// The error of `io_uring_enter` or of a request.
    #[inline(never)]
    pub fn complete(&mut self, requests: u64, batch_requests: u32) -> io::Result<u64> {
        let nothing = opcode::Nop::new().build();
        let mut completed = 0;
        while completed < requests {
            let batch = (requests - completed).min(u64::from(batch_requests));
            let mut queue = self.ring.submission();
            for _ in 0..batch {
                // SAFETY: a no-operation request refers to no memory.
                unsafe { queue.push(&nothing) }.map_err(io::Error::other)?;
            }
            drop(queue);
            completed += self.reap(batch)?;
        }
        Ok(completed)
    }

    /// Submits what is queued and waits until `batch` requests have completed.
    #[inline(always)]
    fn reap(&mut self, batch: u64) -> io::Result<u64> {
        let mut reaped = 0;
        while reaped < batch {
            entered(self.ring.submit_and_wait((batch - reaped) as usize))?;
            for completion in self.ring.completion() {
                if completion.result() != 0 {
                    return Err(io::Error::from_raw_os_error(-completion.result()));
                }
                reaped += 1;
            }
        }
        Ok(reaped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_completes_also_in_a_last_short_batch() {
        let mut ring = match NopRing::new(8) {
            Ok(ring) => ring,
            Err(error) => {
                eprintln!("skipped: io_uring is refused here: {error}");
                return;
            }
        };
        assert_eq!(ring.complete(100, 8).unwrap(), 100);
        assert_eq!(ring.complete(5, 1).unwrap(), 5);
    }

    #[test]
    fn a_ring_of_no_size_is_refused_by_the_kernel() {
        assert!(NopRing::new(0).is_err());
    }
}
