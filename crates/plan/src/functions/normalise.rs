//! The exponent of a positive number, and its bits after the leading one; nothing is revealed.
//!
//! Halving: the upper half of the number, if it is not zero, else the lower half, in a ring of half as many bits; each
//! step costs comparisons on half as many bits as the one before. The last few bits are compared with all powers of two
//! at once. At once: all bits are, which takes more comparisons and the rounds of one. Choosing: the same, with what is compared
//! for single bits. These choose ones and the number itself at the same time, so that its mantissa is a sum of what is chosen.

use super::build::{Build, Value, WORD};
use crate::ir::Op;

/// How an exponent is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    /// By halving, until [`LAST`] bits are left.
    Halving,
    /// By comparing with all powers of two.
    AtOnce,
    /// The same, for bits that choose what is wanted.
    Choosing,
}

/// Rings that are compared with all powers of two where others are halved.
const LAST: u32 = 10;

/// e where 2^e is the largest power of `2^step` that is at most the number (0 for zero), as bits in [`WORD`].
pub(super) struct Exponent {
    /// Halvings: the shift, and the bit that the upper half was zero, so that the shift is not part of e.
    pub halvings: Vec<(u32, Value)>,
    /// `[thresholds, n]`: whether what is left is less than 2^(step (j + 1)).
    less: Value,
    /// The same as single bits, where these are there.
    bits: Option<Value>,
    thresholds: u32,
    step: u32,
}

/// The exponent of x >= 0, in steps of 1 or 2; with `unsigned` also of 2^(k - 1), which is its own negative.
pub(super) fn exponent(b: &mut Build<'_>, mut x: Value, step: u32, unsigned: bool, by: Search) -> Exponent {
    x = b.read(x, 0);
    let mut halvings = Vec::new();
    while by == Search::Halving && x.bits > LAST {
        // even, and such that a number whose upper half is zero fits into what is kept
        let shift = ((x.bits - 1) / 2) & !1;
        let upper = b.down(x, shift, 0);
        let lower = b.resize(x, upper.bits);
        let less = b.add_const(upper, -1);
        let zero = b.is_negative(less, WORD);
        let difference = b.sub(lower, upper);
        let chosen = b.resize(zero, upper.bits);
        let change = b.muls(&[(chosen, difference)])[0];
        x = b.add(upper, change);
        halvings.push((shift, zero));
    }
    let thresholds = (x.bits - 2) / step + unsigned as u32;
    let compared: Vec<Value> = (1..=thresholds).map(|j| b.add_const(x, -(1i64 << (j * step)))).collect();
    let compared = b.stack(&compared);
    let (less, bits) = signs(b, compared, by);
    Exponent { halvings, less, bits, thresholds, step }
}

/// Whether numbers are negative, in [`WORD`], and as single bits where such are wanted.
fn signs(b: &mut Build<'_>, compared: Value, by: Search) -> (Value, Option<Value>) {
    if by != Search::Choosing {
        return (b.is_negative(compared, WORD), None);
    }
    let bits = b.is_negative(compared, 1);
    let zero = b.sub(compared, compared);
    let zero = if zero.bits < WORD { b.up(zero, WORD - zero.bits) } else { zero };
    let zero = b.read(zero, 0);
    let one = b.add_const(zero, 1);
    (b.choose(bits, one), Some(bits))
}

/// The exponent of x, in steps of `step`; of x <= 0 and of the smallest number anything, but see [`Signs`].
///
/// All comparisons are one gate, that with 0 and with 1 as well.
pub(super) fn signed_exponent(b: &mut Build<'_>, x: Value, step: u32, by: Search) -> (Exponent, Signs) {
    let x = b.read(x, 0);
    let thresholds = (x.bits - 2) / step;
    let powers = (0..=thresholds).map(|j| b.add_const(x, -(1i64 << (j * step))));
    let compared: Vec<Value> = std::iter::once(x).chain(powers.collect::<Vec<_>>()).collect();
    let compared = b.stack(&compared);
    let (signs, bits) = signs(b, compared, by);
    let thresholds_of = |b: &mut Build<'_>, all: Value| b.rows(all, 2, thresholds as usize + 2);
    let (less, bits) = (thresholds_of(b, signs), bits.map(|bits| thresholds_of(b, bits)));
    let signs = Signs { negative: b.row(signs, 0), below_one: b.row(signs, 1) };
    (Exponent { halvings: Vec::new(), less, bits, thresholds, step }, signs)
}

/// Signs of x and of x - 1, bits in [`WORD`]. A number that is not positive has one of them, as x - 1 wraps around for the
/// smallest number. Where `below_one` is 1, the number is less than all thresholds.
pub(super) struct Signs {
    pub negative: Value,
    pub below_one: Value,
}

impl Exponent {
    /// The exponent of a number known to lie in `[2^least, 2^(least + thresholds))`, e counted from `least`.
    pub fn between(b: &mut Build<'_>, x: Value, least: u32, thresholds: u32, by: Search) -> Exponent {
        let x = b.resize(x, (least + thresholds + 2).min(x.bits));
        let compared: Vec<Value> = (1..=thresholds).map(|j| b.add_const(x, -(1i64 << (least + j)))).collect();
        let compared = b.stack(&compared);
        let compared = b.read(compared, 0);
        let (less, bits) = signs(b, compared, by);
        Exponent { halvings: Vec::new(), less, bits, thresholds, step: 1 }
    }

    /// The largest e, without the first `skip` halvings.
    pub fn most(&self, skip: usize) -> u32 {
        self.halvings[skip..].iter().map(|h| h.0).sum::<u32>() + self.thresholds * self.step
    }

    /// The factors whose product is `2^((most - e) / over)`, or with `up` `2^(e / over)`, without the first `skip`
    /// halvings.
    fn factors(&self, b: &mut Build<'_>, skip: usize, over: u32, up: bool) -> Vec<Value> {
        let power = |e: u32| 1i64 << (e / over);
        let halvings = self.halvings[skip..].iter().map(|&(shift, zero)| match up {
            false => b.affine(zero, power(shift) - 1, 1),
            true => b.affine(zero, 1 - power(shift), power(shift)),
        });
        let mut factors: Vec<Value> = halvings.collect();
        let sum = b.weighted(self.less, self.weights(over, up));
        let most = self.thresholds * self.step;
        factors.push(b.add_const(sum, if up { power(most) } else { 1 }));
        factors
    }

    /// By what each threshold's bit changes the factor of all of them, which is 1, or with `up` the largest power, where none is up.
    fn weights(&self, over: u32, up: bool) -> Vec<i64> {
        let (most, step) = (self.thresholds * self.step, self.step);
        let power = |e: u32| 1i64 << (e / over);
        let weight = |j: u32| match up {
            false => power(most - (j - 1) * step) - power(most - j * step),
            true => power((j - 1) * step) - power(j * step),
        };
        (1..=self.thresholds).map(weight).collect()
    }

    /// x times `power`, which is `2^(most - e)`: its lowest `wanted` bits, or more.
    fn brought_up(&self, b: &mut Build<'_>, x: Value, power: Value, wanted: u32) -> Value {
        let Some(bits) = self.bits.filter(|_| self.halvings.is_empty()) else {
            let factor = b.resize(power, x.bits);
            return b.muls(&[(x, factor)])[0];
        };
        let (n, x) = (b.shape(x)[0], b.resize(x, wanted.min(x.bits)));
        let line = b.reshape(x, &[1, n]);
        let all = b.node(Op::Expand, &[line], &[self.thresholds as usize, n], x.bits, x.frac);
        let chosen = b.choose(bits, all);
        let more = b.weighted(chosen, self.weights(1, false));
        b.add(more, x)
    }

    /// Powers of two of the exponent, each given as `(skip, over, up)` as for [`Exponent::factors`]; together in a
    /// number of rounds that is logarithmic in that of the halvings.
    pub fn powers(&self, b: &mut Build<'_>, wanted: &[(usize, u32, bool)]) -> Vec<Value> {
        let mut lists: Vec<Vec<Value>> =
            wanted.iter().map(|&(skip, over, up)| self.factors(b, skip, over, up)).collect();
        while lists.iter().any(|l| l.len() > 1) {
            let pairs: Vec<(Value, Value)> =
                lists.iter().flat_map(|l| l.chunks_exact(2).map(|p| (p[0], p[1]))).collect();
            let mut products = b.muls(&pairs).into_iter();
            for list in &mut lists {
                let odd = list.chunks_exact(2).remainder().to_vec();
                let count = list.len() / 2;
                *list = products.by_ref().take(count).chain(odd).collect();
            }
        }
        lists.into_iter().map(|l| l[0]).collect()
    }

    /// `scale e` as a whole number in [`WORD`] bits.
    pub fn scaled(&self, b: &mut Build<'_>, scale: i64) -> Value {
        let step = scale.wrapping_mul(self.step as i64);
        let mut e = b.weighted(self.less, vec![step.wrapping_neg(); self.thresholds as usize]);
        e = b.add_const(e, step.wrapping_mul(self.thresholds as i64));
        for &(shift, zero) in &self.halvings {
            let scale = scale.wrapping_mul(shift as i64);
            let part = b.affine(zero, scale.wrapping_neg(), scale);
            e = b.add(e, part);
        }
        e
    }
}

/// Fewest fraction bits of a mantissa.
const FRAC: u32 = 24;

/// x, of which e is the exponent, times `power`, which brings its leading one, or that of a number of `step` bits, to bit `most`: the
/// mantissa, a number in `[1, 2^step)` with `most` fraction bits, at least [`FRAC`], in a ring of `step` bits more.
pub(super) fn whole_mantissa(
    b: &mut Build<'_>,
    x: Value,
    (e, power): (&Exponent, Value),
    most: u32,
    step: u32,
) -> Value {
    let x = b.read(x, 0);
    let product = e.brought_up(b, x, power, most + step);
    let bits = b.resize(product, (most + step).min(product.bits));
    let bits = b.read(bits, most);
    match FRAC.checked_sub(most) {
        Some(missing) => b.up(bits, missing),
        None => bits,
    }
}
