//! The source of a file: opened, and looked at again when it was read.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{OFlags, Stat};
use rustix::io::Errno;

use crate::copy::attributes::Flags;
use crate::copy::{Copy, Entry, Pair, Rules, Side, Specials, Trouble, kind_of, source};
use crate::file_data::{Moment, look_again, may_change_unseen, open_unseen, wait_for_a_write};

/// A source that is open, and what was known of it then.
pub(in crate::copy) struct Opened<'e> {
    pub(in crate::copy) entry: Entry<'e>,
    pub(in crate::copy) file: OwnedFd,
    pub(in crate::copy) facts: Stat,
    /// Where they are kept.
    pub(in crate::copy) flags: Flags,
    /// Just before.
    pub(super) moment: Moment,
    pub(super) reading: Reading,
}

/// How a source is opened.
#[derive(Clone, Copy)]
pub(in crate::copy) struct Reading {
    follows: bool,
    /// FIFOs and devices, too, are read.
    takes_all: bool,
}

impl Reading {
    /// A regular file, no symlink.
    pub(in crate::copy) const FILE: Self = Self { follows: false, takes_all: false };

    /// As the rules of cp have it.
    pub(in crate::copy) fn by(rules: &Rules, entry: Entry<'_>) -> Self {
        let follows = entry.copy.follows(entry.directory);
        Self { follows, takes_all: rules.specials == Specials::Read }
    }
}

/// What became of a source while it was read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Same,
    /// As far as its times tell, which are too coarse for that.
    Untold,
    /// Only the time of its last change is another: it may have got a new mode or name, or have lost its
    /// name; or whoever wrote put the other one back.
    Touched,
    /// Bytes were added behind those that were read.
    Grew,
    /// It ends earlier than it says, now as before.
    Shorter,
    Changed,
}

/// Whether a source was not written meanwhile. Whoever writes may put the modification time back, but not
/// that of the last change, which a new mode or name moves, too.
pub(super) fn is_as_it_was(before: &Stat, after: &Stat) -> bool {
    let changed = |facts: &Stat| (facts.st_ctime, facts.st_ctime_nsec);
    version(before) == version(after) && changed(before) == changed(after)
}

/// What each write changes, unless the writer puts it back.
pub(super) fn version(facts: &Stat) -> (i64, i64, i64) {
    (facts.st_size, facts.st_mtime, facts.st_mtime_nsec as _)
}

/// How files of a directory are opened; symlinks are not followed.
pub(in crate::copy) fn reading_flags(copy: &Copy<'_>, pair: &Pair) -> OFlags {
    let flags =
        OFlags::RDONLY | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    // Files mostly belong to the owner of their directory.
    match copy.user == 0 || copy.user == pair.found.facts.st_uid {
        true => flags | OFlags::NOATIME,
        false => flags,
    }
}

/// Opens the source or the target of an entry; see [`Stop::when_given_back`](crate::copy::stop::Stop).
pub(super) fn when_given_back(
    entry: Entry<'_>,
    side: Side,
    open: impl Fn() -> Result<OwnedFd, Errno>,
) -> Result<OwnedFd, Errno> {
    entry.copy.stop.when_given_back(open, || entry.copy.tell_of_a_lease(entry, side))
}

impl<'e> Opened<'e> {
    /// Opens the source. A pipe that took its place does not block, a symlink is not followed unless
    /// that is wanted, and the access time of a file of one's own stays: the kernel would write it
    /// to storage.
    pub(in crate::copy) fn open(entry: Entry<'e>, reading: Reading) -> Result<Self, Trouble> {
        let moment = Moment::now();
        let mut flags = reading_flags(entry.copy, entry.pair);
        flags.set(OFlags::NOFOLLOW, !reading.follows);
        let open = || open_unseen(entry.pair.source(), entry.source, flags);
        let file = match when_given_back(entry, Side::Source, open) {
            Ok(file) => file,
            // A symlink, a socket.
            Err(Errno::LOOP | Errno::NXIO) if !reading.takes_all => return Err(Trouble::Became),
            Err(errno) => return Err(source("open")(errno)),
        };
        let facts = rustix::fs::fstat(&file).map_err(source("examine"))?;
        let kind = kind_of(facts);
        if kind.is_dir() || !kind.is_file() && !reading.takes_all {
            return Err(Trouble::Became);
        }
        Ok(Self::of(entry, (file, facts), moment, reading))
    }

    /// What was opened after that moment.
    pub(super) fn of(
        entry: Entry<'e>,
        (file, facts): (OwnedFd, Stat),
        moment: Moment,
        reading: Reading,
    ) -> Self {
        if kind_of(facts).is_file() {
            wait_for_a_write(&file, &facts, moment);
        }
        let flags = entry.copy.attributes.flags_of(file.as_fd());
        Self { entry, file, facts, flags, moment, reading }
    }

    /// Takes who owns it and who may use it for what they are now. Its times stay: it may be written by now.
    pub(super) fn meet_again(&mut self) {
        if let Ok(now) = rustix::fs::fstat(&self.file) {
            (self.facts.st_mode, self.facts.st_nlink) = (now.st_mode, now.st_nlink);
            (self.facts.st_uid, self.facts.st_gid) = (now.st_uid, now.st_gid);
        }
        self.flags = self.entry.copy.attributes.flags_of(self.file.as_fd());
    }

    /// Takes its times for what they are now.
    pub(super) fn meet_times_again(&mut self) {
        if let Ok(now) = look_again(&self.file, &self.facts) {
            (self.facts.st_mtime, self.facts.st_mtime_nsec) = (now.st_mtime, now.st_mtime_nsec);
        }
    }

    /// Waits until a change from now on has another time than the last one before it was opened; not for a server
    /// whose clock is ahead.
    pub(super) fn wait_for_a_step(&self) {
        const WAIT: Duration = Duration::from_millis(5);
        const LONGEST_STEP: Duration = Duration::from_secs(3);
        let is_early = || may_change_unseen(&self.file, &self.facts, Moment::now());
        let mut waits = 0..LONGEST_STEP.as_millis() / WAIT.as_millis();
        while is_early() && !self.entry.copy.stop.is_due() && waits.next().is_some() {
            std::thread::sleep(WAIT);
        }
    }

    /// Whether what was read of it, all its bytes, is what it was at any one time.
    pub(in crate::copy) fn is_still_the_same(&self) -> Result<bool, Trouble> {
        Ok(self.state(self.facts.st_size as u64)? == State::Same)
    }

    /// Looks what became of a source while it was read, `length_bytes` of it.
    pub(super) fn state(&self, length_bytes: u64) -> Result<State, Trouble> {
        let before = &self.facts;
        let after = look_again(&self.file, before).map_err(source("examine"))?;
        let all = before.st_size as u64;
        if after.st_size > before.st_size && length_bytes == all {
            return Ok(State::Grew);
        }
        if !is_as_it_was(before, &after) {
            let is_touched = length_bytes == all && version(before) == version(&after);
            return Ok(if is_touched { State::Touched } else { State::Changed });
        }
        if all > 0 && length_bytes < all {
            let ends = rustix::io::pread(&self.file, &mut [0_u8], length_bytes);
            return Ok(if ends == Ok(0) { State::Shorter } else { State::Changed });
        }
        let is_untold = all > 0 && may_change_unseen(&self.file, before, self.moment);
        Ok(if is_untold { State::Untold } else { State::Same })
    }
}
