//! A bit times values: what ReLU, max and argmax end with.
//!
//! In the part that party j deals, let the bit be `c = u ^ v`. The dealer knows `u = c_j ^ c_(j+1)`, the two others know `v = c_(j+2)`. Let
//! the value be `x = a + b`. The dealer knows a, the two others know b. Then `c x = c a + c b`, and
//!
//! - `c a = u a + v (1 - 2u) a`,
//! - `c b = v b + c_j b' + c_(j+1) b' - 2 c_j c_(j+1) b'` with `b' = (1 - 2v) b`.
//!
//! No two parties know all factors of the last product, so it takes two steps. Party j + 1 deals `y = c_(j+1) b`: the dealer holds
//! its component R, and party j + 2 its component D. The dealer deals `q = u a - 2 c_j R`. Then
//!
//! `c x = q + v (a - 2q) + v b + c_(j+1) b' + c_j (1 - 2v)(b - 2D)`.
//!
//! Each term is now a bit times a number. One party knows both, or each end of one message knows one of them.

use crate::context::Party;
use crate::moves::{Chosen, Deal, DealMasks, Dealt, Known, Select, Side, Sides, Turned};
use crate::parts::{Parts, Role};
use crate::planes::Bits;
use crate::proof::{Algebra, Column};
use crate::{PartyId, Planes, RunError, Share};
use privet_kernels::wide;
use privet_ring::{Ring, mask_of};
use std::ops::Range;

/// A value that the bit is multiplied with.
struct Factor {
    ring: Ring,
    /// The dealers' summands.
    a: Dealt,
    /// The summands of the two others.
    b: Known,
}

/// A bit times values of as many elements, each in its own ring. Two rounds; 4/3 of a ring's bits a value and party.
pub(crate) fn bit_times<const N: usize>(
    cx: &mut Party,
    bit: &Planes,
    values: [(Ring, &Share); N],
) -> Result<[Share; N], RunError> {
    let (parts, proves) = (Parts::of(bit.n), cx.transcript.is_some());
    let words = parts.elements(cx.id).map(|part| part.len());
    let (c, v) = (bit.dealt(cx.id, &parts), bit.known(cx.id, &parts));
    let factors = values.map(|(ring, x)| Factor {
        ring,
        a: Dealt::summand(cx.id, &parts, x),
        b: Known::summand(cx.id, &parts, x),
    });

    let mut columns = Vec::with_capacity(2 * N);
    for factor in &factors {
        let algebra = Algebra::Ring(factor.ring);
        let masks = cx.deal_masks(factor.ring, words.turned());
        let q = factor.q(&c, &masks);
        let y = c.before.with(&factor.b.before, |c, b| c & b);
        columns.push(Deal { algebra, values: y, words: words.turned(), masks: Some(masks) });
        columns.push(Deal { algebra, values: q, words, masks: None });
    }
    let dealt = cx.deal_all("selected", columns)?;

    let mut selects = Vec::with_capacity(N);
    for (factor, dealt) in factors.iter().zip(dealt.as_chunks::<2>().0) {
        let (ring, [y, q]) = (factor.ring, dealt);
        let spread = proves.then(|| c.spread(ring));
        if let Some(spread) = &spread {
            factor.claim(cx, (&c, spread), dealt);
        }
        let less_twice = |a: &[u64], q: &[u64]| {
            a.iter().zip(q).map(|(a, q)| ring.wrap(a.wrapping_sub(q.wrapping_mul(2)))).collect::<Vec<u64>>()
        };
        let signed = |v: &Bits, b: &[u64]| Column::from(v.with(b, |v, b| ring.wrap((b ^ v).wrapping_sub(v))));
        // A party computes what it sends, and what only proofs need where there are proofs.
        let (b, d) = (&factor.b, [&y.next, &y.before]);
        let unless = |needed: bool, column: &dyn Fn() -> Column| {
            if needed { column() } else { Column::from(vec![]) }
        };
        let turned = Turned {
            bit: c.clone(),
            spread,
            after: Known {
                before: signed(&v.before, &b.before),
                after: unless(proves, &|| signed(&v.after, &b.after)),
            },
            before: Known {
                before: unless(proves, &|| signed(&v.before, &less_twice(&b.before, d[0]))),
                after: signed(&v.after, &less_twice(&b.after, d[1])),
            },
        };
        let rest = factor.a.operand(q, proves, less_twice);
        let chosen = vec![Chosen { number: rest, weight: 1, bit: v.clone() }];
        selects.push(Select { ring, chosen, turned: Some(turned), words });
    }
    let pieces = cx.select_all("select", selects)?;
    let mut out = values.map(|_| Share::default());
    for (i, mut product) in pieces.into_iter().enumerate() {
        product.add_dealt(&dealt[2 * i + 1]);
        product.add_known_chosen(&v, &factors[i].b);
        out[i] = product.join(cx.id, &parts);
    }
    Ok(out)
}

impl Factor {
    /// `u a - 2 c_j R` of the own part.
    fn q(&self, c: &Dealt<Bits>, masks: &DealMasks) -> Vec<u64> {
        let mut q = Vec::with_capacity(c.own.len());
        let bits = c.own.words().iter().zip(c.next.words().iter());
        let a = self.a.own.chunks(64).zip(self.a.next.chunks(64));
        for ((cj, ck), ((aj, ak), r)) in bits.zip(a.zip(masks.after.chunks(64))) {
            q.extend(aj.iter().zip(ak).zip(r).enumerate().map(|(e, ((aj, ak), r))| {
                let selected = mask_of(cj ^ ck, e) & aj.wrapping_add(*ak);
                self.ring.wrap(selected.wrapping_sub(mask_of(*cj, e) & r.wrapping_mul(2)))
            }));
        }
        q
    }

    /// Remember to prove y and q. `spread` are the bits c as they are multiplied with numbers.
    fn claim(&self, cx: &mut Party, (c, spread): (&Dealt<Bits>, &Dealt), [y, q]: &[Dealt; 2]) {
        for j in PartyId::ALL {
            let (a, b) = (&self.a, &self.b);
            // y, by the party after the dealer: R = c_(j+1) b - D
            let (n, sides) = match Role::of(cx.id, j) {
                Role::Mine => (q.own.len(), Sides::Before(r_of(&y.after, &spread.next), 0)),
                Role::Before => (
                    q.before.len(),
                    Sides::Both(r_of(&y.own, &spread.before), c_b_less_d(&b.before, &y.next)),
                ),
                Role::After => (q.after.len(), Sides::After(c_b_less_d(&b.after, &y.before), 1)),
            };
            cx.claim_same(self.ring, j.next(), n, sides);
            // q, by the dealer: u x_j - q_j = q_(j+1) - u x_(j+1) + 2 c_j R
            let (n, sides) = match Role::of(cx.id, j) {
                Role::Mine => {
                    let first = of_first((&c.own, &spread.own), &a.own, &q.own);
                    let second = of_second((&c.next, &spread.next), &a.next, &q.next, &y.after);
                    (q.own.len(), Sides::Both(first, second))
                }
                Role::Before => {
                    let second = of_second((&c.before, &spread.before), &a.before, &q.before, &y.own);
                    (q.before.len(), Sides::After(second, 1))
                }
                Role::After => {
                    let first = of_first((&c.after, &spread.after), &a.after, &q.after);
                    (q.after.len(), Sides::Before(first, 1))
                }
            };
            cx.claim_same(self.ring, j, n, sides);
        }
    }
}

/// The dealer's side of y: R, which depends on no bit of the other side, and its own bit c_(j+1), on which the other side's number does.
fn r_of<'a>(r: &'a Column, bit: &Column) -> Side<impl Fn(Range<usize>, usize, &mut [u64]) + use<'a>> {
    let numbers = |range: Range<usize>, _, to: &mut [u64]| to.copy_from_slice(&r[range]);
    Side { bits: vec![bit.clone()], numbers, at_none: Some(r.clone()) }
}

/// The side of y of party j + 2: `c_(j+1) b - D` for both choices of c_(j+1).
fn c_b_less_d<'a>(b: &'a [u64], d: &'a [u64]) -> Side<impl Fn(Range<usize>, usize, &mut [u64])> {
    let numbers = |range: Range<usize>, c: usize, to: &mut [u64]| {
        let (known, c) = (b[range.clone()].iter().zip(&d[range]), ones(c as u64));
        wide!(to.iter_mut().zip(known).for_each(|(to, (b, d))| *to = (b & c).wrapping_sub(*d)));
    };
    Side { bits: vec![], numbers, at_none: None }
}

/// The side of q of the holder of the components j: `u x_j - q_j` for both choices of c_(j+1), and its own bit c_j.
fn of_first(
    (bits, spread): (&Bits, &Column),
    x: &[u64],
    q: &[u64],
) -> Side<impl Fn(Range<usize>, usize, &mut [u64])> {
    let numbers = move |range: Range<usize>, c: usize, to: &mut [u64]| {
        let c = ones(c as u64);
        bits.masks(range.clone(), to);
        let known = x[range.clone()].iter().zip(&q[range]);
        wide!(to.iter_mut().zip(known).for_each(|(to, (x, q))| *to = (x & (*to ^ c)).wrapping_sub(*q)));
    };
    Side { bits: vec![spread.clone()], numbers, at_none: None }
}

/// The side of q of the holder of the components j + 1: `q_(j+1) - u x_(j+1) + 2 c_j R` for both choices of c_j, and its own bit c_(j+1).
fn of_second(
    (bits, spread): (&Bits, &Column),
    x: &[u64],
    q: &[u64],
    r: &[u64],
) -> Side<impl Fn(Range<usize>, usize, &mut [u64])> {
    let numbers = move |range: Range<usize>, c: usize, to: &mut [u64]| {
        let c = ones(c as u64);
        bits.masks(range.clone(), to);
        let dealt = q[range.clone()].iter().zip(&r[range.clone()]);
        let known = x[range].iter().zip(dealt);
        wide!({
            for (to, (x, (q, r))) in to.iter_mut().zip(known) {
                let selected = x & (*to ^ c);
                *to = q.wrapping_sub(selected).wrapping_add(r.wrapping_mul(2) & c);
            }
        });
    };
    Side { bits: vec![spread.clone()], numbers, at_none: None }
}

/// A bit in every place.
fn ones(bit: u64) -> u64 {
    bit.wrapping_neg()
}
