//! Digests of what is read: by which algorithm, as a value, and how it is come by.
//!
//! [`Hasher`] takes a file from front to end. [`Xor32`] takes blocks in any order.

mod algorithm;
mod hasher;
mod xor32;

pub use algorithm::{Algorithm, Digest};
pub use hasher::Hasher;
pub use xor32::Xor32;
