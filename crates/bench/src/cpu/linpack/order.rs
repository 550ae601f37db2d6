//! How large the matrices are: as large as memory and time allow, and no larger.

use super::Options;

/// Matrices begin on a page, and their columns on a line of the cache.
pub(crate) const ALIGNMENT_BYTES: u64 = 4096;
/// Share of the free memory that may be taken.
const MEMORY_SHARE: f64 = 0.6;
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

/// What is done with the matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// A x = b: one matrix.
    Solve,
    /// C = A B: three.
    Product,
}

/// What the order must keep to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Limits {
    pub(crate) free_bytes: u64,
    pub(crate) time_ns: u64,
    pub(crate) trials: u32,
    pub(crate) threads: u32,
    /// What all threads together are known to do at least.
    pub(crate) flop_per_s: f64,
}

impl Limits {
    pub(crate) fn of(options: &Options, flop_per_s: f64) -> Self {
        let Options { free_bytes, time_ns, trials, threads, .. } = *options;
        Self { free_bytes, time_ns, trials: trials.max(1), threads: threads.max(1), flop_per_s }
    }
}

/// What was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// Rows and columns.
    pub(crate) order: u64,
    /// Numbers from one column to the next: the leading dimension.
    pub(crate) stride: u64,
}

/// Operations that the figure counts: 2/3 n³ + 2 n² for equations, 2 n³ for a product.
pub(crate) fn operations(work: Work, order: u64) -> f64 {
    let n = order as f64;
    match work {
        Work::Solve => 2.0 / 3.0 * n.powi(3) + 2.0 * n.powi(2),
        Work::Product => 2.0 * n.powi(3),
    }
}

/// The leading dimension for an order: whole lines of the cache, and an odd number of them, so
/// that the numbers of a row do not fall into few sets of the cache.
pub(crate) fn stride(order: u64) -> u64 {
    (order.div_ceil(LINE) | 1).saturating_mul(LINE)
}

/// Bytes that a trial takes: matrices, vectors, and what the threads pack (three panels of at most
/// 384 columns; 8 MB for each thread and up to 20 MB for products).
pub(crate) fn bytes(work: Work, order: u64, threads: u32) -> u64 {
    let matrix = stride(order).saturating_mul(order).saturating_mul(8);
    let (matrices, own) = match work {
        Work::Solve => (1, 8_000_000),
        Work::Product => (3, 20_000_000),
    };
    let panels = if work == Work::Solve { 3 * 384 * 8 * (order + 64) } else { 0 };
    let vectors = order * 8 * 8;
    let packed = u64::from(threads) * own;
    matrix.saturating_mul(matrices).saturating_add(panels + vectors + packed)
}

/// Time of a trial with what is outside the clock.
fn trial_ns(work: Work, order: u64, flop_per_s: f64) -> f64 {
    let numbers = order as f64 * order as f64;
    operations(work, order) / flop_per_s * 1e9 + OUTSIDE_NS * numbers
}

/// The order that was `wanted`, or the largest that leaves room and time for the trials.
///
/// # Errors
/// One line: an order of 0, or one for which there is not the memory.
pub(crate) fn choose(work: Work, wanted: Option<u64>, limits: &Limits) -> Result<Chosen, String> {
    let room_bytes = (limits.free_bytes as f64 * MEMORY_SHARE) as u64;
    let fits = |order: u64| bytes(work, order, limits.threads) <= room_bytes;
    let refused = |order: u64| {
        format!(
            "matrices of order {order} take {} bytes, but {room_bytes} may be taken (60 % of the \
             {} that are free)",
            bytes(work, order, limits.threads),
            limits.free_bytes
        )
    };
    match wanted {
        Some(0) => return Err("--order 0: it must be at least 1".to_owned()),
        // So large a one would overflow the count of bytes.
        Some(order) if order > 1 << 24 => {
            return Err(format!("--order {order}: it must be at most {}", 1 << 24));
        }
        Some(order) if fits(order) => return Ok(Chosen { order, stride: stride(order) }),
        Some(order) => return Err(format!("--order {order}: {}", refused(order))),
        None => {}
    }
    if !fits(LEAST) {
        return Err(refused(LEAST));
    }
    let trials = f64::from(limits.trials.clamp(1, TRIALS_HELD));
    let each_ns = limits.time_ns as f64 / trials;
    let quick = |order: u64| trial_ns(work, order, limits.flop_per_s) <= each_ns;
    let steps = (LEAST..=MOST).step_by(STEP as usize);
    let order = steps.take_while(|&order| fits(order) && quick(order)).last().unwrap_or(LEAST);
    Ok(Chosen { order, stride: stride(order) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits {
            free_bytes: 20_000_000_000,
            time_ns: 12_000_000_000,
            trials: 10,
            threads: 2,
            flop_per_s: 90e9,
        }
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
        let chosen = choose(Work::Solve, None, &limits()).unwrap();
        let ns = |order| trial_ns(Work::Solve, order, 90e9);
        assert!(ns(chosen.order) <= 1.2e9 && ns(chosen.order + STEP) > 1.2e9, "{chosen:?}");
        let product = choose(Work::Product, None, &limits()).unwrap();
        assert!(product.order < chosen.order);
        let short = Limits { time_ns: 1, ..limits() };
        assert_eq!(choose(Work::Solve, None, &short).unwrap().order, LEAST);
        let long = Limits { time_ns: u64::MAX, free_bytes: u64::MAX, ..limits() };
        assert_eq!(choose(Work::Solve, None, &long).unwrap().order, MOST);
    }

    #[test]
    fn memory_bounds_the_order() {
        let small = Limits { free_bytes: 200_000_000, ..limits() };
        for work in [Work::Solve, Work::Product] {
            let chosen = choose(work, None, &small).unwrap();
            assert!(bytes(work, chosen.order, 2) <= 120_000_000);
            assert!(bytes(work, chosen.order + STEP, 2) > 120_000_000);
        }
        let none = Limits { free_bytes: 1_000_000, ..limits() };
        let text = choose(Work::Solve, None, &none).unwrap_err();
        assert!(text.contains("600000 may be taken"), "{text}");
    }

    #[test]
    fn an_order_that_is_given_is_taken_or_refused() {
        let short = Limits { time_ns: 1, ..limits() };
        let given = |order| choose(Work::Solve, Some(order), &short);
        assert_eq!(given(6000).unwrap(), Chosen { order: 6000, stride: 6008 });
        assert_eq!(given(1).unwrap(), Chosen { order: 1, stride: 8 });
        for order in [0, 100_000, u64::MAX] {
            let text = given(order).unwrap_err();
            assert!(text.contains(&format!("--order {order}:")), "{text}");
        }
    }
}
