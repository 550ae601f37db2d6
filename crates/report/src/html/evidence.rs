//! What stands behind the figures of an area: storage, audit, lines that check them with fio.

use flatout_measure::record::{Outcome, Record};

use super::Page;
use crate::{
    audit::{self, Audit, COLUMNS},
    commands::{self, Command},
    markup::escaped,
    storage,
    sweep::Sweep,
};

impl Page {
    /// What the places stand on: one chain each, and every layer in full where one unfolds it.
    pub(super) fn storage(&mut self, record: &Record) {
        let environment = &record.start.environment;
        let chains = storage::chains(environment);
        if chains.is_empty() {
            return;
        }
        for chain in &chains {
            self.line(format_args!("<p class=\"chain\">{}</p>", escaped(&chain.line)));
            for remark in &chain.remarks {
                self.line(format_args!("<p class=\"remark\">{}</p>", escaped(remark)));
            }
        }
        let layers = storage::details(environment);
        if layers.is_empty() {
            return;
        }
        self.line(format_args!("<details>\n<summary>Every layer</summary>"));
        for (heading, pairs) in layers {
            self.line(format_args!("<h3>{}</h3>\n<dl class=\"facts\">", escaped(&heading)));
            for (key, value) in pairs {
                self.line(format_args!("<dt>{}</dt><dd>{}</dd>", escaped(&key), escaped(&value)));
            }
            self.line(format_args!("</dl>"));
        }
        self.line(format_args!("</details>"));
    }

    /// The audit of the rows, a line for each chart, and the rows of charts one by one where one
    /// unfolds them.
    pub(super) fn audit(&mut self, rows: &[&Outcome], sweeps: &[&Sweep<'_>]) {
        let Some(audit) = audit::audit(rows, sweeps) else { return };
        self.line(format_args!("<h3>Audit: what really happened</h3>"));
        self.audit_table(&audit);
        self.line(format_args!("<dl class=\"facts meta\">"));
        for column in audit.columns.iter().map(|at| &COLUMNS[*at]) {
            let (head, meaning) = (escaped(column.head), escaped(column.meaning));
            self.line(format_args!("<dt>{head}</dt><dd>{meaning}</dd>"));
        }
        self.line(format_args!("</dl>"));
        for sweep in sweeps {
            let Some(audit) = audit::audit_of_each(&sweep.outcomes()) else { continue };
            let title = escaped(sweep.title());
            self.line(format_args!("<details>\n<summary>Audit of each row: {title}</summary>"));
            self.audit_table(&audit);
            self.line(format_args!("</details>"));
        }
    }

    fn audit_table(&mut self, audit: &Audit) {
        let heads: String = audit
            .columns
            .iter()
            .map(|at| format!("<th scope=\"col\" class=\"number\">{}</th>", COLUMNS[*at].head))
            .collect();
        self.line(format_args!(
            "<div class=\"scroll\" tabindex=\"0\"><table class=\"audit\">\n\
             <thead><tr><th scope=\"col\">test</th>{heads}</tr></thead>\n<tbody>"
        ));
        for row in &audit.rows {
            let cells: String = row
                .cells
                .iter()
                .map(|cell| {
                    let text = cell.as_deref().map_or_else(|| "–".to_owned(), escaped);
                    format!("<td class=\"number\">{text}</td>")
                })
                .collect();
            let name = escaped(&row.name);
            self.line(format_args!("<tr><th scope=\"row\">{name}</th>{cells}</tr>"));
        }
        self.line(format_args!("</tbody>\n</table></div>"));
    }

    /// Every line for a shell, those of charts included.
    pub(super) fn commands(&mut self, rows: &[&Outcome], sweeps: &[&Sweep<'_>]) {
        let of_charts = sweeps.iter().flat_map(|sweep| sweep.outcomes());
        let all: Vec<&Outcome> = rows.iter().copied().chain(of_charts).collect();
        let commands = commands::commands(&all);
        if commands.is_empty() {
            return;
        }
        self.line(format_args!("<details class=\"commands\">\n<summary>Check with fio</summary>"));
        for Command { names, line } in &commands {
            let (names, line) = (escaped(&names.join("; ")), escaped(line));
            self.line(format_args!("<p>{names}</p>\n<pre><code>{line}</code></pre>"));
        }
        self.line(format_args!("</details>"));
    }
}
