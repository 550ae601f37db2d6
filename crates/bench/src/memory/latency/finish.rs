//! What the curve says: in which level each row lives, and a row for each level.

use flatout_measure::record::{Better, Ceiling, Outcome, Provenance, Status};
use flatout_measure::warning::{self, Warning};
use flatout_measure::{ceiling, statistics};
use flatout_sys::chase::Pages;
use flatout_sys::cpu_cache::DataCache;
use serde_json::{Value, json};

use super::super::levels::{self, Level, Levels, MEMORY, Point};
use super::super::ring;
use super::{ID, LEVEL_ID};

/// Points from which on a curve shows levels; fewer are single rows.
const CURVE_POINTS: usize = 12;

/// Finds the levels in the rows of the curve, writes into each row where it lives, and adds a row
/// for each level that was seen.
///
/// The curve on huge pages counts; where there is none, that on base pages, whose end translation
/// makes slower. Without enough points the levels are what the CPU declares.
pub fn finish(outcomes: &mut Vec<Outcome>, caches: &[DataCache]) -> Levels {
    let huge = curve(outcomes, ring::page_bytes(Pages::Huge));
    let base = curve(outcomes, ring::page_bytes(Pages::Base));
    let curve = if huge.len() >= CURVE_POINTS { &huge } else { &base };
    let levels = if curve.len() >= CURVE_POINTS {
        levels::detect(curve, caches)
    } else {
        Levels::declared(caches)
    };
    for outcome in outcomes.iter_mut().filter(|outcome| outcome.id == ID) {
        describe(outcome, &levels);
    }
    let is_huge = huge.len() >= CURVE_POINTS;
    let rows: Vec<Outcome> = levels
        .levels
        .iter()
        .filter(|level| level.latency_ns.is_some())
        .map(|level| level_row(level, curve, &levels, is_huge))
        .collect();
    outcomes.extend(rows);
    levels
}

/// The points on pages of `page_bytes` that have a figure, working sets ascending.
fn curve(outcomes: &[Outcome], page_bytes: u64) -> Vec<Point> {
    let number = |outcome: &Outcome, key: &str| outcome.parameters.get(key).and_then(Value::as_u64);
    let mut points: Vec<Point> = outcomes
        .iter()
        .filter(|outcome| outcome.id == ID && number(outcome, "page_bytes") == Some(page_bytes))
        .filter_map(|outcome| {
            let working_set_bytes = number(outcome, "working_set_bytes")?;
            Some(Point { working_set_bytes, latency_ns: outcome.median? })
        })
        .collect();
    points.sort_by_key(|point| point.working_set_bytes);
    points
}

fn describe(outcome: &mut Outcome, levels: &Levels) {
    let bytes = outcome.parameters.get("working_set_bytes").and_then(Value::as_u64);
    let level = bytes.and_then(|bytes| levels.of(bytes));
    let name = level.map_or("unknown", |level| level.name);
    outcome.audit.insert("level".to_owned(), json!(name));
    let text = provenance(level.map_or(Provenance::Unknown, |level| level.provenance));
    outcome.audit.insert("level_provenance".to_owned(), json!(text));
    ceiling::apply(outcome, unknown(limiter(name)));
}

fn provenance(provenance: Provenance) -> &'static str {
    match provenance {
        Provenance::Measured => "measured",
        Provenance::Cpuid => "cpuid",
        _ => "unknown",
    }
}

/// No derivation gives the least latency of a cache or of memory.
fn unknown(limiter: String) -> Ceiling {
    let name = "none is known: the curve is its own measure".to_owned();
    Ceiling { name, limiter, ..Ceiling::default() }
}

fn limiter(level: &str) -> String {
    match level {
        MEMORY => "latency of memory".to_owned(),
        "unknown" => "unknown".to_owned(),
        cache => format!("latency of {cache}"),
    }
}

/// A row for a level: its latency is the median of the flat stretch of the curve, whose points are
/// the samples.
fn level_row(level: &Level, curve: &[Point], levels: &Levels, is_huge: bool) -> Outcome {
    let latency_ns = level.latency_ns.unwrap_or(f64::NAN);
    // The points of the level without those of the climbs at both ends.
    let lives = |point: &&Point| {
        levels.of(point.working_set_bytes).is_some_and(|of| of.name == level.name)
            && (point.latency_ns / latency_ns).log2().abs() < 0.5
    };
    let samples: Vec<f64> = curve.iter().filter(lives).map(|point| point.latency_ns).collect();
    let mut outcome = Outcome {
        id: LEVEL_ID.to_owned(),
        unit: "ns".to_owned(),
        better: Better::Lower,
        median: Some(latency_ns),
        ci95: statistics::median_interval(&samples)
            .filter(|[low, high]| (*low..=*high).contains(&latency_ns)),
        n: samples.len() as u64,
        samples,
        status: Status::Ok,
        ..Outcome::default()
    };
    outcome.parameters.insert("level".to_owned(), json!(level.name));
    let facts = [
        ("measured_bytes", level.bytes.map(|bytes| json!(bytes))),
        ("declared_bytes", level.declared_bytes.map(|bytes| json!(bytes))),
        (
            "page_bytes",
            Some(json!(ring::page_bytes(if is_huge { Pages::Huge } else { Pages::Base }))),
        ),
        ("samples_are", Some(json!("the medians of the working sets of its flat stretch"))),
    ];
    for (key, value) in facts {
        if let Some(value) = value {
            outcome.audit.insert(key.to_owned(), value);
        }
    }
    doubts(&mut outcome, level, is_huge);
    ceiling::apply(&mut outcome, unknown(limiter(level.name)));
    outcome
}

fn doubts(outcome: &mut Outcome, level: &Level, is_huge: bool) {
    if let (Some(measured), Some(declared)) = (level.bytes, level.declared_bytes)
        && (measured as f64 / declared as f64).log2().abs() > 1.0
    {
        let text = format!(
            "the curve leaves {} at {measured} bytes, the CPU declares {declared}: others use the \
             cache, or this machine has a part of it",
            level.name
        );
        warning::add(&mut outcome.warnings, Warning::new(warning::CACHE_DIFFERS, text));
    }
    if !is_huge {
        let text = "found on base pages, because there are no pages of 2 MiB: translation is part of \
                    the latency";
        warning::add(&mut outcome.warnings, Warning::new(warning::NO_HUGE_PAGES, text));
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::fixture::caches;
    use super::*;

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;

    fn row(working_set_bytes: u64, page_bytes: u64, latency_ns: f64) -> Outcome {
        let mut outcome = Outcome {
            id: ID.to_owned(),
            better: Better::Lower,
            median: Some(latency_ns),
            ..Outcome::default()
        };
        outcome.parameters.insert("working_set_bytes".to_owned(), working_set_bytes.into());
        outcome.parameters.insert("page_bytes".to_owned(), page_bytes.into());
        outcome
    }

    /// 32 KiB at 2 ns, 1 MiB at 6 ns, memory at 100 ns.
    fn rows(page_bytes: u64) -> Vec<Outcome> {
        let latency = |bytes: u64| match bytes {
            0..=32_768 => 2.0,
            32_769..=1_048_576 => 6.0,
            _ => 100.0,
        };
        (10..=30).map(|log2| row(1 << log2, page_bytes, latency(1 << log2))).collect()
    }

    #[test]
    fn levels_become_rows_with_both_sizes() {
        let mut outcomes = rows(2 * MIB);
        outcomes.extend(rows(4 * KIB));
        let levels = finish(&mut outcomes, &caches(&[32 * KIB, 4 * MIB]));
        assert_eq!(levels.levels.len(), 3);
        let found: Vec<&Outcome> = outcomes.iter().filter(|row| row.id == LEVEL_ID).collect();
        let latencies: Vec<_> = found.iter().map(|row| row.median.unwrap()).collect();
        assert_eq!(latencies, [2.0, 6.0, 100.0]);
        assert_eq!(found[1].audit["measured_bytes"], json!(MIB));
        assert_eq!(found[1].audit["declared_bytes"], json!(4 * MIB));
        assert_eq!(found[1].warnings[0].code, warning::CACHE_DIFFERS);
        assert!(found[0].warnings.is_empty() && found[2].warnings.is_empty());
        assert_eq!((found[0].n, found[2].n), (6, 10));
        assert_eq!(found[2].audit.get("measured_bytes"), None);
        let level = |row: &Outcome| row.audit["level"].as_str().unwrap().to_owned();
        assert_eq!((level(&outcomes[0]), level(&outcomes[20])), ("L1".into(), "DRAM".into()));
        assert_eq!(outcomes[0].ceiling.as_ref().unwrap().value, None);
    }

    #[test]
    fn base_pages_serve_where_there_are_no_huge_ones() {
        let mut outcomes = rows(4 * KIB);
        let mut refused = row(KIB, 2 * MIB, 1.0);
        refused.median = None;
        outcomes.push(refused);
        let levels = finish(&mut outcomes, &[]);
        assert_eq!(levels.levels.len(), 3);
        let row = outcomes.iter().find(|row| row.id == LEVEL_ID).unwrap();
        assert_eq!(row.warnings[0].code, warning::NO_HUGE_PAGES);
    }

    #[test]
    fn a_few_points_are_named_by_what_the_cpu_says() {
        let mut outcomes = vec![row(16 * KIB, 2 * MIB, 2.0), row(256 * MIB, 2 * MIB, 99.0)];
        let levels = finish(&mut outcomes, &caches(&[32 * KIB, MIB]));
        assert_eq!(levels, Levels::declared(&caches(&[32 * KIB, MIB])));
        assert_eq!(outcomes.len(), 2);
        assert_eq!(outcomes[0].audit["level"], json!("L1"));
        assert_eq!(outcomes[1].audit["level"], json!("DRAM"));
        assert_eq!(outcomes[0].audit["level_provenance"], json!("cpuid"));
    }
}
