//! What could not be kept, said once per target filesystem.
//!
//! Says it to the watch of the copy; whether something counts as failed is decided elsewhere.

use std::collections::BTreeSet;
use std::sync::Mutex;

use flatout_io::cause_text;
use rustix::io::Errno;

use crate::copy::Event;
use crate::copy::event::{Notice, Watch};
use crate::lock::lock;

/// Remarks that are made. Kinds are few; who copies to so many filesystems has heard enough.
const MOST_REMARKS: usize = 4096;
const XATTR: &str = "xattr_not_kept";

/// Something that is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    Owner,
    SetId,
    Mode,
    /// What was accepted is not there afterwards.
    ModeForgotten,
    Times,
    /// The same of times.
    TimesForgotten,
    /// The filesystem has times, but none so early or so late.
    TimeRange,
    /// A POSIX list.
    Acl,
    /// A list of another kind, as NFS has them on each file.
    OtherAcl,
    Capability,
    Context,
    UserAttribute,
    TrustedAttribute,
    SecurityAttribute,
    OtherAttribute,
    /// A directory is locked, and flags are not kept.
    Locked,
    Flags,
    Project,
}

impl Loss {
    /// Whether `cp -a` has failed where it cannot keep this. What else is lost is said, no more.
    pub(super) const fn fails_cp(self) -> bool {
        matches!(self, Self::Owner | Self::Mode | Self::Times | Self::Acl)
    }

    /// Whether it is an extended attribute that is no list.
    pub(super) const fn is_attribute(self) -> bool {
        matches!(self.said().0.as_bytes(), b"xattr_not_kept" | b"capability_not_kept")
    }

    /// A stable code, and a sentence.
    pub(super) const fn said(self) -> (&'static str, &'static str) {
        match self {
            Self::Owner => ("owner_not_kept", "cannot keep owners"),
            Self::SetId => (
                "set_id_not_kept",
                "cannot keep set-user-ID and set-group-ID bits without their owner",
            ),
            Self::Mode => ("mode_not_kept", "cannot keep permissions"),
            Self::ModeForgotten => (
                "mode_not_kept",
                "cannot keep all permissions: what it accepts it does not have afterwards",
            ),
            Self::Times => ("times_not_kept", "cannot keep times"),
            Self::TimesForgotten => {
                ("times_not_kept", "cannot keep times: what it accepts it does not have afterwards")
            }
            Self::TimeRange => (
                "times_clamped",
                "cannot keep times so early or so late: the nearest it has are set",
            ),
            Self::Acl => ("acl_not_kept", "cannot keep access control lists"),
            Self::OtherAcl => ("acl_not_kept", "cannot keep access control lists of this kind"),
            Self::Capability => ("capability_not_kept", "cannot keep file capabilities"),
            Self::Context => ("context_not_kept", "cannot keep security contexts"),
            Self::UserAttribute => (XATTR, "cannot keep extended attributes (user.*)"),
            Self::TrustedAttribute => (XATTR, "cannot keep extended attributes (trusted.*)"),
            Self::SecurityAttribute => (XATTR, "cannot keep extended attributes (security.*)"),
            Self::OtherAttribute => (XATTR, "cannot keep some extended attributes"),
            Self::Locked => (
                "flags_not_kept",
                "a directory of the source is locked by chattr, its copy is not (--preserve=all,flags)",
            ),
            Self::Flags => ("flags_not_kept", "cannot keep some of the flags of chattr"),
            Self::Project => ("project_not_kept", "cannot keep project ids"),
        }
    }
}

/// What is not kept, and why.
pub(super) type Lost = (Loss, Option<Errno>);

/// What was said already, and why or of which filesystem.
pub(in crate::copy) struct Remarks<'a> {
    watch: &'a dyn Watch,
    said: Mutex<BTreeSet<(&'static str, u64)>>,
}

impl<'a> Remarks<'a> {
    pub(super) fn new(watch: &'a dyn Watch) -> Self {
        Self { watch, said: Mutex::default() }
    }

    /// Tells of an entry.
    pub(super) fn tell(&self, event: &Event) {
        self.watch.event(event);
    }

    /// Says that something is not kept, unless it was said for this filesystem.
    pub(super) fn say(&self, loss: Loss, device: u64, cause: Option<Errno>) {
        let (code, what) = loss.said();
        self.once((what, device), code, || match cause {
            Some(errno) => format!("{what}: {}", cause_text(&errno.into())),
            None => what.to_owned(),
        });
    }

    /// Says something unless it was said before.
    pub(in crate::copy) fn once(
        &self,
        what: (&'static str, u64),
        code: &'static str,
        text: impl FnOnce() -> String,
    ) {
        // A thread that panicked here left a set as good as any.
        let is_new = {
            let mut said = lock(&self.said);
            said.len() < MOST_REMARKS && said.insert(what)
        };
        if is_new {
            self.watch.event(&Event::Notice(Notice { code, text: text() }));
        }
    }
}
