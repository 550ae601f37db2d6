//! Dense products of doubles, and the three other kernels that an LU factorisation is made of, as
//! fast as the vector units allow: AVX-512, AVX2 with FMA, SSE2 or NEON, chosen at run time.
//!
//! All matrices are column-major. Everything here works in the thread that calls it; sharing work
//! out among threads is the caller's. The structure is that of Goto and van de Geijn, "Anatomy of
//! high-performance matrix multiplication", ACM TOMS 34(3), 2008: both factors are copied into the
//! order in which a tile of registers takes them.
//!
//! Read next: `tile`, the innermost loop; [`block`], how a part of a matrix is handed over.

pub mod block;
pub mod doubles;
mod kernel;
mod lanes;
mod narrow;
mod pack;
mod product;
mod tile;
mod triangle;

pub use block::{Block, BlockMut};
pub use doubles::Doubles;
pub use kernel::{Kernels, Level};
pub use narrow::NARROW_COLUMNS;
pub use product::{PackedLeft, Room};
pub use tile::Update;
pub use triangle::Step;

#[cfg(test)]
mod tests;
