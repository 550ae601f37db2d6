//! Seeded random numbers, and those of the distributions that simulations draw from.

pub use flatout_sys::generator::SplitMix64;

/// Numbers of some distributions.
#[cfg(test)]
pub(crate) trait Draw {
    /// A number from the standard normal distribution.
    fn normal(&mut self) -> f64;

    /// A number from the gamma distribution of this shape, at least 1, and scale 1.
    fn gamma(&mut self, shape: f64) -> f64;
}

#[cfg(test)]
impl Draw for SplitMix64 {
    /// Source: Box and Muller, "A note on the generation of random normal deviates", 1958.
    fn normal(&mut self) -> f64 {
        // 1 − u is never 0.
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (2.0 * std::f64::consts::PI * self.unit()).cos()
    }

    /// Source: Marsaglia and Tsang, "A simple method for generating gamma variables", 2000.
    fn gamma(&mut self, shape: f64) -> f64 {
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
        near(moments(&mut Draw::normal), 0.0, 1.0);
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
