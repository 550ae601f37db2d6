//! Every difference from `cp -a` that is allowed, each with the sentence of docs/copying.md that it
//! rests on. A rule says what must be there on flatout's side, not that a place does not matter.
//! Where one sentence has several consequences, each is a rule of its own.

use super::super::oracle::{Aspect, Entry, Kind};
use super::facts::{Facts, State};
use super::mapping::{Meeting, Pair};

const REPLACED_SYMLINK: &str = "A symlink in the target that bears the name of a file to be copied is replaced, where cp writes to what it points at.";
const SPECIAL: &str =
    "A FIFO, socket or device in the target is not overwritten by a file: cp would write into it.";
const RENAMED: &str = "**An existing file is replaced by rename**";
const NEW_IN_ALL: &str = "A file that replaces another one has nothing of it: no set-id or sticky bit, extended attribute or foreign owner, which cp leaves as they are.";
const SPECIAL_BITS: &str = "A directory that was there keeps its set-group-ID and sticky bits.";
const STICKY: &str = "An owner that cannot be kept costs the set-id bits";
const FIRST_HOP: &str = "A symlink is not put in the place of a symlink that it refers to.";
const SURVIVES: &str = "What cannot be replaced stays, where cp may have removed it already.";
const ENTANGLED: &str = "Where a symlink leads to what the same copy replaces, both what was there and what comes are seen.";

const FIDELITY: &str = "extended attributes, ACLs, file capabilities";

const PARTIAL: &str = "What cannot be set of a directory does not keep the rest from being set.";

const ONE_INODE: &str = "One inode that two operands bring to one name is copied; cp removes the first copy and then cannot link to it.";

/// One documented difference.
pub struct Rule {
    pub name: &'static str,
    /// Where docs/copying.md says so.
    pub sentence: &'static str,
    /// Whether it predicts what flatout has at this place, where the two differ in these aspects.
    pub allows: fn(&Facts<'_>, &[u8], &[Aspect]) -> bool,
    /// Whether it predicts that this place makes the exit codes differ.
    pub changes_exit: fn(&Facts<'_>, &[u8]) -> bool,
}

pub const RULES: &[Rule] = &[
    Rule {
        name: "a symlink under the name of a file is replaced",
        sentence: REPLACED_SYMLINK,
        allows: |facts, place, _| {
            let is_file = facts.has_file_source(place);
            is_file && facts.leads_to_no_directory(place) && facts.is_done(place)
        },
        // Where writing through it fails, replacing it does not.
        changes_exit: |facts, place| {
            facts.has_file_source(place)
                && facts.leads_to_no_directory(place)
                && facts.is(place, State::Copied)
                && facts.trial.flatout.code == Some(0)
        },
    },
    Rule {
        name: "what such a symlink leads to is not written",
        sentence: REPLACED_SYMLINK,
        allows: |facts, place, _| {
            let is_written = facts.written_through.contains_key(place)
                || facts
                    .other_names(place)
                    .iter()
                    .any(|name| facts.written_through.contains_key(name));
            is_written && facts.is_planned(place)
        },
        changes_exit: never,
    },
    Rule {
        name: "what cp wrote over before it copied it is copied as it was",
        sentence: REPLACED_SYMLINK,
        allows: |facts, place, _| {
            facts.copies_what_cp_wrote(place) && facts.is(place, State::Copied)
        },
        changes_exit: never,
    },
    Rule {
        name: "a FIFO, socket or device stays",
        sentence: SPECIAL,
        allows: |facts, place, _| is_special_still(facts, place),
        changes_exit: |facts, place| {
            is_special_still(facts, place) || is_refused_special_replaced(facts, place)
        },
    },
    Rule {
        name: "another name of a source is no name of what cp wrote into",
        sentence: SPECIAL,
        allows: |facts, place, _| {
            facts.is(place, State::Copied)
                && facts.twins(place).iter().any(|twin| {
                    is_special(facts, twin) || matches!(facts.meeting(twin), Meeting::LinkTo(_))
                })
        },
        changes_exit: never,
    },
    Rule {
        name: "a file that is replaced is the new one in all",
        sentence: NEW_IN_ALL,
        allows: |facts, place, aspects| {
            let allowed =
                [Aspect::Mode, Aspect::Attributes, Aspect::Owner, Aspect::Links, Aspect::Accessed];
            let is_replaced = |place: &[u8]| {
                let is_file = |before: &Entry| before.kind == Kind::File;
                facts.before(place).is_some_and(is_file) || facts.sources[place].len() > 1
            };
            facts.has_file_source(place)
                && (is_replaced(place) || facts.twins(place).into_iter().any(is_replaced))
                && facts.is_done(place)
                && aspects.iter().all(|aspect| allowed.contains(aspect))
        },
        changes_exit: never,
    },
    Rule {
        name: "replacing changes the directory",
        sentence: RENAMED,
        allows: |facts, place, aspects| {
            facts.is_unmapped_directory(place)
                && aspects.iter().all(|aspect| *aspect == Aspect::Modified)
                && facts.children(place).any(|child| {
                    facts.before(child).is_some_and(|before| before.kind != Kind::Directory)
                })
        },
        changes_exit: never,
    },
    Rule {
        name: "special bits of a directory",
        sentence: SPECIAL_BITS,
        allows: |facts, place, aspects| aspects == [Aspect::Mode] && has_planned_bits(facts, place),
        changes_exit: never,
    },
    Rule {
        name: "the sticky bit is not lost with the owner",
        sentence: STICKY,
        allows: |facts, place, aspects| {
            let after = facts.trial.flatout.after.entries.get(place);
            aspects == [Aspect::Mode]
                && !facts.trial.case.is_privileged()
                && facts.is(place, State::Copied)
                && after.is_some_and(|after| {
                    let sources = facts.source_entries(place);
                    sources.iter().any(|source| after.mode == source.mode & 0o1777)
                })
        },
        changes_exit: never,
    },
    Rule {
        name: "attributes that cp cannot set because it made or found the entry read-only",
        sentence: FIDELITY,
        allows: |facts, place, aspects| {
            let is_made_read_only = facts.trial.case.umask & 0o200 != 0;
            !facts.trial.case.is_privileged()
                && facts.before(place).map_or(is_made_read_only, |before| {
                    let is_closed = |entry: &Entry| entry.mode & 0o200 == 0;
                    // cp takes from a directory what its source does not have before it sets these.
                    let is_to_be = || facts.source_entries(place).into_iter().any(is_closed);
                    is_made_read_only
                        || before.kind == Kind::Directory && (is_closed(before) || is_to_be())
                })
                && aspects == [Aspect::Attributes]
                && facts.is(place, State::Copied)
        },
        changes_exit: never,
    },
    Rule {
        name: "a directory of somebody else gets the attributes that it can be given",
        sentence: PARTIAL,
        allows: |facts, place, aspects| {
            aspects == [Aspect::Attributes] && has_known_attributes(facts, place)
        },
        changes_exit: never,
    },
    Rule {
        name: "one inode that two operands bring to one place",
        sentence: ONE_INODE,
        allows: |facts, place, _| has_one_inode_twice(facts, place),
        changes_exit: |facts, place| {
            has_one_inode_twice(facts, place) && facts.trial.flatout.code == Some(0)
        },
    },
    Rule {
        name: "a symlink does not replace the symlink that it refers to",
        sentence: FIRST_HOP,
        allows: |facts, place, _| is_kept_from_loop(facts, place),
        changes_exit: is_kept_from_loop,
    },
    Rule {
        name: "what was there survives a failure",
        sentence: SURVIVES,
        allows: |facts, place, _| {
            let trial = facts.trial;
            facts.sources.contains_key(place)
                && (facts.is(place, State::Before) || facts.is(place, State::CopiedEarlier))
                && !trial.cp.after.entries.contains_key(place)
                && (trial.cp.code, trial.flatout.code) == (Some(1), Some(1))
        },
        changes_exit: never,
    },
    Rule {
        name: "a device that nobody may make leaves what a later symlink refers to",
        sentence: SURVIVES,
        allows: |facts, place, _| {
            let is_device =
                |entry: &&Entry| [Kind::CharacterDevice, Kind::BlockDevice].contains(&entry.kind);
            let refers = |pair: &&Pair| {
                facts
                    .trial
                    .hops
                    .get(&pair.source)
                    .is_some_and(|hops| hops.iter().any(|hop| hop == place))
            };
            let trial = facts.trial;
            !trial.case.is_privileged()
                && facts.source_entries(place).iter().any(is_device)
                && facts.sources[place].last().is_some_and(refers)
                && facts.is(place, State::Before)
                && (trial.cp.code, trial.flatout.code) == (Some(1), Some(1))
        },
        changes_exit: never,
    },
    Rule {
        name: "symlinks that lead to what is replaced",
        sentence: ENTANGLED,
        allows: |facts, place, _| is_either_way(facts, place),
        changes_exit: is_either_way,
    },
];

fn never(_: &Facts<'_>, _: &[u8]) -> bool {
    false
}

/// A regular file is to be copied to where a FIFO, a socket or a device is, or has come from an
/// earlier operand.
fn is_special(facts: &Facts<'_>, place: &[u8]) -> bool {
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
fn is_refused_special_replaced(facts: &Facts<'_>, place: &[u8]) -> bool {
    let is_refused = facts.trial.flatout.stderr.contains("it is a pipe, socket or device");
    let is_file_last =
        facts.source_entries(place).last().is_some_and(|last| last.kind == Kind::File);
    is_special(facts, place) && is_refused && !is_file_last && facts.is(place, State::Copied)
}

/// It is the one that was there, or that came first, and the file was refused.
fn is_special_still(facts: &Facts<'_>, place: &[u8]) -> bool {
    let is_first = facts.is(place, State::Before) || facts.is(place, State::CopiedEarlier);
    is_special(facts, place) && is_first && facts.trial.flatout.code == Some(1)
}

/// The mode of a directory is the source's, with the set-group-ID bit that it had. Whether an
/// existing directory keeps its sticky bit, as with cp, is left open.
fn has_planned_bits(facts: &Facts<'_>, place: &[u8]) -> bool {
    let Some(after) = facts.trial.flatout.after.entries.get(place) else { return false };
    let before = facts.before(place).map_or(0, |before| before.mode);
    let is_planned = |mode: u32| {
        let base = mode | before & 0o2000;
        after.mode == base || after.mode == base | before & 0o1000
    };
    let is_without_privilege = !facts.trial.case.is_privileged();
    after.kind == Kind::Directory
        && facts.source_entries(place).iter().any(|source| {
            // Without privilege the set-id bits may go with the owner.
            is_planned(source.mode)
                || is_without_privilege
                    && (is_planned(source.mode & 0o777) || is_planned(source.mode & 0o1777))
        })
}

/// A directory of somebody else: each attribute that it has now was its own or is a source's.
fn has_known_attributes(facts: &Facts<'_>, place: &[u8]) -> bool {
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
    before.kind == Kind::Directory
        && before.owner.0 != runner
        && after.attributes.iter().all(|(name, value)| is_known(name, value))
}

/// cp has removed the copy that it wanted to link to; here it is.
fn has_one_inode_twice(facts: &Facts<'_>, place: &[u8]) -> bool {
    let sources = facts.source_entries(place);
    let is_same = |pair: &[&Entry]| pair[0].identity == pair[1].identity;
    sources.windows(2).any(is_same)
        && sources[0].kind != Kind::Directory
        && !facts.trial.cp.after.entries.contains_key(place)
        && facts.is(place, State::Copied)
}

/// A source is a symlink whose text names this place, where a symlink is that was there, or that an
/// earlier operand has brought: it is refused.
fn is_kept_from_loop(facts: &Facts<'_>, place: &[u8]) -> bool {
    let first = |source: &[u8]| facts.trial.hops.get(source).and_then(|hops| hops.first());
    let pairs = facts.sources.get(place).map_or(&[][..], |pairs| &pairs[..]);
    let names_it = |pair: &&Pair| first(&pair.source).is_some_and(|first| first == place);
    let is_link = |entry: &Entry| entry.kind == Kind::Symlink;
    let is_first = facts.is(place, State::Before) || facts.is(place, State::CopiedEarlier);
    pairs.iter().any(names_it)
        && facts.trial.flatout.after.entries.get(place).is_some_and(is_link)
        && is_first
        && facts.trial.flatout.code == Some(1)
}

/// The source or the target is a symlink with a hop at a place that this copy changes, too: it is
/// copied or it stays and is complained about.
fn is_either_way(facts: &Facts<'_>, place: &[u8]) -> bool {
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

/// What is documented is what the rules say: each sentence stands in docs/copying.md.
#[test]
fn every_rule_rests_on_a_sentence_of_the_documentation() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/copying.md");
    let page = std::fs::read_to_string(path).unwrap();
    let missing: Vec<String> = (RULES.iter())
        .filter(|rule| !page.contains(rule.sentence))
        .map(|rule| format!("{}: {}\n", rule.name, rule.sentence))
        .collect();
    assert!(missing.is_empty(), "docs/copying.md does not say:\n{}", missing.concat());
}
