//! What several rows say together of how far figures lie apart.

/// Weight of the kin of a row: degrees of freedom of the prior.
pub const KIN_FREEDOM: f64 = 4.0;

/// Rows from which on they are kin enough to stand for one another.
pub const LEAST_KIN: usize = 3;

/// Sum of squares and degrees of freedom of some rows.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pool {
    /// Sum of the squares of deviations.
    pub squares: f64,
    /// Degrees of freedom.
    pub freedom: f64,
    /// How many rows.
    pub rows: usize,
}

impl Pool {
    /// Of the logarithms of one row.
    pub fn of(logs: impl Iterator<Item = f64> + Clone) -> Self {
        let count = logs.clone().count();
        if count < 2 {
            return Self::default();
        }
        let mean = logs.clone().sum::<f64>() / count as f64;
        let squares = logs.map(|log| (log - mean).powi(2)).sum();
        Self { squares, freedom: (count - 1) as f64, rows: 1 }
    }

    /// Both together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            squares: self.squares + other.squares,
            freedom: self.freedom + other.freedom,
            rows: self.rows + other.rows,
        }
    }

    /// The variance; not a number without degrees of freedom.
    pub fn variance(&self) -> f64 {
        self.squares / self.freedom
    }

    /// The variance of a row weighed with that of its kin, which counts as [`KIN_FREEDOM`].
    ///
    /// Source: the moderated variance of Smyth, "Linear models and empirical Bayes methods", 2004,
    /// with a fixed weight of the prior.
    pub fn weighed(&self, kin_variance: f64) -> f64 {
        (self.squares + KIN_FREEDOM * kin_variance) / (self.freedom + KIN_FREEDOM)
    }
}

/// What rows that are kin say of one of them before its own figures are seen: a variance, and how
/// many degrees of freedom it is worth. Rows that differ much among themselves are worth little.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prior {
    /// The variance of a usual one.
    pub variance: f64,
    /// Its weight.
    pub freedom: f64,
}

/// Variance below which figures count as equal.
const LEAST_VARIANCE: f64 = 1e-7;
/// Degrees of freedom that kin are worth at most.
const MOST_FREEDOM: f64 = 20.0;
/// Degrees of freedom from which on a row says something of others.
const LEAST_FREEDOM: f64 = 2.0;

impl Prior {
    /// Of these rows; `None` where too few of them have figures enough.
    ///
    /// Source: section 6.2 of Smyth, "Linear models and empirical Bayes methods", 2004: the mean of
    /// ln variance tells the variance, its variance beyond what few figures make tells the weight.
    pub fn of(rows: &[Pool]) -> Option<Self> {
        let rows: Vec<&Pool> = rows.iter().filter(|row| row.freedom >= LEAST_FREEDOM).collect();
        if rows.len() < LEAST_KIN {
            return None;
        }
        let count = rows.len() as f64;
        let log = |row: &&Pool| {
            let half = row.freedom / 2.0;
            row.variance().max(LEAST_VARIANCE).ln() - digamma(half) + half.ln()
        };
        let mean = rows.iter().map(log).sum::<f64>() / count;
        let squares = rows.iter().map(|row| (log(row) - mean).powi(2)).sum::<f64>();
        let by_chance = rows.iter().map(|row| trigamma(row.freedom / 2.0)).sum::<f64>() / count;
        let half = half_freedom(squares / (count - 1.0) - by_chance);
        let variance = (mean + digamma(half) - half.ln()).exp();
        Some(Self { variance, freedom: 2.0 * half })
    }

    /// The variance of a row of such kin, and its degrees of freedom.
    pub fn with(self, own: Pool) -> (f64, f64) {
        let freedom = own.freedom + self.freedom;
        ((own.squares + self.freedom * self.variance) / freedom, freedom)
    }
}

/// Half the degrees of freedom of which ln variance varies by so much, by bisection.
fn half_freedom(beyond_chance: f64) -> f64 {
    let (mut low, mut high) = (0.01, MOST_FREEDOM / 2.0);
    if beyond_chance <= trigamma(high) {
        return high;
    }
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        *(if trigamma(middle) > beyond_chance { &mut low } else { &mut high }) = middle;
    }
    low
}

/// Argument from which on the asymptotic series are good to eight digits.
const SERIES_FROM: f64 = 8.0;

/// The derivative of ln Γ; Abramowitz and Stegun 6.3.5 and 6.3.18.
fn digamma(mut at: f64) -> f64 {
    let mut sum = 0.0;
    while at < SERIES_FROM {
        sum -= at.recip();
        at += 1.0;
    }
    sum + at.ln() - 0.5 / at - at.powi(-2) / 12.0 + at.powi(-4) / 120.0 - at.powi(-6) / 252.0
}

/// The derivative of that; 6.4.6 and 6.4.12.
fn trigamma(mut at: f64) -> f64 {
    let mut sum = 0.0;
    while at < SERIES_FROM {
        sum += at.powi(-2);
        at += 1.0;
    }
    sum + at.recip() + 0.5 * at.powi(-2) + at.powi(-3) / 6.0 - at.powi(-5) / 30.0
        + at.powi(-7) / 42.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_derivatives_of_the_gamma_function_are_those_of_the_tables() {
        assert!((digamma(1.0) + 0.577_215_664_9).abs() < 1e-8);
        assert!((digamma(2.5) - 0.703_156_640_6).abs() < 1e-8);
        assert!((trigamma(1.0) - 1.644_934_066_8).abs() < 1e-8);
        assert!((trigamma(0.5) - 4.934_802_200_5).abs() < 1e-8);
        let half = half_freedom(trigamma(3.0));
        assert!((half - 3.0).abs() < 1e-6, "{half}");
    }

    #[test]
    fn kin_that_are_alike_are_worth_much_and_kin_that_differ_little() {
        let row = |variance: f64| Pool { squares: 5.0 * variance, freedom: 5.0, rows: 1 };
        let prior = |variances: &[f64]| {
            Prior::of(&variances.iter().map(|variance| row(*variance)).collect::<Vec<_>>()).unwrap()
        };
        let alike = prior(&[0.9e-4, 1e-4, 1.1e-4, 1e-4]);
        assert_eq!(alike.freedom, MOST_FREEDOM);
        assert!((0.5e-4..2e-4).contains(&alike.variance), "{alike:?}");
        let (variance, freedom) = alike.with(row(4e-4));
        assert!(freedom == 25.0 && variance < 2.5e-4, "{variance}");
        let apart = prior(&[1e-6, 1e-2, 1e-4, 3e-5, 1e-3]);
        assert!(apart.freedom < 2.0, "{apart:?}");
        let (variance, _) = apart.with(row(1e-6));
        assert!(variance < 1e-4, "a steady row stays steady: {variance}");
        assert_eq!(Prior::of(&[row(1.0), row(1.0)]), None);
        assert_eq!(Prior::of(&[Pool::default(); 9]), None);
    }
}
