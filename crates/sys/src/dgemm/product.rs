//! Products of whole matrices, tile by tile.

use std::io;
use std::path::Path;
use std::sync::OnceLock;

use super::block::{Block, BlockMut};
use super::doubles::Doubles;
use super::kernel::{Kernels, Level, Table};
use super::tile::{MOST, Tile, Update};
use super::triangle::Step;
use crate::affinity::allowed_cpus;
use crate::cpu_cache::{DataCache, data_caches};
use crate::numa::parse_cpu_list;

/// Most columns of the left factor that are taken at a time.
pub(super) const MOST_DEPTH: usize = 512;
/// Columns of the right factor that are packed at a time: 12 MiB. The left factor is packed once for
/// each such part.
const COLUMNS: usize = 3072;
/// What a CPU is taken to have of the second-level cache: where nobody says, at least, at most.
const CACHE_BYTES: [u64; 3] = [512 << 10, 256 << 10, 4 << 20];

/// Numbers of the left factor that are taken at a time. They stay in the second-level cache and
/// leave room for slivers of the right factor that come and go: half of it was as fast as 0.7 and
/// 1 to 3 % faster than 0.35, n = 1800, Zen 4 with 1 MiB, AVX2 and AVX-512, 2026-11-23.
fn left_numbers() -> usize {
    static NUMBERS: OnceLock<usize> = OnceLock::new();
    *NUMBERS.get_or_init(|| numbers_of(Path::new("/"), &allowed_cpus().unwrap_or_default()))
}

/// Those that fit all of these CPUs, of which a thread may have any: cores of one machine differ.
fn numbers_of(root: &Path, cpus: &[usize]) -> usize {
    let own = cpus.iter().map(|&cpu| half_of_second_level(&data_caches(root, cpu)));
    own.min().unwrap_or_else(|| half_of_second_level(&[]))
}

/// Numbers that fill half of a CPU's share of the second-level cache.
fn half_of_second_level(caches: &[DataCache]) -> usize {
    let [unknown, least, most] = CACHE_BYTES;
    let share = |cache: &DataCache| {
        let cpus = parse_cpu_list(&cache.shared_cpus).map_or(1, |cpus| cpus.len().max(1));
        cache.bytes / cpus as u64
    };
    let bytes = caches.iter().find(|cache| cache.level == 2).map_or(unknown, share);
    bytes.clamp(least, most) as usize / 2 / size_of::<f64>()
}

/// Rows of the left factor that are taken at a time: whole tiles.
fn block_rows(table: &Table, depth: usize) -> usize {
    (left_numbers() / depth.max(1) / table.rows).max(1) * table.rows
}

/// Memory for the packed factors of one thread.
pub struct Room {
    left: PackedLeft,
    pub(super) right: Doubles,
    pub(super) triangle: Vec<f64>,
    pub(super) last: Vec<f64>,
    /// Columns and rows of what `take_right` took.
    packed: ([usize; 2], Option<Level>),
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
            left: PackedLeft::new(left_numbers(), 1)?,
            right: Doubles::new(MOST_DEPTH * columns)?,
            triangle: vec![0.0; Step::MOST_COLUMNS.pow(2)],
            last: Vec::new(),
            packed: ([0; 2], None),
        })
    }

    /// Columns that [`right`](Self::right) has room for.
    pub(super) fn columns(&self) -> usize {
        self.right.as_slice().len() / MOST_DEPTH
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
        if depth == 0 && update == Update::Replace {
            (0..columns).for_each(|column| target.column(column).fill(0.0));
        }
        let (most_columns, most_deep) = (room.columns(), self.depth_of(depth));
        for column in (0..columns).step_by(most_columns) {
            let width = most_columns.min(columns - column);
            for step in (0..depth).step_by(most_deep) {
                let deep = most_deep.min(depth - step);
                room.take_right(self, right.part(step, column, deep, width));
                let update = match update {
                    Update::Replace if step > 0 => Update::Add,
                    _ => update,
                };
                let most_rows = block_rows(self.0, deep);
                for row in (0..rows).step_by(most_rows) {
                    let high = most_rows.min(rows - row);
                    room.left.take(self, left.part(row, step, high, deep));
                    let (_, below) = target.again().split_rows(row);
                    let (_, part) = below.split_rows(high).0.split_columns(column);
                    self.multiply_packed(part.split_columns(width).0, &room.left, update, room);
                }
            }
        }
    }
}

/// Some rows and columns of a left factor, packed for products in several threads.
pub struct PackedLeft {
    numbers: Doubles,
    pub(super) rows: usize,
    pub(super) depth: usize,
    level: Option<Level>,
}

impl PackedLeft {
    /// Room for parts of up to `rows` × `depth`, and none in it.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new(rows: usize, depth: usize) -> io::Result<Self> {
        // The tallest tile has 24 rows.
        let numbers = Doubles::new(rows.next_multiple_of(24) * depth)?;
        Ok(Self { numbers, rows: 0, depth: 0, level: None })
    }

    /// Takes a copy of a part.
    ///
    /// # Panics
    /// Where it is larger than the room for it.
    pub fn take(&mut self, kernels: Kernels, left: Block<'_>) {
        let table = kernels.0;
        let (rows, depth) = (left.rows(), left.columns());
        let length = rows.next_multiple_of(table.rows) * depth;
        (table.pack_left)(&mut self.numbers.as_mut_slice()[..length], left);
        (self.rows, self.depth, self.level) = (rows, depth, Some(table.level));
    }

    /// Where it lies.
    ///
    /// # Panics
    /// Where it was packed for other kernels.
    pub(super) fn slivers(&self, table: &Table) -> Slivers<'_> {
        assert!(self.level == Some(table.level), "it was packed for these kernels");
        let (start, gap) = (self.numbers.as_slice().as_ptr(), table.rows * self.depth);
        Slivers { start, step: table.rows, gap, depth: self.depth, last: None }
    }
}

impl Room {
    /// Packs some rows of a right factor for [`Kernels::multiply_packed`].
    ///
    /// # Panics
    /// Where it is wider than the room was made for, or deeper than [`Kernels::depth_of`] says.
    pub fn take_right(&mut self, kernels: Kernels, right: Block<'_>) {
        let (table, deep) = (kernels.0, right.rows());
        let columns = right.columns();
        let packed =
            &mut self.right.as_mut_slice()[..columns.next_multiple_of(table.columns) * deep];
        (table.pack_right)(packed, right, deep);
        self.packed = ([columns, deep], Some(table.level));
    }
}

impl Kernels {
    /// Columns by which a left factor of `depth` columns is best taken: no step is much shorter than
    /// others.
    pub fn depth_of(self, depth: usize) -> usize {
        depth.div_ceil(depth.div_ceil(self.0.depth).max(1)).max(1)
    }

    /// Works out `left` × what [`Room::take_right`] took and puts it into `target`.
    ///
    /// # Panics
    /// Where the shapes do not fit.
    pub fn multiply_packed(
        self,
        target: BlockMut<'_>,
        left: &PackedLeft,
        update: Update,
        room: &Room,
    ) {
        let (table, ([columns, deep], level)) = (self.0, room.packed);
        assert!(left.depth == deep, "the factors fit each other");
        assert!(level == Some(table.level), "they were packed for these kernels");
        assert!(target.rows() == left.rows && target.columns() == columns, "so does the target");
        let factors = Factors {
            left: left.slivers(table),
            right: room.right.as_slice().as_ptr(),
            right_gap: table.columns * deep,
        };
        // SAFETY: both factors were packed with these shapes, padded to whole tiles of this table.
        unsafe { product(table, target, &factors, update) };
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
    let Factors { left, right, right_gap } = factors;
    let block_rows = block_rows(table, left.depth);
    for top in (0..rows).step_by(block_rows) {
        let bottom = rows.min(top + block_rows);
        // Each tile asks for its share of the sliver of the right factor that comes next.
        let tiles = (bottom - top).div_ceil(table.rows);
        let next_numbers = (table.columns * left.depth).div_ceil(tiles);
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
                    next: sliver.wrapping_add(right_gap + (row - top) / table.rows * next_numbers),
                    next_numbers,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(level: u32, bytes: u64, shared_cpus: &str) -> usize {
        let shared_cpus = shared_cpus.to_owned();
        half_of_second_level(&[DataCache { level, bytes, shared_cpus }])
    }

    #[test]
    fn the_left_factor_fills_half_of_what_a_cpu_has_of_the_second_level() {
        assert_eq!(numbers(2, 1 << 20, "0"), 1 << 16);
        assert_eq!(numbers(2, 2 << 20, "0,64"), 1 << 16);
        assert_eq!(numbers(2, 4 << 20, "8-11"), 1 << 16);
        assert_eq!(numbers(2, 1 << 20, ""), 1 << 16, "nobody says who shares it");
    }

    #[test]
    fn the_cpus_that_a_process_may_have_decide_and_not_the_first_one() {
        let root = tempfile::tempdir().unwrap();
        for (cpu, size) in [(0, "256K"), (1, "2048K"), (2, "2048K"), (3, "1024K")] {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}/cache/index2");
            let folder = root.path().join(folder);
            std::fs::create_dir_all(&folder).unwrap();
            for (name, text) in [("level", "2"), ("type", "Unified"), ("size", size)] {
                std::fs::write(folder.join(name), text).unwrap();
            }
        }
        assert_eq!(numbers_of(root.path(), &[1, 2]), 1 << 17);
        assert_eq!(numbers_of(root.path(), &[1, 3]), 1 << 16, "the least of them");
        assert_eq!(numbers_of(root.path(), &[]), 1 << 15);
    }

    #[test]
    fn a_cache_that_is_unknown_or_cannot_be_true_leaves_room_for_a_tile() {
        assert_eq!(half_of_second_level(&[]), 1 << 15);
        assert_eq!(numbers(3, 32 << 20, "0-1"), 1 << 15);
        assert_eq!(numbers(2, 512 << 10, "0-63"), 1 << 14);
        assert_eq!(numbers(2, 1 << 30, "0"), 1 << 18);
        for kernels in Level::ALL.into_iter().filter_map(Kernels::at) {
            let Table { rows, depth, .. } = *kernels.0;
            assert!(half_of_second_level(&[]).min(numbers(2, 1, "0")) >= rows * depth);
        }
    }
}
