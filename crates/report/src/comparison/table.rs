//! A comparison for the terminal: the machines, the verdict, then the rows by verdict.
//!
//! Columns that a narrow page has no room for are left out and named at its end; the JSON
//! document has them all.

use flatout_measure::comparison::{Comparison, Row, Verdict};

use super::{Document, words};
use crate::{
    grid::{Align, Cell, Grid},
    style::{Style, Tone},
    text,
};

/// Spaces before rows.
const INDENT: usize = 2;

/// The columns in the order in which they go when the page is too narrow.
const FIRST_TO_GO: [&str; 6] = ["shows", "p", "within", "old", "new", "95 % interval"];

/// The document as text of lines no wider than the style allows, each ended by a line feed.
pub(super) fn table(document: &Document, style: &Style) -> String {
    let mut page = Page { style, left_out: Vec::new(), out: String::new() };
    for error in &document.errors {
        page.paragraph("error: ", error, Tone::Bad);
    }
    for (index, comparison) in document.comparisons.iter().enumerate() {
        if index > 0 {
            page.out.push('\n');
        }
        page.comparison(comparison);
    }
    if document.comparisons.iter().any(|comparison| !comparison.rows.is_empty()) {
        page.meaning();
    }
    page.out.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

struct Page<'a> {
    style: &'a Style,
    /// Heads of columns that the page was too narrow for.
    left_out: Vec<String>,
    out: String,
}

impl Page<'_> {
    fn shown(&self, text: &str) -> String {
        text::shown(text, self.style)
    }

    /// A wrapped paragraph behind a head, each of its lines in one tone.
    fn paragraph(&mut self, head: &str, text: &str, tone: Tone) {
        let text = self.shown(text);
        for line in text::hanging(head, &text, self.style.width()).lines() {
            self.out.push_str(&self.style.paint(line, tone));
            self.out.push('\n');
        }
    }

    fn comparison(&mut self, comparison: &Comparison) {
        self.paragraph("", &words::side("OLD", &comparison.old), Tone::Strong);
        self.paragraph("", &words::side("NEW", &comparison.new), Tone::Strong);
        self.out.push('\n');
        let is_other = comparison.same_machine == Some(false);
        self.paragraph(
            "",
            words::machines(comparison),
            if is_other { Tone::Warn } else { Tone::Plain },
        );
        self.environment(comparison);
        self.out.push('\n');
        self.paragraph("", &words::threshold(comparison), Tone::Plain);
        self.out.push('\n');
        self.paragraph("", &words::total(comparison), tone(comparison.verdict));
        for verdict in words::ORDER {
            let rows: Vec<&Row> =
                comparison.rows.iter().filter(|row| row.verdict == verdict).collect();
            self.rows(verdict, &rows);
        }
        let counted = words::only_counted(&comparison.rows);
        if !counted.is_empty() {
            self.paragraph(&" ".repeat(INDENT), &counted, Tone::Dim);
        }
        for (side, names) in [("OLD", &comparison.only_old), ("NEW", &comparison.only_new)] {
            if names.is_empty() {
                continue;
            }
            self.out.push('\n');
            self.paragraph("", &format!("only in {side} ({})", names.len()), Tone::Strong);
            for name in names {
                self.paragraph(&" ".repeat(INDENT), &words::name(name), Tone::Plain);
            }
        }
    }

    fn environment(&mut self, comparison: &Comparison) {
        if comparison.environment.is_empty() {
            return;
        }
        let heads = ["", "OLD", "NEW"].map(|head| (head.to_owned(), Align::Words));
        let mut grid = Grid { heads: heads.to_vec(), rows: Vec::new() };
        for difference in &comparison.environment {
            let cells = words::difference(difference);
            grid.rows.push(cells.iter().map(|cell| Cell::plain(self.shown(cell))).collect());
        }
        self.out.push_str(&grid.render(INDENT, self.style));
    }

    fn rows(&mut self, verdict: Verdict, rows: &[&Row]) {
        if rows.is_empty() {
            return;
        }
        self.out.push('\n');
        self.paragraph("", &words::heading(verdict, rows.len()), tone(verdict));
        let listed: Vec<&Row> =
            rows.iter().copied().filter(|row| !words::is_only_counted(row)).collect();
        if listed.is_empty() {
            return;
        }
        let mut grid = self.grid(verdict, &listed, Names::InColumn);
        if grid.natural_width() > self.style.width() - INDENT {
            grid = self.grid(verdict, &listed, Names::Above);
        }
        for head in FIRST_TO_GO {
            if grid.least_width() > self.style.width() - INDENT
                && grid.drop_column(&self.shown(head))
                && !self.left_out.iter().any(|known| known == head)
            {
                self.left_out.push(head.to_owned());
            }
        }
        self.out.push_str(&grid.render(INDENT, self.style));
    }

    /// The rows of one verdict; those that are not comparable have no interval, unclear ones say
    /// why below.
    fn grid(&self, verdict: Verdict, rows: &[&Row], names: Names) -> Grid {
        let is_judged = verdict != Verdict::Incomparable;
        let mut heads = vec![
            (if names == Names::InColumn { "test" } else { "" }, Align::Words),
            ("old", Align::Decimal),
            ("new", Align::Decimal),
            ("ratio", Align::Decimal),
        ];
        if is_judged {
            heads.push(("95 % interval", Align::Right));
            heads.push(("p", Align::Right));
            heads.push(("within", Align::Right));
            heads.push(("shows", Align::Right));
        }
        let heads = heads.into_iter().map(|(head, align)| (head.to_owned(), align)).collect();
        let mut grid = Grid { heads, rows: Vec::new() };
        for row in rows {
            let cells = words::cells(row);
            let mut texts = vec![cells.old, cells.new, cells.ratio];
            if is_judged {
                texts.extend([cells.interval, cells.p, cells.within, cells.shows]);
            }
            let mut name = self.name(row);
            if names == Names::Above {
                grid.rows.push(vec![Cell::plain(name)]);
                name = String::new();
            }
            let mut line = vec![Cell::plain(name)];
            line.extend(texts.iter().map(|text| Cell::plain(self.shown(text))));
            line[3].tone = tone(verdict);
            grid.rows.push(line);
            if !cells.remark.is_empty() {
                let remark = self.shown(&cells.remark);
                grid.rows.push(vec![Cell::new(format!("\u{a0}\u{a0}{remark}"), Tone::Dim)]);
            }
        }
        grid
    }

    /// Id and parameters; parameters break between and not inside.
    fn name(&self, row: &Row) -> String {
        let mut parts = vec![self.shown(&row.id)];
        let parameters = words::parameters(row);
        parts.extend(parameters.iter().map(|word| text::unbroken(&self.shown(word))));
        parts.extend(
            Some(words::direction(row)).filter(|word| !word.is_empty()).map(text::unbroken),
        );
        parts.join(", ")
    }

    fn meaning(&mut self) {
        self.out.push('\n');
        for line in words::MEANING {
            self.paragraph("", line, Tone::Dim);
        }
        if !self.left_out.is_empty() {
            let heads = self.left_out.join(", ");
            let text =
                format!("left out, the page being too narrow: {heads}; --format json has all");
            self.paragraph("", &text, Tone::Dim);
        }
    }
}

/// Where the name of a row stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    /// Beside its figures.
    InColumn,
    /// In a line of its own, where the page has no room for both.
    Above,
}

fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Better => Tone::Good,
        Verdict::Worse => Tone::Bad,
        Verdict::Unclear => Tone::Warn,
        Verdict::Same => Tone::Strong,
        Verdict::Incomparable => Tone::Dim,
    }
}
