//! Who is missing, and what cannot be raced.

use flatout_measure::record::{Outcome, Warning};
use flatout_measure::warning;

use crate::{label, order, text::unless_empty};

pub(super) fn reason(outcome: &Outcome) -> String {
    outcome.warnings.first().map(|warning| warning.text.clone()).unwrap_or_default()
}

/// Whether the row is about a rival that is not installed, and not about one that cannot be raced.
pub(super) fn is_absent(outcome: &Outcome) -> bool {
    let is_other = |warning: &Warning| warning.code != warning::MISSING_RIVAL;
    !outcome.warnings.first().is_some_and(is_other)
}

/// The name of a rival that is not installed, and where it comes from: `xcp (cargo install xcp)`.
pub(super) fn missing(outcome: &Outcome) -> String {
    match (outcome.parameter_text("rival"), outcome.fact_text("package")) {
        (Some(name), Some(package)) => format!("{name} ({package})"),
        (Some(name), None) => name.to_owned(),
        (None, _) => reason(outcome),
    }
}

/// What cannot be raced, by rival and reason: `fio: create, stat: why`.
pub(super) fn incomparable(rows: &[&Outcome]) -> Vec<String> {
    let keyed = rows.iter().map(|outcome| {
        let row = outcome.parameter_text("row").map(str::to_owned);
        let row = row.unwrap_or_else(|| label::parameters(&outcome.parameters));
        ((outcome.parameter_text("against").unwrap_or("?"), reason(outcome)), row)
    });
    let told = |((against, reason), rows): ((&str, String), Vec<String>)| {
        let reason = unless_empty(&reason, |reason| format!(": {reason}"));
        format!("{against}: {}{reason}", rows.join(", "))
    };
    order::grouped(keyed).into_iter().map(told).collect()
}
