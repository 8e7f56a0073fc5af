//! Loops over the words of one prime: sums of products, and limbs of wide integers modulo the prime.

use crate::field::Field;
use crate::lane::{HePath, Kernel, LIMB, Lane};
use crate::modulus::Modulus;
use crate::word::{Below, Factor};
use zeroize::Zeroize;

/// Most products in a sum: the low limbs' sums stay below 2^64.
pub(crate) const MAX_TERMS: usize = 1 << 12;

/// Sums of products of values below p, their low and high 52-bit halves summed apart; wiped on drop, as one factor may
/// be secret.
pub(crate) struct Sums {
    low: Vec<u64>,
    high: Vec<u64>,
    terms: usize,
}

impl Sums {
    pub(crate) fn zeros(n: usize) -> Sums {
        Sums { low: vec![0; n], high: vec![0; n], terms: 0 }
    }

    /// Add `x y`, value by value. Panics after [`MAX_TERMS`] products.
    pub(crate) fn add(&mut self, path: HePath, x: &[u64], y: &[u64]) {
        assert!(x.len() == self.low.len() && y.len() == self.low.len(), "number of values");
        self.terms += 1;
        assert!(self.terms <= MAX_TERMS, "more products than the sums hold; settle before");
        path.run(MultiplyAdd { x, y, sums: self });
    }

    /// The sums modulo p.
    pub(crate) fn settle(&self, path: HePath, modulus: Modulus, out: &mut [u64]) {
        assert_eq!(out.len(), self.low.len(), "number of values");
        path.run(Settle { sums: self, modulus, factors: limb_factors(modulus), out });
    }
}

impl Drop for Sums {
    fn drop(&mut self) {
        self.low.zeroize();
        self.high.zeroize();
    }
}

/// 1, 2^52 and 2^104 modulo p.
pub(crate) fn limb_factors(modulus: Modulus) -> [Factor<u64>; 3] {
    [0, LIMB, 2 * LIMB].map(|bits| modulus.factor(modulus.reduce(1u128 << bits)))
}

struct MultiplyAdd<'a> {
    x: &'a [u64],
    y: &'a [u64],
    sums: &'a mut Sums,
}

impl Kernel for MultiplyAdd<'_> {
    #[inline(always)]
    fn run<L: Lane>(self, lane: L) {
        let (low, high) = (&mut self.sums.low, &mut self.sums.high);
        let operands = self.x.chunks_exact(L::WIDTH).zip(self.y.chunks_exact(L::WIDTH));
        let sums = low.chunks_exact_mut(L::WIDTH).zip(high.chunks_exact_mut(L::WIDTH));
        for ((x, y), (low, high)) in operands.zip(sums) {
            let sum = lane.multiply_add((lane.load(low), lane.load(high)), lane.load(x), lane.load(y));
            lane.store(low, sum.0);
            lane.store(high, sum.1);
        }
    }
}

struct Settle<'a> {
    sums: &'a Sums,
    modulus: Modulus,
    factors: [Factor<u64>; 3],
    out: &'a mut [u64],
}

impl Kernel for Settle<'_> {
    #[inline(always)]
    fn run<L: Lane>(self, lane: L) {
        let f = Field::new(lane, self.modulus.p());
        let [f0, f1, f2] = [f.factor(self.factors[0]), f.factor(self.factors[1]), f.factor(self.factors[2])];
        let sums = self.sums.low.chunks_exact(L::WIDTH).zip(self.sums.high.chunks_exact(L::WIDTH));
        for ((low, high), out) in sums.zip(self.out.chunks_exact_mut(L::WIDTH)) {
            let low = lane.load(low);
            // both below 2^63: 2^12 terms of 48 bits, and a carry
            let high = lane.add(lane.load(high), lane.high(low));
            let v = f.add(f.times_limb(lane.low(low), f0), f.times_limb(lane.low(high), f1));
            let v = f.add(f.halve(v), f.times_limb(lane.high(high), f2));
            lane.store(out, f.canonical(f.halve(v)).words());
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
