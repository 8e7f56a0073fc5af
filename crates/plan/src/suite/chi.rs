//! Pearson's chi-square test, judged by how many standard deviations the statistic is too large.

/// Counts over cells of known probability.
#[derive(Default)]
pub struct ChiSquare {
    statistic: f64,
    freedom: f64,
}

impl ChiSquare {
    /// No counts yet.
    pub fn new() -> ChiSquare {
        ChiSquare::default()
    }

    /// One fair coin: `ones` out of `n` throws.
    pub fn coin(&mut self, ones: u64, n: u64) {
        let half = n as f64 / 2.0;
        self.statistic += (ones as f64 - half).powi(2) / (half / 2.0);
        self.freedom += 1.0;
    }

    /// One fair die with `counts.len()` sides.
    pub fn die(&mut self, counts: &[u64]) {
        let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
        self.statistic += counts.iter().map(|&c| (c as f64 - expected).powi(2) / expected).sum::<f64>();
        self.freedom += counts.len() as f64 - 1.0;
    }

    /// One coin that shows one with probability `p`.
    pub fn biased(&mut self, ones: u64, n: u64, p: f64) {
        let (n, mean) = (n as f64, n as f64 * p);
        self.statistic += (ones as f64 - mean).powi(2) / (n * p * (1.0 - p));
        self.freedom += 1.0;
    }

    /// The statistic as a standard normal deviate (Wilson and Hilferty, 1931).
    pub fn deviate(&self) -> f64 {
        if self.freedom == 0.0 {
            return 0.0;
        }
        let v = 2.0 / (9.0 * self.freedom);
        ((self.statistic / self.freedom).cbrt() - (1.0 - v)) / v.sqrt()
    }
}

/// Deviates beyond this are refused: probability 1e-9 under uniformity.
pub const LIMIT: f64 = 6.0;
