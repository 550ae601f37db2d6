//! What is wrong with a trial: differences from `cp -a` that no rule allows, and what the checks
//! without cp find.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use super::super::oracle::{Aspect, Difference, Entry, Kind, Leeway, differences};
use super::case::parent;
use super::differences::{RULES, Rule};
use super::mapping::{Meeting, Pair, meeting};
use super::safety;
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

/// Something wrong: what the group is called that it belongs to, and the details.
pub struct Finding {
    pub group: String,
    pub detail: String,
}

impl Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}\n{}", self.group, self.detail)
    }
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
        let earlier = pairs[..last_file].iter().map(|pair| &pair.source[..]);
        let mut links = std::iter::once(target).chain(earlier);
        links.find_map(|link| self.trial.leads.get(link)?.as_deref())
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
        let runner = self.trial.case.runner;
        let pairs = self.sources.get(place).map_or(&[][..], |pairs| &pairs[..]);
        let is_copy = |pair: &&Pair| {
            let source = &self.trial.before.entries[&pair.source];
            is_like(source, after, runner.is_some()) || is_merged(source, after)
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

/// Everything that is wrong.
pub fn judge(trial: &Trial<'_>) -> Vec<Finding> {
    let facts = Facts::new(trial);
    let mut found = safety::check(&facts);
    if !trial.has_model() {
        return found;
    }
    let all = differences(&trial.cp.after, &trial.flatout.after, Leeway::NONE);
    let mut places: BTreeMap<&[u8], Vec<&Difference>> = BTreeMap::new();
    for difference in &all {
        places.entry(&difference.path).or_default().push(difference);
    }
    for (place, differences) in places {
        let aspects: Vec<Aspect> = differences.iter().map(|found| found.aspect).collect();
        // Whoever reads changes when it was read; only a copy is given that time.
        let is_failed_directory =
            facts.meeting(place) == Meeting::Is(Kind::Directory) && trial.flatout.code != Some(0);
        let is_copy = facts.state(place, &trial.flatout) == State::Copied && !is_failed_directory;
        let aspects: Vec<Aspect> =
            aspects.into_iter().filter(|aspect| is_copy || *aspect != Aspect::Accessed).collect();
        if aspects.is_empty() {
            continue;
        }
        if !RULES.iter().any(|rule| (rule.allows)(&facts, place, &aspects)) {
            found.push(unexplained(&facts, place, &aspects, &differences));
        }
    }
    let (cp, flatout) = (trial.cp.code, trial.flatout.code);
    let is_explained =
        |rule: &Rule| facts.sources.keys().any(|place| (rule.changes_exit)(&facts, place));
    if cp != flatout && !RULES.iter().any(is_explained) {
        found.push(Finding {
            group: format!(
                "exit codes: cp {cp:?}{}, flatout {flatout:?}{}",
                complaint(&trial.cp),
                complaint(&trial.flatout)
            ),
            detail: format!("cp: {}flatout: {}", trial.cp.stderr, trial.flatout.stderr),
        });
    }
    found
}

/// The first thing that was said, without names.
fn complaint(outcome: &Outcome) -> String {
    let line = outcome.stderr.lines().next().unwrap_or_default();
    let is_name = |word: &&str| word.contains('/') || word.contains('\\');
    let words: Vec<&str> = line.split(' ').filter(|word| !is_name(word)).skip(1).collect();
    if words.is_empty() { String::new() } else { format!(" ({})", words.join(" ")) }
}

fn unexplained(
    facts: &Facts<'_>,
    place: &[u8],
    aspects: &[Aspect],
    differences: &[&Difference],
) -> Finding {
    let trial = facts.trial;
    let who = if trial.case.runner.is_some() { "user" } else { "root" };
    let (sources, target) = (facts.source_meetings(place), facts.meeting(place));
    let (cp, flatout) = (facts.state(place, &trial.cp), facts.state(place, &trial.flatout));
    let linked = if facts.other_names(place).is_empty() { "" } else { " (linked)" };
    let through =
        if facts.written_through.contains_key(place) { " (a link leads here)" } else { "" };
    let above = match facts.meeting(parent(place)) {
        Meeting::Is(Kind::Directory) => String::new(),
        other => format!(" in {other:?}"),
    };
    // Two known states say all.
    let aspects = match (cp == State::Other && flatout == State::Other) || cp == flatout {
        true => format!(", {aspects:?}"),
        false => String::new(),
    };
    let detail: Vec<String> =
        differences.iter().map(|difference| format!("  {difference}\n")).collect();
    Finding {
        group: format!(
            "{who}: {sources:?} over {target:?}{linked}{through}{above}: cp {cp:?}, flatout {flatout:?}{aspects}"
        ),
        detail: detail.concat(),
    }
}
