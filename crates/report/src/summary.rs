//! One outcome as aligned pairs of key and value: what `flatout read` and `flatout write` show.
//!
//! Known keys come first, in the order in which a reader asks; whatever else the outcome holds
//! follows generically. Values are not wrapped, so that a path can be copied.

use flatout_measure::record::{Outcome, Status};
use serde_json::{Map, Value};

use crate::{label, quantity, text};

/// Parameters in order, with the heading of each.
const PARAMETERS: [(&str, &str); 7] = [
    ("file", "file"),
    ("block_bytes", "block size"),
    ("threads", "threads"),
    ("split", "split"),
    ("engine", "engine"),
    ("caching", "caching"),
    ("depth", "depth"),
];

/// Facts that stand before the rate.
const FACTS_BEFORE: [(&str, &str); 4] = [
    ("bytes", "bytes"),
    ("blocks", "blocks"),
    ("block_shortfall", "block shortfall"),
    ("seconds", "seconds"),
];

/// Facts that stand after the rate. The reasons stand with engine and caching where these exist.
const FACTS_AFTER: [(&str, &str); 8] = [
    ("passes", "passes"),
    ("digest_xor32", "digest"),
    ("engine_reason", "engine reason"),
    ("caching_reason", "caching reason"),
    ("time_to_cache_s", "time to cache"),
    ("time_to_durable_s", "time to durable"),
    ("rate_durable", "rate durable"),
    ("ended_early", "ended early"),
];

/// The outcome as lines `key  value`, keys in one column, each ended by a line feed.
pub fn summary(outcome: &Outcome) -> String {
    let pairs = pairs(outcome);
    let widest = pairs.iter().map(|(key, _)| text::width(key)).max().unwrap_or(0);
    let line = |(key, value): &(String, String)| {
        format!("{}  {value}", text::pad_right(key, widest)).trim_end().to_owned() + "\n"
    };
    pairs.iter().map(line).collect()
}

/// Key and value of everything that an outcome tells, safe to show, in the order of reading.
pub(crate) fn pairs(outcome: &Outcome) -> Vec<(String, String)> {
    let mut lines = Lines::default();
    lines.parameters(outcome);
    for (key, heading) in FACTS_BEFORE {
        lines.fact(heading, key, outcome.audit.get(key));
    }
    lines.figure(outcome);
    for (key, heading) in FACTS_AFTER {
        let reason_shown =
            key.strip_suffix("_reason").is_some_and(|of| outcome.parameters.contains_key(of));
        if !reason_shown {
            lines.fact(heading, key, outcome.audit.get(key));
        }
    }
    let known = |key: &str| FACTS_BEFORE.iter().chain(&FACTS_AFTER).any(|(known, _)| *known == key);
    for (key, value) in outcome.audit.iter().filter(|(key, _)| !known(key)) {
        lines.fact(&label::noun(key), key, Some(value));
    }
    lines.doubts(outcome);
    lines.pairs
}

#[derive(Default)]
struct Lines {
    pairs: Vec<(String, String)>,
}

impl Lines {
    fn push(&mut self, key: &str, value: &str) {
        self.pairs.push((text::visible(key), text::visible(value)));
    }

    fn fact(&mut self, heading: &str, key: &str, value: Option<&Value>) {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            self.push(heading, &fact_text(key, value));
        }
    }

    fn parameters(&mut self, outcome: &Outcome) {
        let parameters = &outcome.parameters;
        for (key, heading) in PARAMETERS {
            let Some(value) = parameters.get(key) else { continue };
            let text = fact_text(key, value);
            match outcome.audit.get(&format!("{key}_reason")).and_then(Value::as_str) {
                Some(reason) => self.push(heading, &format!("{text} ({reason})")),
                None => self.push(heading, &text),
            }
        }
        let known = |key: &str| PARAMETERS.iter().any(|(known, _)| *known == key);
        for (key, value) in label::ordered(parameters).into_iter().filter(|(key, _)| !known(key)) {
            self.push(&label::noun(key), &label::plain(key, value));
        }
    }

    fn figure(&mut self, outcome: &Outcome) {
        let unit = outcome.unit.as_str();
        if let Some(median) = label::figure(outcome) {
            let text = quantity::value(unit, median);
            let heading = if unit.ends_with("/s") { "rate" } else { "time" };
            if outcome.n > 1 {
                self.push(heading, &format!("{text} (median)"));
                self.spread(outcome, median);
            } else {
                self.push(heading, &text);
            }
            if let Some(ceiling) = &outcome.ceiling {
                let share = ceiling.ratio.map_or("unknown share".to_owned(), quantity::percent);
                let value = ceiling
                    .value
                    .map_or_else(String::new, |v| format!(", {}", quantity::value(unit, v)));
                let origin = label::provenance(ceiling.provenance);
                self.push("ceiling", &format!("{share} of {}{value} ({origin})", ceiling.name));
                if !ceiling.limiter.is_empty() {
                    self.push("limited by", &ceiling.limiter);
                }
            }
        }
        if let Some(latency) = &outcome.latency {
            let words: Vec<String> = latency
                .percentiles_ns
                .iter()
                .filter_map(|(name, ns)| {
                    Some(format!("{name} {}", quantity::value("ns", ns.as_f64()?)))
                })
                .collect();
            self.push("latency", &format!("{} ({} loop)", words.join(", "), latency.loop_kind));
        }
    }

    /// Interval, number of samples and extremes, in the unit of the median.
    fn spread(&mut self, outcome: &Outcome, median: f64) {
        let scale = quantity::Scale::of(&outcome.unit, median);
        if let Some([low, high]) = outcome.ci95 {
            let half = quantity::half_width(median, [low, high]).map_or_else(String::new, |half| {
                format!(", half-width ± {}", quantity::percent(half))
            });
            self.push(
                "interval",
                &format!("{} to {} (95 %{half})", scale.number(low), scale.text(high)),
            );
        }
        self.push("n", &quantity::count(outcome.n));
        let extreme = |pick: fn(f64, f64) -> f64| outcome.samples.iter().copied().reduce(pick);
        if let (Some(min), Some(max)) = (extreme(f64::min), extreme(f64::max)) {
            self.push("min", &scale.text(min));
            self.push("max", &scale.text(max));
        }
    }

    fn doubts(&mut self, outcome: &Outcome) {
        if outcome.status != Status::Ok {
            self.push("status", label::status(outcome.status));
        }
        for warning in &outcome.warnings {
            self.push("warning", &format!("{}: {}", warning.code, warning.text));
        }
    }
}

/// A value with the spelling that a summary wants for its key.
fn fact_text(key: &str, value: &Value) -> String {
    match (key, value) {
        ("digest_xor32", Value::String(hex)) => match u32::from_str_radix(hex, 16) {
            Ok(digest) => format!("xor32 {hex} ({digest})"),
            Err(_) => format!("xor32 {hex}"),
        },
        ("seconds", Value::Number(number)) => match number.as_f64() {
            Some(seconds) if seconds >= 1.0 => format!("{seconds:.3}"),
            Some(seconds) => quantity::number(seconds),
            None => number.to_string(),
        },
        ("block_bytes", Value::Number(_)) => label::plain(key, value),
        (_, Value::Number(number)) if label::unit_of(key) == "bytes" => match number.as_u64() {
            Some(bytes) => quantity::bytes(bytes),
            None => label::plain(key, value),
        },
        (_, Value::Object(members)) => object_text(members),
        _ => label::plain(key, value),
    }
}

fn object_text(members: &Map<String, Value>) -> String {
    let words: Vec<String> = members
        .iter()
        .map(|(key, value)| format!("{} {}", label::noun(key), fact_text(key, value)))
        .collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_digest_is_shown_in_hex_and_decimal() {
        assert_eq!(fact_text("digest_xor32", &json!("5e1d0c3a")), "xor32 5e1d0c3a (1578961978)");
        assert_eq!(fact_text("digest_xor32", &json!("none")), "xor32 none");
    }

    #[test]
    fn unknown_facts_are_printed_too() {
        let audit =
            json!({"cache_ratio": 0.5, "bytes": 2048, "device": {"bytes": 10, "merged": 3}});
        let outcome = Outcome { audit: audit.as_object().cloned().unwrap(), ..Outcome::default() };
        let expected =
            "bytes  2,048 bytes (2 KiB)\ncache  50.0 %\ndevice  bytes 10 bytes, merged 3\n";
        let found = summary(&outcome);
        let squeezed: Vec<String> =
            found.lines().map(|l| l.replacen("   ", "  ", 1).replacen("   ", "  ", 1)).collect();
        assert_eq!(squeezed.join("\n") + "\n", expected);
    }
}
