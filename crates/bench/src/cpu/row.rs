//! Which rows the arithmetic units have.

use flatout_measure::{Label, Row, Unit};
use flatout_sys::throughput::{Kernel, Number, Operation};

use super::sharing;
use super::topology::Topology;
use super::trial::Placement::{self, Free, Pinned, Sustained};
use super::trial::Setting;
use crate::{Extent, between_runs, workers};

/// A row of the arithmetic units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnitRow {
    /// Operations per second: in moments in which each thread has its core to itself, or in all of the
    /// time.
    Units { kernel: Kernel, setting: Setting },
    /// The clock in a load, or without any.
    Clock { load: Option<Kernel>, threads: u32 },
    /// Whether two CPUs share a core.
    Sharing { first: usize, second: usize },
}

/// Types that every CPU has.
pub(super) const NUMBERS: [Number; 4] = [Number::F32, Number::F64, Number::I32, Number::I64];
/// Types of matrix and dot-product instructions.
const NARROW: [Number; 2] = [Number::I8, Number::Bf16];
const OPERATIONS: [Operation; 2] = [Operation::MultiplyAdd, Operation::Add];
/// Threads of the full grid, besides all CPUs.
const THREADS: [u32; 4] = [1, 2, 4, 8];

impl Row for UnitRow {
    fn label(&self) -> Label {
        match *self {
            Self::Units { kernel, setting } => {
                let is_peak = setting.placement != Free
                    && best(Number::F64, Operation::MultiplyAdd) == Some(kernel);
                let of = |id| {
                    Label::new(id, unit(kernel))
                        .with("type", kernel.number.word())
                        .with("operation", kernel.operation.word())
                        .with("level", kernel.level.word())
                        .with("threads", setting.threads)
                        .headline_if(is_peak)
                };
                match setting.placement {
                    Sustained => of("cpu/sustained").deviating_by(between_runs::SUSTAINED),
                    place => of("cpu/throughput").with("pinned", place == Pinned),
                }
            }
            Self::Clock { load, threads } => Label::new("cpu/clock", Unit::Hertz)
                .with("load", load.map_or_else(|| "none".to_owned(), name))
                .with("threads", threads)
                .of_hardware(),
            Self::Sharing { first, second } => Label::new("cpu/core-sharing", Unit::Cpus)
                .with("first_cpu", first)
                .with("second_cpu", second)
                .of_hardware(),
        }
    }

    fn lacks(&self) -> Option<String> {
        let kernel = match *self {
            Self::Units { kernel, .. } => Some(kernel),
            Self::Clock { load, .. } => load,
            Self::Sharing { .. } => None,
        };
        kernel.and_then(|kernel| Some(format!("{}: {}", name(kernel), kernel.lacks()?)))
    }
}

/// What the operations of a kernel are counted in.
pub(super) fn unit(kernel: Kernel) -> Unit {
    if kernel.number.is_floating() { Unit::FlopPerSecond } else { Unit::OpPerSecond }
}

/// A kernel in words.
pub(super) fn name(kernel: Kernel) -> String {
    let Kernel { number, operation, level } = kernel;
    format!("{} {} {}", number.word(), operation.word(), level.word())
}

/// The kernel of the widest level that this machine has; of the widest of all where it has none,
/// whose row then says what is missing.
pub(super) fn best(number: Number, operation: Operation) -> Option<Kernel> {
    let levels = Kernel::levels(number, operation);
    let possible = levels.iter().rev().find(|kernel| kernel.lacks().is_none());
    possible.or(levels.last()).copied()
}

/// The rows for so much of the area; `threads` is what the user asked for, empty for the usual.
pub(super) fn rows(extent: Extent, threads: &[u32], topology: &Topology) -> Vec<UnitRow> {
    use Operation::{Add, MultiplyAdd};
    let all = topology.count();
    let counts = |usual: &[u32]| workers::counts(threads, &[usual, &[all]].concat());
    let ends = counts(&[1]);
    let (fewest, most) = (&ends[..1], &ends[ends.len() - 1..]);
    let mut rows = Vec::new();
    match extent {
        Extent::Few => {
            rows.extend(widest(Number::F32, MultiplyAdd, most, Pinned));
            rows.extend(widest(Number::F64, MultiplyAdd, most, Pinned));
            rows.extend(widest(Number::F64, MultiplyAdd, most, Sustained));
            rows.extend(widest(Number::I32, Add, most, Pinned));
        }
        Extent::Quick => {
            for (number, operation) in pairs(&NUMBERS) {
                rows.extend(widest(number, operation, &ends, Pinned));
            }
            rows.extend(narrower(Number::F64, MultiplyAdd, fewest));
            rows.extend(widest(Number::F64, MultiplyAdd, &ends, Sustained));
            for number in NARROW {
                rows.extend(widest(number, MultiplyAdd, fewest, Pinned));
            }
            rows.push(UnitRow::Clock { load: None, threads: 1 });
            rows.push(UnitRow::Clock { load: best(Number::F64, MultiplyAdd), threads: ends[0] });
        }
        Extent::Full => {
            let sweep = counts(&THREADS);
            for (number, operation) in pairs(&NUMBERS) {
                rows.extend(widest(number, operation, &sweep, Pinned));
                rows.extend(widest(number, operation, &sweep, Free));
                rows.extend(narrower(number, operation, fewest));
            }
            for number in [Number::F32, Number::F64] {
                rows.extend(widest(number, MultiplyAdd, &sweep, Sustained));
            }
            let narrow = NARROW.into_iter().flat_map(|number| Kernel::levels(number, MultiplyAdd));
            rows.extend(narrow.flat_map(|kernel| placed(kernel, &ends, Pinned)));
            rows.push(UnitRow::Clock { load: None, threads: 1 });
            for kernel in Kernel::levels(Number::F64, MultiplyAdd) {
                let load = Some(kernel);
                rows.extend(ends.iter().map(|&threads| UnitRow::Clock { load, threads }));
            }
        }
    }
    let most = if extent == Extent::Full { sharing::MOST_PAIRS } else { 1 };
    let pairs = sharing::pairs(&topology.cpus, &topology.siblings).into_iter().take(most);
    rows.extend(pairs.map(|(first, second)| UnitRow::Sharing { first, second }));
    rows.dedup();
    rows
}

fn pairs(numbers: &[Number]) -> impl Iterator<Item = (Number, Operation)> + '_ {
    numbers.iter().flat_map(|&number| OPERATIONS.map(|operation| (number, operation)))
}

/// The widest level.
fn widest(
    number: Number,
    operation: Operation,
    threads: &[u32],
    placement: Placement,
) -> Vec<UnitRow> {
    let best = best(number, operation).into_iter();
    best.flat_map(|kernel| placed(kernel, threads, placement)).collect()
}

/// The levels below that.
fn narrower(number: Number, operation: Operation, threads: &[u32]) -> Vec<UnitRow> {
    let best = best(number, operation);
    let others = Kernel::levels(number, operation).into_iter().filter(|one| Some(*one) != best);
    others.flat_map(|kernel| placed(kernel, threads, Pinned)).collect()
}

fn placed(kernel: Kernel, threads: &[u32], placement: Placement) -> Vec<UnitRow> {
    let setting = |&threads: &u32| Setting { threads, placement };
    threads.iter().map(|threads| UnitRow::Units { kernel, setting: setting(threads) }).collect()
}

#[cfg(test)]
mod tests {
    use flatout_sys::throughput::Level;

    use super::*;

    fn topology(cpus: usize) -> Topology {
        Topology { cpus: (0..cpus).collect(), ..Topology::default() }
    }

    #[test]
    fn no_two_rows_are_alike_and_all_types_are_there() {
        for (extent, cpus) in [(Extent::Few, 1), (Extent::Quick, 2), (Extent::Full, 64)] {
            let rows = rows(extent, &[], &topology(cpus));
            let mut names: Vec<String> =
                rows.iter().map(|row| format!("{} {:?}", row.id(), row.parameters())).collect();
            names.sort();
            let count = names.len();
            names.dedup();
            assert_eq!(names.len(), count, "{extent:?}");
        }
        let full = rows(Extent::Full, &[], &topology(64));
        for word in ["f32", "f64", "i32", "i64", "i8", "bf16"] {
            assert!(full.iter().any(|row| row.parameters().value("type") == Some(&word.into())));
        }
        for threads in [1_u32, 2, 4, 8, 64] {
            for pinned in [true, false] {
                let is = |row: &&UnitRow| {
                    row.parameters().value("threads") == Some(&threads.into())
                        && row.parameters().value("pinned") == Some(&pinned.into())
                };
                assert!(full.iter().filter(is).count() >= 8, "{threads} {pinned}");
            }
        }
    }

    #[test]
    fn the_short_set_leaves_room_for_linpack_and_memory() {
        assert!(rows(Extent::Few, &[], &topology(64)).len() <= 5);
    }

    #[test]
    fn threads_asked_for_replace_the_usual_ones() {
        for extent in [Extent::Few, Extent::Quick, Extent::Full] {
            for row in rows(extent, &[3], &topology(4)) {
                match row {
                    UnitRow::Units { setting, .. } => assert_eq!(setting.threads, 3),
                    UnitRow::Clock { load: None, threads } => assert_eq!(threads, 1, "one chain"),
                    UnitRow::Clock { threads, .. } => assert_eq!(threads, 3),
                    UnitRow::Sharing { .. } => {}
                }
            }
        }
    }

    #[test]
    fn what_no_cpu_has_is_known_without_a_trial() {
        let of = |number, level| {
            let kernel = Kernel { number, operation: Operation::MultiplyAdd, level };
            placed(kernel, &[1], Sustained)[0].lacks()
        };
        let why = of(Number::F32, Level::Amx).unwrap();
        assert_eq!(why, "f32 multiply-add amx: amx has no f32");
        let all = rows(Extent::Quick, &[], &topology(1));
        assert!(all.iter().any(|row| row.lacks().is_none()));
    }

    #[test]
    fn one_cpu_has_no_pair() {
        let is_pair = |row: &UnitRow| matches!(row, UnitRow::Sharing { .. });
        assert!(!rows(Extent::Full, &[], &topology(1)).iter().any(is_pair));
        assert!(rows(Extent::Few, &[], &topology(2)).iter().any(is_pair));
    }
}
