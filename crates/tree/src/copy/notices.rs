//! What a copy says besides what failed: what it could not keep, and what it did otherwise.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use flatout_io::escape;
use rustix::io::Errno;

use super::event::{Event, Notice};
use super::job::Copy;

impl Copy<'_> {
    /// Names of one file became files of their own. Said once.
    pub(super) fn lose_links(&self, cause: &str) {
        if !self.lost_links.swap(true, Ordering::Relaxed) {
            let text = format!("some names of one file became files of their own: {cause}");
            self.notice("links_not_kept", text);
        }
    }

    /// A file was written while it was copied, and is copied once more.
    pub(super) fn tell_of_a_change(&self, source: &OsStr) {
        let text = format!("{} changed while it was copied; it is copied again", escape(source));
        self.notice("source_changed", text);
    }

    /// A file is written all the time, so that no two looks at it are the same.
    pub(super) fn tell_of_unrest(&self, source: &OsStr) {
        let text = format!(
            "{} changed again while it was copied; its copy is what was read",
            escape(source)
        );
        self.notice("source_unstable", text);
    }

    /// A file cannot be replaced for this reason, and is written in place. Said once for each reason.
    pub(super) fn tell_in_place(&self, target: &OsStr, why: Errno) {
        let mut said = self.in_place.lock().unwrap_or_else(PoisonError::into_inner);
        if !said.contains(&why) {
            said.push(why);
            let cause = flatout_io::cause_text(&why.into());
            let target = escape(target);
            let text = format!("{target} cannot be replaced and is written in place: {cause}");
            self.notice("written_in_place", text);
        }
    }

    /// An unfinished file cannot be removed.
    pub(super) fn tell_of_a_remainder(&self, target: &OsStr) {
        let target = escape(target);
        self.notice(
            "remainder",
            format!("cannot remove what was begun of {target}: it is left empty"),
        );
    }

    /// A file is copied whose name is that of a temporary file. Said once.
    pub(super) fn tell_of_a_temporary_name(&self, target: &OsStr) {
        if !self.kept_temporary.swap(true, Ordering::Relaxed) {
            let text = format!(
                "{} bears the name of a temporary file of this program: a later copy into the same directory removes it",
                escape(target)
            );
            self.notice("temporary_name", text);
        }
    }

    /// Something that is somebody else's could not get its name back.
    pub(super) fn tell_of_something_aside(&self, target: &OsStr, aside: &CStr) {
        let text = format!(
            "what took the place of {} meanwhile lies beside it now as {}",
            escape(target),
            escape(OsStr::from_bytes(aside.to_bytes()))
        );
        self.notice("left_aside", text);
    }

    fn notice(&self, code: &'static str, text: String) {
        self.watch.event(&Event::Notice(&Notice { code, text }));
    }
}
