//! What the types of a record do not say: which figures can be together in a row.
//!
//! The parser has already refused what is no finite number, but units of other programs are converted. Text
//! may be anything; it is escaped where it is shown.

use flatout_measure::record::{Ceiling, Latency, Load, Outcome, Record};
use flatout_measure::sampler::fact::USE_OF_CPUS;
use flatout_measure::{ceiling, statistics};
use serde_json::{Map, Value};

use crate::label;

/// The most rows. The largest run today leaves about a thousand.
const MAX_ROWS: usize = 100_000;
/// The most pictures. The largest run today has some thirty.
const MAX_CHARTS: usize = 256;
/// How far a share may be from the quotient of its parts: other programs round when they write JSON.
const ROUNDING: f64 = 1e-3;

/// Refuses a record that no run leaves. The text names the member and what is wrong with it.
pub(super) fn check(record: &Record) -> Result<(), String> {
    at_most("results", record.results.len(), MAX_ROWS)?;
    at_most("charts", record.charts.len(), MAX_CHARTS)?;
    within("end.elapsed_s", Some(record.end.elapsed_s), f64::INFINITY)?;
    if let Some(load) = &record.end.load {
        machine_load(load).map_err(|why| format!("end.load.{why}"))?;
    }
    if !matches!(record.start.environment, Value::Object(_) | Value::Null) {
        return Err("start.environment: it is no object".to_owned());
    }
    sizes(&record.start.environment).map_err(|why| format!("start.environment.{why}"))?;
    let cpus = record.end.load.as_ref().map_or(f64::INFINITY, |load| f64::from(load.cpus));
    for (index, outcome) in record.results.iter().enumerate() {
        row(outcome).map_err(|why| format!("results[{index}].{why}"))?;
        let used = use_of_cpus(&outcome.audit, cpus);
        used.map_err(|why| format!("results[{index}].audit.{}.{why}", USE_OF_CPUS.name()))?;
    }
    Ok(())
}

fn at_most(name: &str, count: usize, most: usize) -> Result<(), String> {
    if count > most { Err(format!("{name}: {count} of them, at most {most}")) } else { Ok(()) }
}

fn machine_load(load: &Load) -> Result<(), String> {
    let most = f64::from(load.cpus);
    within("others_cpus", load.others_cpus, most)?;
    // Ticks are coarse: more of them can be counted than there were.
    within("stolen_ratio", Some(load.stolen_ratio), f64::INFINITY)?;
    within("run_queue_wait_ratio", load.run_queue_wait_ratio, 1.0)?;
    within("cpu_pressure_ratio", load.cpu_pressure_ratio, f64::INFINITY)?;
    let used = load.programs.iter().map(|program| Some(program.cpus));
    used.into_iter().try_for_each(|used| within("programs[].cpus", used, f64::INFINITY))
}

/// Refuses what is less than nothing, or more than there can be.
fn within(name: &str, value: Option<f64>, most: f64) -> Result<(), String> {
    match value {
        Some(value) if value < 0.0 => Err(format!("{name}: {value} is below zero")),
        Some(value) if value > most => Err(format!("{name}: {value} is more than {most}")),
        _ => Ok(()),
    }
}

/// As [`machine_load`], of the trials of a row.
fn use_of_cpus(audit: &Map<String, Value>, most: f64) -> Result<(), String> {
    let Some(of_row) = audit.get(USE_OF_CPUS.name()) else { return Ok(()) };
    let [any, all] = [f64::INFINITY, 1.0];
    [("own_cpus", any), ("kernel_cpus", any), ("others_cpus", most), ("run_queue_wait_ratio", all)]
        .into_iter()
        .try_for_each(|(name, most)| within(name, of_row[name].as_f64(), most))
}

fn row(outcome: &Outcome) -> Result<(), String> {
    let Outcome { id, samples, median, ci95, n, .. } = outcome;
    if id.is_empty() {
        return Err("id: empty".to_owned());
    }
    if *n != samples.len() as u64 {
        return Err(format!("n: {n}, but there are {} samples", samples.len()));
    }
    // Rates, times, counts and ratios: no unit of a figure goes below zero.
    let cannot_be = |figure: &&f64| !(0.0..=f64::MAX).contains(*figure);
    if let Some(figure) = samples.iter().chain(median).chain(ci95.iter().flatten()).find(cannot_be)
    {
        return Err(format!("samples, median or ci95: a figure of {figure} {}", outcome.unit));
    }
    if let Some([low, high]) = ci95 {
        if low > high {
            return Err(format!("ci95: it begins at {low} and ends at {high}"));
        }
        match median {
            None => return Err("ci95: an interval without a median".to_owned()),
            Some(median) if median < low || median > high => {
                return Err(format!("ci95: the median, {median}, is not in it"));
            }
            Some(_) => {}
        }
    }
    if let (Some(median), Some((least, most))) = (median, statistics::extremes(samples))
        && (*median < least || *median > most)
    {
        return Err(format!("median: {median} is not among samples of {least} to {most}"));
    }
    outcome.ceiling.as_ref().map_or(Ok(()), |ceiling| bound(outcome, ceiling))?;
    outcome.latency.as_ref().map_or(Ok(()), latency)?;
    members(&outcome.parameters).map_err(|why| format!("parameters.{why}"))?;
    members(&outcome.audit).map_err(|why| format!("audit.{why}"))
}

fn bound(outcome: &Outcome, bound: &Ceiling) -> Result<(), String> {
    within("ceiling.value", bound.value, f64::INFINITY)?;
    let (Some(median), Some(stated)) = (outcome.median, bound.ratio) else { return Ok(()) };
    match ceiling::ratio(Some(median), outcome.better, bound) {
        Some(ratio) if (stated - ratio).abs() <= ROUNDING * ratio => Ok(()),
        Some(ratio) => Err(format!("ceiling.ratio: {stated}, but figure and bound make {ratio}")),
        None => {
            Err(format!("ceiling.ratio: {stated}, but there is no bound that it is a share of"))
        }
    }
}

fn latency(latency: &Latency) -> Result<(), String> {
    if latency.min_ns < 0.0 || latency.max_ns < latency.min_ns {
        let (min, max) = (latency.min_ns, latency.max_ns);
        return Err(format!("latency: from {min} to {max} ns"));
    }
    let mut told = Vec::new();
    for (name, value) in &latency.percentiles_ns {
        let share = name.strip_prefix('p').and_then(|share| share.parse::<f64>().ok());
        let Some(share) = share.filter(|share| (0.0..=100.0).contains(share)) else {
            return Err(format!("latency.percentiles_ns: {name:?} is no percentile"));
        };
        let Some(ns) = value.as_f64().filter(|ns| *ns >= 0.0) else {
            return Err(format!("latency.percentiles_ns.{name}: {value} is no time"));
        };
        told.push((share, ns));
    }
    told.sort_by(|one, other| one.0.total_cmp(&other.0));
    match told.is_sorted_by(|one, other| one.1 <= other.1) {
        true => Ok(()),
        false => Err("latency.percentiles_ns: a higher percentile is a shorter time".to_owned()),
    }
}

/// Refuses a size below zero, at any depth.
fn sizes(value: &Value) -> Result<(), String> {
    match value {
        Value::Object(map) => members(map),
        Value::Array(items) => items.iter().try_for_each(sizes),
        _ => Ok(()),
    }
}

fn members(map: &Map<String, Value>) -> Result<(), String> {
    for (key, value) in map {
        let is_size = label::unit_of(key) == "bytes";
        if is_size && value.as_f64().is_some_and(|bytes| bytes < 0.0) {
            return Err(format!("{key}: {value} is a size below zero"));
        }
        sizes(value)?;
    }
    Ok(())
}
