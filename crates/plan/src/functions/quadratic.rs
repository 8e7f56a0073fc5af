//! Piecewise quadratics: a function on equal segments, the segment chosen by bits of a secret.
//!
//! The segment's number is split into two digits, each compared with all its values in a ring of a few bits. Over the
//! low digit the coefficients are public sums of bits; over the high digit they are a dot product, one element a
//! coefficient. So 2^s segments cost about 2^(s/2 + 1) short comparisons and five products an element.

use super::build::{Build, Value, WORD};

/// Coefficients of `c0 + c1 t + c2 t^2` for 2^segments segments, t from the middle of a segment.
pub(super) struct Table {
    /// log2 of the number of segments.
    pub segments: u32,
    /// Fraction bits of t.
    t_frac: u32,
    /// Fraction bits of the result.
    pub frac: u32,
    coefficients: Vec<[i64; 3]>,
}

impl Table {
    /// Approximate `f` on `[0, 2^(segments - per_unit))` by segments of width 2^-per_unit. Errors are at most about
    /// `w^3 max|f'''| / 192` for width w, plus the rounding of coefficients to what t of `t_frac` fraction bits leaves
    /// of `frac`. Values must stay below 2^(63 - frac).
    pub fn new(segments: u32, per_unit: u32, t_frac: u32, frac: u32, f: impl Fn(f64) -> f64) -> Table {
        let half = 2f64.powi(-(per_unit as i32) - 1);
        let fixed = |v: f64, frac: u32| (v * 2f64.powi(frac as i32)).round_ties_even() as i64;
        let back = |v: i64, frac: u32| v as f64 * 2f64.powi(-(frac as i32));
        let fit = |i: u64| {
            let middle = (2 * i + 1) as f64 * half;
            // the zeros of the third Chebyshev polynomial: nearly the best quadratic
            let node = half * 0.75f64.sqrt();
            let [low, at, high] = [f(middle - node), f(middle), f(middle + node)];
            let c2 = fixed((low + high - 2.0 * at) / (2.0 * node * node), frac - 2 * t_frac);
            let c1 = fixed((high - low) / (2.0 * node), frac - t_frac);
            // what the rounding of c2 leaves is spread evenly
            let rest = (low + high) / 2.0 - back(c2, frac - 2 * t_frac) * node * node;
            [fixed((rest + at) / 2.0, frac), c1, c2]
        };
        Table { segments, t_frac, frac, coefficients: (0..1u64 << segments).map(fit).collect() }
    }

    /// The quadratic of segment `index` (whole, its low `segments` bits count) at `t` (in [`WORD`] bits).
    pub fn at(&self, b: &mut Build<'_>, index: Value, t: Value) -> Value {
        debug_assert_eq!((t.bits, t.frac), (WORD, self.t_frac));
        let coefficients = self.select(b, index);
        let t = b.read(t, 0);
        let square = b.mul(t, t);
        let powers = b.stack(&[t, square]);
        let slopes = b.rows(coefficients, 1, 3);
        let terms = b.mul(slopes, powers);
        let sum = b.weighted(terms, vec![1, 1]);
        let constant = b.row(coefficients, 0);
        let y = b.add(sum, constant);
        b.read(y, self.frac)
    }

    /// The coefficients of segment `index`, `[3, n]`, as whole numbers.
    fn select(&self, b: &mut Build<'_>, index: Value) -> Value {
        let n = b.shape(index)[0];
        let index = b.resize(index, self.segments);
        let high_bits = self.segments / 2;
        let low_bits = self.segments - high_bits;
        let (lows, highs) = (1usize << low_bits, 1usize << high_bits);
        let weight = |k: usize, high: usize, low: usize| self.coefficients[high * lows + low][k];
        let low = b.resize(index, low_bits);
        if high_bits == 0 {
            let low = b.one_hot(low, lows);
            return b.mix(low, (0..3).map(|k| (0..lows).map(|j| weight(k, 0, j)).collect()).collect());
        }
        let high = b.down(index, low_bits, 0);
        let (low, high) = digits(b, low, high, lows, highs);
        let rows = (0..3 * highs).map(|r| (0..lows).map(|j| weight(r / highs, r % highs, j)).collect());
        let lines = b.mix(low, rows.collect());
        let lines = b.reshape(lines, &[3, highs, n]);
        let lines = b.permute(lines, &[2, 0, 1]);
        let high = b.permute(high, &[1, 0]);
        let high = b.reshape(high, &[n, highs, 1]);
        let chosen = b.node(crate::ir::Op::MatMul, &[lines, high], &[n, 3, 1], WORD, 0);
        let chosen = b.reshape(chosen, &[n, 3]);
        b.permute(chosen, &[1, 0])
    }
}

/// Both digits one-hot, in one gate where they have equally many bits.
fn digits(b: &mut Build<'_>, low: Value, high: Value, lows: usize, highs: usize) -> (Value, Value) {
    if lows != highs {
        return (b.one_hot(low, lows), b.one_hot(high, highs));
    }
    let n = b.shape(low)[0];
    let both = b.stack(&[low, high]);
    let both = b.reshape(both, &[2 * n]);
    let hot = b.one_hot(both, lows);
    let hot = b.reshape(hot, &[lows, 2, n]);
    let hot = b.permute(hot, &[1, 0, 2]);
    let hot = b.reshape(hot, &[2 * lows, n]);
    (b.rows(hot, 0, lows), b.rows(hot, lows, 2 * lows))
}

/// Split the low bits of `w` off: the number of the segment of 2^low units that it lies in, as a whole number in a ring
/// of `low` bits less, and its distance from the segment's middle, in [`WORD`] bits with w's fraction.
pub(super) fn split(b: &mut Build<'_>, w: Value, low: u32) -> (Value, Value) {
    let index = b.down(w, low, 0);
    let t = b.add_const(w, -(1 << (low - 1)));
    let t = b.resize(t, low);
    (index, b.resize(t, WORD))
}
