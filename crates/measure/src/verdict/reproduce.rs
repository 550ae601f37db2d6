//! Does it reproduce? As far as trials and earlier runs can show it: what runs are assumed to differ by
//! beyond that is told and is no evidence against a row.

use super::pairs::{Pairs, took_part};
use super::rows::{count, list, name};
use super::{figures, mark_of, reply};
use crate::record::{Answer, Mark, Outcome};
use crate::sampler::NOISY;
use crate::sampler::fact::{BETWEEN_RUNS, INTERVALS_SPOILED};
use crate::statistics::interval::half_of_trials;
use crate::units::{counted, half};
use crate::warning::{self, Says, has, saying};

/// Half of a row's interval as its trials have it, and earlier runs where these taught what runs differ by.
/// That others were at work was seen: what they make runs differ by stays.
fn shown_width(row: &Outcome) -> Option<f64> {
    let known = row.audit.get(BETWEEN_RUNS.name());
    let of = |member: &str| known.and_then(|known| known[member].as_f64());
    if is_learned(row) {
        return of("half_width_ratio").or(row.half_width());
    }
    let is_beside_others = known.is_some_and(|known| known["beside_others"] == true);
    let assumed = of("deviation").filter(|_| !is_beside_others).unwrap_or(0.0);
    row.ci95.map(|interval| half_of_trials(interval, assumed))
}

fn is_learned(row: &Outcome) -> bool {
    row.audit.get(BETWEEN_RUNS.name()).is_some_and(|known| known["source"] == "learned")
}

pub(super) fn does_it_reproduce(results: &[Outcome]) -> Answer {
    // A race goes on until its pairs are narrow, whatever moves both of a pair alike.
    let has_pairs = Pairs::of(results).known() > 0;
    let judged: Vec<&Outcome> =
        figures(results).filter(|row| !(has_pairs && took_part(row)) && row.n > 0).collect();
    let rows = judged.len();
    let loose = |row: &Outcome| {
        shown_width(row).is_none_or(|width| width > NOISY)
            || has(&row.warnings, warning::DISTURBED)
            || saying(&row.warnings, Says::NotLasting).is_some()
    };
    let unsure: Vec<String> = judged
        .iter()
        .filter(|row| loose(row))
        .map(|row| {
            let width = match row.half_width() {
                Some(width) => format!("±{}", half(width)),
                None => format!("no interval from {}", counted(row.n, "trial")),
            };
            let reason = saying(&row.warnings, Says::NotLasting);
            let reason = reason.map_or(String::new(), |code| format!(", {code}"));
            format!("{} ({width}{reason})", name(row))
        })
        .collect();
    let spoiled: u64 =
        results.iter().filter_map(|row| row.fact_count(INTERVALS_SPOILED.name())).sum();
    let widest = judged.iter().max_by(|a, b| {
        f64::total_cmp(&a.half_width().unwrap_or(0.0), &b.half_width().unwrap_or(0.0))
    });
    let mark = mark_of(unsure.len(), rows);
    let mut text = match widest {
        None => "Not known: there is no figure.".to_owned(),
        Some(row) if unsure.is_empty() => format!(
            "Yes: of {} the widest 95 % interval is ±{} ({}, {}).",
            count(rows, "row", "rows"),
            half(row.half_width().unwrap_or(0.0)),
            name(row),
            counted(row.n, "trial")
        ),
        Some(_) => {
            let word = if mark == Mark::Good { "Yes, but not" } else { "Not" };
            let unsure_rows = unsure.len();
            format!(
                "{word} shown for {unsure_rows} of {}: {}.",
                counted(rows, "row"),
                list(&unsure)
            )
        }
    };
    let wide = |row: &&&Outcome| row.half_width() > Some(NOISY) && !loose(row);
    let (learned, assumed): (Vec<&Outcome>, Vec<&Outcome>) =
        judged.iter().filter(wide).partition(|row| is_learned(row));
    for (rows, agree, remedy) in [
        (assumed, "The trials of", "flatout compare --noise learns by how much here"),
        (learned, "Trials and earlier runs of", "flatout compare --noise from more runs tells"),
    ] {
        let widths = rows.iter().filter_map(|row| row.half_width());
        if let Some(most) = widths.reduce(f64::max) {
            text.push_str(&format!(
                " {agree} {} agree, but such runs are assumed to differ by up to ±{} ({remedy}).",
                count(rows.len(), "row", "rows"),
                half(most)
            ));
        }
    }
    if spoiled > 0 {
        let trials = count(spoiled as usize, "trial was", "trials were");
        text.push_str(&format!(" {trials} discarded for a disturbance from outside."));
    }
    let rests_on = [
        "results[].ci95",
        "results[].n",
        "results[].warnings",
        "results[].audit.between_runs",
        "results[].audit.intervals_spoiled",
    ];
    reply("does it reproduce?", mark, text, &rests_on)
}
