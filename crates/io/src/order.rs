//! In which order the blocks of a file are visited.
//!
//! Every order visits each block exactly once per pass: random offsets drawn with replacement
//! would leave out more than a third of the blocks and visit others again and again, so a random
//! order is a permutation.

/// An order of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// 0, 1, 2, …
    Forward,
    /// The last first.
    Backward,
    /// Every `step`-th block, then those one further on, until all are visited.
    Strided {
        /// Distance of two blocks that follow one another; at least 1.
        step: u64,
    },
    /// A permutation that depends on the seed.
    Random {
        /// Which permutation.
        seed: u64,
    },
}

impl Order {
    /// The block that is visited at `position` of a pass over `count` blocks.
    ///
    /// Range: `position` below `count`. Cost: a few multiplications, no memory.
    #[inline]
    pub fn block(self, position: u64, count: u64) -> u64 {
        match self {
            Self::Forward => position,
            Self::Backward => count - 1 - position,
            Self::Strided { step } => strided(position, count, step.clamp(1, count)),
            Self::Random { seed } => permuted(position, count, seed),
        }
    }
}

/// Blocks 0, s, 2s, … of the first column, then 1, s + 1, … of the second, and so on. The first
/// `count mod step` columns have one block more than the others.
fn strided(position: u64, count: u64, step: u64) -> u64 {
    let (short, tall_columns) = (count / step, count % step);
    let tall = short + 1;
    let (column, row) = match position {
        position if position < tall_columns * tall => (position / tall, position % tall),
        position => {
            let rest = position - tall_columns * tall;
            (tall_columns + rest / short, rest % short)
        }
    };
    row * step + column
}

/// Rounds of mixing; after two a test below still finds adjacent items too close to each other.
const ROUNDS: u32 = 3;

/// A bijection of the numbers of as many bits as `count` needs, walked until the result is below
/// `count`: less than two steps on average, because more than half of those numbers are.
///
/// Source: the walk is the cycle walking of Black and Rogaway, "Ciphers with arbitrary finite
/// domains", 2002. Each step of a round (multiplying by an odd number, adding, folding the upper
/// half down) is a bijection of its own.
fn permuted(position: u64, count: u64, seed: u64) -> u64 {
    let bits = u64::BITS - (count - 1).max(1).leading_zeros();
    let mask = u64::MAX >> (u64::BITS - bits);
    let fold = bits.div_ceil(2);
    let mut block = position;
    loop {
        for round in 0..ROUNDS {
            let key = seed.rotate_left(round * 21) ^ 0x9e37_79b9_7f4a_7c15;
            block = block.wrapping_mul(0xbf58_476d_1ce4_e5b9 ^ (key << 1)).wrapping_add(key) & mask;
            block ^= block >> fold;
        }
        if block < count {
            return block;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEDS: [u64; 4] = [0, 1, 0xdead_beef, u64::MAX];

    fn orders() -> Vec<Order> {
        let strided = [1, 2, 3, 17, 1000].map(|step| Order::Strided { step });
        let random = SEEDS.map(|seed| Order::Random { seed });
        [Order::Forward, Order::Backward].into_iter().chain(strided).chain(random).collect()
    }

    #[test]
    fn every_order_visits_each_block_once() {
        for order in orders() {
            for count in (1..70).chain([127, 128, 129, 1000, 4096, 5000]) {
                let mut seen = vec![false; count as usize];
                for position in 0..count {
                    let block = order.block(position, count) as usize;
                    assert!(!seen[block], "{order:?} visits {block} of {count} twice");
                    seen[block] = true;
                }
            }
        }
    }

    #[test]
    fn strides_are_strides() {
        let blocks: Vec<_> =
            (0..7).map(|position| Order::Strided { step: 3 }.block(position, 7)).collect();
        assert_eq!(blocks, [0, 3, 6, 1, 4, 2, 5]);
    }

    #[test]
    fn random_orders_differ_by_seed_and_look_random() {
        const COUNT: u64 = 100_000;
        for seed in SEEDS {
            let at = |position| Order::Random { seed }.block(position, COUNT);
            let other = |position| Order::Random { seed: seed ^ 1 }.block(position, COUNT);
            let same = (0..COUNT).filter(|&p| at(p) == other(p)).count();
            assert!(same < 30, "seed {seed}: {same} places in common, about 1 expected");
            // Of independent adjacent items, the distance is a third of the count on average.
            let distance: u64 = (1..COUNT).map(|p| at(p).abs_diff(at(p - 1))).sum();
            let mean = distance as f64 / (COUNT - 1) as f64 / COUNT as f64;
            assert!((mean - 1.0 / 3.0).abs() < 0.01, "seed {seed}: mean distance {mean}");
            // Blocks that follow directly on their predecessor: about one in all.
            let adjacent = (1..COUNT).filter(|&p| at(p) == at(p - 1) + 1).count();
            assert!(adjacent < 30, "seed {seed}: {adjacent} adjacent");
            // A tenth of the visits falls into each tenth of the file, also early in the pass.
            let early = (0..COUNT / 10).filter(|&p| at(p) < COUNT / 10).count() as f64;
            assert!((early / 1000.0 - 1.0).abs() < 0.15, "seed {seed}: {early} of about 1000");
        }
    }

    #[test]
    fn huge_files_have_orders_too() {
        let count = (1 << 50) + 12_345;
        for order in orders() {
            for position in [0, 1, count / 2, count - 1] {
                assert!(order.block(position, count) < count, "{order:?}");
            }
        }
    }
}
