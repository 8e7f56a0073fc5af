//! Comparisons of two numbers, one at each side, and what follows for shares.

use crate::context::{Cx, RunError, Side};
use crate::leaf::{self, Digits, Leaf, Leaves, Wanted};
use crate::mux::{self, Element};
use crate::planes::{self, Plane, Planes};
use crate::tree::{self, Last};
use crate::uses::Uses;
use privet_ring::Ring;

/// Comparisons of digits of both sides' numbers: the client's is what `of_share` makes of its share.
fn leaves(cx: &mut Cx, of: Leaves, x: &[u64], of_share: impl Fn(&u64) -> u64) -> Result<Vec<Leaf>, RunError> {
    let own = match cx.side {
        Side::Server => Planes::of(x, of.bits),
        Side::Client => Planes::of(&x.iter().map(of_share).collect::<Vec<_>>(), of.bits),
    };
    leaf::leaves(cx, of, &own, x.len())
}

/// Shares of whether both sides' lowest `bits` bits add up to 2^bits at least.
///
/// With v the complement of the client's number, `c + s >= 2^bits` is `v < s`.
pub(crate) fn carry(cx: &mut Cx, digits: Digits, bits: u32, x: &[u64]) -> Result<Plane, RunError> {
    if bits == 0 {
        return Ok(vec![0; planes::words(x.len())]);
    }
    let leaves = leaves(cx, Leaves::whole(bits, Wanted::Less, digits), x, |x| !x)?;
    Ok(tree::join(cx, leaves, x.len())?.less.unwrap_or_default())
}

/// What [`carry`] of n elements uses.
pub(crate) fn carry_uses(digits: Digits, bits: u32, n: usize) -> Uses {
    if bits == 0 {
        return Uses::default();
    }
    let of = Leaves::whole(bits, Wanted::Less, digits);
    leaf::uses(of, n).then(tree::uses(of.counts(), n, 1, 2))
}

/// Shares of the most significant bit: both sides' own, and the carry into it.
pub(crate) fn negative(cx: &mut Cx, digits: Digits, ring: Ring, x: &[u64]) -> Result<Plane, RunError> {
    let mut bit = carry(cx, digits, ring.bits() - 1, x)?;
    planes::xor(&mut bit, &planes::plane(x, ring.bits() - 1));
    Ok(bit)
}

/// Of shares modulo 2^k: those modulo 2^(k-f) of the carry out of the lowest f bits, and of the most significant bit. One comparison
/// has both, as it has all digits of the low part; the carry becomes an element while the last node is opened.
pub(crate) fn carry_and_sign(
    cx: &mut Cx,
    digits: Digits,
    ring: Ring,
    low: u32,
    x: &[u64],
) -> Result<(Vec<u64>, Plane), RunError> {
    let (n, of) = (x.len(), carry_and_sign_leaves(digits, ring, low));
    let mut low_part = leaves(cx, of, x, |x| !x)?;
    let high_part = low_part.split_off(of.counts()[0]);
    let parts = tree::join_parts(cx, [low_part, high_part], n)?;
    let carry = parts[0].less.clone().unwrap_or_default();
    let last = Last::begin(cx, parts, n)?;
    let element = Element::begin(cx, Ring::new(ring.bits() - low), &carry, n)?;
    let (mut message, of_element) = (last.message(), element.message(cx.side));
    let (first, due) = (message.len(), message.len() + element.due(cx.side));
    message.extend(of_element);
    let mut theirs = cx.exchange("comparison and carry", message, due)?;
    let of_element = theirs.split_off(first);
    let mut sign = last.finish(cx, theirs)?.less.unwrap_or_default();
    let carry = element.finish(cx, of_element)?;
    planes::xor(&mut sign, &planes::plane(x, ring.bits() - 1));
    Ok((carry, sign))
}

fn carry_and_sign_leaves(digits: Digits, ring: Ring, low: u32) -> Leaves {
    Leaves { bits: ring.bits() - 1, low, wanted: Wanted::Less, digits }
}

/// What [`carry_and_sign`] of n elements uses.
pub(crate) fn carry_and_sign_uses(digits: Digits, ring: Ring, low: u32, n: usize) -> Uses {
    let of = carry_and_sign_leaves(digits, ring, low);
    let last = Last::uses(n).beside(mux::element_uses(ring.bits() - low, n));
    leaf::uses(of, n).then(tree::uses(of.counts(), n, 1, 2)).then(last)
}

/// Shares of whether a shared value is 0: whether one share is the other one's negative.
pub(crate) fn zero(cx: &mut Cx, digits: Digits, ring: Ring, x: &[u64]) -> Result<Plane, RunError> {
    let leaves = leaves(cx, Leaves::whole(ring.bits(), Wanted::Equal, digits), x, |x| x.wrapping_neg())?;
    Ok(tree::join(cx, leaves, x.len())?.equal.unwrap_or_default())
}

/// What [`zero`] of n elements uses.
pub(crate) fn zero_uses(digits: Digits, bits: u32, n: usize) -> Uses {
    let of = Leaves::whole(bits, Wanted::Equal, digits);
    leaf::uses(of, n).then(tree::uses(of.counts(), n, 1, 1))
}
