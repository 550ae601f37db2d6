//! What a copy says of its entries: what was done, what failed, what it could not keep, and what it
//! did otherwise.

use std::ffi::{CStr, OsStr};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;

use flatout_io::{escape, quote};
use flatout_sys::clock::monotonic_ns;
use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::event::{CUT_SHORT, Notice};
use super::{
    Action, Copy, Directory, Entry, Event, Failure, Outcome, Refusal, Side, Trouble, count,
};
use crate::file_data::{ENDED_EARLY, path_of};

pub(super) const LINKS_NOT_KEPT: &str = "links_not_kept";

impl Copy<'_> {
    /// Counts what came of an entry that is no directory, and tells it. Returns the bytes moved.
    pub(super) fn tell(
        &self,
        entry: Entry<'_>,
        result: Result<Outcome, Trouble>,
        begun_ns: u64,
    ) -> u64 {
        let outcome = match result {
            Ok(outcome) => outcome,
            Err(trouble) => {
                self.report(entry, trouble);
                return 0;
            }
        };
        if let Some(trouble) = outcome.blemish {
            self.report(entry, trouble);
            return outcome.bytes;
        }
        count(match outcome.action {
            Action::Copied => &self.tally.files,
            Action::Unchanged => &self.tally.unchanged,
            Action::Linked => &self.tally.linked,
            Action::Made => &self.tally.others,
            Action::Directory => &self.tally.directories,
        });
        if let Some(method) = outcome.method {
            self.tally.moved(method, outcome.bytes);
        }
        self.list(entry, outcome.digest);
        // By the rules of cp it was said before.
        if self.rules().is_none() && outcome.action != Action::Unchanged {
            self.tell_of_making(entry, None);
        }
        if self.watch.wants_each() {
            self.watch.event(&Event::Done {
                action: outcome.action,
                source: entry.path(Side::Source),
                bytes: outcome.bytes,
                method: outcome.method,
                elapsed_ns: monotonic_ns() - begun_ns,
            });
        }
        outcome.bytes
    }

    /// Tells why an entry was not copied.
    pub(super) fn report(&self, entry: Entry<'_>, trouble: Trouble) {
        let (refusal, side) = match trouble {
            Trouble::Entrusted => return,
            Trouble::Source(refusal) => (refusal, Side::Source),
            Trouble::Target(refusal) | Trouble::Obstacle(refusal) => (refusal, Side::Target),
            Trouble::Became => {
                let reason = "it changes its kind again and again";
                (Refusal::because("copy", reason), Side::Source)
            }
        };
        let other = if side == Side::Source { Side::Target } else { Side::Source };
        let other = Some(entry.path(other));
        let failure = Failure { refusal, path: entry.path(side), other };
        match side {
            // A source without room is no reason to stop.
            Side::Source => {
                self.incomplete_source(&failure.refusal, || entry.look().is_ok());
                self.fail(failure);
            }
            Side::Target => self.fail_on(entry.device(), failure),
        }
    }

    /// A name in a directory of the source, or the directory itself, cannot be looked at.
    pub(super) fn fail_source(&self, directory: &Directory, name: Option<&CStr>, refusal: Refusal) {
        self.incomplete_source(&refusal, || false);
        self.fail(Failure::of(refusal, directory.path(Side::Source, name)));
    }

    /// A directory of the source was not listed whole. Why it was stopped is said elsewhere.
    pub(super) fn fail_listing(&self, directory: &Directory, refusal: Refusal) {
        if !(self.stop.is_due() && refusal.is_interruption()) {
            self.fail_source(directory, None, refusal);
        }
    }

    /// A directory was not made, or not completed, on this device.
    pub(super) fn fail_target(
        &self,
        (directory, device): (&Directory, u64),
        name: Option<&CStr>,
        refusal: Refusal,
    ) {
        self.fail_on(device, Failure::of(refusal, directory.path(Side::Target, name)));
    }

    /// A directory was not found again, not completed, or not mirrored, on this device (0: not known); or
    /// nothing is done about a name in it.
    pub(super) fn fail_directory(
        &self,
        (directory, device): (&Directory, u64),
        name: Option<&CStr>,
        trouble: Trouble,
    ) {
        match trouble {
            Trouble::Source(refusal) => self.fail_source(directory, name, refusal),
            Trouble::Target(refusal) | Trouble::Obstacle(refusal) => {
                self.fail_target((directory, device), name, refusal);
            }
            Trouble::Became | Trouble::Entrusted => {}
        }
    }

    /// An entry was not copied to this device.
    pub(super) fn fail_on(&self, device: u64, failure: Failure) {
        if failure.refusal.is_final() {
            self.stop.fill(device);
        }
        self.fail(failure);
    }

    /// An entry was not copied, which says nothing about the others.
    pub(super) fn fail(&self, failure: Failure) {
        // Said once, for the whole copy.
        if self.stop.is_cancelled() && failure.refusal.is_interruption() {
            return;
        }
        count(&self.tally.failed);
        self.watch.event(&Event::Failed(failure));
    }

    /// Names of one file became files of their own. Said once.
    pub(super) fn lose_links(&self, entry: Entry<'_>, cause: &str) {
        self.notice_once(LINKS_NOT_KEPT, None, || {
            let first = entry.shown(Side::Target);
            format!("some names of one file became files of their own, {first} first: {cause}")
        });
    }

    /// Names were made, moved or removed in a directory while it was copied. Said once.
    pub(super) fn tell_of_a_changed_directory(&self, directory: &Directory) {
        self.notice_once("directory_changed", None, || {
            let shown = quote(directory.path(Side::Source, None));
            format!(
                "{shown} changed while it was copied: what was made or moved there meanwhile may be missing"
            )
        });
    }

    /// A file was written while it was copied, and is copied once more.
    pub(super) fn tell_of_a_change(&self, entry: Entry<'_>) {
        let source = entry.shown(Side::Source);
        let text = format!("{source} changed while it was copied; it is copied again");
        self.notice("source_changed", text);
    }

    /// The copy of a file may be none of its states: it is written all the time, or a server gave less of it
    /// than its length tells, and no error ([`CUT_SHORT`]).
    pub(super) fn tell_of_unrest(&self, entry: Entry<'_>, code: &'static str) {
        let source = entry.shown(Side::Source);
        let what = match code {
            CUT_SHORT => format!(": {ENDED_EARLY}"),
            _ => " changed again while it was copied".to_owned(),
        };
        self.notice(code, format!("{source}{what}; its copy is what was read"));
        self.attributes.is_incomplete(entry.paths(), code, None);
    }

    /// Something cannot be opened yet. Said once.
    pub(super) fn tell_of_a_lease(&self, entry: Entry<'_>, side: Side) {
        self.notice_once("lease_waited_for", None, || {
            let shown = entry.shown(side);
            format!(
                "{shown} is under a lease, or its server wants it to be opened later: what is so is waited for, 10 minutes at most"
            )
        });
    }

    /// A file cannot be replaced for this reason, and is written in place. Said once for each reason.
    pub(super) fn tell_in_place(&self, entry: Entry<'_>, why: Errno) {
        self.notice_once("written_in_place", Some(why), || {
            let (target, cause) = (entry.shown(Side::Target), flatout_io::cause_text(&why.into()));
            format!("{target} cannot be replaced and is written in place: {cause}")
        });
    }

    /// A source could not be read. Said once.
    pub(super) fn tell_that_nothing_is_deleted(&self) {
        self.notice_once("deletion_ended", None, || {
            "a source could not be read: nothing more is deleted".to_owned()
        });
    }

    /// An unfinished file cannot be removed.
    pub(super) fn tell_of_a_remainder(&self, entry: Entry<'_>) {
        let target = entry.shown(Side::Target);
        let text = format!("cannot remove what was begun of {target}: it is left empty");
        self.notice("remainder", text);
    }

    /// Removes an empty file that was made to find something out. Said once where it stays.
    pub(super) fn remove_mark(&self, directory: BorrowedFd<'_>, name: &CStr) {
        let removed = rustix::fs::unlinkat(directory, name, AtFlags::empty());
        if removed.is_err_and(|errno| errno != Errno::NOENT) {
            let path = path_of(directory).unwrap_or_default();
            let shown = quote(OsStr::from_bytes(&path));
            self.notice_once("remainder", None, || {
                format!("an empty file of this copy cannot be removed from {shown}")
            });
        }
    }

    /// A file is copied whose name is that of a temporary file. Said once.
    pub(super) fn tell_of_a_temporary_name(&self, entry: Entry<'_>) {
        self.notice_once("temporary_name", None, || {
            format!(
                "{} bears the name of a temporary file of this program: a later copy into the same directory removes it",
                entry.shown(Side::Target)
            )
        });
    }

    /// Something that is somebody else's could not get its name back.
    pub(super) fn tell_of_something_aside(&self, entry: Entry<'_>, aside: &CStr) {
        let aside = escape(OsStr::from_bytes(aside.to_bytes()));
        let target = entry.shown(Side::Target);
        let text =
            format!("what took the place of {target} meanwhile lies beside it now as {aside}");
        self.notice("left_aside", text);
    }

    /// Says something unless it was said before, for this reason.
    pub(super) fn notice_once(
        &self,
        code: &'static str,
        why: Option<Errno>,
        text: impl FnOnce() -> String,
    ) {
        let why = why.map_or(0, |errno| errno.raw_os_error().unsigned_abs().into());
        self.attributes.remarks.once((code, why), || Notice { code, text: text(), first: None });
    }

    fn notice(&self, code: &'static str, text: String) {
        self.watch.event(&Event::Notice(Notice { code, text, first: None }));
    }
}
