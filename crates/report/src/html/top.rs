//! The top of a page, which must be understood in ten seconds: what was measured, how near each area
//! is to its limit, the machine, and the verdict.
//!
//! Everything here is said again in full below; nothing here is calculated.

use flatout_measure::record::{Answer, Better, Outcome, Record};

use super::{Page, STYLE_SHEET, title};
use crate::{
    facts, headline,
    identity::Identity,
    label, machine,
    markup::escaped,
    quantity, table,
    versus::{self as race, Pairs},
};

/// A gist is not cut before so many characters: `No: ` says too little.
const SHORTEST_GIST: usize = 12;
/// Parameters of a headline row that are worth their place.
const MOST_WORDS: usize = 4;

impl Page {
    pub(super) fn head(&mut self, record: &Record, identity: Identity) {
        let machine = escaped(&machine::headline(&record.start.environment));
        let title = escaped(&title(record));
        let tool = escaped(&record.start.tool);
        let time = escaped(&record.start.time);
        let command = escaped(&record.start.argv.join(" "));
        let seed = record.start.seed;
        self.line(format_args!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta name=\"generator\" content=\"{tool}\">\n\
             <meta http-equiv=\"Content-Security-Policy\" \
             content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <title>{title}</title>\n<style>\n{STYLE_SHEET}</style>\n</head>\n<body>\n<header>"
        ));
        let heading = if machine.is_empty() { &tool } else { &machine };
        self.line(format_args!("<h1>{heading}</h1>"));
        self.line(format_args!("<p class=\"command\"><code>{command}</code></p>"));
        let elapsed = escaped(&quantity::value("s", record.end.elapsed_s));
        self.line(format_args!(
            "<p class=\"meta\">{tool} · <time>{time}</time> · {elapsed} · seed {seed}</p>"
        ));
        if identity == Identity::Hidden {
            self.line(format_args!(
                "<p class=\"meta\"><small>Host name and paths are left out of pages; \
                 the JSON (<code>--format json</code>) has them.</small></p>"
            ));
        }
        let areas = table::areas(record);
        if areas.len() > 1 {
            self.line(format_args!("<nav aria-label=\"Areas\">"));
            for (index, area) in areas.iter().enumerate() {
                self.line(format_args!("<a href=\"#area-{index}\">{}</a>", escaped(area)));
            }
            self.line(format_args!("<a href=\"#machine\">machine</a>\n</nav>"));
        }
        self.line(format_args!("</header>\n<main>"));
    }

    pub(super) fn top(&mut self, record: &Record) {
        self.glance(record);
        self.verdict(record);
        self.facts_of_machine(record);
    }

    /// Per area one bar against its ceiling, with what limits it.
    fn glance(&mut self, record: &Record) {
        let rows = headline::headlines(record);
        let race_rows = table::rows_of(record, race::AREA);
        if rows.is_empty() && race_rows.is_empty() {
            return;
        }
        self.line(format_args!(
            "<section id=\"glance\">\n<h2>How near to the limit</h2>\n<ul class=\"glance\">"
        ));
        let areas = table::areas(record);
        for row in rows {
            let area = label::area(&row.id);
            let at = areas.iter().position(|known| *known == area).unwrap_or(0);
            let item = glance_item(row, at);
            self.line(format_args!("{item}"));
        }
        for pairs in &race::race(&race_rows).pairs {
            let at = areas.iter().position(|known| *known == race::AREA).unwrap_or(0);
            let item = race_item(pairs, at);
            self.line(format_args!("{item}"));
        }
        self.line(format_args!("</ul>\n</section>"));
    }

    fn facts_of_machine(&mut self, record: &Record) {
        let facts = facts::facts(record);
        if facts.is_empty() {
            return;
        }
        self.line(format_args!(
            "<section id=\"facts\">\n<h2>The machine</h2>\n<dl class=\"brief\">"
        ));
        for fact in facts {
            let (name, text) = (escaped(fact.name), escaped(&fact.text));
            self.line(format_args!("<div><dt>{name}</dt><dd>{text}</dd></div>"));
        }
        self.line(format_args!("</dl>\n</section>"));
    }

    fn verdict(&mut self, record: &Record) {
        if record.end.verdict.is_empty() {
            return;
        }
        self.line(format_args!(
            "<section id=\"verdict\">\n<h2>Verdict</h2>\n<ul class=\"verdict\">"
        ));
        for answer in &record.end.verdict {
            let item = answer_item(answer);
            self.line(format_args!("{item}"));
        }
        self.line(format_args!("</ul>\n</section>"));
    }

    pub(super) fn errors(&mut self, record: &Record) {
        if record.end.errors.is_empty() {
            return;
        }
        let code = record.end.exit_code;
        self.line(format_args!("<section class=\"errors\" role=\"alert\">\n<h2>Errors</h2>\n<ul>"));
        for error in &record.end.errors {
            self.line(format_args!("<li>{}</li>", escaped(error)));
        }
        self.line(format_args!("</ul>\n<p class=\"meta\">exit code {code}</p>\n</section>"));
    }
}

/// The answer in short; where it has more to say, the whole of it unfolds.
fn answer_item(answer: &Answer) -> String {
    let (class, mark, word) =
        if answer.good { ("good", "✓", "good") } else { ("bad", "✗", "look here") };
    let fields: Vec<String> =
        answer.rests_on.iter().map(|field| format!("<code>{}</code>", escaped(field))).collect();
    let (question, gist) = (escaped(&answer.question), escaped(gist(&answer.text)));
    format!(
        "<li class=\"{class}\"><span class=\"mark\" role=\"img\" aria-label=\"{word}\">{mark}</span>\
         <details><summary><b>{question}</b> <span class=\"gist\">{gist}</span></summary>\
         <p>{}</p><p class=\"rests\">{}</p></details></li>",
        escaped(&answer.text),
        fields.join(" ")
    )
}

/// The first statement of an answer, as far as the names of rows that follow it.
fn gist(text: &str) -> &str {
    let ends = [". ", ": ", "; "].into_iter();
    let cuts = ends.flat_map(|end| text.match_indices(end).map(|(at, _)| at));
    let cut = cuts.filter(|at| *at >= SHORTEST_GIST).min();
    cut.map_or(text, |at| &text[..at])
}

fn glance_item(row: &Outcome, area_index: usize) -> String {
    let area = escaped(label::area(&row.id));
    let test = escaped(label::test(&row.id));
    let words = label::parameter_words(&row.parameters);
    let words = escaped(&words[..words.len().min(MOST_WORDS)].join(", "));
    let name = format!("<a href=\"#area-{area_index}\">{area}</a> <small>{test}, {words}</small>");
    let Some(median) = label::figure(row) else {
        let status = label::status(row.status);
        return format!(
            "<li class=\"none\"><span class=\"what\">{name}</span><span class=\"track\"></span>\
             <span class=\"figure\"><span class=\"status {status}\">{status}</span></span></li>"
        );
    };
    let known = row.ceiling.as_ref().and_then(|ceiling| ceiling.value).unwrap_or(median);
    let scale = quantity::Scale::of_all(&row.unit, [median, known]);
    let has_share = headline::share(row).is_some();
    let figure = if has_share { scale.number(median) } else { scale.text(median) };
    let figure = escaped(&figure);
    let ceiling = row.ceiling.as_ref();
    let limiter = ceiling.map_or("", |ceiling| ceiling.limiter.as_str());
    let limited = if limiter.is_empty() {
        "what limits it is unknown".to_owned()
    } else if let Some(why) = limiter.strip_prefix("unknown: ") {
        format!("what limits it is unknown: {}", escaped(why))
    } else {
        format!("limited by {}", escaped(limiter))
    };
    match (headline::share(row), ceiling) {
        (Some(share), Some(ceiling)) => {
            let width = (share * 100.0).clamp(0.0, 100.0);
            let over = if share > 1.02 { " over" } else { "" };
            let value = ceiling.value.map_or_else(String::new, |value| scale.text(value));
            let value = escaped(&value);
            // Of a time the ceiling is the shortest there could be.
            let against = match row.better {
                Better::Higher => format!("<b>{figure}</b> of {value}"),
                Better::Lower => format!("<b>{figure}</b>, at best {value}"),
            };
            format!(
                "<li><span class=\"what\">{name}</span>\
                 <span class=\"track{over}\"><span style=\"width:{width:.1}%\"></span></span>\
                 <span class=\"figure\"><b>{}</b> · {against}</span>\
                 <span class=\"why\">{limited} <small>ceiling: {}, {}</small></span></li>",
                quantity::percent(share),
                escaped(&ceiling.name),
                label::provenance(ceiling.provenance),
            )
        }
        _ => format!(
            "<li class=\"none\"><span class=\"what\">{name}</span><span class=\"track\"></span>\
             <span class=\"figure\"><b>{figure}</b> ceiling unknown</span><span class=\"why\">{limited}</span></li>"
        ),
    }
}

/// A race in one line: how many pairs were lost, tied and won.
fn race_item(pairs: &Pairs<'_>, area_index: usize) -> String {
    let heading = escaped(&pairs.heading);
    let count = escaped(&pairs.count());
    format!(
        "<li class=\"pairs\"><span class=\"what\"><a href=\"#area-{area_index}\">{heading}</a></span>\
         <span class=\"figure\"><b>{count}</b></span></li>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gist_ends_before_the_names() {
        let known = [
            ("No: 60 rows, no error, exit code 0.", "No: 60 rows, no error, exit code 0."),
            ("Not shown for 35 of 60 rows: cache/a (±6 %), b", "Not shown for 35 of 60 rows"),
            ("Doubtful for cpu/x (not_linear).", "Doubtful for cpu/x (not_linear)."),
            ("21 of 40 rows are above half; the others: x", "21 of 40 rows are above half"),
            ("", ""),
        ];
        for (text, short) in known {
            assert_eq!(gist(text), short);
        }
    }
}
