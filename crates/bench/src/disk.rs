//! What a disk does: metadata first.

pub mod metadata;
