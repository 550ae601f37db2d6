//! The rows of an area: figures with their doubt and ceiling, then latencies.

use flatout_measure::record::{Ceiling, Outcome, Status};

use super::{INDENT, Page, letter, parameters_cell};
use crate::{
    grid::{Align, Cell, Grid},
    label, latency, quantity,
    style::Tone,
};

/// Ceilings of one area, each with its letter.
#[derive(Default)]
struct Ceilings {
    legends: Vec<String>,
}

impl Ceilings {
    fn letter(&mut self, legend: String) -> String {
        let at = self.legends.iter().position(|known| *known == legend).unwrap_or_else(|| {
            self.legends.push(legend);
            self.legends.len() - 1
        });
        letter(at)
    }
}
const CEILING: &str = "ceiling";
/// Columns that a page too narrow for all goes without, the least important first.
const FIRST_TO_GO: [&str; 2] = ["n", CEILING];

/// Whether the limiter has a column of its own or stands with the ceiling below the rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limiter {
    Column,
    Legend,
}
impl Page<'_> {
    pub(super) fn rows(&mut self, rows: &[&Outcome]) {
        let mut ceilings = Ceilings::default();
        let mut grid = self.grid(rows, Limiter::Column, &mut ceilings);
        let width = self.style.width() - INDENT;
        if grid.natural_width() > width {
            ceilings = Ceilings::default();
            grid = self.grid(rows, Limiter::Legend, &mut ceilings);
        }
        if self.is_too_narrow(&grid) {
            self.stacked(&grid);
        } else {
            self.narrow(&mut grid, &FIRST_TO_GO);
            self.out.push_str(&grid.render(INDENT, self.style));
        }
        if !grid.heads.iter().any(|(head, _)| head == CEILING) {
            ceilings.legends.clear();
        }
        for (index, legend) in ceilings.legends.iter().enumerate() {
            self.hang(&format!("    {}  ", letter(index)), legend, Tone::Dim);
        }
        let kinds = latency::by_loop(rows);
        self.loops.extend(kinds.iter().filter_map(|(kind, _)| latency::meaning(kind)));
        for mut latencies in latency::grids(rows, self.style) {
            self.out.push('\n');
            let heads: Vec<String> = latencies.heads.iter().map(|(head, _)| head.clone()).collect();
            let numbers = heads.iter().map(String::as_str).skip(3).filter(|head| *head != "max");
            self.narrow(&mut latencies, &numbers.rev().collect::<Vec<&str>>());
            self.out.push_str(&latencies.render(INDENT, self.style));
        }
    }

    /// Whether names or numbers would be cut even without the columns that may go.
    fn is_too_narrow(&self, grid: &Grid) -> bool {
        let mut least = grid.clone();
        for head in FIRST_TO_GO {
            least.drop_column(head);
        }
        least.least_width() > self.style.width() - INDENT
    }

    fn grid(&mut self, rows: &[&Outcome], limiter: Limiter, ceilings: &mut Ceilings) -> Grid {
        let plus_minus = self.style.either("±", "+-");
        let mut heads: Vec<(String, Align)> = [
            ("test", Align::Words),
            ("parameters", Align::Words),
            ("median", Align::Decimal),
            (plus_minus, Align::Right),
            ("n", Align::Right),
        ]
        .map(|(head, align)| (head.to_owned(), align))
        .into();
        let has_ceilings = rows.iter().any(|outcome| outcome.ceiling.is_some());
        if has_ceilings {
            heads.push((CEILING.to_owned(), Align::Right));
        }
        let has_limiters = limiter == Limiter::Column
            && rows.iter().any(|o| o.ceiling.as_ref().is_some_and(|c| !c.limiter.is_empty()));
        if has_limiters {
            heads.push(("limited by".to_owned(), Align::Words));
        }
        if rows
            .iter()
            .any(|o| !matches!(o.status, Status::Ok | Status::Unstable) || !o.warnings.is_empty())
        {
            heads.push(("notes".to_owned(), Align::Words));
        }
        let mut grid = Grid { heads, rows: Vec::new() };
        let mut previous = "";
        for outcome in rows {
            let test = label::test(&outcome.id);
            let name = if test == previous { String::new() } else { self.shown(test) };
            previous = test;
            let mut row = vec![Cell::plain(name), parameters_cell(outcome, self.style)];
            match label::figure(outcome) {
                Some(median) => {
                    self.figure_cells(&mut row, outcome, median);
                    if has_ceilings {
                        row.push(self.ceiling_cell(outcome, limiter, ceilings));
                    }
                    if has_limiters {
                        let limiter = outcome.ceiling.as_ref().map_or("", |c| c.limiter.as_str());
                        row.push(Cell::plain(self.shown(limiter)));
                    }
                    if row.len() < grid.heads.len() {
                        row.push(self.notes_cell(outcome));
                    }
                }
                None => row.push(self.reason_cell(outcome)),
            }
            grid.rows.push(row);
        }
        grid
    }

    pub(super) fn figure_cells(&mut self, row: &mut Vec<Cell>, outcome: &Outcome, median: f64) {
        let unstable = if outcome.status == Status::Unstable { "~" } else { "" };
        self.has_unstable |= !unstable.is_empty();
        let figure = format!("{unstable}{}", quantity::value(&outcome.unit, median));
        row.push(Cell::new(self.shown(&figure), Tone::Strong));
        let half = outcome.ci95.and_then(|interval| quantity::half_width(median, interval));
        self.has_interval |= half.is_some();
        let tone = if outcome.status == Status::Unstable { Tone::Warn } else { Tone::Plain };
        let none = self.style.either("–", "-").to_owned();
        row.push(Cell::new(half.map_or(none, quantity::percent), tone));
        row.push(Cell::plain(quantity::count(outcome.n)));
    }

    fn ceiling_cell(&self, outcome: &Outcome, limiter: Limiter, ceilings: &mut Ceilings) -> Cell {
        let Some(ceiling) = &outcome.ceiling else { return Cell::default() };
        let share = ceiling.ratio.map_or("?".to_owned(), quantity::percent);
        let legend = self.shown(&ceiling_legend(ceiling, &outcome.unit, limiter));
        Cell::plain(format!("{share} {}", ceilings.letter(legend)))
    }

    pub(super) fn notes_cell(&mut self, outcome: &Outcome) -> Cell {
        let marks = self.notes.marks(&outcome.warnings);
        let (word, tone) = match outcome.status {
            Status::Ok | Status::Unstable => ("", Tone::Warn),
            Status::Failed | Status::Invalid => (label::status(outcome.status), Tone::Bad),
            other => (label::status(other), Tone::Warn),
        };
        let gap = if word.is_empty() || marks.is_empty() { "" } else { " " };
        Cell::new(format!("{word}{gap}{marks}"), tone)
    }

    pub(super) fn reason_cell(&mut self, outcome: &Outcome) -> Cell {
        let reason = self.notes.reason(outcome);
        let marks = reason.marks;
        let tone = match outcome.status {
            Status::Failed | Status::Invalid => Tone::Bad,
            _ => Tone::Dim,
        };
        let gap = if marks.is_empty() { "" } else { " " };
        let words = self.shown(&label::reason(outcome, reason.text.as_deref()));
        Cell::new(format!("{words}{gap}{marks}"), tone)
    }
}

/// Name, value and origin of a ceiling, and the limiter where it has no column.
fn ceiling_legend(ceiling: &Ceiling, unit: &str, limiter: Limiter) -> String {
    let name = if ceiling.name.is_empty() { "unnamed ceiling" } else { &ceiling.name };
    let mut legend = name.to_owned();
    if let Some(value) = ceiling.value {
        legend = format!("{legend}: {}", quantity::value(unit, value));
    }
    legend = format!("{legend} ({})", label::provenance(ceiling.provenance));
    if limiter == Limiter::Legend && !ceiling.limiter.is_empty() {
        legend = format!("{legend}; limited by {}", ceiling.limiter);
    }
    legend
}
