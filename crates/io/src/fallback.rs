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

    /// The sentence for whom nothing is done instead.
    pub fn refusal(&self) -> &str {
        self.text.rsplit_once("; ").map_or(&self.text, |(refusal, _)| refusal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_does_not_say_what_is_done_instead() {
        let fallback = Fallback::new("direct_refused", "direct I/O", "a; b", "read buffered");
        assert_eq!(fallback.text, "direct I/O was not possible: a; b; read buffered");
        assert_eq!(fallback.refusal(), "direct I/O was not possible: a; b");
    }
}
