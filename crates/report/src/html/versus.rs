//! A race as tables: contestants by heat, pairs with the losses first. Its pictures: `html/area.rs`.

use flatout_measure::record::{Outcome, Status};

use super::{
    Page,
    rows::note_links,
    weight::{self, Folded},
};
use crate::{
    label,
    markup::escaped,
    quantity, svg,
    versus::{self, Entry, Pair, Pairs, Race, Test, Verdict},
};

/// Columns of a test, the speed left out.
const FIGURES: usize = 7;

impl Page {
    pub(super) fn versus(&mut self, rows: &[&Outcome]) {
        let race = versus::race(rows);
        for test in &race.tests {
            self.test(test);
        }
        if race.tests.iter().flat_map(Test::entries).any(Entry::may_be_inherited) {
            let meaning = escaped(versus::INHERITED_MEANING);
            self.line(format_args!("<p class=\"meta\">{meaning}</p>"));
        }
        for pairs in &race.pairs {
            self.pairs(pairs);
        }
        if !race.pairs.is_empty() {
            let meaning = escaped(versus::RATIO_MEANING);
            self.line(format_args!("<p class=\"meta\">ratio: {meaning}</p>"));
        }
        self.race_remarks(&race);
        if !race.others.is_empty() {
            self.rows(&race.others);
        }
        let contestants = race.contestants();
        self.audit(&contestants, &[]);
        if self.detail.folded == Folded::Shown {
            self.facts(&contestants);
        } else {
            self.left_out.insert(weight::FOLDED);
        }
    }

    fn test(&mut self, test: &Test<'_>) {
        self.line(format_args!("<h3>{}</h3>", escaped(&test.title())));
        let figure = test.figure_head();
        let has_speed = test.entries().any(|entry| entry.speed_text().is_some());
        let speed = if has_speed { "<th scope=\"col\" class=\"number\">speed</th>" } else { "" };
        self.line(format_args!(
            "<div class=\"scroll\" tabindex=\"0\"><table class=\"race\">\n<thead><tr><th scope=\"col\">contestant</th>\
             <th scope=\"col\" class=\"number\">{figure}</th>\
             <th scope=\"col\" class=\"number\">95&nbsp;% interval</th>{speed}\
             <th scope=\"col\" class=\"number\">CPU, user + system</th>\
             <th scope=\"col\" class=\"number\">peak memory</th>\
             <th scope=\"col\" class=\"number\">n</th>\
             <th scope=\"col\">samples <small>(5&nbsp;% to each side)</small></th></tr></thead>"
        ));
        for heat in &test.heats {
            self.line(format_args!("<tbody>"));
            if !heat.words.is_empty() {
                let words = escaped(&heat.words.join(", "));
                let columns = FIGURES + usize::from(has_speed);
                self.line(format_args!(
                    "<tr><th scope=\"rowgroup\" class=\"heat\" colspan=\"{columns}\">{words}</th></tr>"
                ));
            }
            for entry in &heat.entries {
                let cells = self.entry_cells(entry, has_speed.then(|| entry.speed_text()));
                let name = escaped(entry.contestant);
                self.line(format_args!("<tr><th scope=\"row\">{name}</th>{cells}</tr>"));
            }
            self.line(format_args!("</tbody>"));
        }
        self.line(format_args!("</table></div>"));
    }

    /// The cells behind a name; `speed` where the test has a column for it.
    fn entry_cells(&mut self, entry: &Entry<'_>, speed: Option<Option<String>>) -> String {
        let outcome = entry.outcome;
        let word = label::status(outcome.status);
        let Some(median) = label::figure(outcome) else {
            let reason = self.notes.reason(outcome);
            let marks = note_links(&reason.marks);
            let text = reason.text.as_deref().unwrap_or_default();
            let columns = FIGURES - 1 + usize::from(speed.is_some());
            return format!(
                "<td colspan=\"{columns}\" class=\"reason\"><span class=\"status {word}\">{word}</span> {}{marks}</td>",
                escaped(text)
            );
        };
        let marks = note_links(&self.notes.marks(&outcome.warnings));
        let status = match outcome.status {
            Status::Ok => String::new(),
            _ => format!(" <span class=\"status {word}\">{word}</span>"),
        };
        let scale = quantity::Scale::of(&outcome.unit, median);
        let interval = outcome.ci95.map_or_else(
            || "–".to_owned(),
            |[low, high]| {
                let half = quantity::half_width(median, [low, high]).map(quantity::percent);
                let half = half.as_deref().unwrap_or("?");
                let (low, high) = (scale.number(low), scale.number(high));
                format!("{low} … {high}<br><small>± {half}</small>")
            },
        );
        let number = |text: Option<String>| text.as_deref().map_or("–".to_owned(), escaped);
        let speed = speed.map_or_else(String::new, |speed| {
            format!("<td class=\"number\">{}</td>", number(speed))
        });
        let parts = entry
            .cpu_parts()
            .map_or_else(String::new, |parts| format!("<br><small>{}</small>", escaped(&parts)));
        format!(
            "<td class=\"number\"><b>{}</b>{marks}{status}</td><td class=\"number\">{interval}</td>\
             {speed}<td class=\"number\">{}{parts}</td><td class=\"number\">{}</td>\
             <td class=\"number\">{}</td><td>{}</td>",
            escaped(&scale.text(median)),
            number(entry.cpu()),
            number(entry.memory()),
            quantity::count(outcome.n),
            svg::strip(outcome)
        )
    }

    fn pairs(&mut self, pairs: &Pairs<'_>) {
        let (heading, count) = (escaped(&pairs.heading), escaped(&pairs.count()));
        self.line(format_args!("<h3>{heading}: {count}</h3>"));
        self.line(format_args!(
            "<div class=\"scroll\" tabindex=\"0\"><table class=\"pairs\">\n<thead><tr><th scope=\"col\">contestant</th>\
             <th scope=\"col\" class=\"number\">ratio</th><th scope=\"col\">against</th>\
             <th scope=\"col\">95&nbsp;% interval</th><th scope=\"col\">result</th>\
             <th scope=\"col\">work</th><th scope=\"col\" class=\"number\">n</th></tr></thead>\n<tbody>"
        ));
        for pair in &pairs.pairs {
            let row = self.pair_row(pair);
            self.line(format_args!("{row}"));
        }
        self.line(format_args!("</tbody>\n</table></div>"));
    }

    fn pair_row(&mut self, pair: &Pair<'_>) -> String {
        let class = match pair.verdict {
            Verdict::Loss => "loss",
            Verdict::Tie => "tie",
            Verdict::Win => "win",
            Verdict::Undecided | Verdict::None => "unsupported",
        };
        let or_dash = |text: Option<String>| text.as_deref().map_or("–".to_owned(), escaped);
        format!(
            "<tr><th scope=\"row\">{}</th><td class=\"number\"><b>{}</b>{}</td><td>{}</td>\
             <td>{}</td><td><span class=\"status {class}\">{}</span></td><td>{}</td>\
             <td class=\"number\">{}</td></tr>",
            escaped(pair.subject),
            or_dash(pair.ratio()),
            note_links(&self.notes.marks(&pair.outcome.warnings)),
            escaped(pair.against),
            or_dash(pair.interval()),
            pair.word(),
            escaped(&pair.work.join(", ")),
            quantity::count(pair.outcome.n),
        )
    }

    /// Who is missing, and what cannot be compared.
    fn race_remarks(&mut self, race: &Race<'_>) {
        if !race.missing.is_empty() {
            let names: Vec<String> =
                race.missing.iter().map(|missing| escaped(&missing.text)).collect();
            self.line(format_args!("<p class=\"missing\">not installed: {}</p>", names.join(", ")));
        }
        if !race.not_raced.is_empty() {
            let sentences = escaped(&race.not_raced.join("; "));
            self.line(format_args!("<p class=\"missing\">{sentences}</p>"));
        }
        if race.incomparable.is_empty() {
            return;
        }
        self.line(format_args!("<h3>Cannot be compared</h3>\n<ul class=\"incomparable\">"));
        for incomparable in &race.incomparable {
            let (against, sentence) =
                (escaped(&incomparable.against), escaped(&incomparable.sentence()));
            self.line(format_args!("<li><b>{against}</b>: {sentence}</li>"));
        }
        self.line(format_args!("</ul>"));
    }
}
