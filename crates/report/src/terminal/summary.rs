//! The summary on one screen: each figure on a line of its own, however much there is to say of it.

use super::{INDENT, Terminal};
use crate::page::{Finding, Page, Part, Summary, summary_table};
use crate::style::Tone;
use crate::text;

/// Lines of a screen that the summary leaves free for where to read on, and for the prompt.
const MOST_LINES: usize = 27;
/// Findings, at most.
const MOST_FINDINGS: usize = 6;
/// A name is cut to this before what limits the figure is.
const USUAL_NAME: usize = 30;
/// A name is not cut below this for the sake of what limits the figure.
const SHORTEST_NAME: usize = 24;
/// What limits the figure is not cut below this.
const SHORTEST_REMARK: usize = 12;

impl Terminal<'_> {
    /// What fits on a screen.
    pub(super) fn screen(&mut self, page: &Page) {
        self.sections(page, Part::Load);
        if !page.heading.is_empty() {
            let heading = self.shown(&page.heading);
            let line = text::clip(&heading, self.style.width(), self.style);
            self.out.push_str(&format!("{line}\n"));
        }
        self.sections(page, Part::Summary);
        let room = MOST_LINES.saturating_sub(self.out.trim_end().lines().count() + 2);
        self.room_lines = Some(room.max(2));
        self.sections(page, Part::Findings);
        let all = self.out.trim_end().lines().count();
        if all > MOST_LINES {
            let kept: Vec<&str> = self.out.lines().take(MOST_LINES - 1).collect();
            let left = all + 1 - MOST_LINES;
            self.out = format!("{}\n… {left} more lines with --verbose\n", kept.join("\n"));
        }
    }

    fn sections(&mut self, page: &Page, part: Part) {
        let own = page.sections.iter().filter(|section| section.part == part);
        own.for_each(|section| self.section(section));
    }

    /// The lines of a summary; names and remarks are cut to what there is room for.
    pub(super) fn summary(&mut self, summary: &Summary) {
        let mut table = summary_table(summary);
        let last = table.columns.len().saturating_sub(1);
        let width = self.style.width() - INDENT;
        for (column, shortest) in [(0, USUAL_NAME), (last, SHORTEST_REMARK), (0, SHORTEST_NAME)] {
            let widths = self.natural_widths(&table);
            let over = (widths.iter().sum::<usize>() + 2 * last).saturating_sub(width);
            let wide = widths.get(column).copied().unwrap_or(0);
            let most = wide.saturating_sub(over).max(shortest);
            for (row, line) in table.rows.iter_mut().zip(&summary.lines) {
                let Some(cell) = row.cells.get_mut(column) else { continue };
                if column == last {
                    cell.text = line.remark_within(summary.has_usual(), most);
                }
                cell.text = text::clip(&self.shown(&cell.text), most, self.style);
            }
        }
        self.table(&table);
        if !summary.rest.is_empty() {
            self.paragraph(INDENT, &summary.rest, Tone::Dim);
        }
    }

    /// What is wrong; on a screen as much as there is room for.
    pub(super) fn findings(&mut self, findings: &[Finding]) {
        let before = self.out.lines().count();
        for (told, finding) in findings.iter().enumerate() {
            let begun = self.out.len();
            let (sign, tone) = finding.severity.sign();
            self.hang(&format!("{sign}  "), &finding.line(), tone);
            let lines = self.out.lines().count() - before;
            let is_last = told + 1 == findings.len();
            let has_room = self
                .room_lines
                .is_none_or(|room| told < MOST_FINDINGS && lines + usize::from(!is_last) <= room);
            if !has_room {
                self.out.truncate(begun);
                let more = findings.len() - told;
                self.paragraph(0, &format!("      {more} more with --verbose"), Tone::Dim);
                return;
            }
        }
    }
}
