//! Polynomials that are nearly the best ones on an interval.

use std::f64::consts::PI;

/// The coefficients, in y, of the polynomial of degree `n - 1` that is `f(middle + half y)` at the zeros of the n-th Chebyshev polynomial:
/// nearly the best one for y in `[-1, 1]`.
pub(super) fn polynomial_near(f: impl Fn(f64) -> f64, middle: f64, half: f64, n: usize) -> Vec<f64> {
    let angle = |i: usize| PI * (i as f64 + 0.5) / n as f64;
    let values: Vec<f64> = (0..n).map(|i| f(middle + half * libm::cos(angle(i)))).collect();
    let part = |k: usize| {
        let sum: f64 = (0..n).map(|i| values[i] * libm::cos(k as f64 * angle(i))).sum();
        sum * if k == 0 { 1.0 } else { 2.0 } / n as f64
    };
    // T_0, T_1, ... as powers of y
    let (mut coefficients, mut last, mut this) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
    this[0] = 1.0;
    for k in 0..n {
        let weight = part(k);
        coefficients.iter_mut().zip(&this).for_each(|(c, power)| *c += weight * power);
        let twice = if k == 0 { 1.0 } else { 2.0 };
        let next = (0..n).map(|i| twice * if i == 0 { 0.0 } else { this[i - 1] } - last[i]).collect();
        (last, this) = (this, next);
    }
    coefficients
}
