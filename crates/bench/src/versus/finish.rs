//! Rows of what a race found: speeds beside times, who won, and who keeps less than the other.

use flatout_measure::case::record;
use flatout_measure::{Better, Label, Measured, Outcome, Status, Warning, statistics, warning};

use crate::versus::race::{Race, pairs};
use crate::versus::{commands, fact};

/// The rows of ratios are called so.
pub const RATIO: &str = "versus/ratio";

/// All rows of a race: of the contestants, of their speeds where bytes are moved, of the pairs.
pub(super) fn rows(
    race: &Race<'_>,
    mut rows: Vec<Measured<Label>>,
    mut ratios: Vec<Measured<Label>>,
) -> Vec<Outcome> {
    for (measured, contestant) in rows.iter_mut().zip(&race.contestants) {
        measured.facts.set(fact::VERSION, contestant.version.clone());
        // Runs that count; after each somebody looked at what it left, but for commands of the user's.
        let looked_at = if race.test == commands::TEST { 0 } else { measured.outcome.n };
        measured.facts.set("runs", looked_at);
    }
    for (ratio, (subject, against)) in ratios.iter_mut().zip(pairs(race)) {
        judge(ratio, [subject, against].map(|at| (&*race.contestants[at].name, &rows[at])));
    }
    let mut outcomes = record(rows);
    if race.bytes > 0 {
        let speeds = outcomes.iter().map(|row| speed(row, race.bytes as f64));
        outcomes.extend(speeds.collect::<Vec<_>>());
    }
    outcomes.extend(record(ratios));
    outcomes
}

/// The row of the speed at which a contestant moved so many bytes.
fn speed(time: &Outcome, bytes: f64) -> Outcome {
    let rate = |ns: f64| bytes / (ns / 1e9);
    let samples: Vec<f64> = time.samples.iter().map(|ns| rate(*ns)).collect();
    Outcome {
        id: format!("{}-speed", time.id),
        unit: "bytes/s".to_owned(),
        better: Better::Higher,
        median: statistics::median(&samples),
        ci95: time.ci95.map(|[low, high]| [rate(high), rate(low)]),
        samples,
        ..time.clone()
    }
}

/// Says who won, who keeps less, and who did it otherwise.
fn judge(ratio: &mut Measured<Label>, both: [(&str, &Measured<Label>); 2]) {
    let Measured { outcome, facts, .. } = ratio;
    if outcome.status == Status::Failed {
        let out = both.into_iter().filter(|(_, measured)| measured.outcome.median.is_none());
        let out: Vec<&str> = out.map(|(name, _)| name).collect();
        let text = format!("no ratio: {} failed", out.join(" and "));
        outcome.warnings = vec![Warning::new(warning::FAILED, text)];
        return;
    }
    let result = match outcome.ci95 {
        Some([low, _]) if low > 1.0 => "win",
        Some([_, high]) if high < 1.0 => "loss",
        Some(_) => "tie",
        None => "undecided",
    };
    facts.set("result", result);
    facts.set(fact::ROUNDS, outcome.n);
    facts.set(fact::HALF_WIDTH, outcome.half_width());
    // Who does something else or keeps less has less to do: a reader must see it beside the ratio.
    let own = both.iter().flat_map(|(_, measured)| &measured.outcome.warnings);
    let otherwise = own.filter(|own| own.code == warning::DONE_OTHERWISE);
    otherwise.for_each(|own| outcome.warn(&own.code, &own.text));
    let [own, other] =
        both.map(|(_, measured)| measured.facts.text(fact::FIDELITY).map(str::to_owned));
    facts.set_known(fact::FIDELITY, own.clone());
    // What kind of copy its opponent makes.
    facts.set_known("fidelity_against", other.clone());
    if own != other {
        let [own, other] = [own, other].map(Option::unwrap_or_default);
        let [subject, against] = both.map(|(name, _)| name);
        let text =
            format!("{subject} keeps {own}, {against} {other}: who keeps less has less to do");
        outcome.warn(warning::KEEPS_LESS, text);
    }
}
