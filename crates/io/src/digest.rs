//! Digests of what is read: by which algorithm, as a value, and how it is come by.
//!
//! [`Hasher`] takes a file from front to end; a large one is cut ([`Cut`]) into parts that threads
//! share. [`Xor32`] takes blocks in any order.

mod algorithm;
mod hasher;
mod parts;
mod xor32;

pub use algorithm::{Algorithm, Digest};
pub use hasher::Hasher;
pub use parts::{Cut, Cutter, Fold, MAX_SEGMENT_BYTES, MIN_SEGMENT_BYTES, Part};
pub use xor32::Xor32;
