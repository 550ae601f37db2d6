//! Which entry of a source is to become which entry of the target, by the operands alone.

use std::collections::BTreeMap;

use super::super::oracle::{Kind, Portrait};
use super::case::{Case, Form, last};
use super::item::Place;

/// An entry of a source and where its copy belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    pub source: Place,
    pub target: Place,
}

/// All pairs, in the order of the operands; a directory comes before what is in it.
pub fn pairs(case: &Case, before: &Portrait, leads: &BTreeMap<Place, Option<Place>>) -> Vec<Pair> {
    let Some((target, sources)) = case.operands.split_last() else { return Vec::new() };
    // A target that is spelt as a symlink to a directory is that directory.
    let is_exact = matches!(case.form, Form::Exact | Form::One);
    let root = match leads.get(target) {
        Some(Some(end)) if !is_exact => end,
        _ => target,
    };
    // A symlink to a file that the user names is followed. One to a directory is not, nor one to a
    // file with several names (cp removes what leads to one), nor where what comes is no file.
    let is_file =
        |place: &Place| before.entries.get(place).map(|entry| entry.kind) == Some(Kind::File);
    let root = match leads.get(target) {
        Some(Some(end))
            if is_exact
                && is_file(end)
                && before.entries[end].names == 1
                && sources.iter().all(is_file) =>
        {
            end
        }
        _ => root,
    };
    let mut all = Vec::new();
    for operand in sources {
        let contents = operand.strip_suffix(b"/.");
        let source = contents.unwrap_or(operand);
        let root = match contents.is_some() || is_exact {
            true => root.clone(),
            false => [&root[..], b"/", last(source)].concat(),
        };
        all.extend(below(source, before).map(|place| Pair {
            source: place.clone(),
            target: [&root, &place[source.len()..]].concat(),
        }));
    }
    all
}

/// A place and all that is below it.
pub fn below<'a>(root: &'a [u8], before: &'a Portrait) -> impl Iterator<Item = &'a Place> {
    let is_below = move |place: &&Place| {
        place.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
    };
    before.entries.keys().filter(is_below)
}

/// The kind of what is at a place, and for a symlink of what it leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meeting {
    Nothing,
    Is(Kind),
    LinkTo(Kind),
    Dangling,
}

/// What is there.
pub fn meeting(place: &[u8], before: &Portrait, leads: &BTreeMap<Place, Option<Place>>) -> Meeting {
    let Some(entry) = before.entries.get(place) else { return Meeting::Nothing };
    if entry.kind != Kind::Symlink {
        return Meeting::Is(entry.kind);
    }
    let end = leads.get(place).and_then(Option::as_ref);
    match end.and_then(|end| before.entries.get(end)) {
        Some(end) => Meeting::LinkTo(end.kind),
        None => Meeting::Dangling,
    }
}
