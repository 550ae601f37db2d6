//! The loops: dependent loads, and nothing that the loads would have to wait for.

use super::Node;

/// Numbers of chases that can go together.
pub const TOGETHER: [usize; 14] = [1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32];

/// Steps per turn of the loop: what the loop itself costs is hidden behind the first of them.
const UNROLL: u64 = 16;

/// Walks alone.
///
/// # Safety
///
/// `node`, and each node that it leads to, must be readable and not written meanwhile.
#[inline(never)]
pub(super) unsafe fn alone(mut node: *const Node, steps: u64) -> *const Node {
    for _ in 0..steps / UNROLL {
        for _ in 0..UNROLL {
            // SAFETY: the caller's promise.
            node = unsafe { (*node).next };
        }
    }
    for _ in 0..steps % UNROLL {
        // SAFETY: the caller's promise.
        node = unsafe { (*node).next };
    }
    node
}

/// Walks from all `starts` at once; `None` unless their number is one of [`TOGETHER`].
///
/// # Safety
///
/// As [`alone`], for each of them.
pub(super) unsafe fn together(starts: &[*const Node], steps: u64) -> Option<Vec<*const Node>> {
    macro_rules! by_count {
        ($($count:literal),+) => {
            match starts.len() {
                // SAFETY: the caller's promise.
                $($count => unsafe { several::<$count>(starts, steps) },)+
                _ => None,
            }
        };
    }
    by_count!(1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32)
}

/// More chases than the CPU has registers pass through memory that is in the first cache: a few
/// cycles, which are hidden where each waits for a line of memory.
///
/// # Safety
///
/// As [`alone`], for each of them.
#[inline(never)]
unsafe fn several<const N: usize>(starts: &[*const Node], steps: u64) -> Option<Vec<*const Node>> {
    let mut nodes: [*const Node; N] = starts.try_into().ok()?;
    for _ in 0..steps {
        for node in &mut nodes {
            // SAFETY: the caller's promise.
            *node = unsafe { (**node).next };
        }
    }
    Some(nodes.to_vec())
}
