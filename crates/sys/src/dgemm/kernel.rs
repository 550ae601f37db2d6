//! The kernels of each instruction set, and the choice among them.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__m128d, __m256d, __m512d};

use super::block::{Block, BlockMut};
use super::lanes::{Baseline, Lanes};
use super::narrow::{Column, column};
use super::pack::{pack_columns, pack_rows, unpack_columns};
use super::tile::{Tile, tile};
use super::triangle::{Solve, solve};

crate::words! {
    /// An instruction set.
    #[derive(PartialOrd, Ord)]
    pub enum Level: name, ALL {
        /// What every CPU of the architecture has: SSE2, NEON.
        Baseline = "baseline",
        /// SSE4.1: two doubles, and a load that puts one number into both places.
        Sse41 = "sse4.1",
        /// AVX2 with FMA: four doubles.
        Avx2 = "avx2",
        /// AVX-512F: eight doubles.
        Avx512 = "avx512",
    }
}

/// The functions that one instruction set has.
pub(super) struct Table {
    pub(super) level: Level,
    /// Rows of a tile.
    pub(super) rows: usize,
    /// Columns of a tile.
    pub(super) columns: usize,
    /// Columns of the left factor that are taken at a time: a sliver of as many rows of the right one
    /// has 24 or 16 KiB of the first-level cache. Figures: docs/performance.md.
    pub(super) depth: usize,
    /// Rows that a triangle is solved by at a time.
    pub(super) solve_rows: usize,
    /// Columns that a triangle is solved for at a time.
    pub(super) solve_columns: usize,
    /// See [`tile`].
    pub(super) tile: unsafe fn(&Tile),
    /// See [`solve`].
    pub(super) solve: unsafe fn(&Solve),
    /// See [`column`].
    pub(super) column: unsafe fn(&Column) -> f64,
    /// Copies a left factor into slivers of the rows of a tile, see [`pack_rows`].
    pub(super) pack_left: fn(&mut [f64], Block<'_>),
    /// Copies a right factor into slivers of the columns of a tile, see [`pack_columns`].
    pub(super) pack_right: fn(&mut [f64], Block<'_>, usize),
    /// The way back.
    pub(super) unpack_right: fn(&[f64], BlockMut<'_>, usize),
}

/// The kernels of an instruction set that this CPU has.
#[derive(Clone, Copy)]
pub struct Kernels(pub(super) &'static Table);

impl Kernels {
    /// The widest that this CPU has.
    pub fn best() -> Self {
        let levels = [Level::Avx512, Level::Avx2, Level::Sse41];
        levels.into_iter().find_map(Self::at).unwrap_or(Self(&BASELINE))
    }

    /// Those of `level`; `None` where this CPU has them not.
    pub fn at(level: Level) -> Option<Self> {
        match level {
            Level::Baseline => Some(Self(&BASELINE)),
            #[cfg(target_arch = "x86_64")]
            Level::Sse41 => crate::instruction_set::cpu_has!("sse4.1").then_some(Self(&SSE41)),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => crate::instruction_set::cpu_has!("avx2", "fma").then_some(Self(&AVX2)),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => crate::instruction_set::cpu_has!("avx512f").then_some(Self(&AVX512)),
            #[cfg(not(target_arch = "x86_64"))]
            Level::Sse41 | Level::Avx2 | Level::Avx512 => None,
        }
    }

    /// Which they are.
    pub fn level(self) -> Level {
        self.0.level
    }
}

/// Registers of a tile's column: four columns of them, one of the left factor and one number of the
/// right one fill the 32 registers of aarch64, or the 16 of SSE2, where a product takes one more.
const BASELINE_REGISTERS: usize = if cfg!(target_arch = "aarch64") { 6 } else { 2 };

/// The table of a level: the vectors and the instructions that it is compiled for; registers of a
/// tile's column, and columns of a tile; its depth; rows that a triangle is solved by, and registers
/// of columns that it is solved for.
macro_rules! table {
    (
        $table:ident = $level:ident, $vector:ident $(with $feature:literal)?,
        tile $registers:tt x $columns:literal, depth $depth:literal, solve $rows:literal x 2
    ) => {
        static $table: Table = {
            $(#[target_feature(enable = $feature)])?
            unsafe fn tile_of(job: &Tile) {
                // SAFETY: the caller keeps the contract of `tile`; the CPU has the instructions.
                unsafe { tile::<$vector, $registers, $columns>(job) }
            }

            $(#[target_feature(enable = $feature)])?
            unsafe fn solve_of(job: &Solve) {
                // SAFETY: the caller keeps the contract of `solve`; the CPU has the instructions.
                unsafe { solve::<$vector, $rows, 2>(job) }
            }

            $(#[target_feature(enable = $feature)])?
            unsafe fn column_of(job: &Column) -> f64 {
                // SAFETY: the caller keeps the contract of `column`; the CPU has the instructions.
                unsafe { column::<$vector>(job) }
            }

            Table {
                level: Level::$level,
                rows: $registers * <$vector as Lanes>::COUNT,
                columns: $columns,
                depth: $depth,
                solve_rows: $rows,
                solve_columns: 2 * <$vector as Lanes>::COUNT,
                tile: tile_of,
                solve: solve_of,
                column: column_of,
                pack_left: pack_rows::<{ $registers * <$vector as Lanes>::COUNT }>,
                pack_right: pack_columns::<$columns>,
                unpack_right: unpack_columns::<$columns>,
            }
        };
    };
}

table!(BASELINE = Baseline, Baseline, tile BASELINE_REGISTERS x 4, depth 512, solve 4 x 2);
#[cfg(target_arch = "x86_64")]
table!(SSE41 = Sse41, __m128d with "sse4.1", tile 2 x 4, depth 512, solve 4 x 2);
#[cfg(target_arch = "x86_64")]
table!(AVX2 = Avx2, __m256d with "avx2,fma", tile 3 x 4, depth 512, solve 4 x 2);
#[cfg(target_arch = "x86_64")]
table!(AVX512 = Avx512, __m512d with "avx512f", tile 3 x 8, depth 384, solve 8 x 2);
