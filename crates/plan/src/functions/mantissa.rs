//! Smooth functions of a mantissa: as pieces or, where a family has them for less, as a sum of waves.

use super::build::{Build, Value, WORD};
use super::fit::Fit;
use super::quadratic::{End, piecewise};
use crate::ir::Op;
use crate::waves::{MOST_BITS, MOST_COEFFICIENT, TURN};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Most fraction bits of coefficients: with those of a cosine they leave results room up to 16.
const MOST_DIGITS: u32 = 29;
/// Fraction bits of a mantissa that pieces read.
const PIECES_READ: u32 = 24;

/// How a function of a mantissa is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    /// Quadratics, which every family has.
    Pieces,
    /// A sum of waves.
    Waves,
}

/// A function of m in `[1, 2^octaves)`; what is rounded up to `2^octaves` is 0 in the ring of m, and has the value there.
pub(super) struct OfMantissa {
    /// What its waves are kept under.
    pub name: &'static str,
    pub f: fn(f64) -> f64,
    pub octaves: u32,
    /// log2 of the number of pieces.
    pub index: u32,
    /// Number of waves.
    pub waves: usize,
    /// What errors are measured by.
    pub bound: fn(f64) -> f64,
    /// Whether the bound leaves room for a mantissa that is off by a unit and a half in the last of 24 places.
    pub near: bool,
}

pub(super) const RECIPROCAL: OfMantissa = OfMantissa {
    name: "reciprocal",
    f: |m| 1.0 / m,
    octaves: 1,
    index: 8,
    waves: 7,
    bound: |m| relative(1.0 / m),
    near: true,
};
pub(super) const SQRT: OfMantissa = OfMantissa {
    name: "sqrt",
    f: |m| libm::sqrt(m),
    octaves: 2,
    index: 9,
    waves: 14,
    bound: |m| relative(libm::sqrt(m)),
    near: true,
};
pub(super) const RSQRT: OfMantissa = OfMantissa {
    name: "rsqrt",
    f: |m| 1.0 / libm::sqrt(m),
    octaves: 2,
    index: 9,
    waves: 14,
    bound: |m| relative(1.0 / libm::sqrt(m)),
    near: true,
};
pub(super) const LOG: OfMantissa = OfMantissa {
    name: "log",
    f: libm::log,
    octaves: 1,
    index: 9,
    waves: 10,
    bound: |_| 1.0 / (1u64 << 23) as f64,
    near: false,
};

fn relative(value: f64) -> f64 {
    value / 65536.0
}

impl OfMantissa {
    /// `scale` times the function of w, in [`WORD`] bits with at most `most` fraction bits; w has `octaves` bits before the
    /// fraction.
    pub fn of(&self, b: &mut Build<'_>, w: Value, table: Table, scale: f64, most: u32) -> Value {
        match table {
            Table::Pieces => {
                let w = self.read(b, w, PIECES_READ);
                // values stay below 4
                piecewise(b, w, self.index, most.min(60), End::Continues, |m| scale * (self.f)(m.max(0.5)))
            }
            Table::Waves => self.in_waves(b, w, scale, most),
        }
    }

    /// Of w - 1: the period is that of the ring, of which `[1, 2^octaves)` is one part.
    fn in_waves(&self, b: &mut Build<'_>, w: Value, scale: f64, most: u32) -> Value {
        let found = self.found();
        let w = self.read(b, w, MOST_BITS - self.octaves);
        let beyond = b.add_const(w, -(1 << w.frac));
        let unit = |digits: u32| 2f64.powi(digits as i32);
        let fits = |d: &u32| found.largest() * scale * unit(*d) < MOST_COEFFICIENT as f64;
        let digits = (0..=MOST_DIGITS.min(most - TURN)).rev().find(fits).unwrap_or(0);
        let fixed = |v: f64, digits: u32| (v * scale * unit(digits)).round_ties_even() as i64;
        let waves = found.waves.iter().map(|wave| wave.map(|c| fixed(c, digits))).collect();
        let y = b.like(Op::Waves { step: 1, digits, waves }, &[beyond], WORD, TURN + digits);
        b.add_const(y, fixed(found.constant, TURN + digits))
    }

    /// w with at most `most` fraction bits.
    fn read(&self, b: &mut Build<'_>, w: Value, most: u32) -> Value {
        let more = w.frac.saturating_sub(most);
        if !self.near || more == 0 {
            return b.dither(w, more, w.bits - more);
        }
        // never above what stands for 2^octaves
        let lower = b.add_const(w, -(1 << (more - 1)));
        b.nearly(lower, more, w.bits - more)
    }

    fn period(&self) -> f64 {
        (1u64 << self.octaves) as f64
    }

    /// The waves, found once.
    fn found(&self) -> Arc<Fit> {
        static FOUND: Mutex<BTreeMap<&str, Arc<Fit>>> = Mutex::new(BTreeMap::new());
        let mut all = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        let (f, bound, end) =
            (|a: f64| (self.f)(1.0 + a), |a: f64| (self.bound)(1.0 + a), self.period() - 1.0);
        let near = || Arc::new(Fit::near(f, bound, [0.0, end], self.period(), self.waves));
        all.entry(self.name).or_insert_with(near).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waves_are_within_a_fifth_of_the_bound() {
        for function in [RECIPROCAL, SQRT, RSQRT, LOG] {
            let (found, end) = (function.found(), function.period() - 1.0);
            let error = |a: f64| {
                (found.at(a, function.period()) - (function.f)(1.0 + a)).abs() / (function.bound)(1.0 + a)
            };
            let worst = (0..=20_000).map(|i| error(i as f64 / 20_000.0 * end)).fold(0.0, f64::max);
            println!("{} {worst:.3}, coefficients {:.2}", function.name, found.largest());
            assert!(worst < 0.2, "{}: {worst}", function.name);
        }
    }
}
