//! How often the low m bits of the three components carry: what is between a value and its components once they are
//! shifted or lengthened. One carry, e, the dealer of a part sees: that of `x_j` and `x_(j+1)`. The other, c, is that of their sum a and of b.

use super::bits::sum_less_product;
use crate::adder::{Adder, Summands, Top};
use crate::context::Party;
use crate::moves::{Deal, Dealt, Known};
use crate::parts::Parts;
use crate::planes::{Bit, elements};
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
    let v = Known::summand(cx.id, &parts, x).map(|b| b.iter().map(|b| b >> (m - 1) & 1).collect());
    sum_less_product(cx, "carries", to, (&sum, &u, &v, 1), &parts)
}

/// Bit `l` of the sum of `x_j` and `x_(j+1)` modulo 2^m, in this party's part.
fn own_bit(cx: &Party, parts: &Parts, x: &Share, m: u32, l: u32) -> Vec<u64> {
    let (a, low) = (Dealt::summand(cx.id, parts, x), Ring::new(m).mask());
    a.own.iter().zip(a.next.iter()).map(|(x, y)| (x & low).wrapping_add(y & low) >> l & 1).collect()
}

/// The sharing of that bit modulo 2, as elements, where it is to be proved.
fn proof(cx: &Party, bits: &Summands, l: u32) -> Option<Dealt> {
    cx.transcript.as_ref()?;
    let (a, len) = (bits.bit(l as usize), bits.parts.elements(cx.id).map(|part| part.len()));
    Some(Dealt {
        own: elements(&a.own, 0..len.mine).into(),
        next: elements(&a.next, 0..len.mine).into(),
        before: elements(&a.before, 0..len.before).into(),
        after: elements(&a.after, 0..len.after).into(),
    })
}

/// u and u + e.
fn deals(cx: &Party, parts: &Parts, to: Ring, u: &Bit, e: &Bit) -> Vec<Deal> {
    let (algebra, words) = (Algebra::Ring(to), parts.elements(cx.id).map(|part| part.len()));
    let sum = u.values.iter().zip(&e.values).map(|(u, e)| to.wrap(u + e)).collect();
    vec![Deal { algebra, values: u.values.clone(), words }, Deal { algebra, values: sum, words }]
}

/// Remember to prove u and u + e.
fn claimed(cx: &mut Party, to: Ring, dealt: Vec<Dealt>, u: &Bit, e: &Bit) -> [Dealt; 2] {
    let dealt: [Dealt; 2] = dealt.try_into().unwrap_or_else(|_| unreachable!("two are dealt"));
    if cx.transcript.is_some() {
        u.claim(cx, to, &dealt[0]);
        let carry = dealt[1].zip(&dealt[0], |sum, u| {
            sum.iter().zip(u).map(|(sum, u)| to.wrap(sum.wrapping_sub(*u))).collect()
        });
        e.claim(cx, to, &carry);
    }
    dealt
}
