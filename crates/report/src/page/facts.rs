//! The machine in a dozen facts, for the top of a page; and the names of what could not be read.
//!
//! Facts come from the environment and, where the environment only repeats what the machine says
//! of itself, from rows that measured it: the clock under load. Members are looked for by name;
//! whatever else the environment holds is listed by [`super::machine`].

use flatout_measure::record::Record;
use flatout_measure::statistics;
use serde_json::Value;

use super::{findings, machine, storage};
use crate::text::{self, Joined};
use crate::{label, order, quantity};

/// The facts with their names, in the order in which a reader asks.
pub(crate) fn facts(record: &Record) -> Vec<(&'static str, String)> {
    let environment = &record.start.environment;
    if environment.as_object().is_none_or(serde_json::Map::is_empty) {
        return Vec::new();
    }
    let text = |key: &str| environment.get(key).and_then(Value::as_str).map(str::to_owned);
    let told =
        |name, text: Option<String>| (name, text.unwrap_or_else(|| "could not be read".to_owned()));
    let chains = storage::chains(environment);
    let mut facts = vec![
        told("CPU", processor(environment)),
        ("clock in load", clock(record)),
        told("memory", memory(environment)),
    ];
    facts.extend(chains.into_iter().map(|chain| ("disk", chain.line)));
    facts.extend(filesystems(environment).map(|names| ("filesystem", names)));
    facts.extend([
        told("kernel", text("kernel_release").map(|release| format!("Linux {release}"))),
        told("virtual machine", environment.get("hypervisor").and_then(Value::as_bool).map(word)),
        told("governor", text("governor")),
        told("mitigations", mitigations(environment)),
        told("load before", load(environment)),
        ("could not be read", unread(environment)),
    ]);
    facts
}

fn word(yes: bool) -> String {
    if yes { "yes: others share its hardware" } else { "no" }.to_owned()
}

fn processor(environment: &Value) -> Option<String> {
    let online = environment["cpus_online"].as_u64();
    let allowed = environment["cpus_allowed"].as_u64().filter(|_| online.is_some());
    let allowed = allowed.filter(|allowed| online != Some(*allowed));
    let simd = environment["simd"].as_str();
    let limit = environment["simd_limit"].as_str().map(|limit| format!(" (limited to {limit})"));
    let quota = environment["cpu_quota_cpus"].as_f64();
    let words = [
        Some(environment["cpu_model"].as_str()?.to_owned()),
        online.map(|online| quantity::counted(online as usize, "CPU")),
        allowed.map(|allowed| format!("{allowed} of them allowed")),
        quota.map(|quota| format!("quota of {}", quantity::number(quota))),
        simd.map(|simd| format!("{simd}{}", limit.unwrap_or_default())),
    ];
    Some(text::listed(words.into_iter().flatten(), ", "))
}

fn memory(environment: &Value) -> Option<String> {
    let size = |key: &str| environment[key].as_u64().map(quantity::rounded_size);
    let available = size("memory_available_bytes").map(|size| format!(", {size} available"));
    let limit = size("memory_limit_bytes").map(|size| format!(", limited to {size}"));
    Some(size("memory_bytes")? + &available.unwrap_or_default() + &limit.unwrap_or_default())
}

/// The clock as rows of the area cpu measured it: each load, or the range over the rows of loops.
fn clock(record: &Record) -> String {
    let text = |hz: f64| quantity::value("Hz", hz);
    let clocks = record.results.iter().filter(|row| row.id == "cpu/clock");
    let clocks = clocks.filter_map(|row| Some((row.parameter_text("load")?, label::figure(row)?)));
    let told = order::grouped(clocks).into_iter().map(|(load, clocks)| {
        let load = if load == "none" { "no load" } else { load };
        // Of several numbers of threads the slowest is the one that work gets.
        format!("{} ({load})", text(clocks.into_iter().fold(f64::INFINITY, f64::min)))
    });
    match &told.collect::<Vec<_>>()[..] {
        [] => {}
        [only] => return format!("{only}, measured"),
        [first, .., last] => return format!("{last}, {first}, measured"),
    }
    let in_loops = record.results.iter().filter(|row| row.id == "cpu/throughput");
    let in_loops = in_loops.filter(|row| label::figure(row).is_some());
    match statistics::extremes(in_loops.filter_map(|row| row.fact_number("clock_hz"))) {
        None => "not measured in this run".to_owned(),
        Some(ends) => format!("{}, measured in the loops", quantity::range(ends, " to ", text)),
    }
}

fn filesystems(environment: &Value) -> Option<String> {
    let places = environment.get("storage")?.as_array()?;
    let names = places.iter().filter_map(machine::filesystem);
    let names = order::distinct(names);
    (!names.is_empty()).then(|| names.join(", "))
}

/// What costs time, and what is open; the others are with all that the record knows.
fn mitigations(environment: &Value) -> Option<String> {
    let known = environment["mitigations"].as_object().filter(|known| !known.is_empty())?;
    let is_open = |state: &Value| state.as_str().is_some_and(|text| text.starts_with("Vulnerable"));
    let open = known.iter().filter(|(_, state)| is_open(state)).map(|(name, _)| name).joined(", ");
    let costs = match &findings::dear_mitigations(environment)[..] {
        [] => "none costs time".to_owned(),
        dear => findings::names_of_mitigations(dear),
    };
    Some(if open.is_empty() { costs } else { format!("{costs}; vulnerable: {open}") })
}

fn load(environment: &Value) -> Option<String> {
    let averages = environment["load_average"].as_array()?.iter().filter_map(Value::as_f64);
    let words = averages.map(|load| format!("{load:.2}")).joined(", ");
    (!words.is_empty()).then(|| format!("{words} (1, 5, 15 minutes)"))
}

/// Names of the members that are null though every machine has such a thing.
fn unread(environment: &Value) -> String {
    let mut names: Vec<String> = Vec::new();
    gather("", environment, &mut names);
    let names = order::distinct(names.into_iter());
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

fn gather(owner: &str, value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            let own = members.get("name").and_then(Value::as_str).unwrap_or(owner);
            for (key, member) in members {
                match member {
                    Value::Null if label::ABSENT.contains(&key.as_str()) => {}
                    Value::Null => {
                        let noun = label::noun(key);
                        let text = if own.is_empty() { noun } else { format!("{noun} of {own}") };
                        names.push(text);
                    }
                    nested => gather(own, nested, names),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| gather(owner, item, names)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use flatout_measure::record::{End, Outcome, Start};
    use serde_json::json;

    use super::*;

    fn record(environment: Value, results: Vec<Outcome>) -> Record {
        let (tool, time) = (String::new(), String::new());
        let start = Start { tool, argv: Vec::new(), seed: 0, time, environment };
        Record { schema: String::new(), start, results, charts: vec![], end: End::default() }
    }

    fn text(record: &Record, name: &str) -> String {
        facts(record).into_iter().find(|(known, _)| *known == name).unwrap().1
    }

    #[test]
    fn what_could_not_be_read_is_named_and_what_is_not_there_is_not() {
        let environment = json!({
            "cpu_model": "Xeon", "cpus_online": 2, "cpus_allowed": 1, "cpu_quota_cpus": null,
            "governor": null, "hypervisor": true,
            "storage": [{"filesystem": "ext4", "layers": [{"name": "vda", "link": null}]}],
            "mitigations": {"a": "Mitigation: Retpolines", "b": "Vulnerable", "c": "Not affected"}
        });
        let told = record(environment, Vec::new());
        assert_eq!(text(&told, "could not be read"), "governor, link of vda");
        assert_eq!(text(&told, "CPU"), "Xeon, 2 CPUs, 1 of them allowed");
        assert_eq!(text(&told, "governor"), "could not be read");
        assert_eq!(text(&told, "memory"), "could not be read");
        assert_eq!(text(&told, "mitigations"), "retpolines; vulnerable: b");
        assert_eq!(text(&told, "clock in load"), "not measured in this run");
        assert!(facts(&record(json!({}), Vec::new())).is_empty());
    }

    #[test]
    fn each_filesystem_is_named_once() {
        let places = ["ext4", "xfs", "ext4"].map(|name| json!({"filesystem": name}));
        let told = record(json!({"cpu_model": "Xeon", "storage": places}), Vec::new());
        assert_eq!(text(&told, "filesystem"), "ext4, xfs");
    }

    #[test]
    fn the_clock_is_the_slowest_under_the_heaviest_load() {
        let row = |load: &str, hz: f64| Outcome {
            id: "cpu/clock".to_owned(),
            parameters: json!({"load": load}).as_object().cloned().unwrap(),
            unit: "Hz".to_owned(),
            median: Some(hz),
            ..Outcome::default()
        };
        let rows = vec![row("none", 3.0e9), row("avx512", 2.5e9), row("avx512", 2.4e9)];
        let expected = "2.40 GHz (avx512), 3.00 GHz (no load), measured";
        assert_eq!(clock(&record(json!({}), rows)), expected);
    }
}
