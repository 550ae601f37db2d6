//! The summary on one screen: each figure on a line of its own, however much there is to say of it.

use super::grid::GAP;
use super::table::Names;
use super::{INDENT, Terminal};
use crate::order::Places;
use crate::page::{Finding, Page, Part, Summary, UsualPlace, summary_table};
use crate::style::{Extent, Tone};
use crate::text::{self, Joined};

/// Lines of a screen that the summary leaves free for where to read on, and for the prompt.
const MOST_LINES: usize = 27;
/// Findings, at most.
const MOST_FINDINGS: usize = 6;
/// Lines of a screen that are kept for what stands below a table.
const BELOW_TABLE: usize = 6;
/// Lines that what is wrong has at least: a finding, and how many more there are.
const FINDINGS_LINES: usize = 6;
/// Origins of what is usual that a screen has room for.
const FEW_ORIGINS: usize = 2;
/// Where fewer lines than these would have room, names and remarks are cut instead of wrapped.
const FEWEST_LINES: usize = 7;
/// A name is narrowed to this before what limits the figure is.
const USUAL_NAME: usize = 32;
/// A name is not narrowed below this for the sake of what limits the figure.
const SHORTEST_NAME: usize = 24;
/// What limits the figure is not narrowed below this.
const SHORTEST_REMARK: usize = 12;

/// What is usual has a column only where what limits the figure has this much.
const LEAST_BESIDE_USUAL: usize = 16;

/// What happens to a name or a remark that its column has no room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TooLong {
    Wrapped,
    /// A remark has as many whole statements as one line takes.
    OneLine,
    Cut,
}

impl Terminal<'_> {
    /// What fits on a screen.
    pub(super) fn screen(&mut self, page: &Page) {
        self.sections(page, Part::Load);
        if !page.heading.is_empty() {
            self.paragraph(0, &heading(&page.heading, self.style.width()), Tone::Plain);
        }
        self.sections(page, Part::Summary);
        let room = MOST_LINES.saturating_sub(self.out.trim_end().lines().count() + 2);
        self.room_lines = Some(room.max(2));
        let figures_end = self.out.len();
        self.sections(page, Part::Findings);
        let all = self.out.trim_end().lines().count();
        if all > MOST_LINES {
            // What is wrong with the figures is more than the last of them.
            let findings = self.out.split_off(figures_end);
            let figures = self.out.lines().count();
            let left = all + 1 - MOST_LINES;
            self.out = self.out.lines().take(figures.saturating_sub(left)).joined("\n");
            self.out.push('\n');
            self.paragraph(0, &format!("… {left} more lines with --verbose"), Tone::Plain);
            self.out.push_str(&findings);
        }
    }

    pub(super) fn sections(&mut self, page: &Page, part: Part) {
        let own = page.sections.iter().filter(|section| section.part == part);
        own.for_each(|section| self.section(section));
    }

    /// The lines of a summary: names whole, remarks in whole statements, and on a screen as many
    /// lines as there is room for.
    pub(super) fn summary(&mut self, summary: &Summary) {
        let (begun, all) = (self.out.len(), summary.lines.len());
        let most = match self.style.extent {
            Extent::Summary => MOST_LINES.saturating_sub(self.out.lines().count() + BELOW_TABLE),
            Extent::Full => usize::MAX,
        };
        let mut shown = all;
        self.summary_lines(summary, shown, TooLong::Wrapped);
        // Words are left out before figures are.
        while self.out[begun..].lines().count() > most && shown > FEWEST_LINES {
            self.out.truncate(begun);
            self.summary_lines(summary, shown, TooLong::OneLine);
            shown -= usize::from(self.out[begun..].lines().count() > most);
        }
        if self.out[begun..].lines().count() > most {
            shown = all;
            self.out.truncate(begun);
            self.summary_lines(summary, shown, TooLong::Cut);
        }
        let left_out = summary.left_out(shown);
        if !left_out.is_empty() {
            let has_words = left_out.contains(':');
            let how = if has_words { "; --verbose has all" } else { " with --verbose" };
            self.paragraph(INDENT, &format!("{left_out}{how}"), Tone::Dim);
        }
        let (begun, is_screen) = (self.out.len(), self.style.extent == Extent::Summary);
        let mut below = |few_origins| {
            self.out.truncate(begun);
            for below in summary.below(few_origins) {
                self.paragraph(INDENT, &below, Tone::Dim);
            }
            self.out.lines().count()
        };
        // What is wrong is more than how it is known what is usual.
        let lines = below(if is_screen { FEW_ORIGINS } else { usize::MAX });
        if is_screen && lines + FINDINGS_LINES > MOST_LINES {
            below(1);
        }
    }

    fn summary_lines(&mut self, summary: &Summary, shown: usize, too_long: TooLong) {
        let mut usual = summary.usual();
        let mut table = summary_table(summary, usual);
        let mut widths = self.natural_widths(&table);
        let others = widths.iter().rev().skip(1).sum::<usize>() + GAP * widths.len();
        if usual == UsualPlace::InColumn && others + LEAST_BESIDE_USUAL > self.style.width() {
            usual = UsualPlace::InRemark;
            table = summary_table(summary, usual);
            widths = self.natural_widths(&table);
        }
        let [name, figures @ .., remark] = &widths[..] else { return };
        let taken = figures.iter().sum::<usize>() + GAP * (widths.len() - 1);
        let room = (self.style.width() - INDENT).saturating_sub(taken);
        let most_remark = room.saturating_sub((*name).min(USUAL_NAME)).max(SHORTEST_REMARK);
        let most_name = room.saturating_sub((*remark).min(most_remark)).max(SHORTEST_NAME);
        table.rows.truncate(shown);
        for (row, line) in table.rows.iter_mut().zip(&summary.lines) {
            let [name, .., remark] = &mut row.cells[..] else { continue };
            if usual == UsualPlace::InColumn {
                name.text = text::unbroken(&name.text);
            }
            // Beside what is usual two lines have room for what one has elsewhere; so have what
            // speaks against a figure and what limits it.
            let has_more = !line.usual.is_empty() || !line.word.is_empty();
            let is_wrapped = too_long != TooLong::OneLine && has_more;
            let lines = if is_wrapped { 2 } else { 1 };
            let words = line.remark_within(usual, lines * most_remark);
            remark.text = words.split(", ").map(unbroken_setting).joined(", ");
            if too_long == TooLong::Cut {
                for (cell, most) in [(name, most_name), (remark, most_remark)] {
                    cell.text = text::clip(&self.shown(&cell.text), most, self.style);
                }
            }
        }
        let columns = table.columns_of_text();
        let grid = self.grid(&table, &columns, Names::InColumns, &mut Places::default());
        self.out.push_str(&grid.render(INDENT, self.style));
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

/// One setting of several, such as `512 KiB`, stays on its line.
fn unbroken_setting(words: &str) -> String {
    if text::width(words) <= SHORTEST_REMARK { text::unbroken(words) } else { words.to_owned() }
}

/// The machine in one line: what else there is to say of the kernel than its version goes first,
/// then the kernel.
fn heading(whole: &str, columns: usize) -> String {
    let told: Vec<&str> = whole.split(", ").collect();
    let version = |part: &&str| part.split('-').next().unwrap_or(part).to_owned();
    let is_kernel = |part: &&str| part.starts_with("Linux ");
    let shorter = told.iter().map(|part| match is_kernel(part) {
        true => version(part),
        false => (*part).to_owned(),
    });
    let without = told.iter().filter(|part| !is_kernel(part)).map(|part| (*part).to_owned());
    let forms = [shorter.joined(", "), without.joined(", ")];
    let fits = |form: &&String| text::width(form) <= columns;
    match text::width(whole) <= columns {
        true => whole.to_owned(),
        false => forms.iter().find(fits).map_or(whole, String::as_str).to_owned(),
    }
}
