//! The ports of each kernel, counted once before the rows are measured.

use std::collections::BTreeMap;
use std::thread;

use flatout_sys::affinity;
use flatout_sys::throughput::{Form, Kernel, Level, Operation};

use super::load::{Load, Reading};
use super::ports::{self, Ports};
use super::site::Site;

/// Slices of work of one count: 16.
const ROUNDS: u32 = 8;
/// Counts of one kernel at least, and at most while none is a whole number: a neighbour takes
/// ports away for milliseconds.
const LEAST_TRIES: u32 = 3;
const MOST_TRIES: u32 = 8;

/// What the loop of a kernel's census read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Count {
    /// Steps per cycle; the highest where none was a whole number.
    pub(super) per_cycle: f64,
    /// `None`: no whole number.
    pub(super) ports: Option<Ports>,
}

/// The counts of all kernels that were asked for and could be counted.
#[derive(Debug, Default)]
pub(super) struct Census(BTreeMap<Kernel, Count>);

impl Census {
    /// Counts the ports of `kernels` on the first CPU. Takes some 20 to 60 ms for each.
    pub(super) fn take(
        kernels: &[Kernel],
        site: &Site,
        seed: u64,
        stop: &dyn Fn() -> bool,
    ) -> Self {
        let mut census = Self::default();
        // Sums first: pairs of a product and a sum are held against them.
        let sums = kernels.iter().map(|kernel| Kernel { operation: Operation::Add, ..*kernel });
        let mut all: Vec<Kernel> = sums.chain(kernels.iter().copied()).collect();
        all.sort_by_key(|kernel| kernel.operation != Operation::Add);
        all.dedup();
        for kernel in all {
            if stop() {
                break;
            }
            if kernel.lacks().is_none() && !census.0.contains_key(&kernel) {
                census.count(kernel, site, seed);
            }
        }
        census
    }

    /// A census that was taken elsewhere.
    #[cfg(test)]
    pub(super) fn known(kernel: Kernel, count: Count) -> Self {
        Self(BTreeMap::from([(kernel, count)]))
    }

    /// What is known of a kernel.
    pub(super) fn of(&self, kernel: Kernel) -> Option<Count> {
        self.0.get(&kernel).copied()
    }

    fn count(&mut self, kernel: Kernel, site: &Site, seed: u64) {
        let sums = self.of(Kernel { operation: Operation::Add, ..kernel });
        let sums = sums.and_then(|count| count.ports);
        // Whoever else uses the ports lowers a count, so the highest of several is the best.
        let mut best: Option<Count> = None;
        for tried in 1..=MOST_TRIES {
            let Some(per_cycle) = per_cycle(kernel, site, seed) else { return };
            if best.is_none_or(|best| per_cycle > best.per_cycle) {
                let ports = match kernel.instructions() {
                    1 => ports::of_single(per_cycle),
                    _ => ports::of_pair(per_cycle, sums),
                };
                best = Some(Count { per_cycle, ports });
            }
            if tried >= LEAST_TRIES && best.is_some_and(|best| best.ports.is_some()) {
                break;
            }
        }
        self.0.extend(best.map(|best| (kernel, best)));
    }
}

/// Steps per cycle of the census loop: of a tile, its rows.
fn per_cycle(kernel: Kernel, site: &Site, seed: u64) -> Option<f64> {
    let cpu = site.cpus.first().copied();
    let read = || {
        if let Some(cpu) = cpu {
            affinity::pin_to(cpu).ok()?;
        }
        let load = Load::new(kernel, Form::Census, seed).ok()?;
        let stint = load.stint(ROUNDS, Reading::Between);
        let per_step = (kernel.lanes() * kernel.operation.count()) as f64;
        stint.per_cycle().filter(|_| !stint.is_wrong).map(|operations| operations / per_step)
    };
    thread::scope(|scope| {
        scope.spawn(read).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Why a count gave no ports, in words.
pub(super) fn why_unknown(kernel: Kernel, count: Option<Count>) -> String {
    let unit = if kernel.level == Level::Amx { "rows" } else { "steps" };
    count.map_or_else(
        || "its ports could not be counted".to_owned(),
        |count| {
            format!(
                "its ports are unknown: {:.2} {unit} per cycle are no whole number within 3 %",
                count.per_cycle
            )
        },
    )
}

#[cfg(test)]
mod tests {
    use flatout_sys::throughput::Number;

    use super::*;

    #[test]
    fn what_was_not_counted_is_unknown() {
        let kernel = Kernel { number: Number::F64, operation: Operation::Add, level: Level::Avx2 };
        assert_eq!(Census::default().of(kernel), None);
        assert!(why_unknown(kernel, None).contains("could not be counted"));
        let count = Count { per_cycle: 1.78, ports: None };
        assert!(why_unknown(kernel, Some(count)).contains("1.78 steps per cycle"));
    }

    #[test]
    fn a_user_who_stops_waits_for_no_count() {
        let kernel = Kernel { number: Number::F64, operation: Operation::Add, level: Level::Sse2 };
        let census = Census::take(&[kernel], &Site::default(), 1, &|| true);
        assert_eq!(census.of(kernel), None);
    }

    #[test]
    fn a_count_is_a_figure_above_nothing() {
        let kernel = Kernel { number: Number::I32, operation: Operation::Add, level: Level::Sse2 };
        let census = Census::take(&[kernel], &Site::default(), 1, &|| false);
        match census.of(kernel) {
            Some(count) => assert!(count.per_cycle > 0.0),
            None => assert!(kernel.lacks().is_some()),
        }
    }
}
