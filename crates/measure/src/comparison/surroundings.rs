//! What differs between two sides besides their figures: machine, settings, command line.
//!
//! Members that change from minute to minute are left out, and so is what a page has hidden.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::Difference;
use super::matching::Group;
use crate::guard::FAR;
use crate::record::{Outcome, Record};

/// Members that never stand still and bear on no figure by themselves.
const RESTLESS: [&str; 4] =
    ["memory_available_bytes", "free_bytes", "used_bytes", "flatout_version"];

/// Members that make a machine; memory only within [`MEMORY_WITHIN`].
const MACHINE: [&str; 2] = ["cpu_model", "cpus_online"];
const MEMORY: &str = "memory_bytes";
/// Another kernel keeps a little more or less of the same memory for itself.
pub(super) const MEMORY_WITHIN: f64 = 0.02;

/// The load below which a machine counts as idle, in runnable tasks; and by how much two loads
/// must differ to be told.
const LOAD_APART: f64 = 1.0;

/// What stands on a page where something identifies the machine.
const HIDDEN: &str = "(hidden)";

/// The rest of a clock measured in the load, where rows have one: how far it may differ untold.
const CLOCK_WITHIN: f64 = 0.02;
const CLOCK: &str = "clock_hz";
/// How far the first two CPUs were from each other.
const DISTANCE: &str = "cpu_distance_ns";

/// The share of the CPUs that others had, where what differs may be their work.
pub const LOAD: &str = "others_cpu_ratio";

/// Options whose value says where results go or which numbers were drawn.
const UNTOLD_OPTIONS: [&str; 4] = ["--output", "-o", "--format", "--seed"];

/// Whether all runs of two sides are of one machine as far as they say; `None` if one says nothing.
pub(super) fn same_machine(old: &[Record], new: &[Record]) -> Option<bool> {
    let first = &old.first()?.start.environment;
    new.first()?;
    let others = old.iter().skip(1).chain(new);
    let same: Vec<_> =
        others.map(|record| are_one_machine(first, &record.start.environment)).collect();
    if same.contains(&Some(false)) {
        return Some(false);
    }
    same.into_iter().collect::<Option<Vec<bool>>>().map(|_| true)
}

/// Whether two records are of one run, in whatever form they were kept: it began in the same second
/// with the same seed, and has the same samples.
pub fn are_one_run(one: &Record, other: &Record) -> bool {
    let mut pairs = one.results.iter().zip(&other.results);
    one.start.time == other.start.time
        && one.start.seed == other.start.seed
        && one.results.len() == other.results.len()
        && pairs.all(|(one, other)| one.samples == other.samples)
}

/// Whether both sides are the same runs.
pub(super) fn same_run(old: &[Record], new: &[Record]) -> bool {
    old.len() == new.len() && old.iter().zip(new).all(|(old, new)| are_one_run(old, new))
}

/// The members of an environment that [`are_one_machine`] looks at.
pub(super) fn machine(environment: &Value) -> Map<String, Value> {
    let names = MACHINE.iter().chain([&MEMORY]);
    let known = names.filter_map(|name| Some(((*name).to_owned(), environment.get(name)?.clone())));
    known.collect()
}

/// Whether two environments are of one machine as far as they say.
pub fn are_one_machine(one: &Value, other: &Value) -> Option<bool> {
    let known = |name: &str| {
        let pair = (one.get(name)?, other.get(name)?);
        (!pair.0.is_null() && !pair.1.is_null()).then_some(pair)
    };
    let named: Vec<bool> =
        MACHINE.iter().filter_map(|name| known(name)).map(|(a, b)| a == b).collect();
    let memory = known(MEMORY).and_then(|(a, b)| are_within(MEMORY_WITHIN, a, b));
    if named.iter().any(|is_same| !is_same) || memory == Some(false) {
        return Some(false);
    }
    (!named.is_empty()).then_some(true)
}

/// Everything that differs between the runs of both sides. Where those of one side differ among
/// each other, all of its values stand there.
pub(super) fn differences(
    old: &[Record],
    new: &[Record],
    pairs: &[(&Group<'_>, &Group<'_>)],
    loads: Option<[f64; 2]>,
) -> Vec<Difference> {
    if old.is_empty() || new.is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut add = |name: &str, old: Value, new: Value| {
        if old != new {
            found.push(Difference { name: name.to_owned(), old, new });
        }
    };
    let tool = |record: &Record| record.start.tool.clone().into();
    add("tool", distinct("", old.iter().map(tool)), distinct("", new.iter().map(tool)));
    let argv = |record: &Record| command(&record.start.argv).into();
    add("command", distinct("", old.iter().map(argv)), distinct("", new.iter().map(argv)));
    let all = |side: &[Record]| -> Vec<_> {
        side.iter().map(|record| members(&record.start.environment)).collect()
    };
    let (old, new) = (all(old), all(new));
    let names: BTreeSet<&String> = old.iter().chain(&new).flat_map(BTreeMap::keys).collect();
    for name in names {
        let value = |run: &BTreeMap<String, Value>| run.get(name).cloned().unwrap_or_default();
        let (old, new) =
            (distinct(name, old.iter().map(value)), distinct(name, new.iter().map(value)));
        let is_hidden = [&old, &new].iter().any(|value| value.as_str() == Some(HIDDEN));
        if !is_hidden && !is_restless(name, &old, &new) {
            add(name, old, new);
        }
    }
    let clocks = medians(pairs, CLOCK);
    if let Some((old, new)) =
        clocks.filter(|(old, new)| (old - new).abs() > CLOCK_WITHIN * old.abs().max(new.abs()))
    {
        add("clock_in_load_hz", old.into(), new.into());
    }
    // Where the host had the CPUs.
    let distances = medians(pairs, DISTANCE);
    if let Some((old, new)) = distances.filter(|(old, new)| old.max(*new) > FAR * old.min(*new)) {
        add(DISTANCE, old.into(), new.into());
    }
    if let Some([old, new]) = loads {
        // Said even if it is the same on both sides.
        found.push(Difference { name: LOAD.to_owned(), old: old.into(), new: new.into() });
    }
    found
}

/// The one value that all runs of a side have; where they differ by more than from minute to minute,
/// all of them in words.
fn distinct(name: &str, values: impl Iterator<Item = Value>) -> Value {
    let mut all: Vec<Value> = Vec::new();
    for value in values {
        let is_known = |known: &Value| *known == value || is_restless(name, known, &value);
        // The load of the moment is that of the first; what others took is told apart from it.
        let is_of_the_moment = !all.is_empty() && name.ends_with("load_average");
        if !is_of_the_moment && !all.iter().any(is_known) {
            all.push(value);
        }
    }
    if all.len() > 1 {
        all.retain(|value| value.as_str() != Some(HIDDEN));
    }
    let word = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => "none".to_owned(),
        other => other.to_string(),
    };
    match all.len() {
        0 | 1 => all.pop().unwrap_or_default(),
        _ => all.iter().map(word).collect::<Vec<_>>().join(" | ").into(),
    }
}

/// The command without the path of the program and without what changes no figure.
fn command(argv: &[String]) -> String {
    let mut words = Vec::new();
    let mut rest = argv.iter().skip(1);
    while let Some(word) = rest.next() {
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        if UNTOLD_OPTIONS.contains(&name) {
            if name == word {
                rest.next();
            }
            continue;
        }
        words.push(word.as_str());
    }
    words.join(" ")
}

/// All members of an environment that are no objects, under their joined names.
fn members(environment: &Value) -> BTreeMap<String, Value> {
    fn collect(name: &str, value: &Value, into: &mut BTreeMap<String, Value>) {
        let join =
            |part: &str| if name.is_empty() { part.into() } else { format!("{name}.{part}") };
        match value {
            Value::Object(members) => {
                members.iter().for_each(|(part, value)| collect(&join(part), value, into));
            }
            Value::Array(items) if items.iter().any(Value::is_object) => {
                for (index, item) in items.iter().enumerate() {
                    collect(&join(&index.to_string()), item, into);
                }
            }
            other => {
                into.insert(name.to_owned(), other.clone());
            }
        }
    }
    let mut all = BTreeMap::new();
    collect("", environment, &mut all);
    all
}

fn is_restless(name: &str, old: &Value, new: &Value) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    if last == "load_average" {
        let load = |value: &Value| value.get(0).and_then(Value::as_f64);
        return load(old).zip(load(new)).is_some_and(|(old, new)| (old - new).abs() < LOAD_APART);
    }
    if name == MEMORY {
        return are_within(MEMORY_WITHIN, old, new) == Some(true);
    }
    RESTLESS.contains(&last)
}

/// Whether two numbers differ by this share at most.
fn are_within(share: f64, one: &Value, other: &Value) -> Option<bool> {
    let (one, other) = (one.as_f64()?, other.as_f64()?);
    Some((one - other).abs() <= share * one.abs().max(other.abs()))
}

/// The medians of a fact of the rows of both sides, if both have it.
fn medians(pairs: &[(&Group<'_>, &Group<'_>)], key: &str) -> Option<(f64, f64)> {
    let fact = |row: &Outcome| row.fact_number(key);
    let both = pairs.iter().filter_map(|(old, new)| Some((fact(old.first())?, fact(new.first())?)));
    let (old, new): (Vec<f64>, Vec<f64>) =
        both.filter(|(a, b)| a.is_normal() && b.is_normal()).unzip();
    Some((crate::statistics::median(&old)?, crate::statistics::median(&new)?))
}
