//! Loops over the words of one prime: sums of products, and limbs of wide integers modulo the prime.

use crate::field::Field;
use crate::lane::{HePath, Kernel, LIMB, Lane};
use crate::modulus::Modulus;
use crate::word::{Below, Factor};

/// Most products in a sum: the low limbs' sums stay below 2^64.
pub(crate) const MAX_TERMS: usize = 1 << 12;

/// `out = sum over terms of x y`, value by value, modulo p; x and y below p. Panics above [`MAX_TERMS`] terms.
pub(crate) fn inner_product(path: HePath, modulus: Modulus, terms: &[(&[u64], &[u64])], out: &mut [u64]) {
    assert!(terms.iter().all(|(x, y)| x.len() == out.len() && y.len() == out.len()), "number of values");
    assert!(terms.len() <= MAX_TERMS, "more products than a sum holds");
    assert_eq!(out.len() & 31, 0, "whole groups of registers");
    path.run(InnerProduct { terms, modulus, factors: limb_factors(modulus), out });
}

/// 1, 2^52 and 2^104 modulo p.
pub(crate) fn limb_factors(modulus: Modulus) -> [Factor<u64>; 3] {
    [0, LIMB, 2 * LIMB].map(|bits| modulus.factor(modulus.reduce(1u128 << bits)))
}

struct InnerProduct<'a> {
    terms: &'a [(&'a [u64], &'a [u64])],
    modulus: Modulus,
    factors: [Factor<u64>; 3],
    out: &'a mut [u64],
}

/// Registers that are summed at a time.
const GROUP: usize = 4;

impl Kernel for InnerProduct<'_> {
    /// Low and high halves of products are summed apart, in registers, and reduced once.
    #[inline(always)]
    fn run<L: Lane>(self, lane: L) {
        let f = Field::new(lane, self.modulus.p());
        let [f0, f1, f2] = [f.factor(self.factors[0]), f.factor(self.factors[1]), f.factor(self.factors[2])];
        for (i, out) in self.out.chunks_exact_mut(GROUP * L::WIDTH).enumerate() {
            let mut sums = [(lane.splat(0), lane.splat(0)); GROUP];
            let range = i * GROUP * L::WIDTH..(i + 1) * GROUP * L::WIDTH;
            for (x, y) in self.terms {
                let (x, y) = (&x[range.clone()], &y[range.clone()]);
                let operands = x.chunks_exact(L::WIDTH).zip(y.chunks_exact(L::WIDTH));
                for (sum, (x, y)) in sums.iter_mut().zip(operands) {
                    *sum = lane.multiply_add(*sum, lane.load(x), lane.load(y));
                }
            }
            for ((low, high), out) in sums.into_iter().zip(out.chunks_exact_mut(L::WIDTH)) {
                // both below 2^63: 2^12 terms of 48 bits, and a carry
                let high = lane.add(high, lane.high(low));
                let v = f.add(f.times_limb(lane.low(low), f0), f.times_limb(lane.low(high), f1));
                let v = f.add(f.halve(v), f.times_limb(lane.high(high), f2));
                lane.store(out, f.canonical(f.halve(v)).words());
            }
        }
    }
}

/// `out = sum over limbs of limb times its factor, plus a constant below p`, modulo p; limbs below 2^52.
pub(crate) fn combine(
    path: HePath,
    modulus: Modulus,
    limbs: &[(&[u64], Factor<u64>)],
    plus: u64,
    out: &mut [u64],
) {
    assert!(limbs.iter().all(|(limb, _)| limb.len() == out.len()), "number of limbs");
    assert!(plus < modulus.p());
    let whole = out.len() & !7;
    let (head, tail) = out.split_at_mut(whole);
    path.run(Combine { modulus, limbs, plus, first: 0, out: head });
    HePath::Portable.run(Combine { modulus, limbs, plus, first: whole, out: tail });
}

struct Combine<'a> {
    modulus: Modulus,
    limbs: &'a [(&'a [u64], Factor<u64>)],
    plus: u64,
    first: usize,
    out: &'a mut [u64],
}

impl Kernel for Combine<'_> {
    #[inline(always)]
    fn run<L: Lane>(self, lane: L) {
        let f = Field::new(lane, self.modulus.p());
        let plus = Below::claim(lane.splat(self.plus));
        for (i, out) in self.out.chunks_exact_mut(L::WIDTH).enumerate() {
            let mut v: Below<L::V, 2> = plus;
            for (limb, factor) in self.limbs {
                let limb = lane.load(&limb[self.first + i * L::WIDTH..]);
                v = f.halve(f.add(v, f.times_limb(limb, f.factor(*factor))));
            }
            lane.store(out, f.canonical(v).words());
        }
    }
}

/// `a += b`, or `a -= b` where `negative`, modulo p, all below p.
pub(crate) fn add(path: HePath, modulus: Modulus, a: &mut [u64], b: &[u64], negative: bool) {
    assert_eq!(a.len(), b.len(), "number of words");
    path.run(Add { modulus, a, b, negative });
}

struct Add<'a> {
    modulus: Modulus,
    a: &'a mut [u64],
    b: &'a [u64],
    negative: bool,
}

impl Kernel for Add<'_> {
    #[inline(always)]
    fn run<L: Lane>(self, lane: L) {
        let f = Field::new(lane, self.modulus.p());
        for (a, b) in self.a.chunks_exact_mut(L::WIDTH).zip(self.b.chunks_exact(L::WIDTH)) {
            let (x, y) = (Below::claim(lane.load(a)), Below::claim(lane.load(b)));
            let sum = if self.negative { f.sub(x, y) } else { f.add(x, y) };
            lane.store(a, f.canonical(f.halve(sum)).words());
        }
    }
}
