//! Seconds of one of each thing, from runs that did so many of each.

use super::stats::spread;

/// So many of each, and the seconds that a run took.
pub struct Sample<const N: usize> {
    /// How many of each.
    pub counts: [f64; N],
    /// Seconds.
    pub seconds: f64,
}

impl<const N: usize> Sample<N> {
    /// The seconds that `each` says, over those that it took.
    pub fn ratio(&self, each: &[f64; N]) -> f64 {
        self.counts.iter().zip(each).map(|(n, each)| n * each).sum::<f64>() / self.seconds
    }
}

/// Weight of what was assumed against one sample. It decides what samples do not tell apart: where two things always go
/// together, each keeps its part of what both take, and neither falls to nothing. A rate that is twice what was assumed costs as much as a
/// sample that is 4 % off.
const ASSUMED: f64 = 2e-3;
/// Passes over all unknowns; the last ones change nothing that can be measured.
const PASSES: usize = 20_000;

/// The non-negative seconds of each that explain the samples best: least squares of relative errors. Where samples say nothing they are
/// `assumed`, times how much slower this machine is by the median of samples. What is assumed to take nothing takes nothing.
///
/// Coordinate descent: each step is the exact minimum along one unknown.
pub fn fit<const N: usize>(samples: &[Sample<N>], assumed: [f64; N]) -> [f64; N] {
    let slower = slower(samples, &assumed);
    let assumed = assumed.map(|each| each * slower);
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

/// How often the median sample took what was assumed.
fn slower<const N: usize>(samples: &[Sample<N>], assumed: &[f64; N]) -> f64 {
    let said: Vec<f64> = samples.iter().map(|s| s.ratio(assumed)).filter(|ratio| *ratio > 0.0).collect();
    if said.is_empty() { 1.0 } else { spread(&said).median.recip() }
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
        let counts = [
            [1e9, 10.0, 0.0],
            [1e6, 1e4, 1e7],
            [0.0, 10.0, 1e10],
            [1e8, 100.0, 1e9],
            [0.0, 3e4, 0.0],
            [1e7, 2000.0, 1e8],
        ];
        let found = fit(&samples(truth, &counts), [1e-9, 1e-6, 1e-9]);
        for (found, truth) in found.iter().zip(truth) {
            assert!((found / truth - 1.0).abs() < 0.1, "{found} for {truth}");
        }
    }

    #[test]
    fn things_that_go_together_share_what_both_take_and_leave_ratios_near_one() {
        let truth = [4e-9, 0.0, 1e-6];
        let counts = [[1e9, 8e9, 10.0], [1e8, 8e8, 1000.0], [1e7, 8e7, 1e5]];
        let runs = samples(truth, &counts);
        let found = fit(&runs, [1e-9, 1e-10, 1e-6]);
        assert!(found[0] > 1e-9 && found[1] > 1e-10, "{found:?}");
        for run in &runs {
            assert!((run.ratio(&found) - 1.0).abs() < 0.02, "{found:?}");
        }
    }

    #[test]
    fn what_no_run_does_stays_as_assumed_and_nothing_is_negative() {
        let truth = [2e-9, 0.0, 0.0];
        let counts = [[1e9, 10.0, 0.0], [1e8, 100.0, 0.0]];
        let found = fit(&samples(truth, &counts), [1e-9, 1e-6, 7e-9]);
        // 2 and 1e-9 of the first, and nothing of the second, of which runs do little
        let slower = slower(&samples(truth, &counts), &[1e-9, 1e-6, 7e-9]);
        assert!((1.5..2.5).contains(&slower), "{slower}");
        assert!((found[2] / (slower * 7e-9) - 1.0).abs() < 1e-6, "{found:?}");
        assert!(found.iter().all(|&x| x >= 0.0));
    }
}
