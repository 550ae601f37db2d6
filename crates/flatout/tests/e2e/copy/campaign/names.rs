//! What rules ask about entries with several names, and about operands that meet: which of them
//! comes first decides what becomes a link to what.

use super::super::oracle::{Aspect, Entry, Kind};
use super::facts::{Facts, State};
use super::mapping::{Meeting, Pair};
use super::trial::Outcome;

fn is_said(facts: &Facts<'_>, complaint: &str) -> bool {
    facts.trial.flatout.code == Some(1) && facts.trial.flatout.stderr.contains(complaint)
}

fn is_said_by_cp(facts: &Facts<'_>, complaint: &str) -> bool {
    facts.trial.cp.code == Some(1) && facts.trial.cp.stderr.contains(complaint)
}

/// A name with the same inode as another one where something is as a rule says.
pub fn is_link_beside(
    (facts, place, aspects): (&Facts<'_>, &[u8], &[Aspect]),
    holds: impl Fn(&[u8]) -> bool,
) -> bool {
    aspects == [Aspect::Links] && facts.is_done(place) && facts.twins(place).into_iter().any(holds)
}

/// Nothing came to this name; another name of what it bears gave way.
pub fn is_name_left(
    (facts, place, aspects): (&Facts<'_>, &[u8], &[Aspect]),
    gave_way: impl Fn(&[u8]) -> bool,
) -> bool {
    aspects == [Aspect::Links]
        && facts.is(place, State::Before)
        && facts.other_names(place).into_iter().any(gave_way)
}

/// A symlink that leads nowhere is still there, and a file with several names was refused.
pub fn is_dangling_still(facts: &Facts<'_>, place: &[u8]) -> bool {
    let is_link = |entry: &Entry| entry.kind == Kind::Symlink;
    let is_still = match facts.source_meetings(place).as_slice() {
        [Meeting::Is(Kind::File)] => {
            facts.meeting(place) == Meeting::Dangling && facts.is(place, State::Before)
        }
        [.., Meeting::Is(Kind::File)] => {
            let after = facts.trial.flatout.after.entries.get(place);
            let is_first = facts.is(place, State::CopiedEarlier) || facts.is(place, State::Before);
            is_first && after.is_some_and(is_link)
        }
        _ => false,
    };
    is_still && !facts.twins(place).is_empty() && is_said(facts, "it is a dangling symlink")
}

/// The first name that comes is refused where a file may not be written, and written in place where
/// it is somebody else's; a further one takes its place. The two programs begin with different
/// names.
pub fn is_protected_or_linked(facts: &Facts<'_>, place: &[u8]) -> bool {
    const DENIED: &str = "Permission denied";
    let has_names = facts.has_file_source(place) && !facts.twins(place).is_empty();
    let is_file = facts.before(place).is_some_and(|before| before.kind == Kind::File);
    let is_linked = facts.is(place, State::Copied)
        && facts.state(place, &facts.trial.cp) == State::Before
        && is_said_by_cp(facts, DENIED);
    let is_refused = facts.is(place, State::Before) && is_said(facts, DENIED);
    let is_foreign = |before: &Entry| Some(before.owner.0) != facts.trial.case.runner;
    let is_in_place = |outcome: &Outcome| {
        let (before, after) = (facts.before(place), outcome.after.entries.get(place));
        outcome.code == Some(1)
            && before.zip(after).is_some_and(|(before, after)| {
                let is_source = |source: &Entry| source.digest == after.digest;
                is_foreign(before)
                    && after.owner == before.owner
                    && facts.source_entries(place).into_iter().any(is_source)
            })
    };
    let is_written = is_in_place(&facts.trial.flatout)
        || facts.is(place, State::Copied) && is_in_place(&facts.trial.cp);
    let is_ordered = is_linked || is_refused || is_written;
    !facts.trial.case.is_privileged() && has_names && is_file && is_ordered
}

/// All names but the last of a file of somebody else's, or a protected one, are replaced, the last
/// is written in place or refused; the two programs begin with different names.
pub fn is_parted_or_written(facts: &Facts<'_>, place: &[u8]) -> bool {
    let Some((runner, before)) = facts.trial.case.runner.zip(facts.before(place)) else {
        return false;
    };
    let is_target = |other: &&[u8]| facts.sources.contains_key(other);
    let has_names = facts.other_names(place).iter().any(is_target);
    let is_written = facts.trial.flatout.after.entries.get(place).is_some_and(|after| {
        after.owner == before.owner
            && facts.source_entries(place).iter().any(|source| source.digest == after.digest)
    });
    before.kind == Kind::File
        && (before.owner.0 != runner || before.mode & 0o200 == 0)
        && has_names
        && facts.has_file_source(place)
        && (facts.is(place, State::Copied)
            || is_written && facts.trial.flatout.code == Some(1)
            || facts.is(place, State::Before) && is_said(facts, "Permission denied"))
}

/// A further name of something that a later operand replaces meanwhile, or what replaces it.
pub fn is_name_of_replaced(facts: &Facts<'_>, place: &[u8]) -> bool {
    let is_replaced = |place: &[u8]| facts.sources[place].len() > 1;
    let twins = facts.twins(place);
    facts.is(place, State::Copied)
        && (twins.iter().copied().any(is_replaced) || !twins.is_empty() && is_replaced(place))
}

/// What is there shares its inode with another entry of the target that was refused, too.
pub fn stays_with_other_name(facts: &Facts<'_>, place: &[u8], aspects: &[Aspect]) -> bool {
    let stays = |other: &&[u8]| facts.sources.contains_key(other) && facts.is(other, State::Before);
    aspects == [Aspect::Links]
        && facts.is(place, State::Before)
        && facts.trial.flatout.code == Some(1)
        && facts.other_names(place).iter().any(stays)
}

/// Another name of its source symlink is in the target already, and this one is linked to that.
pub fn is_name_of_source(facts: &Facts<'_>, place: &[u8], aspects: &[Aspect]) -> bool {
    let is_source = |twin: &[u8]| {
        let sources = facts.source_entries(twin);
        facts.before(twin).is_some_and(|before| {
            before.kind == Kind::Symlink
                && sources.iter().any(|source| source.identity == before.identity)
        })
    };
    is_link_beside((facts, place, aspects), |twin| is_source(twin) || is_source(place))
}

/// A directory that two operands bring to two places, or something in it: cp makes the first.
pub fn is_directory_twice(facts: &Facts<'_>, place: &[u8]) -> bool {
    let is_twice = |above: &[u8]| {
        let is_directory = |entry: &&Entry| entry.kind == Kind::Directory;
        facts.source_entries(above).iter().any(is_directory) && facts.is_read_twice(above)
    };
    let is_above = |above: &[u8]| {
        place.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
    };
    facts.is(place, State::Copied)
        && facts.sources.keys().any(|above| is_above(above) && is_twice(above))
        && is_said_by_cp(facts, "will not create hard link")
}

/// This place, or another name of its symlink, is one of which [`is_kept_from_loop`] speaks.
pub fn is_beside_kept_from_loop(facts: &Facts<'_>, place: &[u8], aspects: &[Aspect]) -> bool {
    is_kept_from_loop(facts, place)
        || is_link_beside((facts, place, aspects), |twin| is_kept_from_loop(facts, twin))
}

/// A source is a symlink that leads through this place, where a symlink is that was there, or that
/// an earlier operand has brought: it is refused.
pub fn is_kept_from_loop(facts: &Facts<'_>, place: &[u8]) -> bool {
    let first = |source: &[u8]| facts.trial.hops.get(source).and_then(|hops| hops.first());
    let way = |source: &[u8]| facts.trial.ways.get(source).map_or(&[][..], |way| &way[..]);
    let pairs = facts.sources.get(place).map_or(&[][..], |pairs| &pairs[..]);
    let other_names = facts.other_names(place);
    let is_it = |hop: &[u8]| hop == place || other_names.contains(&hop);
    let names_it = |pair: &&Pair| {
        let mut all = first(&pair.source).into_iter().chain(way(&pair.source));
        all.any(|hop| is_it(hop))
    };
    let is_link = |entry: &Entry| entry.kind == Kind::Symlink;
    // What a later operand brings takes the place nevertheless.
    let is_first = facts.is(place, State::Before)
        || facts.is(place, State::CopiedEarlier)
        || pairs.len() > 1 && facts.is(place, State::Copied);
    pairs.iter().any(names_it)
        && facts.trial.flatout.after.entries.get(place).is_some_and(is_link)
        && is_first
        && facts.trial.flatout.code == Some(1)
}
