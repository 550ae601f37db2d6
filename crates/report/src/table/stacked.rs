//! Rows for a page too narrow for columns: the parameters of a row, and its figures below them.

use super::Page;
use crate::{
    grid::{Cell, Grid},
    style::Tone,
    text,
};

/// Columns of a grid of rows before its figures: the test and its parameters.
const NAMES: usize = 2;
/// The column whose numbers need their head: it has no unit.
const COUNT: &str = "n";

impl Page<'_> {
    /// Shows what a grid of rows holds, without columns.
    pub(super) fn stacked(&mut self, grid: &Grid) {
        for row in &grid.rows {
            let [name, parameters] = [0, 1].map(|at| row.get(at).map_or("", |cell| &*cell.text));
            if !name.is_empty() {
                self.hang("  ", name, Tone::Plain);
            }
            let parameters = parameters.replace(text::UNBREAKABLE, " ");
            if !parameters.is_empty() {
                self.hang("    ", &parameters, Tone::Plain);
            }
            self.figures(grid, row);
        }
    }

    fn figures(&mut self, grid: &Grid, row: &[Cell]) {
        let heads = grid.heads.iter().map(|(head, _)| head.as_str()).skip(NAMES);
        let plus_minus = self.style.either("±", "+-");
        let none = self.style.either("–", "-");
        let is_told = |cell: &Cell| !cell.text.is_empty() && cell.text != none;
        let cells = heads.zip(row.iter().skip(NAMES)).filter(|(_, cell)| is_told(cell));
        let words: Vec<Cell> = cells
            .map(|(head, cell)| match head {
                head if head == plus_minus => Cell::new(format!("{head}{}", cell.text), cell.tone),
                COUNT => Cell::new(format!("{COUNT} {}", cell.text), cell.tone),
                _ => cell.clone(),
            })
            .collect();
        let plain: Vec<&str> = words.iter().map(|cell| cell.text.as_str()).collect();
        let plain = plain.join("  ");
        let gutter = "      ";
        if text::width(&plain) + gutter.len() <= self.style.width() {
            let painted: Vec<String> =
                words.iter().map(|cell| self.style.paint(&cell.text, cell.tone)).collect();
            self.out.push_str(&format!("{gutter}{}\n", painted.join("  ")));
        } else {
            self.hang(gutter, &plain, Tone::Plain);
        }
    }
}
