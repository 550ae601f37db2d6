//! What could not be kept, said once per target filesystem, and in the end how often.
//!
//! Says it to the watch of the copy; whether something counts as failed is decided elsewhere.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::sync::Mutex;

use flatout_io::cause_text;
use rustix::io::Errno;

use crate::copy::Event;
use crate::copy::event::{Notice, Watch};
use crate::lock::lock;

/// Remarks that are made. Kinds are few; who copies to so many filesystems has heard enough.
const MOST_REMARKS: usize = 4096;

flatout_sys::words! {
    /// Something that is not kept.
    pub(super) enum Loss: text, ALL {
        Owner = "cannot keep owners",
        SetId = "cannot keep set-user-ID and set-group-ID bits without their owner",
        Mode = "cannot keep permissions",
        /// What was accepted is not there afterwards.
        ModeForgotten = "cannot keep all permissions: what it accepts it does not have afterwards",
        Times = "cannot keep times",
        /// The same of times.
        TimesForgotten = "cannot keep times: what it accepts it does not have afterwards",
        /// The filesystem has times, but none so early or so late.
        TimeRange = "cannot keep times so early or so late: the nearest it has are set",
        /// A POSIX list.
        Acl = "cannot keep access control lists",
        /// A list of another kind, as NFS has them on each file.
        OtherAcl = "cannot keep access control lists of this kind",
        Capability = "cannot keep file capabilities",
        Context = "cannot keep security contexts",
        UserAttribute = "cannot keep extended attributes (user.*)",
        TrustedAttribute = "cannot keep extended attributes (trusted.*)",
        SecurityAttribute = "cannot keep extended attributes (security.*)",
        OtherAttribute = "cannot keep some extended attributes",
        /// A directory is locked, and flags are not kept.
        Locked = "directories of the source are locked by chattr, their copies are not; --preserve=all,flags keeps that",
        Flags = "cannot keep some of the flags of chattr",
        Project = "cannot keep project ids",
    }
}

/// How many entries lost something, by what.
pub(in crate::copy) type Losses<T> = [T; Loss::ALL.len()];

impl Loss {
    /// A stable code.
    pub(super) const fn code(self) -> &'static str {
        match self {
            Self::Owner => "owner_not_kept",
            Self::SetId => "set_id_not_kept",
            Self::Mode | Self::ModeForgotten => "mode_not_kept",
            Self::Times | Self::TimesForgotten => "times_not_kept",
            Self::TimeRange => "times_clamped",
            Self::Acl | Self::OtherAcl => "acl_not_kept",
            Self::Capability => "capability_not_kept",
            Self::Context => "context_not_kept",
            Self::UserAttribute
            | Self::TrustedAttribute
            | Self::SecurityAttribute
            | Self::OtherAttribute => "xattr_not_kept",
            Self::Locked | Self::Flags => "flags_not_kept",
            Self::Project => "project_not_kept",
        }
    }
}

/// What is not kept, and why.
pub(super) type Lost = (Loss, Option<Errno>);

/// What was said already, and why or of which filesystem.
pub(in crate::copy) struct Remarks<'a> {
    pub(super) watch: &'a dyn Watch,
    said: Mutex<BTreeSet<(&'static str, u64)>>,
}

impl<'a> Remarks<'a> {
    pub(super) fn new(watch: &'a dyn Watch) -> Self {
        Self { watch, said: Mutex::default() }
    }

    /// Says that something is not kept of what has this path, unless it was said for this filesystem.
    pub(super) fn say(&self, (loss, cause): Lost, device: u64, path: impl FnOnce() -> OsString) {
        let cause = cause.map(|errno| format!(": {}", cause_text(&errno.into())));
        self.once((loss.text(), device), || Notice {
            code: loss.code(),
            text: format!("{}{}", loss.text(), cause.unwrap_or_default()),
            first: Some(path()),
        });
    }

    /// Says how many entries lost what, where the first was not the only one. What is looked for once for a
    /// filesystem is lost by nobody knows how many.
    pub(in crate::copy) fn sum_up(&self, losses: &Losses<u64>) {
        let is_counted = |loss| !matches!(loss, Loss::ModeForgotten | Loss::TimesForgotten);
        let all = Loss::ALL.into_iter().zip(losses);
        for (loss, count) in all.filter(|&(loss, &count)| count > 1 && is_counted(loss)) {
            let text = format!("{}: {count} entries in all", loss.text());
            self.watch.event(&Event::Notice(Notice { code: loss.code(), text, first: None }));
        }
    }

    /// Says something unless it was said before.
    pub(in crate::copy) fn once(&self, what: (&'static str, u64), notice: impl FnOnce() -> Notice) {
        // A thread that panicked here left a set as good as any.
        let is_new = {
            let mut said = lock(&self.said);
            said.len() < MOST_REMARKS && said.insert(what)
        };
        if is_new {
            self.watch.event(&Event::Notice(notice()));
        }
    }
}
