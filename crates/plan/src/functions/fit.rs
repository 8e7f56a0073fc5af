//! Sums of waves that are near a function on a part of their period, whatever they are elsewhere.
//!
//! A period longer than the part leaves room to come back, and the fit is free to choose how. So the number of waves follows
//! from how smooth the function is and not from its two ends (Fourier extension; Huybrechs, SIAM J. Numer. Anal. 47, 2010).

use std::f64::consts::PI;

/// A constant and the coefficients of the cosine and the sine of each wave.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fit {
    pub constant: f64,
    pub waves: Vec<[f64; 2]>,
}

/// Points for each coefficient.
const POINTS: usize = 6;
/// Rounds of weights.
const ROUNDS: usize = 12;
/// What a coefficient costs, in units of the bound: they have to be small, as they magnify roundings.
const WEIGHT: f64 = 0.5;

impl Fit {
    /// `count` waves near `f` between two ends; errors are in units of `bound`, and nearly the smallest possible at their largest.
    ///
    /// Least squares by Householder reflections, weighted again by the errors that are left (Lawson).
    pub fn near(
        f: impl Fn(f64) -> f64,
        bound: impl Fn(f64) -> f64,
        [start, end]: [f64; 2],
        period: f64,
        count: usize,
    ) -> Fit {
        let (n, points) = (2 * count + 1, POINTS * (2 * count + 1));
        // denser towards the ends
        let half = (end - start) / 2.0;
        let place = |i: usize| start + half * (1.0 - libm::cos((i as f64 + 0.5) / points as f64 * PI));
        let rows: Vec<Vec<f64>> = (0..points)
            .map(|i| {
                let (x, unit) = (place(i), bound(place(i)));
                let mut row: Vec<f64> = basis(x / period, count).iter().map(|v| v / unit).collect();
                row.push(f(x) / unit);
                row
            })
            .collect();
        let mut weights = vec![1.0f64; points];
        let mut best = (f64::INFINITY, vec![0.0; n]);
        for _ in 0..ROUNDS {
            let weighted = |(row, w): (&Vec<f64>, &f64)| row.iter().map(|v| v * w.sqrt()).collect();
            let mut system: Vec<Vec<f64>> = rows.iter().zip(&weights).map(weighted).collect();
            system.extend((0..n).map(|c| (0..=n).map(|i| if i == c { WEIGHT } else { 0.0 }).collect()));
            let found = least_squares(system, n);
            let error =
                |row: &Vec<f64>| (row.iter().zip(&found).map(|(a, b)| a * b).sum::<f64>() - row[n]).abs();
            let errors: Vec<f64> = rows.iter().map(error).collect();
            let largest = errors.iter().copied().fold(0.0, f64::max);
            weights.iter_mut().zip(&errors).for_each(|(w, e)| *w *= e + 1e-3 * largest);
            let mean = weights.iter().sum::<f64>() / points as f64;
            weights.iter_mut().for_each(|w| *w /= mean);
            if largest < best.0 {
                best = (largest, found);
            }
        }
        let (constant, waves) = best.1.split_first().expect("there is a constant");
        Fit { constant: *constant, waves: waves.as_chunks::<2>().0.to_vec() }
    }

    /// The sum at x.
    #[cfg(test)]
    pub fn at(&self, x: f64, period: f64) -> f64 {
        let all = basis(x / period, self.waves.len());
        self.constant + all[1..].iter().zip(self.waves.as_flattened()).map(|(b, c)| b * c).sum::<f64>()
    }

    /// The largest coefficient of a wave.
    pub fn largest(&self) -> f64 {
        self.waves.as_flattened().iter().fold(0.0, |most, c| c.abs().max(most))
    }
}

/// 1, and cosine and sine of `1, 2, ..., count` times `x` turns.
fn basis(x: f64, count: usize) -> Vec<f64> {
    let angle = |h: usize| 2.0 * PI * h as f64 * x;
    let waves = (1..=count).flat_map(|h| [libm::cos(angle(h)), libm::sin(angle(h))]);
    std::iter::once(1.0).chain(waves).collect()
}

/// The n numbers whose products with the first n columns are nearest to the last one.
fn least_squares(mut a: Vec<Vec<f64>>, n: usize) -> Vec<f64> {
    let m = a.len();
    for j in 0..n {
        let mut v: Vec<f64> = a[j..].iter().map(|row| row[j]).collect();
        let norm = v.iter().map(|x| x * x).sum::<f64>().sqrt();
        v[0] += if v[0] > 0.0 { norm } else { -norm };
        let square: f64 = v.iter().map(|x| x * x).sum();
        let mut reflect = |c: usize| {
            let along = (j..m).map(|i| v[i - j] * a[i][c]).sum::<f64>() * 2.0 / square;
            (j..m).for_each(|i| a[i][c] -= along * v[i - j]);
        };
        (j..=n).for_each(&mut reflect);
    }
    let mut x = vec![0.0; n];
    for j in (0..n).rev() {
        let rest: f64 = (j + 1..n).map(|c| a[j][c] * x[c]).sum();
        x[j] = (a[j][n] - rest) / a[j][j];
    }
    x
}
