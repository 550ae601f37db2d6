//! What an entry has to do with other names of its source: the first one that comes is copied, the
//! others become links to the copy.

use std::cell::Cell;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use flatout_sys::file_handle;
use flatout_sys::filesystem::{self, Nature};
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use super::attributes::{Unlocked, lock_again};
use super::existing::{refuse_loss, refuse_obstacle};
use super::links::{self, Claim, Linking, Placed, Source, Ticket};
use super::notices::LINKS_NOT_KEPT;
use super::{
    Action, Copy, Entry, Outcome, Preserve, Refusal, Trouble, kind_of, mark, mirror, target,
};
use crate::compare::content::{Comparer, Pair};
use crate::file_data;
use crate::lock::lock;

/// What is done about an entry, and what there is to be remembered when it is copied.
pub(super) enum Bond<'c> {
    /// It is done: it became, or was, another name of a copy, or stays as it is.
    Done(Outcome),
    /// Nothing: its source has one name, or links are not kept.
    None,
    /// The names to come are links to it.
    First(Ticket<'c>),
    /// The same, where an earlier copy takes no more links.
    Again(Source),
}

/// Whether what was copied, or was up to date, under another name can be this one, too.
pub(super) enum Alike {
    Yes,
    /// This one is copied, and further names are links to that.
    No,
    /// It stays as it is.
    NoAndStays,
}

impl<'c> Bond<'c> {
    /// Where another name of the source was copied, makes this one a link to the copy. Otherwise the
    /// entry is to be copied.
    pub(super) fn of(entry: Entry<'c>, facts: &Stat) -> Result<Self, Trouble> {
        Self::if_alike(entry, facts, |_| Ok(Alike::Yes))
    }

    /// The same where the copy below that root may hold other bytes.
    pub(super) fn if_alike(
        entry: Entry<'c>,
        facts: &Stat,
        alike: impl FnOnce(Placed<'_>) -> Result<Alike, Trouble>,
    ) -> Result<Self, Trouble> {
        let copy = entry.copy;
        if !copy.is_bound(entry, facts) {
            return Ok(Self::None);
        }
        copy.entrust(entry, facts)?;
        let Some(root) = copy.targets.links_root(entry.directory) else {
            return Ok(Self::None);
        };
        let source = Source::of(facts);
        let has_changed = Cell::new(false);
        let is_still = |met| {
            has_changed.set(true);
            entry.was_met(facts, met)
        };
        let known = match copy.links.claim(source, is_still).map_err(Trouble::Source)? {
            Claim::First(ticket) => return Ok(Self::First(ticket)),
            Claim::Known(known) => known,
        };
        let placed = Placed { root, copy: &known, file: None };
        if has_changed.get() && is_other(entry, placed)? {
            copy.lose_links(entry, "a server has several files of one number");
            return Ok(Self::Again(source));
        }
        Ok(match alike(placed)? {
            Alike::Yes => match link_once(entry, placed, facts)? {
                Linking::Made => {
                    Self::Done(Outcome { link_of: Some(known.path), ..Outcome::of(Action::Linked) })
                }
                Linking::WasThere => Self::Done(Outcome::of(Action::Unchanged)),
                cannot @ (Linking::Cannot(_) | Linking::Lost) => {
                    copy.lose_links(entry, cannot.cause());
                    // Operands that are merged replace each other's copies.
                    if cannot != Linking::Lost || !copy.has_run.load(Ordering::Relaxed) {
                        copy.attributes.is_incomplete(entry.paths(), LINKS_NOT_KEPT, None);
                    }
                    Self::Again(source)
                }
            },
            Alike::NoAndStays => Self::Done(Outcome::of(Action::Unchanged)),
            Alike::No => Self::Again(source),
        })
    }

    /// What there is to be remembered of an entry that is copied, where nobody has to be waited for. `None`:
    /// another name of its source was, or is just now, copied.
    pub(super) fn of_first(entry: Entry<'c>, facts: &Stat) -> Option<Self> {
        let copy = entry.copy;
        if !copy.is_bound(entry, facts) {
            return Some(Self::None);
        }
        let is_here = copy.shared.is_none() && copy.targets.links_root(entry.directory).is_some();
        is_here.then(|| copy.links.claim_first(Source::of(facts)))?.map(Self::First)
    }

    /// Has the entry copied, unless it is done.
    pub(super) fn or_copied(
        self,
        entry: Entry<'_>,
        make: impl FnOnce() -> Result<Outcome, Trouble>,
    ) -> Result<Outcome, Trouble> {
        if let Self::Done(outcome) = self {
            return Ok(outcome);
        }
        let outcome = make()?;
        self.copied(entry, &outcome)?;
        Ok(outcome)
    }

    /// The entry was copied. One that is not as it should be, maybe somebody else's, gets no other
    /// names.
    pub(super) fn copied(self, entry: Entry<'_>, outcome: &Outcome) -> Result<(), Trouble> {
        let copy = entry.copy;
        if matches!(self, Self::None) || outcome.blemish.is_some() {
            return Ok(());
        }
        let made = match outcome.mark {
            Some(mark) => Ok(mark),
            None => entry.in_the_way().and_then(|found| {
                found.map(|found| mark(&found)).ok_or_else(|| target("examine")(Errno::NOENT))
            }),
        };
        let path = || copy.targets.link_path(entry.directory, entry.target);
        match (self, made) {
            (Self::First(ticket), made) => {
                // Without it nobody knows what the other names are to be links of.
                let made = made?;
                let ticket = match outcome.action {
                    Action::Unchanged => ticket.of_what_was_there(),
                    _ => ticket,
                };
                if let Err(refusal) = path().and_then(|path| ticket.done(&path, made)) {
                    copy.lose_links(entry, "they cannot be remembered");
                    let cause = refusal.errno();
                    copy.attributes.is_incomplete(entry.paths(), LINKS_NOT_KEPT, cause);
                }
            }
            (Self::Again(source), Ok(made)) => {
                let source = Source { was_there: outcome.action == Action::Unchanged, ..source };
                // Where that cannot be remembered, the next one is a file of its own, too.
                let _forgotten =
                    path().and_then(|path| copy.links.copied_again(source, &path, made));
            }
            _ => {}
        }
        Ok(())
    }
}

impl Copy<'_> {
    /// Whether an entry may be another name of what is copied under one, by a symlink that is followed,
    /// too, and is to be.
    pub(super) fn is_bound(&self, entry: Entry<'_>, facts: &Stat) -> bool {
        (facts.st_nlink > 1 || self.follows(entry.directory))
            && self.options.preserve.has(Preserve::LINKS)
    }
}

/// Whether a source of which only its inode number says that it was copied is another one: a server may
/// show files of several filesystems as those of one.
///
/// Errors: the user wants to stop.
fn is_other(entry: Entry<'_>, known: Placed<'_>) -> Result<bool, Trouble> {
    let home = filesystem::of(entry.pair.source()).map(|home| home.nature);
    if !matches!(home, Ok(Nature::Network | Nature::Userspace)) {
        return Ok(false);
    }
    let source = file_data::open(entry.pair.source(), entry.source);
    let (Ok(source), Some(target)) = (source, links::open_copy(known.root, known.copy)) else {
        return Ok(true);
    };
    let facts = [&source, &target].map(rustix::fs::fstat);
    let [Ok(facts), Ok(found)] = facts else { return Ok(true) };
    if !kind_of(facts).is_file() || !kind_of(found).is_file() || facts.st_size != found.st_size {
        return Ok(true);
    }
    let (source, target) = (source.as_fd(), target.as_fd());
    let length_bytes = facts.st_size as u64;
    let pair = Pair { source, target, length_bytes, sparse: [false; 2] };
    let difference = entry.copy.first_difference(&mut Comparer::default(), pair)?;
    Ok(!matches!(difference, Ok(None)))
}

/// The same where a copy that is not where it was from the root on is looked for in what its operand became: that
/// may bear another name now.
fn link_once(entry: Entry<'_>, known: Placed<'_>, facts: &Stat) -> Result<Linking, Trouble> {
    let mut made = link(entry, known, facts);
    if matches!(made, Ok(Linking::Lost))
        && let Some((top, path)) = entry.directory.within_operand(&known.copy.path)
    {
        let below = links::Copy { path, ..*known.copy };
        made = link(entry, Placed { root: top.target(), copy: &below, file: None }, facts);
    }
    made
}

/// Makes another name of a file of the target or of a snapshot.
pub(super) fn link(entry: Entry<'_>, known: Placed<'_>, facts: &Stat) -> Result<Linking, Trouble> {
    let copy = entry.copy;
    let own = copy.targets.links_root(entry.directory);
    let is_own = own.is_some_and(|own| own.as_raw_fd() == known.root.as_raw_fd());
    let is_file = kind_of(facts).is_file();
    match is_own && is_file && copy.attributes.keeps_flags() {
        true => try_unlocked(entry, known, facts),
        false => try_link(entry, known, facts),
    }
}

/// Makes another name, once more without locks (chattr(1)) that this copy has set on the file, or an
/// earlier one on what is in the way. One at a time: another thread would lock it again.
fn try_unlocked(entry: Entry<'_>, known: Placed<'_>, facts: &Stat) -> Result<Linking, Trouble> {
    let copy = entry.copy;
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _others_would_lock_it = lock(&ONE_AT_A_TIME);
    let made = try_link(entry, known, facts);
    let is_refused = match &made {
        Ok(made) => *made == Linking::Cannot(Errno::PERM),
        Err(trouble) => trouble.target_errno() == Some(Errno::PERM),
    };
    if !is_refused {
        return made;
    }
    let Some(file) = links::open_copy(known.root, known.copy) else { return made };
    let attributes = &copy.attributes;
    let flags = attributes.flags_of(file.as_fd());
    let overwrite = copy.options.overwrite;
    let lifted = attributes.unlock_open(file.as_fd(), flags, overwrite);
    let in_the_way = attributes.unlock(entry.target_place(), flags, overwrite);
    let made = try_link(entry, known, facts);
    if let Some(flags) = lifted {
        lock_again(file.as_fd(), flags);
    }
    // It was not replaced, or may have other names.
    in_the_way.into_iter().for_each(Unlocked::lock);
    made
}

/// Makes another name.
fn try_link(entry: Entry<'_>, known: Placed<'_>, facts: &Stat) -> Result<Linking, Trouble> {
    let copy = entry.copy;
    let directory = entry.pair.target();
    let _one_at_a_time = copy.one_symlink(facts);
    let made = match links::link(known, directory, entry.target) {
        Err(refusal) if refusal.errno() == Some(Errno::EXIST) => {
            if is_linked(entry, (known, facts))? {
                return Ok(Linking::WasThere);
            }
            let mut made = Linking::Made;
            let replaced = mirror::replace(entry, |name| {
                made = links::link(known, directory, name)?;
                match made {
                    Linking::Made => Ok(()),
                    _ => Err(Refusal::because("link", "")),
                }
            });
            match made {
                Linking::Made => replaced.map(|()| made),
                _ => Ok(made),
            }
        }
        done => done,
    };
    made.map_err(Trouble::Target)
}

/// Whether what bears the name of an entry is the copy whose mark it has: a program may serve several files under
/// one number. Where it does not tell them apart, the link is made anew.
fn is_that(entry: Entry<'_>, known: Placed<'_>) -> bool {
    let directory = entry.pair.target();
    let home = filesystem::of(directory).map(|home| home.nature);
    if !matches!(home, Ok(Nature::Userspace)) {
        return true;
    }
    let found = file_handle::of(directory, entry.target);
    found.is_some() && found == links::handle(known.root, known.copy)
}

/// Looks whether what bears the name of a link to be is that link.
///
/// Errors: it is something that this source may not take the place of.
fn is_linked(entry: Entry<'_>, (known, facts): (Placed<'_>, &Stat)) -> Result<bool, Trouble> {
    let Some(found) = entry.in_the_way()? else { return Ok(false) };
    if mark(&found) == known.copy.mark && is_that(entry, known) {
        return Ok(true);
    }
    // What is in the way was judged by the rules of cp, where they hold.
    if entry.copy.rules().is_some() {
        return Ok(false);
    }
    match kind_of(facts) {
        FileType::RegularFile => refuse_obstacle(entry, facts, &found)?,
        _ => refuse_loss(entry, facts, &found)?,
    }
    Ok(false)
}
