//! One run of one program: called, timed and accounted for.

use crate::versus::heat::{Finished, Invocation};

/// What a run cost, and what it left behind.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spent {
    /// From just before the first instruction of the program to its end.
    pub elapsed_ns: u64,
    /// CPU time in user mode, children that it waited for included.
    pub user_ns: u64,
    /// CPU time in the kernel, likewise.
    pub system_ns: u64,
    /// Largest resident set.
    pub peak_memory_bytes: Option<u64>,
    /// Whose resident set that is.
    pub peak_memory_of: &'static str,
    /// Its output and its end.
    pub finished: Finished,
}

/// Why a run has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunError {
    /// The program could not be started.
    Refused(String),
    /// It took longer than it may, and was ended.
    TooLong {
        /// The time that it had.
        limit_ns: u64,
    },
    /// The user wants to stop; the program was ended.
    Interrupted,
}

/// Runs programs.
pub trait Runner {
    /// Runs one to its end, at most `limit_ns`.
    ///
    /// Errors: it gave no result. A program that fails by itself is a result.
    fn run(&mut self, invocation: &Invocation, limit_ns: u64) -> Result<Spent, RunError>;
}
