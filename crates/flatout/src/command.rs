//! One file per command: from arguments to a record, or to rows that are written as they come.

pub mod bench;
pub mod compare;
pub mod completions;
pub mod compute;
pub mod copy;
pub mod cp;
pub mod help;
pub mod history;
pub mod man;
pub mod read;
pub mod report;
pub mod serve;
pub mod sum;
pub mod transfer;
pub mod tune;
pub mod versus;
pub mod write;
