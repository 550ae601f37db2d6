//! Did it even happen? Each row that was measured has evidence, or the answer is not known.
//!
//! A row that is derived from others (a ratio, a roof, a speed beside a time) has nothing of its own
//! to show and does not count; those that it rests on do.

use crate::evidence::{Evidence, Happened};
use crate::record::{Answer, Mark, Outcome};
use crate::warning::{Says, saying};

use super::pairs::{is_pair, is_unchecked, repeats_another, took_part};
use super::rows::{count, list, name};
use super::{figures, reply};

/// What a row has to show, and the words for it.
fn shown(row: &Outcome) -> (Happened, String) {
    let evidence = Evidence::of(row);
    let no = |evidence: &&Evidence| evidence.happened == Happened::No;
    if let Some(evidence) = evidence.as_ref().filter(no) {
        return (Happened::No, evidence.text.to_string());
    }
    if let Some(code) = saying(&row.warnings, Says::NotDone) {
        return (Happened::No, code.to_owned());
    }
    if took_part(row) {
        return match is_unchecked(row) {
            true => (Happened::Unknown, "nobody looked at what its runs left".to_owned()),
            false => (Happened::Yes, "runs".to_owned()),
        };
    }
    if let Some(code) = saying(&row.warnings, Says::Unproven) {
        return (Happened::Unknown, code.to_owned());
    }
    match evidence {
        None => (Happened::Unknown, "nothing was counted".to_owned()),
        Some(Evidence { happened: Happened::Yes, by, .. }) => (Happened::Yes, by.into_owned()),
        Some(evidence) => (evidence.happened, evidence.text.into_owned()),
    }
}

pub(super) fn did_it_happen(results: &[Outcome]) -> Answer {
    let is_derived =
        |row: &Outcome| is_pair(row) || repeats_another(row, results) || Evidence::is_derived(row);
    // A row without a figure may still say that its work was not done.
    let without: Vec<&Outcome> = results
        .iter()
        .filter(|row| row.median.is_none() && saying(&row.warnings, Says::NotDone).is_some())
        .collect();
    let rows: Vec<&Outcome> =
        figures(results).filter(|row| !is_derived(row)).chain(without).collect();
    let shown: Vec<(&Outcome, Happened, String)> = rows
        .iter()
        .map(|row| {
            let (happened, words) = shown(row);
            (*row, happened, words)
        })
        .collect();
    let those = |wanted: Happened| -> Vec<String> {
        let fits = shown.iter().filter(|(_, happened, _)| *happened == wanted);
        fits.map(|(row, _, words)| format!("{} ({words})", name(row))).collect()
    };
    let (idle, unknown) = (those(Happened::No), those(Happened::Unknown));
    let all = count(rows.len(), "row", "rows");
    let trials: u64 = rows.iter().map(|row| row.n).sum();
    let text = if rows.is_empty() {
        "Not known: no row has a figure of its own.".to_owned()
    } else if !idle.is_empty() {
        let more = match unknown.len() {
            0 => String::new(),
            unknown => format!(" Not known for {unknown}."),
        };
        format!("No for {} of {all}: {}.{more}", idle.len(), list(&idle))
    } else if !unknown.is_empty() {
        format!("Not known for {} of {all}: {}.", unknown.len(), list(&unknown))
    } else if rows.iter().all(|row| took_part(row)) {
        let runs = count(trials as usize, "run counts", "runs count");
        format!("Yes: {runs} in {all}, and after each somebody looked at what it left or printed.")
    } else {
        let trials = count(trials as usize, "trial counts", "trials count");
        let by = readings(shown.iter().map(|(_, _, by)| by.as_str()));
        format!("Yes: {trials} in {all}, each row with evidence of its work (by {by}).")
    };
    let mark = match (idle.len(), unknown.len(), rows.len()) {
        (_, _, 0) => Mark::Unknown,
        (0, 0, _) => Mark::Good,
        (0, unknown, all) if unknown == all => Mark::Unknown,
        (idle, _, all) if 2 * idle > all => Mark::Bad,
        _ => Mark::Partly,
    };
    let mut rests_on =
        vec!["results[].samples", "results[].n", "results[].warnings", "results[].audit.evidence"];
    if rows.iter().any(|row| took_part(row)) {
        rests_on.push("results[].audit.runs");
    }
    reply("did it even happen?", mark, text, &rests_on)
}

/// The readings that decided, each once, those of most rows first.
fn readings<'a>(all: impl Iterator<Item = &'a str>) -> String {
    let mut known: Vec<(&str, usize)> = Vec::new();
    for by in all {
        match known.iter_mut().find(|(name, _)| *name == by) {
            Some((_, rows)) => *rows += 1,
            None => known.push((by, 1)),
        }
    }
    known.sort_by_key(|(_, rows)| std::cmp::Reverse(*rows));
    let names: Vec<String> = known.into_iter().map(|(by, _)| by.to_owned()).collect();
    list(&names)
}
