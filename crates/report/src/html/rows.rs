//! Rows of an area as tables: figures with their doubt and ceiling, and latencies.

use flatout_measure::record::{Latency, Outcome, Provenance, Status};

use super::Page;
use crate::{commands, label, markup::escaped, notes::Notes, quantity, summary, svg};

/// Numbers of notes as links; empty for none.
pub(super) fn note_links(marks: &str) -> String {
    let numbers = marks.trim_matches(['[', ']']).split(',').filter(|number| !number.is_empty());
    let links: Vec<String> =
        numbers.map(|number| format!("<a href=\"#note-{number}\">{number}</a>")).collect();
    match links.is_empty() {
        true => String::new(),
        false => format!("<sup class=\"notes\">{}</sup>", links.join(" ")),
    }
}

/// The test, and below it the parameters as small labels that do not break inside.
fn row_head(outcome: &Outcome) -> String {
    let words = label::parameter_words(&outcome.parameters);
    let chips: Vec<String> =
        words.iter().map(|word| format!("<span class=\"chip\">{}</span>", escaped(word))).collect();
    let test = escaped(label::test(&outcome.id));
    format!("<th scope=\"row\">{test}<div class=\"chips\">{}</div></th>", chips.join(" "))
}

impl Page {
    pub(super) fn rows(&mut self, rows: &[&Outcome]) {
        let has_ceilings = rows.iter().any(|outcome| outcome.ceiling.is_some());
        let ceiling_heads = if has_ceilings { "<th scope=\"col\">of ceiling</th>" } else { "" };
        self.line(format_args!(
            "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr><th scope=\"col\">test</th>\
             <th scope=\"col\" class=\"number\">median</th>\
             <th scope=\"col\" class=\"number\">95&nbsp;% interval</th>\
             <th scope=\"col\" class=\"number\">n</th>\
             <th scope=\"col\">samples <small>(5&nbsp;% to each side)</small></th>{ceiling_heads}</tr></thead>\n<tbody>"
        ));
        for outcome in rows {
            let head = row_head(outcome);
            let cells = match label::figure(outcome) {
                Some(median) => figure_cells(outcome, median, has_ceilings, &mut self.notes),
                None => reason_cell(outcome, has_ceilings, &mut self.notes),
            };
            self.line(format_args!("<tr>{head}{cells}</tr>"));
        }
        self.line(format_args!("</tbody>\n</table></div>"));
    }

    /// Everything that each row tells, audit included, unfolded where there is only one row.
    pub(super) fn facts(&mut self, rows: &[&Outcome]) {
        let told: Vec<&&Outcome> =
            rows.iter().filter(|outcome| !outcome.audit.is_empty()).collect();
        if told.is_empty() {
            return;
        }
        let open = if rows.len() == 1 { " open" } else { "" };
        self.line(format_args!("<details{open}>\n<summary>Counted facts</summary>"));
        for outcome in told {
            let name = escaped(label::test(&outcome.id));
            let heading =
                if rows.len() == 1 { String::new() } else { format!("<h3>{name}</h3>\n") };
            self.line(format_args!("{heading}<dl class=\"facts\">"));
            // The lines for a shell have a place of their own.
            let pairs = summary::pairs(outcome).into_iter();
            for (key, value) in pairs.filter(|(key, _)| key != commands::HEAD) {
                self.line(format_args!("<dt>{}</dt><dd>{}</dd>", escaped(&key), escaped(&value)));
            }
            self.line(format_args!("</dl>"));
        }
        self.line(format_args!("</details>"));
    }

    /// Percentiles of the rows whose operations were timed one by one.
    pub(super) fn latencies(&mut self, rows: &[&Outcome]) {
        let timed: Vec<(&Outcome, &Latency)> =
            rows.iter().filter_map(|outcome| Some((*outcome, outcome.latency.as_ref()?))).collect();
        if timed.is_empty() {
            return;
        }
        let names = label::percentiles(timed.iter().map(|(_, latency)| *latency));
        let heads: String = names
            .iter()
            .map(|name| format!("<th scope=\"col\" class=\"number\">{}</th>", escaped(name)))
            .collect();
        self.line(format_args!(
            "<h3>Latency of single operations</h3>\n<div class=\"scroll\" tabindex=\"0\"><table>\n\
             <thead><tr><th scope=\"col\">test</th><th scope=\"col\" class=\"number\">min</th>{heads}<th scope=\"col\" class=\"number\">max</th>\
             <th scope=\"col\" class=\"number\">operations</th><th scope=\"col\">loop</th></tr></thead>\n<tbody>"
        ));
        let number =
            |ns: f64| format!("<td class=\"number\">{}</td>", escaped(&quantity::value("ns", ns)));
        for (outcome, latency) in timed {
            let cells: String = names
                .iter()
                .map(|name| {
                    let value =
                        latency.percentiles_ns.get(name).and_then(serde_json::Value::as_f64);
                    value.map_or("<td class=\"number\">–</td>".to_owned(), number)
                })
                .collect();
            self.line(format_args!(
                "<tr>{}{}{cells}{}\
                 <td class=\"number\">{}</td><td>{}</td></tr>",
                row_head(outcome),
                number(latency.min_ns),
                number(latency.max_ns),
                quantity::count(latency.operations),
                escaped(&latency.loop_kind),
            ));
        }
        self.line(format_args!("</tbody>\n</table></div>"));
    }
}

fn figure_cells(outcome: &Outcome, median: f64, has_ceilings: bool, notes: &mut Notes) -> String {
    let scale = quantity::Scale::of(&outcome.unit, median);
    let marks = note_links(&notes.marks(&outcome.warnings));
    let status = match outcome.status {
        Status::Ok => String::new(),
        other => format!(" <span class=\"status {0}\">{0}</span>", label::status(other)),
    };
    let interval = match outcome.ci95 {
        Some([low, high]) => {
            let half = quantity::half_width(median, [low, high]).map(quantity::percent);
            format!(
                "{} … {}<br><small>± {}</small>",
                scale.number(low),
                scale.number(high),
                half.as_deref().unwrap_or("?")
            )
        }
        None => "–".to_owned(),
    };
    let mut cells = format!(
        "<td class=\"number\"><b>{}</b>&nbsp;{}{marks}{status}</td>\
         <td class=\"number\">{interval}</td><td class=\"number\">{}</td><td>{}</td>",
        scale.number(median),
        escaped(&scale.unit),
        quantity::count(outcome.n),
        svg::strip(outcome)
    );
    if has_ceilings {
        cells.push_str(&ceiling_cells(outcome));
    }
    cells
}

fn ceiling_cells(outcome: &Outcome) -> String {
    let Some(ceiling) = &outcome.ceiling else { return "<td></td>".to_owned() };
    let (share, bar) = match ceiling.ratio.filter(|ratio| ratio.is_finite()) {
        Some(ratio) => {
            let width = (ratio * 100.0).clamp(0.0, 100.0);
            let over = if ratio > 1.02 { " over" } else { "" };
            let bar = format!(
                "<span class=\"bar{over}\"><span style=\"width:{width:.1}%\"></span></span>"
            );
            (quantity::percent(ratio), bar)
        }
        None => ("unknown".to_owned(), String::new()),
    };
    let value = ceiling
        .value
        .map_or_else(String::new, |v| format!(", {}", quantity::value(&outcome.unit, v)));
    let origin = match ceiling.provenance {
        Provenance::Unknown => String::new(),
        known => format!(", {}", label::provenance(known)),
    };
    let limiter = match ceiling.limiter.as_str() {
        "" => String::new(),
        limiter => format!("<div class=\"limiter\">limited by {}</div>", escaped(limiter)),
    };
    format!(
        "<td class=\"ceiling\"><b>{share}</b>{bar}{limiter}<small>{}{}{origin}</small></td>",
        escaped(&ceiling.name),
        escaped(&value),
    )
}

/// The reason over all columns of figures; only further warnings, and what other rows share, become notes.
fn reason_cell(outcome: &Outcome, has_ceilings: bool, notes: &mut Notes) -> String {
    let columns = if has_ceilings { 5 } else { 4 };
    let reason = notes.reason(outcome);
    let marks = note_links(&reason.marks);
    let word = label::status(outcome.status);
    let unexplained = if outcome.warnings.is_empty() { "no figure" } else { "" };
    let text = reason.text.as_deref().unwrap_or(unexplained);
    format!(
        "<td colspan=\"{columns}\" class=\"reason\"><span class=\"status {word}\">{word}</span> {}{marks}</td>",
        escaped(text)
    )
}
