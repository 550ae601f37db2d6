//! Below the figures of an area: curves over time, the audit of its rows, and the lines that check them with fio.

use flatout_measure::record::{Outcome, Series};

use super::{INDENT, Page};
use crate::{
    audit::{self, Audit, COLUMNS},
    commands::{self, Command},
    grid::{Align, Cell, Grid},
    label, sparkline,
    style::Tone,
    sweep::Sweep,
    text,
};

/// Lines for the rows of charts that a page shows; the JSON document has them all.
const MOST_CHART_COMMANDS: usize = 6;

/// A longer line of characters does not show more.
const WIDEST_CURVE: usize = 60;

impl Page<'_> {
    /// The rate over time of each row that has it: one line of characters, least and largest, and
    /// what became of a burst.
    pub(super) fn curves(&mut self, rows: &[&Outcome]) {
        let gutter = " ".repeat(INDENT);
        let mut is_first = true;
        for (name, outcome) in label::short_names(rows).iter().zip(rows) {
            let curves: Vec<&Series> = sparkline::over_time(outcome).collect();
            let sentence = sparkline::sentence(outcome);
            if curves.is_empty() && sentence.is_none() {
                continue;
            }
            if std::mem::take(&mut is_first) {
                let head = self.style.paint("over time", Tone::Dim);
                self.out.push_str(&format!("\n{gutter}{head}\n"));
            }
            let name = self.shown(name);
            self.hang(&gutter, &name, Tone::Plain);
            let columns = (self.style.width() - 2 * INDENT).min(WIDEST_CURVE);
            for curve in curves {
                let line = sparkline::sparkline(curve, columns, self.style);
                let line = self.style.paint(&line, Tone::Line(0));
                self.out.push_str(&format!("{gutter}{gutter}{line}\n"));
                let text = self.shown(&format!("{}: {}", curve.name, sparkline::extent(curve)));
                self.hang(&gutter.repeat(2), &text, Tone::Plain);
            }
            if let Some(sentence) = sentence {
                let sentence = self.shown(&sentence);
                self.hang(&gutter.repeat(2), &sentence, Tone::Plain);
            }
        }
    }

    /// The audit as one grid, or as two where the page is too narrow for one.
    pub(super) fn audit(&mut self, rows: &[&Outcome], sweeps: &[&Sweep<'_>]) {
        let Some(audit) = audit::audit(rows, sweeps) else { return };
        let all: Vec<usize> = (0..audit.columns.len()).collect();
        let whole = self.audit_grid(&audit, &all, "audit");
        let grids = if whole.natural_width() <= self.style.width() - INDENT {
            vec![whole]
        } else {
            let (moved, cost): (Vec<usize>, Vec<usize>) =
                all.iter().partition(|at| audit.columns[**at] < audit::MOVED);
            let parts = [(moved, "audit: bytes"), (cost, "audit: cost")];
            let told = parts.iter().filter(|(columns, _)| !columns.is_empty());
            told.map(|(columns, head)| self.audit_grid(&audit, columns, head)).collect()
        };
        let mut shown: Vec<String> = Vec::new();
        for mut grid in grids {
            self.narrow(&mut grid, &audit::FIRST_TO_GO);
            self.out.push('\n');
            self.out.push_str(&grid.render(INDENT, self.style));
            shown.extend(grid.heads.into_iter().map(|(head, _)| head));
        }
        let known: Vec<&audit::Column> =
            COLUMNS.iter().filter(|column| shown.iter().any(|head| head == column.head)).collect();
        let widest = known.iter().map(|column| text::width(column.head)).max().unwrap_or(0);
        for column in known {
            let head = format!("    {}  ", text::pad_right(column.head, widest));
            let own = if column.head == "harness" { own_cost(rows, sweeps) } else { None };
            let meaning = match own {
                Some(own) => format!(
                    "{}: {own} per operation, with an engine that moves nothing",
                    column.meaning
                ),
                None => column.meaning.to_owned(),
            };
            self.hang(&head, &meaning, Tone::Dim);
        }
    }

    /// Rows without a figure in any of these columns are left out.
    fn audit_grid(&self, audit: &Audit, columns: &[usize], head: &str) -> Grid {
        let mut heads = vec![(head.to_owned(), Align::Words)];
        heads.extend(columns.iter().map(|at| {
            let head = COLUMNS[audit.columns[*at]].head;
            (head.to_owned(), Align::Right)
        }));
        let mut grid = Grid { heads, rows: Vec::new() };
        let told = |row: &&audit::AuditRow| columns.iter().any(|at| row.cells[*at].is_some());
        for row in audit.rows.iter().filter(told) {
            let name = self.shown(&row.name);
            let words: Vec<String> = name.split(", ").map(text::unbroken).collect();
            let mut cells = vec![Cell::plain(words.join(", "))];
            cells.extend(columns.iter().map(|at| match &row.cells[*at] {
                Some(text) => Cell::plain(self.shown(text)),
                None => Cell::new(self.style.either("–", "-"), Tone::Dim),
            }));
            grid.rows.push(cells);
        }
        grid
    }

    /// Each line for a shell on a line of its own, however long it is.
    pub(super) fn commands(&mut self, rows: &[&Outcome], sweeps: &[&Sweep<'_>]) {
        let mut commands = commands::commands(rows);
        let charted: Vec<&Outcome> = sweeps.iter().flat_map(|sweep| sweep.outcomes()).collect();
        let mut of_charts: Vec<Command> = commands::commands(&charted);
        of_charts.retain(|command| commands.iter().all(|known| known.line != command.line));
        let left = of_charts.len().saturating_sub(MOST_CHART_COMMANDS);
        of_charts.truncate(MOST_CHART_COMMANDS);
        commands.append(&mut of_charts);
        if commands.is_empty() {
            return;
        }
        self.out.push('\n');
        let gutter = " ".repeat(INDENT);
        self.out.push_str(&format!("{gutter}{}\n", self.style.paint(commands::HEAD, Tone::Dim)));
        for command in &commands {
            self.remark(&command.names.join("; "));
            let line = self.shown(&command.line);
            self.out.push_str(&format!("{gutter}{line}\n"));
        }
        if left > 0 {
            let word = if left == 1 { "line" } else { "lines" };
            let text =
                format!("{left} more {word} of charts: --format html, csv and json have them");
            self.remark(&text);
        }
    }

    /// A remark for people that a shell skips, on every line that it takes.
    fn remark(&mut self, text: &str) {
        let sign = format!("{}# ", " ".repeat(INDENT));
        let text = self.shown(text);
        for line in text::wrap(&text, self.style.width() - sign.len()) {
            self.out.push_str(&self.style.paint(&format!("{sign}{line}"), Tone::Dim));
            self.out.push('\n');
        }
    }
}

/// What measuring itself costs per operation, from the cheapest row to the dearest.
fn own_cost(rows: &[&Outcome], sweeps: &[&Sweep<'_>]) -> Option<String> {
    let charted = sweeps.iter().flat_map(|sweep| sweep.outcomes());
    let costs = rows
        .iter()
        .copied()
        .chain(charted)
        .filter_map(|row| row.audit.get("harness_ns_per_operation")?.as_f64());
    let (least, most) = costs.fold(None, |range: Option<(f64, f64)>, ns| match range {
        Some((least, most)) => Some((least.min(ns), most.max(ns))),
        None => Some((ns, ns)),
    })?;
    let text = |ns| crate::quantity::value("ns", ns);
    Some(match text(least) == text(most) {
        true => text(least),
        false => format!("{} to {}", text(least), text(most)),
    })
}
