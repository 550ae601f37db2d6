//! What is wrong with a trial: differences from `cp -a` that no rule allows, and what the checks
//! without cp find.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use super::super::oracle::{Aspect, Difference, Kind, Leeway, differences};
use super::case::parent;
use super::differences::{RULES, Rule};
use super::facts::{Facts, State};
use super::mapping::Meeting;
use super::safety;
use super::trial::{Outcome, Trial};

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
        // What is copied twice has been read before.
        let is_copy = facts.state(place, &trial.flatout) == State::Copied
            && !is_failed_directory
            && !facts.is_read_twice(place);
        let aspects: Vec<Aspect> =
            aspects.into_iter().filter(|aspect| is_copy || *aspect != Aspect::Accessed).collect();
        if aspects.is_empty() {
            continue;
        }
        // One rule for all of them, or one for each.
        let is_allowed =
            |aspects: &[Aspect]| RULES.iter().any(|rule| (rule.allows)(&facts, place, aspects));
        if !is_allowed(&aspects) && !aspects.iter().all(|aspect| is_allowed(&[*aspect])) {
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
    let who = if trial.case.is_privileged() { "root" } else { "user" };
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
