//! What must hold whatever cp does: nothing else changes, what is reported as done is there, no
//! file is a mixture, nobody may do more than before, and nothing is left behind.

use std::fmt::Write;

use super::super::oracle::{Entry, Kind};
use super::case::parent;
use super::disturbance::{Change, Disturbance};
use super::facts::{Facts, State, is_like};
use super::judgement::Finding;
use super::mapping::Pair;
use super::trial::Outcome;

const ACCESS_LIST: &[u8] = b"system.posix_acl_access";
const SET_USER_ID: u32 = 0o4000;
const SET_GROUP_ID: u32 = 0o2000;

/// Everything that is wrong with what flatout left.
pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut add = |group: String, detail: String| found.push(Finding { group, detail });
    manners(facts, &mut add);
    for (place, before) in &facts.trial.before.entries {
        if !facts.sources.contains_key(&place[..]) && !facts.is_disturbed(place) {
            unmapped(facts, (place, before), &mut add);
        }
    }
    for (place, after) in &facts.trial.flatout.after.entries {
        if !facts.is_disturbed(place) {
            copied(facts, (place, after), &mut add);
        }
    }
    if facts.trial.flatout.code == Some(0) {
        complete(facts, &mut add);
    }
    found
}

type Add<'a> = &'a mut dyn FnMut(String, String);

/// How the program itself ended.
fn manners(facts: &Facts<'_>, add: Add<'_>) {
    let outcome = &facts.trial.flatout;
    let is_silent = outcome.stderr.is_empty();
    let is_well = match outcome.code {
        Some(0) => true,
        Some(1) => !is_silent,
        _ => false,
    };
    if !is_well || outcome.stderr.contains("panicked") {
        add(format!("safety: ends with {:?}", outcome.code), outcome.stderr.clone());
    }
}

/// What no source entry belongs to stays as it is. A directory in which something was made has
/// another time.
fn unmapped(facts: &Facts<'_>, (place, before): (&[u8], &Entry), add: Add<'_>) {
    let trial = facts.trial;
    let after = trial.flatout.after.entries.get(place);
    let mut unchanged = before.clone();
    let is_parent = || facts.sources.keys().any(|target| parent(target) == place);
    if let Some(after) = after
        && before.kind == Kind::Directory
        && (trial.case.disturbance.is_some() || is_parent())
    {
        unchanged.modified = after.modified;
    }
    if after.is_some_and(|after| is_like(&unchanged, after, false)) {
        return;
    }
    // Where a file cannot be replaced it is written as cp does, so its other names change.
    let is_name_of_target =
        facts.other_names(place).iter().any(|other| facts.sources.contains_key(other));
    let as_cp = trial.cp.after.entries.get(place).zip(after);
    let is_as_cp = as_cp.is_some_and(|(cp, after)| is_like(cp, after, false));
    if is_name_of_target && is_as_cp && !trial.case.is_privileged() {
        return;
    }
    let what = if after.is_some() { "changes" } else { "is gone" };
    let (tree, kind) = (place.first().map(|&byte| char::from(byte)), before.kind);
    add(
        format!("safety: a {kind:?} in {tree:?} that is nobody's target {what}"),
        format!("{}: {before:?}\n{after:?}\n", place.escape_ascii()),
    );
}

/// What lies in the target belongs there, is no mixture, and has no permissions of its own making.
fn copied(facts: &Facts<'_>, (place, after): (&[u8], &Entry), add: Add<'_>) {
    let before = facts.before(place);
    let sources = facts.source_entries(place);
    if before.is_none() && sources.is_empty() {
        add("safety: left behind".into(), format!("{}\n", place.escape_ascii()));
        return;
    }
    if sources.is_empty() {
        return;
    }
    let models: Vec<&Entry> = sources.into_iter().chain(before).collect();
    let is_content_of = |model: &&Entry| {
        model.kind == Kind::File
            && (model.length_bytes, model.digest) == (after.length_bytes, after.digest)
    };
    if after.kind == Kind::File && !models.iter().any(is_content_of) {
        add("safety: a content that nobody has".into(), format!("{}\n", place.escape_ascii()));
    }
    if after.kind == Kind::Symlink {
        return;
    }
    if !models.iter().any(|model| is_no_wider(after, model)) {
        let mut detail = format!("{}: {:o} of {:?}", place.escape_ascii(), after.mode, after.owner);
        for model in models {
            let _ = write!(detail, ", from {:o} of {:?}", model.mode, model.owner);
        }
        add(format!("safety: a {:?} with wider permissions", after.kind), detail + "\n");
    }
}

/// Whether a group and all others may do no more than with the model. The owner may do
/// everything in any case.
fn is_no_wider(after: &Entry, model: &Entry) -> bool {
    let (list, model_list) = (after.attributes.get(ACCESS_LIST), model.attributes.get(ACCESS_LIST));
    // With a list the group bits are its mask, without which it grants nothing.
    let is_same_list = list.is_none() || list == model_list || after.mode & 0o070 == 0;
    let group = if model_list.is_some() && list.is_none() { 0 } else { 0o070 };
    let more = after.mode & !model.mode & (0o007 | group);
    let has = |bit| after.kind == Kind::File && after.mode & bit != 0;
    let is_own_user =
        !has(SET_USER_ID) || (after.owner.0 == model.owner.0 && model.mode & SET_USER_ID != 0);
    let is_own_group =
        !has(SET_GROUP_ID) || (after.owner.1 == model.owner.1 && model.mode & SET_GROUP_ID != 0);
    is_same_list && more == 0 && is_own_user && is_own_group
}

/// Exit code 0 says that every entry has a counterpart that is like it.
fn complete(facts: &Facts<'_>, add: Add<'_>) {
    for (place, pairs) in &facts.sources {
        let state = facts.state(place, &facts.trial.flatout);
        // What cannot be replaced is written as cp does, and keeps the attributes that it had.
        let after = |outcome: &Outcome| outcome.after.entries.get(*place).cloned();
        let is_as_cp = !facts.trial.case.is_privileged()
            && facts.trial.has_model()
            && after(&facts.trial.cp)
                .zip(after(&facts.trial.flatout))
                .is_some_and(|(cp, flatout)| is_like(&cp, &flatout, false));
        let is_disturbed = |pair: &&Pair| facts.is_disturbed(&pair.source);
        // A directory that changes meanwhile has a time of its own.
        let is_unsteady = |pair: &&Pair| {
            facts.trial.case.disturbance.is_some()
                && facts.before(&pair.source).is_some_and(|entry| entry.kind == Kind::Directory)
        };
        if state == State::Copied
            || is_as_cp
            || pairs.iter().any(is_unsteady)
            || facts.is_disturbed(place)
            || pairs.iter().any(is_disturbed)
        {
            continue;
        }
        let (sources, target) = (facts.source_meetings(place), facts.meeting(place));
        add(
            format!("safety: exit 0, but {sources:?} over {target:?} is {state:?}"),
            format!("{}\n", place.escape_ascii()),
        );
    }
}

impl Facts<'_> {
    /// The sources of a place as they were before.
    pub fn source_entries(&self, place: &[u8]) -> Vec<&Entry> {
        let pairs = self.sources.get(place).map_or(&[][..], |pairs| &pairs[..]);
        pairs.iter().map(|pair| &self.trial.before.entries[&pair.source]).collect()
    }

    /// Whether something else changes this place, or another name of it, or what it is copied from.
    fn is_disturbed(&self, place: &[u8]) -> bool {
        let Some(Disturbance { place: disturbed, change }) = &self.trial.case.disturbance else {
            return false;
        };
        let is_source =
            |place: &[u8]| place == disturbed || self.other_names(disturbed).contains(&place);
        let pairs = self.sources.get(place).map_or(&[][..], |pairs| &pairs[..]);
        // Or the name by which the user called it, a symlink, is gone in between.
        let is_named = self
            .trial
            .leads
            .get(disturbed)
            .is_some_and(|end| end.as_deref().is_some_and(|end| end == place));
        is_source(place)
            || is_named
            || (*change != Change::Plant && pairs.iter().any(|pair| is_source(&pair.source)))
    }
}
