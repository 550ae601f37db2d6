//! The kernels of each instruction set, and the choice among them.

use super::lanes::{Baseline, Lanes};
use super::narrow::{Column, column};
use super::tile::{Tile, tile};
use super::triangle::{Solve, solve};

crate::words! {
    /// An instruction set.
    #[derive(PartialOrd, Ord)]
    pub enum Level: name {
        /// What every CPU of the architecture has: SSE2, NEON.
        Baseline = "baseline",
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
    /// has 24 or 16 KiB of the first-level cache. Figures: docs/measuring.md.
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
}

/// The kernels of an instruction set that this CPU has.
#[derive(Clone, Copy)]
pub struct Kernels(pub(super) &'static Table);

impl Kernels {
    /// The widest that this CPU has.
    pub fn best() -> Self {
        let levels = [Level::Avx512, Level::Avx2];
        levels.into_iter().find_map(Self::at).unwrap_or(Self(&BASELINE))
    }

    /// Those of `level`; `None` where this CPU has them not.
    pub fn at(level: Level) -> Option<Self> {
        match level {
            Level::Baseline => Some(Self(&BASELINE)),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => {
                let has = crate::instruction_set::cpu_has!("avx2")
                    && crate::instruction_set::cpu_has!("fma");
                has.then_some(Self(&x86::AVX2))
            }
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => {
                crate::instruction_set::cpu_has!("avx512f").then_some(Self(&x86::AVX512))
            }
            #[cfg(not(target_arch = "x86_64"))]
            Level::Avx2 | Level::Avx512 => None,
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

static BASELINE: Table = Table {
    level: Level::Baseline,
    rows: BASELINE_REGISTERS * Baseline::COUNT,
    columns: 4,
    depth: 512,
    solve_rows: 4,
    solve_columns: 2 * Baseline::COUNT,
    tile: tile::<Baseline, BASELINE_REGISTERS, 4>,
    solve: solve::<Baseline, 4, 2>,
    column: column::<Baseline>,
};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{__m256d, __m512d};

    use super::{Column, Level, Solve, Table, Tile, column, solve, tile};

    pub(super) static AVX512: Table = Table {
        level: Level::Avx512,
        rows: 24,
        columns: 8,
        depth: 384,
        solve_rows: 8,
        solve_columns: 16,
        tile: tile_avx512,
        solve: solve_avx512,
        column: column_avx512,
    };

    pub(super) static AVX2: Table = Table {
        level: Level::Avx2,
        rows: 12,
        columns: 4,
        depth: 512,
        solve_rows: 4,
        solve_columns: 8,
        tile: tile_avx2,
        solve: solve_avx2,
        column: column_avx2,
    };

    #[target_feature(enable = "avx512f")]
    unsafe fn tile_avx512(job: &Tile) {
        // SAFETY: the caller keeps the contract of `tile`; the CPU has AVX-512F.
        unsafe { tile::<__m512d, 3, 8>(job) }
    }

    #[target_feature(enable = "avx512f")]
    unsafe fn solve_avx512(job: &Solve) {
        // SAFETY: the caller keeps the contract of `solve`; the CPU has AVX-512F.
        unsafe { solve::<__m512d, 8, 2>(job) }
    }

    #[target_feature(enable = "avx512f")]
    unsafe fn column_avx512(job: &Column) -> f64 {
        // SAFETY: the caller keeps the contract of `column`; the CPU has AVX-512F.
        unsafe { column::<__m512d>(job) }
    }

    #[target_feature(enable = "avx2,fma")]
    unsafe fn tile_avx2(job: &Tile) {
        // SAFETY: the caller keeps the contract of `tile`; the CPU has AVX2 and FMA.
        unsafe { tile::<__m256d, 3, 4>(job) }
    }

    #[target_feature(enable = "avx2,fma")]
    unsafe fn solve_avx2(job: &Solve) {
        // SAFETY: the caller keeps the contract of `solve`; the CPU has AVX2 and FMA.
        unsafe { solve::<__m256d, 4, 2>(job) }
    }

    #[target_feature(enable = "avx2,fma")]
    unsafe fn column_avx2(job: &Column) -> f64 {
        // SAFETY: the caller keeps the contract of `column`; the CPU has AVX2 and FMA.
        unsafe { column::<__m256d>(job) }
    }
}
