//! Products of whole matrices, tile by tile.

use std::io;

use super::block::{Block, BlockMut};
use super::doubles::Doubles;
use super::kernel::{Kernels, Table};
use super::pack::{pack_left, pack_right};
use super::tile::{MOST, Tile, Update};

/// Columns of the left factor that are taken at a time. A sliver of the right factor of that depth
/// (24 KiB) stays in the first-level cache. Figures: docs/measuring.md.
pub(super) const DEPTH: usize = 384;
/// Rows of the left factor that are taken at a time: with [`DEPTH`], 1.1 MiB, which stay in a
/// second-level cache of 2 MiB.
pub(super) const ROWS: usize = 360;
/// Columns of the right factor that are packed at a time: 9 MiB. The left factor is packed once for
/// each such part.
const COLUMNS: usize = 3072;

/// Memory for the packed factors of one thread.
pub struct Room {
    pub(super) left: Doubles,
    pub(super) right: Doubles,
    pub(super) triangle: Vec<f64>,
    pub(super) last: Vec<f64>,
}

impl Room {
    /// For products of any size, whose right factors have up to `columns` columns.
    ///
    /// # Errors
    /// `ENOMEM`.
    ///
    /// Cost: some 10 MB.
    pub fn new(columns: usize) -> io::Result<Self> {
        let columns = columns.clamp(1, COLUMNS).next_multiple_of(16);
        Ok(Self {
            left: Doubles::new(ROWS * DEPTH)?,
            right: Doubles::new(DEPTH * columns)?,
            triangle: vec![0.0; DEPTH * DEPTH],
            last: Vec::new(),
        })
    }

    /// Columns that [`right`](Self::right) has room for.
    pub(super) fn columns(&self) -> usize {
        self.right.as_slice().len() / DEPTH
    }
}

/// Where the slivers of the left factor lie.
#[derive(Clone, Copy)]
pub(super) struct Slivers<'l> {
    /// The factor itself, or what `pack_left` made of it.
    pub(super) start: *const f64,
    /// Numbers from one column of a sliver to the next.
    pub(super) step: usize,
    /// Numbers from one sliver to the next.
    pub(super) gap: usize,
    /// Columns of a sliver.
    pub(super) depth: usize,
    /// The last sliver, where `start` does not have it padded.
    pub(super) last: Option<&'l [f64]>,
}

/// Both factors, packed.
pub(super) struct Factors<'l> {
    pub(super) left: Slivers<'l>,
    pub(super) right: *const f64,
    /// Numbers from one sliver of the right factor to the next.
    pub(super) right_gap: usize,
}

impl Kernels {
    /// Works out `left` × `right` and puts it into `target` as `update` says.
    ///
    /// Cost: 2 × rows × columns × depth operations in this thread, no allocation.
    ///
    /// # Panics
    /// Where the shapes do not fit.
    pub fn multiply(
        self,
        mut target: BlockMut<'_>,
        left: Block<'_>,
        right: Block<'_>,
        update: Update,
        room: &mut Room,
    ) {
        let (rows, depth, columns) = (left.rows(), left.columns(), right.columns());
        assert!(right.rows() == depth, "the factors fit each other");
        assert!(target.rows() == rows && target.columns() == columns, "the target fits them");
        let table = self.0;
        if depth == 0 && update == Update::Replace {
            (0..columns).for_each(|column| target.column(column).fill(0.0));
        }
        let most_columns = room.columns();
        for column in (0..columns).step_by(most_columns) {
            let width = most_columns.min(columns - column);
            let width_padded = width.next_multiple_of(table.columns);
            for step in (0..depth).step_by(DEPTH) {
                let deep = DEPTH.min(depth - step);
                let packed = &mut room.right.as_mut_slice()[..width_padded * deep];
                pack_right(packed, right.part(step, column, deep, width), table.columns, deep);
                let update = match update {
                    Update::Replace if step > 0 => Update::Add,
                    _ => update,
                };
                for row in (0..rows).step_by(ROWS) {
                    let high = ROWS.min(rows - row);
                    let length = high.next_multiple_of(table.rows) * deep;
                    let packed_left = &mut room.left.as_mut_slice()[..length];
                    pack_left(packed_left, left.part(row, step, high, deep), table.rows);
                    let factors = Factors {
                        left: Slivers::packed(packed_left, table, deep),
                        right: packed.as_ptr(),
                        right_gap: table.columns * deep,
                    };
                    let (_, below) = target.again().split_rows(row);
                    let (strip, _) = below.split_rows(high);
                    let (_, part) = strip.split_columns(column);
                    let (part, _) = part.split_columns(width);
                    // SAFETY: both factors were packed just now with the shape of `part`, padded
                    // to whole tiles, by the table whose instructions the CPU has.
                    unsafe { product(table, part, &factors, update) };
                }
            }
        }
    }
}

impl<'l> Slivers<'l> {
    /// Slivers that [`pack_left`] made, `depth` columns deep.
    pub(super) fn packed(packed: &'l [f64], table: &Table, depth: usize) -> Self {
        let (step, gap) = (table.rows, table.rows * depth);
        Self { start: packed.as_ptr(), step, gap, depth, last: None }
    }
}

/// The product of packed factors, tile by tile: the left factor's part that fits the second-level
/// cache stays there, the right factor's sliver in the first-level cache.
///
/// # Safety
///
/// The CPU must have the instructions of `table`. The factors must have as many slivers as
/// `target` has tiles, begun ones included, each of `depth`.
pub(super) unsafe fn product(
    table: &Table,
    mut target: BlockMut<'_>,
    factors: &Factors<'_>,
    update: Update,
) {
    let (rows, columns, stride) = (target.rows(), target.columns(), target.stride());
    let block_rows = ROWS / table.rows * table.rows;
    let Factors { left, right, right_gap } = factors;
    for top in (0..rows).step_by(block_rows) {
        let bottom = rows.min(top + block_rows);
        for column in (0..columns).step_by(table.columns) {
            let sliver = right.wrapping_add(column / table.columns * right_gap);
            for row in (top..bottom).step_by(table.rows) {
                let start = left.start.wrapping_add(row / table.rows * left.gap);
                let high = table.rows.min(rows - row);
                let (from, left_step) = match left.last {
                    Some(last) if high < table.rows => (last.as_ptr(), table.rows),
                    _ => (start, left.step),
                };
                let place = target.start().wrapping_add(row + column * stride);
                let wide = table.columns.min(columns - column);
                let job = Tile {
                    depth: left.depth,
                    left: from,
                    left_step,
                    right: sliver,
                    target: place,
                    stride,
                    update,
                };
                // SAFETY: the slivers are as deep as said; a whole tile lies within the target,
                // and a cut one goes through a buffer.
                unsafe {
                    if high == table.rows && wide == table.columns {
                        (table.tile)(&job);
                    } else {
                        cut_tile(table, &job, high, wide);
                    }
                }
            }
        }
    }
}

/// A tile of which only `high` rows and `wide` columns lie within the target.
///
/// # Safety
///
/// As for [`tile`](super::tile::tile), but for the target, which has `high` × `wide` numbers.
unsafe fn cut_tile(table: &Table, job: &Tile, high: usize, wide: usize) {
    let mut whole = [0.0; MOST];
    let own =
        Tile { target: whole.as_mut_ptr(), stride: table.rows, update: Update::Replace, ..*job };
    // SAFETY: the caller's promise for the factors; `whole` has room for the largest tile.
    unsafe { (table.tile)(&own) };
    for column in 0..wide {
        for row in 0..high {
            let value = whole[column * table.rows + row];
            let place = job.target.wrapping_add(column * job.stride + row);
            // SAFETY: `high` × `wide` numbers of the target may be written, by the caller.
            unsafe {
                *place = match job.update {
                    Update::Replace => value,
                    Update::Add => *place + value,
                    Update::Subtract => *place - value,
                };
            }
        }
    }
}
