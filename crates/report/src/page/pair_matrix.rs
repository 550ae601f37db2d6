//! Who is far from whom: figures of pairs of processes as a matrix, the slow ones shaded.

use std::fmt::Write;

use flatout_measure::record::{Better, Outcome};

use super::column::{self, Column};
use super::{Block, Cell, Picture, Row, Section, Table, Wide};
use crate::quantity::{self, Scale};
use crate::style::Tone;

/// From how much of the best figure on a cell has which shade, on a terminal with Unicode and without.
const SHADES: [(f64, [char; 2]); 4] =
    [(0.9, [' ', ' ']), (0.75, ['░', '.']), (0.5, ['▒', 'o']), (0.0, ['▓', '#'])];
/// Processes of whose pairs the figures are shown; of more, the shades alone.
const MOST_WITH_FIGURES: usize = 12;
/// Pairs from which on there is something to compare.
const LEAST_PAIRS: usize = 3;

/// Figures of the pairs of one test.
struct Matrix {
    name: String,
    scale: Scale,
    better: Better,
    best: f64,
    size: usize,
    pairs: Vec<(usize, usize, f64)>,
}

/// The matrices of all tests that have pairs, as text.
pub fn text(rows: &[Outcome], is_unicode: bool) -> String {
    matrices(rows).iter().map(|matrix| matrix.text(is_unicode)).collect()
}

/// Adds the same as tables with coloured cells for a browser.
pub(super) fn push(section: &mut Section, rows: &[&Outcome]) {
    for matrix in matrices(rows.iter().copied()) {
        let Matrix { name, scale, .. } = &matrix;
        let title = format!("{name}, {}, from row to column", scale.unit);
        section.push_for_browser(Block::Heading(title, Tone::Plain));
        section.push_for_browser(Block::Table(matrix.table()));
    }
}

fn matrices<'r>(rows: impl IntoIterator<Item = &'r Outcome>) -> Vec<Matrix> {
    let mut tests: Vec<(&str, Vec<&Outcome>)> = Vec::new();
    for row in rows.into_iter().filter(|row| row.id.starts_with("network/pair-")) {
        match tests.iter_mut().find(|(id, _)| *id == row.id) {
            Some((_, own)) => own.push(row),
            None => tests.push((&row.id, vec![row])),
        }
    }
    tests.into_iter().filter_map(|(id, rows)| Matrix::of(id, &rows)).collect()
}

impl Matrix {
    fn of(id: &str, rows: &[&Outcome]) -> Option<Self> {
        let (unit, factor) = super::units::unit(id, &rows[0].unit);
        let pair = |row: &&Outcome| {
            let end = |key| Some(row.parameter_count(key)? as usize);
            Some((end("from")?, end("to")?, row.median? * factor))
        };
        let pairs: Vec<(usize, usize, f64)> = rows.iter().filter_map(pair).collect();
        if pairs.len() < LEAST_PAIRS {
            return None;
        }
        let better = rows[0].better;
        let of_both = |one: f64, other: f64| match better {
            Better::Higher => one.max(other),
            Better::Lower => one.min(other),
        };
        let best = pairs.iter().map(|pair| pair.2).reduce(of_both)?;
        let size = pairs.iter().map(|&(from, to, _)| from.max(to) + 1).max()?;
        let name = id.trim_start_matches("network/").to_owned();
        Some(Self { name, scale: Scale::of(unit, best), better, best, size, pairs })
    }

    /// What has no direction stands on both sides.
    fn figure(&self, from: usize, to: usize) -> Option<f64> {
        let of = |one, other| self.pairs.iter().find(|pair| (pair.0, pair.1) == (one, other));
        let found = of(from, to).or_else(|| of(to, from)).map(|pair| pair.2);
        found.filter(|_| from != to)
    }

    /// Which of the shades a figure has.
    fn shade(&self, figure: f64) -> usize {
        let share = match self.better {
            Better::Higher => figure / self.best,
            Better::Lower => self.best / figure,
        };
        SHADES.iter().position(|(least, _)| share >= *least).unwrap_or(SHADES.len() - 1)
    }

    fn text(&self, is_unicode: bool) -> String {
        let sign = |shade: usize| SHADES[shade].1[usize::from(!is_unicode)];
        let legend = (1..SHADES.len())
            .map(|at| format!("{} below {}", sign(at), quantity::percent(SHADES[at - 1].0)));
        let legend: Vec<String> = legend.collect();
        let Self { name, scale, size, .. } = self;
        let (unit, legend) = (&scale.unit, legend.join(", "));
        let mut text = format!("\n{name}, {unit}, from row to column ({legend} of the best)\n");
        let has_figures = *size <= MOST_WITH_FIGURES;
        if has_figures {
            let heads: String = (0..*size).map(|to| format!(" {to:>7}")).collect();
            let _to_memory = writeln!(text, "    {heads}");
        }
        for from in 0..*size {
            let _to_memory = write!(text, "{from:>4}");
            for to in 0..*size {
                let cell = self.figure(from, to);
                let shade = cell.map_or(' ', |cell| sign(self.shade(cell)));
                let number = cell.map_or_else(|| "-".to_owned(), |cell| scale.number(cell));
                let _to_memory = match has_figures {
                    true => write!(text, " {shade}{number:>6}"),
                    false => write!(text, "{}", if from == to { '-' } else { shade }),
                };
            }
            text.push('\n');
        }
        text
    }

    /// A coloured cell for each pair; of many processes the colour alone, with the figure behind it.
    fn table(&self) -> Table {
        let named = |name: String| Column::named(vec![name], column::POINT);
        let heads = (0..self.size).map(|to| named(to.to_string()));
        let columns = std::iter::once(named("from \\ to".to_owned())).chain(heads).collect();
        let cell = |from, to| {
            let Some(figure) = self.figure(from, to) else { return Cell::or_dash(None) };
            let number = self.scale.number(figure);
            let told = format!("{from} to {to}: {number} {}", self.scale.unit);
            let is_shown = self.size <= MOST_WITH_FIGURES;
            let cell = Cell::plain(if is_shown { number } else { String::new() });
            let picture = Some(Picture::Shade(self.shade(figure)));
            Cell { picture, ..cell.with_detail(told) }
        };
        let row = |from: usize| {
            let cells = (0..self.size).map(|to| cell(from, to));
            Row::new(std::iter::once(Cell::plain(from.to_string())).chain(cells).collect())
        };
        let rows = (0..self.size).map(row).collect();
        let unit = self.scale.unit.clone();
        Table { name: "matrix pair-matrix", unit, columns, rows, wide: Wide::Split }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(better: Better, pairs: &[(u64, u64, f64)]) -> Vec<Outcome> {
        let row = |&(from, to, figure): &(u64, u64, f64)| Outcome {
            id: "network/pair-one-way".to_owned(),
            parameters: [("from", from), ("to", to)]
                .map(|(key, value)| (key.to_owned(), value.into()))
                .into_iter()
                .collect(),
            unit: if better == Better::Higher { "bytes/s" } else { "ns" }.to_owned(),
            median: Some(figure),
            better,
            ..Outcome::default()
        };
        pairs.iter().map(row).collect()
    }

    #[test]
    fn slow_pairs_are_dark_in_both_directions_of_better() {
        let rates = [(0, 1, 1e9), (0, 2, 0.4e9), (1, 2, 0.8e9)];
        let shown = text(&rows(Better::Higher, &rates), true);
        assert_eq!(shown.matches('▓').count(), 2 + 1, "{shown}");
        assert_eq!(shown.matches('░').count(), 2 + 1, "{shown}");
        let times = [(0, 1, 1e3), (0, 2, 2.5e3), (1, 2, 1e3)];
        let shown = text(&rows(Better::Lower, &times), false);
        assert_eq!(shown.matches('#').count(), 2 + 1, "{shown}");
        assert_eq!(text(&rates_of_two(), true), "");
        let many: Vec<(u64, u64, f64)> =
            (0..20).flat_map(|a| (a + 1..20).map(move |b| (a, b, 1e9))).collect();
        let shown = text(&rows(Better::Higher, &many), true);
        assert!(shown.lines().skip(2).all(|line| line.chars().count() == 4 + 20), "{shown}");
    }

    #[test]
    fn cells_of_a_page_have_the_shade_of_their_figure() {
        let rows = rows(Better::Higher, &[(0, 1, 1e9), (0, 2, 0.4e9), (1, 2, 0.8e9)]);
        let mut section = Section::new(super::super::Part::Area, "network");
        push(&mut section, &rows.iter().collect::<Vec<_>>());
        let tables = section.blocks.iter().filter_map(|(_, block)| match block {
            Block::Table(table) => Some(table),
            _ => None,
        });
        let [table] = tables.collect::<Vec<_>>()[..] else { panic!("one test, one table") };
        let shades = |row: &Row| {
            let shade = |cell: &Cell| match cell.picture {
                Some(Picture::Shade(shade)) => Some(shade),
                _ => None,
            };
            row.cells[1..].iter().map(shade).collect::<Vec<_>>()
        };
        let [zero, one, two] = [0, 1, 2].map(Some);
        let all: Vec<_> = table.rows.iter().map(shades).collect();
        assert_eq!(all, [[None, zero, Some(3)], [zero, None, one], [Some(3), one, None]]);
        assert_eq!(table.rows[0].cells[3].detail, "0 to 2: 3.20 Gbit/s");
        assert_eq!(two, Some(2));
    }

    fn rates_of_two() -> Vec<Outcome> {
        rows(Better::Higher, &[(0, 1, 1e9), (1, 0, 1e9)])
    }
}
