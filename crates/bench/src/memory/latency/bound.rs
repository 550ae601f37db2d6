//! What the rows of the first phase are held against, and what limits them.

use flatout_measure::{Ceiling, Measured, Provenance, Row, Unit, ceiling};
use flatout_sys::chase::LINE_BYTES;

use super::super::bound::CACHE_OR_MEMORY;
use super::super::fact;
use super::super::levels::{APART, Levels, MEMORY, STILL_HIT};
use super::node::Pair;
use super::row::LatencyRow;
use crate::fact::CPUS_SHARE_CORE;

/// Gives each row its bound, and says of the rows of the curve in which level they are. The answer
/// is the bound of one core: the most that its chases took; none where they have no figure.
pub(super) fn apply(
    rows: &mut [Measured<LatencyRow>],
    levels: &Levels,
    modules: &Ceiling,
) -> Option<Ceiling> {
    let figure = |row: LatencyRow| {
        rows.iter().find(|measured| measured.row == row).and_then(|one| one.outcome.median)
    };
    let is_parallel = |row: &LatencyRow| matches!(row, LatencyRow::Parallel { .. });
    let parallel = rows.iter().filter(|measured| is_parallel(&measured.row));
    let most = parallel.filter_map(|measured| measured.outcome.median).reduce(f64::max);
    let references = References {
        idle_ns: figure(LatencyRow::Loaded { load_percent: 0 }),
        memory_ns: rows
            .iter()
            .filter_map(of_curve_row)
            .filter(|row| levels.of(row.0).is_some_and(|level| level.name == MEMORY))
            .max_by_key(|row| row.0)
            .map(|row| row.1),
        single: figure(LatencyRow::Parallel { chases: 1, run_bytes: LINE_BYTES }),
        own_nodes: rows.iter().filter_map(own_node).collect(),
    };
    for measured in rows {
        let limit = references.bound(measured, levels, modules);
        ceiling::apply(&mut measured.outcome, limit);
    }
    most.map(|rate| {
        Ceiling::best_seen("parallel chases, one core", Some(rate))
            .limited_by("lines that a core waits for at once")
    })
}

/// Figures that others are held against.
struct References {
    /// Latency without a load.
    idle_ns: Option<f64>,
    /// That of the longest working set of the curve, if it is in memory.
    memory_ns: Option<f64>,
    /// Rate of a single chase.
    single: Option<f64>,
    /// Unit, node and figure of the rows of a CPU's own node.
    own_nodes: Vec<(Unit, u32, f64)>,
}

/// Working set and figure of a row of the curve.
fn of_curve_row(measured: &Measured<LatencyRow>) -> Option<(u64, f64)> {
    match measured.row {
        LatencyRow::Curve(shape) => Some((shape.working_set_bytes, measured.outcome.median?)),
        _ => None,
    }
}

fn own_node(measured: &Measured<LatencyRow>) -> Option<(Unit, u32, f64)> {
    match measured.row {
        LatencyRow::NodeLatency(pair) | LatencyRow::NodeRate(pair) if pair.is_own() => {
            Some((measured.row.unit(), pair.cpu_node, measured.outcome.median?))
        }
        _ => None,
    }
}

impl References {
    fn bound(
        &self,
        measured: &mut Measured<LatencyRow>,
        levels: &Levels,
        modules: &Ceiling,
    ) -> Ceiling {
        let Measured { row, outcome, facts, .. } = measured;
        match *row {
            LatencyRow::Curve(shape) => {
                let level = levels.of(shape.working_set_bytes);
                let from = level.map_or(Provenance::Unknown, |level| level.provenance);
                facts.set(fact::LEVEL_PROVENANCE, from.name());
                let name = level.map_or("unknown", |level| level.name);
                // Of a cache that is only declared nobody knows how long a hit takes, but that it takes
                // less than memory.
                let is_last =
                    levels.levels.iter().rev().find(|level| level.name != MEMORY) == level;
                let cache = level.filter(|level| level.name != MEMORY);
                let most_ns = cache.and_then(|cache| match (cache.latency_ns, self.memory_ns) {
                    (Some(hit_ns), _) => Some(STILL_HIT * hit_ns),
                    (None, Some(memory_ns)) => Some(memory_ns / APART),
                    (None, None) => is_last.then_some(0.0),
                });
                let is_beyond = outcome.median.zip(most_ns).is_some_and(|(ns, most)| ns >= most);
                let name = match (is_beyond, is_last) {
                    (false, _) => name.to_owned(),
                    (true, true) => CACHE_OR_MEMORY.to_owned(),
                    (true, false) => format!("{name} in part, and beyond it"),
                };
                let bound = of_curve(&name);
                facts.set(fact::LEVEL, name);
                bound
            }
            LatencyRow::Parallel { chases, run_bytes } => {
                if run_bytes == LINE_BYTES {
                    let lines = outcome.median.zip(self.single).map(|(rate, single)| rate / single);
                    facts.set_known(fact::LINES_IN_FLIGHT, lines);
                }
                modules.clone().limited_by(match chases {
                    1 => "latency of memory",
                    _ => "lines that the core waits for at once, and their latency",
                })
            }
            LatencyRow::Loaded { load_percent: 0 } => {
                Ceiling::unknown("none is known: it is what the others are held against")
                    .limited_by("latency of memory")
            }
            LatencyRow::Loaded { .. } => Ceiling::best_seen("latency without a load", self.idle_ns)
                .limited_by(match facts.flag(CPUS_SHARE_CORE) {
                    Some(true) => "the core, whose other hardware thread makes the load",
                    _ => "queues of the interconnect and of memory",
                }),
            LatencyRow::HandOver(_) => {
                Ceiling::unknown("none is known").limited_by(match facts.flag(CPUS_SHARE_CORE) {
                    Some(true) => "the core, whose two hardware threads these CPUs are",
                    _ => "coherence between the cores",
                })
            }
            LatencyRow::NodeLatency(pair) | LatencyRow::NodeRate(pair) => {
                self.of_node(row.unit(), pair)
            }
        }
    }

    /// Memory of other nodes is held against that of the CPU's own.
    fn of_node(&self, unit: Unit, pair: Pair) -> Ceiling {
        if pair.is_own() {
            return Ceiling::unknown("none is known: other nodes are held against it")
                .limited_by("latency of memory");
        }
        let is_own = |own: &&(Unit, u32, f64)| (own.0, own.1) == (unit, pair.cpu_node);
        let own = self.own_nodes.iter().find(is_own);
        Ceiling::best_seen("memory of the CPU's own node", own.map(|(.., figure)| *figure))
            .limited_by("link between the nodes")
    }
}

/// No derivation gives the least latency of a cache or of memory.
pub(super) fn of_curve(level: &str) -> Ceiling {
    Ceiling::unknown("none is known: the curve is its own measure").limited_by(match level {
        MEMORY => "latency of memory".to_owned(),
        "unknown" => "unknown".to_owned(),
        cache => format!("latency of {cache}"),
    })
}

#[cfg(test)]
mod tests {
    use flatout_measure::case::blank;
    use flatout_measure::fact::Facts;
    use flatout_sys::chase::Pages;

    use super::super::grid::RUN_BYTES;
    use super::super::ring::Shape;
    use super::*;
    use crate::tests::caches::caches;

    fn measured(row: LatencyRow, median: f64) -> Measured<LatencyRow> {
        let mut outcome = blank(&row);
        outcome.median = Some(median);
        Measured { row, outcome, facts: Facts::default(), further: Vec::new() }
    }

    fn parallel(chases: usize, run_bytes: u64, rate: f64) -> Measured<LatencyRow> {
        measured(LatencyRow::Parallel { chases, run_bytes }, rate)
    }

    fn limit(measured: &Measured<LatencyRow>) -> &Ceiling {
        measured.outcome.ceiling.as_ref().unwrap()
    }

    fn apply_alone(rows: &mut [Measured<LatencyRow>]) -> Option<Ceiling> {
        apply(rows, &Levels::default(), &Ceiling::default())
    }

    #[test]
    fn lines_in_flight_follow_from_the_single_chase() {
        let mut rows = [
            parallel(1, LINE_BYTES, 0.5e9),
            parallel(16, LINE_BYTES, 6e9),
            parallel(4, RUN_BYTES, 11e9),
        ];
        let core = apply_alone(&mut rows).unwrap();
        assert_eq!((core.value, core.provenance), (Some(11e9), Provenance::BestSeen));
        assert_eq!(rows[1].facts.number(fact::LINES_IN_FLIGHT), Some(12.0));
        assert_eq!(rows[2].facts.number(fact::LINES_IN_FLIGHT), None, "prefetched lines");
        assert_eq!(apply_alone(&mut []), None);
    }

    #[test]
    fn more_than_the_modules_give_is_refused() {
        let peak = Ceiling::known("two modules", Some(5e9), Provenance::Smbios);
        let mut rows = [parallel(1, LINE_BYTES, 0.5e9), parallel(16, LINE_BYTES, 6e9)];
        apply(&mut rows, &Levels::default(), &peak);
        assert_eq!((rows[0].outcome.median, rows[1].outcome.median), (Some(0.5e9), None));
    }

    #[test]
    fn rows_with_a_load_are_held_against_the_one_without() {
        let loaded = |load_percent, latency| measured(LatencyRow::Loaded { load_percent }, latency);
        let mut rows = [loaded(0, 100.0), loaded(100, 125.0)];
        apply_alone(&mut rows);
        assert_eq!((limit(&rows[1]).value, limit(&rows[0]).value), (Some(100.0), None));
        let mut rows = [loaded(50, 125.0)];
        apply_alone(&mut rows);
        assert_eq!(limit(&rows[0]).value, None, "there is none without");
    }

    #[test]
    fn cpus_of_one_core_are_named() {
        for row in [LatencyRow::HandOver(Some((0, 1))), LatencyRow::Loaded { load_percent: 100 }] {
            let limiter = |is_one_core: bool| {
                let mut rows = [measured(row, 30.0)];
                rows[0].facts.set(CPUS_SHARE_CORE, is_one_core);
                apply_alone(&mut rows);
                limit(&rows[0]).limiter.clone()
            };
            let told = [true, false].map(|is_one_core| limiter(is_one_core).contains("the core, "));
            assert_eq!(told, [true, false], "{row:?}");
        }
    }

    #[test]
    fn other_nodes_are_held_against_the_own_one() {
        let pair = |cpu_node, memory_node| Pair { cpu_node, cpu: 0, memory_node, home_cpu: 0 };
        let latency = |from, to, ns| measured(LatencyRow::NodeLatency(pair(from, to)), ns);
        let rate = |from, to, rate| measured(LatencyRow::NodeRate(pair(from, to)), rate);
        let mut rows = [
            latency(0, 0, 90.0),
            latency(0, 1, 150.0),
            latency(1, 1, 80.0),
            rate(0, 1, 4e9),
            rate(0, 0, 8e9),
        ];
        apply_alone(&mut rows);
        let beside: Vec<_> = rows.iter().map(|row| limit(row).value).collect();
        assert_eq!(beside, [None, Some(90.0), None, Some(8e9), None]);
    }

    #[test]
    fn rows_of_the_curve_say_in_which_level_they_are() {
        let levels = Levels::declared(&caches(&[32 << 10, 1 << 20]));
        let curve = |bytes, ns| measured(LatencyRow::Curve(Shape::random(bytes, Pages::Base)), ns);
        let mut rows = [curve(16 << 10, 2.0), curve(256 << 20, 100.0)];
        apply(&mut rows, &levels, &Ceiling::default());
        assert_eq!(rows[0].facts.text(fact::LEVEL), Some("L1"));
        assert_eq!(rows[1].facts.text(fact::LEVEL), Some("DRAM"));
        assert_eq!(rows[0].facts.text(fact::LEVEL_PROVENANCE), Some("cpuid"));
        assert_eq!(
            (limit(&rows[0]).value, limit(&rows[0]).limiter.as_str()),
            (None, "latency of L1")
        );
        apply_alone(&mut rows);
        assert_eq!(rows[0].facts.text(fact::LEVEL), Some("unknown"));
        let mut levels = levels;
        levels.levels[1].latency_ns = Some(14.0);
        let of_l2 = |ns| {
            let mut rows = [measured(LatencyRow::Curve(Shape::random(1 << 20, Pages::Base)), ns)];
            apply(&mut rows, &levels, &Ceiling::default());
            limit(&rows[0]).limiter.clone()
        };
        assert_eq!(of_l2(16.0), "latency of L2");
        assert_eq!(of_l2(109.0), "latency of last cache or DRAM", "no hit takes so long");
        let levels = Levels::declared(&caches(&[32 << 10, 32 << 20]));
        let mut rows = [curve(16 << 20, 105.0), curve(4 << 20, 15.0), curve(128 << 20, 146.0)];
        apply(&mut rows, &levels, &Ceiling::default());
        let limiters = rows.each_ref().map(|row| limit(row).limiter.as_str());
        let either = "latency of last cache or DRAM";
        assert_eq!(limiters, [either, "latency of L2", "latency of memory"]);
        // What is in memory nobody measured, so nobody knows whether this is not.
        let mut alone = [curve(16 << 20, 15.0), curve(16 << 10, 1.0)];
        apply(&mut alone, &levels, &Ceiling::default());
        assert_eq!(alone[0].facts.text(fact::LEVEL), Some("last cache or DRAM"));
        assert_eq!(alone[1].facts.text(fact::LEVEL), Some("L1"));
    }
}
