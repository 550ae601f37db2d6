//! One outcome as aligned pairs of key and value: what `flatout read` and `flatout write` show.
//!
//! Known keys come first, in the order in which a reader asks; whatever else the outcome holds
//! follows generically. Values are not wrapped, so that a path can be copied.

use flatout_measure::evidence::{EVIDENCE, Evidence};
use flatout_measure::record::{Outcome, Status};
use flatout_measure::sampler::fact;
use flatout_measure::{statistics, warning};
use serde_json::Value;

use crate::page::{trials, units};
use crate::text::{self, Joined};
use crate::{label, quantity};

/// Parameters in order.
const PARAMETERS: &str = "file block_bytes threads split engine caching depth state";
/// Facts that stand before the rate.
const FACTS_BEFORE: &str = "bytes blocks seconds";
/// Facts that stand after the rate. The reasons stand with engine and caching where these exist.
const FACTS_AFTER: &str = "passes digest_xor32 engine_reason time_to_cache_s \
    rate_to_cache time_to_durable_s rate_durable ended_early cached_before_bytes \
    cached_after_bytes device_read_bytes device_write_bytes size_found_bytes";

/// What stands before the value of a key.
fn heading(key: &str, outcome: &Outcome) -> String {
    match key {
        "rate_to_cache" | "time_to_cache_s" if goes_around(outcome) => {
            label::noun(&key.replace("cache", "device"))
        }
        "block_bytes" => "block size".to_owned(),
        "state" => "cache state".to_owned(),
        "digest_xor32" => "digest".to_owned(),
        "device_write_bytes" => "device written".to_owned(),
        "others" => "symlinks, FIFOs, devices".to_owned(),
        "retried" => "copied again, written meanwhile".to_owned(),
        "unwritten_bytes" if label::area(&outcome.id) == "copy" => {
            "not on disk yet, at most".to_owned()
        }
        key => label::noun(&key.replace("by_method", "by_engine")),
    }
}

/// Facts that are told in other words: what the harness took, and what became of the trials; the
/// outliers, of which a warning tells; and trials one by one, which have a table.
const FACTS_MERGED: [&str; 12] = [
    "harness_ns_per_block",
    fact::HARNESS_OVERHEAD_NS.name(),
    fact::OUTLIER_INDICES.name(),
    fact::OVERHEAD_RATIO.name(),
    fact::TRIALS_RUN.name(),
    fact::WARMUP_DROPPED.name(),
    fact::WARMUP_SAMPLES.name(),
    fact::INTERVALS_SPOILED.name(),
    fact::INTERVALS_DISTURBED.name(),
    fact::SPOIL_REASONS.name(),
    fact::USE_OF_CPUS.name(),
    trials::KEY,
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
    FACTS_BEFORE.split(' ').for_each(|key| lines.fact(key, outcome));
    lines.figure(outcome);
    lines.trials(outcome);
    for key in FACTS_AFTER.split(' ') {
        if !is_told_elsewhere(key, outcome) {
            lines.fact(key, outcome);
        }
    }
    let is_known = |key: &str| {
        let lists = [FACTS_BEFORE, FACTS_AFTER];
        lists.iter().any(|list| text::is_among(key, list)) || FACTS_MERGED.contains(&key)
    };
    let others = outcome.audit.keys().filter(|key| !is_known(key));
    others.for_each(|key| lines.fact(key, outcome));
    lines.harness(outcome);
    lines.warnings(outcome);
    lines.pairs
}

/// Whether another line says it already: a reason beside its parameter, a rate as the figure.
fn is_told_elsewhere(key: &str, outcome: &Outcome) -> bool {
    let told = key.strip_suffix("_reason").is_some_and(|of| outcome.parameters.contains_key(of));
    let fact = || outcome.fact_number(key);
    told || key.starts_with("rate_") && fact().is_some() && fact() == label::figure(outcome)
}

/// Whether the bytes went around the page cache.
fn goes_around(outcome: &Outcome) -> bool {
    outcome.parameters.get("caching").is_some_and(|caching| *caching == "direct")
}

/// Where the bytes of a write were when its clock stopped.
fn reach(outcome: &Outcome) -> Option<&'static str> {
    let durable = outcome.audit.contains_key("time_to_durable_s");
    let reach = match warning::has(&outcome.warnings, warning::MEMORY_FILESYSTEM) {
        true => "in memory",
        false if durable => "durable",
        false if goes_around(outcome) => "to device",
        false => "to cache",
    };
    (label::area(&outcome.id) == "write").then_some(reach)
}

#[derive(Default)]
struct Lines {
    pairs: Vec<(String, String)>,
}

impl Lines {
    fn push(&mut self, key: &str, value: &str) {
        self.pairs.push((text::visible(key), text::visible(value)));
    }

    fn fact(&mut self, key: &str, outcome: &Outcome) {
        let Some(value) = outcome.audit.get(key).filter(|value| !value.is_null()) else { return };
        if key == EVIDENCE.name() {
            self.evidence(outcome);
        } else if key == fact::BETWEEN_RUNS.name() {
            self.between_runs(value);
        } else if key.starts_with("figure_") || units::FIGURES.iter().any(|of| of.name() == key) {
            self.push(&heading(key, outcome), &figures_text(value, &outcome.unit));
        } else {
            self.push(&heading(key, outcome), &fact_text(key, value));
        }
    }

    /// Whether it happened where its name says, and what shows it.
    fn evidence(&mut self, outcome: &Outcome) {
        if let Some(evidence) = Evidence::of(outcome) {
            self.push("happened", &format!("{}: {}", evidence.happened.name(), evidence.text));
        }
    }

    /// By how much runs differ beyond what trials show, and where that is from; nothing where nothing is known.
    fn between_runs(&mut self, known: &Value) {
        let deviation = known["deviation"].as_f64().unwrap_or(0.0);
        let origin = match (known["source"].as_str(), known["runs"].as_u64()) {
            (Some("learned"), Some(runs)) => {
                format!("learned from {}", quantity::counted(runs as usize, "run"))
            }
            (Some("assumed"), _) if deviation == 0.0 => return,
            (source, _) => source.unwrap_or("of unknown origin").to_owned(),
        };
        let text = format!(
            "differ by {} ({origin}), which the interval counts in",
            quantity::percent(deviation)
        );
        self.push("between runs", &text);
    }

    /// What became of several trials; of a single one there is nothing to say.
    fn trials(&mut self, outcome: &Outcome) {
        let count = |key: &str| outcome.fact_count(key);
        if outcome.n < 2 && count(fact::TRIALS_RUN.name()).unwrap_or(0) < 2 {
            return;
        }
        let mut text = format!("{} counted", quantity::count(outcome.n));
        for (key, before, after) in [
            (fact::INTERVALS_DISTURBED, " (", " of them disturbed)"),
            (fact::WARMUP_DROPPED, ", ", " dropped as warm-up"),
            (fact::INTERVALS_SPOILED, ", ", " discarded"),
        ] {
            let told = |trials| format!("{before}{}{after}", quantity::count(trials));
            text += &count(key.name()).map(told).unwrap_or_default();
        }
        if let Some(reasons) = outcome.audit.get(fact::SPOIL_REASONS.name()) {
            text.push_str(&format!(" ({})", fact_text(fact::SPOIL_REASONS.name(), reasons)));
        }
        self.push("trials", &text);
        if let Some(samples) = outcome.audit.get(fact::WARMUP_SAMPLES.name()) {
            self.push("warm-up", &figures_text(samples, &outcome.unit));
        }
    }

    /// The share of the time that measuring took.
    fn harness(&mut self, outcome: &Outcome) {
        if let Some(share) = outcome.fact_number(fact::OVERHEAD_RATIO.name()) {
            self.push("overhead", &format!("{} of the time", quantity::percent(share)));
        }
    }

    fn parameters(&mut self, outcome: &Outcome) {
        let parameters = &outcome.parameters;
        for key in PARAMETERS.split(' ') {
            let Some(value) = parameters.get(key) else { continue };
            let reason = outcome.fact_text(&format!("{key}_reason")).unwrap_or_default();
            self.push(&heading(key, outcome), &text::with_aside(&fact_text(key, value), reason));
        }
        let others = label::ordered(parameters).into_iter();
        for (key, value) in others.filter(|(key, _)| !text::is_among(key, PARAMETERS)) {
            self.push(&label::noun(key), &label::plain(key, value));
        }
    }

    fn figure(&mut self, outcome: &Outcome) {
        let unit = outcome.unit.as_str();
        if let Some(median) = label::figure(outcome) {
            let text = quantity::value(unit, median);
            let heading = label::figure_noun(unit);
            let middle = (outcome.n > 1).then_some("median");
            let words = reach(outcome).into_iter().chain(middle).joined(", ");
            self.push(heading, &text::with_aside(&text, &words));
            if outcome.n > 1 {
                self.spread(outcome, median);
            }
            if let Some(ceiling) = &outcome.ceiling {
                let bound = label::bound(ceiling, unit);
                let share = ceiling.ratio.map(|ratio| format!("{} of ", quantity::percent(ratio)));
                let text = format!("{}{bound}", share.unwrap_or_default());
                self.push("ceiling", &text);
                if !ceiling.limiter.is_empty() {
                    self.push("limited by", &ceiling.limiter);
                }
            }
        }
        if let Some(latency) = label::latency(outcome) {
            let word = |(name, ns): (&String, &Value)| {
                Some(format!("{name} {}", quantity::value("ns", ns.as_f64()?)))
            };
            // Of few operations no percentile is told.
            let ends = [("min", latency.min_ns), ("max", latency.max_ns)];
            let [min, max] = ends.map(|(name, ns)| format!("{name} {}", quantity::value("ns", ns)));
            let told = latency.percentiles_ns.iter().filter_map(word);
            let words = std::iter::once(min).chain(told).chain([max]).joined(", ");
            self.push("latency", &format!("{words} ({} loop)", latency.loop_kind));
        }
    }

    /// Interval and extremes, in the unit of the median.
    fn spread(&mut self, outcome: &Outcome, median: f64) {
        let scale = quantity::Scale::of(&outcome.unit, median);
        if let Some([low, high]) = outcome.ci95 {
            let half = outcome.half_width().map_or_else(String::new, |half| {
                format!(", half-width ± {}", quantity::half(half))
            });
            self.push(
                "interval",
                &format!("{} to {} (95 %{half})", scale.number(low), scale.text(high)),
            );
        }
        if let Some((min, max)) = statistics::extremes(&outcome.samples) {
            self.push("min", &scale.text(min));
            self.push("max", &scale.text(max));
        }
    }

    fn warnings(&mut self, outcome: &Outcome) {
        if outcome.status != Status::Ok {
            self.push("status", label::state(outcome.status));
        }
        for warning in &outcome.warnings {
            self.push("warning", &format!("{}: {}", warning.code, warning.text));
        }
    }
}

/// Figures of a row, one or several, in its unit.
fn figures_text(value: &Value, unit: &str) -> String {
    let all = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    let numbers: Vec<f64> = all.iter().filter_map(Value::as_f64).collect();
    let scale = quantity::Scale::of_all(unit, numbers.iter().copied());
    numbers.iter().map(|number| scale.text(*number)).joined(", ")
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
        ("state", Value::String(state)) => state.replace('_', " "),
        _ => label::spelled(key, value, quantity::bytes),
    }
}

#[cfg(test)]
mod tests {
    use flatout_measure::record::Latency;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_copy_counts_is_told_in_words_that_its_options_have() {
        let audit = [("others", 1), ("retried", 0), ("unwritten_bytes", 2)];
        let audit = audit.map(|(key, count)| (key.to_owned(), json!(count)));
        let of = |id: &str| {
            let audit = audit.clone().into_iter().collect();
            let pairs = pairs(&Outcome { id: id.to_owned(), audit, ..Outcome::default() });
            pairs.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
        };
        let told = of("copy/total");
        for key in ["symlinks, FIFOs, devices", "copied again, written meanwhile"] {
            assert!(told.iter().any(|known| known == key), "{told:?}");
        }
        assert!(told.contains(&"not on disk yet, at most".to_owned()), "{told:?}");
        assert!(of("read/total").contains(&"unwritten".to_owned()));
    }

    #[test]
    fn a_digest_is_shown_in_hex_and_decimal() {
        assert_eq!(fact_text("digest_xor32", &json!("5e1d0c3a")), "xor32 5e1d0c3a (1578961978)");
        assert_eq!(fact_text("digest_xor32", &json!("none")), "xor32 none");
    }

    #[test]
    fn runs_differ_by_what_is_known_and_nothing_is_said_where_nothing_is() {
        let told = |known: Value| {
            let mut lines = Lines::default();
            lines.between_runs(&known);
            lines.pairs.pop().map(|(_, text)| text)
        };
        assert_eq!(told(json!({"source": "assumed", "deviation": 0.0})), None);
        assert_eq!(
            told(json!({"source": "assumed", "deviation": 0.2})).unwrap(),
            "differ by 20 % (assumed), which the interval counts in"
        );
        assert_eq!(
            told(json!({"source": "learned", "deviation": 0.05, "runs": 4})).unwrap(),
            "differ by 5.0 % (learned from 4 runs), which the interval counts in"
        );
    }

    #[test]
    fn unknown_facts_are_printed_too() {
        let audit = json!({"cache_ratio": 0.5, "bytes": 2048, "device": {"bytes": 10, "merged": 3},
                "figure_alone": 108.02});
        let (audit, unit) = (audit.as_object().cloned().unwrap(), "ns".to_owned());
        let outcome = Outcome { audit, unit, ..Outcome::default() };
        let expected = "bytes 2,048 bytes (2 KiB) cache 50.0 % \
            device bytes 10 bytes, merged 3 figure alone 108 ns";
        assert_eq!(summary(&outcome).split_whitespace().joined(" "), expected);
    }

    #[test]
    fn latencies_of_few_operations_have_their_ends() {
        let latency = Latency {
            loop_kind: "closed".to_owned(),
            operations: 3,
            min_ns: 1e3,
            max_ns: 2e6,
            ..Latency::default()
        };
        let latency = Some(latency);
        let outcome = Outcome { median: Some(1.0), latency, ..Outcome::default() };
        let found = summary(&outcome);
        assert_eq!(line(&found, "latency"), Some("min 1.00 µs, max 2.00 ms (closed loop)"));
    }

    fn of(id: &str, median: f64, n: u64, audit: Value) -> String {
        let audit = audit.as_object().cloned().unwrap();
        let (id, unit) = (id.to_owned(), "bytes/s".to_owned());
        let samples = vec![median; n as usize];
        let median = Some(median);
        summary(&Outcome { id, unit, median, n, samples, audit, ..Outcome::default() })
    }

    fn line<'a>(summary: &'a str, key: &str) -> Option<&'a str> {
        summary.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix("  ")).map(str::trim)
    }

    #[test]
    fn the_cost_of_the_harness_is_one_line() {
        let audit = json!({"harness_ns_per_block": 2.3, "overhead_ratio": 0.0004});
        let found = of("read/file", 1e9, 1, audit);
        assert_eq!(line(&found, "overhead"), Some("0.04 % of the time"));
        assert!(!found.contains("harness"), "{found}");
    }

    #[test]
    fn a_single_trial_says_nothing_about_trials() {
        let audit = json!({"trials_run": 1, "warmup_dropped": 0, "intervals_spoiled": 0});
        let found = of("read/file", 1e9, 1, audit);
        assert!(["trials", "warm", "spoiled"].iter().all(|word| !found.contains(word)), "{found}");
        let audit = json!({"trials_run": 9, "warmup_dropped": 1, "intervals_spoiled": 2,
            "spoil_reasons": {"preempted": 2}, "warmup_samples": [1048576.0]});
        let found = of("read/file", 1e9, 6, audit);
        let expected = "6 counted, 1 dropped as warm-up, 2 discarded (preempted 2)";
        assert_eq!(line(&found, "trials"), Some(expected));
        assert_eq!(line(&found, "warm-up"), Some("1.00 MiB/s"));
    }

    #[test]
    fn the_rate_of_a_write_says_how_far_the_bytes_came() {
        let rates =
            json!({"rate_to_cache": 4e6, "time_to_durable_s": 1.0, "rate_durable": 2097152.0});
        let found = of("write/file", 2097152.0, 1, rates);
        assert_eq!(line(&found, "rate         "), Some("2.00 MiB/s (durable)"));
        assert!(found.contains("rate to cache") && !found.contains("rate durable"), "{found}");
        let found = of("write/file", 2097152.0, 1, json!({"rate_to_cache": 2097152.0}));
        assert_eq!(found, "rate  2.00 MiB/s (to cache)\n");
        let audit = json!({"rate_to_cache": 4e6, "time_to_cache_s": 1.0});
        let around = Outcome {
            id: "write/file".to_owned(),
            unit: "bytes/s".to_owned(),
            median: Some(2097152.0),
            parameters: json!({"caching": "direct"}).as_object().cloned().unwrap(),
            audit: audit.as_object().cloned().unwrap(),
            ..Outcome::default()
        };
        let found = summary(&around);
        assert!(found.contains("rate to device") && found.contains("(to device)"), "{found}");
        assert!(found.contains("time to device") && !found.contains("to cache"), "{found}");
    }

    #[test]
    fn what_shows_that_it_happened_is_a_sentence() {
        let evidence = json!({"happened": "unknown", "by": "moved_ratio", "value": 0.5,
            "text": "the disk's account is shared"});
        let found = of("read/file", 1e9, 1, json!({ "evidence": evidence }));
        assert_eq!(line(&found, "happened"), Some("unknown: the disk's account is shared"));
    }

    #[test]
    fn the_state_of_the_cache_is_in_words() {
        let parameters = json!({"state": "as_it_is"}).as_object().cloned().unwrap();
        let outcome = Outcome { parameters, ..Outcome::default() };
        assert_eq!(summary(&outcome), "cache state  as it is\n");
    }
}
