//! What a comparison says, in words and short numbers.

use flatout_measure::comparison::{
    Comparison, Counts, Difference, Figure, LOAD, NoiseSource, Reason, Row, RowName, Side,
    ThresholdSource, Verdict,
};
use flatout_measure::record::Status;
use flatout_measure::units;

use crate::text::{self, Joined};
use crate::{label, quantity};

/// The verdicts in the order in which a reader wants them.
pub(super) const ORDER: [Verdict; 5] =
    [Verdict::Worse, Verdict::Better, Verdict::Unclear, Verdict::Same, Verdict::Incomparable];

/// What the verdicts mean, below the tables.
pub(super) const VERDICTS: (&str, &str) = (
    "better and worse",
    "p below 0.05, and not the same; same: the whole interval within what counts as the same",
);

/// The heading of a group of rows.
pub(super) fn heading(verdict: Verdict, count: usize) -> String {
    let word = match verdict {
        Verdict::Incomparable => "not comparable",
        other => other.word(),
    };
    format!("{word} ({})", quantity::count(count as u64))
}

/// Both sides in a line each.
pub(super) fn side(name: &str, side: &Side) -> String {
    let runs = match side.runs {
        1 => String::new(),
        runs => format!(" ({} runs)", quantity::count(runs)),
    };
    let parts = [format!("{name}: {}{runs}", side.name), side.tool.clone(), side.time.clone()];
    text::listed(parts, " · ")
}

/// Whether one machine or two are compared; what follows of two.
pub(super) fn machines(comparison: &Comparison) -> &'static str {
    match comparison.same_machine {
        Some(false) => {
            "Two machines: the figures say how these differ, not what a change of a program did."
        }
        _ if comparison.same_run => "Both sides are the same run.",
        Some(true) if comparison.environment.is_empty() => {
            "The same machine, and nothing about it differs that the records know of."
        }
        Some(true) => "The same machine, but not in the same state:",
        None => "The records do not say whether this is one machine.",
    }
}

/// A difference of the environment: its name, the old value and the new one.
pub(super) fn difference(difference: &Difference) -> [String; 3] {
    let key = difference.name.rsplit('.').next().unwrap_or_default();
    let words = difference.name.split('.').map(label::noun).joined(" ");
    let shown = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) if text.is_empty() => "nothing".to_owned(),
        value => label::spelled(key, value, quantity::rounded_size),
    };
    [words, shown(&difference.old), shown(&difference.new)]
}

/// The names of what differs between the machines, but for the load, of which [`load`] tells.
pub(super) fn differing(comparison: &Comparison) -> Option<String> {
    let is_load = |found: &&Difference| found.name == LOAD || found.name.ends_with("load_average");
    let lasting = comparison.environment.iter().filter(|found| !is_load(found));
    let names = lasting.map(|found| difference(found)[0].clone()).joined(", ");
    (!names.is_empty()).then(|| format!("differs: {names}"))
}

/// What counts as the same, what these runs can find, and how many it takes.
pub(super) fn threshold(comparison: &Comparison) -> Vec<String> {
    let (used, power) = (&comparison.threshold, &comparison.power);
    let percent = quantity::percent(used.ratio);
    let asked = match used.source {
        ThresholdSource::Given => "as asked for",
        ThresholdSource::Default => "--threshold sets another",
    };
    let mut lines =
        vec![format!("A row is the same if its whole interval lies within {percent}; {asked}.")];
    let (Some(found), Some(source)) = (power.found_ratio, power.noise_source) else {
        return lines;
    };
    let learned = used.noise_runs.map(|runs| format!("{runs} that compare --noise learned from"));
    let noise = match (source, learned) {
        (NoiseSource::Runs, None) => "is known from these runs".to_owned(),
        (NoiseSource::Runs, Some(learned)) => format!("is known from these runs and {learned}"),
        (NoiseSource::Learned, Some(learned)) => format!("is known from {learned}"),
        (NoiseSource::Learned | NoiseSource::Assumed, _) => {
            "cannot be known from so few runs: it is assumed, and only large changes are shown"
                .to_owned()
        }
    };
    lines.push(format!("How far runs differ with nothing changed {noise}."));
    let found = quantity::percent(found);
    let found = format!("These runs find a change of {percent} in {found} of the rows");
    let has = comparison.old.runs.min(comparison.new.runs);
    lines.push(match power.runs_recommended {
        Some(runs) if runs <= has => format!("{found}."),
        Some(runs) => format!(
            "{found}; about {runs} runs of each, interleaved, find it in 80 %: \
             flatout compare --runs {runs} makes them."
        ),
        None => format!("{found}; more runs than 100 would be needed for 80 %."),
    });
    lines
}

/// That the load differs, where it does.
pub(super) fn load(comparison: &Comparison) -> Option<String> {
    let apart = comparison.environment.iter().find(|difference| difference.name == LOAD)?;
    let share = |value: &serde_json::Value| quantity::percent(value.as_f64().unwrap_or_default());
    Some(format!(
        "Others had {} of the CPUs beside OLD and {} beside NEW: what differs may be theirs, and no \
         row is called better or worse. flatout compare --runs has the sides take turns.",
        share(&apart.old),
        share(&apart.new)
    ))
}

/// The verdict of all rows in one line.
pub(super) fn total(comparison: &Comparison) -> String {
    let Counts { better, worse, same, unclear, incomparable } = comparison.counts;
    let all = [
        (worse, "worse"),
        (better, "better"),
        (unclear, "unclear"),
        (same, "the same"),
        (incomparable, "not comparable"),
    ];
    let words = counts(&all);
    if words.is_empty() {
        return "nothing matches: no row is in both".to_owned();
    }
    let word = match comparison.verdict {
        Verdict::Incomparable => "nothing can be compared",
        other => other.word(),
    };
    format!("{word}: {words}")
}

/// How many there are of each: `3 worse, 2 better`; nothing of none.
pub(super) fn counts(all: &[(u64, &str)]) -> String {
    let told = all.iter().filter(|(count, _)| *count > 0);
    told.map(|(count, word)| format!("{} {word}", quantity::count(*count))).joined(", ")
}

/// A row's name and what differs in its parameters.
pub(super) fn parameters(row: &Row) -> Vec<String> {
    with_differing(row, label::parameter_words(&row.parameters))
}

/// A row by its id and the words that tell it from others of the same id.
pub(super) fn named(row: &Row, own: Vec<String>) -> String {
    std::iter::once(row.id.clone()).chain(with_differing(row, own)).joined(", ")
}

fn with_differing(row: &Row, mut words: Vec<String>) -> Vec<String> {
    for (key, value) in &row.differing_parameters {
        let old = row.parameters.get(key).map(|old| label::parameter(key, old));
        let new = label::plain(key, value);
        match words.iter_mut().find(|word| Some(&**word) == old.as_ref()) {
            Some(word) => word.push_str(&format!(" (NEW {new})")),
            None => words.push(match old {
                Some(old) => format!("{old} (NEW {new})"),
                None => format!("NEW has {}", label::parameter(key, value)),
            }),
        }
    }
    words
}

/// A row that only one side has.
pub(super) fn name(name: &RowName) -> String {
    let parameters = label::parameters(&name.parameters);
    if parameters.is_empty() { name.id.clone() } else { format!("{}: {parameters}", name.id) }
}

/// A ratio with so many digits that a percent can be seen.
pub(super) fn ratio_text(ratio: f64) -> String {
    if (0.1..10.0).contains(&ratio) { format!("{ratio:.3}") } else { quantity::number(ratio) }
}

/// A probability with the digits that it deserves.
pub(super) fn p_text(p: f64) -> String {
    if p < 0.0001 { "<0.0001".to_owned() } else { format!("{p:.4}") }
}

/// Why a row is unclear and what would help; also what must be known of its figures.
pub(super) fn remark(row: &Row) -> String {
    let mut words: Vec<String> =
        row.reason.map(|reason| reason_text(row, reason)).into_iter().collect();
    if let Some(runs) = row.runs_needed {
        words.push(format!("needs about {} of each", units::counted(runs, "more run")));
    } else if matches!(row.reason, Some(Reason::WideInterval | Reason::NotSignificant)) {
        words.push("more than 100 runs would not settle it".to_owned());
    }
    for (side, figure) in [("OLD", &row.old), ("NEW", &row.new)] {
        if matches!(figure.status, Status::Degraded | Status::Interrupted)
            && figure.median.is_some()
        {
            words.push(format!("{side} is {}", label::state(figure.status)));
        }
    }
    words.join("; ")
}

fn reason_text(row: &Row, reason: Reason) -> String {
    let status = |figure: &Figure| label::state(figure.status);
    match reason {
        Reason::WideInterval => "interval too wide".to_owned(),
        Reason::NotSignificant => "may be chance among so many rows".to_owned(),
        Reason::LoadDiffers => "it may be what others did meanwhile".to_owned(),
        Reason::FigureLost if row.new.median.is_some() => "some runs of NEW failed".to_owned(),
        Reason::FigureLost => format!("the figure is lost: NEW {}", status(&row.new)),
        Reason::NoFigure => {
            let sides = [("OLD", &row.old), ("NEW", &row.new)];
            let without = sides.iter().filter(|(_, figure)| figure.median.is_none());
            without
                .map(|(side, figure)| format!("{side} {}", label::no_figure(figure.status)))
                .joined(", ")
        }
        Reason::NoSamples => "derived from other rows: it has no samples".to_owned(),
        Reason::NoRatio => "zero or less has no ratio".to_owned(),
        Reason::UnitsDiffer => "unit or direction differ".to_owned(),
        Reason::Repeats => "repeats another row".to_owned(),
    }
}

/// Rows that are only counted: there is nothing in them that another row has not.
pub(super) fn is_only_counted(row: &Row) -> bool {
    matches!(row.reason, Some(Reason::NoSamples | Reason::Repeats))
}

/// A sentence on the rows that are only counted; empty without any.
pub(super) fn only_counted(rows: &[Row]) -> String {
    let count = |reason| rows.iter().filter(|row| row.reason == Some(reason)).count() as u64;
    let words = counts(&[
        (count(Reason::NoSamples), "derived from others (no samples)"),
        (count(Reason::Repeats), "repeating others"),
    ]);
    if words.is_empty() { words } else { format!("Rows not listed: {words}.") }
}
