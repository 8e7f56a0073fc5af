//! How often the low m bits of the three components carry: what is between a value and its components once they are
//! shifted or lengthened. One carry, e, the dealer of a part sees: that of `x_j` and `x_(j+1)`. The other, c, is that of their sum a and of b.

use super::bits::sum_less_product;
use crate::adder::{Adder, Summands, Top};
use crate::context::Party;
use crate::moves::{Chosen, Deal, Dealt, Known, Pieces, Select};
use crate::parts::Parts;
use crate::planes::{Bit, Bits};
use crate::proof::Algebra;
use crate::{RunError, Share, tree};
use privet_ring::Ring;

/// `e + c` in `to`, for m from 1 to 63. Rounds: those of the carry of m bits, and 3 more.
pub(super) fn count(cx: &mut Party, m: u32, to: Ring, x: &Share) -> Result<Share, RunError> {
    // the dealer's own carry is known to it; it is shared as a bit only to be proved
    let top = if cx.transcript.is_some() { Top::Carry } else { Top::None };
    let bits = Summands::deal(cx, "low bits", (x, m as usize, top), |b| b)?;
    let carry = tree::carry(cx, &bits)?;
    let (u, v) = carry.summands(cx, &bits.parts);
    let e = Bit { values: own_bit(cx, &bits.parts, x, m, m), shared: proof(cx, &bits, m) };
    let dealt = cx.deal_all("carries", deals(cx, &bits.parts, to, &u, &e))?;
    let [u, sum] = claimed(cx, to, dealt, &u, &e);
    sum_less_product(cx, "carries", to, (&sum, &u, &v, 2), &bits.parts)
}

/// [`count`] of values that are known to be below 2^(m-1), as a ReLU's result is. Two rounds.
///
/// Then a and b carry exactly where the top bit of one of them is set: what they add up to is 2^m and less than
/// 2^(m-1) more, or just less than 2^(m-1).
pub(super) fn count_below_half(cx: &mut Party, m: u32, to: Ring, x: &Share) -> Result<Share, RunError> {
    let parts = Parts::of(x.len());
    let mut u = Bit { values: own_bit(cx, &parts, x, m, m - 1), shared: None };
    let mut e = Bit { values: own_bit(cx, &parts, x, m, m), shared: None };
    let mut columns = deals(cx, &parts, to, &u, &e);
    // the bits of a go along only to prove these two
    let adder = Adder { x, m: m as usize, top: Top::Carry, tree: false };
    if cx.transcript.is_some() {
        columns.push(adder.deal(cx, &parts));
    }
    let mut dealt = cx.deal_all("carries", columns)?;
    if let Some(a) = dealt.drain(2..).next() {
        let bits = adder.dealt(cx, parts, a, |b| b);
        (u.shared, e.shared) = (proof(cx, &bits, m - 1), proof(cx, &bits, m));
    }
    let [u, sum] = claimed(cx, to, dealt, &u, &e);
    let v = Known::summand(cx.id, &parts, x).bit(m - 1);
    sum_less_product(cx, "carries", to, (&sum, &u, &v, 1), &parts)
}

/// `-2^m (e + c)` in `to`, for u of k bits that is below 2^(k-1), with m = k - shift bits above which the wraps of k bits are
/// once u is shifted. Two rounds.
pub(super) fn wraps(
    cx: &mut Party,
    (from, shift): (Ring, u32),
    to: Ring,
    u: &Share,
) -> Result<Share, RunError> {
    let m = from.bits() - shift;
    let count = count_below_half(cx, from.bits(), Ring::new(to.bits() - m), u)?;
    let lifted = |count: &[u64]| count.iter().map(|c| to.wrap((c << m).wrapping_neg())).collect();
    Ok(Share::new(lifted(&count.own), lifted(&count.next)))
}

/// [`count`] of the low `shift` bits of `rounded`, and [`wraps`] of u: `e + c - 2^m (e' + c')` in `to`. Rounds: those of [`count`].
///
/// With c = l ^ v and c' = h OR w for bits l, h of the dealer and v, w of the others, that is
/// `(l + e - 2^m (h + e')) + (v - 2^m w) - 2 l v + 2^m h w`: l, h and the first bracket are dealt, the products are one split.
pub(super) fn count_less_wraps(
    cx: &mut Party,
    (from, shift): (Ring, u32),
    to: Ring,
    [rounded, u]: [&Share; 2],
) -> Result<Pieces, RunError> {
    let (k, m, proves) = (from.bits(), from.bits() - shift, cx.transcript.is_some());
    let top = if proves { Top::Carry } else { Top::None };
    let bits = Summands::deal(cx, "low bits", (rounded, shift as usize, top), |b| b)?;
    let carry = tree::carry(cx, &bits)?;
    let parts = bits.parts;
    let (mut low, v) = carry.summands(cx, &parts);
    let e = Bit { values: own_bit(cx, &parts, rounded, shift, shift), shared: proof(cx, &bits, shift) };
    let mut high = Bit { values: own_bit(cx, &parts, u, k, k - 1), shared: None };
    let mut wrap = Bit { values: own_bit(cx, &parts, u, k, k), shared: None };

    let (algebra, words) = (Algebra::Ring(to), parts.elements(cx.id).map(|part| part.len()));
    let growth = Ring::new(to.bits() - m);
    let below = low.values.iter().zip(&e.values).map(|(l, e)| l + e);
    let above = high.values.iter().zip(&wrap.values).map(|(h, e)| h + e);
    let sum = below.zip(above).map(|(l, h)| to.wrap(l.wrapping_sub(h << m))).collect();
    let mut columns = vec![
        Deal { algebra, values: std::mem::take(&mut low.values), words, masks: None },
        Deal { algebra: Algebra::Ring(growth), values: std::mem::take(&mut high.values), words, masks: None },
        Deal { algebra, values: sum, words, masks: None },
    ];
    let adder = Adder { x: u, m: k as usize, top: Top::Carry, tree: false };
    if proves {
        columns.push(adder.deal(cx, &parts));
    }
    let mut dealt = cx.deal_all("carries and wraps", columns)?.into_iter();
    let [l, h, sum] =
        std::array::from_fn(|_| dealt.next().unwrap_or_else(|| unreachable!("three are dealt")));
    if let Some(a) = dealt.next() {
        let bits = adder.dealt(cx, parts, a, |b| b);
        (high.shared, wrap.shared) = (proof(cx, &bits, k - 1), proof(cx, &bits, k));
        low.claim(cx, to, &l);
        high.claim(cx, growth, &h);
        let rest = sum.zip(&l, |sum, l| difference(to, sum, l));
        let rest = rest
            .zip(&h, |rest, h| rest.iter().zip(h).map(|(r, h)| to.wrap(r.wrapping_add(h << m))).collect());
        if let (Some(e), Some(wrap)) = (&e.shared, &wrap.shared) {
            cx.claim_bits(to, [(1, e), ((1u64 << m).wrapping_neg(), wrap)], &rest);
        }
    }

    let w = Known::summand(cx.id, &parts, u).bit(k - 1);
    let chosen = vec![
        Chosen { number: l, weight: 2u64.wrapping_neg(), bit: v.clone() },
        // what wraps around the smaller ring wraps around the larger one
        Chosen { number: h, weight: 1 << m, bit: w.clone() },
    ];
    let [mut out] = cx.select("carries and wraps", [Select { ring: to, chosen, turned: None, words }])?;
    out.add_dealt(&sum);
    out.add_known_times(&v, 1);
    out.add_known_times(&w, (1u64 << m).wrapping_neg());
    Ok(out)
}

fn difference(ring: Ring, x: &[u64], y: &[u64]) -> Vec<u64> {
    x.iter().zip(y).map(|(x, y)| ring.wrap(x.wrapping_sub(*y))).collect()
}

/// Bit `l` of the sum of `x_j` and `x_(j+1)` modulo 2^m, in this party's part; for l = m what they carry.
fn own_bit(cx: &Party, parts: &Parts, x: &Share, m: u32, l: u32) -> Vec<u64> {
    let (a, low) = (Dealt::summand(cx.id, parts, x), Ring::new(m).mask());
    let sums = a.own.iter().zip(a.next.iter()).map(|(x, y)| (x & low).overflowing_add(y & low));
    sums.map(|(sum, carry)| if l == 64 { u64::from(carry) } else { sum >> l & 1 }).collect()
}

/// The sharing of that bit modulo 2, where it is to be proved.
fn proof(cx: &Party, bits: &Summands, l: u32) -> Option<Dealt<Bits>> {
    cx.transcript.as_ref()?;
    let (a, len) = (bits.bit(l as usize), bits.parts.elements(cx.id).map(|part| part.len()));
    Some(Dealt {
        own: Bits::of(a.own, len.mine),
        next: Bits::of(a.next, len.mine),
        before: Bits::of(a.before, len.before),
        after: Bits::of(a.after, len.after),
    })
}

/// u and u + e.
fn deals(cx: &Party, parts: &Parts, to: Ring, u: &Bit, e: &Bit) -> Vec<Deal> {
    let (algebra, words) = (Algebra::Ring(to), parts.elements(cx.id).map(|part| part.len()));
    let sum = u.values.iter().zip(&e.values).map(|(u, e)| to.wrap(u + e)).collect();
    vec![
        Deal { algebra, values: u.values.clone(), words, masks: None },
        Deal { algebra, values: sum, words, masks: None },
    ]
}

/// Remember to prove u and u + e.
fn claimed(cx: &mut Party, to: Ring, dealt: Vec<Dealt>, u: &Bit, e: &Bit) -> [Dealt; 2] {
    let dealt: [Dealt; 2] = dealt.try_into().unwrap_or_else(|_| unreachable!("two are dealt"));
    if cx.transcript.is_some() {
        u.claim(cx, to, &dealt[0]);
        let carry = dealt[1].zip(&dealt[0], |sum, u| difference(to, sum, u));
        e.claim(cx, to, &carry);
    }
    dealt
}
