//! One line per result for spreadsheets and scripts (RFC 4180, line ends CR LF).
//!
//! Values stay in base units with all their digits: a program reads them. The parameters of all
//! results become columns of their own. So do, behind all others, the single facts of `read`, `write`
//! and `copy` rows; those of a bench would make its lines wide and empty. Of a bench that tells what
//! the device moved, the columns of the audit are written and the line that checks the row with
//! fio: `audit_bytes`, `audit_disk_share_ratio`, …, `audit_fio_command`. Ratios are shares of one.
//! Of a race, what a run cost and what came of a pair are written: `audit_cpu_ns`, …,
//! `audit_result`. Lists are not written, the JSON document has them. A text that a spreadsheet
//! would take for a formula, such as a file's name with `=` before it, has a `'` before it.

use std::collections::{BTreeMap, BTreeSet};

use flatout_measure::record::{Outcome, Record};
use flatout_measure::statistics;
use serde_json::Value;

use super::raw;
use crate::label;
use crate::page::{audit, commands, race};
use crate::text::{self, Joined};

const ID: &str = "id";
const AFTER: &str = "unit better median ci95_low ci95_high n min max status ceiling_name \
    ceiling_value ceiling_provenance ceiling_ratio limiter warnings";

/// What stands before the name of a fact.
const FACT: &str = "audit_";

/// The column that says from which file a row is, where there are several.
const SOURCE: &str = "record";

/// The results as CSV with a heading line; where records have names, these are the first column.
pub fn document(records: &[(Option<&str>, &Record)]) -> String {
    let results = || records.iter().flat_map(|(_, record)| &record.results);
    let keys: BTreeSet<&String> = results().flat_map(|o| o.parameters.keys()).collect();
    let facts: BTreeSet<&String> = results().flat_map(facts).map(|(k, _)| k).collect();
    let fact_heads: Vec<String> = facts.iter().map(|key| format!("{FACT}{key}")).collect();
    let mut out = String::new();
    let has_names = records.iter().any(|(name, _)| name.is_some());
    let heads = has_names.then(|| SOURCE.to_owned()).into_iter().chain([ID.to_owned()]);
    let heads = heads.chain(keys.iter().map(|key| parameter_head(key, &fact_heads)));
    let heads = heads.chain(AFTER.split(' ').map(str::to_owned));
    push_line(&mut out, heads.chain(fact_heads.iter().cloned()));
    for (name, outcome) in records.iter().flat_map(|(n, r)| r.results.iter().map(move |o| (n, o))) {
        let own: BTreeMap<&String, &Value> = self::facts(outcome).collect();
        let told = |value: Option<&Value>| value.map_or_else(String::new, raw);
        let parameters = keys.iter().map(|key| told(outcome.parameters.get(*key)));
        let facts = facts.iter().map(|key| told(own.get(key).copied()));
        let fields = name.map(str::to_owned).into_iter().chain([outcome.id.clone()]);
        push_line(&mut out, fields.chain(parameters).chain(figures(outcome)).chain(facts));
    }
    out
}

/// The facts of a row that fit into a field each: all of a row that moved one file, and those that
/// have a column beside the figures of a bench.
fn facts(outcome: &Outcome) -> impl Iterator<Item = (&String, &Value)> {
    let moves_files = label::moves_files(outcome);
    let kinds = audit::KINDS.map(|kind| kind.is_worth_a_table(outcome).then_some(kind));
    let is_raced = label::area(&outcome.id) == race::AREA;
    let is_written = move |key: &str| {
        moves_files
            || is_raced && text::is_among(key, race::FACTS)
            || key == commands::KEY
            || kinds.iter().flatten().any(|kind| kind.has(key))
    };
    let fits = |value: &Value| !value.is_array() && !value.is_object();
    outcome.audit.iter().filter(move |(key, value)| is_written(key) && fits(value))
}

/// A parameter's own name, unless another column has it.
fn parameter_head(key: &str, fact_heads: &[String]) -> String {
    let fixed = key == SOURCE || key == ID || text::is_among(key, AFTER);
    let taken = fixed || fact_heads.iter().any(|head| head == key);
    if taken { format!("parameter_{key}") } else { key.to_owned() }
}

/// The fixed fields, in the order of [`AFTER`].
fn figures(outcome: &Outcome) -> [String; 15] {
    let float = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
    let figure = label::figure(outcome);
    let interval = outcome.ci95.filter(|_| figure.is_some());
    let extremes = statistics::extremes(&outcome.samples).filter(|_| figure.is_some());
    let ceiling = outcome.ceiling.as_ref();
    [
        outcome.unit.clone(),
        outcome.better.name().to_owned(),
        float(figure),
        float(interval.map(|i| i[0])),
        float(interval.map(|i| i[1])),
        outcome.n.to_string(),
        float(extremes.map(|(least, _)| least)),
        float(extremes.map(|(_, most)| most)),
        outcome.status.name().to_owned(),
        ceiling.map_or_else(String::new, |c| c.name.clone()),
        float(ceiling.and_then(|c| c.value)),
        ceiling.map_or_else(String::new, |c| c.provenance.name().to_owned()),
        float(ceiling.and_then(|c| c.ratio).filter(|_| figure.is_some())),
        ceiling.map_or_else(String::new, |c| c.limiter.clone()),
        outcome.warnings.iter().map(|warning| &warning.code).joined(" "),
    ]
}

fn push_line(out: &mut String, fields: impl Iterator<Item = String>) {
    out.push_str(&fields.map(|field| quoted(&text::visible(&field))).joined(","));
    out.push_str("\r\n");
}

fn quoted(field: &str) -> String {
    if field.starts_with(['=', '+', '-', '@']) && field.parse::<f64>().is_err() {
        return quoted(&format!("'{field}"));
    }
    if field.contains(['"', ',']) || field.starts_with(' ') || field.ends_with(' ') {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_doubled_and_commas_enclosed() {
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(quoted("a, \"b\""), "\"a, \"\"b\"\"\"");
    }

    #[test]
    fn no_text_is_a_formula() {
        let texts = ["=1+2", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "=a,b"].map(quoted);
        let expected = ["'=1+2", "'+cmd|' /C calc'!A0", "'-2+3", "'@SUM(A1)", "\"'=a,b\""];
        assert_eq!(texts, expected);
        assert_eq!(["-1.5", "+2", "1e9", "-inf"].map(quoted), ["-1.5", "+2", "1e9", "-inf"]);
    }
}
