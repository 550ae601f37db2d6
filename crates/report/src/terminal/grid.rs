//! Cells set in columns within a given width; knows nothing about records.
//!
//! Numbers are aligned at the decimal point and never cut; columns of words are narrowed and
//! wrapped when the page is too narrow.

use crate::page::{Align, Cell};
use crate::{
    style::{Style, Tone},
    text,
};

/// Cells of safe text in their tones: as many as there are columns, or fewer, of which the last then
/// takes all the rest.
pub(super) type Row = Vec<Cell>;

/// Columns and rows.
#[derive(Debug, Clone, Default)]
pub(super) struct Grid {
    pub heads: Vec<(String, Align)>,
    pub rows: Vec<Row>,
}

/// Spaces between columns.
pub(super) const GAP: usize = 2;
/// A column of words is not made narrower than this, unless nothing else helps.
const NARROWEST: usize = 10;
/// A longer part of a word may be cut anywhere, so that one name cannot push out the numbers.
const LONGEST_PIECE: usize = 16;

impl Grid {
    /// Width of the grid if nothing is wrapped.
    pub fn natural_width(&self) -> usize {
        let widths = self.natural_widths();
        widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
    }

    /// Width of each column if nothing is wrapped.
    pub fn natural_widths(&self) -> Vec<usize> {
        self.widths_of(&self.aligned())
    }

    /// Width below which names or numbers would be cut inside.
    pub fn least_width(&self) -> usize {
        let least = self.least_widths(&self.aligned());
        least.iter().sum::<usize>() + GAP * least.len().saturating_sub(1)
    }

    /// The widest part of a word in columns of words; of the others what they take.
    fn least_widths(&self, rows: &[Row]) -> Vec<usize> {
        let natural = self.widths_of(rows).into_iter().enumerate();
        let least = |(column, width): (usize, usize)| match self.is_words(column) {
            true => self.longest(rows, column, text::pieces).min(LONGEST_PIECE).min(width),
            false => width,
        };
        natural.map(least).collect()
    }

    fn is_words(&self, column: usize) -> bool {
        !self.heads[column].1.is_of_numbers()
    }

    /// The grid as lines, each ended by a line feed; the head is dimmed.
    pub fn render(&self, indent: usize, style: &Style) -> String {
        let rows = self.aligned();
        let available = style.width().saturating_sub(indent);
        let widths = self.fitted_widths(&rows, available);
        let mut out = String::new();
        let heads: Row =
            self.heads.iter().map(|(head, _)| Cell::new(head.as_str(), Tone::Dim)).collect();
        if heads.iter().any(|head| !head.text.is_empty()) {
            self.push_row(&mut out, &heads, &widths, indent, style);
        }
        for row in &rows {
            self.push_row(&mut out, row, &widths, indent, style);
        }
        out
    }

    /// The rows with decimal cells padded so that they only need to stand left.
    fn aligned(&self) -> Vec<Row> {
        let mut rows = self.rows.clone();
        for (column, (_, align)) in self.heads.iter().enumerate() {
            if *align != Align::Decimal {
                continue;
            }
            let full = |row: &&mut Row| row.len() == self.heads.len();
            let (mut whole_width, mut fraction_width) = (0, 0);
            for row in rows.iter_mut().filter(full) {
                let (whole, fraction, _) = decimal_parts(&row[column].text);
                whole_width = whole_width.max(text::width(whole));
                fraction_width = fraction_width.max(text::width(fraction));
            }
            for row in rows.iter_mut().filter(full) {
                let (whole, fraction, unit) = decimal_parts(&row[column].text);
                let padded = if whole.is_empty() && fraction.is_empty() {
                    text::pad_left(unit, whole_width + fraction_width)
                } else {
                    let whole = text::pad_left(whole, whole_width);
                    format!("{whole}{}{unit}", text::pad_right(fraction, fraction_width))
                };
                row[column].text = padded.trim_end().to_owned();
            }
        }
        rows
    }

    fn widths_of(&self, rows: &[Row]) -> Vec<usize> {
        let mut widths: Vec<usize> = self.heads.iter().map(|(head, _)| text::width(head)).collect();
        for row in rows {
            let spans = row.len() < self.heads.len();
            let own = if spans { row.len().saturating_sub(1) } else { row.len() };
            for (width, cell) in widths.iter_mut().zip(&row[..own]) {
                *width = (*width).max(text::width(&cell.text));
            }
        }
        widths
    }

    /// Natural widths; then the widest columns of words are narrowed until the sum fits: first down
    /// to their longest word, then to the longest part of a word; then any column to its longest word,
    /// so that units stand below their numbers, and as the last resort any column further.
    fn fitted_widths(&self, rows: &[Row], available: usize) -> Vec<usize> {
        let mut widths = self.widths_of(rows);
        let gaps = GAP * widths.len().saturating_sub(1);
        let whole = |column| self.longest(rows, column, |word| vec![word]);
        let words: Vec<usize> = (0..widths.len()).map(whole).collect();
        let least = self.least_widths(rows);
        while widths.iter().sum::<usize>() + gaps > available {
            let widest_where = |may_shrink: &dyn Fn(usize) -> bool| {
                (0..widths.len()).filter(|c| may_shrink(*c)).max_by_key(|c| widths[*c])
            };
            let column = widest_where(&|c| self.is_words(c) && widths[c] > words[c].max(NARROWEST))
                .or_else(|| widest_where(&|c| self.is_words(c) && widths[c] > least[c]))
                .or_else(|| widest_where(&|c| !self.is_words(c) && widths[c] > words[c]))
                .or_else(|| widest_where(&|c| widths[c] > text::NARROWEST_WRAP));
            let Some(column) = column else { break };
            widths[column] -= 1;
        }
        widths
    }

    /// The widest part of a column's words, its head included.
    fn longest(&self, rows: &[Row], column: usize, parts: fn(&str) -> Vec<&str>) -> usize {
        let own = |row: &&Row| row.len() == self.heads.len() || column + 1 < row.len();
        let cells = rows.iter().filter(own).map(|row| row[column].text.as_str());
        let words = cells.chain([self.heads[column].0.as_str()]).flat_map(|cell| cell.split(' '));
        let widths =
            words.flat_map(parts).map(|part| text::width(part.trim_end_matches(text::UNBREAKABLE)));
        widths.max().unwrap_or(0)
    }

    fn push_row(
        &self,
        out: &mut String,
        row: &[Cell],
        widths: &[usize],
        indent: usize,
        style: &Style,
    ) {
        let spans = row.len() < widths.len();
        let mut cells: Vec<Vec<String>> = Vec::with_capacity(row.len());
        let mut starts: Vec<(usize, usize)> = Vec::with_capacity(row.len());
        let mut start = indent;
        for (column, cell) in row.iter().enumerate() {
            let width = if spans && column + 1 == row.len() {
                style.width().saturating_sub(start)
            } else {
                widths[column]
            };
            starts.push((start, width));
            start += width + GAP;
            let fits = text::width(&cell.text) <= width;
            cells.push(if fits { vec![cell.text.clone()] } else { text::wrap(&cell.text, width) });
        }
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..height {
            let mut at = 0;
            let mut painted = String::new();
            for (column, cell) in cells.iter().enumerate() {
                let part = cell.get(line).map_or("", String::as_str);
                let part = part.replace(text::UNBREAKABLE, " ").trim_end().to_owned();
                if part.is_empty() {
                    continue;
                }
                let (start, width) = starts[column];
                let spanning = spans && column + 1 == row.len();
                let right = self.heads[column].1 == Align::Right && !spanning;
                let lead = if right { width.saturating_sub(text::width(&part)) } else { 0 };
                painted.push_str(&" ".repeat((start + lead).saturating_sub(at)));
                painted.push_str(&style.paint(&part, row[column].tone));
                at = (start + lead).max(at) + text::width(&part);
            }
            out.push_str(&painted);
            out.push('\n');
        }
    }
}

/// Splits `12,345.6 MiB/s` into `12,345`, `.6` and ` MiB/s`.
fn decimal_parts(cell: &str) -> (&str, &str, &str) {
    let end = cell
        .find(|c: char| !c.is_ascii_digit() && !matches!(c, ',' | '.' | '-' | '<'))
        .unwrap_or(cell.len());
    let (number, unit) = cell.split_at(end);
    let (whole, fraction) = number.split_at(number.find('.').unwrap_or(number.len()));
    (whole, fraction, unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        let row = |a: &str, b: &str, c: &str| vec![Cell::plain(a), Cell::plain(b), Cell::plain(c)];
        Grid {
            heads: vec![
                ("name".to_owned(), Align::Words),
                ("value".to_owned(), Align::Decimal),
                ("n".to_owned(), Align::Right),
            ],
            rows: vec![
                row("a rather long name that wraps", "12,345 MiB/s", "6"),
                row("b", "3.25 MiB/s", "12"),
                vec![
                    Cell::plain("c"),
                    Cell::plain("failed: no such thing as this on that machine here"),
                ],
            ],
        }
    }

    #[test]
    fn decimal_points_stand_below_each_other() {
        let out = grid().render(0, &Style { width_columns: 80, ..Style::default() });
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines[1], "a rather long name that wraps  12,345    MiB/s   6");
        assert_eq!(lines[2], "b                                   3.25 MiB/s  12");
    }

    #[test]
    fn a_narrow_page_wraps_words_and_keeps_numbers() {
        let style = Style { width_columns: 40, ..Style::default() };
        let out = grid().render(2, &style);
        assert!(out.lines().all(|line| text::width(line) <= 40), "{out}");
        assert!(out.contains("12,345    MiB/s"));
    }

    #[test]
    fn units_go_below_their_numbers_before_words_of_heads_and_names_are_cut() {
        let heads = [("", Align::Words), ("median", Align::Decimal), ("bottleneck", Align::Words)];
        let row = ["loopback TCP throughput", "44.5 Gbit/s", "all CPUs"].map(Cell::plain);
        let heads = heads.map(|(head, align)| (head.to_owned(), align)).to_vec();
        let grid = Grid { heads, rows: vec![row.to_vec()] };
        let out = grid.render(9, &Style { width_columns: 40, ..Style::default() });
        let words: Vec<&str> = out.split_whitespace().collect();
        for word in ["median", "bottleneck", "loopback", "throughput", "44.5", "Gbit/s"] {
            assert!(words.contains(&word), "{word}: {out}");
        }
        assert!(out.lines().all(|line| text::width(line) <= 40), "{out}");
    }

    #[test]
    fn names_are_broken_at_hyphens_before_they_are_cut() {
        let row = vec![Cell::plain("memory-read"), Cell::plain("12,345 MiB/s"), Cell::plain("6")];
        let grid = Grid { heads: grid().heads, rows: vec![row] };
        let out = grid.render(14, &Style { width_columns: 40, ..Style::default() });
        assert!(out.contains("memory-\n") || out.contains("memory- "), "{out}");
        assert_eq!(grid.least_width(), 7 + 2 + 12 + 2 + 1);
    }
}
