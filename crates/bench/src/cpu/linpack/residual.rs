//! Whether a solution is one: the residual of A x = b, with A made again from its seed.

use super::system::fill_column;

/// Normalised residuals below this pass.
///
/// Source: the threshold of HPL (A. Petitet, R. C. Whaley, J. Dongarra, A. Cleary, "HPL", netlib).
pub(super) const THRESHOLD: f64 = 16.0;

/// How far a solution is off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Residual {
    /// ‖Ax − b‖∞.
    pub(crate) absolute: f64,
    /// ‖Ax − b‖∞ ÷ (ε ‖A‖∞ ‖x‖∞ n), with ε = 2⁻⁵³, the unit of rounding.
    pub(crate) normalised: f64,
}

/// Whether a normalised residual is small enough. One that is no number is not.
pub(super) fn passes(normalised: f64) -> bool {
    normalised < THRESHOLD
}

/// The largest magnitude; not a number where one of them is none.
fn norm(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most: f64, value| {
        if value.is_nan() || most.is_nan() { f64::NAN } else { most.max(value.abs()) }
    })
}

/// The residual of `x` for the matrix of `seed`, whose right side is its column n.
///
/// Cost: n² random numbers.
pub(crate) fn of(x: &[f64], seed: u64) -> Residual {
    let n = x.len();
    let mut rest = vec![0.0; n];
    fill_column(&mut rest, seed, n as u64);
    let mut sums = vec![0.0; n];
    let mut column = vec![0.0; n];
    for (index, x) in x.iter().enumerate() {
        fill_column(&mut column, seed, index as u64);
        for ((rest, sum), a) in rest.iter_mut().zip(&mut sums).zip(&column) {
            *rest -= a * x;
            *sum += a.abs();
        }
    }
    normalise(norm(&rest), norm(&sums), norm(x), n)
}

/// Puts the norms together. Source: the formula of the LINPACK benchmark as HPL prints it, with
/// the norm of A alone, and not that of b added to it, below the line: never the smaller figure.
fn normalise(rest: f64, matrix: f64, solution: f64, n: usize) -> Residual {
    let unit = f64::EPSILON / 2.0;
    let scale = unit * matrix * solution * n as f64;
    let normalised = if rest == 0.0 { 0.0 } else { rest / scale };
    Residual { absolute: rest, normalised }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formula_is_that_of_the_benchmark() {
        let unit = 2.0_f64.powi(-53);
        let residual = normalise(8.0 * unit * 3.0 * 5.0 * 100.0, 3.0, 5.0, 100);
        assert!((residual.normalised - 8.0).abs() < 1e-12);
        assert!(passes(residual.normalised));
        assert!(!passes(16.0) && !passes(f64::NAN) && passes(0.0));
        assert_eq!(normalise(0.0, 3.0, 0.0, 1).normalised, 0.0);
    }

    #[test]
    fn a_wrong_solution_does_not_pass() {
        let n = 40;
        for wrong in [0.0, 1.0, f64::NAN, f64::INFINITY] {
            assert!(!passes(of(&vec![wrong; n], 5).normalised), "{wrong}");
        }
        let mut one_is_none = vec![1.0; n];
        one_is_none[n - 1] = f64::NAN;
        assert!(!passes(of(&one_is_none, 5).normalised));
    }

    #[test]
    fn an_equation_of_order_one_can_be_checked_by_hand() {
        let (mut a, mut b) = ([0.0], [0.0]);
        fill_column(&mut a, 11, 0);
        fill_column(&mut b, 11, 1);
        let residual = of(&[b[0] / a[0]], 11);
        assert!(residual.normalised < 2.0, "{residual:?}");
        let off = of(&[b[0] / a[0] * 1.001], 11);
        assert!((off.absolute - b[0].abs() * 0.001).abs() < 1e-12, "{off:?}");
        assert!(!passes(off.normalised));
    }
}
