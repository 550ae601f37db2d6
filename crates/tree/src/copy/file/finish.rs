//! The end of a file: it gets its attributes and its name, and is noted; or it is taken back.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};

use flatout_sys::descriptor;
use rustix::fs::{Stat, Timespec, Timestamps};

use super::Setback;
use super::cut::has_become_another;
use super::place::{Bytes, CREATE, Name, Over, Place, needs_no_directory, unlocked};
use super::room::has_room_in_place;
use super::source::{Opened, State};
use crate::copy::attributes::PRIVATE;
use crate::copy::content::Copied;
use crate::copy::lane::MUCH_BYTES;
use crate::copy::temporary::{Discarded, move_to_free};
use crate::copy::{
    Action, Appearance, Entry, Outcome, Refusal, Skip, Trouble, mark, mirror, target,
};
use crate::file_data;

impl Place {
    /// Sets the attributes of a file whose bytes are all there, gives it its name, and notes it.
    pub(super) fn finish(
        self,
        opened: &Opened<'_>,
        (copied, state): (Copied, State),
    ) -> Result<Outcome, Setback> {
        let entry = opened.entry;
        let copy = entry.copy;
        let (place, mut finished) = self.with_attributes(opened)?;
        copy.targets.begin_writing(place.file.as_fd());
        let looked = copy.is_bound(entry, &opened.facts).then(|| rustix::fs::fstat(&place.file));
        let looked = looked.transpose().map_err(target("examine"));
        let mark = match looked.and_then(|facts| place.closed_once().map(|()| facts)) {
            Ok(facts) => facts.map(|facts| mark(&facts)),
            Err(trouble) => return Err(place.give_up(opened, trouble.into())),
        };
        // What was read is what the source was all the time, and nothing of it is missing.
        let is_whole = finished == Ok(true);
        let mut is_certain = state == State::Same && is_whole && !copied.is_assumed;
        let Self { file, name, made, .. } = place;
        let is_new = matches!(name, Name::New);
        // What is locked gets no name any more.
        let mut lock = |file: &OwnedFd| {
            let (from, to) = (opened.file.as_fd(), file.as_fd());
            if finished.is_ok() {
                let set = copy.attributes.end_flags((from, to), &opened.facts, opened.flags, made);
                is_certain &= set == Ok(true);
                if let Err(refusal) = set {
                    finished = Err(refusal);
                }
            }
            if is_certain { seen(opened, file) } else { None }
        };
        let made = match name {
            Name::New | Name::Old => {
                let made = lock(&file);
                // What was moved aside for it comes back.
                let again = is_new && copy.backups.is_some();
                let again = again.then(|| rustix::io::fcntl_dupfd_cloexec(&file, 3));
                // Some filesystems tell only now that bytes were lost.
                closed(file).inspect_err(|_| match again {
                    Some(Ok(file)) => discard(entry, &file, None),
                    _ => unfinish(entry, &opened.facts),
                })?;
                // What was there may have been the same a moment ago, with other bytes.
                made.filter(|_| is_new)
            }
            Name::Temporary(name, over) => {
                let act = || move_in(entry, (&name, &over));
                if let Err(trouble) = unlocked(opened, act) {
                    discard(entry, &file, Some(&name));
                    return Err(match (trouble.target_errno(), over) {
                        (Some(errno), Over::File(_)) if needs_no_directory(errno) => {
                            Setback::Irreplaceable(errno)
                        }
                        _ => trouble.into(),
                    });
                }
                lock(&file)
            }
        };
        // A file of an overlay has another device than its directory.
        let devices = (opened.facts.st_dev, entry.pair.found.target.0);
        if let Some(made) = made
            && copy.methods.keep_change_times(devices)
        {
            let source = (&opened.facts, entry.pair.source());
            copy.evidence.note(source, opened.moment, (&made, entry.pair.target()));
        }
        let Copied { bytes_moved: bytes, method, plain: digest, .. } = copied;
        let blemish = finished.err().map(Trouble::of);
        Ok(Outcome { bytes, method, digest, mark, blemish, ..Outcome::of(Action::Copied) })
    }

    /// Sets what a file keeps of the one whose place it takes, and the attributes of its source; says what came of
    /// these. Bytes that are all there are not thrown away for one of them.
    fn with_attributes(
        self,
        opened: &Opened<'_>,
    ) -> Result<(Self, Result<bool, Refusal>), Setback> {
        let attributes = &opened.entry.copy.attributes;
        let (from, to) = (opened.file.as_fd(), self.file.as_fd());
        if let Name::Temporary(_, Over::File(predecessor)) = &self.name
            && let Err(refusal) = attributes.succeed(predecessor.as_ref(), to, self.made)
        {
            // What is there has more than what would take its place.
            return Err(self.give_up(opened, Trouble::of(refusal).into()));
        }
        let is_temporary = matches!(self.name, Name::Temporary(..));
        let called = is_temporary.then_some(opened.entry.target);
        let finished = attributes.file(from, to, &opened.facts, self.made, called);
        if let Err(refusal) = &finished {
            // Whoever leaves what is there would take it for complete, or whoever knows that only such files appear.
            let (copy, is_late) = (opened.entry.copy, refusal.errno().is_none());
            let is_atomic = copy.options.appearance == Appearance::Atomic;
            if !is_late && (is_atomic || matches!(self.name, Name::Temporary(_, Over::Nothing))) {
                let setback = Trouble::of(refusal.clone()).into();
                return Err(self.give_up(opened, setback));
            }
            // What has no room for an attribute stays, but not as if it had it.
            if !is_late || copy.rules().is_some_and(|rules| rules.skip != Skip::Nothing) {
                self.outdate(opened);
            }
        }
        Ok((self, finished))
    }

    /// Hears what closing a file says that is to be moved to its name: the lock stays until it has that. What was
    /// lost is no matter of its directory.
    fn closed_once(&self) -> Result<(), Trouble> {
        let is_moved = matches!(self.name, Name::Temporary(..));
        let file = is_moved.then(|| rustix::io::fcntl_dupfd_cloexec(&self.file, 3)).transpose();
        file.map_err(target("close"))?.map_or(Ok(()), closed)
    }

    /// Has a file that is not complete be older than its source, and gives back room behind its end; unless it is
    /// the source itself.
    fn outdate(&self, opened: &Opened<'_>) {
        let is_another = || match self.bytes {
            Bytes::All | Bytes::Different => true,
            Bytes::Own => has_become_another(opened, &self.file),
            Bytes::Stream | Bytes::None => false,
        };
        if let Ok(facts) = rustix::fs::fstat(&self.file)
            && is_another()
        {
            let _kept = rustix::fs::ftruncate(&self.file, facts.st_size as u64);
            outdate(&self.file, &facts, &opened.facts);
        }
    }

    /// Takes back what was begun. What had no room beside an old file may have it in its place.
    pub(super) fn give_up(self, opened: &Opened<'_>, setback: Setback) -> Setback {
        let entry = opened.entry;
        match &self.name {
            Name::Temporary(temporary, _) => discard(entry, &self.file, Some(temporary)),
            Name::New => discard(entry, &self.file, None),
            // It may hold a part of the source by now, and stays closed to whom that is closed, and older
            // than that. Room behind its end is given back.
            Name::Old => self.outdate(opened),
        }
        let Self { file, name, .. } = self;
        drop(file);
        if let (Name::Temporary(_, Over::File(_)), Setback::Trouble(trouble)) = (&name, &setback)
            && let Ok(Some(found)) = entry.in_the_way()
            && let Some(errno) = trouble.target_errno()
            && has_room_in_place(entry, &opened.facts, &found, errno)
        {
            return Setback::Irreplaceable(errno);
        }
        setback
    }
}

/// Moves a complete file to its name.
fn move_in(entry: Entry<'_>, (name, over): (&CStr, &Over)) -> Result<(), Trouble> {
    let directory = entry.pair.target();
    match over {
        Over::Nothing => move_to_free(directory, name, entry.target).map_err(target(CREATE)),
        _ => mirror::move_over(entry, name).map_err(Trouble::Target),
    }
}

/// Removes a file that was made here under a temporary name, or its own: then only if it is what
/// bears that.
pub(super) fn discard(entry: Entry<'_>, file: &OwnedFd, temporary: Option<&CStr>) {
    let copy = entry.copy;
    let (directory, temporaries) = (entry.pair.target(), &copy.temporaries);
    let discarded = match temporary {
        Some(name) => temporaries.discard_temporary(directory, name, file.as_fd()),
        None => temporaries.discard(directory, entry.target, file.as_fd()),
    };
    match discarded {
        Discarded::Gone => {}
        Discarded::Stays => copy.tell_of_a_remainder(entry),
        Discarded::Aside(aside) => copy.tell_of_something_aside(entry, &aside),
    }
}

/// What a complete file is now, where that is to be noted. A call, but only then.
fn seen(opened: &Opened<'_>, file: &OwnedFd) -> Option<Stat> {
    let copy = opened.entry.copy;
    // A large file may take so long that the time to note has come meanwhile.
    if opened.facts.st_size as u64 >= MUCH_BYTES {
        copy.evidence.look_at_the_clock();
    }
    copy.evidence.is_noting().then(|| rustix::fs::fstat(file).ok())?
}

/// Has a file that was complete but for what its filesystem said last look as one that is not: it is
/// private, and older than its source. It cannot be removed: its descriptor is gone, and with it what
/// tells it from a file that somebody else has put there meanwhile.
pub(super) fn unfinish(entry: Entry<'_>, source: &Stat) {
    let Ok(file) = file_data::open(entry.pair.target(), entry.target) else { return };
    let time = |facts: &Stat| (facts.st_mtime, facts.st_mtime_nsec);
    let is_made = |found: &Stat| found.st_nlink == 1 && time(found) == time(source);
    if let Ok(found) = rustix::fs::fstat(&file)
        && is_made(&found)
    {
        let _as_far_as_it_goes = rustix::fs::fchmod(&file, PRIVATE);
        outdate(&file, &found, source);
    }
}

/// Has an unfinished file be older than its source, so that whoever copies what is newer
/// (`--update`) copies it again.
fn outdate(file: &OwnedFd, found: &Stat, source: &Stat) {
    // Some filesystems count in steps of two seconds.
    const STEP_S: i64 = 2;
    if found.st_mtime.saturating_add(STEP_S) > source.st_mtime {
        let before = Timespec { tv_sec: source.st_mtime.saturating_sub(STEP_S), tv_nsec: 0 };
        let last_access = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
        let times = Timestamps { last_access, last_modification: before };
        let _as_far_as_it_goes = rustix::fs::futimens(file, &times);
    }
}

/// Closes a file and hears what its filesystem has to say to that.
pub(super) fn closed(file: OwnedFd) -> Result<(), Trouble> {
    descriptor::close(file).map_err(|error| target("close")(file_data::errno_of(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_time_have_none_before_them_or_behind() {
        let file = OwnedFd::from(tempfile::tempfile().unwrap());
        let found = rustix::fs::fstat(&file).unwrap();
        let at = |second| {
            let mut facts = found;
            facts.st_mtime = second;
            facts
        };
        for (found, source) in [(i64::MAX, 0), (0, i64::MIN), (i64::MAX, i64::MIN)] {
            outdate(&file, &at(found), &at(source));
        }
    }
}
