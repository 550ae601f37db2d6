//! How large the matrices are: as large as memory and time allow, and no larger.

use flatout_measure::size_text;
use flatout_sys::dgemm::Block;

use super::{Terms, Work};

/// Matrices begin on a page, and their columns on a line of the cache.
pub(super) const ALIGNMENT_BYTES: u64 = 4096;
/// Numbers of 8 bytes in a line of the cache.
const LINE: u64 = 8;
/// Smallest order that is chosen, largest, and the step between them: whole tiles of all kernels.
const LEAST: u64 = 96;
const MOST: u64 = 24_000;
const STEP: u64 = 48;
/// Trials that the time must hold when the order is chosen, if as many are asked for.
const TRIALS_HELD: u32 = 10;
/// Nanoseconds per number of a matrix outside the clock: random numbers made twice, a check.
/// 6 ns on 2 vCPUs of Sapphire Rapids, 2026-11-22.
const OUTSIDE_NS: f64 = 6.0;

/// Where a square matrix lies: column j begins at j × `stride`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// Rows and columns.
    pub(super) order: usize,
    /// Numbers from one column to the next, at least `order`: the leading dimension.
    pub(super) stride: usize,
}

impl Shape {
    /// Columns of whole lines of the cache, and of an odd number of them, so that the numbers of a
    /// row do not fall into few sets of the cache.
    pub(super) fn of_order(order: u64) -> Self {
        Self { order: order as usize, stride: stride(order) as usize }
    }

    /// The whole matrix, to be read.
    pub(super) fn block(self, values: &[f64]) -> Block<'_> {
        Block::new(values, self.order, self.order, self.stride)
    }
}

/// Operations that the figure counts: 2/3 n³ + 2 n² for equations, 2 n³ for a product.
pub(super) fn operations(work: Work, order: usize) -> f64 {
    let n = order as f64;
    match work {
        Work::Solve => 2.0 / 3.0 * n.powi(3) + 2.0 * n.powi(2),
        Work::Product => 2.0 * n.powi(3),
    }
}

fn stride(order: u64) -> u64 {
    (order.div_ceil(LINE) | 1) * LINE
}

/// Bytes that a trial takes: matrices, vectors, and what the threads pack (three panels of at most
/// 384 columns, or what they pack for each other; each for itself half of a second-level cache, a triangle,
/// and 512 rows of so many columns).
fn bytes(work: Work, order: u64, threads: u32) -> u64 {
    let matrix = stride(order) * order * 8;
    let (matrices, panels, columns) = match work {
        Work::Solve => (1, 3 * 384 * 8 * (order + 64), 256),
        Work::Product => (3, 2 << 23, 3072),
    };
    let own = 4_000_000 + 512 * 8 * order.next_multiple_of(LINE).min(columns);
    let vectors = order * 8 * 8;
    matrix * matrices + panels + vectors + u64::from(threads) * own
}

/// Time of a trial with what is outside the clock.
pub(super) fn trial_ns(work: Work, order: u64, flop_per_s: f64) -> f64 {
    let numbers = order as f64 * order as f64;
    operations(work, order as usize) / flop_per_s * 1e9 + OUTSIDE_NS * numbers
}

/// The order that is wanted, or the largest that leaves room and time for the trials where all
/// threads together do at least `flop_per_s`.
///
/// # Errors
/// One line: there is not the memory.
pub(super) fn choose(work: Work, terms: &Terms, flop_per_s: f64) -> Result<Shape, String> {
    let fits = |order: u64| bytes(work, order, terms.threads) <= terms.room.bytes;
    let needed = terms.order.unwrap_or(LEAST);
    if !fits(needed) {
        let option = terms.order.map_or(String::new(), |order| format!("--order {order}: "));
        return Err(format!(
            "{option}matrices of order {needed} take {}, but {} may be taken ({})",
            size_text(bytes(work, needed, terms.threads)),
            size_text(terms.room.bytes),
            terms.room.reason
        ));
    }
    let each_ns = terms.time_ns as f64 / f64::from(terms.trials.clamp(1, TRIALS_HELD));
    let quick = |order: u64| trial_ns(work, order, flop_per_s) <= each_ns;
    let steps = (LEAST..=MOST).step_by(STEP as usize);
    let largest = || steps.take_while(|&order| fits(order) && quick(order)).last();
    Ok(Shape::of_order(terms.order.or_else(largest).unwrap_or(LEAST)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::room::Room;

    fn terms() -> Terms {
        Terms {
            order: None,
            trials: 10,
            threads: 2,
            quota_cpus: None,
            time_ns: 12_000_000_000,
            room: Room::of(Some(20_000_000_000), None, None),
            seed: 1,
        }
    }

    fn chosen(work: Work, terms: &Terms) -> u64 {
        choose(work, terms, 90e9).unwrap().order as u64
    }

    #[test]
    fn operations_are_those_of_the_benchmark() {
        assert_eq!(operations(Work::Solve, 3), 18.0 + 18.0);
        assert_eq!(operations(Work::Solve, 6000), 144_072_000_000.0);
        assert_eq!(operations(Work::Product, 6000), 432e9);
    }

    #[test]
    fn columns_begin_on_lines_and_spread_over_the_sets() {
        for order in [1, 8, 9, 512, 1000, 4096, 6000] {
            let stride = stride(order);
            assert!(stride >= order && stride.is_multiple_of(8) && stride - order < 16, "{order}");
            assert_eq!(stride / 8 % 2, 1, "{order}");
        }
    }

    #[test]
    fn time_bounds_the_order() {
        let order = chosen(Work::Solve, &terms());
        let ns = |order| trial_ns(Work::Solve, order, 90e9);
        assert!(ns(order) <= 1.2e9 && ns(order + STEP) > 1.2e9, "{order}");
        assert!(chosen(Work::Product, &terms()) < order);
        let short = Terms { time_ns: 1, ..terms() };
        assert_eq!(chosen(Work::Solve, &short), LEAST);
        let room = Room::of(Some(u64::MAX), None, None);
        let long = Terms { time_ns: u64::MAX, room, ..terms() };
        assert_eq!(chosen(Work::Solve, &long), MOST);
    }

    #[test]
    fn memory_bounds_the_order() {
        let small = Terms { room: Room::of(Some(200_000_000), None, None), ..terms() };
        for work in [Work::Solve, Work::Product] {
            let order = chosen(work, &small);
            assert!(bytes(work, order, 2) <= 120_000_000);
            assert!(bytes(work, order + STEP, 2) > 120_000_000);
        }
        let none = Terms { room: Room::of(Some(1_000_000), None, None), ..terms() };
        let text = choose(Work::Solve, &none, 90e9).unwrap_err();
        assert!(text.contains("600 kB may be taken"), "{text}");
    }

    #[test]
    fn many_threads_with_little_memory_have_small_matrices() {
        let room = Room::of(Some(4_000_000_000), None, None);
        for work in [Work::Solve, Work::Product] {
            let many = Terms { threads: 256, room: room.clone(), ..terms() };
            assert!(chosen(work, &many) >= 1000, "{work:?}");
        }
    }

    #[test]
    fn an_order_that_is_given_is_taken_or_refused() {
        let given =
            |order| choose(Work::Solve, &Terms { order: Some(order), time_ns: 1, ..terms() }, 90e9);
        assert_eq!(given(6000).unwrap(), Shape { order: 6000, stride: 6008 });
        assert_eq!(given(1).unwrap(), Shape { order: 1, stride: 8 });
        for order in [100_000, crate::cpu::MAX_ORDER] {
            let text = given(order).unwrap_err();
            assert!(text.contains(&format!("--order {order}:")), "{text}");
        }
    }
}
