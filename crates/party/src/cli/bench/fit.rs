//! Seconds of one of each thing, from runs that did so many of each.

/// So many of each, and the seconds that a run took.
pub struct Sample<const N: usize> {
    /// How many of each.
    pub counts: [f64; N],
    /// Seconds.
    pub seconds: f64,
}

/// Weight of what was assumed against what was measured: it decides only what no sample tells apart.
const ASSUMED: f64 = 1e-3;
/// Passes over all unknowns; the last ones change nothing that can be measured.
const PASSES: usize = 20_000;

/// The non-negative seconds of each that explain the samples best: least squares of relative errors, `assumed` (all
/// positive) where samples say nothing. Coordinate descent: each step is the exact minimum along one unknown.
pub fn fit<const N: usize>(samples: &[Sample<N>], assumed: [f64; N]) -> [f64; N] {
    // rows scaled to predicted over measured, unknowns to multiples of what was assumed
    let rows: Vec<[f64; N]> =
        samples.iter().map(|s| std::array::from_fn(|j| s.counts[j] * assumed[j] / s.seconds)).collect();
    let mut x = [1.0; N];
    for _ in 0..PASSES {
        for j in 0..N {
            let (mut slope, mut curve) = (ASSUMED, ASSUMED);
            for row in &rows {
                let rest: f64 = (0..N).filter(|&i| i != j).map(|i| row[i] * x[i]).sum();
                slope += row[j] * (1.0 - rest);
                curve += row[j] * row[j];
            }
            x[j] = (slope / curve).max(0.0);
        }
    }
    std::array::from_fn(|j| x[j] * assumed[j])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(truth: [f64; 3], counts: &[[f64; 3]]) -> Vec<Sample<3>> {
        let seconds = |c: &[f64; 3]| c.iter().zip(truth).map(|(n, each)| n * each).sum();
        counts.iter().map(|c| Sample { counts: *c, seconds: seconds(c) }).collect()
    }

    #[test]
    fn what_runs_tell_apart_is_found() {
        let truth = [2e-9, 5e-6, 1e-10];
        let counts = [[1e9, 10.0, 0.0], [1e6, 1000.0, 1e7], [0.0, 10.0, 1e10], [1e8, 100.0, 1e9]];
        let found = fit(&samples(truth, &counts), [1e-9, 1e-6, 1e-9]);
        for (found, truth) in found.iter().zip(truth) {
            assert!((found / truth - 1.0).abs() < 0.05, "{found} for {truth}");
        }
    }

    #[test]
    fn what_no_run_does_stays_as_assumed_and_nothing_is_negative() {
        let truth = [2e-9, 0.0, 0.0];
        let counts = [[1e9, 10.0, 0.0], [1e8, 100.0, 0.0]];
        let found = fit(&samples(truth, &counts), [1e-9, 1e-6, 7e-9]);
        assert!((found[2] / 7e-9 - 1.0).abs() < 1e-6, "{found:?}");
        assert!(found.iter().all(|&x| x >= 0.0));
    }
}
