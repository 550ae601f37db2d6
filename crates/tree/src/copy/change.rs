//! What is changed of an entry, in the letters of rsync(1) (`--itemize-changes`): looked at before
//! anything is done, so that a dry run says the same.

use std::ffi::OsString;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStringExt;

use rustix::fs::{FileType, Stat};

use super::attributes::Difference;
use super::event::Lead;
use super::special::text_of;
use super::{Action, Copy, Entry, Event, Node, Outcome, Preserve, Side, Unchanged, kind_of};
use crate::path;

/// What is done, what it is done to, and nine letters for what changes.
pub type Letters = [u8; 11];

const NOTHING: [u8; 9] = *b".........";

/// Source and target of an entry before it is copied.
pub(super) struct Before {
    source: Stat,
    /// What bears the name, and how its attributes differ; `None`: nothing of this kind.
    found: Option<(Stat, Difference)>,
}

impl Before {
    /// Looks at an entry that is no directory, where anybody wants to know. What cannot be looked at
    /// fails when it is copied.
    pub(super) fn of(entry: Entry<'_>) -> Option<Self> {
        let copy = entry.copy;
        if !copy.watch.wants_changes() {
            return None;
        }
        let source = entry.facts().ok()?;
        let is_new = entry.pair.found.made.is_new();
        let found = if is_new { None } else { entry.in_the_way().ok()? };
        let found = found.filter(|found| is_alike(&source, found)).map(|found| {
            let nodes = [entry.source_place(), entry.target_place()].map(Node::Named);
            (found, copy.attributes.difference(nodes, &source, &found))
        });
        Some(Self { source, found })
    }

    /// Tells what was changed of it, if anything was.
    pub(super) fn tell(&self, entry: Entry<'_>, outcome: &Outcome) {
        let copy = entry.copy;
        let is_link = outcome.action == Action::Linked;
        let lead = if is_link { link_of(entry, outcome) } else { None };
        let update = match outcome.action {
            Action::Copied => b'>',
            Action::Made => b'c',
            // An unchanged file of a snapshot is what it was there.
            Action::Linked if lead.is_some() => b'h',
            // By the rules of cp it is left alone; and so is what is known to be finished.
            Action::Unchanged if copy.puts_right(&self.source) => b'.',
            _ => return,
        };
        let mut letters = letters(copy, update, &self.source, self.found.as_ref());
        let is_compared = copy.options.unchanged == Unchanged::Content;
        let has_other_value = update == b'c' || update == b'>' && is_compared;
        if has_other_value && self.found.is_some() {
            letters[2] = b'c';
        }
        if letters[2..] == NOTHING && update != b'>' {
            if update == b'.' {
                return;
            }
            letters[2..].fill(b' ');
        }
        let lead = lead.or_else(|| {
            let is_symlink = kind_of(self.source).is_symlink();
            let text = if is_symlink { text_of(entry).ok() } else { None };
            text.map(|text| Lead::Symlink(OsString::from_vec(text.into_bytes())))
        });
        let [source, target] = entry.paths();
        copy.watch.event(&Event::Changed { letters, source, target, lead });
    }
}

impl Copy<'_> {
    /// Whether attributes of what is up to date are put right.
    fn puts_right(&self, source: &Stat) -> bool {
        let is_file = kind_of(source).is_file();
        self.rules().is_none() && !(is_file && self.unchanged() == Unchanged::Recorded)
    }

    /// Tells what is changed of a directory; `found`: the one that was there, and both of them.
    pub(super) fn tell_of_directory(
        &self,
        entry: Entry<'_>,
        facts: &Stat,
        found: Option<(&Stat, [BorrowedFd<'_>; 2])>,
    ) {
        if !self.watch.wants_changes() {
            return;
        }
        let update = if found.is_none() { b'c' } else { b'.' };
        let found = found.map(|(found, both)| {
            let nodes = both.map(Node::of_directory);
            (*found, self.attributes.difference(nodes, facts, found))
        });
        let letters = letters(self, update, facts, found.as_ref());
        if update == b'.' && letters[2..] == NOTHING {
            return;
        }
        let [source, target] = entry.paths();
        self.watch.event(&Event::Changed { letters, source, target, lead: None });
    }
}

/// Whether one takes the place of the other without that being removed first, as rsync sees it.
fn is_alike(source: &Stat, found: &Stat) -> bool {
    let [one, other] = [source, found].map(kind_letter);
    one == other
}

fn kind_letter(facts: &Stat) -> u8 {
    match kind_of(facts) {
        FileType::Directory => b'd',
        FileType::Symlink => b'L',
        FileType::CharacterDevice | FileType::BlockDevice => b'D',
        FileType::Fifo | FileType::Socket => b'S',
        _ => b'f',
    }
}

/// The name of which an entry became another one.
fn link_of(entry: Entry<'_>, outcome: &Outcome) -> Option<Lead> {
    use super::rules::Form;
    if entry.copy.rules().is_some_and(|rules| rules.form == Form::HardLink) {
        return Some(Lead::Link(entry.path(Side::Source)));
    }
    let known = outcome.link_of.as_ref()?;
    let mut path = entry.directory.base_above().path(Side::Target, None).into_vec();
    path::push(&mut path, known);
    Some(Lead::Link(OsString::from_vec(path)))
}

fn letters(
    copy: &Copy<'_>,
    update: u8,
    source: &Stat,
    found: Option<&(Stat, Difference)>,
) -> Letters {
    let kind = kind_letter(source);
    let mut letters = [b'+'; 11];
    [letters[0], letters[1]] = [update, kind];
    let Some((found, differs)) = found else { return letters };
    let keeps_times = copy.options.preserve.has(Preserve::TIMESTAMPS);
    let letter = |is_set: bool, letter: u8| if is_set { letter } else { b'.' };
    letters[2] = b'.';
    letters[3] = letter(kind == b'f' && source.st_size != found.st_size, b's');
    letters[4] = match keeps_times {
        true => letter(differs.time, b't'),
        false => letter(update != b'.', b'T'),
    };
    letters[5] = letter(differs.mode, b'p');
    letters[6] = letter(differs.user, b'o');
    letters[7] = letter(differs.group, b'g');
    letters[8] = b'.';
    letters[9] = letter(differs.lists, b'a');
    letters[10] = letter(differs.extended, b'x');
    letters
}
