//! What the curve says: the levels, and a row for each that was seen.

use flatout_measure::sampler::NOISY;
use flatout_measure::statistics::interval::Knowledge;
use flatout_measure::statistics::{interval, median};
use flatout_measure::{
    DERIVED_FROM, Facts, Label, Measured, Outcome, Provenance, Row, Status, Unit, Warning, blank,
    ceiling, size_text, warning,
};
use flatout_sys::chase::Pages;
use flatout_sys::cpu_cache::DataCache;

use super::super::fact;
use super::super::levels::{self, Level, Levels, Point};
use super::bound;
use super::ring::page_bytes;
use super::row::LatencyRow;
use crate::between_runs;

/// Points from which on a curve shows levels; fewer are single rows.
const CURVE_POINTS: usize = 12;

/// A level. Its latency is the median of its part of the curve, whose points are the samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LevelRow(&'static str);

impl Row for LevelRow {
    fn label(&self) -> Label {
        Label::new("memory/level", Unit::Nanoseconds)
            .with("level", self.0)
            .deviating_by(between_runs::LATENCY)
    }
}

/// The levels that the rows of the curve show, and a row for each that was seen.
///
/// The curve on huge pages counts; where there is none, that on base pages, whose end translation
/// makes slower. Without enough points the levels are what the CPU declares. Each point is the
/// quietest part of its walks, once of the first halves and once of the second.
pub(super) fn find(
    rows: &[Measured<LatencyRow>],
    caches: &[DataCache],
) -> (Levels, Vec<Measured<LevelRow>>) {
    let quietest = [fact::QUIETEST_FIRST_NS, fact::QUIETEST_SECOND_NS];
    let curves = |pages| quietest.map(|key| curve(rows, pages, |facts, _| facts.number(key)));
    let both = [Pages::Huge, Pages::Base].map(|pages| (pages, curves(pages)));
    let is_enough = |(_, [first, _]): &&(Pages, [Vec<Point>; 2])| first.len() >= CURVE_POINTS;
    let Some((pages, [first, second])) = both.iter().find(is_enough) else {
        return (Levels::declared(caches), Vec::new());
    };
    let is_loaded = |one: &Measured<LatencyRow>| {
        matches!(one.row, LatencyRow::Curve(_))
            && warning::has(&one.outcome.warnings, warning::LOCAL_LOAD)
    };
    let mut levels = levels::agreed(first, second, caches);
    levels.distrust_short(rows.iter().any(is_loaded));
    // The quietest moment of a cache is a hit; of memory, which takes now more and now less, it is luck.
    let quietest = levels::quietest(first, second);
    let usual = curve(rows, *pages, |_, median| Some(median));
    let longest = usual.last().map(|point| point.working_set_bytes);
    let last = levels.levels.iter().rev().find(|level| level.name != levels::MEMORY);
    let row = |level: &Level| {
        let samples = match level.name {
            levels::MEMORY => levels::behind(&usual, last),
            _ => hits(level, &quietest, &levels),
        };
        let mut row = level_row(level, samples, *pages);
        if level.name == levels::MEMORY && levels.largest_declared_bytes >= longest {
            let text = "no walk is longer than the last cache is declared, so that a part of them may be \
                        answered there: longer ones may take longer";
            row.outcome.warn(warning::CACHE_UNCLEAR, text);
        }
        row
    };
    let mut found: Vec<_> = levels.levels.iter().map(row).collect();
    // One in which no point lies, since caches that end early have their declared size, is not shown.
    found.retain(|level| level.outcome.n > 0);
    found.iter_mut().for_each(|level| conclude(level, rows, &levels, *pages));
    (levels, found)
}

/// The rows on such pages that have a figure, working sets ascending, with the latencies that `of` takes
/// from a row's facts and its figure.
fn curve(
    rows: &[Measured<LatencyRow>],
    pages: Pages,
    of: impl Fn(&Facts, f64) -> Option<f64>,
) -> Vec<Point> {
    let point = |measured: &Measured<LatencyRow>| match measured.row {
        LatencyRow::Curve(shape) if shape.pages == pages => Some(Point {
            working_set_bytes: shape.working_set_bytes,
            latency_ns: of(&measured.facts, measured.outcome.median?)?,
        }),
        _ => None,
    };
    let mut points: Vec<Point> = rows.iter().filter_map(point).collect();
    points.sort_by_key(|point| point.working_set_bytes);
    points
}

/// Gives a level its interval and its status: what speaks against a row of the curve that it is made of
/// speaks against it, but how wide its interval is says its own, of the quietest parts.
fn conclude(
    level: &mut Measured<LevelRow>,
    rows: &[Measured<LatencyRow>],
    levels: &Levels,
    pages: Pages,
) {
    let Measured { row, outcome, .. } = level;
    let is_of_level = |measured: &&Measured<LatencyRow>| match measured.row {
        LatencyRow::Curve(shape) => {
            let of = levels.of(shape.working_set_bytes);
            shape.pages == pages
                && measured.outcome.median.is_some()
                && of.is_some_and(|of| of.name == row.0)
        }
        _ => false,
    };
    for source in rows.iter().filter(is_of_level) {
        let mut source = source.outcome.clone();
        source.warnings.retain(|warning| warning.code != warning::UNSTABLE);
        if source.status == Status::Unstable {
            source.status = Status::Ok;
        }
        outcome.status = outcome.status.max(source.status);
        warning::add_all(&mut outcome.warnings, source.warnings);
    }
    let has = |code| warning::has(&outcome.warnings, code);
    let is_beside_others = has(warning::LOCAL_LOAD) || has(warning::STOLEN_TIME);
    let known = Knowledge {
        is_loaded: is_beside_others || has(warning::DISTURBED),
        is_beside_others,
        assumed_deviation: row.label().deviation_between_runs,
        ..Knowledge::default()
    };
    let figure = outcome.median.unwrap_or_default();
    outcome.ci95 = interval::of_runs(&outcome.samples, &known)
        .filter(|[low, high]| (*low..=*high).contains(&figure));
    if outcome.status != Status::Interrupted
        && outcome.half_width().is_none_or(|width| width > NOISY)
    {
        outcome.status = Status::Unstable;
    }
}

/// The points that live in a cache, without those of the climbs at both ends.
fn hits(level: &Level, curve: &[Point], levels: &Levels) -> Vec<f64> {
    let lives = |point: &&Point| {
        levels.of(point.working_set_bytes).is_some_and(|of| of.name == level.name)
            && level.latency_ns.is_some_and(|ns| (point.latency_ns / ns).log2().abs() < 0.5)
    };
    curve.iter().filter(lives).map(|point| point.latency_ns).collect()
}

fn level_row(level: &Level, samples: Vec<f64>, pages: Pages) -> Measured<LevelRow> {
    let row = LevelRow(level.name);
    let mut outcome = Outcome {
        median: median(&samples),
        n: samples.len() as u64,
        samples,
        warnings: warnings(level, pages),
        ..blank(&row)
    };
    let mut facts = Facts::default();
    let is_measured = level.provenance == Provenance::Measured;
    facts.set_known(fact::MEASURED_BYTES, level.bytes.filter(|_| is_measured));
    facts.set_known(fact::DECLARED_BYTES, level.declared_bytes);
    facts.set(fact::PAGE_BYTES, page_bytes(pages));
    facts.set(DERIVED_FROM, "memory/latency");
    let samples_are = match level.name {
        levels::MEMORY => "the figures of its working sets",
        _ => "the quietest parts of the walks through its working sets",
    };
    // What the samples of a row are that was not measured by trials of its own.
    facts.set("samples_are", samples_are);
    facts.set(fact::LEVEL_PROVENANCE, level.provenance.name());
    ceiling::apply(&mut outcome, bound::of_curve(level.name));
    Measured { row, outcome, facts, further: Vec::new() }
}

fn warnings(level: &Level, pages: Pages) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if level.provenance == Provenance::Cpuid {
        let text = match level.name {
            levels::MEMORY => {
                "the walks do not show where the last cache ends: how much of what they \
                               waited for was memory is not known"
                    .to_owned()
            }
            cache => format!(
                "the two halves of the walks do not agree on the end of {cache}, or others used a part \
                 of it: its size is what the CPU declares"
            ),
        };
        warnings.push(Warning::new(warning::CACHE_UNCLEAR, text));
    }
    if let (Some(measured), Some(declared)) = (level.bytes, level.declared_bytes)
        && (measured as f64 / declared as f64).log2().abs() > 1.0
    {
        let text = format!(
            "the curve leaves {} at {}, the CPU declares {}: others use the cache, or this machine has \
             a part of it",
            level.name,
            size_text(measured),
            size_text(declared)
        );
        warnings.push(Warning::new(warning::CACHE_DIFFERS, text));
    }
    if pages == Pages::Base {
        let text =
            "found on base pages, because there are no large ones: translation is part of it";
        warnings.push(Warning::new(warning::NO_HUGE_PAGES, text));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::super::ring::Shape;
    use super::*;
    use crate::tests::caches::caches;

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;

    fn point(working_set_bytes: u64, pages: Pages, latency_ns: f64) -> Measured<LatencyRow> {
        let row = LatencyRow::Curve(Shape::random(working_set_bytes, pages));
        let outcome = Outcome { median: Some(latency_ns), ..blank(&row) };
        let facts = Facts::default()
            .with(fact::QUIETEST_FIRST_NS, latency_ns)
            .with(fact::QUIETEST_SECOND_NS, latency_ns);
        Measured { row, outcome, facts, further: Vec::new() }
    }

    /// 32 KiB at 2 ns, 1 MiB at 6 ns, memory at 100 ns.
    fn points(pages: Pages) -> Vec<Measured<LatencyRow>> {
        let latency = |bytes: u64| match bytes {
            0..=32_768 => 2.0,
            32_769..=1_048_576 => 6.0,
            _ => 100.0,
        };
        (10..=30).map(|log2| point(1 << log2, pages, latency(1 << log2))).collect()
    }

    #[test]
    fn levels_become_rows_with_both_sizes() {
        let rows = [points(Pages::Huge), points(Pages::Base)].concat();
        let (levels, found) = find(&rows, &caches(&[32 * KIB, 4 * MIB]));
        assert_eq!((levels.levels.len(), found.len()), (3, 3));
        let latencies: Vec<_> = found.iter().map(|row| row.outcome.median.unwrap()).collect();
        assert_eq!(latencies, [2.0, 6.0, 100.0]);
        assert_eq!(found[1].facts.count(fact::MEASURED_BYTES), Some(MIB));
        assert_eq!(found[1].facts.count(fact::DECLARED_BYTES), Some(4 * MIB));
        assert_eq!(found[1].outcome.warnings[0].code, warning::CACHE_DIFFERS);
        assert!([0, 2].iter().all(|&index| found[index].outcome.warnings.is_empty()));
        assert_eq!((found[0].outcome.n, found[2].outcome.n), (6, 8));
        assert_eq!(found[2].facts.value(fact::MEASURED_BYTES), None);
        assert_eq!(found[0].outcome.ceiling.as_ref().unwrap().value, None);
        assert_eq!(found[2].outcome.parameters["level"], "DRAM");
    }

    #[test]
    fn memory_that_the_last_cache_could_hold_as_it_is_declared_is_doubted() {
        let rows = points(Pages::Huge);
        let doubted = |last_bytes| {
            let (_, found) = find(&rows, &caches(&[32 * KIB, last_bytes]));
            let memory = found.iter().find(|row| row.row.0 == levels::MEMORY).unwrap();
            warning::has(&memory.outcome.warnings, warning::CACHE_UNCLEAR)
        };
        assert_eq!([4 * MIB, 1024 * MIB].map(doubted), [false, true]);
    }

    #[test]
    fn a_cache_that_ends_early_has_its_declared_size_unless_it_is_the_last_on_a_quiet_machine() {
        let mut rows = points(Pages::Huge);
        let (levels, found) = find(&rows, &caches(&[64 * KIB, MIB]));
        assert_eq!(levels.levels[0].bytes, Some(64 * KIB));
        assert_eq!(found[0].outcome.warnings[0].code, warning::CACHE_UNCLEAR);
        let sizes = |rows: &[Measured<LatencyRow>]| {
            let (levels, found) = find(rows, &caches(&[32 * KIB, 4 * MIB]));
            let has = warning::has(&found[1].outcome.warnings, warning::CACHE_UNCLEAR);
            (levels.levels[0].bytes, levels.levels[1].bytes, has)
        };
        assert_eq!(sizes(&rows), (Some(32 * KIB), Some(MIB), false));
        rows[2].outcome.warnings.push(Warning::new(warning::LOCAL_LOAD, "others"));
        assert_eq!(sizes(&rows), (Some(32 * KIB), Some(4 * MIB), true));
    }

    #[test]
    fn memory_takes_what_its_rows_take_and_not_the_quietest_moment() {
        let mut rows = points(Pages::Huge);
        for row in rows.iter_mut().filter(|row| row.outcome.median == Some(100.0)) {
            row.facts.set(fact::QUIETEST_SECOND_NS, 88.0);
        }
        let (_, found) = find(&rows, &caches(&[32 * KIB, MIB]));
        assert_eq!(found[2].outcome.median, Some(100.0));
    }

    #[test]
    fn a_level_is_no_more_certain_than_the_rows_of_its_curve() {
        let mut rows = points(Pages::Huge);
        let disturbed = Warning::new(warning::DISTURBED, "3 of 9 trials");
        let uncertain = rows.iter_mut().find(|row| row.outcome.median == Some(6.0)).unwrap();
        uncertain.outcome.status = Status::Degraded;
        uncertain.outcome.warnings.push(disturbed);
        let (_, found) = find(&rows, &caches(&[32 * KIB, MIB]));
        let statuses: Vec<_> = found.iter().map(|row| row.outcome.status).collect();
        assert_eq!(statuses, [Status::Ok, Status::Degraded, Status::Ok]);
        assert!(warning::has(&found[1].outcome.warnings, warning::DISTURBED));
        // Points that agree to the digit say nothing of how far runs lie apart.
        assert!(found[0].outcome.half_width().unwrap() > between_runs::LATENCY);
    }

    #[test]
    fn the_figure_of_a_level_is_the_median_of_its_samples() {
        let mut rows = points(Pages::Huge);
        for (index, row) in rows.iter_mut().enumerate() {
            // The longer the walk, the slower a hit; all but the longest may be in the cache in part.
            let ns = row.outcome.median.unwrap() * 1.01_f64.powi(index as i32);
            row.outcome.median = Some(ns);
            [fact::QUIETEST_FIRST_NS, fact::QUIETEST_SECOND_NS]
                .iter()
                .for_each(|&key| row.facts.set(key, ns));
        }
        let (_, found) = find(&rows, &caches(&[32 * KIB, 512 * MIB]));
        assert!(found.iter().all(|row| row.outcome.median == median(&row.outcome.samples)));
        assert_eq!([0, 1, 2].map(|level| found[level].outcome.n), [6, 5, 1]);
    }

    #[test]
    fn base_pages_serve_where_there_are_no_huge_ones() {
        let mut rows = points(Pages::Base);
        let mut refused = point(KIB, Pages::Huge, 1.0);
        refused.outcome.median = None;
        rows.push(refused);
        let (levels, found) = find(&rows, &[]);
        assert_eq!(levels.levels.len(), 3);
        assert_eq!(found[0].outcome.warnings[0].code, warning::NO_HUGE_PAGES);
        assert_eq!(found[0].facts.count(fact::PAGE_BYTES), Some(page_bytes(Pages::Base)));
    }

    #[test]
    fn a_few_points_are_named_by_what_the_cpu_says() {
        let rows = [point(16 * KIB, Pages::Huge, 2.0), point(256 * MIB, Pages::Huge, 99.0)];
        let caches = caches(&[32 * KIB, MIB]);
        assert_eq!(find(&rows, &caches), (Levels::declared(&caches), Vec::new()));
    }
}
