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
    let mut coefficients = vec![0.0; n];
    for k in 0..n {
        let weight = part(k);
        coefficients.iter_mut().zip(powers_of(k)).for_each(|(c, power)| *c += weight * power);
    }
    coefficients
}

/// The same for y in `[-half, half]` about 0 as whole numbers, coefficient k with `places[k]` fraction bits. The highest is rounded first: what
/// it then has too much or too little goes to those below it, but for a multiple of the k-th Chebyshev polynomial, which is never large.
pub(super) fn rounded(f: impl Fn(f64) -> f64, half: f64, places: &[u32]) -> Vec<i64> {
    let mut left = polynomial_near(f, 0.0, half, places.len());
    let mut fixed = vec![0; places.len()];
    for (k, place) in places.iter().enumerate().rev() {
        let unit = 2f64.powi(*place as i32) * half.powi(-(k as i32));
        let nearest = (left[k] * unit).round_ties_even();
        fixed[k] = nearest as i64;
        let (rest, chebyshev) = (left[k] - nearest / unit, powers_of(k));
        let lower = left.iter_mut().zip(&chebyshev[..k]);
        lower.for_each(|(c, power)| *c -= rest * power / chebyshev[k]);
    }
    fixed
}

/// The k-th Chebyshev polynomial in powers of its variable.
fn powers_of(k: usize) -> Vec<f64> {
    let (mut last, mut this) = (vec![0.0; k + 1], vec![0.0; k + 1]);
    this[0] = 1.0;
    for i in 0..k {
        let twice = if i == 0 { 1.0 } else { 2.0 };
        let next = (0..=k).map(|i| twice * if i == 0 { 0.0 } else { this[i - 1] } - last[i]).collect();
        (last, this) = (this, next);
    }
    this
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chebyshev_polynomials_are_cosines() {
        for k in 0..9 {
            for i in 0..=20 {
                let angle = PI * i as f64 / 20.0;
                let at = powers_of(k).iter().rev().fold(0.0, |sum, c| sum * libm::cos(angle) + c);
                assert!((at - libm::cos(k as f64 * angle)).abs() < 1e-12, "{k}");
            }
        }
    }

    /// Rounding coefficient k moves the polynomial by half a unit of it, times `2^(1 - k)`.
    #[test]
    fn rounded_coefficients_are_near() {
        for (half, places) in
            [(1.0, vec![40, 30, 36, 24, 30, 20, 18]), (0.5, vec![40, 20, 30, 19, 18, 17, 12])]
        {
            let n = places.len();
            let (fixed, exact) =
                (rounded(libm::exp, half, &places), polynomial_near(libm::exp, 0.0, half, n));
            let moved = places
                .iter()
                .enumerate()
                .map(|(k, place)| half.powi(k as i32) * 2f64.powi(-(*place as i32) - k.max(1) as i32));
            let most: f64 = moved.sum();
            for i in -100..=100 {
                let z = i as f64 / 100.0;
                let terms = fixed.iter().zip(&places).rev();
                let at =
                    terms.fold(0.0, |sum, (c, place)| sum * half * z + *c as f64 / 2f64.powi(*place as i32));
                let expected = exact.iter().rev().fold(0.0, |sum, c| sum * z + c);
                assert!((at - expected).abs() <= most, "{half} {z}: {} of {most}", at - expected);
            }
        }
    }
}
