//! Tails and quantiles of the normal distribution and of Student's t, for tests and intervals.
//!
//! Good to about ten digits, which is far beyond what any of our samples deserve. Not for hot
//! loops: a quantile costs some sixty evaluations of a tail.

/// Steps of a bisection: the interval of a double is used up before.
const BISECTIONS: u32 = 200;

/// P(|Z| ≥ |z|) of a standard normal Z.
pub fn normal_two_sided(z: f64) -> f64 {
    libm::erfc(z.abs() / std::f64::consts::SQRT_2).clamp(0.0, 1.0)
}

/// P(Z ≤ z) of a standard normal Z.
pub fn normal_below(z: f64) -> f64 {
    let tail = normal_two_sided(z) / 2.0;
    if z > 0.0 { 1.0 - tail } else { tail }
}

/// The z below which the share `q` of a standard normal lies, for `q` from ½ to below 1.
///
/// Used with constants only; others than these give 0 or infinity.
pub fn normal_quantile(q: f64) -> f64 {
    upper_quantile(q, normal_two_sided)
}

/// P(|T| ≥ |t|) for Student's t with `freedom` degrees of freedom, which need not be whole.
///
/// Source: Abramowitz and Stegun 26.7.1, as the regularised incomplete beta function.
pub fn student_two_sided(t: f64, freedom: f64) -> f64 {
    if !t.is_finite() {
        return 0.0;
    }
    if t == 0.0 {
        return 1.0;
    }
    // The share of t² in t² + freedom loses its digits when t is small; the other one when large.
    let x = freedom / (freedom + t * t);
    incomplete_beta(freedom / 2.0, 0.5, x).clamp(0.0, 1.0)
}

/// The t below which the share `q` of Student's t lies, for `q` from ½ to below 1.
pub fn student_quantile(q: f64, freedom: f64) -> f64 {
    upper_quantile(q, |t| student_two_sided(t, freedom))
}

/// Where a falling two-sided tail reaches 2 (1 − q).
fn upper_quantile(q: f64, two_sided: impl Fn(f64) -> f64) -> f64 {
    let tail = 2.0 * (1.0 - q);
    if tail >= 1.0 {
        return 0.0;
    }
    if tail <= 0.0 {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while two_sided(high) > tail && high < 1e150 {
        (low, high) = (high, high * 2.0);
    }
    for _ in 0..BISECTIONS {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            break;
        }
        if two_sided(middle) > tail { low = middle } else { high = middle }
    }
    high
}

/// The regularised incomplete beta function I_x(a, b).
///
/// Source: the continued fraction of Abramowitz and Stegun 26.5.8, evaluated from the front as
/// Lentz proposes; on the side of the mean where it converges fast.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let log_front =
        a * x.ln() + b * (-x).ln_1p() + libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b);
    if x < (a + 1.0) / (a + b + 2.0) {
        log_front.exp() * beta_fraction(a, b, x) / a
    } else {
        1.0 - log_front.exp() * beta_fraction(b, a, 1.0 - x) / b
    }
}

/// The continued fraction behind [`incomplete_beta`].
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    // Keeps a factor away from zero, so that it can be divided by.
    let apart = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / apart(1.0 - (a + b) * x / (a + 1.0));
    let mut sum = d;
    // √max(a, b) steps are enough; more than this has converged or never will.
    for step in 1..1000 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / apart(1.0 + even * d);
        c = apart(1.0 + even / c);
        sum *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / apart(1.0 + odd * d);
        c = apart(1.0 + odd / c);
        sum *= d * c;
        if (d * c - 1.0).abs() < 1e-15 {
            break;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: f64, expected: f64) {
        assert!((got - expected).abs() <= 1e-9 * expected.abs(), "{got} is not {expected}");
    }

    #[test]
    fn erfc_at_known_points() {
        for (x, expected) in [
            (0.0, 1.0),
            (0.5, 0.479_500_122_186_953_5),
            (1.0, 0.157_299_207_050_285_13),
            (2.0, 0.004_677_734_981_047_266),
            (2.6, 0.000_236_034_416_529_349_2),
            (4.0, 1.541_725_790_028_002e-8),
        ] {
            let got = libm::erfc(x);
            assert!((got - expected).abs() <= 1e-9 * expected.max(1e-3), "{x}: {got}");
        }
    }

    // All figures below are from scipy 1.17.1.

    #[test]
    fn tails_of_t() {
        // 2 * scipy.stats.t.sf(t, nu)
        for (t, freedom, p) in [
            (0.5, 1.0, 0.704_832_764_699_133_5),
            (2.0, 1.0, 0.295_167_235_300_866_5),
            (2.776, 4.0, 0.050_022_778_319_976_42),
            (4.604, 4.0, 0.010_000_714_436_015_672),
            (1.0, 5.5, 0.359_253_374_813_120_25),
            (7.5, 6.0, 0.000_290_565_746_151_295_6),
            (3.0, 30.0, 0.005_389_964_065_651_945),
            (12.0, 3.0, 0.001_245_015_800_789_336_2),
            (40.0, 4.0, 2.334_016_322_601_267_8e-6),
        ] {
            close(student_two_sided(t, freedom), p);
            close(student_two_sided(-t, freedom), p);
        }
        assert_eq!(student_two_sided(0.0, 3.0), 1.0);
        assert_eq!(student_two_sided(f64::INFINITY, 3.0), 0.0);
    }

    #[test]
    fn quantiles_of_t() {
        // scipy.stats.t.ppf(q, nu)
        for (q, freedom, t) in [
            (0.975, 1.0, 12.706_204_736_174_694),
            (0.995, 4.0, 4.604_094_871_349_992),
            (0.995, 6.0, 3.707_428_021_324_806_5),
            (0.975, 30.0, 2.042_272_456_301_237_8),
            (0.999, 2.5, 13.822_193_110_865_96),
            (0.995, 1000.0, 2.580_754_698_065_951),
        ] {
            close(student_quantile(q, freedom), t);
        }
    }

    #[test]
    fn quantiles_of_the_normal() {
        // scipy.stats.norm.ppf(q)
        for (q, z) in [
            (0.8, 0.841_621_233_572_914_3),
            (0.975, 1.959_963_984_540_054),
            (0.995, 2.575_829_303_548_900_4),
            (0.9999, 3.719_016_485_455_709),
        ] {
            close(normal_quantile(q), z);
        }
        assert_eq!(normal_quantile(0.5), 0.0);
        assert_eq!(normal_quantile(1.0), f64::INFINITY);
    }

    #[test]
    fn the_incomplete_beta_function() {
        // scipy.special.betainc(a, b, x)
        for (a, b, x, expected) in [
            (2.0, 3.0, 0.4, 0.5248),
            (0.5, 0.5, 0.1, 0.204_832_764_699_133_45),
            (10.0, 1.0, 0.9, 0.348_678_440_1),
            (50.0, 60.0, 0.45, 0.464_235_291_430_603_1),
            (2.0, 0.5, 0.99, 0.8505),
        ] {
            close(incomplete_beta(a, b, x), expected);
        }
    }
}
