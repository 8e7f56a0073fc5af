use crate::Ring;
use thiserror::Error;

/// Fixed-point numbers: value = signed(ring element) / 2^f.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedPoint {
    /// The ring.
    pub ring: Ring,
    /// f, the fraction bits.
    pub frac: u32,
}

/// A number that the encoding refuses. Messages name the place, never the value.
#[derive(Debug, Error, PartialEq)]
pub enum FixedError {
    /// NaN.
    #[error("element {index} is NaN")]
    NotANumber {
        /// Flat index.
        index: usize,
    },
    /// Plus or minus infinity.
    #[error("element {index} is infinite")]
    Infinite {
        /// Flat index.
        index: usize,
    },
    /// Outside [-limit, limit].
    #[error("element {index} is outside [-{limit}, {limit}]")]
    OutOfRange {
        /// Flat index.
        index: usize,
        /// The largest magnitude allowed.
        limit: f64,
    },
}

impl FixedPoint {
    /// The fixed-point format of `frac` fraction bits in `ring`.
    pub fn new(ring: Ring, frac: u32) -> Self {
        FixedPoint { ring, frac }
    }

    /// The largest float magnitude that fits: (2^(k-1) - 1) / 2^f, rounded down where k > 54.
    pub fn limit(&self) -> f64 {
        let top = self.ring.mask() >> 1;
        // Rounded up it would be 2^(k-1), which wraps to the most negative value.
        let nearest = top as f64;
        let below = if nearest as u128 > u128::from(top) { nearest.next_down() } else { nearest };
        below / 2f64.powi(self.frac as i32)
    }

    /// Encode to the nearest (ties to even), refusing NaN, infinity and magnitudes over `limit` (itself
    /// at most [`FixedPoint::limit`]).
    pub fn encode(&self, values: &[f64], limit: f64) -> Result<Vec<u64>, FixedError> {
        let (scale, limit) = (2f64.powi(self.frac as i32), limit.min(self.limit()));
        values
            .iter()
            .enumerate()
            .map(|(index, &v)| match v {
                _ if v.is_nan() => Err(FixedError::NotANumber { index }),
                _ if v.is_infinite() => Err(FixedError::Infinite { index }),
                _ if v.abs() > limit => Err(FixedError::OutOfRange { index, limit }),
                _ => Ok(self.ring.wrap((v * scale).round_ties_even() as i64 as u64)),
            })
            .collect()
    }

    /// Decode.
    pub fn decode(&self, values: &[u64]) -> Vec<f64> {
        let scale = 2f64.powi(-(self.frac as i32));
        values.iter().map(|&v| self.ring.signed(v) as f64 * scale).collect()
    }
}
