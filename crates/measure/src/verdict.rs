//! Six questions that every benchmark must stand, answered from the record alone.
//!
//! An answer names rows and figures and the fields that it rests on, and it is reassuring only
//! when there is evidence: where nothing was checked, the answer is bad. Amounts are given as
//! shares and counts, because prefixes belong to the report. Which warning makes which answer bad:
//! `verdict/codes.rs`. What pairs show: `verdict/pairs.rs`. How rows are named: `verdict/rows.rs`.
//!
//! Source: Brendan Gregg's benchmarking checklist.

mod codes;
mod pairs;
mod rows;

use crate::ceiling::TOLERANCE;
use crate::record::{Answer, Outcome, Record, Status};
use crate::sampler::fact::{INTERVALS_SPOILED, OVERHEAD_RATIO};
use crate::warning::{self, has};

use codes::{BESIDE_THE_POINT, CIRCUMSTANCES, LABELS, NOT_DONE, NOT_LASTING, SET_LIMITS, UNPROVEN};
use pairs::{Pairs, is_aside, is_pair, is_unchecked, repeats_another, took_part};
use rows::{count, list, name, percent};

/// Share of its ceiling above which a figure cannot be doubled.
const HALF: f64 = 0.5;

/// Answers the six questions about a run, in their usual order.
pub fn answer(record: &Record) -> Vec<Answer> {
    vec![
        why_not_double(&record.results),
        did_it_break_limits(&record.results),
        did_it_error(record),
        does_it_reproduce(&record.results),
        does_it_matter(record),
        did_it_happen(&record.results),
    ]
}

fn reply(question: &str, good: bool, text: String, rests_on: &[&str]) -> Answer {
    let rests_on = rests_on.iter().map(|field| (*field).to_owned()).collect();
    Answer { question: question.to_owned(), good, text, rests_on }
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

/// Rows with one of these codes, each with the first of them that it has.
fn with_code<'r>(rows: impl Iterator<Item = &'r Outcome>, codes: &[&str]) -> Vec<String> {
    rows.filter_map(|row| {
        let found = row.warnings.iter().find(|w| codes.contains(&w.code.as_str()))?;
        Some(format!("{} ({})", name(row), found.code))
    })
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
        format!("No figure could be held against a known limit.{}", Pairs::of(results).fastest())
    } else if unexplained.is_empty() {
        let near = figures(results).filter(|row| ratio(row).is_some_and(|r| r > HALF)).count();
        let mut text = format!("{near} of {bounded} rows with a known limit are above half of it");
        let lowest = figures(results)
            .filter(|row| low(row))
            .min_by(|a, b| f64::total_cmp(&ratio(a).unwrap_or(1.0), &ratio(b).unwrap_or(1.0)));
        match lowest {
            Some(row) => text.push_str(&format!(
                "; the others name what holds them back: {} is at {}, limited by {}.",
                name(row),
                percent(ratio(row).unwrap_or(0.0)),
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
    let good = bounded > 0 && unexplained.is_empty();
    let rests_on = ["results[].median", "results[].ceiling.ratio", "results[].ceiling.limiter"];
    reply("why not double?", good, text, &rests_on)
}

fn did_it_break_limits(results: &[Outcome]) -> Answer {
    let above = |row: &Outcome| {
        any_of(row, &[warning::ABOVE_CEILING, warning::CEILING_LOW])
            || ratio(row).is_some_and(|ratio| ratio > TOLERANCE)
    };
    let checked = results.iter().filter(|row| ratio(row).is_some()).count();
    let broken: Vec<String> = results
        .iter()
        .filter(|row| above(row))
        .map(|row| match ratio(row) {
            Some(ratio) => format!("{} ({})", name(row), percent(ratio)),
            None => name(row),
        })
        .collect();
    let highest = results
        .iter()
        .filter(|row| ratio(row).is_some())
        .max_by(|a, b| f64::total_cmp(&ratio(a).unwrap_or(0.0), &ratio(b).unwrap_or(0.0)));
    let mut text = match highest {
        _ if !broken.is_empty() => {
            format!(
                "{} beyond a limit: {}.",
                count(broken.len(), "row lies", "rows lie"),
                list(&broken)
            )
        }
        Some(row) => format!(
            "No: {} checked, and the closest, {}, is at {} of its limit.",
            count(checked, "row was", "rows were"),
            name(row),
            percent(ratio(row).unwrap_or(0.0))
        ),
        None => "Not known: no row has a limit to check it against.".to_owned(),
    };
    let held = with_code(figures(results), &SET_LIMITS);
    if !held.is_empty() {
        text.push_str(&format!(" Somebody may have set a limit for {}.", list(&held)));
    }
    let good = broken.is_empty() && checked > 0;
    let rests_on = ["results[].ceiling.ratio", "results[].status", "results[].warnings"];
    reply("did it break limits?", good, text, &rests_on)
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
        text.push_str(&format!("{}, first: {first}. ", count(errors.len(), "error", "errors")));
    }
    if text.is_empty() && record.end.exit_code != 0 {
        text.push_str(&format!("The run ended with exit code {}. ", record.end.exit_code));
    }
    let good = text.is_empty();
    if good {
        let rows = count(results.len(), "row", "rows");
        text.push_str(&format!("No: {rows}, no error, exit code 0. "));
    }
    if !unsupported.is_empty() {
        text.push_str(&format!("Not available on this machine: {}. ", list(&unsupported)));
    }
    let late = with_code(results.iter(), &[warning::TIME_SHORT]);
    if !late.is_empty() {
        text.push_str(&format!("Left out for want of time: {}.", list(&late)));
    }
    let rests_on = ["results[].status", "results[].warnings", "end.errors", "end.exit_code"];
    reply("did it error?", good, text.trim_end().to_owned(), &rests_on)
}

fn half_width(row: &Outcome) -> Option<f64> {
    let ([low, high], median) = (row.ci95?, row.median?);
    (median != 0.0).then(|| (high - low) / 2.0 / median.abs())
}

fn does_it_reproduce(results: &[Outcome]) -> Answer {
    // A race goes on until its pairs are narrow, whatever moves both of a pair alike.
    let has_pairs = Pairs::of(results).known() > 0;
    let judged = || figures(results).filter(|row| !(has_pairs && took_part(row)));
    let rows = judged().count();
    let loose = |row: &Outcome| {
        row.status == Status::Unstable
            || half_width(row).is_none()
            || any_of(row, &[warning::UNSTABLE, warning::DISTURBED])
            || any_of(row, &NOT_LASTING)
    };
    let unsure: Vec<String> = judged()
        .filter(|row| loose(row))
        .map(|row| {
            let width = match half_width(row) {
                Some(width) => format!("±{}", percent(width)),
                None => format!("no interval from {} trials", row.n),
            };
            let reason = row.warnings.iter().find(|w| NOT_LASTING.contains(&w.code.as_str()));
            let reason = reason.map_or(String::new(), |w| format!(", {}", w.code));
            format!("{} ({width}{reason})", name(row))
        })
        .collect();
    let spoiled: u64 =
        results.iter().filter_map(|row| row.audit.get(INTERVALS_SPOILED.name())?.as_u64()).sum();
    let widest = judged().max_by(|a, b| {
        f64::total_cmp(&half_width(a).unwrap_or(0.0), &half_width(b).unwrap_or(0.0))
    });
    let mut text = match widest {
        None => "Not known: there is no figure.".to_owned(),
        Some(_) if !unsure.is_empty() => {
            format!("Not shown for {} of {rows} rows: {}.", unsure.len(), list(&unsure))
        }
        Some(row) => format!(
            "Yes, within this run: of {} the widest 95 % interval is ±{} ({}, {} trials).",
            count(rows, "row", "rows"),
            percent(half_width(row).unwrap_or(0.0)),
            name(row),
            row.n
        ),
    };
    if spoiled > 0 {
        let trials = count(spoiled as usize, "trial was", "trials were");
        text.push_str(&format!(" {trials} discarded for a disturbance from outside."));
    }
    let rests_on = [
        "results[].ci95",
        "results[].n",
        "results[].status",
        "results[].warnings",
        "results[].audit.intervals_spoiled",
    ];
    reply("does it reproduce?", rows > 0 && unsure.is_empty(), text, &rests_on)
}

fn does_it_matter(record: &Record) -> Answer {
    let results = &record.results;
    let rows = figures(results).count();
    let beside = named(results, |row| row.median.is_some() && any_of(row, &BESIDE_THE_POINT));
    let labelled = figures(results).filter(|row| any_of(row, &LABELS)).count();
    let harness = figures(results)
        .filter_map(|row| row.audit.get(OVERHEAD_RATIO.name())?.as_f64())
        .max_by(f64::total_cmp);
    let pairs = Pairs::of(results);
    let (shows_something, told) = pairs.sentence();
    let is_race = pairs.all > 0 && beside.is_empty();
    let good = beside.is_empty() && if is_race { shows_something } else { rows > labelled };
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
    let circumstances = with_code(figures(results), &CIRCUMSTANCES);
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
    ];
    if is_race {
        rests_on.extend(["results[].ci95", "results[].parameters.against"]);
    }
    reply("does it matter?", good, text, &rests_on)
}

fn did_it_happen(results: &[Outcome]) -> Answer {
    let rows = figures(results).count();
    let idle: Vec<String> = with_code(results.iter(), &NOT_DONE)
        .into_iter()
        .chain(named(results, |row| row.median.is_some() && row.samples.is_empty()))
        .collect();
    let unproven = with_code(figures(results), &UNPROVEN);
    let unchecked = named(results, |row| row.median.is_some() && is_unchecked(row));
    let is_counted = |row: &&Outcome| !is_pair(row) && !repeats_another(row, results);
    let (trials, counted) = figures(results)
        .filter(is_counted)
        .fold((0, 0), |(trials, counted), row| (trials + row.n, counted + 1));
    let is_race = figures(results).any(took_part);
    let text = if rows == 0 {
        "No: no row has a figure.".to_owned()
    } else if !idle.is_empty() {
        format!("Doubtful for {}.", list(&idle))
    } else if !unproven.is_empty() {
        format!("Not shown for {}: nothing counted what a device moved.", list(&unproven))
    } else if !unchecked.is_empty() {
        format!("Not shown for {}: nobody looked at what its runs left.", list(&unchecked))
    } else if is_race {
        format!(
            "Yes: {} in {}, and after each somebody looked at what it left or printed.",
            count(trials as usize, "run counts", "runs count"),
            count(counted, "row", "rows")
        )
    } else {
        format!(
            "Yes: {} in {}, and no trial was found to skip its work (holes, zero blocks, cache \
             hits where none should be, short files, differing digests).",
            count(trials as usize, "trial counts", "trials count"),
            count(counted, "row", "rows")
        )
    };
    let mut rests_on = vec!["results[].samples", "results[].n", "results[].warnings"];
    if is_race {
        rests_on.push("results[].audit.runs");
    }
    let good = rows > 0 && idle.is_empty() && unproven.is_empty() && unchecked.is_empty();
    reply("did it even happen?", good, text, &rests_on)
}

#[cfg(test)]
mod tests;
