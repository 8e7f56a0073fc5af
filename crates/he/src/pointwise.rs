//! Loops over the words of one prime: sums of products, and limbs of wide integers modulo the prime.

use crate::field::Field;
use crate::lane::{HePath, Kernel, LIMB, Lane};
use crate::modulus::Modulus;
use crate::word::{Below, Factor};

/// Most products in a sum: the low limbs' sums stay below 2^64.
pub(crate) const MAX_TERMS: usize = 1 << 12;

/// `out = x y`, value by value, modulo p; x and y below p.
pub(crate) fn product(path: HePath, modulus: Modulus, x: &[u64], y: &[u64], out: &mut [u64]) {
    assert!(x.len() == out.len() && y.len() == out.len(), "number of values");
    assert_eq!(out.len() & 7, 0, "whole registers");
    path.run(Product { x, y, modulus, out });
}

/// 1, 2^52 and 2^104 modulo p.
pub(crate) fn limb_factors(modulus: Modulus) -> [Factor<u64>; 3] {
    [0, LIMB, 2 * LIMB].map(|bits| modulus.factor(modulus.reduce(1u128 << bits)))
}

struct Product<'a> {
    x: &'a [u64],
    y: &'a [u64],
    modulus: Modulus,
    out: &'a mut [u64],
}

impl Kernel for Product<'_> {
    #[inline(always)]
    fn run<L: Lane>(self, lane: L) {
        let (f, factors) = (Field::new(lane, self.modulus.p()), limb_factors(self.modulus));
        let operands = self.x.chunks_exact(L::WIDTH).zip(self.y.chunks_exact(L::WIDTH));
        for (out, (x, y)) in self.out.chunks_exact_mut(L::WIDTH).zip(operands) {
            let zero = (lane.splat(0), lane.splat(0));
            let product = lane.multiply_add(zero, lane.load(x), lane.load(y));
            lane.store(out, reduced(f, factors, product));
        }
    }
}

/// A sum of at most [`MAX_TERMS`] products from its low and its high halves, below p.
#[inline(always)]
pub(crate) fn reduced<L: Lane>(f: Field<L>, factors: [Factor<u64>; 3], (low, high): (L::V, L::V)) -> L::V {
    let lane = f.lane;
    let [f0, f1, f2] = [f.factor(factors[0]), f.factor(factors[1]), f.factor(factors[2])];
    // both below 2^64: 2^12 terms of 52 and 48 bits, and a carry
    let high = lane.add(high, lane.high(low));
    let v = f.add(f.times_limb(lane.low(low), f0), f.times_limb(lane.low(high), f1));
    let v = f.add(f.halve(v), f.times_limb(lane.high(high), f2));
    f.canonical(f.halve(v)).words()
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
