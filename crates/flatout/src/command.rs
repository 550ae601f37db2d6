//! One file per command: from arguments to a record, or to rows that are written as they come.

use std::path::PathBuf;

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

/// The program that runs; as it was called, where /proc is hidden.
pub fn own_program() -> PathBuf {
    let called = |_| std::env::args_os().next().unwrap_or_default().into();
    std::env::current_exe().unwrap_or_else(called)
}
