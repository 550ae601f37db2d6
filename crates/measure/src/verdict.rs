//! Six questions that every benchmark must stand, answered from the record alone.
//!
//! An answer names rows and figures and the fields that it rests on, and it is reassuring only
//! when there is evidence: where nothing was checked, the answer is not known. What is true of some
//! rows only is answered by `partly`, with their number. Amounts are given as
//! shares and counts, because prefixes belong to the report. Which warning makes which answer bad:
//! `warning.rs`. What shows that a row was measured at all: `verdict/happened.rs`. Does it
//! reproduce: `verdict/reproduce.rs`. What pairs show: `verdict/pairs.rs`. How rows are named:
//! `verdict/rows.rs`.
//!
//! Source: Brendan Gregg's benchmarking checklist.

mod happened;
mod pairs;
mod reproduce;
mod rows;

use crate::ceiling::TOLERANCE;
use crate::load::busy_words;
use crate::record::{Answer, Mark, Outcome, Record, Status};
use crate::sampler::fact::OVERHEAD_RATIO;
use crate::units::percent;
use crate::warning::{self, Says, has, saying};

use happened::did_it_happen;
use pairs::{Pairs, is_aside, is_pair};
use rows::{count, list, name};

/// Share of its ceiling above which a figure cannot be doubled.
const HALF: f64 = 0.5;
/// Share of the rows for which an answer must not hold, so that it is not good any more; and share of
/// a row's time that makes it one about the harness.
const SOME: f64 = 0.1;
/// Share of the rows beyond which it is bad.
const MANY: f64 = 0.5;

/// Answers the six questions about a run, in their usual order.
pub fn answer(record: &Record) -> Vec<Answer> {
    vec![
        why_not_double(&record.results),
        did_it_break_limits(&record.results),
        did_it_error(record),
        reproduce::does_it_reproduce(&record.results),
        does_it_matter(record),
        did_it_happen(&record.results),
    ]
}

fn reply(question: &str, mark: Mark, text: String, rests_on: &[&str]) -> Answer {
    let rests_on = rests_on.iter().map(|field| (*field).to_owned()).collect();
    let good = mark == Mark::Good;
    Answer { question: question.to_owned(), good, mark: Some(mark), text, rests_on }
}

/// The mark where so many of all rows speak against a good answer.
fn mark_of(against: usize, all: usize) -> Mark {
    match against as f64 / all.max(1) as f64 {
        _ if all == 0 => Mark::Unknown,
        share if share <= SOME => Mark::Good,
        share if share <= MANY => Mark::Partly,
        _ => Mark::Bad,
    }
}

/// Rows for which `test` holds, by name.
fn named<'r>(results: &'r [Outcome], test: impl Fn(&&'r Outcome) -> bool) -> Vec<String> {
    results.iter().filter(test).map(name).collect()
}

fn ratio(row: &Outcome) -> Option<f64> {
    row.ceiling.as_ref()?.ratio
}

fn any_of(row: &Outcome, codes: &[&str]) -> bool {
    codes.iter().any(|code| has(&row.warnings, code))
}

/// Rows whose warnings say this, each with the first code that does.
fn with_code<'r>(rows: impl Iterator<Item = &'r Outcome>, says: Says) -> Vec<String> {
    rows.filter_map(|row| Some(format!("{} ({})", name(row), saying(&row.warnings, says)?)))
        .collect()
}

fn figures(results: &[Outcome]) -> impl Iterator<Item = &Outcome> {
    results.iter().filter(|row| row.median.is_some())
}

fn why_not_double(results: &[Outcome]) -> Answer {
    let limiter = |row: &Outcome| row.ceiling.as_ref().map_or("", |c| c.limiter.trim()).to_owned();
    let low = |row: &Outcome| ratio(row).is_some_and(|ratio| ratio <= HALF);
    let bounded = figures(results).filter(|row| ratio(row).is_some()).count();
    let unexplained = named(results, |row| low(row) && limiter(row).is_empty());
    let unknown =
        named(results, |row| row.median.is_some() && row.ceiling.is_some() && ratio(row).is_none());
    let mut text = if bounded == 0 {
        let fastest = Pairs::of(results).fastest();
        format!("Not known: no figure could be held against a known limit.{fastest}")
    } else if unexplained.is_empty() {
        let near = figures(results).filter(|row| ratio(row).is_some_and(|r| r > HALF)).count();
        let mut text = format!("{near} of {bounded} rows with a known limit are above half of it");
        let lowest = figures(results).filter_map(|row| Some((row, ratio(row)?)));
        let lowest = lowest.filter(|(row, _)| low(row)).min_by(|a, b| a.1.total_cmp(&b.1));
        match lowest {
            Some((row, ratio)) => text.push_str(&format!(
                "; the others name what holds them back: {} is at {}, limited by {}.",
                name(row),
                percent(ratio),
                limiter(row)
            )),
            None => text.push('.'),
        }
        text
    } else {
        format!(
            "Nothing explains why {} not faster: at half of the limit or less, and no limiter \
             named: {}.",
            if unexplained.len() == 1 { "this row is" } else { "these rows are" },
            list(&unexplained)
        )
    };
    if bounded > 0 && !unknown.is_empty() {
        text.push_str(&format!(" The limit is unknown for {}.", list(&unknown)));
    }
    let mark = mark_of(unexplained.len(), bounded);
    let rests_on = ["results[].median", "results[].ceiling.ratio", "results[].ceiling.limiter"];
    reply("why not double?", mark, text, &rests_on)
}

fn did_it_break_limits(results: &[Outcome]) -> Answer {
    // A figure that was refused did not go into the record; one above a bound that was measured did.
    let above = |row: &Outcome| {
        any_of(row, &[warning::ABOVE_CEILING, warning::CEILING_LOW, warning::LIMIT_EXCEEDED])
    };
    let refused = results.iter().filter(|row| has(&row.warnings, warning::ABOVE_CEILING)).count();
    let checked = results.iter().filter(|row| ratio(row).is_some()).count();
    let broken: Vec<String> = results
        .iter()
        .filter(|row| above(row))
        .map(|row| match ratio(row) {
            Some(ratio) => format!("{} ({})", name(row), percent(ratio)),
            None => name(row),
        })
        .collect();
    let known = results.iter().filter_map(|row| Some((row, ratio(row)?)));
    let highest = known.max_by(|a, b| a.1.total_cmp(&b.1));
    let mut text = match highest {
        _ if !broken.is_empty() => format!(
            "{} beyond a limit: {}.",
            count(broken.len(), "row lies", "rows lie"),
            list(&broken)
        ),
        Some((row, ratio)) => {
            // Above a measured bound, and neither the figure nor the bound is so sure: `ceiling::apply`.
            let noisy = if ratio > TOLERANCE { ", which its interval includes" } else { "" };
            format!(
                "No: {} checked, and the closest, {}, is at {} of its limit{noisy}.",
                count(checked, "row was", "rows were"),
                name(row),
                percent(ratio)
            )
        }
        None => "Not known: no row has a limit to check it against.".to_owned(),
    };
    let held = with_code(figures(results), Says::SetLimit);
    if !held.is_empty() {
        text.push_str(&format!(" Somebody may have set a limit for {}.", list(&held)));
    }
    let mark = match (refused, broken.len(), checked) {
        (1.., ..) => Mark::Bad,
        (0, 1.., _) => Mark::Partly,
        (0, 0, 0) => Mark::Unknown,
        (0, 0, 1..) => Mark::Good,
    };
    let rests_on = ["results[].ceiling.ratio", "results[].status", "results[].warnings"];
    reply("did it break limits?", mark, text, &rests_on)
}

fn did_it_error(record: &Record) -> Answer {
    let results = &record.results;
    // A pair fails because one of the two did, which has a row of its own.
    let has_own = |row: &Outcome| row.status == Status::Failed && !is_pair(row);
    let is_told = results.iter().any(has_own);
    let failed = named(results, |row| match row.status {
        Status::Failed if is_pair(row) && is_told => false,
        Status::Failed | Status::Interrupted => true,
        Status::Invalid => !has(&row.warnings, warning::ABOVE_CEILING),
        _ => any_of(row, &[warning::DIGEST_DIFFERS, warning::TRUNCATED]),
    });
    let unsupported = named(results, |row| {
        let is_limit = any_of(row, &[warning::WRITE_LIMIT, warning::TIME_SHORT]);
        row.status == Status::Unsupported && !is_limit && !is_aside(row)
    });
    let errors = &record.end.errors;
    let mut text = String::new();
    if !failed.is_empty() {
        text.push_str(&format!("Without a sound end: {}. ", list(&failed)));
    }
    if let Some(first) = errors.first() {
        let more = errors.len() - 1;
        let more = if more == 0 { String::new() } else { format!(", and {more} more") };
        text.push_str(&format!("{}: {first}{more}. ", count(errors.len(), "error", "errors")));
    }
    if text.is_empty() && record.end.exit_code != 0 {
        text.push_str(&format!("The run ended with exit code {}. ", record.end.exit_code));
    }
    let is_sound = text.is_empty();
    let has_figure = figures(results).next().is_some();
    let was_stopped = results.iter().any(|row| row.status == Status::Interrupted)
        && !results.iter().any(|row| row.status == Status::Failed);
    let mark = match is_sound {
        true if results.is_empty() => Mark::Unknown,
        true => Mark::Good,
        false if was_stopped && has_figure => Mark::Partly,
        false => Mark::Bad,
    };
    if is_sound {
        let rows = count(results.len(), "row", "rows");
        text.push_str(&format!("No: {rows}, no error, exit code 0. "));
    }
    if !unsupported.is_empty() {
        text.push_str(&format!("Not available on this machine: {}. ", list(&unsupported)));
    }
    let late = with_code(results.iter(), Says::LeftOut);
    if !late.is_empty() {
        text.push_str(&format!("Left out for want of time: {}.", list(&late)));
    }
    let rests_on = ["results[].status", "results[].warnings", "end.errors", "end.exit_code"];
    reply("did it error?", mark, text.trim_end().to_owned(), &rests_on)
}

fn does_it_matter(record: &Record) -> Answer {
    let results = &record.results;
    let rows = figures(results).count();
    let overhead = |row: &Outcome| row.fact_number(OVERHEAD_RATIO.name());
    let is_beside = |row: &Outcome| {
        saying(&row.warnings, Says::BesideThePoint).is_some()
            || overhead(row).is_some_and(|share| share > SOME)
    };
    let beside = named(results, |row| row.median.is_some() && is_beside(row));
    let labelled = with_code(figures(results), Says::Label).len();
    let harness = figures(results).filter_map(overhead).max_by(f64::total_cmp);
    let pairs = Pairs::of(results);
    let (shows_something, told) = pairs.sentence();
    let is_race = pairs.all > 0 && beside.is_empty();
    let good = beside.is_empty() && if is_race { shows_something } else { rows > labelled };
    let busy = record.end.load.as_ref().and_then(busy_words);
    let mark = match (good, &busy) {
        _ if rows == 0 => Mark::Unknown,
        (true, None) => Mark::Good,
        (true, Some(_)) => Mark::Partly,
        (false, _) if !beside.is_empty() && beside.len() < rows => Mark::Partly,
        (false, _) => Mark::Bad,
    };
    let mut text = if is_race {
        told
    } else if rows == 0 {
        "There is no figure that could.".to_owned()
    } else if !beside.is_empty() {
        format!("These figures are about something else than their names say: {}.", list(&beside))
    } else if !good {
        format!("All {rows} figures are bound by calls or waiting, not by what was to be measured.")
    } else {
        format!("{} of {rows} figures stand for what they are named after.", rows - labelled)
    };
    if good && !is_race && labelled > 0 {
        text.push_str(&format!(
            " {} labelled as bound by calls, read-ahead, the cache or waiting threads.",
            count(labelled, "is", "are")
        ));
    }
    if let Some(share) = harness.filter(|_| good) {
        text.push_str(&format!(" The harness takes {} of the time at most.", percent(share)));
    }
    if let Some(busy) = busy {
        text.push_str(&format!(" It was a {busy}."));
    }
    let circumstances = with_code(figures(results), Says::Circumstance);
    if !circumstances.is_empty() {
        text.push_str(&format!(" Mind the circumstances of {}.", list(&circumstances)));
    }
    let is_virtual = record.start.environment.get("hypervisor").and_then(|v| v.as_bool());
    if is_virtual == Some(true) && rows > 0 {
        text.push_str(" This is a virtual machine: others share its hardware.");
    }
    let mut rests_on = vec![
        "results[].warnings",
        "results[].audit.overhead_ratio",
        "start.environment.hypervisor",
        "end.load",
    ];
    if is_race {
        rests_on.extend(["results[].ci95", "results[].parameters.against"]);
    }
    reply("does it matter?", mark, text, &rests_on)
}

#[cfg(test)]
mod tests;
