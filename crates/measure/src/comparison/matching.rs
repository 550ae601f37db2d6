//! Which rows belong together: of the runs of one side, and of two sides.
//!
//! First those with equal id and parameters; rows that occur more often in a record are paired in
//! their order. Of those left, the ones that differ in a path only. Of those left, the one row of
//! an id that differs only in numbers which the run chose for itself, such as the order of a
//! matrix, if they are close. Everything goes by hash, so that many rows take no longer than few.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::RowName;
use crate::record::{Outcome, Record, Status};

/// Parameters that say where the work was done and not what it was.
const PLACES: [&str; 4] = ["file", "directory", "device", "place"];

/// A number that a run chose for itself may differ by this share from that of another run. The
/// orders of Linpack matrices, which the time decides, differed by 10 % between runs (2026-11-22).
const CHOSEN_WITHIN: f64 = 0.25;

/// The same row in all runs of a side that have it, each with the index of its run; at least one.
#[derive(Debug, Clone)]
pub(super) struct Group<'a> {
    pub outcomes: Vec<(usize, &'a Outcome)>,
}

impl Group<'_> {
    pub fn first(&self) -> &Outcome {
        self.outcomes[0].1
    }

    /// Those that have a figure which may be used.
    pub fn figures(&self) -> impl Iterator<Item = &Outcome> {
        self.outcomes.iter().map(|(_, row)| *row).filter(|row| has_figure(row))
    }

    pub fn name(&self) -> RowName {
        RowName { id: self.first().id.clone(), parameters: self.first().parameters.clone() }
    }
}

/// Whether a row has a figure that may be used.
pub(super) fn has_figure(row: &Outcome) -> bool {
    let is_usable = !matches!(row.status, Status::Invalid | Status::Failed | Status::Unsupported);
    is_usable && row.median.is_some_and(f64::is_finite)
}

/// Groups of both sides that belong together, and those that stay alone.
pub(super) struct Matched<'a, 'b> {
    pub pairs: Vec<(&'b Group<'a>, &'b Group<'a>)>,
    pub only_old: Vec<&'b Group<'a>>,
    pub only_new: Vec<&'b Group<'a>>,
}

/// The rows of all runs of a side.
pub(super) fn gather(records: &[Record]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (run, record) in records.iter().enumerate() {
        let rows: Vec<&Outcome> = record.results.iter().collect();
        let partner = partners(&heads(&groups), &rows);
        let left = without(&partner, rows.len());
        for (group, partner) in groups.iter_mut().zip(partner) {
            group.outcomes.extend(partner.map(|index| (run, rows[index])));
        }
        groups.extend(left.map(|index| Group { outcomes: vec![(run, rows[index])] }));
    }
    groups
}

/// The rows of two sides.
pub(super) fn pair<'a, 'b>(old: &'b [Group<'a>], new: &'b [Group<'a>]) -> Matched<'a, 'b> {
    let partner = partners(&heads(old), &heads(new));
    let only_new = without(&partner, new.len()).map(|index| &new[index]).collect();
    let mut matched = Matched { pairs: Vec::new(), only_old: Vec::new(), only_new };
    for (group, partner) in old.iter().zip(partner) {
        match partner {
            Some(index) => matched.pairs.push((group, &new[index])),
            None => matched.only_old.push(group),
        }
    }
    matched
}

fn heads<'a>(groups: &[Group<'a>]) -> Vec<&'a Outcome> {
    groups.iter().map(|group| group.outcomes[0].1).collect()
}

/// The indices of so many rows that nobody has for a partner.
fn without(
    partner: &[Option<usize>],
    rows: usize,
) -> impl DoubleEndedIterator<Item = usize> + use<> {
    let mut is_taken = vec![false; rows];
    partner.iter().flatten().for_each(|index| is_taken[*index] = true);
    (0..rows).filter(move |index| !is_taken[*index])
}

/// For each row the index of the one in `others` that belongs to it; none is given twice.
fn partners(rows: &[&Outcome], others: &[&Outcome]) -> Vec<Option<usize>> {
    let mut partner = vec![None; rows.len()];
    for key in [exact_key, placeless_key] {
        // From the end, so that the first one is taken first.
        let mut waiting = by_key(others, without(&partner, others.len()).rev(), key);
        for (row, partner) in rows.iter().zip(&mut partner).filter(|(_, p)| p.is_none()) {
            *partner = waiting.get_mut(&key(row)).and_then(Vec::pop);
        }
    }
    let alone = by_key(others, without(&partner, others.len()), numberless_key);
    let wanting = (0..rows.len()).filter(|index| partner[*index].is_none());
    for (key, wanting) in by_key(rows, wanting, numberless_key) {
        if let ([row], Some([other])) = (&wanting[..], alone.get(&key).map(Vec::as_slice))
            && are_close(rows[*row], others[*other])
        {
            partner[*row] = Some(*other);
        }
    }
    partner
}

/// Those of `indices` with the same key, in their order.
fn by_key(
    rows: &[&Outcome],
    indices: impl Iterator<Item = usize>,
    key: fn(&Outcome) -> String,
) -> HashMap<String, Vec<usize>> {
    let mut all: HashMap<String, Vec<usize>> = HashMap::new();
    indices.for_each(|index| all.entry(key(rows[index])).or_default().push(index));
    all
}

/// Parameters of the second row that differ from those of the first.
pub(super) fn differing(one: &Outcome, other: &Outcome) -> Map<String, Value> {
    let differs = |(key, value): &(&String, &Value)| {
        one.parameters.get(*key).is_none_or(|own| canonical(own) != canonical(value))
    };
    let own = other.parameters.iter().filter(differs);
    own.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Id and parameters in one text.
pub(super) fn whole_key(id: &str, parameters: &Map<String, Value>) -> String {
    key(id, parameters, |_, value| canonical(value))
}

fn exact_key(row: &Outcome) -> String {
    whole_key(&row.id, &row.parameters)
}

fn placeless_key(row: &Outcome) -> String {
    key(&row.id, &row.parameters, |name, value| match value {
        Value::String(_) if PLACES.contains(&name) => String::new(),
        other => canonical(other),
    })
}

fn numberless_key(row: &Outcome) -> String {
    key(&row.id, &row.parameters, |_, value| match value {
        Value::Number(_) => String::new(),
        other => canonical(other),
    })
}

fn key(
    id: &str,
    parameters: &Map<String, Value>,
    shown: impl Fn(&str, &Value) -> String,
) -> String {
    let mut key = format!("{id:?}");
    for (name, value) in parameters {
        key.push_str(&format!(" {name:?}={}", shown(name, value)));
    }
    key
}

/// A value as text; 1 and 1.0 are one number.
fn canonical(value: &Value) -> String {
    match value {
        Value::Number(number) if !number.is_u64() && !number.is_i64() => {
            let float = number.as_f64().unwrap_or(f64::NAN);
            if float.fract() == 0.0 && float.abs() < 9e15 {
                return (float as i64).to_string();
            }
            float.to_string()
        }
        other => other.to_string(),
    }
}

fn are_close(one: &Outcome, other: &Outcome) -> bool {
    one.parameters.iter().all(|(name, value)| {
        let (Some(a), Some(b)) = (value.as_f64(), other.parameter_number(name)) else {
            return true;
        };
        (a - b).abs() <= CHOSEN_WITHIN * a.abs().max(b.abs())
    })
}
