//! One file per command: from arguments to a record.

pub mod bench;
pub mod read;
pub mod write;
