//! Why an entry was not copied.

use std::ffi::OsString;

use flatout_io::{cause_text, quote};
use rustix::io::Errno;

/// The reason when the user wants to stop.
const INTERRUPTED: &str = "interrupted";

/// What was tried and what the kernel said; the path is known to whoever gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// A verb and its object: `read`, `set the owner of`, …; it fits after "cannot" and before a path.
    pub operation: &'static str,
    /// Why.
    pub cause: Cause,
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The kernel's answer.
    System(Errno),
    /// The same about a temporary file in which the copy keeps what memory does not take.
    Aside(Errno),
    /// A reason of ours, as a sentence without an end.
    Reason(&'static str),
}

impl Refusal {
    /// Wraps the kernel's answer; made for `map_err`.
    pub fn of(operation: &'static str) -> impl FnOnce(Errno) -> Self {
        move |errno| Self { operation, cause: Cause::System(errno) }
    }

    /// Wraps the kernel's answer about a temporary file: a want of room there is none of the target.
    pub fn aside(operation: &'static str) -> impl FnOnce(Errno) -> Self {
        move |errno| Self { operation, cause: Cause::Aside(errno) }
    }

    /// A reason of ours.
    pub fn because(operation: &'static str, reason: &'static str) -> Self {
        Self { operation, cause: Cause::Reason(reason) }
    }

    /// The user wants to stop.
    pub fn interrupted(operation: &'static str) -> Self {
        Self::because(operation, INTERRUPTED)
    }

    /// Whether it is no more than the user's wish to stop, once that is known: the signal also ends
    /// calls that wait for a server, or for a program that serves files.
    pub fn is_interruption(&self) -> bool {
        self.cause == Cause::Reason(INTERRUPTED) || self.errno() == Some(Errno::INTR)
    }

    /// What the kernel said of the entry itself.
    pub fn errno(&self) -> Option<Errno> {
        match self.cause {
            Cause::System(errno) => Some(errno),
            Cause::Aside(_) | Cause::Reason(_) => None,
        }
    }

    /// Whether there is no room: the copy ends.
    pub fn is_final(&self) -> bool {
        matches!(self.errno(), Some(Errno::NOSPC | Errno::DQUOT))
    }
}

/// An entry that was not copied, or not whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot {operation} {path}: {cause}", operation = .refusal.operation, path = quote(.path), cause = .refusal.cause)]
pub struct Failure {
    /// What was tried, and why it was not done.
    pub refusal: Refusal,
    /// Source or target, as it is shown.
    pub path: OsString,
    /// The other one of both, where it is about both.
    pub other: Option<OsString>,
}

impl Failure {
    /// Wraps a refusal about this path.
    pub fn of(refusal: Refusal, path: OsString) -> Self {
        Self { refusal, path, other: None }
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::System(errno) | Self::Aside(errno) => {
                formatter.write_str(&cause_text(&(*errno).into()))
            }
            Self::Reason(reason) => formatter.write_str(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_a_signal_ended_is_an_interruption() {
        let of = Refusal::of("open");
        assert!(of(Errno::INTR).is_interruption());
        assert!(Refusal::interrupted("list").is_interruption());
        assert!(!Refusal::of("open")(Errno::IO).is_interruption());
        assert!(!Refusal::aside("keep")(Errno::INTR).is_interruption());
    }
}
