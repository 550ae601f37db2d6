//! Rectangular parts of column-major matrices, split without ever overlapping.
//!
//! A part is a pointer, so that two parts of one matrix that lie in the same columns can be
//! written at the same time; which the borrow checker could not see in slices.

use std::marker::PhantomData;

use crate::prefetch;

/// Columns by which rows to be exchanged are asked for ahead, since they lie anywhere: 2 % of an LU
/// of n = 2600 (less than the noise of a run), Zen 4, 2026-11-23.
const EXCHANGE_AHEAD: usize = 2;

/// A part of a matrix, to be read.
#[derive(Clone, Copy)]
pub struct Block<'m> {
    start: *const f64,
    rows: usize,
    columns: usize,
    stride: usize,
    matrix: PhantomData<&'m f64>,
}

/// A part of a matrix, to be written.
pub struct BlockMut<'m> {
    start: *mut f64,
    rows: usize,
    columns: usize,
    stride: usize,
    matrix: PhantomData<&'m mut f64>,
}

// SAFETY: a block is a shared borrow of doubles, as `&[f64]` is.
unsafe impl Send for Block<'_> {}
// SAFETY: as above.
unsafe impl Sync for Block<'_> {}
// SAFETY: a block is an exclusive borrow of doubles that no other block has, as `&mut [f64]` is.
unsafe impl Send for BlockMut<'_> {}

/// Whether a matrix of that shape lies within `length` numbers. Columns must not overlap.
fn fits(length: usize, rows: usize, columns: usize, stride: usize) -> bool {
    if rows == 0 || columns == 0 {
        return true;
    }
    let last = (columns - 1).checked_mul(stride).and_then(|start| start.checked_add(rows));
    rows <= stride && last.is_some_and(|last| last <= length)
}

impl<'m> Block<'m> {
    /// The matrix of `rows` × `columns` whose column j begins at `values[j * stride]`.
    ///
    /// # Panics
    /// Where `values` is too short, or `stride` below `rows`.
    pub fn new(values: &'m [f64], rows: usize, columns: usize, stride: usize) -> Self {
        assert!(fits(values.len(), rows, columns, stride), "a matrix lies within its values");
        Self { start: values.as_ptr(), rows, columns, stride, matrix: PhantomData }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Numbers from one column to the next.
    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// The first number, for the kernels.
    pub(crate) fn start(&self) -> *const f64 {
        self.start
    }

    /// The part with rows from `row` on and columns from `column` on, `rows` × `columns`.
    ///
    /// # Panics
    /// Where it is not within.
    pub fn part(&self, row: usize, column: usize, rows: usize, columns: usize) -> Block<'m> {
        let is_within =
            |first: usize, count: usize, all: usize| first <= all && count <= all - first;
        assert!(
            is_within(row, rows, self.rows) && is_within(column, columns, self.columns),
            "a part is within"
        );
        let start = self.start.wrapping_add(row + column * self.stride);
        Block { start, rows, columns, stride: self.stride, matrix: PhantomData }
    }

    /// One column.
    ///
    /// # Panics
    /// Where there is none of that number.
    pub fn column(&self, column: usize) -> &'m [f64] {
        let one = self.part(0, column, self.rows, 1);
        // SAFETY: the rows of a column lie side by side within the matrix, which is borrowed for
        // 'm; nobody writes them meanwhile, as whoever made this block promised by borrowing.
        unsafe { std::slice::from_raw_parts(one.start, one.rows) }
    }
}

impl<'m> BlockMut<'m> {
    /// As [`Block::new`].
    ///
    /// # Panics
    /// Where `values` is too short, or `stride` below `rows`.
    pub fn new(values: &'m mut [f64], rows: usize, columns: usize, stride: usize) -> Self {
        assert!(fits(values.len(), rows, columns, stride), "a matrix lies within its values");
        Self { start: values.as_mut_ptr(), rows, columns, stride, matrix: PhantomData }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Numbers from one column to the next.
    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// The first number, for the kernels.
    pub(crate) fn start(&mut self) -> *mut f64 {
        self.start
    }

    /// The same part for a shorter time.
    pub fn again(&mut self) -> BlockMut<'_> {
        BlockMut { matrix: PhantomData, ..*self }
    }

    /// The same part, to be read.
    pub fn as_block(&self) -> Block<'_> {
        let Self { start, rows, columns, stride, .. } = *self;
        Block { start, rows, columns, stride, matrix: PhantomData }
    }

    /// The rows above `row`, and the others.
    ///
    /// # Panics
    /// Where there are fewer rows.
    pub fn split_rows(self, row: usize) -> (BlockMut<'m>, BlockMut<'m>) {
        assert!(row <= self.rows, "a split is within");
        let below = self.start.wrapping_add(row);
        (BlockMut { rows: row, ..self }, BlockMut { start: below, rows: self.rows - row, ..self })
    }

    /// The columns before `column`, and the others.
    ///
    /// # Panics
    /// Where there are fewer columns.
    pub fn split_columns(self, column: usize) -> (BlockMut<'m>, BlockMut<'m>) {
        assert!(column <= self.columns, "a split is within");
        let right = self.start.wrapping_add(column * self.stride);
        (
            BlockMut { columns: column, ..self },
            BlockMut { start: right, columns: self.columns - column, ..self },
        )
    }

    /// One column.
    ///
    /// # Panics
    /// Where there is none of that number.
    pub fn column(&mut self, column: usize) -> &mut [f64] {
        assert!(column < self.columns, "a column is within");
        // SAFETY: the rows of a column lie side by side within the matrix, and `&mut self` makes
        // the access exclusive: parts that were split off have other rows or other columns.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(column * self.stride), self.rows) }
    }

    /// Exchanges row `index` with row `pivots[index]` in all columns, one after the other from the
    /// first index on: what LAPACK calls `dlaswp`.
    ///
    /// # Panics
    /// Where a row is not within.
    pub fn exchange_rows(&mut self, pivots: &[usize]) {
        for column in 0..self.columns {
            if column + EXCHANGE_AHEAD < self.columns {
                let ahead = self.start.wrapping_add((column + EXCHANGE_AHEAD) * self.stride);
                pivots.iter().for_each(|&other| prefetch::second(ahead.wrapping_add(other)));
            }
            let values = self.column(column);
            for (row, &other) in pivots.iter().enumerate() {
                values.swap(row, other);
            }
        }
    }
}
