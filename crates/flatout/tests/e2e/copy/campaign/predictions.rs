//! What rules ask about one place: whether what flatout has there is what a sentence of the
//! documentation predicts.

use super::super::oracle::{Aspect, Entry, Kind};
use super::case::{Form, parent};
use super::facts::{Facts, State};
use super::mapping::{Meeting, Pair};

/// A regular file is to be copied to where a FIFO, a socket or a device is, or has come from an
/// earlier operand.
pub fn is_special(facts: &Facts<'_>, place: &[u8]) -> bool {
    let special = [Kind::Fifo, Kind::Socket, Kind::CharacterDevice, Kind::BlockDevice];
    let is_there = |entry: &Entry| special.contains(&entry.kind);
    let sources = facts.source_entries(place);
    let last_file = sources.iter().rposition(|entry| entry.kind == Kind::File);
    last_file.is_some_and(|last| {
        facts.before(place).is_some_and(is_there)
            || sources[..last].iter().any(|entry| is_there(entry))
    })
}

/// The file was refused, and what a later operand brings, which is none, has replaced the other.
pub fn is_refused_special_replaced(facts: &Facts<'_>, place: &[u8]) -> bool {
    let is_refused = facts.trial.flatout.stderr.contains("it is a pipe, socket or device");
    let is_file_last =
        facts.source_entries(place).last().is_some_and(|last| last.kind == Kind::File);
    is_special(facts, place) && is_refused && !is_file_last && facts.is(place, State::Copied)
}

/// The user names a symlink to it as the target of a file.
pub fn is_special_behind_name(facts: &Facts<'_>, place: &[u8]) -> bool {
    let special = [Kind::Fifo, Kind::Socket, Kind::CharacterDevice, Kind::BlockDevice];
    let is_special = special.iter().any(|kind| facts.meeting(place) == Meeting::LinkTo(*kind));
    facts.trial.case.form == Form::One
        && is_special
        && facts.has_file_source(place)
        && facts.is(place, State::Before)
        && facts.trial.flatout.code == Some(1)
}

/// It is the one that was there, or that came first, and the file was refused.
pub fn is_special_still(facts: &Facts<'_>, place: &[u8]) -> bool {
    let is_first = facts.is(place, State::Before) || facts.is(place, State::CopiedEarlier);
    is_special(facts, place) && is_first && facts.trial.flatout.code == Some(1)
}

/// The mode of a directory is a source's, with special bits that it had, or got from an earlier
/// operand. Whether an existing directory keeps its sticky bit, as with cp, is left open.
pub fn has_planned_bits(facts: &Facts<'_>, place: &[u8]) -> bool {
    let Some(after) = facts.trial.flatout.after.entries.get(place) else { return false };
    let sources = facts.source_entries(place);
    let had = facts.before(place).map_or(0, |before| before.mode);
    let got = sources.iter().fold(0, |bits, source| bits | source.mode);
    let is_last = |source: &&&Entry| source.kind == Kind::Directory;
    let Some(last) = sources.iter().rfind(is_last) else { return false };
    let is_planned = |mode: u32| {
        let (least, most) = (mode | had & 0o2000, mode | (had | got) & 0o3000);
        after.mode & least == least && after.mode & !most == 0
    };
    let is_without_privilege = !facts.trial.case.is_privileged();
    after.kind == Kind::Directory
        && (is_planned(last.mode)
            // Without privilege the set-id bits may go with the owner.
            || is_without_privilege
                && (is_planned(last.mode & 0o777) || is_planned(last.mode & 0o1777)))
}

/// cp takes permissions from the directory and then cannot search it.
pub fn is_locked_out(facts: &Facts<'_>, place: &[u8]) -> bool {
    !facts.trial.case.is_privileged()
        && facts.meeting(place) == Meeting::Is(Kind::Directory)
        && facts.source_entries(place).iter().any(|source| source.mode & 0o100 == 0)
        && facts.is_done(place)
        && facts.trial.cp.stderr.contains("failed to preserve ownership")
}

/// An entry of somebody else: each attribute that it has now was its own or is a source's.
pub fn has_known_attributes(facts: &Facts<'_>, place: &[u8]) -> bool {
    let trial = facts.trial;
    let (Some(runner), Some(before)) = (trial.case.runner, facts.before(place)) else {
        return false;
    };
    let Some(after) = trial.flatout.after.entries.get(place) else { return false };
    let mut models = facts.source_entries(place);
    models.push(before);
    let is_known = |name: &[u8], value: &[u8]| {
        models.iter().any(|model| model.attributes.get(name).is_some_and(|known| known == value))
    };
    before.owner.0 != runner
        && after.owner == before.owner
        && after.attributes.iter().all(|(name, value)| is_known(name, value))
}

/// cp fails to remove, or to make, what is there already.
pub fn is_alike_already(facts: &Facts<'_>, place: &[u8]) -> bool {
    let Some(before) = facts.before(place) else { return false };
    let is_alike = |source: &&Entry| {
        (source.kind, &source.text, source.device) == (before.kind, &before.text, before.device)
    };
    !facts.trial.case.is_privileged()
        && !matches!(before.kind, Kind::File | Kind::Directory)
        && facts.source_entries(place).last().is_some_and(is_alike)
        && facts.is(place, State::Copied)
        && facts.trial.cp.code == Some(1)
}

/// cp has removed the copy that it wanted to link to; here it is.
pub fn has_one_inode_twice(facts: &Facts<'_>, place: &[u8]) -> bool {
    let sources = facts.source_entries(place);
    let is_same = |pair: &[&Entry]| pair[0].identity == pair[1].identity;
    sources.windows(2).any(is_same)
        && sources[0].kind != Kind::Directory
        && !facts.trial.cp.after.entries.contains_key(place)
        && facts.is(place, State::Copied)
}

/// The source or the target is a symlink with a hop at a place that this copy changes, too: it is
/// copied or it stays and is complained about.
pub fn is_either_way(facts: &Facts<'_>, place: &[u8]) -> bool {
    let hops = |of: &[u8]| facts.trial.hops.get(of).cloned().unwrap_or_default();
    let pairs = facts.sources.get(place).map_or(&[][..], |pairs| &pairs[..]);
    let mut ways = hops(place);
    ways.extend(pairs.iter().flat_map(|pair| hops(&pair.source)));
    let is_changed = |hop: &[u8]| {
        hop != place
            && facts.sources.contains_key(hop)
            && facts.before(hop).is_none_or(|before| before.kind != Kind::Directory)
    };
    let is_stopped = facts.is(place, State::Before) && facts.trial.flatout.code == Some(1);
    ways.iter().any(|hop| is_changed(hop)) && (is_stopped || facts.is(place, State::Copied))
}

/// It is what a symlink leads to that is copied to where the symlink under a file leads.
pub fn is_end_of_new(facts: &Facts<'_>, place: &[u8]) -> bool {
    let comes = |hop: &Vec<u8>| {
        let pairs = facts.sources.get(&hop[..]).map_or(&[][..], |pairs| &pairs[..]);
        let leads = |pair: &&Pair| facts.trial.leads.get(&pair.source).and_then(Option::as_deref);
        pairs.iter().any(|pair| leads(pair) == Some(place))
    };
    let leads_here = |target: &[u8]| {
        facts.has_file_source(target)
            && facts.trial.hops.get(target).is_some_and(|hops| hops.iter().any(comes))
    };
    facts.is_planned(place) && facts.sources.keys().any(|target| leads_here(target))
}

/// What an earlier operand brings could not be made, so what was there stays, and the symlink or
/// the directory that comes is refused, with all that is in it. cp has removed it by then: for a
/// device, and one of several names also for a file, which then could not be read.
pub fn is_left_by_failure(facts: &Facts<'_>, place: &[u8]) -> bool {
    let above = (0..place.len()).filter(|at| place[*at] == b'/').map(|at| &place[..at]);
    let is_refused =
        |above: &[u8]| facts.sources.contains_key(above) && is_left_by_failure_itself(facts, above);
    is_left_by_failure_itself(facts, place)
        || is_written_after_failure(facts, place)
        || facts.is(place, State::Absent) && above.into_iter().any(is_refused)
}

fn is_left_by_failure_itself(facts: &Facts<'_>, place: &[u8]) -> bool {
    let has_names = !facts.other_names(place).is_empty();
    let is_failure = |entry: &&Entry| match entry.kind {
        Kind::CharacterDevice | Kind::BlockDevice => true,
        Kind::File => has_names && entry.mode & 0o444 != 0o444,
        _ => false,
    };
    let refers = |pair: &&Pair| {
        let is_directory = facts.meeting(&pair.source) == Meeting::Is(Kind::Directory);
        let hops = facts.trial.hops.get(&pair.source);
        is_directory || hops.is_some_and(|hops| hops.iter().any(|hop| hop == place))
    };
    let trial = facts.trial;
    !trial.case.is_privileged()
        && facts.source_entries(place).iter().any(is_failure)
        && facts.sources[place].last().is_some_and(refers)
        && facts.is(place, State::Before)
        && (trial.cp.code, trial.flatout.code) == (Some(1), Some(1))
}

/// A device of an earlier operand could not be made, so the file of somebody else, or the protected
/// one, that was there stayed, and the file that comes was written into it or refused. cp has
/// removed it by then, and makes a new one.
fn is_written_after_failure(facts: &Facts<'_>, place: &[u8]) -> bool {
    let Some((runner, before)) = facts.trial.case.runner.zip(facts.before(place)) else {
        return false;
    };
    let sources = facts.source_entries(place);
    let Some((last, earlier)) = sources.split_last() else { return false };
    let is_device =
        |entry: &&Entry| matches!(entry.kind, Kind::CharacterDevice | Kind::BlockDevice);
    let is_written = facts.trial.flatout.after.entries.get(place).is_some_and(|after| {
        before.owner.0 != runner && after.owner == before.owner && after.digest == last.digest
    });
    before.kind == Kind::File
        && last.kind == Kind::File
        && earlier.iter().any(is_device)
        && (is_written || facts.is(place, State::Before))
        && (facts.trial.cp.code, facts.trial.flatout.code) == (Some(1), Some(1))
}

/// The directory that was there, below which this is new, hands its group down.
pub fn inherits_group(facts: &Facts<'_>, place: &[u8]) -> bool {
    let mut above = parent(place);
    while !above.is_empty() && facts.before(above).is_none() {
        above = parent(above);
    }
    facts.before(above).is_some_and(|above| above.mode & 0o2000 != 0)
}

/// It is a directory of somebody else in which entries were replaced.
pub fn has_time_of_its_own(facts: &Facts<'_>, place: &[u8], aspects: &[Aspect]) -> bool {
    let Some((runner, before)) = facts.trial.case.runner.zip(facts.before(place)) else {
        return false;
    };
    aspects == [Aspect::Modified]
        && before.kind == Kind::Directory
        && before.owner.0 != runner
        && (facts.trial.cp.code, facts.trial.flatout.code) == (Some(1), Some(1))
        && facts.children(place).any(|child| facts.before(child).is_some())
}
