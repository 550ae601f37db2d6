//! In what two trees differ.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use super::holes::{data_in_holes, holes_of};
use super::{Entry, Kind, Portrait};

/// Blocks that a filesystem may use for itself: indirect ones, long attributes, and what xfs keeps
/// ready for a file that grows.
const OWN_BYTES: u64 = 1 << 20;

/// Differences that a failure prints.
const SHOWN: usize = 20;

/// What an entry differs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Aspect {
    Missing,
    Extra,
    Kind,
    Mode,
    Owner,
    Modified,
    Accessed,
    Length,
    Content,
    Holes,
    /// It takes more room than it needs.
    Room,
    Links,
    Text,
    Device,
    Attributes,
}

/// Where the copy may have holes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holes {
    /// Where the source has them and nowhere else.
    Same,
    /// Where the source has them; elsewhere too.
    AtLeast,
    /// Nowhere.
    Nowhere,
}

/// What is expected of a copy.
#[derive(Debug, Clone, Copy)]
pub struct Leeway {
    pub holes: Holes,
    /// What does not count.
    pub ignored: &'static [Aspect],
}

impl Leeway {
    /// Everything is the same.
    pub const NONE: Self = Self { holes: Holes::Same, ignored: &[] };

    /// Everything but these.
    pub const fn but(ignored: &'static [Aspect]) -> Self {
        Self { holes: Holes::Same, ignored }
    }

    /// The same with other holes.
    pub const fn holes(self, holes: Holes) -> Self {
        Self { holes, ..self }
    }
}

/// One thing that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub path: Vec<u8>,
    pub aspect: Aspect,
    detail: String,
}

impl Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut path = self.path.escape_ascii().to_string();
        if path.len() > 300 {
            path = format!("{}…{}", &path[..120], &path[path.len() - 120..]);
        }
        write!(formatter, "{:?} of \"{path}\": {}", self.aspect, self.detail)
    }
}

/// Fails unless the copy is what it is to be.
#[track_caller]
pub fn assert_same(source: &Portrait, target: &Portrait, leeway: Leeway, context: impl Display) {
    let found = differences(source, target, leeway);
    if !found.is_empty() {
        let lines: Vec<String> = found.iter().take(SHOWN).map(Difference::to_string).collect();
        panic!("{} differences\n{}\n{context}", found.len(), lines.join("\n"));
    }
}

/// Everything in which a copy differs from its source.
pub fn differences(source: &Portrait, target: &Portrait, leeway: Leeway) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut add = |path: &[u8], aspect: Aspect, detail: String| {
        if !leeway.ignored.contains(&aspect) {
            found.push(Difference { path: path.to_vec(), aspect, detail });
        }
    };
    let twins = (first_names(source), first_names(target));
    for (path, entry) in &source.entries {
        let Some(copy) = target.entries.get(path) else {
            add(path, Aspect::Missing, format!("a {:?}", entry.kind));
            continue;
        };
        if entry.kind != copy.kind {
            add(path, Aspect::Kind, format!("{:?} became {:?}", entry.kind, copy.kind));
            continue;
        }
        plain(entry, copy, &mut |aspect, detail| add(path, aspect, detail));
        if entry.kind == Kind::File {
            holes(entry, copy, leeway.holes, &mut |aspect, detail| add(path, aspect, detail));
        }
        if entry.kind == Kind::Directory {
            continue;
        }
        let (here, there) = (&twins.0[&entry.identity], &twins.1[&copy.identity]);
        if here.0 != there.0 {
            let name = |name: &[u8]| name.escape_ascii().to_string();
            add(path, Aspect::Links, format!("of {} became of {}", name(here.0), name(there.0)));
        } else if copy.names != there.1 {
            add(path, Aspect::Links, format!("{} names, {} of them here", copy.names, there.1));
        }
    }
    for (path, entry) in &target.entries {
        if !source.entries.contains_key(path) {
            add(path, Aspect::Extra, format!("a {:?}", entry.kind));
        }
    }
    found
}

/// For each inode its first name, and how many it has in the tree.
fn first_names(portrait: &Portrait) -> BTreeMap<(u64, u64), (&[u8], u64)> {
    let groups = portrait.groups().into_iter();
    groups.map(|(identity, paths)| (identity, (paths[0], paths.len() as u64))).collect()
}

fn plain(entry: &Entry, copy: &Entry, add: &mut dyn FnMut(Aspect, String)) {
    fn compare<T: PartialEq + fmt::Debug>(
        (aspect, before, after): (Aspect, T, T),
        add: &mut dyn FnMut(Aspect, String),
    ) {
        if before != after {
            add(aspect, format!("{before:?} became {after:?}"));
        }
    }
    let mode = |entry: &Entry| format!("{:o}", entry.mode);
    compare((Aspect::Mode, mode(entry), mode(copy)), add);
    compare((Aspect::Owner, entry.owner, copy.owner), add);
    compare((Aspect::Modified, entry.modified, copy.modified), add);
    if entry.kind != Kind::Symlink {
        compare((Aspect::Accessed, entry.accessed, copy.accessed), add);
    }
    compare((Aspect::Device, entry.device, copy.device), add);
    let text = |entry: &Entry| entry.text.escape_ascii().to_string();
    compare((Aspect::Text, text(entry), text(copy)), add);
    if entry.kind == Kind::File {
        compare((Aspect::Length, entry.length_bytes, copy.length_bytes), add);
        compare((Aspect::Content, entry.digest, copy.digest), add);
    }
    let names = entry.attributes.keys().chain(copy.attributes.keys());
    let mut names: Vec<&Vec<u8>> = names.collect();
    names.sort();
    names.dedup();
    for name in names {
        let (before, after) = (entry.attributes.get(name), copy.attributes.get(name));
        if before != after {
            let detail = format!("{}: {before:02x?} became {after:02x?}", name.escape_ascii());
            add(Aspect::Attributes, detail);
        }
    }
}

fn holes(entry: &Entry, copy: &Entry, rule: Holes, add: &mut dyn FnMut(Aspect, String)) {
    if entry.length_bytes != copy.length_bytes {
        return;
    }
    let wanted = holes_of(&entry.data, entry.length_bytes);
    let made = holes_of(&copy.data, copy.length_bytes);
    if rule == Holes::Nowhere {
        if let Some(hole) = made.first() {
            add(Aspect::Holes, format!("a hole at {hole:?}"));
        }
        return;
    }
    if let Some(offset) = data_in_holes(&wanted, &copy.data) {
        add(Aspect::Holes, format!("the hole at {offset} was filled"));
    }
    if rule == Holes::Same
        && let Some(offset) = data_in_holes(&made, &entry.data)
    {
        add(Aspect::Holes, format!("a hole at {offset} where there was data"));
    }
    let most = entry.data.iter().map(|data| data.end - data.start).sum::<u64>() + OWN_BYTES;
    let has_holes = !wanted.is_empty();
    if has_holes && copy.allocated_bytes > most.max(entry.allocated_bytes + OWN_BYTES) {
        add(Aspect::Room, format!("{} bytes, {most} would do", copy.allocated_bytes));
    }
}
