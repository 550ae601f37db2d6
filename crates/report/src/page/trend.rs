//! A trend as a page: which rows changed their level, since when, and what all runs found.

use flatout_measure::comparison::Verdict;
use flatout_measure::comparison::trend::{LEAST_RUNS, LevelChange, Trend, TrendRow};
use flatout_measure::record::{Outcome, Series};
use flatout_measure::statistics;
use jiff::Timestamp;

use super::column::{self, Column, Known};
use super::comparison::tone;
use super::summary::{self, SummaryLine};
use super::{Block, Cell, Curve, Part, Row, Section, Table, units, words};
use crate::chart::plot::Plot;
use crate::quantity::{self, Scale};
use crate::style::Tone;
use crate::text::{self, Joined};
use crate::{label, order};

const HEADS: [&str; 6] = ["", "ratio", "before, after", "", "", "since"];
const DAY_S: f64 = 86_400.0;
/// The columns of rows that did not change.
const COLUMNS: [Known; 5] =
    [column::TEST, column::PARAMETERS, column::MEDIAN, column::LEAST, column::MOST];

/// What changed, and everything else.
pub(super) fn sections(trend: &Trend) -> [Section; 2] {
    let named: Vec<_> = trend.rows.iter().map(|row| (row.id.as_str(), &row.parameters)).collect();
    let names = named.iter().zip(label::own_words(&named));
    let names = names.map(|((id, _), own)| [vec![(*id).to_owned()], own].concat().join(", "));
    let mut changed: Vec<(String, &TrendRow, &LevelChange)> = names
        .zip(&trend.rows)
        .filter_map(|(name, row)| Some((name, row, row.change.as_ref()?)))
        .collect();
    let size = |change: &LevelChange| (change.after / change.before).ln().abs();
    let is_better = |change: &LevelChange| change.verdict == Verdict::Better;
    changed.sort_by(|(.., a), (.., b)| {
        is_better(a).cmp(&is_better(b)).then_with(|| size(b).total_cmp(&size(a)))
    });
    [short(trend, &changed), whole(trend, &changed)]
}

fn short(trend: &Trend, changed: &[(String, &TrendRow, &LevelChange)]) -> Section {
    let mut section = Section::new(Part::Summary, "");
    let days = order::distinct(trend.times.iter().filter_map(|time| day(time)));
    let days = order::distinct([days.first(), days.last()].into_iter().flatten());
    let days = days.into_iter().joined(" to ");
    let others = match trend.runs_left_out {
        0 => String::new(),
        count => format!(", {} of other machines left out", quantity::count(count)),
    };
    let runs = quantity::counted(trend.times.len(), "run");
    let line = text::listed([format!("{runs} of one machine"), days], ", ");
    section.push(Block::Text(line + &others, Tone::Plain));
    let (total, of_all) = total(trend);
    section.push(Block::Text(total, of_all));
    if changed.is_empty() {
        return section;
    }
    let lines = changed.iter().map(|(name, row, change)| {
        let word = change.verdict.word();
        SummaryLine {
            area: label::area(&row.id).to_owned(),
            name: name.clone(),
            figure: words::ratio_text(change.after / change.before),
            interval: levels(row, change).join(" → "),
            bottleneck: since(trend, change),
            word,
            tone: tone(change.verdict),
            ..SummaryLine::default()
        }
    });
    summary::push(&mut section, HEADS, &lines.collect::<Vec<_>>(), "");
    section
}

/// What all rows come to.
fn total(trend: &Trend) -> (String, Tone) {
    if trend.rows.is_empty() {
        let text = format!("no row that {LEAST_RUNS} runs have: a trend needs as many");
        return (text, Tone::Warn);
    }
    let count = |verdict: Option<Verdict>| {
        let rows = trend.rows.iter().map(|row| row.change.as_ref().map(|change| change.verdict));
        rows.filter(|one| *one == verdict).count() as u64
    };
    let [worse, better, same] = [Some(Verdict::Worse), Some(Verdict::Better), None].map(count);
    let tone = match (worse, better) {
        (0, 0) => Tone::Strong,
        (0, _) => Tone::Good,
        _ => Tone::Bad,
    };
    let same = (same, "without a change that is shown");
    (words::counts(&[(worse, "worse"), (better, "better"), same]), tone)
}

/// The curves of the rows that changed, and the range of those that did not.
fn whole(trend: &Trend, changed: &[(String, &TrendRow, &LevelChange)]) -> Section {
    let mut section = Section::new(Part::Comparison, "Row by row");
    for (name, row, change) in changed {
        section.push(Block::Curve(curve(trend, name, row, change)));
    }
    let rows: Vec<Row> =
        trend.rows.iter().filter(|row| row.change.is_none()).map(unchanged).collect();
    if !rows.is_empty() {
        section.push(Block::Heading("without a change that is shown".to_owned(), Tone::Plain));
        let columns = COLUMNS.iter().map(|known| Column::from(*known)).collect();
        section.push(Block::Table(Table { name: "steady", columns, rows, ..Table::default() }));
    }
    section
}

fn curve(trend: &Trend, name: &str, row: &TrendRow, change: &LevelChange) -> Curve {
    let times: Option<Vec<f64>> = trend.times.iter().map(|time| seconds(time)).collect();
    let (x, places) = match times {
        Some(times) => ("days", times.iter().map(|time| (time - times[0]) / DAY_S).collect()),
        None => ("run", (1..=trend.times.len()).map(|run| run as f64).collect::<Vec<f64>>()),
    };
    let (unit, factor) = units::unit(&row.id, &row.unit);
    let points = places.iter().zip(&row.figures);
    let series = Series {
        name: "figure of each run".to_owned(),
        x: x.to_owned(),
        y: unit.to_owned(),
        points: points.filter_map(|(x, figure)| Some([*x, figure.as_ref()? * factor])).collect(),
    };
    let [before, after] = levels(row, change);
    let ratio = words::ratio_text(change.after / change.before);
    let since = since(trend, change);
    let p = words::p_text(change.p_corrected);
    let sentence = format!(
        "{}: {ratio} since {since}, {before} before, {after} since (p {p})",
        change.verdict.word()
    );
    Curve {
        name: name.to_owned(),
        caption: label::parameters(&row.parameters),
        sentence: Some(sentence),
        plot: Some((series.name.clone(), Plot::over_time(&series, &Outcome::default()))),
        series: vec![series],
    }
}

/// Both levels, in one unit.
fn levels(row: &TrendRow, change: &LevelChange) -> [String; 2] {
    let (unit, factor) = units::unit(&row.id, &row.unit);
    let scale = Scale::of(unit, change.before.max(change.after) * factor);
    [scale.number(change.before * factor), scale.text(change.after * factor)]
}

/// The day of the run, or its number.
fn since(trend: &Trend, change: &LevelChange) -> String {
    let number = format!("run {} of {}", change.since + 1, trend.times.len());
    let day = trend.times.get(change.since).and_then(|time| day(time));
    day.map_or(number.clone(), |day| format!("{day}, {number}"))
}

/// The day in a time of RFC 3339, where the run was made.
fn day(time: &str) -> Option<String> {
    time.split_once('T').map(|(day, _)| day.to_owned())
}

fn seconds(time: &str) -> Option<f64> {
    time.parse().ok().map(|time: Timestamp| time.as_second() as f64)
}

fn unchanged(row: &TrendRow) -> Row {
    let (unit, factor) = units::unit(&row.id, &row.unit);
    let figures: Vec<f64> = row.figures.iter().flatten().map(|figure| figure * factor).collect();
    let (least, most) = statistics::extremes(&figures).unwrap_or_default();
    let scale = Scale::of(unit, most);
    let median = statistics::median(&figures).map(|median| scale.text(median));
    Row::new(vec![
        Cell::plain(row.id.as_str()),
        Cell::words(label::parameter_words(&row.parameters)),
        Cell::or_dash(median),
        Cell::plain(scale.number(least)),
        Cell::plain(scale.number(most)),
    ])
}
