//! One panel, factored in one thread: halves of halves, so that nearly all of the work is
//! multiplication.
//!
//! Source: S. Toledo, "Locality of reference in LU decomposition with partial pivoting", SIAM J.
//! Matrix Anal. Appl. 18(4), 1997.

use flatout_sys::dgemm::{BlockMut, Kernels, NARROW_COLUMNS, Room};

/// Factors `panel` in place, at least as many rows as columns; `pivots[j]` becomes the row that
/// row j was exchanged with. Returns whether all pivots were usable.
#[must_use]
pub(super) fn factor(
    kernels: Kernels,
    mut panel: BlockMut<'_>,
    pivots: &mut [usize],
    room: &mut Room,
) -> bool {
    let columns = panel.columns();
    if columns <= NARROW_COLUMNS {
        return kernels.factor_narrow(panel, pivots);
    }
    let known = left_half(columns);
    let (own, later) = pivots.split_at_mut(known);
    let (left, mut right) = panel.again().split_columns(known);
    if !factor(kernels, left, own, room) {
        return false;
    }
    right.exchange_rows(own);
    kernels.eliminate_within(panel.again(), known, room);
    let (left, right) = panel.split_columns(known);
    let (_, below) = right.split_rows(known);
    if !factor(kernels, below, later, room) {
        return false;
    }
    let (_, mut below_left) = left.split_rows(known);
    below_left.exchange_rows(later);
    later.iter_mut().for_each(|row| *row += known);
    true
}

/// The left half, in whole narrow panels.
fn left_half(columns: usize) -> usize {
    (columns / 2).next_multiple_of(NARROW_COLUMNS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_whole_narrow_panels_and_leave_something() {
        for columns in NARROW_COLUMNS + 1..600 {
            let left = left_half(columns);
            assert!(left.is_multiple_of(NARROW_COLUMNS) && left < columns && left > 0, "{columns}");
        }
    }
}
