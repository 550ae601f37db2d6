//! Names and parameters of rows in few words: `4 KiB`, `2 threads`, `mmap`, `hot`.
//!
//! Keys end in their unit, so the key alone says how its value is written. Unknown keys are shown
//! generically; nothing is left out because it is new.

use std::collections::BTreeSet;

pub(crate) use flatout_measure::comparison::noise::area;
use flatout_measure::record::{Ceiling, Latency, Outcome, Provenance, Record, Status};
use serde_json::{Map, Value};

use crate::{order, quantity, style::Tone, text::Joined};

/// Keys in the order in which people ask for them; the others follow by name.
const ORDER: &str = "contestant corpus operation call kernel engine caching cache_state bytes \
    block_bytes file_bytes threads depth split rate_operations_per_s read_share until sync extents \
    directories pinned";

/// Keys whose words do not follow from their spelling.
const NOUNS: [(&str, &str); 8] = [
    ("cpu_ns_per_operation", "CPU per operation"),
    ("cpu_s_per_gib", "CPU per GiB"),
    ("cpu_s_per_gbit", "CPU per Gbit"),
    ("softirq_s_per_gbit", "softirq per Gbit"),
    ("harness_ns_per_operation", "harness per operation"),
    ("user_ns", "CPU time, user"),
    ("system_ns", "CPU time, system"),
    ("fio_command", "check with fio"),
];

/// Members of the environment that are null where there is none of it: nothing was left unread.
pub(crate) const ABSENT: [&str; 3] = ["cpu_quota_cpus", "memory_limit_bytes", "io_uring_disabled"];

/// The parameters in the order of reading.
pub(crate) fn ordered(parameters: &Map<String, Value>) -> Vec<(&str, &Value)> {
    let mut pairs: Vec<_> = parameters.iter().map(|(key, value)| (key.as_str(), value)).collect();
    let rank = |key| ORDER.split(' ').position(|known| known == key).unwrap_or(usize::MAX);
    pairs.sort_by_key(|(key, _)| rank(*key));
    pairs
}

/// All parameters of a row in one line, separated by `, `.
pub fn parameters(parameters: &Map<String, Value>) -> String {
    parameter_words(parameters).join(", ")
}

/// All parameters of a row, one text each.
pub(crate) fn parameter_words(parameters: &Map<String, Value>) -> Vec<String> {
    ordered(parameters).into_iter().map(|(key, value)| parameter(key, value)).collect()
}

/// One parameter in words that need no heading: `4 KiB`, `2 threads`, `depth 8`, `mmap`.
pub(crate) fn parameter(key: &str, value: &Value) -> String {
    let noun = noun(key);
    match (key, value) {
        (_, Value::String(text)) if text.is_empty() => format!("{noun} \"\""),
        ("until", Value::String(text)) => match text.as_str() {
            "cache" => "to cache".to_owned(),
            "device" => "completed".to_owned(),
            "durable" => "fsynced".to_owned(),
            other => format!("until {other}"),
        },
        ("cache_state" | "state", Value::String(text)) if text == "hot" => "warm".to_owned(),
        ("pass", Value::String(text)) => text.replace("cleared", "after drop"),
        ("sync", Value::String(text)) => format!("{text} synced"),
        ("extents", Value::String(text)) => format!("{text} extents"),
        ("bytes", Value::Number(_)) => format!("size {}", plain(key, value)),
        ("directories", Value::String(text)) => match text.as_str() {
            "one" => "one directory".to_owned(),
            count => format!("{count} directories"),
        },
        ("state", Value::String(text)) if text == "as_it_is" => "cache as it is".to_owned(),
        (_, Value::String(text)) if text == "none" => format!("no {noun}"),
        (_, Value::String(text)) if text == "auto" => format!("{noun} auto"),
        // Other programs write all values as texts.
        (_, Value::String(text)) if text.parse::<f64>().is_ok() => format!("{noun} {text}"),
        ("block_bytes", _) | (_, Value::String(_)) => plain(key, value),
        ("read_share", Value::Number(number)) => {
            // Some write a share of one, some a percentage.
            let share = number.as_f64().unwrap_or(f64::NAN);
            let share = if share > 1.0 { share / 100.0 } else { share };
            format!("{noun} {}", quantity::percent(share))
        }
        (_, Value::Bool(true)) => noun,
        (_, Value::Bool(false)) => format!("not {noun}"),
        (_, Value::Number(number)) if is_counted(key) => {
            let text = plain(key, value);
            match number.as_f64() {
                Some(1.0) => format!("{text} {}", singular(&noun)),
                _ => format!("{text} {noun}"),
            }
        }
        _ => format!("{noun} {}", plain(key, value)),
    }
}

/// One of what a plural noun counts: `thread`, `process`, `directory`.
fn singular(noun: &str) -> String {
    let ends = [("sses", "ss"), ("ies", "y"), ("s", "")];
    let found = ends.iter().find_map(|(end, one)| Some((noun.strip_suffix(end)?, one)));
    found.map_or_else(|| noun.to_owned(), |(stem, one)| format!("{stem}{one}"))
}

/// Whether a key is a plural noun that its number stands before.
fn is_counted(key: &str) -> bool {
    key.ends_with('s') && !key.ends_with("_bytes") && unit_of(key).is_empty()
}

/// The key in words, without its unit: `block_bytes` → `block`.
pub(crate) fn noun(key: &str) -> String {
    if let Some((_, noun)) = NOUNS.iter().find(|(known, _)| *known == key) {
        return (*noun).to_owned();
    }
    let stem =
        ["_bytes_per_s", "_operations_per_s", "_per_s", "_bytes", "_ns", "_s", "_hz", "_ratio"]
            .iter()
            .find_map(|suffix| key.strip_suffix(suffix))
            .unwrap_or(key);
    let words = stem.split('_').map(|word| match word {
        "cpu" => "CPU",
        "cpus" => "CPUs",
        other => other,
    });
    words.joined(" ")
}

/// The base unit that a key ends in; empty when it names none.
pub(crate) fn unit_of(key: &str) -> &'static str {
    match key {
        "bytes" => "bytes",
        "disk_requests_per_request_ratio" => "",
        "read_share" => "share",
        key if key.ends_with("bytes_per_s") => "bytes/s",
        key if key.ends_with("flop_per_s") => "flop/s",
        key if key.ends_with("_operations_per_s") => "operations/s",
        key if key.ends_with("_per_s") => "/s",
        key if key.contains("_ns_per_") => "ns",
        key if key.contains("_s_per_") => "s",
        key if key.ends_with("_bytes") || key.starts_with("bytes_") => "bytes",
        key if key.ends_with("_ns") => "ns",
        key if key.ends_with("_s") || key == "seconds" => "s",
        key if key.ends_with("_hz") => "Hz",
        key if key.ends_with("_ratio") || key == "ratio" => "share",
        key if key.starts_with("rate") => "bytes/s",
        _ => "",
    }
}

/// A value by the unit in its key, without the key's name; sizes are exact.
pub(crate) fn plain(key: &str, value: &Value) -> String {
    spelled(key, value, quantity::size)
}

/// The same with sizes as rounded as a reader wants them.
pub(crate) fn spelled(key: &str, value: &Value, size: fn(u64) -> String) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Null if ABSENT.contains(&key) => "none".to_owned(),
        Value::Null => "unknown".to_owned(),
        Value::Number(number) => match (unit_of(key), number.as_u64(), number.as_f64()) {
            ("bytes", Some(bytes), _) => size(bytes),
            ("", Some(whole), _) => quantity::count(whole),
            ("", None, Some(float)) if float.fract() == 0.0 && float.abs() < 1e15 => {
                float.to_string()
            }
            (unit, _, Some(float)) => quantity::value(unit, float),
            _ => number.to_string(),
        },
        Value::Array(items) => items.iter().map(|item| spelled(key, item, size)).joined(", "),
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| format!("{} {}", noun(key), spelled(key, value, size)))
            .joined(", "),
    }
}

/// What all of these have in common, in words, and what each has besides.
pub(crate) fn told_apart(all: &[&Map<String, Value>]) -> (Vec<String>, Vec<Vec<String>>) {
    let Some(first) = all.first() else { return (Vec::new(), Vec::new()) };
    let is_common = |key: &&String| all.iter().all(|other| other.get(*key) == first.get(*key));
    let common: BTreeSet<&str> = first.keys().filter(is_common).map(String::as_str).collect();
    let words = |of: &Map<String, Value>, is_common: bool| {
        let told = ordered(of).into_iter().filter(|(key, _)| common.contains(key) == is_common);
        told.map(|(key, value)| parameter(key, value)).collect()
    };
    (words(first, true), all.iter().map(|own| words(own, false)).collect())
}

/// Of each name with parameters the words that tell it from others of its name.
pub(crate) fn own_words(named: &[(&str, &Map<String, Value>)]) -> Vec<Vec<String>> {
    let mut found = vec![Vec::new(); named.len()];
    let places = named.iter().enumerate().map(|(at, (name, _))| (*name, at));
    for (_, places) in order::grouped(places) {
        let alike: Vec<&Map<String, Value>> = places.iter().map(|at| named[*at].1).collect();
        for (at, words) in places.into_iter().zip(told_apart(&alike).1) {
            found[at] = words;
        }
    }
    found
}

/// Names of rows without what all rows of the same test have in common: `write, fsynced`.
pub(crate) fn short_names(rows: &[&Outcome]) -> Vec<String> {
    let named: Vec<(&str, &Map<String, Value>)> =
        rows.iter().map(|row| (row.id.as_str(), &row.parameters)).collect();
    let words = own_words(&named).into_iter().zip(rows);
    let name = |(words, row): (Vec<String>, &&Outcome)| {
        std::iter::once(test(&row.id).to_owned()).chain(words).joined(", ")
    };
    words.map(name).collect()
}

/// The areas in order of first appearance.
pub(crate) fn areas(record: &Record) -> Vec<&str> {
    order::distinct(record.results.iter().map(|outcome| area(&outcome.id)))
}

/// All rows of an area, those of charts included.
pub(crate) fn rows_of<'a>(record: &'a Record, area: &str) -> Vec<&'a Outcome> {
    record.results.iter().filter(|outcome| self::area(&outcome.id) == area).collect()
}

/// Whether the row tells by the name of its corpus how many files there are, and how large: `1000x4K`.
pub(crate) fn is_of_equal_files(outcome: &Outcome) -> bool {
    let count = outcome.parameter_text("corpus").and_then(|corpus| corpus.split_once('x'));
    count.is_some_and(|(count, _)| count.parse::<u64>().is_ok())
}

/// Whether the row is that of `flatout read`, `write` or `copy`, whose facts are asked for.
pub(crate) fn moves_files(outcome: &Outcome) -> bool {
    matches!(area(&outcome.id), "read" | "write") || outcome.id == "copy/total"
}

/// The file that a read or write moved.
pub(crate) fn file(outcome: &Outcome) -> Option<&str> {
    outcome.parameters.get("file").filter(|_| moves_files(outcome))?.as_str()
}

/// The part of an id after the first `/`.
pub(crate) fn test(id: &str) -> &str {
    id.split_once('/').map_or(id, |(_, test)| test)
}

/// A status as the word that people use.
pub(crate) fn state(of: Status) -> &'static str {
    if of == Status::Unstable { "noisy" } else { of.name() }
}

/// What is said of a figure without an interval.
pub(crate) const FEW_TRIALS: &str = "few trials";

/// What speaks against a figure, in a word; nothing where nothing does.
pub(crate) fn word(status: Status, interval: Option<[f64; 2]>) -> &'static str {
    match (status, interval) {
        (Status::Ok, _) => "",
        (Status::Unstable, None) => FEW_TRIALS,
        (other, _) => state(other),
    }
}

/// The percentiles that occur, in ascending order.
pub(crate) fn percentiles<'a>(latencies: impl Iterator<Item = &'a Latency>) -> Vec<String> {
    let mut names: Vec<String> =
        latencies.flat_map(|latency| latency.percentiles_ns.keys().cloned()).collect();
    let share = |name: &String| name.trim_start_matches('p').parse().unwrap_or(f64::INFINITY);
    names.sort_by(|a, b| share(a).total_cmp(&share(b)).then_with(|| a.cmp(b)));
    names.dedup();
    names
}

/// Where a ceiling comes from, in words.
pub(crate) fn provenance(provenance: Provenance) -> &'static str {
    match provenance {
        Provenance::Measured => "measured in this run",
        Provenance::Cpuid => "from CPUID",
        Provenance::Smbios => "from SMBIOS",
        Provenance::Link => "from the link",
        Provenance::Inferred => "inferred",
        Provenance::Given => "a limit that was set",
        Provenance::Earlier => "measured earlier",
        Provenance::BestSeen => "best seen in this run",
        Provenance::Unknown => "unknown",
    }
}

/// Name, value and origin of a bound: `link of the device: 600 MiB/s (from the link)`.
pub(crate) fn bound(ceiling: &Ceiling, unit: &str) -> String {
    let name = if ceiling.name.is_empty() { "limit" } else { &ceiling.name };
    let value = ceiling.value.map(|value| format!(": {}", quantity::value(unit, value)));
    match (value, ceiling.provenance) {
        // Some names say so themselves, and why.
        (None, Provenance::Unknown) if name.contains("known") => name.to_owned(),
        (None, Provenance::Unknown) => format!("{name}: not known"),
        (value, origin) => format!("{name}{} ({})", value.unwrap_or_default(), provenance(origin)),
    }
}

/// The figure that may be printed: never one that cannot be true.
pub(crate) fn figure(outcome: &Outcome) -> Option<f64> {
    match outcome.status {
        Status::Invalid | Status::Failed | Status::Unsupported => None,
        _ => outcome.median.filter(|median| median.is_finite()),
    }
}

/// The latencies of single operations that may be told: those of a row with a figure.
pub(crate) fn latency(outcome: &Outcome) -> Option<&Latency> {
    outcome.latency.as_ref().filter(|_| figure(outcome).is_some())
}

/// What stands in place of a figure.
pub(crate) fn no_figure(status: Status) -> &'static str {
    match status {
        Status::Ok | Status::Unstable | Status::Degraded => "no figure",
        other => state(other),
    }
}

/// What a figure of this unit is.
pub(crate) fn figure_noun(unit: &str) -> &'static str {
    match unit {
        "ns" | "s" => "time",
        "IOPS" => "rate",
        unit if unit.ends_with("/s") => "rate",
        _ => "figure",
    }
}

/// What a status means for whoever reads the row.
pub(crate) fn tone(status: Status) -> Tone {
    match status {
        Status::Ok => Tone::Plain,
        Status::Failed | Status::Invalid => Tone::Bad,
        Status::Unsupported | Status::Interrupted => Tone::Dim,
        Status::Unstable | Status::Degraded => Tone::Warn,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parameters_read_like_words() {
        let row = json!({"threads": 2, "block_bytes": 4096, "engine": "mmap", "depth": 8,
            "cache_state": "hot", "pinned": false, "pause_ns": 1500, "share_ratio": 0.5, "files": 1});
        assert_eq!(
            parameters(row.as_object().unwrap()),
            "mmap, warm, 4 KiB, 2 threads, depth 8, not pinned, 1 file, pause 1.50 µs, share 50.0 %"
        );
        assert_eq!(parameter("state", &json!("as_it_is")), "cache as it is");
        assert_eq!(parameter("state", &json!("cold")), "cold");
        assert_eq!(parameter("iodepth", &json!("32")), "iodepth 32", "of fio");
    }

    #[test]
    fn parameters_of_a_disk_read_like_words() {
        let row = json!({"until": "durable", "extents": "fresh", "read_share": 0.7,
            "rate_operations_per_s": 5000, "directories": "many", "depth": 1});
        assert_eq!(
            parameters(row.as_object().unwrap()),
            "depth 1, rate 5.00 kop/s, read share 70 %, fsynced, fresh extents, \
             many directories"
        );
        assert_eq!(parameter("directories", &json!("one")), "one directory");
        assert_eq!(parameter("read_share", &json!(70)), "read share 70 %");
    }

    #[test]
    fn units_follow_from_the_key() {
        let texts = [
            ("cpu_ns_per_operation", json!(3900.0), "CPU per operation 3.90 µs"),
            ("cpu_s_per_gib", json!(0.289), "CPU per GiB 289 ms"),
            ("sustained_per_s", json!(2500.0), "sustained 2.50 k/s"),
            ("read_bytes_per_s", json!(1048576), "read 1.00 MiB/s"),
            ("disk_requests_per_request_ratio", json!(4.0), "disk requests per request 4"),
            ("knee_s", json!(12.0), "knee 12.0 s"),
            ("processes", json!(1), "1 process"),
            ("entries", json!(1), "1 entry"),
        ];
        for (key, value, expected) in texts {
            assert_eq!(parameter(key, &value), expected, "{key}");
        }
    }

    #[test]
    fn an_impossible_figure_is_not_printed() {
        let outcome = Outcome { status: Status::Invalid, median: Some(1e12), ..Outcome::default() };
        assert_eq!(figure(&outcome), None);
        assert_eq!(no_figure(outcome.status), "invalid");
        assert_eq!(word(Status::Unstable, None), "few trials");
        assert_eq!(word(Status::Unstable, Some([1.0, 2.0])), "noisy");
    }
}
