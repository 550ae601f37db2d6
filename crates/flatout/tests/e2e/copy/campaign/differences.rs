//! Every difference from `cp -a` that is allowed, each with the sentence of docs/copying.md that it
//! rests on. A rule says what must be there on flatout's side, not that a place does not matter.
//! Where one sentence has several consequences, each is a rule of its own.

use super::super::oracle::{Aspect, Entry, Kind};
use super::facts::{Facts, State};
use super::mapping::Meeting;
use super::names::{
    is_beside_kept_from_loop, is_dangling_still, is_directory_twice, is_kept_from_loop,
    is_link_beside, is_name_left, is_name_of_replaced, is_name_of_source, is_parted_or_written,
    is_protected_or_linked, stays_with_other_name,
};
use super::predictions::{
    has_known_attributes, has_one_inode_twice, has_planned_bits, has_time_of_its_own,
    inherits_group, is_alike_already, is_either_way, is_end_of_new, is_left_by_failure,
    is_locked_out, is_refused_special_replaced, is_special, is_special_behind_name,
    is_special_still,
};

const REPLACED_SYMLINK: &str = "A symlink in the target that bears the name of a file to be copied is replaced, where cp writes to what it points at.";
const SPECIAL: &str =
    "A FIFO, socket or device in the target is not overwritten by a file: cp would write into it.";
const RENAMED: &str = "**An existing file is replaced by rename**";
const NEW_IN_ALL: &str = "A file that replaces another one has nothing of it: no set-id or sticky bit, extended attribute or foreign owner, which cp leaves as they are.";
const SPECIAL_BITS: &str = "A directory that was there keeps its set-group-ID and sticky bits.";
const STICKY: &str = "An owner that cannot be kept costs the set-id bits";
const FIRST_HOP: &str = "A symlink is not put in the place of a symlink that it refers to. cp does that, and it leads to itself. Nor is it put in the place of one through which it leads, in the middle of its text or of another one on the way.";
const SURVIVES: &str = "What cannot be replaced stays, where cp may have removed it already.";
const ENTANGLED: &str = "Where a symlink leads to what the same copy replaces, both what was there and what comes are seen.";

const FIDELITY: &str = "extended attributes, ACLs, file capabilities";
const PARTIAL: &str = "What cannot be set of a directory, or of a file that is written in place, does not keep the rest from being set.";

const ONE_INODE: &str = "One inode that two operands bring to one name is copied; cp removes the first copy and then cannot link to it.";

const DANGLING: &str = "A symlink that dangles also stays where a further name of a file comes across it; cp puts a link in its place.";

const ORDER: &str = "Which name of a file is copied, and which become links to it, is left open. A link also takes the place of a file that may not be written, or is another user's, as with cp.";

const PARTED: &str = "Of several names of a file that is another user's, or may not be written, the last one is written in place or refused, the others are replaced, as with cp. Their order is left open.";

const AT_ONCE: &str = "What a source directory does not give to group and others goes from the one that was there at once, not in the end.";

const INHERITED: &str = "A new directory has the special bits of its source, no more. cp leaves it a set-group-ID bit that it inherited.";

const MEANWHILE: &str = "a further name of a file that was replaced meanwhile becomes a file of its own with that file's bytes; cp makes it a link to what took its place, or to another name.";

const ALIKE: &str = "A symlink, FIFO, socket or device that is there already, and is the user's, is not made again but gets the attributes. Further names of its source are linked with it.";

const TWICE: &str =
    "A directory that is in another operand, too, is copied twice; cp refuses it the second time.";

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
        // Where writing through it fails, replacing it does not, and the other way round.
        changes_exit: |facts, place| {
            let code = facts.trial.flatout.code;
            facts.has_file_source(place)
                && facts.leads_to_no_directory(place)
                && (facts.is(place, State::Copied) && code == Some(0)
                    || facts.is(place, State::Before) && code == Some(1))
        },
    },
    Rule {
        name: "a replaced symlink is no other name of anything any more",
        sentence: REPLACED_SYMLINK,
        allows: |facts, place, aspects| {
            let is_replaced =
                |twin: &[u8]| facts.leads_to_no_directory(twin) && facts.is_done(twin);
            is_link_beside((facts, place, aspects), is_replaced)
                || is_name_left((facts, place, aspects), is_replaced)
        },
        changes_exit: never,
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
            is_special_still(facts, place)
                || is_refused_special_replaced(facts, place)
                || is_special_behind_name(facts, place)
        },
    },
    Rule {
        name: "another name of a source is no name of what cp wrote into",
        sentence: SPECIAL,
        allows: |facts, place, _| {
            facts.is_done(place)
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
        name: "a FIFO, socket or device of another owner has no set-id bits",
        sentence: STICKY,
        allows: |facts, place, aspects| {
            let after = |entry: &Entry| entry.mode & 0o6000 == 0;
            let lent =
                |source: &&Entry| source.kind != Kind::Directory && source.mode & 0o6000 != 0;
            !facts.trial.case.is_privileged()
                && aspects == [Aspect::Mode]
                && facts.is_done(place)
                && facts.trial.flatout.after.entries.get(place).is_some_and(after)
                && facts.source_entries(place).iter().any(lent)
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
            let is_directory = facts.meeting(place) == Meeting::Is(Kind::Directory);
            aspects == [Aspect::Attributes] && is_directory && has_known_attributes(facts, place)
        },
        changes_exit: never,
    },
    Rule {
        name: "a directory that cp has locked itself out of before it gave all",
        sentence: PARTIAL,
        allows: |facts, place, aspects| {
            let is_mode = |aspect: &Aspect| matches!(aspect, Aspect::Mode | Aspect::Attributes);
            is_locked_out(facts, place) && aspects.iter().all(is_mode)
        },
        changes_exit: is_locked_out,
    },
    Rule {
        name: "a file of somebody else that is written in place gets what it can be given",
        sentence: PARTIAL,
        allows: |facts, place, aspects| {
            aspects == [Aspect::Attributes]
                && facts.trial.flatout.code == Some(1)
                && has_known_attributes(facts, place)
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
        allows: is_beside_kept_from_loop,
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
        name: "what cannot be made or read leaves what a later one refers to, or is written into",
        sentence: SURVIVES,
        allows: |facts, place, _| is_left_by_failure(facts, place),
        changes_exit: never,
    },
    Rule {
        name: "a dangling symlink stays",
        sentence: DANGLING,
        allows: |facts, place, aspects| {
            is_dangling_still(facts, place)
                || is_link_beside((facts, place, aspects), |twin| is_dangling_still(facts, twin))
        },
        changes_exit: is_dangling_still,
    },
    Rule {
        name: "the order of the names of a file decides what is refused",
        sentence: ORDER,
        allows: |facts, place, aspects| {
            is_protected_or_linked(facts, place)
                || is_link_beside((facts, place, aspects), |twin| {
                    is_protected_or_linked(facts, twin)
                })
        },
        changes_exit: is_protected_or_linked,
    },
    Rule {
        name: "the order of the names of a file of somebody else decides which is written in place",
        sentence: PARTED,
        allows: |facts, place, _| is_parted_or_written(facts, place),
        changes_exit: is_parted_or_written,
    },
    Rule {
        name: "a set-group-ID bit is inherited no more",
        sentence: INHERITED,
        allows: |facts, place, aspects| {
            let after = facts.trial.flatout.after.entries.get(place);
            let is_source = |source: &Entry| {
                let bits = if facts.trial.case.is_privileged() { 0o7777 } else { 0o777 };
                source.kind == Kind::Directory
                    && after.is_some_and(|after| (after.mode ^ source.mode) & bits == 0)
            };
            aspects == [Aspect::Mode]
                && facts.before(place).is_none()
                && facts.is_done(place)
                && facts.source_entries(place).into_iter().any(is_source)
        },
        changes_exit: never,
    },
    Rule {
        name: "a group that is inherited until the directory gets its own",
        sentence: AT_ONCE,
        allows: |facts, place, aspects| {
            let Some(runner) = facts.trial.case.runner else { return false };
            let after = facts.trial.flatout.after.entries.get(place);
            aspects == [Aspect::Owner]
                && facts.is_done(place)
                && after.is_some_and(|after| after.owner == (runner, runner))
                && inherits_group(facts, place)
        },
        changes_exit: never,
    },
    Rule {
        name: "a further name of a file that was replaced meanwhile",
        sentence: MEANWHILE,
        allows: |facts, place, _| is_name_of_replaced(facts, place),
        changes_exit: never,
    },
    Rule {
        name: "two names of something that stays are one inode still",
        sentence: SURVIVES,
        allows: |facts, place, aspects| {
            let survives = |twin: &[u8]| {
                let [cp, flatout] = [&facts.trial.cp, &facts.trial.flatout];
                !cp.after.entries.contains_key(twin)
                    && flatout.after.entries.contains_key(twin)
                    && (cp.code, flatout.code) == (Some(1), Some(1))
            };
            stays_with_other_name(facts, place, aspects)
                || is_link_beside((facts, place, aspects), survives)
        },
        changes_exit: never,
    },
    Rule {
        name: "a symlink that is the source already gets further names",
        sentence: ALIKE,
        allows: is_name_of_source,
        changes_exit: never,
    },
    Rule {
        name: "what cannot be removed or made is there already",
        sentence: ALIKE,
        allows: |facts, place, _| is_alike_already(facts, place),
        changes_exit: is_alike_already,
    },
    Rule {
        name: "replacing changes the time of a directory that cannot be given another one",
        sentence: RENAMED,
        allows: has_time_of_its_own,
        changes_exit: never,
    },
    Rule {
        name: "a directory that two operands bring",
        sentence: TWICE,
        allows: |facts, place, _| is_directory_twice(facts, place),
        changes_exit: is_directory_twice,
    },
    Rule {
        name: "symlinks that lead to what is replaced",
        sentence: ENTANGLED,
        allows: |facts, place, _| is_either_way(facts, place) || is_end_of_new(facts, place),
        changes_exit: is_either_way,
    },
];

fn never(_: &Facts<'_>, _: &[u8]) -> bool {
    false
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
