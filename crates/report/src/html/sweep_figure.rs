//! Sweeps and curves as figures: picture, legend, and the numbers in a table that unfolds.

use flatout_measure::record::{Outcome, Status};

use super::{Page, rows::note_links};
use crate::{
    label,
    markup::escaped,
    plot::Plot,
    quantity::{self, Scale},
    sparkline, svg,
    sweep::Sweep,
};

impl Page {
    pub(super) fn sweep(&mut self, sweep: &Sweep<'_>) {
        let plot = Plot::of_sweep(sweep);
        let title = sweep.title();
        let constants = escaped(&sweep.constants.join(", "));
        self.line(format_args!(
            "<figure>\n<figcaption><h3>{}</h3><p>{constants}</p></figcaption>",
            escaped(title)
        ));
        self.line(format_args!("{}{}", svg::chart(&plot, title), svg::legend(&plot)));
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

    /// Curves that belong to a single row; one point makes no curve.
    pub(super) fn series(&mut self, outcome: &Outcome) {
        for series in outcome.series.iter().filter(|series| series.points.len() > 1) {
            let plot = Plot::of_series(series);
            let parameters = label::parameters(&outcome.parameters);
            let title = format!("{}: {}", label::test(&outcome.id), series.name);
            let became = sparkline::sentence(outcome)
                .map_or_else(String::new, |sentence| format!("<p>{}</p>", escaped(&sentence)));
            let median = label::figure(outcome).map_or_else(String::new, |median| {
                format!(", median {}", quantity::value(&outcome.unit, median))
            });
            self.line(format_args!(
                "<figure>\n<figcaption><h3>{}</h3><p>{}</p>{became}</figcaption>\n{}</figure>",
                escaped(&title),
                escaped(&format!("{parameters}{median}")),
                svg::chart(&plot, &title)
            ));
        }
    }
}
