//! Accesses of eight bytes, one after the other, in order and out of order: the finest blocks.
//!
//! They do not wait for one another, so a CPU has many in flight: what is timed is how often one
//! is finished, not how long one takes. How long one takes is found by chasing pointers.
//! The accesses are volatile: the compiler neither joins them into vectors nor leaves any out.

crate::words! {
    /// In which way the cells of eight bytes are gone through.
    pub enum Pattern: name, ALL {
        /// Reads a cell of the source and writes it to the target, in order.
        SequentialCopy = "sequential-copy",
        /// Writes cells in order.
        SequentialWrite = "sequential-write",
        /// Writes cells in an order that visits each of them once.
        RandomWrite = "random-write",
    }
}

/// Multiplier and increment of the walk below.
const MULTIPLIER: u64 = 0xd134_2543_de82_ef95;
const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;

/// Cells that a walk over `cells` of them covers: the largest power of two.
pub fn span_cells(cells: usize) -> usize {
    if cells == 0 { 0 } else { 1 << cells.ilog2() }
}

/// A walk over a power of two of cells that visits each of them once before it begins anew.
///
/// Source: a linear congruential generator modulo 2^k has the full period when its increment is
/// odd and its multiplier leaves 1 modulo 4 (Hull and Dobell, "Random number generators", 1962).
/// Its low bits follow a short pattern, so the high half is folded into them, which is a bijection.
#[derive(Debug, Clone, Copy)]
pub struct Walk {
    state: u64,
    mask: u64,
    fold: u32,
}

impl Walk {
    /// A walk over [`span_cells`] of `cells`, beginning at a place that `seed` decides.
    pub fn new(cells: usize, seed: u64) -> Self {
        let span = span_cells(cells).max(1) as u64;
        let fold = span.ilog2().div_ceil(2).max(1);
        Self { state: seed & (span - 1), mask: span - 1, fold }
    }

    /// The next cell.
    #[inline(always)]
    pub fn step(&mut self) -> usize {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT) & self.mask;
        (self.state ^ (self.state >> self.fold)) as usize
    }
}

/// Makes `count` accesses, beginning anew at the first cell after the last; returns how many were
/// made: `count`, or none where there are no cells. `RandomWrite` writes to the first
/// [`span_cells`] only.
///
/// What is written is [`word_at`] of the cell, or the source's word. The source must be as long as
/// the target for `SequentialCopy`; others do not look at it.
///
/// Panics: if it is not.
pub fn run(pattern: Pattern, target: &mut [f64], source: &[f64], count: u64, seed: u64) -> u64 {
    if target.is_empty() {
        return 0;
    }
    match pattern {
        Pattern::SequentialCopy => {
            assert_eq!(target.len(), source.len(), "source and target differ in length");
            in_order(target.len(), count, |cell| {
                // SAFETY: `cell` is below both lengths.
                unsafe {
                    let word = source.as_ptr().add(cell).read_volatile();
                    target.as_mut_ptr().add(cell).write_volatile(word);
                }
            });
        }
        Pattern::SequentialWrite => in_order(target.len(), count, |cell| {
            let word = f64::from_bits(word_at(cell, seed));
            // SAFETY: `cell` is below the length.
            unsafe { target.as_mut_ptr().add(cell).write_volatile(word) };
        }),
        Pattern::RandomWrite => {
            let mut walk = Walk::new(target.len(), seed);
            for _ in 0..count {
                let cell = walk.step();
                let word = f64::from_bits(word_at(cell, seed));
                // SAFETY: a walk stays within the span, which is at most the length.
                unsafe { target.as_mut_ptr().add(cell).write_volatile(word) };
            }
        }
    }
    count
}

/// What is written to a cell: its index, which no other cell gets, made different by the seed.
#[inline(always)]
pub fn word_at(cell: usize, seed: u64) -> u64 {
    cell as u64 ^ seed
}

#[inline(always)]
fn in_order(cells: usize, count: u64, mut access: impl FnMut(usize)) {
    let mut left = count;
    while left > 0 {
        let stretch = left.min(cells as u64);
        for cell in 0..stretch as usize {
            access(cell);
        }
        left -= stretch;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_visits_each_cell_of_its_span_once() {
        for cells in [1, 2, 3, 8, 1000, 4096, 5000] {
            for seed in [0, 1, u64::MAX] {
                let span = span_cells(cells);
                assert!(span <= cells && span * 2 > cells, "{span} of {cells}");
                let mut walk = Walk::new(cells, seed);
                let mut seen: Vec<usize> = (0..span).map(|_| walk.step()).collect();
                let order = seen.clone();
                seen.sort_unstable();
                assert!(seen.iter().copied().eq(0..span), "{cells} cells");
                assert!((0..span).all(|place| walk.step() == order[place]), "the period");
            }
        }
        assert_eq!(span_cells(0), 0);
    }

    #[test]
    fn a_walk_leaves_the_line_and_the_page_nearly_always() {
        const SPAN: usize = 1 << 20;
        let mut walk = Walk::new(SPAN, 5);
        let cells: Vec<usize> = (0..SPAN).map(|_| walk.step()).collect();
        // 512 cells are a page of 4 KiB; of independent cells one pair in 1000 shares a page.
        let near = cells.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 512).count();
        assert!(near < SPAN / 250, "{near} of {SPAN}");
        // Of independent cells the distance is a third of the span on average.
        let distance: usize = cells.windows(2).map(|pair| pair[0].abs_diff(pair[1])).sum();
        let mean = distance as f64 / SPAN as f64 / SPAN as f64;
        assert!((mean - 1.0 / 3.0).abs() < 0.02, "mean distance {mean}");
    }

    #[test]
    fn what_was_written_is_there() {
        let source: Vec<f64> = (0..100).map(f64::from).collect();
        let mut target = vec![-1.0; 100];
        assert_eq!(run(Pattern::SequentialCopy, &mut target, &source, 60, 0), 60);
        assert_eq!(target[..60], source[..60]);
        assert!(target[60..].iter().all(|&cell| cell == -1.0));
        assert_eq!(run(Pattern::SequentialWrite, &mut target, &[], 130, 9), 130);
        assert!((0..100).all(|cell| target[cell].to_bits() == word_at(cell, 9)));
        target.fill(-1.0);
        assert_eq!(run(Pattern::RandomWrite, &mut target, &[], 64, 7), 64);
        assert!((0..64).all(|cell| target[cell].to_bits() == word_at(cell, 7)));
        assert!(target[64..].iter().all(|&cell| cell == -1.0));
        assert_eq!(run(Pattern::RandomWrite, &mut [], &[], 64, 7), 0);
    }
}
