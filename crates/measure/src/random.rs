//! A small seeded generator for orders, seeds and resampling. Not for secrets.
//!
//! Own code, because results must be the same on every machine and in every version.

/// SplitMix64: one 64-bit state, every seed is good, period 2^64.
///
/// Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
#[derive(Debug, Clone)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// A generator whose numbers depend on `seed` alone.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// An index below `bound`, or 0 when `bound` is 0. The bias is below bound ÷ 2^64.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next_u64()) * bound as u128) >> 64) as usize
    }

    /// A number from 0 to below 1, evenly spread over 2^53 steps.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number from the standard normal distribution.
    ///
    /// Source: Box and Muller, "A note on the generation of random normal deviates", 1958.
    pub fn normal(&mut self) -> f64 {
        // 1 − u is never 0.
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (2.0 * std::f64::consts::PI * self.unit()).cos()
    }

    /// A number from the gamma distribution of this shape, at least 1, and scale 1.
    ///
    /// Source: Marsaglia and Tsang, "A simple method for generating gamma variables", 2000.
    #[cfg(test)]
    pub(crate) fn gamma(&mut self, shape: f64) -> f64 {
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            // ln 0 is −∞, which is below everything.
            if v > 0.0 && (1.0 - self.unit()).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }

    /// Puts `items` in random order (Fisher–Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_numbers() {
        let mut random = SplitMix64::new(1_234_567);
        assert_eq!(random.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(random.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn a_shuffle_keeps_every_item_and_depends_on_the_seed_alone() {
        let shuffled = |seed| {
            let mut items: Vec<u32> = (0..100).collect();
            SplitMix64::new(seed).shuffle(&mut items);
            items
        };
        assert_eq!(shuffled(7), shuffled(7));
        assert_ne!(shuffled(7), shuffled(8));
        let mut sorted = shuffled(7);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<u32>>());
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        let mut random = SplitMix64::new(11);
        let mut moments = |draw: &mut dyn FnMut(&mut SplitMix64) -> f64| {
            let drawn: Vec<f64> = (0..20_000).map(|_| draw(&mut random)).collect();
            let mean = drawn.iter().sum::<f64>() / 20_000.0;
            (mean, drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 20_000.0)
        };
        let near = |got: (f64, f64), mean: f64, variance: f64| {
            assert!((got.0 - mean).abs() < 0.03 * variance.sqrt(), "{got:?}");
            assert!((got.1 / variance - 1.0).abs() < 0.06, "{got:?}");
        };
        near(moments(&mut SplitMix64::unit), 0.5, 1.0 / 12.0);
        near(moments(&mut SplitMix64::normal), 0.0, 1.0);
        near(moments(&mut |random| random.gamma(1.0)), 1.0, 1.0);
        near(moments(&mut |random| random.gamma(7.5)), 7.5, 7.5);
    }

    #[test]
    fn below_stays_below() {
        let mut random = SplitMix64::new(3);
        assert_eq!(random.below(0), 0);
        let mut seen = [false; 5];
        for _ in 0..200 {
            seen[random.below(5)] = true;
        }
        assert_eq!(seen, [true; 5]);
    }
}
