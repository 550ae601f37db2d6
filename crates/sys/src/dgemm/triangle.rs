//! Elimination: what the columns right of a factored panel go through.
//!
//! With the panel's L in two parts, the unit triangle L1 and L2 below it, a block of columns
//! (C1 over C2) becomes U = L1⁻¹ C1 over C2 − L2 U. The triangle is solved for by substitution, in
//! the packed form that the product takes next; nothing is inverted.

use std::io;

use super::block::{Block, BlockMut};
use super::doubles::Doubles;
use super::kernel::{Kernels, Table};
use super::lanes::Lanes;
use super::product::{Factors, PackedLeft, Room, Slivers, product};
use super::tile::Update;

/// A packed unit triangle and packed columns that it is solved for.
pub(super) struct Solve {
    /// Rows, a multiple of R.
    depth: usize,
    /// The triangle below its diagonal, negated, in slivers of R rows, `depth` columns each.
    triangle: *const f64,
    /// W registers of columns, row after row.
    right: *mut f64,
    /// Numbers from one row to the next, and from one register of a row to the next.
    row_step: usize,
    gap: usize,
}

/// Solves in place, `R` rows at a time, `W` registers wide.
///
/// # Safety
///
/// The CPU must have the instructions of `V`; the pointers must lead to what [`Solve`] says.
#[inline(always)]
pub(super) unsafe fn solve<V: Lanes, const R: usize, const W: usize>(job: &Solve) {
    let Solve { depth, triangle, right, row_step, gap } = *job;
    // SAFETY: rows below `depth` and columns below W registers, as the caller allows.
    unsafe {
        for top in (0..depth).step_by(R) {
            let sliver = triangle.add(top * depth);
            let mut rows = [[V::splat(0.0); W]; R];
            for (row, registers) in rows.iter_mut().enumerate() {
                for (index, register) in registers.iter_mut().enumerate() {
                    *register = V::load(right.add((top + row) * row_step + index * gap));
                }
            }
            for known in 0..top {
                let mut values = [V::splat(0.0); W];
                for (index, value) in values.iter_mut().enumerate() {
                    *value = V::load(right.add(known * row_step + index * gap));
                }
                for (row, registers) in rows.iter_mut().enumerate() {
                    let factor = V::splat(*sliver.add(known * R + row));
                    for (register, value) in registers.iter_mut().zip(values) {
                        *register = register.plus_product(value, factor);
                    }
                }
            }
            for known in 0..R {
                let values = rows[known];
                for (row, registers) in rows.iter_mut().enumerate().skip(known + 1) {
                    let factor = V::splat(*sliver.add((top + known) * R + row));
                    for (register, value) in registers.iter_mut().zip(values) {
                        *register = register.plus_product(value, factor);
                    }
                }
            }
            for (row, registers) in rows.iter().enumerate() {
                for (index, register) in registers.iter().enumerate() {
                    register.store(right.add((top + row) * row_step + index * gap));
                }
            }
        }
    }
}

/// A factored panel, packed for the elimination of many columns in several threads.
pub struct Step {
    triangle: Doubles,
    below: PackedLeft,
}

impl Step {
    /// Widest panel that there can be.
    pub const MOST_COLUMNS: usize = 384;

    /// Room for panels of up to `rows` rows and `columns` columns, and none in it.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new(rows: usize, columns: usize) -> io::Result<Self> {
        // The tallest block of a triangle has 8 rows.
        let triangle = Doubles::new(columns.next_multiple_of(8).pow(2))?;
        Ok(Self { triangle, below: PackedLeft::new(rows, columns)? })
    }

    /// Takes a copy of a factored panel.
    ///
    /// # Panics
    /// Where it is larger than the room for it, or wider than high.
    pub fn take(&mut self, kernels: Kernels, panel: Block<'_>) {
        let depth = panel.columns();
        assert!(depth <= panel.rows(), "a panel is at least as high as wide");
        pack_triangle(self.triangle.as_mut_slice(), panel.part(0, 0, depth, depth), kernels.0);
        self.below.take(kernels, panel.part(depth, 0, panel.rows() - depth, depth));
    }
}

/// Packs the negated unit triangle in slivers; what is on and above the diagonal is never read.
fn pack_triangle(to: &mut [f64], triangle: Block<'_>, table: &Table) {
    let (size, high) = (triangle.rows(), table.solve_rows);
    let depth = size.next_multiple_of(high);
    let to = &mut to[..depth * depth];
    to.fill(0.0);
    for top in (0..size).step_by(high) {
        let bottom = size.min(top + high);
        for column in 0..bottom {
            let values = &triangle.column(column)[..bottom];
            for row in top.max(column + 1)..bottom {
                to[top * depth + column * high + row - top] = -values[row];
            }
        }
    }
}

impl Kernels {
    /// Takes `columns` through the elimination of `step`. Their first row is the panel's first,
    /// and the panel's exchanges of rows were made in them.
    ///
    /// Cost: (depth² + 2 × rows × depth) × columns operations in this thread, no allocation.
    ///
    /// # Panics
    /// Where the rows are not as many as the panel had.
    pub fn eliminate(self, columns: BlockMut<'_>, step: &Step, room: &mut Room) {
        let below = &step.below;
        assert!(columns.rows() == below.depth + below.rows, "the panel and the columns fit");
        let left = below.slivers(self.0);
        // SAFETY: `take` packed both parts of the panel, for as many rows as are asked for above.
        unsafe { self.eliminate_with(columns, step.triangle.as_slice(), &left, room) };
    }

    /// Takes the columns of `panel` from `known` on through the elimination of those before,
    /// which are factored and whose exchanges of rows were made in all columns.
    ///
    /// Nothing is packed but the smaller factor: for panels of up to
    /// [`Step::MOST_COLUMNS`] columns.
    ///
    /// # Panics
    /// Where `known` is no column, or more than [`Step::MOST_COLUMNS`].
    pub fn eliminate_within(self, panel: BlockMut<'_>, known: usize, room: &mut Room) {
        assert!(known <= panel.rows() && known <= Step::MOST_COLUMNS, "a panel is narrow");
        let table = self.0;
        let (factored, rest) = panel.split_columns(known);
        let factored = factored.as_block();
        let rows = factored.rows() - known;
        let below = factored.part(known, 0, rows, known);
        let cut = rows % table.rows;
        let last_length = table.rows * known;
        let mut last = std::mem::take(&mut room.last);
        if last.len() < last_length {
            last.resize(last_length, 0.0);
        }
        let end = below.part(rows - cut, 0, cut, known);
        (table.pack_left)(&mut last[..last_length], end);
        let mut triangle = std::mem::take(&mut room.triangle);
        pack_triangle(&mut triangle, factored.part(0, 0, known, known), table);
        let left = Slivers {
            start: below.start(),
            step: below.stride(),
            gap: table.rows,
            depth: known,
            last: Some(&last),
        };
        // SAFETY: the triangle was packed above; the panel itself serves as slivers, with a padded
        // copy of the last one.
        unsafe { self.eliminate_with(rest, &triangle, &left, room) };
        room.last = last;
        room.triangle = triangle;
    }

    /// Columns, as many at a time as there is room for.
    ///
    /// # Safety
    ///
    /// `triangle` must hold a packed triangle, and `left` slivers of as many columns, and of as
    /// many rows as `columns` has more.
    unsafe fn eliminate_with(
        self,
        mut rest: BlockMut<'_>,
        triangle: &[f64],
        left: &Slivers<'_>,
        room: &mut Room,
    ) {
        let most_columns = room.columns();
        while rest.columns() > 0 {
            let width = most_columns.min(rest.columns());
            let (part, others) = rest.split_columns(width);
            // SAFETY: the caller's promise.
            unsafe { self.eliminate_part(part, triangle, left, room) };
            rest = others;
        }
    }

    /// One block of columns, for which there is room.
    ///
    /// # Safety
    ///
    /// As above.
    unsafe fn eliminate_part(
        self,
        columns: BlockMut<'_>,
        triangle: &[f64],
        left: &Slivers<'_>,
        room: &mut Room,
    ) {
        let table = self.0;
        let depth = left.depth;
        let padded = depth.next_multiple_of(table.solve_rows);
        let width = columns.columns().next_multiple_of(table.solve_columns);
        let (mut top, below) = columns.split_rows(depth);
        let packed = &mut room.right.as_mut_slice()[..width * padded];
        (table.pack_right)(packed, top.as_block(), padded);
        // A register's worth of columns: within the sliver, or the next sliver.
        let gap = if table.solve_columns > table.columns { table.columns * padded } else { 2 };
        for sliver in packed.chunks_exact_mut(table.solve_columns * padded) {
            let job = Solve {
                depth: padded,
                triangle: triangle.as_ptr(),
                right: sliver.as_mut_ptr(),
                row_step: table.columns,
                gap,
            };
            // SAFETY: the sliver has `padded` rows of the table's columns; the triangle is packed
            // with the same padding; the CPU has the instructions of the table.
            unsafe { (table.solve)(&job) };
        }
        (table.unpack_right)(packed, top.again(), padded);
        let factors =
            Factors { left: *left, right: packed.as_ptr(), right_gap: table.columns * padded };
        // SAFETY: the caller's promise for the left factor; the right one was packed above.
        unsafe { product(table, below, &factors, Update::Subtract) };
    }
}
