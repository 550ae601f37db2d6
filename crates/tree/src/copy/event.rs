//! What is told while a copy goes on.

use std::ffi::{OsStr, OsString};

use super::Failure;
pub use super::change::Letters;
use crate::inventory::Record;
use flatout_io::transfer::Method;

flatout_sys::words! {
    /// What was done with an entry.
    pub enum Action: name, ALL {
        /// A regular file was copied.
        Copied = "copied",
        /// It was there already; its attributes were looked at.
        Unchanged = "unchanged",
        /// It became another name of a file that was copied before.
        Linked = "linked",
        /// A symlink, FIFO, socket or device was made.
        Made = "made",
        /// A directory is complete.
        Directory = "directory",
    }
}

/// The code of a source that changed while it was copied, and changed again while it was copied once more.
pub const UNSTABLE: &str = "source_unstable";

/// The code of a source that ended before its length.
pub const CUT_SHORT: &str = "source_cut_short";

/// Something that happened.
#[derive(Debug)]
pub enum Event {
    /// Something is about to be made, or was just made. Only where [`Watch::wants_each`].
    Making {
        /// The source, as it is shown.
        source: OsString,
        /// What is made.
        target: OsString,
        /// What was there is called now.
        backup: Option<OsString>,
    },
    /// An entry is done.
    Done {
        /// What was done.
        action: Action,
        /// The source, as it is shown.
        source: OsString,
        /// Bytes moved, without holes.
        bytes: u64,
        /// What moved the most of them.
        method: Option<Method>,
        /// From the first system call to the last; of a directory from its opening on.
        elapsed_ns: u64,
    },
    /// Something of an entry was changed, or of a directory is about to be. Only where
    /// [`Watch::wants_changes`].
    Changed {
        /// What, in the letters of rsync.
        letters: Letters,
        /// The source, as it is shown.
        source: OsString,
        /// What is changed.
        target: OsString,
        /// Where it leads.
        lead: Option<Lead>,
    },
    /// What an entry is in the end, where that is asked for.
    Listed(Box<Record>),
    /// Something of the target is gone. Only where [`Watch::wants_each`].
    Deleted {
        /// It, as it is shown.
        target: OsString,
        /// Its path below the operand.
        below: Vec<u8>,
        /// It was a directory.
        is_directory: bool,
    },
    /// An entry could not be copied.
    Failed(Failure),
    /// An entry is there, without something of its source for which `cp -a` fails, or is what was read of
    /// one that is written all the time ([`UNSTABLE`]) or was cut short ([`CUT_SHORT`]). What it is was said once, as a notice with this code.
    Incomplete {
        /// The source, by its absolute path.
        source: OsString,
        /// The same of the copy; of other processes it is not known.
        target: OsString,
        /// As that of the notice.
        code: &'static str,
        /// The kernel's answer, where it gave one and this process got it.
        cause: Option<rustix::io::Errno>,
    },
    /// Something could not be kept, said once.
    Notice(Notice),
}

/// Where something leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lead {
    /// A symlink, to this text.
    Symlink(OsString),
    /// It is another name of this.
    Link(OsString),
}

/// Something that could not be kept or done as asked, on this pair of filesystems or for this
/// user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Stable code, for example `owner_not_kept`.
    pub code: &'static str,
    /// One sentence.
    pub text: String,
    /// The first copy of which it is true, by its absolute path.
    pub first: Option<OsString>,
}

/// Whoever wants to know. Called by all threads, in no order.
pub trait Watch: Sync {
    /// Something happened.
    fn event(&self, event: &Event);
    /// Whether something may be overwritten, where that is to be asked.
    fn consents(&self, _target: &OsStr) -> bool {
        true
    }
    /// Whether [`Event::Changed`] is wanted: it costs a closer look at both sides.
    fn wants_changes(&self) -> bool {
        false
    }
    /// Whether [`Event::Done`] is wanted: it costs an allocation and two looks at the clock.
    fn wants_each(&self) -> bool {
        false
    }
}
