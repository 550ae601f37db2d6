//! What can go wrong while bytes move: operation, path and cause. All messages of flatout have this
//! shape: `cannot open "NAME": No such file or directory`, the name in quotes and with escapes.

use std::io;
use std::path::{Path, PathBuf};

pub use flatout_sys::cause::cause_text;

/// An error of this room. The text is one line; the path is shown with escapes.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("cannot {operation} {path:?}: {cause}", cause = cause_text(source))]
    System {
        /// What was tried, as a verb: `open`, `read`, `map`, …
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The operand is of a kind that this operation does not take.
    #[error("cannot {operation} {path:?}: {reason}")]
    Refused {
        /// What was tried.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it is not done.
        reason: String,
    },
    /// The file became shorter while it was read.
    #[error("{path:?} was cut short while it was read: it ends before byte {expected_bytes}")]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Where the read should have ended.
        expected_bytes: u64,
    },
}

impl Error {
    /// Wraps the kernel's answer; made for `map_err`.
    pub fn system<'a, E: Into<io::Error>>(
        operation: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(E) -> Self + 'a {
        move |source| Self::System { operation, path: path.to_owned(), source: source.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_names_operation_path_and_cause() {
        let source = io::Error::from_raw_os_error(2);
        let error = Error::system("open", Path::new("a\nb"))(source);
        assert_eq!(error.to_string(), "cannot open \"a\\nb\": No such file or directory");
    }
}
