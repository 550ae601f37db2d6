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
