//! Which rows the cpu area has.

use flatout_measure::row::Unit;
use flatout_sys::throughput::{Kernel, Number, Operation};
use serde_json::{Map, Value, json};

use super::sharing;
use super::site::Site;
use super::trial::{Placement, Setting};
use crate::area::Extent;

/// A row before it is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Row {
    /// Operations per second.
    Throughput { kernel: Kernel, setting: Setting },
    /// The clock in a load, or without any.
    Clock { load: Option<Kernel>, threads: u32 },
    /// Whether two CPUs share a core.
    Sharing { first: usize, second: usize },
}

/// Types that every CPU has.
const NUMBERS: [Number; 4] = [Number::F32, Number::F64, Number::I32, Number::I64];
/// Types of matrix and dot-product instructions.
const NARROW: [Number; 2] = [Number::I8, Number::Bf16];
const OPERATIONS: [Operation; 2] = [Operation::MultiplyAdd, Operation::Add];
/// Threads of the full grid, besides all CPUs.
const THREADS: [u32; 4] = [1, 2, 4, 8];

impl Row {
    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Throughput { .. } => "cpu/throughput",
            Self::Clock { .. } => "cpu/clock",
            Self::Sharing { .. } => "cpu/core-sharing",
        }
    }

    /// The base unit of its figure.
    pub(super) fn unit(self) -> Unit {
        match self {
            Self::Throughput { kernel, .. } if kernel.number.is_floating() => Unit::FlopPerSecond,
            Self::Throughput { .. } => Unit::OpPerSecond,
            Self::Clock { .. } => Unit::Hertz,
            Self::Sharing { .. } => Unit::Cpus,
        }
    }

    /// What tells the row from others with the same id.
    pub(super) fn parameters(self) -> Map<String, Value> {
        let pairs = match self {
            Self::Throughput { kernel, setting } => vec![
                ("type", json!(kernel.number.word())),
                ("operation", json!(kernel.operation.word())),
                ("level", json!(kernel.level.word())),
                ("threads", json!(setting.threads)),
                ("pinned", json!(setting.placement == Placement::Pinned)),
            ],
            Self::Clock { load, threads } => {
                let load = load.map_or_else(|| "none".to_owned(), name);
                vec![("load", json!(load)), ("threads", json!(threads))]
            }
            Self::Sharing { first, second } => {
                vec![("first_cpu", json!(first)), ("second_cpu", json!(second))]
            }
        };
        pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// The kernel whose ports must be known for its ceiling.
    pub(super) fn kernel(self) -> Option<Kernel> {
        match self {
            Self::Throughput { kernel, .. } => Some(kernel),
            Self::Clock { .. } | Self::Sharing { .. } => None,
        }
    }
}

/// A kernel in words.
pub(super) fn name(kernel: Kernel) -> String {
    let Kernel { number, operation, level } = kernel;
    format!("{} {} {}", number.word(), operation.word(), level.word())
}

/// The widest rung that this machine has; the widest of all where it has none, whose row then
/// says what is missing.
pub(super) fn best(number: Number, operation: Operation) -> Option<Kernel> {
    let ladder = Kernel::ladder(number, operation);
    let possible = ladder.iter().rev().find(|kernel| kernel.lacks().is_none());
    possible.or(ladder.last()).copied()
}

/// The rows for so much of the area; `threads` is what the user asked for, empty for the usual.
pub(super) fn rows(extent: Extent, threads: &[u32], site: &Site) -> Vec<Row> {
    let all = site.count();
    let counts = |usual: &[u32]| {
        let mut counts =
            if threads.is_empty() { [usual, &[all]].concat() } else { threads.to_vec() };
        counts.sort_unstable();
        counts.dedup();
        counts
    };
    let ends = counts(&[1]);
    let fused = best(Number::F64, Operation::MultiplyAdd);
    let mut rows = Vec::new();
    match extent {
        Extent::Few => {
            for (number, operation) in [
                (Number::F32, Operation::MultiplyAdd),
                (Number::F64, Operation::MultiplyAdd),
                (Number::I32, Operation::Add),
            ] {
                let most = &ends[ends.len() - 1..];
                rows.extend(best(number, operation).into_iter().flat_map(|one| pinned(one, most)));
            }
        }
        Extent::Quick => {
            for (number, operation) in pairs(&NUMBERS) {
                rows.extend(best(number, operation).into_iter().flat_map(|one| pinned(one, &ends)));
            }
            rows.extend(rungs(Number::F64, Operation::MultiplyAdd, &ends[..1]));
            for number in NARROW {
                rows.extend(
                    best(number, Operation::MultiplyAdd)
                        .into_iter()
                        .flat_map(|one| pinned(one, &ends[..1])),
                );
            }
            rows.extend([None, fused].map(|load| Row::Clock { load, threads: ends[0] }));
        }
        Extent::Full => {
            let sweep = counts(&THREADS);
            for (number, operation) in pairs(&NUMBERS) {
                if let Some(kernel) = best(number, operation) {
                    rows.extend(pinned(kernel, &sweep));
                    rows.extend(placed(kernel, &sweep, Placement::Free));
                }
                rows.extend(rungs(number, operation, &ends[..1]));
            }
            for number in NARROW {
                for kernel in Kernel::ladder(number, Operation::MultiplyAdd) {
                    rows.extend(pinned(kernel, &ends));
                }
            }
            rows.push(Row::Clock { load: None, threads: 1 });
            for kernel in Kernel::ladder(Number::F64, Operation::MultiplyAdd) {
                rows.extend(ends.iter().map(|&threads| Row::Clock { load: Some(kernel), threads }));
            }
        }
    }
    let most = if extent == Extent::Full { sharing::MOST_PAIRS } else { 1 };
    let pairs = sharing::pairs(&site.cpus, &site.declared).into_iter().take(most);
    rows.extend(pairs.map(|(first, second)| Row::Sharing { first, second }));
    rows.dedup();
    rows
}

fn pairs(numbers: &[Number]) -> impl Iterator<Item = (Number, Operation)> + '_ {
    numbers.iter().flat_map(|&number| OPERATIONS.map(|operation| (number, operation)))
}

/// The rungs below the best one.
fn rungs(number: Number, operation: Operation, threads: &[u32]) -> Vec<Row> {
    let best = best(number, operation);
    let others = Kernel::ladder(number, operation).into_iter().filter(|one| Some(*one) != best);
    others.flat_map(|kernel| pinned(kernel, threads)).collect()
}

fn pinned(kernel: Kernel, threads: &[u32]) -> Vec<Row> {
    placed(kernel, threads, Placement::Pinned)
}

fn placed(kernel: Kernel, threads: &[u32], placement: Placement) -> Vec<Row> {
    let row = |&threads: &u32| Row::Throughput { kernel, setting: Setting { threads, placement } };
    threads.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(cpus: usize) -> Site {
        Site { cpus: (0..cpus).collect(), ..Site::default() }
    }

    #[test]
    fn no_two_rows_are_alike_and_all_types_are_there() {
        for (extent, cpus) in [(Extent::Few, 1), (Extent::Quick, 2), (Extent::Full, 64)] {
            let rows = rows(extent, &[], &site(cpus));
            let mut names: Vec<String> =
                rows.iter().map(|row| format!("{} {:?}", row.id(), row.parameters())).collect();
            names.sort();
            let count = names.len();
            names.dedup();
            assert_eq!(names.len(), count, "{extent:?}");
        }
        let full = rows(Extent::Full, &[], &site(64));
        for word in ["f32", "f64", "i32", "i64", "i8", "bf16"] {
            assert!(full.iter().any(|row| row.parameters().get("type") == Some(&json!(word))));
        }
        for threads in [1, 2, 4, 8, 64] {
            for pinned in [true, false] {
                let is = |row: &&Row| {
                    row.parameters().get("threads") == Some(&json!(threads))
                        && row.parameters().get("pinned") == Some(&json!(pinned))
                };
                assert!(full.iter().filter(is).count() >= 8, "{threads} {pinned}");
            }
        }
    }

    #[test]
    fn the_short_set_leaves_room_for_linpack_and_memory() {
        assert!(rows(Extent::Few, &[], &site(64)).len() <= 4);
    }

    #[test]
    fn threads_asked_for_replace_the_usual_ones() {
        for extent in [Extent::Few, Extent::Quick, Extent::Full] {
            for row in rows(extent, &[3], &site(4)) {
                if let Row::Throughput { setting, .. } = row {
                    assert_eq!(setting.threads, 3);
                }
            }
        }
    }

    #[test]
    fn one_cpu_has_no_pair() {
        let is_pair = |row: &Row| matches!(row, Row::Sharing { .. });
        assert!(!rows(Extent::Full, &[], &site(1)).iter().any(is_pair));
        assert!(rows(Extent::Few, &[], &site(2)).iter().any(is_pair));
    }
}
