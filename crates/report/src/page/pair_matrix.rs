//! Who is far from whom: figures of pairs of processes as a matrix, the slow ones shaded.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

use flatout_measure::record::{Better, Outcome};
use flatout_measure::statistics;

use super::column::{self, Column};
use super::{Block, Cell, Picture, Row, Section, Table, Wide, units};
use crate::quantity::{self, Scale};
use crate::style::Tone;
use crate::{label, order, text::Joined};

/// What ids of pairs begin with.
pub(super) const PAIRS: &str = "network/pair-";
/// From how much of the usual figure on a cell has which shade, on a terminal with Unicode and without.
/// (Of the best, memory of one host, nearly all of a cluster would be slow.)
const SHADES: [(f64, [char; 2]); 4] =
    [(0.9, [' ', ' ']), (0.75, ['░', '.']), (0.5, ['▒', 'o']), (0.0, ['▓', '#'])];
/// Processes of whose pairs the figures are shown; of more, the shades alone.
const MOST_WITH_FIGURES: usize = 12;
/// Processes that a matrix of a page takes.
const MOST_ON_PAGE: usize = 100;
/// Pairs from which on there is something to compare.
const LEAST_PAIRS: usize = 3;

/// Figures of the pairs of one test.
struct Matrix {
    title: String,
    scale: Scale,
    better: Better,
    /// The median of all.
    usual: f64,
    /// The numbers of those that take part, ascending.
    processes: Vec<u64>,
    pairs: HashMap<(u64, u64), f64>,
}

/// The matrices of all tests that have pairs, as text.
pub fn text(rows: &[Outcome], is_unicode: bool) -> String {
    matrices(rows).iter().map(|matrix| matrix.text(is_unicode)).collect()
}

/// Adds the same as tables with coloured cells for a browser.
pub(super) fn push(section: &mut Section, rows: &[&Outcome]) {
    for matrix in matrices(rows.iter().copied()) {
        let count = matrix.processes.len();
        if count > MOST_ON_PAGE {
            let why = format!("{}: {count} processes are too many for it", matrix.title);
            section.push_for_browser(Block::Text(why, Tone::Dim));
            continue;
        }
        let [grey, orange, red] = [0, 1, 2].map(|at| matrix.beyond(SHADES[at].0));
        let title =
            format!("{}; red {red} of the usual, orange {orange}, grey {grey}", matrix.title);
        section.push_for_browser(Block::Heading(title, Tone::Plain));
        section.push_for_browser(Block::Table(matrix.table()));
    }
}

fn matrices<'r>(rows: impl IntoIterator<Item = &'r Outcome>) -> Vec<Matrix> {
    let rows = rows.into_iter().filter(|row| row.id.starts_with(PAIRS));
    let tests = order::grouped(rows.map(|row| (row.id.as_str(), row))).into_iter();
    tests.filter_map(|(id, rows)| Matrix::of(id, &rows)).collect()
}

impl Matrix {
    fn of(id: &str, rows: &[&Outcome]) -> Option<Self> {
        let (unit, factor) = units::unit(id, &rows[0].unit);
        let pair = |row: &&Outcome| {
            let ends = (row.parameter_count("from")?, row.parameter_count("to")?);
            Some((ends, label::figure(row)? * factor))
        };
        let pairs: HashMap<(u64, u64), f64> = rows.iter().filter_map(pair).collect();
        if pairs.len() < LEAST_PAIRS {
            return None;
        }
        let better = rows[0].better;
        let usual = statistics::median(&pairs.values().copied().collect::<Vec<_>>())?;
        let scale = Scale::of(unit, usual);
        let name = id.trim_start_matches("network/");
        let title = format!("{name}, {}, from row to column", scale.unit);
        let processes: BTreeSet<u64> = pairs.keys().flat_map(|&(from, to)| [from, to]).collect();
        let processes = processes.into_iter().collect();
        Some(Self { title, scale, better, usual, processes, pairs })
    }

    /// The figure and its shade. What has no direction stands on both sides.
    fn cell(&self, from: u64, to: u64) -> Option<(String, usize)> {
        let found = self.pairs.get(&(from, to)).or_else(|| self.pairs.get(&(to, from)));
        let figure = *found.filter(|_| from != to)?;
        let share = match self.better {
            Better::Higher => figure / self.usual,
            Better::Lower => self.usual / figure,
        };
        let shade = SHADES.iter().position(|(least, _)| share >= *least);
        Some((self.scale.number(figure), shade.unwrap_or(SHADES.len() - 1)))
    }

    /// From where on a cell has a shade: `below 50 %` of a rate, `above 200 %` of a time.
    fn beyond(&self, share: f64) -> String {
        match self.better {
            Better::Higher => format!("below {}", quantity::percent(share)),
            Better::Lower => format!("above {}", quantity::percent(1.0 / share)),
        }
    }

    fn has_figures(&self) -> bool {
        self.processes.len() <= MOST_WITH_FIGURES
    }

    fn text(&self, is_unicode: bool) -> String {
        let sign = |shade: usize| SHADES[shade].1[usize::from(!is_unicode)];
        let legend =
            (1..SHADES.len()).map(|at| format!("{} {}", sign(at), self.beyond(SHADES[at - 1].0)));
        let legend = legend.joined(", ");
        let mut text = format!("\n{} ({legend} of the usual)\n", self.title);
        if self.has_figures() {
            let heads: String = self.processes.iter().map(|to| format!(" {to:>7}")).collect();
            let _to_memory = writeln!(text, "    {heads}");
        }
        for &from in &self.processes {
            let _to_memory = write!(text, "{from:>4}");
            for &to in &self.processes {
                let cell = self.cell(from, to);
                let (number, shade) =
                    cell.map_or(("-".to_owned(), ' '), |(number, shade)| (number, sign(shade)));
                let _to_memory = match self.has_figures() {
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
        let heads = self.processes.iter().map(|to| named(to.to_string()));
        let columns = std::iter::once(named("from \\ to".to_owned())).chain(heads).collect();
        let cell = |from, to| {
            let Some((number, shade)) = self.cell(from, to) else { return Cell::or_dash(None) };
            let told = format!("{from} to {to}: {number} {}", self.scale.unit);
            let cell = Cell::plain(if self.has_figures() { number } else { String::new() });
            Cell { picture: Some(Picture::Shade(shade)), ..cell.with_detail(told) }
        };
        let row = |&from: &u64| {
            let cells = self.processes.iter().map(|&to| cell(from, to));
            Row::new(std::iter::once(Cell::plain(from.to_string())).chain(cells).collect())
        };
        let rows = self.processes.iter().map(row).collect();
        let unit = self.scale.unit.clone();
        let (name, wide) = ("matrix pair-matrix", Wide::Split);
        Table { name, unit, columns, rows, wide, ..Table::default() }
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
        let rates = [(0, 1, 1e9), (0, 2, 0.4e9), (1, 2, 0.8e9), (0, 3, 1e9), (1, 3, 1e9)];
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
        let rates = [(0, 1, 1e9), (0, 2, 0.4e9), (1, 2, 0.8e9), (2, 1, 0.8e9), (1, 0, 0.7e9)];
        let rows = rows(Better::Higher, &rates);
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
        assert_eq!(all, [[None, zero, two], [one, None, zero], [two, zero, None]]);
        assert_eq!(table.rows[0].cells[3].detail, "0 to 2: 3.20 Gbit/s");
    }

    #[test]
    fn numbers_of_processes_are_names_and_not_sizes() {
        let far = u64::MAX;
        let mut rows = rows(Better::Higher, &[(0, 7, 1e9), (0, far, 1e9), (7, far, 1e9)]);
        assert_eq!(text(&rows, true).lines().count(), 2 + 1 + 3);
        // What cannot be true is no figure here either.
        rows[0].status = flatout_measure::record::Status::Invalid;
        assert_eq!(text(&rows, true), "");
    }

    fn rates_of_two() -> Vec<Outcome> {
        rows(Better::Higher, &[(0, 1, 1e9), (1, 0, 1e9)])
    }
}
