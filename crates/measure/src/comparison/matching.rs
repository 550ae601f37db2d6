//! Which rows belong together: of the runs of one side, and of two sides.
//!
//! First those with equal id and parameters; rows that occur more often in a record are paired in
//! their order. Of those left, the ones that differ in a path only. Of those left, the one row of
//! an id that differs only in numbers which the run chose for itself, such as the order of a
//! matrix, if they are close. Everything goes by hash, so that many rows take no longer than few.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::RowName;
use crate::record::{Outcome, Record};

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

    pub fn name(&self) -> RowName {
        RowName { id: self.first().id.clone(), parameters: self.first().parameters.clone() }
    }
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
        let heads: Vec<&Outcome> = groups.iter().map(|group| group.outcomes[0].1).collect();
        let partner = partners(&heads, &rows);
        let mut is_taken = vec![false; rows.len()];
        for (group, partner) in groups.iter_mut().zip(partner) {
            if let Some(index) = partner {
                is_taken[index] = true;
                group.outcomes.push((run, rows[index]));
            }
        }
        let left = rows.into_iter().zip(is_taken).filter(|(_, is_taken)| !is_taken);
        groups.extend(left.map(|(row, _)| Group { outcomes: vec![(run, row)] }));
    }
    groups
}

/// The rows of two sides.
pub(super) fn pair<'a, 'b>(old: &'b [Group<'a>], new: &'b [Group<'a>]) -> Matched<'a, 'b> {
    let heads = |groups: &'b [Group<'a>]| -> Vec<&'a Outcome> {
        groups.iter().map(|group| group.outcomes[0].1).collect()
    };
    let partner = partners(&heads(old), &heads(new));
    let mut is_taken = vec![false; new.len()];
    let mut matched = Matched { pairs: Vec::new(), only_old: Vec::new(), only_new: Vec::new() };
    for (group, partner) in old.iter().zip(partner) {
        match partner {
            Some(index) => {
                is_taken[index] = true;
                matched.pairs.push((group, &new[index]));
            }
            None => matched.only_old.push(group),
        }
    }
    let left = new.iter().zip(is_taken).filter(|(_, is_taken)| !is_taken);
    matched.only_new = left.map(|(group, _)| group).collect();
    matched
}

/// For each row the index of the one in `others` that belongs to it; none is given twice.
fn partners(rows: &[&Outcome], others: &[&Outcome]) -> Vec<Option<usize>> {
    let mut partner = vec![None; rows.len()];
    let mut is_taken = vec![false; others.len()];
    for key in [exact_key, placeless_key] {
        let mut waiting: HashMap<String, Vec<usize>> = HashMap::new();
        // From the end, so that the first one is taken first.
        for (index, other) in others.iter().enumerate().rev().filter(|(index, _)| !is_taken[*index])
        {
            waiting.entry(key(other)).or_default().push(index);
        }
        for (row, partner) in rows.iter().zip(&mut partner).filter(|(_, p)| p.is_none()) {
            if let Some(index) = waiting.get_mut(&key(row)).and_then(Vec::pop) {
                *partner = Some(index);
                is_taken[index] = true;
            }
        }
    }
    let mut alone: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, other) in others.iter().enumerate().filter(|(index, _)| !is_taken[*index]) {
        alone.entry(numberless_key(other)).or_default().push(index);
    }
    let mut wanting: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, row) in rows.iter().enumerate().filter(|(index, _)| partner[*index].is_none()) {
        wanting.entry(numberless_key(row)).or_default().push(index);
    }
    for (key, wanting) in wanting {
        if let ([row], Some([other])) = (&wanting[..], alone.get(&key).map(Vec::as_slice))
            && are_close(rows[*row], others[*other])
        {
            partner[*row] = Some(*other);
        }
    }
    partner
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
    let is_place = |name: &str, value: &Value| PLACES.contains(&name) && value.is_string();
    key(&row.id, &row.parameters, |name, value| {
        if is_place(name, value) { String::new() } else { canonical(value) }
    })
}

fn numberless_key(row: &Outcome) -> String {
    key(
        &row.id,
        &row.parameters,
        |_, value| {
            if value.is_number() { String::new() } else { canonical(value) }
        },
    )
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
