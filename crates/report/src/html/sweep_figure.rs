//! Sweeps as figures: picture, legend, and the numbers in a table that unfolds.

use flatout_measure::record::{Outcome, Record, Status};
use serde_json::Value;

use super::{Page, rows::note_links};
use crate::{
    label,
    markup::escaped,
    plot::{Mark, Plot},
    quantity::{self, Scale},
    svg,
    sweep::Sweep,
};

/// Sizes of working sets, and the rows whose audit tells how large a cache was found to be.
const WORKING_SET: &str = "working_set_bytes";
const LEVELS: &str = "memory/level";

/// Where the measured levels of memory end, if the sweep is over sizes of working sets.
fn marks(sweep: &Sweep<'_>, record: &Record) -> Vec<Mark> {
    if sweep.chart.x_parameter != WORKING_SET {
        return Vec::new();
    }
    let levels = record.results.iter().filter(|row| row.id == LEVELS);
    let mark = |row: &Outcome| {
        let bytes = row.audit.get("measured_bytes").and_then(Value::as_u64)?;
        let level = row.parameters.get("level").and_then(Value::as_str)?;
        let name = format!("{level} {}", quantity::rounded_size(bytes));
        Some(Mark { x: bytes as f64, name })
    };
    levels.filter_map(mark).collect()
}

impl Page {
    pub(super) fn sweep(&mut self, sweep: &Sweep<'_>, record: &Record) {
        let plot = Plot::of_sweep(sweep).with_marks(marks(sweep, record));
        let title = sweep.title();
        let only = plot.lines.iter().filter(|line| plot.lines.len() == 1 && line.name != "all");
        let words = only.map(|line| line.name.clone()).chain(sweep.constants.iter().cloned());
        let constants = escaped(&words.collect::<Vec<_>>().join(", "));
        self.open_figure(&format!("{} by {}", sweep.chart.id, sweep.chart.x_parameter), &plot);
        self.line(format_args!(
            "<figcaption><h3>{}</h3><p>{constants}</p></figcaption>",
            escaped(title)
        ));
        self.drawing(title, &plot);
        self.line(format_args!("{}", svg::legend(&plot)));
        self.matrix(sweep, &plot.scale);
        self.line(format_args!("</figure>"));
    }

    fn matrix(&mut self, sweep: &Sweep<'_>, scale: &Scale) {
        self.line(format_args!(
            "<details>\n<summary>All figures in {}</summary>\n<div class=\"scroll\" tabindex=\"0\">\
             <table class=\"matrix\">\n<thead>",
            escaped(&scale.unit)
        ));
        let x_name = escaped(&label::noun(&sweep.chart.x_parameter));
        let depth = sweep.line_parameters.len();
        for (row, key) in sweep.line_parameters.iter().enumerate() {
            let last = row + 1 == depth;
            let head = if last { x_name.clone() } else { escaped(&label::noun(key)) };
            let cells: String = sweep
                .lines
                .iter()
                .map(|line| {
                    format!(
                        "<th scope=\"col\" class=\"number\">{}</th>",
                        escaped(&line.labels[row])
                    )
                })
                .collect();
            self.line(format_args!("<tr><th scope=\"col\">{head}</th>{cells}</tr>"));
        }
        self.line(format_args!("</thead>\n<tbody>"));
        for (at, x) in sweep.x_values.iter().enumerate() {
            let cells: String = sweep
                .lines
                .iter()
                .map(|line| match line.points[at] {
                    Some(outcome) => self.matrix_cell(outcome, scale),
                    None => "<td></td>".to_owned(),
                })
                .collect();
            let x = escaped(&sweep.x_text(*x));
            self.line(format_args!("<tr><th scope=\"row\" class=\"number\">{x}</th>{cells}</tr>"));
        }
        self.line(format_args!("</tbody>\n</table></div>\n</details>"));
    }

    fn matrix_cell(&mut self, outcome: &Outcome, scale: &Scale) -> String {
        let marks = note_links(&self.notes.marks(&outcome.warnings));
        let status = label::status(outcome.status);
        let Some(median) = label::figure(outcome) else {
            return format!(
                "<td class=\"number\"><span class=\"status {status}\">{status}</span>{marks}</td>"
            );
        };
        let sign = if outcome.status == Status::Unstable { "~" } else { "" };
        let title = match outcome.ci95 {
            Some([low, high]) => {
                format!("{} … {}, n {}, {status}", scale.number(low), scale.text(high), outcome.n)
            }
            None => format!("n {}, {status}", outcome.n),
        };
        let number = scale.number(median);
        format!("<td class=\"number\" title=\"{}\">{sign}{number}{marks}</td>", escaped(&title))
    }
}
