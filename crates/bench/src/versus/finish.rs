//! Rows of what a race found: speeds beside times, who won, and who keeps less than the other.

use flatout_measure::case::record;
use flatout_measure::{Better, Measured, Outcome, Status, Warning, statistics, warning};

use crate::versus::fact;
use crate::versus::race::{ContestantRow, RatioRow};

/// The rows of ratios are called so.
pub const RATIO: &str = "versus/ratio";

/// All rows of a race: of the contestants, of their speeds where bytes are moved, of the pairs.
pub(super) fn rows(
    mut rows: Vec<Measured<ContestantRow>>,
    mut ratios: Vec<Measured<RatioRow>>,
    speed_bytes: Option<u64>,
    leftovers: Option<String>,
) -> Vec<Outcome> {
    for measured in &mut rows {
        let version = measured.row.contestant.version.clone();
        measured.facts.set(fact::VERSION, version);
        // Runs that count; after each somebody looked at what it left.
        measured.facts.set("runs", measured.outcome.n);
    }
    ratios.iter_mut().for_each(|ratio| judge(ratio, &rows));
    let mut outcomes = record(rows);
    if let Some(bytes) = speed_bytes {
        let speeds: Vec<Outcome> = outcomes.iter().map(|row| speed(row, bytes as f64)).collect();
        outcomes.extend(speeds);
    }
    outcomes.extend(record(ratios));
    if let (Some(text), Some(first)) = (leftovers, outcomes.first_mut()) {
        let text = format!("what the race made is still there: {text}");
        first.warnings.push(Warning::new(warning::FAILED, text));
    }
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

/// Says who won, and who keeps less.
fn judge(ratio: &mut Measured<RatioRow>, rows: &[Measured<ContestantRow>]) {
    let Measured { row, outcome, facts, .. } = ratio;
    let both = [row.subject, row.against].map(|at| &rows[at]);
    let [subject, against] = both.map(|measured| measured.row.contestant.name.as_str());
    if outcome.status == Status::Failed {
        let is_out = |measured: &&Measured<ContestantRow>| measured.outcome.median.is_none();
        let out: Vec<&str> = both
            .into_iter()
            .filter(is_out)
            .map(|measured| measured.row.contestant.name.as_str())
            .collect();
        let text = format!("no ratio: {} failed", out.join(" and "));
        outcome.warnings = vec![Warning::new(warning::FAILED, text)];
        return;
    }
    let result = outcome.ci95.map(|[low, high]| match (low > 1.0, high < 1.0) {
        (true, _) => "win",
        (_, true) => "loss",
        _ => "tie",
    });
    // Without an interval nobody has won or lost.
    // win, loss or tie.
    facts.set("result", result.unwrap_or("tie"));
    facts.set(fact::ROUNDS, outcome.n);
    facts.set(fact::HALF_WIDTH, outcome.half_width());
    // Who keeps less has less to do: a reader must see it beside the ratio.
    let kept = both.map(|measured| measured.facts.text(fact::FIDELITY).map(str::to_owned));
    let [own, other] = kept;
    facts.set_known(fact::FIDELITY, own.clone());
    // What kind of copy its opponent makes.
    facts.set_known("fidelity_against", other.clone());
    if own != other {
        let [own, other] = [own, other].map(Option::unwrap_or_default);
        let text =
            format!("{subject} keeps {own}, {against} {other}: who keeps less has less to do");
        outcome.warn(warning::KEEPS_LESS, text);
    }
}
