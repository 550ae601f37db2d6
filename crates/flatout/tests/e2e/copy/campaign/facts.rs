//! What can be asked of a trial: what was at a place, what belongs there, and what came of it.

use std::collections::BTreeMap;

use super::super::oracle::{Entry, Kind};
use super::case::parent;
use super::mapping::{Meeting, Pair, meeting};
use super::trial::{Outcome, Trial};

/// What is at a place after a run, compared with what could be expected there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Nothing is there.
    Absent,
    /// Not changed.
    Before,
    /// Like the source that is copied there; if there are several, the last one.
    Copied,
    /// Like a source that is copied there, but not the last one.
    CopiedEarlier,
    /// None of these.
    Other,
}

/// A trial with what the rules ask for.
pub struct Facts<'a> {
    pub trial: &'a Trial<'a>,
    /// The sources of each place of the target, in the order of the operands.
    pub sources: BTreeMap<&'a [u8], Vec<&'a Pair>>,
    /// The ends of symlinks of the target that have the name of a source file.
    pub written_through: BTreeMap<&'a [u8], Vec<&'a [u8]>>,
}

impl<'a> Facts<'a> {
    pub fn new(trial: &'a Trial<'a>) -> Self {
        let mut sources: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for pair in &trial.pairs {
            sources.entry(&pair.target[..]).or_default().push(pair);
        }
        let mut facts = Self { trial, sources, written_through: BTreeMap::new() };
        for target in facts.sources.keys().copied().collect::<Vec<_>>() {
            if let Some(end) = facts.end_under_file(target) {
                facts.written_through.entry(end).or_default().push(target);
            }
        }
        facts
    }

    /// Where the symlink leads that a file comes across here, be it there before or copied from an
    /// earlier operand.
    pub fn end_under_file(&self, target: &[u8]) -> Option<&'a [u8]> {
        let is_file = |pair: &&Pair| self.trial.before.entries[&pair.source].kind == Kind::File;
        let pairs = self.sources.get(target)?;
        let last_file = pairs.iter().rposition(is_file)?;
        // Trees that are merged have the same depth, so texts lead to the same from both.
        let earlier = pairs[..last_file].iter().rev().map(|pair| &pair.source[..]);
        let mut links = earlier.chain(std::iter::once(target));
        links.find_map(|link| {
            // What it leads to may come only from an operand.
            let new = || self.trial.hops.get(link)?.last().map(|hop| &hop[..]);
            self.trial.leads.get(link)?.as_deref().or_else(new)
        })
    }

    pub fn before(&self, place: &[u8]) -> Option<&'a Entry> {
        self.trial.before.entries.get(place)
    }

    pub fn meeting(&self, place: &[u8]) -> Meeting {
        meeting(place, &self.trial.before, &self.trial.leads)
    }

    /// What the sources of a place are.
    pub fn source_meetings(&self, place: &[u8]) -> Vec<Meeting> {
        let pairs = self.sources.get(place).map_or(&[][..], |pairs| &pairs[..]);
        pairs.iter().map(|pair| self.meeting(&pair.source)).collect()
    }

    pub fn state(&self, place: &[u8], outcome: &Outcome) -> State {
        let Some(after) = outcome.after.entries.get(place) else { return State::Absent };
        let is_without_privilege = !self.trial.case.is_privileged();
        let pairs = self.sources.get(place).map_or(&[][..], |pairs| &pairs[..]);
        let is_copy = |pair: &&Pair| {
            let source = &self.trial.before.entries[&pair.source];
            is_like(source, after, is_without_privilege) || is_merged(source, after)
        };
        match pairs.iter().rposition(is_copy) {
            Some(last) if last + 1 == pairs.len() => State::Copied,
            Some(_) => State::CopiedEarlier,
            None if self.before(place).is_some_and(|before| is_like(before, after, false)) => {
                State::Before
            }
            None => State::Other,
        }
    }

    /// Other names, before the run, of what is at a place.
    pub fn other_names(&self, place: &[u8]) -> Vec<&'a [u8]> {
        let Some(entry) = self.before(place) else { return Vec::new() };
        if entry.kind == Kind::Directory || entry.names < 2 {
            return Vec::new();
        }
        let all = self.trial.before.entries.iter();
        let same =
            all.filter(|(other, found)| found.identity == entry.identity && &other[..] != place);
        same.map(|(other, _)| &other[..]).collect()
    }

    /// Whether flatout left this place in this state.
    pub fn is(&self, place: &[u8], state: State) -> bool {
        self.state(place, &self.trial.flatout) == state
    }

    /// Whether it has what the last source has that could come here; one that is refused is named.
    pub fn is_done(&self, place: &[u8]) -> bool {
        let is_complained = self.trial.flatout.code == Some(1);
        self.is(place, State::Copied) || is_complained && self.is(place, State::CopiedEarlier)
    }

    /// Whether nothing belongs here and nothing has changed, or what belongs here came or was
    /// refused.
    pub fn is_planned(&self, place: &[u8]) -> bool {
        let is_before = self.is(place, State::Before);
        let is_complained = self.trial.flatout.code == Some(1);
        match self.sources.contains_key(place) {
            true => self.is_done(place) || is_before && is_complained,
            false => is_before,
        }
    }

    pub fn has_file_source(&self, place: &[u8]) -> bool {
        self.source_meetings(place).contains(&Meeting::Is(Kind::File))
    }

    /// Whether a file comes across a symlink that leads to something, but to no directory.
    pub fn leads_to_no_directory(&self, place: &[u8]) -> bool {
        let end = self.end_under_file(place).and_then(|end| self.before(end));
        // Replaced by what another operand brings; its own source was refused.
        let is_replaced = self.trial.flatout.code == Some(1)
            && (self.is(place, State::CopiedEarlier)
                || self.sources.get(place).is_some_and(|pairs| pairs.len() > 1)
                    && self.is(place, State::Copied));
        end.is_some_and(|end| end.kind != Kind::Directory)
            && (is_replaced || !self.is_own_source(place))
    }

    /// Whether a symlink of the target leads to its own source, which both refuse.
    pub fn is_own_source(&self, place: &[u8]) -> bool {
        let end = self.trial.leads.get(place).and_then(Option::as_ref);
        let end = end.and_then(|end| self.before(end));
        let same = |identity| self.source_entries(place).iter().any(|one| one.identity == identity);
        end.is_some_and(|end| same(end.identity))
    }

    /// Whether a source of this place, or another name of it, was written by cp through a symlink.
    pub fn copies_what_cp_wrote(&self, place: &[u8]) -> bool {
        let pairs = self.sources.get(place).map_or(&[][..], |pairs| &pairs[..]);
        let is_written = |name: &[u8]| self.written_through.contains_key(name);
        pairs.iter().any(|pair| {
            is_written(&pair.source)
                || self.other_names(&pair.source).iter().any(|name| is_written(name))
        })
    }

    /// The places to which other names of its sources belong.
    pub fn twins(&self, place: &[u8]) -> Vec<&'a [u8]> {
        let identities: Vec<(u64, u64)> =
            self.source_entries(place).iter().map(|entry| entry.identity).collect();
        let is_twin = |other: &[u8]| {
            self.source_entries(other).iter().any(|entry| identities.contains(&entry.identity))
        };
        let others = self.sources.keys().filter(|other| **other != place && is_twin(other));
        others.copied().collect()
    }

    /// Whether a source of this place is copied to another place, too.
    pub fn is_read_twice(&self, place: &[u8]) -> bool {
        let is_elsewhere = |source: &[u8]| {
            self.trial.pairs.iter().any(|pair| pair.source == source && pair.target != place)
        };
        self.sources
            .get(place)
            .is_some_and(|pairs| pairs.iter().any(|pair| is_elsewhere(&pair.source)))
    }

    pub fn is_unmapped_directory(&self, place: &[u8]) -> bool {
        let is_directory = self.meeting(place) == Meeting::Is(Kind::Directory);
        is_directory && !self.sources.contains_key(place)
    }

    pub fn children(&self, place: &[u8]) -> impl Iterator<Item = &'a [u8]> {
        self.sources.keys().copied().filter(move |child| parent(child) == place)
    }
}

/// Whether a directory is like a source that was merged into it: it keeps its own special bits and
/// user attributes.
fn is_merged(entry: &Entry, copy: &Entry) -> bool {
    let lists = |entry: &Entry| {
        let all = entry.attributes.clone().into_iter();
        all.filter(|(name, _)| name.starts_with(b"system.")).collect::<Vec<_>>()
    };
    let mut attributes = entry.attributes.iter();
    entry.kind == Kind::Directory
        && copy.kind == Kind::Directory
        && (entry.mode ^ copy.mode) & 0o777 == 0
        && entry.modified == copy.modified
        && lists(entry) == lists(copy)
        && attributes.all(|(name, value)| copy.attributes.get(name) == Some(value))
}

/// Whether they are alike in all but where they are. A copy by somebody without privilege has
/// another owner, and no special bits then.
pub fn is_like(entry: &Entry, copy: &Entry, is_without_privilege: bool) -> bool {
    let bits = if is_without_privilege { 0o777 } else { 0o7777 };
    let is_same_content = match entry.kind {
        Kind::File => (entry.length_bytes, entry.digest) == (copy.length_bytes, copy.digest),
        _ => entry.text == copy.text && entry.device == copy.device,
    };
    entry.kind == copy.kind
        && (entry.mode ^ copy.mode) & bits == 0
        && (is_without_privilege || entry.owner == copy.owner)
        && entry.modified == copy.modified
        && entry.attributes == copy.attributes
        && is_same_content
}
