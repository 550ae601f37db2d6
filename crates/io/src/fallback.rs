//! "This kernel or filesystem can't", as a value.

/// What was asked for, could not be done, and what was done instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fallback {
    /// Stable code of the warning, for example `direct_refused`.
    pub code: &'static str,
    /// One sentence: what from, what to, and why.
    pub text: String,
}

impl Fallback {
    /// A fallback with its code and sentence.
    pub fn new(code: &'static str, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}
