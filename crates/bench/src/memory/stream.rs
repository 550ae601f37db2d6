//! Rows by the rules of STREAM: copy, scale, add and triad over arrays that are four times as long
//! as the last cache, once per trial; the first run of each is not counted, and each is checked.
//!
//! Source: J. D. McCalpin, "STREAM: sustainable memory bandwidth in high performance computers",
//! run rules. Bytes are counted as there: what the program reads and writes. STREAM prints the
//! best run; the median stands here, and the best beside it in the audit.

use flatout_sys::stream::{Kernel, Stream};

use super::trial::{StreamTest, Way};

pub(super) const ID: &str = "memory/stream";
/// How much longer than the last cache an array is at least.
pub(super) const TIMES_CACHE: u64 = 4;

/// The four of STREAM, and two that write past the caches.
pub(super) const KERNELS: [Kernel; 6] =
    [Kernel::Copy, Kernel::Scale, Kernel::Add, Kernel::Triad, Kernel::NtCopy, Kernel::NtTriad];

/// What a trial runs; none where this CPU has no such kernel.
pub(super) fn test(kernel: Kernel) -> Option<StreamTest> {
    Some(StreamTest { stream: Stream::best(kernel)?.far(), way: Way::Once })
}

/// Floating-point operations per byte that the program moves, for a roofline.
pub(super) fn operations_per_byte(kernel: Kernel) -> f64 {
    match kernel {
        Kernel::Scale => 1.0 / 16.0,
        Kernel::Add => 1.0 / 24.0,
        Kernel::Triad | Kernel::NtTriad => 2.0 / 24.0,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_triad_does_two_operations_in_24_bytes() {
        assert_eq!(operations_per_byte(Kernel::Triad) * 24.0, 2.0);
        assert_eq!(operations_per_byte(Kernel::Copy), 0.0);
    }
}
