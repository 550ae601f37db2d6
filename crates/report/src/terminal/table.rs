//! Tables on the terminal: as they are where they fit; else with the name of each row above its figures, or in
//! parts.

use std::ops::Range;

use super::grid::{GAP, Grid};
use super::summary::LEAST_BESIDE_USUAL;
use super::{INDENT, Terminal, letter};
use crate::order::Places;
use crate::page::{Align, Cell, Column, Detail, Table, Wide};
use crate::style::Tone;
use crate::text::{self, Joined};

/// Names in the first column of a part may be wrapped to this, so that more columns stand beside it.
const FIRST_COLUMN: usize = 16;

/// Where the name of a row stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    InColumns,
    Above,
}

impl Terminal<'_> {
    pub(super) fn table(&mut self, table: &Table) {
        let width = self.style.width() - INDENT;
        let columns = table.columns_of_text();
        let mut legend = Places::default();
        let whole = self.grid(table, &columns, Names::InColumns, &mut legend);
        let has_room = self.room_of_last(&whole) >= LEAST_BESIDE_USUAL;
        if let Some(narrow) = table.narrow.as_deref().filter(|_| !has_room) {
            self.table(narrow);
        } else if table.wide == Wide::Wrapped {
            self.wrapped(whole, table.narrow.is_some());
        } else if whole.natural_width() <= width {
            self.out.push_str(&whole.render(INDENT, self.style));
        } else if table.wide == Wide::Split {
            self.parts(table, Names::InColumns, &whole, width);
        } else {
            let grid = self.grid(table, &columns, Names::Above, &mut legend);
            match grid.least_width() <= width {
                true => self.out.push_str(&grid.render(INDENT, self.style)),
                false => self.parts(table, Names::Above, &grid, width),
            }
        }
        for (index, text) in legend.into_items().iter().enumerate() {
            self.hang(&format!("    {}  ", letter(index)), text, Tone::Dim);
        }
    }

    /// The table in parts below each other, each with the names of its rows.
    fn parts(&mut self, table: &Table, names: Names, whole: &Grid, width: usize) {
        let columns = table.columns_of_text();
        let count = if names == Names::Above { name_columns(table) } else { 1 };
        let widths = whole.natural_widths();
        let Some((first, others)) = widths.split_first() else { return };
        // Behind these there may be notes, in each part.
        let (others, notes) = others.split_at(columns.len() - count);
        let width = width.saturating_sub(notes.iter().map(|notes| notes + GAP).sum());
        let legend = &mut Places::default();
        let first = if table.unit.is_empty() { (*first).min(FIRST_COLUMN) } else { *first };
        for (part, range) in chunks(first, others, width).into_iter().enumerate() {
            let range = range.start + count..range.end + count;
            let chosen = [&columns[..count], &columns[range]].concat();
            let mut grid = self.grid(table, &chosen, names, legend);
            if table.unit.is_empty() && names == Names::InColumns {
                // Rows that say nothing in this part.
                let dash = self.style.either("–", "-");
                grid.rows.retain(|row| row[1..].iter().any(|cell| cell.text != dash));
            }
            if part > 0 {
                self.out.push('\n');
            }
            self.out.push_str(&grid.render(INDENT, self.style));
        }
    }

    fn grid(
        &self,
        table: &Table,
        columns: &[usize],
        names: Names,
        legend: &mut Places<String>,
    ) -> Grid {
        let mut grid = Grid { heads: self.heads(table, columns, names), rows: Vec::new() };
        grid.rows.extend(self.upper_heads(table, columns));
        let has_notes = table.has_notes();
        if has_notes {
            grid.heads.push(("notes".to_owned(), Align::Words));
        }
        let mut previous = "";
        let mut indent = "";
        for row in &table.rows {
            let is_full = row.cells.len() == table.columns.len();
            if !is_full && row.cells.len() == 1 {
                grid.rows.push(vec![self.cell(table, &row.cells[0], None, legend)]);
                indent = "\u{a0}\u{a0}";
                continue;
            }
            if !is_full && !columns.contains(&(row.cells.len() - 1)) {
                // It is said in another part.
                continue;
            }
            let mut line = Vec::new();
            for at in columns.iter().filter(|at| **at < row.cells.len()) {
                let (cell, column) = (&row.cells[*at], &table.columns[*at]);
                line.push(self.cell(table, cell, is_full.then_some(column), legend));
            }
            line[0].text.insert_str(0, indent);
            // A name that stands above its figures, or once for all rows of a test.
            let named = line.len() - usize::from(!is_full);
            let count = name_columns(table).min(named);
            if names == Names::Above {
                let words = line[..count].iter().map(|cell| cell.text.as_str());
                grid.rows.push(vec![Cell::plain(text::listed(words, ", "))]);
                line[..count].iter_mut().for_each(|cell| cell.text.clear());
            } else if count > 1
                && std::mem::replace(&mut previous, &row.cells[0].text) == row.cells[0].text
            {
                line[0].text.clear();
            }
            if names == Names::Above && count > 1 {
                line.remove(1);
            }
            if has_notes && is_full {
                line.push(self.notes(&row.cells));
            }
            grid.rows.push(line);
            if !row.remark.is_empty() {
                let remark = format!("\u{a0}\u{a0}{}", self.shown(&row.remark));
                grid.rows.push(vec![Cell::new(remark, Tone::Dim)]);
            }
        }
        grid
    }

    fn heads(&self, table: &Table, columns: &[usize], names: Names) -> Vec<(String, Align)> {
        let count = name_columns(table);
        let head = |at: &usize| {
            let column = &table.columns[*at];
            let is_above = names == Names::Above && *at < count;
            let is_letter = !table.unit.is_empty();
            let head =
                if is_above || is_letter { String::new() } else { self.shown(column.short()) };
            (head, column.known.align)
        };
        let is_kept = |at: &&usize| !(names == Names::Above && **at == 1 && count > 1);
        columns.iter().filter(is_kept).map(head).collect()
    }

    /// Letters of the lines of a picture, and what tells these apart.
    fn upper_heads(&self, table: &Table, columns: &[usize]) -> Vec<Vec<Cell>> {
        if table.unit.is_empty() {
            return Vec::new();
        }
        let letters = columns.iter().map(|at| match at {
            0 => Cell::new(self.shown(&table.unit), Tone::Dim),
            at => Cell::new(letter(at - 1), Tone::Line(at - 1)),
        });
        let levels = table.columns.first().map_or(0, |column| column.heads.len());
        let level = |level: usize| {
            let head = move |at: &usize| table.columns[*at].heads.get(level);
            let cell = |at| Cell::new(self.shown(head(at).map_or("", String::as_str)), Tone::Dim);
            columns.iter().map(cell).collect()
        };
        std::iter::once(letters.collect()).chain((0..levels).map(level)).collect()
    }

    /// A cell of a column; one without a column takes all the rest.
    fn cell(
        &self,
        table: &Table,
        cell: &Cell,
        column: Option<&Column>,
        legend: &mut Places<String>,
    ) -> Cell {
        let mut text = match cell.words.is_empty() {
            true => self.shown(&cell.text),
            false => {
                let words = cell.words.iter().map(|word| text::unbroken(&self.shown(word)));
                words.joined(", ")
            }
        };
        match column {
            Some(column) => {
                if column.known.detail == Detail::Legend && !cell.detail.is_empty() {
                    text = format!("{text} {}", letter(legend.of(cell.detail.clone())));
                }
                if !table.unit.is_empty() {
                    text.push_str(&marks(cell));
                }
            }
            None if cell.has_note() => {
                let colon = if cell.badge.is_empty() || text.is_empty() { "" } else { ": " };
                text = format!("{}{colon}{text} {}", cell.badge, marks(cell));
            }
            None => {}
        }
        Cell::new(text.trim_end(), cell.tone)
    }

    fn notes(&self, cells: &[Cell]) -> Cell {
        let told: Vec<&Cell> = cells.iter().filter(|cell| cell.has_note()).collect();
        let words = told.iter().flat_map(|cell| [cell.badge.to_owned(), marks(cell)]);
        Cell::new(text::listed(words, " "), Tone::Warn)
    }
}

/// How many columns name a row.
fn name_columns(table: &Table) -> usize {
    match table.columns.get(1) {
        Some(column) if column.known.align == Align::Parameters => 2,
        _ => 1,
    }
}

/// `[1,2]`; nothing for no notes.
fn marks(cell: &Cell) -> String {
    let numbers = cell.numbers();
    if numbers.is_empty() { numbers } else { format!("[{numbers}]") }
}

/// Ranges of columns that fit beside the first one, as even as possible; at least one each.
fn chunks(first: usize, widths: &[usize], available: usize) -> Vec<Range<usize>> {
    let fits = |range: &Range<usize>| {
        let own = widths[range.clone()].iter().map(|width| width + GAP);
        range.len() == 1 || first + own.sum::<usize>() <= available
    };
    let split = |parts: usize| -> Vec<Range<usize>> {
        let size = widths.len().div_ceil(parts);
        (0..widths.len()).step_by(size).map(|at| at..(at + size).min(widths.len())).collect()
    };
    (1..=widths.len()).map(split).find(|ranges| ranges.iter().all(fits)).unwrap_or_default()
}
