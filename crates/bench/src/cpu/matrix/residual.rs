//! How far a result is off, and whether that passes.

use super::order::Shape;
use super::system::fill_column;

/// Normalised residuals below this pass.
///
/// Source: the threshold of HPL (A. Petitet, R. C. Whaley, J. Dongarra, A. Cleary, "HPL", netlib).
pub(super) const THRESHOLD: f64 = 16.0;

/// How far a result is off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Residual {
    pub(super) absolute: f64,
    /// Divided by the unit of rounding, ε = 2⁻⁵³, times the order, times the magnitude of what was
    /// added up.
    pub(super) normalised: f64,
}

impl Residual {
    /// Of differences whose largest magnitude is `absolute`.
    pub(super) fn new(absolute: f64, order: usize, scale: f64) -> Self {
        let unit = f64::EPSILON / 2.0;
        let normalised =
            if absolute == 0.0 { 0.0 } else { absolute / (unit * order as f64 * scale) };
        Self { absolute, normalised }
    }

    /// Whether it is small enough. One that is no number is not.
    pub(super) fn passes(self) -> bool {
        self.normalised < THRESHOLD
    }
}

/// The largest magnitude; not a number where one of them is none.
pub(super) fn norm(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most: f64, value| {
        if value.is_nan() || most.is_nan() { f64::NAN } else { most.max(value.abs()) }
    })
}

/// The residual of the solution `x` for the matrix of `seed`, whose right side is its column n:
/// ‖Ax − b‖∞, and that ÷ (ε ‖A‖∞ ‖x‖∞ n). A is made again from its seed.
///
/// Cost: n² random numbers. Source: the formula of the LINPACK benchmark as HPL prints it, with
/// the norm of A alone, and not that of b added to it, below the line: never the smaller figure.
pub(super) fn of_solution(x: &[f64], seed: u64) -> Residual {
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
    Residual::new(norm(&rest), n, norm(&sums) * norm(x))
}

/// The residual of the product C = A B, for a random v: ‖A (B v) − C v‖∞, and that ÷
/// (ε n (‖C v‖∞ + ‖B v‖∞ ÷ 2)), where ½ bounds the numbers of A. Nothing else of C is used.
///
/// Source: R. Freivalds, "Probabilistic machines can use less running time", 1977.
pub(super) fn of_product(
    factors: [&[f64]; 2],
    product: &[f64],
    shape: Shape,
    seed: u64,
) -> Residual {
    let mut v = vec![0.0; shape.order];
    fill_column(&mut v, seed, shape.order as u64);
    let [left, right] = factors;
    let right = multiply(right, shape, &v);
    let (expected, found) = (multiply(left, shape, &right), multiply(product, shape, &v));
    let differences: Vec<f64> = expected.iter().zip(&found).map(|(a, b)| a - b).collect();
    Residual::new(norm(&differences), shape.order, norm(&expected) + norm(&right) / 2.0)
}

/// matrix × v.
fn multiply(matrix: &[f64], shape: Shape, v: &[f64]) -> Vec<f64> {
    let mut product = vec![0.0; shape.order];
    for (column, v) in v.iter().enumerate() {
        for (sum, value) in product.iter_mut().zip(shape.block(matrix).column(column)) {
            *sum += value * v;
        }
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formula_is_that_of_the_benchmark() {
        let unit = 2.0_f64.powi(-53);
        let residual = Residual::new(8.0 * unit * 3.0 * 5.0 * 100.0, 100, 3.0 * 5.0);
        assert!((residual.normalised - 8.0).abs() < 1e-12);
        let passes = |normalised| Residual { absolute: 1.0, normalised }.passes();
        assert!(passes(8.0) && passes(0.0) && !passes(16.0) && !passes(f64::NAN));
        assert_eq!(Residual::new(0.0, 1, 0.0).normalised, 0.0);
    }

    #[test]
    fn a_wrong_solution_does_not_pass() {
        let n = 40;
        for wrong in [0.0, 1.0, f64::NAN, f64::INFINITY] {
            assert!(!of_solution(&vec![wrong; n], 5).passes(), "{wrong}");
        }
        let mut one_is_none = vec![1.0; n];
        one_is_none[n - 1] = f64::NAN;
        assert!(!of_solution(&one_is_none, 5).passes());
    }

    #[test]
    fn an_equation_of_order_one_can_be_checked_by_hand() {
        let (mut a, mut b) = ([0.0], [0.0]);
        fill_column(&mut a, 11, 0);
        fill_column(&mut b, 11, 1);
        let residual = of_solution(&[b[0] / a[0]], 11);
        assert!(residual.normalised < 2.0, "{residual:?}");
        let off = of_solution(&[b[0] / a[0] * 1.001], 11);
        assert!((off.absolute - b[0].abs() * 0.001).abs() < 1e-12, "{off:?}");
        assert!(!off.passes());
    }
}
