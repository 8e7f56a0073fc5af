//! One addition of two numbers, each known somewhere in the clear: their bits (docs/rep3.md, section 3).

use crate::context::Party;
use crate::moves::{Deal, Dealt, Known, Product};
use crate::parts::{Parts, Roles};
use crate::planes::{Bits, evens_first, to_planes};
use crate::proof::{Algebra, Column};
use crate::{RunError, Share};
use privet_kernels::Device;

/// The low `m` bits of a and b, where `x = a + b`, a known to the dealer of a part and b to the two others.
///
/// Planes part by part: the even bits, then the odd ones; then what is asked for above them; then, for a tree, the
/// products of bits 2t and 2t + 1, from which its first level is made.
pub(crate) struct Summands {
    pub parts: Parts,
    m: usize,
    /// Planes above the m bits: none, bit m, or that and a carry.
    tops: usize,
    products: usize,
    a: Dealt,
    b: Known,
    /// Words of a plane in every part.
    pub words: Roles<usize>,
}

/// What is shared beside the `m` bits that are added.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Top {
    /// Nothing.
    None,
    /// Bit m of a and of b, for a sign.
    Bit,
    /// What `x_j` and `x_(j+1)` modulo 2^m carry into bit m, which may be 64. Nothing of b.
    Carry,
    /// Bit m of a and of b, and what `x_j` and `x_(j+1)` modulo 2^(m+1) carry into bit m + 1, which may be 64.
    BitAndCarry,
}

/// What is to be shared of x.
pub(crate) struct Adder<'a> {
    pub x: &'a Share,
    /// Bits to be added.
    pub m: usize,
    pub top: Top,
    /// Whether a tree follows: without one, the products and the bits of b are left out.
    pub tree: bool,
}

impl Adder<'_> {
    /// The bits of this party's part.
    pub fn deal(&self, cx: &Party, parts: &Parts) -> Deal {
        let words = parts.words(cx.id).map(|w| w.len());
        let summand = Dealt::summand(cx.id, parts, self.x);
        let low = self.modulo();
        let a =
            || summand.own.iter().zip(summand.next.iter()).map(|(x, y)| (x & low).overflowing_add(y & low));
        let sums: Vec<u64> = a().map(|(sum, _)| sum).collect();
        let values = self.planes(cx.device, &sums, || a().map(|(_, carry)| u64::from(carry)).collect());
        let count = self.m + self.tops() + self.products();
        Deal { algebra: Algebra::Bits, values, words: words.map(|w| count * w), masks: None }
    }

    /// The summands, with `a` as it was dealt. What stands for b is a function of it: the addition's other operand, or what
    /// a comparison compares a with.
    pub fn dealt(&self, cx: &mut Party, parts: Parts, a: Dealt, known: impl Fn(u64) -> u64) -> Summands {
        let words = parts.words(cx.id).map(|w| w.len());
        let (device, low) = (cx.device, self.modulo());
        let b = Known::summand(cx.id, &parts, self.x).map(|b| match self.tree {
            // nothing of b stands where its carry would
            true => self
                .planes(device, &b.iter().map(|b| known(*b) & low).collect::<Vec<_>>(), || vec![0; b.len()]),
            false => vec![],
        });
        let (m, tops, products) = (self.m, self.tops(), self.products());
        let bits = Summands { parts, m, tops, products, a, b, words };
        if cx.transcript.is_some() {
            let places = self.places();
            let planes = |x: &[u64]| {
                let mut planes = match low {
                    u64::MAX => to_planes(device, x, &places),
                    low => to_planes(device, &x.iter().map(|x| x & low).collect::<Vec<_>>(), &places),
                };
                planes.resize((m + tops) * x.len().div_ceil(64), 0);
                planes
            };
            let x = Dealt::summand(cx.id, &parts, self.x);
            bits.claim(cx, &x, planes);
        }
        bits
    }

    fn tops(&self) -> usize {
        match self.top {
            Top::None => 0,
            Top::Bit | Top::Carry => 1,
            Top::BitAndCarry => 2,
        }
    }

    fn products(&self) -> usize {
        if self.tree { self.m / 2 } else { 0 }
    }

    /// Which bits of `x_j`, `x_(j+1)` and b take part.
    fn modulo(&self) -> u64 {
        match self.top {
            Top::None | Top::Bit => u64::MAX,
            Top::Carry => u64::MAX >> (64 - self.m),
            Top::BitAndCarry => u64::MAX >> (63 - self.m),
        }
    }

    /// Whether the carry does not fit in a word with the others.
    fn beyond(&self) -> bool {
        self.m + self.tops() > 64
    }

    /// Of the bits that a word has: all but a carry beyond it, whose plane comes next.
    fn places(&self) -> Vec<usize> {
        let mut places = evens_first(self.m);
        places.extend(self.m..self.m + self.tops() - usize::from(self.beyond()));
        places
    }

    /// Bit planes at their places, with what is carried beyond a word, and behind them the products.
    fn planes(&self, device: &dyn Device, values: &[u64], carried: impl FnOnce() -> Vec<u64>) -> Vec<u64> {
        let (words, places) = (values.len().div_ceil(64), self.places());
        let mut planes = Vec::with_capacity((self.m + self.tops() + self.products()) * words);
        planes.resize(places.len() * words, 0);
        device.bit_planes(values, &places, &mut planes);
        if self.beyond() {
            planes.extend(to_planes(device, &carried(), &[0]));
        }
        let odd = self.m.div_ceil(2) * words;
        for w in 0..self.products() * words {
            planes.push(planes[w] & planes[odd + w]);
        }
        planes
    }
}

impl Summands {
    /// Share the bits of a: one round, from every party the bits of its part.
    pub fn deal(
        cx: &mut Party,
        what: &str,
        (x, m, top): (&Share, usize, Top),
        known: impl Fn(u64) -> u64,
    ) -> Result<Summands, RunError> {
        let (parts, adder) = (Parts::of(x.len()), Adder { x, m, top, tree: true });
        let bits = adder.deal(cx, &parts);
        let [a] = cx.deal(what, [bits])?;
        Ok(adder.dealt(cx, parts, a, known))
    }

    /// Bits of the addition.
    pub fn bits(&self) -> usize {
        self.m
    }

    /// Bits 2t for t in a range of this length from `t`, of a and of b.
    pub fn even(&self, t: usize, count: usize) -> (Dealt, Known) {
        self.planes(t, count)
    }

    /// Bits 2t + 1.
    pub fn odd(&self, t: usize, count: usize) -> (Dealt, Known) {
        self.planes(self.m.div_ceil(2) + t, count)
    }

    /// Products of bits 2t and 2t + 1.
    pub fn product(&self, t: usize, count: usize) -> (Dealt, Known) {
        self.planes(self.m + self.tops + t, count)
    }

    /// Bit m.
    pub fn top(&self) -> (Dealt, Known) {
        debug_assert!(self.tops > 0);
        self.planes(self.m, 1)
    }

    /// Bit `l` of a, one that is shared.
    pub fn bit(&self, l: usize) -> Dealt {
        planes_of(&self.a, self.place(l), 1, self.words)
    }

    /// What `x_j` and `x_(j+1)` carry into bit `l` of a, one that is shared: `a ^ x_j ^ x_(j+1)` at that bit. `x` is what they are of.
    pub fn carried_into(&self, x: &Dealt, l: u32) -> Dealt {
        self.bit(l as usize).zip(x, |a, x| Algebra::Bits.sum(a, Bits::of_numbers(x, l).words()))
    }

    fn place(&self, l: usize) -> usize {
        if l >= self.m { l } else { l / 2 + (l % 2) * self.m.div_ceil(2) }
    }

    fn planes(&self, first: usize, count: usize) -> (Dealt, Known) {
        let b = |c: &Column, words: usize| c.part(first * words..(first + count) * words);
        let known =
            Known { before: b(&self.b.before, self.words.before), after: b(&self.b.after, self.words.after) };
        (planes_of(&self.a, first, count, self.words), known)
    }

    /// Remember to prove that a is `x_j + x_(j+1)`, and the products; `planes` makes the bits of x, plane for plane as those of a.
    ///
    /// The carries `r = a ^ x_j ^ x_(j+1)` are linear in the shares; `r_0 = 0` and `r_(l+1) = r_l ^ (x_j,l ^ r_l)(x_(j+1),l ^ r_l)`, where
    /// the first factor has the components `a_j, r_(j+1)` and the second `r_j, a_(j+1)`, as `r_j = a_j ^ x_j`.
    fn claim(&self, cx: &mut Party, x: &Dealt, planes: impl Fn(&[u64]) -> Vec<u64>) {
        let (evens, odds, bits) = (self.m.div_ceil(2), self.products, self.m + self.tops);
        let a = planes_of(&self.a, 0, bits, self.words);
        let r = a.zip(x, |a, x| {
            let mut carries = planes(x);
            Algebra::Bits.add(&mut carries, a);
            carries
        });
        let (left, right) = (mixed(&a, &r), mixed(&r, &a));
        let part = |of: &Dealt, first, count| planes_of(of, first, count, self.words);
        // a statement needs a product, if one of nothing
        let lowest = part(&r, 0, 1);
        let zero = lowest.map(|c| vec![0; c.len()]);
        cx.claim_dealt(&[Product(&zero, &zero)], &lowest);
        // bits with one above them whose planes lie side by side: even ones, odd ones, and bit m
        let below = bits.saturating_sub(1);
        let neighbours = [(0, (0..self.m.min(below)).step_by(2)), (evens, (1..self.m.min(below)).step_by(2))];
        for (first, of) in neighbours.into_iter().chain([(self.m, (self.m..below).step_by(1))]) {
            let count = of.len();
            let linear = r.seen(|r| {
                let words = r.len() / bits.max(1);
                let mut sums = Vec::with_capacity(count * words);
                for (t, l) in of.clone().enumerate() {
                    let (above, carry) = (self.place(l + 1), first + t);
                    let planes = r[above * words..].iter().zip(&r[carry * words..]);
                    sums.extend(planes.take(words).map(|(a, r)| a ^ r));
                }
                sums
            });
            let factors = Product(&part(&left, first, count), &part(&right, first, count));
            cx.claim_dealt(&[factors], &linear);
        }
        let product = part(&self.a, bits, odds);
        let (even, odd) = (part(&self.a, 0, odds), part(&self.a, evens, odds));
        cx.claim_dealt(&[Product(&even, &odd)], &product);
    }
}

/// The value with component j of `first` and component j + 1 of `second`.
fn mixed(first: &Dealt, second: &Dealt) -> Dealt {
    Dealt {
        own: first.own.clone(),
        next: second.next.clone(),
        before: second.before.clone(),
        after: first.after.clone(),
    }
}

fn planes_of(of: &Dealt, first: usize, count: usize, words: Roles<usize>) -> Dealt {
    let planes = |c: &Column, words: usize| c.part(first * words..(first + count) * words);
    Dealt {
        own: planes(&of.own, words.mine),
        next: planes(&of.next, words.mine),
        before: planes(&of.before, words.before),
        after: planes(&of.after, words.after),
    }
}
