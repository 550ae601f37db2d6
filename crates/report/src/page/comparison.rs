//! A comparison as a page: the machines, the verdict, then the rows by verdict.

use flatout_measure::comparison::{Comparison, Figure, Row as Judged, Verdict};
use flatout_measure::record::{Better, Outcome, Record};

use super::column::{self, Column, Known};
use super::notes::Notes;
use super::{Block, Cell, Page, Pairs, PairsKind, Part, Picture, Ratio, Row, Section, Table};
use super::{pictures, summary, trend, units, words};
use crate::chart::{sweep, view};
use crate::comparison::Document;
use crate::style::Tone;
use crate::{label, quantity, quantity::Scale};

/// The columns of rows that were judged; those that were not end with the ratio.
const COLUMNS: [Known; 10] = [
    column::TEST,
    column::PARAMETERS,
    column::OLD,
    column::NEW,
    column::CHANGE,
    column::CHANGE_STRIP,
    column::CHANGE_INTERVAL,
    column::CHANCE,
    column::NOISE,
    column::SHOWS,
];
const COLUMNS_UNJUDGED: usize = 5;

/// An interval whose ends are farther apart says nothing.
const WIDEST: f64 = 1e4;

/// The parameter that tells the sides apart.
const SIDE: &str = "side";

/// Everything that comparisons say.
pub(crate) fn of_comparisons(document: &Document) -> Page {
    let all = document.comparisons.iter();
    let mut sections: Vec<Section> = Section::of_errors(&document.errors).into_iter().collect();
    if let [_, _, ..] = &document.comparisons[..] {
        sections.push(verdicts(&document.comparisons));
    }
    sections.extend(all.clone().map(summary::of_comparison));
    sections.extend(all.clone().flat_map(|comparison| [machines(comparison), rows(comparison)]));
    sections.extend(document.trend.iter().flat_map(trend::sections));
    if all.clone().any(|comparison| !comparison.rows.is_empty()) {
        sections.push(Section::new(Part::Notes, "What the columns mean").with(meanings()));
    }
    let origin = vec![document.tool.clone()];
    Page { title: "flatout compare".to_owned(), origin, sections, ..Page::default() }
}

/// What all comparisons come to, in a line each: a screen has no room for their rows.
fn verdicts(comparisons: &[Comparison]) -> Section {
    let line = |comparison: &Comparison| {
        let line = format!("NEW {}: {}", comparison.new.name, words::total(comparison));
        Block::Text(line, tone(comparison.verdict))
    };
    comparisons.iter().map(line).fold(Section::new(Part::Summary, ""), Section::with)
}

fn meanings() -> Block {
    let known = COLUMNS.iter().filter(|known| !known.meaning.is_empty());
    let pairs = known.map(|known| (known.head, known.meaning)).chain([words::VERDICTS]);
    Block::Pairs(Pairs::new(PairsKind::Legend, pairs))
}

/// What is held against what, and where differences begin.
fn machines(comparison: &Comparison) -> Section {
    let mut section = Section::new(Part::Comparison, "");
    for (name, side) in [("OLD", &comparison.old), ("NEW", &comparison.new)] {
        section.push(Block::Text(words::side(name, side), Tone::Strong));
    }
    let is_other = comparison.same_machine == Some(false);
    let machines = words::machines(comparison).to_owned();
    section.push(Block::Text(machines, if is_other { Tone::Warn } else { Tone::Plain }));
    if !comparison.environment.is_empty() {
        section.push(Block::Table(differences(comparison)));
    }
    // The last of it stands in the summary.
    let [known @ .., _] = &words::threshold(comparison)[..] else { return section };
    section.with(Block::Text(known.join(" "), Tone::Plain))
}

/// The verdict, and the rows by verdict.
fn rows(comparison: &Comparison) -> Section {
    let mut section = Section::new(Part::Comparison, "Row by row");
    let scale = Strip::of(comparison);
    for verdict in words::ORDER {
        let rows: Vec<&Judged> =
            comparison.rows.iter().filter(|row| row.verdict == verdict).collect();
        if !rows.is_empty() {
            let heading = words::heading(verdict, rows.len());
            section.push(Block::Heading(heading, tone(verdict)));
        }
        let listed = rows.into_iter().filter(|row| !words::is_only_counted(row));
        let rows: Vec<Row> = listed.map(|row| row_of(row, scale)).collect();
        if !rows.is_empty() {
            let is_judged = verdict != Verdict::Incomparable;
            let count = if is_judged { COLUMNS.len() } else { COLUMNS_UNJUDGED };
            let columns = COLUMNS[..count].iter().map(|known| Column::from(*known)).collect();
            section.push(Block::Table(Table {
                name: "changes",
                columns,
                rows,
                ..Table::default()
            }));
        }
    }
    let counted = words::only_counted(&comparison.rows);
    if !counted.is_empty() {
        section.push(Block::Text(counted, Tone::Dim));
    }
    for (side, names) in [("OLD", &comparison.only_old), ("NEW", &comparison.only_new)] {
        if !names.is_empty() {
            let name = format!("only in {side} ({})", names.len());
            let names = Block::List(names.iter().map(words::name).collect());
            section.push(Block::folded(name, vec![names]));
        }
    }
    push_sides(&mut section, comparison);
    if section.blocks.is_empty() {
        section.heading.clear();
        section.push(Block::Text(words::total(comparison), tone(comparison.verdict)));
    }
    section
}

fn differences(comparison: &Comparison) -> Table {
    let columns = ["differs", "OLD", "NEW"].map(|head| column::words(head).into()).into();
    let row = |difference| Row::new(words::difference(difference).map(Cell::plain).into());
    let rows = comparison.environment.iter().map(row).collect();
    Table { name: "differences", columns, rows, ..Table::default() }
}

/// What all pictures have in common.
#[derive(Clone, Copy)]
pub(super) struct Strip {
    /// Half the band that counts as the same.
    same: f64,
    /// The logarithm that half of a picture is wide.
    span: f64,
}

impl Strip {
    pub(super) fn of(comparison: &Comparison) -> Self {
        let ends = comparison.rows.iter().filter_map(|row| row.ci95).flatten();
        Self { same: comparison.threshold.ratio.ln_1p(), span: Ratio::span(ends) }
    }

    /// Better to the right, over the band that counts as the same.
    pub(super) fn picture(self, row: &Judged) -> Option<Ratio> {
        let (ratio, ci95) = (row.ratio?, row.ci95?);
        let text = format!("ratio {}, interval {}", words::ratio_text(ratio), interval_text(ci95));
        let turn = if row.better == Better::Higher { 1.0 } else { -1.0 };
        let [low, high] = ci95.map(|end| turn * end.ln());
        Some(Ratio {
            ratio: turn * ratio.ln(),
            interval: [low.min(high), low.max(high)],
            same: self.same,
            span: self.span,
            text,
        })
    }
}

fn interval_text(ci95: [f64; 2]) -> String {
    if ci95[1] > WIDEST * ci95[0] {
        return "nothing known".to_owned();
    }
    ci95.map(words::ratio_text).join(" … ")
}

/// A row with as many cells as its verdict has columns.
fn row_of(row: &Judged, strip: Strip) -> Row {
    let largest = [row.old.median, row.new.median].into_iter().flatten().fold(0.0, f64::max);
    let (unit, factor) = units::unit(&row.id, &row.unit);
    let scale = Scale::of(unit, largest * factor);
    let value = |figure: &Figure| {
        let median = figure.median.map(|median| scale.text(median * factor));
        Cell::plain(median.unwrap_or_else(|| label::no_figure(figure.status).to_owned()))
    };
    let mut parameters = words::parameters(row);
    parameters.extend((row.better == Better::Lower).then(|| "less is better".to_owned()));
    let tone = tone(row.verdict);
    let ratio = Cell { tone, ..Cell::or_dash(row.ratio.map(words::ratio_text)) };
    let mut cells = vec![
        Cell::plain(row.id.as_str()),
        Cell::words(parameters),
        value(&row.old),
        value(&row.new),
        ratio,
    ];
    if row.verdict != Verdict::Incomparable {
        let interval = row.ci95.map(interval_text);
        let picture = strip.picture(row).map(Picture::Ratio);
        cells.push(Cell { picture, ..Cell::default() });
        cells.push(Cell::or_dash(interval));
        cells.push(Cell::or_dash(row.p_corrected.map(words::p_text)));
        cells.push(Cell::or_dash(row.noise_ratio.map(quantity::percent)));
        cells.push(Cell::or_dash(row.detectable_ratio.map(quantity::percent)));
    }
    Row { remark: words::remark(row), tone, ..Row::new(cells) }
}

pub(super) fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Better => Tone::Good,
        Verdict::Worse => Tone::Bad,
        Verdict::Unclear => Tone::Warn,
        Verdict::Same => Tone::Strong,
        Verdict::Incomparable => Tone::Dim,
    }
}

/// Adds a picture of each sweep that both sides have; only a browser has room for so many lines.
fn push_sides(section: &mut Section, comparison: &Comparison) {
    let results = comparison.rows.iter().flat_map(|row| {
        [("OLD", &row.old), ("NEW", &row.new)].map(|(side, figure)| outcome(row, side, figure))
    });
    // A run that has these rows and pictures, and nothing else.
    let (results, charts) = (results.collect(), comparison.charts.clone());
    let record = Record { results, charts, ..Record::default() };
    let record = units::shown(&record);
    let mut notes = Notes::default();
    let of_record = record.charts.iter().filter_map(|chart| sweep::of(&record.results, chart));
    let rows: Vec<&Outcome> = record.results.iter().collect();
    let derived = view::derived(&record.charts, &rows);
    let of_views = derived.iter().filter_map(|view| sweep::of(&view.results, &view.chart));
    for sweep in of_record.chain(of_views) {
        let mut picture = pictures::chart(&sweep, &record, &mut notes);
        picture.key += &format!(" {}", comparison.new.name);
        section.push_for_browser(Block::Chart(picture));
    }
}

/// A side of a row, as a row of a record.
fn outcome(row: &Judged, side: &str, figure: &Figure) -> Outcome {
    let mut parameters = row.parameters.clone();
    parameters.insert(SIDE.to_owned(), side.into());
    Outcome {
        id: row.id.clone(),
        parameters,
        unit: row.unit.clone(),
        better: row.better,
        median: figure.median,
        n: figure.n,
        status: figure.status,
        ..Outcome::default()
    }
}
