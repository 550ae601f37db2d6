//! The factorisation of a few columns, where there is nothing to multiply yet.

use super::block::BlockMut;
use super::kernel::Kernels;
use super::lanes::Lanes;

/// Most columns that [`Kernels::factor_narrow`] takes.
pub const NARROW_COLUMNS: usize = 8;

/// One column from which multiples of those before it are taken.
pub(super) struct Column {
    pub(super) rows: usize,
    /// How many columns there are before it.
    pub(super) before: usize,
    /// The first of these, and the numbers from one to the next.
    pub(super) left: *const f64,
    pub(super) stride: usize,
    /// What each of them is multiplied by before it is added.
    pub(super) factors: [f64; NARROW_COLUMNS],
    pub(super) target: *mut f64,
}

/// Adds the multiples and returns the largest magnitude of the result.
///
/// # Safety
///
/// The CPU must have the instructions of `V`. `left` must be readable for `rows` numbers in each of
/// `before` columns (at most NARROW_COLUMNS), and `target` be writable for `rows`; nobody else may
/// write either.
#[inline(always)]
pub(super) unsafe fn column<V: Lanes>(job: &Column) -> f64 {
    let Column { rows, before, left, stride, target, .. } = *job;
    let whole = rows - rows % V::COUNT;
    // SAFETY: row < rows and index < before in all accesses, as the caller allows.
    unsafe {
        let mut most = V::splat(0.0);
        for row in (0..whole).step_by(V::COUNT) {
            let mut value = V::load(target.add(row));
            for (index, factor) in job.factors.iter().enumerate().take(before) {
                let known = V::load(left.wrapping_add(index * stride + row));
                value = value.plus_product(known, V::splat(*factor));
            }
            value.store(target.add(row));
            most = most.or_magnitude(value);
        }
        let mut places = [0.0; 8];
        most.store(places.as_mut_ptr());
        let mut most = places.into_iter().fold(0.0, f64::max);
        for row in whole..rows {
            let mut value = *target.add(row);
            for (index, factor) in job.factors.iter().enumerate().take(before) {
                value += *left.wrapping_add(index * stride + row) * factor;
            }
            *target.add(row) = value;
            most = f64::max(most, value.abs());
        }
        most
    }
}

impl Kernels {
    /// Factors `panel` (at least as many rows as columns, at most [`NARROW_COLUMNS`] of these)
    /// into L and U with partial pivoting, in place, L with ones on the diagonal that are not
    /// stored. `pivots[j]` becomes the row that row j was exchanged with. Returns whether all
    /// pivots were usable (not 0, not infinite, a number); otherwise the panel is half done.
    ///
    /// Source: the left-looking form ("jki") of Dongarra, Gustavson and Karp, "Implementing linear
    /// algebra algorithms for dense matrices on a vector pipeline machine", SIAM Review 26, 1984.
    ///
    /// # Panics
    /// Where the shapes do not fit.
    #[must_use]
    pub fn factor_narrow(self, mut panel: BlockMut<'_>, pivots: &mut [usize]) -> bool {
        let (rows, columns, stride) = (panel.rows(), panel.columns(), panel.stride());
        assert!(columns <= NARROW_COLUMNS && columns <= rows, "a narrow panel is a narrow one");
        assert!(pivots.len() == columns, "each column has a pivot");
        for index in 0..columns {
            let start = panel.start();
            let values = panel.column(index);
            for (row, &other) in pivots[..index].iter().enumerate() {
                values.swap(row, other);
            }
            let mut factors = [0.0; NARROW_COLUMNS];
            for row in 0..index {
                let mut value = values[row];
                for (before, factor) in factors[..row].iter().enumerate() {
                    // SAFETY: `before` < `row` < `index`: a column that `values` does not alias.
                    value += unsafe { *start.add(before * stride + row) } * factor;
                }
                values[row] = value;
                factors[row] = -value;
            }
            let below = &mut values[index..];
            let job = Column {
                rows: below.len(),
                before: index,
                left: start.wrapping_add(index),
                stride,
                factors,
                target: below.as_mut_ptr(),
            };
            // SAFETY: the columns before this one have as many rows below `index`, and `panel` is
            // borrowed to be written; the CPU has the instructions of this table.
            let most = unsafe { (self.0.column)(&job) };
            let usable = most > 0.0 && most.is_finite();
            let Some(place) = below.iter().position(|value| value.abs() == most).filter(|_| usable)
            else {
                return false;
            };
            below.swap(0, place);
            let pivot = below[0];
            scale(&mut below[1..], pivot);
            pivots[index] = index + place;
            for before in 0..index {
                panel.column(before).swap(index, index + place);
            }
        }
        true
    }
}

/// Divides by the pivot; by its reciprocal where that is a normal number.
fn scale(values: &mut [f64], pivot: f64) {
    let reciprocal = 1.0 / pivot;
    if reciprocal.is_normal() {
        values.iter_mut().for_each(|value| *value *= reciprocal);
    } else {
        values.iter_mut().for_each(|value| *value /= pivot);
    }
}
