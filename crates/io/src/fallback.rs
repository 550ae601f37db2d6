//! "This kernel or filesystem can't", as a value.

use std::fmt::Display;

/// What was asked for, could not be done, and what was done instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fallback {
    /// Stable code of the warning, for example `direct_refused`.
    pub code: &'static str,
    /// One sentence: what from, what to, and why.
    pub text: String,
}

impl Fallback {
    /// What could not be had, why, and what is done instead.
    pub fn new(code: &'static str, what: &str, why: impl Display, instead: &str) -> Self {
        Self { code, text: format!("{what} was not possible: {why}; {instead}") }
    }
}
