//! Comparisons of two numbers, one at each side, and what follows for shares.

use crate::context::{Cx, RunError, Side};
use crate::leaf::{self, Digits, Leaf, Leaves, Wanted};
use crate::mux::{self, Element};
use crate::planes::{self, Plane, Planes};
use crate::tree::{self, Last, Part};
use crate::uses::Uses;
use privet_plan::Cut;
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

/// One part alone.
fn one(part: Part) -> [Part; 3] {
    [part, Part::default(), Part::default()]
}

/// What [`carry`] of n elements uses.
pub(crate) fn carry_uses(digits: Digits, bits: u32, n: usize) -> Uses {
    if bits == 0 {
        return Uses::default();
    }
    let of = Leaves::whole(bits, Wanted::Less, digits);
    leaf::uses(of, n).then(tree::uses(one(Part::less(of.counts()[1], true)), n))
}

/// Shares of the most significant bit: both sides' own, and the carry into it.
pub(crate) fn negative(cx: &mut Cx, digits: Digits, ring: Ring, x: &[u64]) -> Result<Plane, RunError> {
    let mut bit = carry(cx, digits, ring.bits() - 1, x)?;
    planes::xor(&mut bit, &planes::plane(x, ring.bits() - 1));
    Ok(bit)
}

/// Of shares of what a ReLU cuts: those of the carry out of the low part, in the ring where the ReLU chooses, and of the sign. The carry
/// becomes an element while the last node of the sign is opened.
///
/// *The sign* is that of all bits: one comparison has both, as it has all digits of the low part. Where the plan promises that the value
/// stays away from the ring's ends ([`Cut::promised`]), it is that of both high parts' sum, which is the cut value or one less: the ReLU is 0
/// or the value that is 0 where the two have different signs. So two shorter trees stand side by side.
pub(crate) fn carry_and_sign(
    cx: &mut Cx,
    digits: Digits,
    cut: Cut,
    x: &[u64],
) -> Result<(Vec<u64>, Plane), RunError> {
    let (n, of) = (x.len(), cut_leaves(digits, cut));
    let mut low = leaves(cx, of, x, |x| !x)?;
    let mut high = low.split_off(of.counts()[0]);
    let top = if cut.promised { high.split_off(tree::low_side(high.len())) } else { Vec::new() };
    let [low, high, top] = tree::join_parts(cx, [low, high, top], n)?;
    let carry = low.less.clone().unwrap_or_default();
    let last = Last::begin(cx, if cut.promised { [high, top] } else { [low, high] }, n)?;
    let element = Element::begin(cx, Ring::new(cut.chosen_bits()), &carry, n)?;
    let (mut message, of_element) = (last.message(), element.message(cx.side));
    let (first, due) = (message.len(), message.len() + element.due(cx.side));
    message.extend(of_element);
    let mut theirs = cx.exchange("comparison and carry", message, due)?;
    let of_element = theirs.split_off(first);
    let mut sign = last.finish(cx, theirs)?.less.unwrap_or_default();
    let carry = element.finish(cx, of_element)?;
    planes::xor(&mut sign, &planes::plane(x, cut.bits - 1));
    Ok((carry, sign))
}

fn cut_leaves(digits: Digits, cut: Cut) -> Leaves {
    Leaves { bits: cut.bits - 1, low: cut.shift, apart: cut.promised, wanted: Wanted::Less, digits }
}

/// What [`carry_and_sign`] of n elements uses.
pub(crate) fn carry_and_sign_uses(digits: Digits, cut: Cut, n: usize) -> Uses {
    let of = cut_leaves(digits, cut);
    let [low, high] = of.counts();
    let parts = match cut.promised {
        false => [Part::less(low, true), Part::less(high, false), Part::default()],
        true => {
            let side = tree::low_side(high);
            [Part::less(low, true), Part::less(side, true), Part::less(high - side, false)]
        }
    };
    let element = mux::element_uses(cut.chosen_bits(), n);
    let is_one_digit = cut.promised && high == 1;
    let last = if is_one_digit { element } else { Last::uses(n).beside(element) };
    leaf::uses(of, n).then(tree::uses(parts, n)).then(last)
}

/// Shares of whether a shared value is 0: whether one share is the other one's negative.
pub(crate) fn zero(cx: &mut Cx, digits: Digits, ring: Ring, x: &[u64]) -> Result<Plane, RunError> {
    let leaves = leaves(cx, Leaves::whole(ring.bits(), Wanted::Equal, digits), x, |x| x.wrapping_neg())?;
    Ok(tree::join(cx, leaves, x.len())?.equal.unwrap_or_default())
}

/// What [`zero`] of n elements uses.
pub(crate) fn zero_uses(digits: Digits, bits: u32, n: usize) -> Uses {
    let of = Leaves::whole(bits, Wanted::Equal, digits);
    leaf::uses(of, n).then(tree::uses(one(Part::equal(of.counts()[1])), n))
}
