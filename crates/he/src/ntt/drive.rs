//! The loops of the transforms, over registers of any width.
//!
//! Level m has m groups of two halves at distance t = N / (2 m); group g's root is number m + g of the powers in
//! bit-reversed order (Longa, Naehrig, CANS 2016). Two levels go over memory at a time; the levels whose distance is
//! below a register's width stay in registers, words being regrouped between them.

use crate::field::Field;
use crate::lane::{Lane, Order};
use crate::word::{Below, Factor};

/// Powers of a root in bit-reversed order, each with its quotient; side by side, and in two columns.
#[derive(Clone, Copy)]
pub(super) struct Roots<'a> {
    pub(super) pairs: &'a [[u64; 2]],
    pub(super) values: &'a [u64],
    pub(super) quotients: &'a [u64],
}

impl Roots<'_> {
    #[inline(always)]
    fn at<L: Lane>(self, f: Field<L>, i: usize) -> Factor<L::V> {
        let [value, quotient] = self.pairs[i];
        f.factor(Factor { value, quotient })
    }

    /// The roots from number i on, each for `t` words.
    #[inline(always)]
    fn spread<L: Lane>(self, f: Field<L>, i: usize, t: usize) -> Factor<L::V> {
        Factor {
            value: f.lane.spread(&self.values[i..], t),
            quotient: f.lane.spread(&self.quotients[i..], t),
        }
    }
}

/// `(x + w y, x - w y)` (Harvey, 2014).
#[inline(always)]
fn split<L: Lane>(
    f: Field<L>,
    x: Below<L::V, 4>,
    y: Below<L::V, 4>,
    w: Factor<L::V>,
) -> (Below<L::V, 4>, Below<L::V, 4>) {
    let (x, y) = (f.halve(x), f.times(y, w));
    (f.add(x, y), f.sub(x, y))
}

/// `(x + y, w (x - y))`.
#[inline(always)]
fn join<L: Lane>(
    f: Field<L>,
    x: Below<L::V, 2>,
    y: Below<L::V, 2>,
    w: Factor<L::V>,
) -> (Below<L::V, 2>, Below<L::V, 2>) {
    (f.halve(f.add(x, y)), f.times(f.sub(x, y), w))
}

/// Coefficients below p to values below p. Only the first `filled` coefficients, a power of two of at least 32, may be others
/// than 0.
#[inline(always)]
pub(super) fn forward<L: Lane>(lane: L, p: u64, roots: Roots, words: &mut [u64], filled: usize) {
    let n = words.len();
    let (first, others) = words.split_at_mut(filled);
    for (i, other) in others.chunks_exact_mut(filled).enumerate() {
        other.copy_from_slice(first);
        part(lane, p, roots, n, i + 1, other);
    }
    part(lane, p, roots, n, 0, first);
}

/// Of a polynomial with N = `n` coefficients of which only the first may be others than 0, as many as there are words: the values
/// with numbers `number * words.len()` and on.
///
/// While t is as large as what is filled, a level has zeros in every second half, and `(x + w 0, x - w 0)` are copies of the
/// first. The levels that follow never leave a part.
#[inline(always)]
pub(super) fn part<L: Lane>(lane: L, p: u64, roots: Roots, n: usize, number: usize, words: &mut [u64]) {
    let (f, filled) = (Field::new(lane, p), words.len());
    let (mut m, mut t) = (n >> filled.trailing_zeros(), filled >> 1);
    let mut groups = 1;
    while t >= 2 * L::WIDTH {
        for (g, group) in words.chunks_exact_mut(2 * t).enumerate() {
            let root = m + number * groups + g;
            let w = [roots.at(f, root), roots.at(f, 2 * root), roots.at(f, 2 * root + 1)];
            let (ab, cd) = group.split_at_mut(t);
            let ((a, b), (c, d)) = (ab.split_at_mut(t >> 1), cd.split_at_mut(t >> 1));
            for (((a, b), c), d) in
                registers(lane, a).zip(registers(lane, b)).zip(registers(lane, c)).zip(registers(lane, d))
            {
                let (x0, x2) = split(f, Below::claim(lane.load(a)), Below::claim(lane.load(c)), w[0]);
                let (x1, x3) = split(f, Below::claim(lane.load(b)), Below::claim(lane.load(d)), w[0]);
                let ((x0, x1), (x2, x3)) = (split(f, x0, x1, w[1]), split(f, x2, x3, w[2]));
                lane.store(a, x0.words());
                lane.store(b, x1.words());
                lane.store(c, x2.words());
                lane.store(d, x3.words());
            }
        }
        (m, groups, t) = (4 * m, 4 * groups, t >> 2);
    }
    if t >= L::WIDTH {
        for (g, group) in words.chunks_exact_mut(2 * t).enumerate() {
            let (w, (a, b)) = (roots.at(f, m + number * groups + g), group.split_at_mut(t));
            for (a, b) in registers(lane, a).zip(registers(lane, b)) {
                let (x, y) = split(f, Below::claim(lane.load(a)), Below::claim(lane.load(b)), w);
                lane.store(a, x.words());
                lane.store(b, y.words());
            }
        }
    }
    for (i, pair) in words.chunks_exact_mut(2 * L::WIDTH).enumerate() {
        let first = number * filled + 2 * i * L::WIDTH;
        let (a, b) = pair.split_at_mut(L::WIDTH);
        let (mut x, mut y) = (lane.load(a), lane.load(b));
        let (mut order, mut t) = (Order::Memory, L::WIDTH >> 1);
        while t > 0 {
            (x, y) = lane.regroup(order, Order::Pairs(t), x, y);
            order = Order::Pairs(t);
            let (m, groups) = (n >> (t.trailing_zeros() + 1), first >> (t.trailing_zeros() + 1));
            let w = roots.spread(f, m + groups, t);
            let (u, v) = split(f, Below::claim(x), Below::claim(y), w);
            (x, y, t) = (u.words(), v.words(), t >> 1);
        }
        (x, y) = lane.regroup(order, Order::Memory, x, y);
        lane.store(a, f.canonical(f.halve(Below::claim(x))).words());
        lane.store(b, f.canonical(f.halve(Below::claim(y))).words());
    }
}

/// Values below p to coefficients below p; `scale` is 1 / N.
#[inline(always)]
pub(super) fn inverse<L: Lane>(lane: L, p: u64, roots: Roots, scale: Factor<u64>, words: &mut [u64]) {
    let (f, n) = (Field::new(lane, p), words.len());
    for (i, pair) in words.chunks_exact_mut(2 * L::WIDTH).enumerate() {
        let (a, b) = pair.split_at_mut(L::WIDTH);
        let (mut x, mut y) = (lane.load(a), lane.load(b));
        let (mut order, mut t) = (Order::Memory, 1);
        while t < L::WIDTH {
            (x, y) = lane.regroup(order, Order::Pairs(t), x, y);
            order = Order::Pairs(t);
            let (m, groups) = (n >> (t.trailing_zeros() + 1), (i * L::WIDTH) >> t.trailing_zeros());
            let w = roots.spread(f, m + groups, t);
            let (u, v) = join(f, Below::claim(x), Below::claim(y), w);
            (x, y, t) = (u.words(), v.words(), 2 * t);
        }
        (x, y) = lane.regroup(order, Order::Memory, x, y);
        lane.store(a, x);
        lane.store(b, y);
    }
    let mut t = L::WIDTH;
    while 4 * t <= n {
        let m = n >> (t.trailing_zeros() + 2);
        for (g, group) in words.chunks_exact_mut(4 * t).enumerate() {
            let w = [roots.at(f, m + g), roots.at(f, 2 * (m + g)), roots.at(f, 2 * (m + g) + 1)];
            let (ab, cd) = group.split_at_mut(2 * t);
            let ((a, b), (c, d)) = (ab.split_at_mut(t), cd.split_at_mut(t));
            for (((a, b), c), d) in
                registers(lane, a).zip(registers(lane, b)).zip(registers(lane, c)).zip(registers(lane, d))
            {
                let (x0, x1) = join(f, Below::claim(lane.load(a)), Below::claim(lane.load(b)), w[1]);
                let (x2, x3) = join(f, Below::claim(lane.load(c)), Below::claim(lane.load(d)), w[2]);
                let ((x0, x2), (x1, x3)) = (join(f, x0, x2, w[0]), join(f, x1, x3, w[0]));
                lane.store(a, x0.words());
                lane.store(b, x1.words());
                lane.store(c, x2.words());
                lane.store(d, x3.words());
            }
        }
        t *= 4;
    }
    let scale = f.factor(scale);
    let root = roots.at(f, 1);
    let last = 2 * t <= n;
    let (a, b) = words.split_at_mut(n >> 1);
    for (a, b) in registers(lane, a).zip(registers(lane, b)) {
        let (mut x, mut y) = (Below::claim(lane.load(a)), Below::claim(lane.load(b)));
        if last {
            (x, y) = join(f, x, y, root);
        }
        lane.store(a, f.canonical(f.times(x.into(), scale)).words());
        lane.store(b, f.canonical(f.times(y.into(), scale)).words());
    }
}

/// Registers of words one after the other.
#[inline(always)]
fn registers<L: Lane>(_: L, words: &mut [u64]) -> std::slice::ChunksExactMut<'_, u64> {
    words.chunks_exact_mut(L::WIDTH)
}
