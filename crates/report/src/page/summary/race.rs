//! The lines of a race: who won by how much, losses first.

use flatout_measure::record::Status;

use super::{Lines, MOST_LINES, SummaryLine, reservation};
use crate::page::Ratio;
use crate::page::race::{AREA, Pair, Race};
use crate::text::Joined;
use crate::{label, quantity};

const HEADS: [&str; 6] = ["", "times as fast", "95 % interval", "", "", "result"];

pub(super) fn lines(race: &Race<'_>) -> Lines {
    let all = race.pairs.iter().flat_map(|pairs| &pairs.pairs);
    let was_raced = |pair: &&Pair<'_>| pair.outcome.status != Status::Unsupported;
    let pairs: Vec<&Pair<'_>> = all.filter(was_raced).collect();
    let span = Ratio::span(pairs.iter().filter_map(|pair| pair.outcome.ci95).flatten());
    let counts = race.pairs.iter().map(|pairs| format!("{}: {}", pairs.heading, pairs.count()));
    let more = pairs.len().saturating_sub(MOST_LINES);
    let more = (more > 0).then(|| quantity::counted(more, "more pair"));
    let lines = pairs.iter().take(MOST_LINES).map(|pair| line(pair, span)).collect();
    (HEADS, lines, counts.chain(more).joined("; "))
}

fn line(pair: &Pair<'_>, span: f64) -> SummaryLine {
    let Pair { subject, against, work, verdict, .. } = pair;
    SummaryLine {
        area: AREA.to_owned(),
        name: format!("{subject} : {against}, {}", work.join(", ")),
        figure: pair.ratio().unwrap_or_else(|| "–".to_owned()),
        interval: pair.interval().unwrap_or_default(),
        // Who has less to do wins easily.
        word: pair.word(),
        bottleneck: reservation(pair.outcome).unwrap_or_default().to_owned(),
        change: change(pair, span),
        tone: verdict.tone(),
        ..SummaryLine::default()
    }
}

/// Faster to the right.
fn change(pair: &Pair<'_>, span: f64) -> Option<Ratio> {
    let (ratio, interval) = (label::figure(pair.outcome)?, pair.outcome.ci95?);
    let text = format!("{}, interval {}", pair.ratio()?, pair.interval()?);
    Some(Ratio { ratio: ratio.ln(), interval: interval.map(f64::ln), same: 0.0, span, text })
}
