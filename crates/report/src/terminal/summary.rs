//! The summary on one screen: each figure on a line of its own, however much there is to say of it.

use flatout_measure::record::Status;

use super::grid::{GAP, Grid};
use super::{INDENT, Terminal};
use crate::label;
use crate::page::{Finding, Page, Part};
use crate::style::{Extent, Tone};
use crate::text::{self, Joined};

/// Lines of a screen that the summary leaves free for where to read on, and for the prompt.
const MOST_LINES: usize = 27;
/// Findings, at most.
const MOST_FINDINGS: usize = 6;
/// Lines of a screen that are kept for what stands below a table.
const BELOW_TABLE: usize = 6;
/// A longer name is wrapped.
const LONGEST_NAME: usize = 32;
/// What limits a figure is not narrowed below this.
const SHORTEST_REMARK: usize = 12;
/// What is usual has a column only where what limits the figure has this much.
pub(super) const LEAST_BESIDE_USUAL: usize = 16;

impl Terminal<'_> {
    /// What fits on a screen.
    pub(super) fn screen(&mut self, page: &Page) {
        self.sections(page, Part::Load);
        if !page.heading.is_empty() {
            self.paragraph(0, &page.heading, Tone::Plain);
        }
        self.sections(page, Part::Summary);
        // Of several comparisons.
        let more = self.out.lines().count().saturating_sub(MOST_LINES);
        if more > 0 {
            self.out = self.out.lines().take(MOST_LINES).map(|line| format!("{line}\n")).collect();
            self.paragraph(0, &format!("… {more} more lines with --verbose"), Tone::Plain);
        }
        let room = MOST_LINES.saturating_sub(self.out.trim_end().lines().count() + 2);
        self.room_lines = Some(room.max(2));
        self.sections(page, Part::Findings);
    }

    pub(super) fn sections(&mut self, page: &Page, part: Part) {
        let own = page.sections.iter().filter(|section| section.part == part);
        own.for_each(|section| self.section(section));
    }

    /// How much the last column has beside the others.
    pub(super) fn room_of_last(&self, grid: &Grid) -> usize {
        let widths = grid.natural_widths();
        let [name, figures @ .., _] = &widths[..] else { return 0 };
        let taken = (*name).min(LONGEST_NAME) + figures.iter().sum::<usize>();
        self.style.width().saturating_sub(INDENT + taken + GAP * (widths.len() - 1))
    }

    /// A table whose words are wrapped, but for names where another form has room for more; on a screen
    /// the last column has as many whole statements as two lines take, or one, and the table as many
    /// rows as there is room for.
    pub(super) fn wrapped(&mut self, mut grid: Grid, has_narrow: bool) {
        let room = self.room_of_last(&grid).max(SHORTEST_REMARK);
        let is_screen = self.style.extent == Extent::Summary;
        let below = self.out.lines().count() + BELOW_TABLE;
        let most = if is_screen { MOST_LINES.saturating_sub(below) } else { usize::MAX };
        let all = grid.rows.len();
        let mut lines = 2;
        let shown = loop {
            for row in &mut grid.rows {
                let [name, .., last] = &mut row[..] else { continue };
                if has_narrow && text::width(&name.text) <= LONGEST_NAME {
                    name.text = text::unbroken(&name.text);
                }
                let columns = if is_screen { lines * room } else { usize::MAX };
                last.text = statements_within(&last.text, columns);
            }
            let shown = grid.render(INDENT, self.style);
            if shown.lines().count() <= most || grid.rows.len() <= 1 {
                break shown;
            }
            // Words are left out before figures are.
            grid.rows.truncate(grid.rows.len() - usize::from(lines == 1));
            lines = 1;
        };
        self.out.push_str(&shown);
        let cut = all - grid.rows.len();
        if cut > 0 {
            self.paragraph(INDENT, &format!("{cut} more with --verbose"), Tone::Dim);
        }
    }

    /// What is wrong; on a screen the gravest, and as much as there is room for.
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
                .is_none_or(|room| told < MOST_FINDINGS && lines + usize::from(!is_last) <= room)
                || told == 0;
            if !has_room {
                self.out.truncate(begun);
                let more = findings.len() - told;
                self.paragraph(0, &format!("      {more} more with --verbose"), Tone::Dim);
                return;
            }
        }
    }
}

/// As many whole statements as so many columns have room for, but one in any case.
fn statements_within(statements: &str, columns: usize) -> String {
    let all: Vec<&str> = statements.split("; ").collect();
    // The width of the interval and the findings say as much; that there is no interval does not say
    // why.
    let known = [Status::Unstable, Status::Degraded].map(label::state);
    let (known, others) = all.split_at(usize::from(all.len() > 1 && known.contains(&all[0])));
    let fewer = (1..=others.len()).rev().map(|count| &others[..count]);
    let mut fewer = fewer.flat_map(|others| [[known, others].concat(), others.to_vec()]);
    let told = fewer.find(|told| text::width(&told.join("; ")) <= columns);
    let told = told.unwrap_or_else(|| others[..1].to_vec());
    // One setting of several, such as `512 KiB`, stays on its line.
    let unbroken = |words: &str| match text::width(words) <= SHORTEST_REMARK {
        true => text::unbroken(words),
        false => words.to_owned(),
    };
    told.iter().map(|words| words.split(", ").map(unbroken).joined(", ")).joined("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_line_drops_what_limits_a_figure_last_but_for_what_speaks_against_it() {
        let within = |word: &str, columns| {
            let all = format!("{word}; device; usual 1–2; p99 1 ms");
            statements_within(&all, columns).replace(text::UNBREAKABLE, " ")
        };
        let fewer = ["few trials; device; usual 1–2", "few trials; device", "few trials"];
        assert_eq!([31, 23, 4].map(|columns| within("few trials", columns)), fewer);
        assert_eq!(within("few trials", 99).len(), "few trials; device; usual 1–2; p99 1 ms".len());
        assert_eq!(within("noisy", 31), "device; usual 1–2; p99 1 ms", "± has it");
        assert_eq!(within("degraded", 31), "device; usual 1–2; p99 1 ms", "the findings have it");
        assert_eq!(within("noisy", 6), "device");
        assert_eq!(within("noisy", 14), "noisy; device", "there is room for it");
    }
}
