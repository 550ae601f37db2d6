//! Does it reproduce? As far as trials can show it: what runs are assumed to differ by beyond that,
//! where nothing was learned of the machine, is told and is no evidence against a row.

use super::pairs::{Pairs, took_part};
use super::rows::{count, list, name, percent};
use super::{figures, mark_of, reply};
use crate::record::{Answer, Mark, Outcome};
use crate::sampler::NOISY;
use crate::sampler::fact::{BETWEEN_RUNS, INTERVALS_SPOILED};
use crate::statistics::interval::half_of_trials;
use crate::warning::{self, Says, has, saying};

/// Half of a row's interval as its trials alone have it.
fn width_of_trials(row: &Outcome) -> Option<f64> {
    let known = row.audit.get(BETWEEN_RUNS.name());
    let known = known.filter(|known| known["source"] == "assumed");
    let assumed = known.and_then(|known| known["deviation"].as_f64()).unwrap_or(0.0);
    row.ci95.map(|interval| half_of_trials(interval, assumed))
}

pub(super) fn does_it_reproduce(results: &[Outcome]) -> Answer {
    // A race goes on until its pairs are narrow, whatever moves both of a pair alike.
    let has_pairs = Pairs::of(results).known() > 0;
    let judged: Vec<&Outcome> =
        figures(results).filter(|row| !(has_pairs && took_part(row)) && row.n > 0).collect();
    let rows = judged.len();
    let loose = |row: &Outcome| {
        width_of_trials(row).is_none_or(|width| width > NOISY)
            || has(&row.warnings, warning::DISTURBED)
            || saying(&row.warnings, Says::NotLasting).is_some()
    };
    let unsure: Vec<String> = judged
        .iter()
        .filter(|row| loose(row))
        .map(|row| {
            let width = match row.half_width() {
                Some(width) => format!("±{}", percent(width)),
                None => format!("no interval from {} trials", row.n),
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
            "Yes: of {} the widest 95 % interval is ±{} ({}, {} trials).",
            count(rows, "row", "rows"),
            percent(row.half_width().unwrap_or(0.0)),
            name(row),
            row.n
        ),
        Some(_) => {
            let word = if mark == Mark::Good { "Yes, but not" } else { "Not" };
            let unsure_rows = unsure.len();
            format!("{word} shown for {unsure_rows} of {rows} rows: {}.", list(&unsure))
        }
    };
    let assumed = judged.iter().filter(|row| row.half_width() > Some(NOISY) && !loose(row));
    let assumed: Vec<f64> = assumed.filter_map(|row| row.half_width()).collect();
    if let Some(most) = assumed.iter().copied().reduce(f64::max) {
        text.push_str(&format!(
            " The trials of {} agree, but such runs are assumed to differ by up to ±{} (flatout \
             compare --noise learns by how much here).",
            count(assumed.len(), "further row", "further rows"),
            percent(most)
        ));
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
