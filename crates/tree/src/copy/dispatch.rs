//! What is to be done next, and by whom: the one trait through which a copy gets its work.
//!
//! Work is cut into pieces that can be done in any order: entries of one directory, a part of a
//! large listing, a directory to begin with, a large file that others may help with. A directory
//! is complete when all of its pieces are; its attributes are set then.

mod pool;
mod ready;
mod single;

use std::ffi::CString;
use std::sync::Arc;

use super::content::Large;
use super::directory::{Directory, Identity, Origin};
use super::failure::Refusal;
use super::job::Operand;
use super::links::Claim;
use crate::spool::names::Batch;

pub(super) use pool::Pool;
pub(super) use single::Single;

/// A piece of work.
pub(super) enum Work {
    /// What the user named.
    Operand(Operand),
    /// Names that lie in one directory, none of them a directory.
    Entries(Arc<Directory>, Batch),
    /// A large directory, from where its listing stands.
    Listing(Arc<Directory>),
    /// A directory below this one, to begin with.
    Visit(Arc<Directory>, CString, Origin),
    /// Directories below this one are to be visited, as soon as somebody has time.
    Below(Arc<Directory>),
    /// Directories below this one are forgotten: their names cannot be read back.
    Lost(Arc<Directory>, Refusal),
    /// A large file that somebody copies.
    Large(Arc<Large>),
}

/// A directory in which a thread was.
pub(super) type Near<'a> = Option<&'a Arc<Directory>>;

impl Work {
    /// The directory of whose entries it is a piece.
    pub(super) fn directory(&self) -> Near<'_> {
        match self {
            Self::Entries(directory, _) | Self::Listing(directory) => Some(directory),
            _ => None,
        }
    }
}

/// Gives out work to those who do it.
pub(super) trait Dispatch: Sync {
    /// The next piece for this thread, which has none; waits for one. `near` is the directory in
    /// which it was. `None`: everything is done, or the copy was stopped.
    fn next_batch(&self, near: Near<'_>) -> Option<Work>;

    /// This thread found more to do, for itself or others.
    fn offer(&self, found: Vec<Work>);

    /// This thread has done its piece.
    fn finished(&self);

    /// One of several names of a file turned up: whether it was copied, and where to.
    ///
    /// Errors: what is remembered of links lies in a file that cannot be read.
    fn claim_link(&self, identity: Identity, names: u64) -> Result<Claim<'_>, Refusal>;

    /// A piece of this directory is done; true when it was the last.
    fn directory_done(&self, directory: &Directory) -> bool {
        directory.is_last()
    }
}
