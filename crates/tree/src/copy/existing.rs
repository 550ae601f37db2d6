//! What bears the name of a copy already, and whether it may go.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::{
    Copy, Entry, Lane, Overwrite, Preserve, Refusal, Trouble, Unchanged, identity, kind_of,
    obstacle, referent, refused, target,
};
use crate::compare::content::{COPY, Comparer, Pair, Unread};
use crate::file_data;

use super::attributes::Flags;
use super::entry::source as source_trouble;
use super::file::Opened;
use super::reason::{DIRECTORY_OVER, SAME_FILE};
use super::special::text_of;
use super::temporary::{is_held, is_temporary};

pub(super) const OVERWRITE: &str = "overwrite";

/// What is to be done about an entry that is in the way of a regular file.
pub(super) enum Existing {
    /// It is done already.
    Unchanged(Stat),
    /// A file that makes room when the new one is complete.
    Replace(Stat),
    /// Something else that does, such as a symlink, while what it leads to stays as it is; or nothing by now.
    Another,
}

impl Existing {
    /// Looks at what is in the way of a regular file.
    ///
    /// Errors: it is the source itself, or nothing that a file may take the place of.
    pub(super) fn of(lane: &mut Lane<'_>, opened: &Opened<'_>) -> Result<Self, Trouble> {
        let entry = opened.entry;
        let (copy, source) = (lane.copy, &opened.facts);
        let Some(found) = entry.in_the_way()? else { return Ok(Self::Another) };
        if is_compared_with_itself(copy, source, &found) {
            return Ok(Self::Unchanged(found));
        }
        refuse_obstacle(entry, source, &found)?;
        if is_temporary(entry.target) && is_held(entry.pair.target(), entry.target) {
            return Err(refused(OVERWRITE, "another copy is at work on it"));
        }
        if !kind_of(found).is_file() {
            return Ok(Self::Another);
        }
        // Where a snapshot may have the very inode, its attributes are not ours to put right.
        let may_be_shared = copy.references.is_some() && found.st_nlink > 1;
        if !may_be_shared && is_unchanged(lane, opened, &found)? && is_free(copy, source, &found)? {
            return Ok(Self::Unchanged(found));
        }
        // As cp, which writes into a file with one name, and removes one with several.
        if !is_bound(copy, &found) && !replaces_protected(copy) {
            refuse_protected(entry, opened.flags)?;
        }
        Ok(Self::Replace(found))
    }
}

/// Whether something has several names, and that matters: what happens to one happens to all.
pub(super) fn is_bound(copy: &Copy<'_>, found: &Stat) -> bool {
    found.st_nlink > 1 && copy.options.preserve.has(Preserve::LINKS)
}

/// Whether what bears the name in the target may stand for this source. Another name of something
/// else is no copy of ours: so has what has more names than the source, a snapshot maybe. What has
/// several names is the copy of one source only, or names that hold different bytes would become one.
pub(super) fn is_free(copy: &Copy<'_>, source: &Stat, found: &Stat) -> Result<bool, Trouble> {
    if !is_bound(copy, found) {
        return Ok(true);
    }
    if found.st_nlink > source.st_nlink {
        return Ok(false);
    }
    copy.take(identity(found), identity(source))
}

/// Whether files make room that this user may not write: as with rsync, in a mirror they do.
pub(super) fn replaces_protected(copy: &Copy<'_>) -> bool {
    copy.options.overwrite == Overwrite::Protected || copy.options.deletion.is_some()
}

/// A file that this user may not write is protected, and stays unless it is to be replaced by all
/// means.
pub(super) fn refuse_protected(entry: Entry<'_>, source: Flags) -> Result<(), Trouble> {
    let (at, name) = (entry.pair.target(), entry.target);
    let flags = AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW;
    match rustix::fs::accessat(at, name, Access::WRITE_OK, flags) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        // The lock of the source may be what is in the way.
        Err(Errno::PERM) if source.is_locked() => Ok(()),
        // Before Linux 5.8.
        Err(Errno::NOSYS) => {
            let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let opened = rustix::fs::openat(at, name, flags, Mode::empty());
            opened.map(drop).map_err(target(OVERWRITE))
        }
        Err(errno) => Err(target(OVERWRITE)(errno)),
    }
}

fn is_unchanged(lane: &mut Lane<'_>, opened: &Opened<'_>, found: &Stat) -> Result<bool, Trouble> {
    let entry = opened.entry;
    let (copy, source) = (lane.copy, &opened.facts);
    if source.st_size != found.st_size {
        return Ok(false);
    }
    match copy.unchanged() {
        Unchanged::Never => Ok(false),
        Unchanged::Recorded => {
            let [from, to] = [entry.pair.source(), entry.pair.target()];
            Ok(copy.evidence.proves((source, from), (found, to)))
        }
        Unchanged::Content => Ok(has_same_bytes(lane, entry, (opened.file.as_fd(), source))?
            && opened.is_still_the_same()?),
        Unchanged::SizeAndTime => Ok(has_same_time(entry, source, found)),
    }
}

/// Whether a copy has the time of its source, and got it after it was written.
pub(super) fn has_same_time(entry: Entry<'_>, source: &Stat, found: &Stat) -> bool {
    entry.is_same_time(source, found) && !entry.is_untouched(found)
}

/// Whether what bears the name in the target is a file that holds the same bytes as this one.
pub(super) fn has_same_bytes(
    lane: &mut Lane<'_>,
    entry: Entry<'_>,
    one: OpenFile<'_>,
) -> Result<bool, Trouble> {
    let Ok(other) = file_data::open(entry.pair.target(), entry.target) else { return Ok(false) };
    let facts = rustix::fs::fstat(&other).map_err(target("examine"))?;
    is_same(lane, one, (other.as_fd(), &facts))
}

/// A file that is open, and what is known of it.
pub(super) type OpenFile<'f> = (BorrowedFd<'f>, &'f Stat);

/// Whether two are files and hold the same bytes: one of the target that cannot be read is no copy.
pub(super) fn is_same(
    lane: &mut Lane<'_>,
    source: OpenFile<'_>,
    target: OpenFile<'_>,
) -> Result<bool, Trouble> {
    let both = [source.1, target.1];
    let [length_bytes, other_bytes] = both.map(|facts| facts.st_size as u64);
    if length_bytes != other_bytes || !both.into_iter().all(|facts| kind_of(facts).is_file()) {
        return Ok(false);
    }
    let sparse = [source, target].map(|(file, facts)| file_data::shows_its_holes(file, facts));
    let pair = Pair { source: source.0, target: target.0, length_bytes, sparse };
    match lane.copy.first_difference(&mut lane.comparer, pair)? {
        Ok(difference) => Ok(difference.is_none()),
        Err((COPY, _)) => Ok(false),
        Err((_, error)) => Err(source_trouble("read")(file_data::errno_of(&error))),
    }
}

impl Copy<'_> {
    /// Where two files differ first, or why they cannot be read.
    ///
    /// Errors: the user wants to stop.
    pub(super) fn first_difference(
        &self,
        comparer: &mut Comparer,
        pair: Pair<'_>,
    ) -> Result<Result<Option<u64>, Unread>, Trouble> {
        let difference = comparer.first_difference(pair, || !self.stop.is_due());
        match self.stop.is_due() {
            true => Err(Trouble::Source(Refusal::interrupted("compare"))),
            false => Ok(difference),
        }
    }
}

/// Refuses what another name of `known`, which stands for this source, may not take the place of.
pub(super) fn refuse_to_replace(
    entry: Entry<'_>,
    (source, known): (&Stat, &Stat),
) -> Result<(), Trouble> {
    let copy = entry.copy;
    if entry.pair.found.made.is_new() {
        return Ok(());
    }
    match entry.in_the_way()? {
        Some(found) if identity(&found) != identity(known) => {
            refuse_obstacle(entry, source, &found)?;
            let may = replaces_protected(copy) || is_bound(copy, &found);
            if may || kind_of(found).is_symlink() {
                return Ok(());
            }
            refuse_protected(entry, Flags::default())
        }
        _ => Ok(()),
    }
}

/// Whether a source that is its own target, under another name maybe, is left alone for being like it.
pub(super) fn is_compared_with_itself(copy: &Copy<'_>, source: &Stat, found: &Stat) -> bool {
    let compares = matches!(copy.unchanged(), Unchanged::SizeAndTime | Unchanged::Content);
    compares && identity(found) == identity(source)
}

/// A source that is its own target loses nothing.
pub(super) fn refuse_itself(found: &Stat, source: &Stat) -> Result<(), Trouble> {
    if identity(found) == identity(source) {
        return Err(refused(OVERWRITE, SAME_FILE));
    }
    Ok(())
}

/// Refuses what a regular file may not take the place of, under whichever of its names it comes:
/// the source itself, a directory, what is written to and not replaced; a symlink that leads to one
/// of these, or nowhere. As cp, which follows the symlink.
pub(super) fn refuse_obstacle(
    entry: Entry<'_>,
    source: &Stat,
    found: &Stat,
) -> Result<(), Trouble> {
    refuse_itself(found, source)?;
    match kind_of(found) {
        FileType::RegularFile => Ok(()),
        FileType::Symlink => {
            match rustix::fs::statat(entry.pair.target(), entry.target, AtFlags::empty()) {
                Ok(behind) if !kind_of(behind).is_dir() => refuse_itself(&behind, source),
                _ if entry.displaces() => Ok(()),
                Err(Errno::NOENT) => Err(obstacle("write through", "it is a dangling symlink")),
                Err(errno) => Err(Trouble::Obstacle(Refusal::of("follow")(errno))),
                Ok(_) => {
                    let reason = "it is a symlink to a directory, the source is none";
                    Err(obstacle(OVERWRITE, reason))
                }
            }
        }
        _ if entry.displaces() => Ok(()),
        FileType::Directory => Err(obstacle(OVERWRITE, DIRECTORY_OVER)),
        _ => Err(obstacle(OVERWRITE, "it is a pipe, socket or device, the source is a file")),
    }
}

/// Refuses what something else than a file may not take the place of: a directory, the source
/// itself, what a symlink refers to. In that place the symlink would lead to itself, and what it
/// referred to be gone.
pub(super) fn refuse_loss(entry: Entry<'_>, facts: &Stat, found: &Stat) -> Result<(), Trouble> {
    let is_symlink = |facts: &Stat| kind_of(facts).is_symlink();
    if is_symlink(facts) {
        let text = text_of(entry)?;
        match referent::is_on_the_way(entry.pair.source(), &text, found) {
            Ok(false) => {}
            Ok(true) => {
                return Err(refused(OVERWRITE, "the source is a symlink that refers to it"));
            }
            Err(errno) => return Err(source_trouble("follow")(errno)),
        }
    }
    if kind_of(found).is_dir() && !entry.displaces() {
        return Err(obstacle(OVERWRITE, DIRECTORY_OVER));
    }
    if is_symlink(facts) {
        return Ok(());
    }
    refuse_itself(found, facts)?;
    let (at, name) = (entry.pair.target(), entry.target);
    match rustix::fs::statat(at, name, AtFlags::empty()) {
        Ok(behind) if is_symlink(found) => refuse_itself(&behind, facts),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::copy::tests::{Heard, options};

    #[test]
    fn what_cannot_be_read_of_the_target_is_no_copy_and_of_the_source_a_failure() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        std::fs::write(&path, "bytes").unwrap();
        let facts = rustix::fs::stat(&path).unwrap();
        let read = File::open(&path).unwrap();
        let written = File::options().append(true).open(&path).unwrap();
        let (heard, hire) = (Heard::default(), |_: u32| false);
        let copy = Copy::new(options(), &heard);
        let mut lane = Lane::new(&copy, &hire);
        let [read, written] = [&read, &written].map(|file| (file.as_fd(), &facts));
        assert!(is_same(&mut lane, read, read).unwrap());
        assert!(!is_same(&mut lane, read, written).unwrap());
        assert!(matches!(is_same(&mut lane, written, read), Err(Trouble::Source(_))));
    }
}
