//! Why a bench or a piece of work could not be done.

use std::io;

use flatout_measure::{TrialError, Warning};

use crate::workers::ThreadError;

/// An error of this room. Its text is one line.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Bytes could not be moved.
    #[error(transparent)]
    Io(#[from] flatout_io::Error),
    /// What was asked for makes no sense or no bounds; nothing was done.
    #[error("{0}")]
    Usage(String),
    /// It cannot be done, for a reason that programs know by its code; nothing was done.
    #[error("{}", .0.text)]
    Warned(Warning),
    /// The machine has not the room for it; nothing was done, or what was done was removed.
    #[error("{0}")]
    NoRoom(String),
    /// The other end of the network cannot be reached, or does not want to; nothing was measured.
    #[error("{0}")]
    Network(String),
    /// The machine has not the threads for it; none of them did anything.
    #[error(transparent)]
    Thread(#[from] ThreadError),
}

/// Whether the kernel, or a filter before it, refuses a call, whatever is asked of it.
pub(crate) fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported)
}

impl From<ThreadError> for TrialError {
    fn from(error: ThreadError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<Error> for TrialError {
    fn from(error: Error) -> Self {
        match error {
            Error::Warned(why) => Self::NoMore(why),
            error => Self::Failed(error.to_string()),
        }
    }
}
