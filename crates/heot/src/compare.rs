//! Comparisons of two numbers, one at each side, and what follows for shares.

use crate::context::{Cx, RunError, Side};
use crate::leaf::{self, Leaf, Leaves, Wanted};
use crate::planes::{self, Plane, Planes};
use crate::tree;
use crate::uses::Uses;
use privet_ring::Ring;

/// The comparison of both sides' numbers: the client's is what `of_share` makes of its share.
fn compare(
    cx: &mut Cx,
    bits: u32,
    x: &[u64],
    wanted: Wanted,
    of_share: impl Fn(&u64) -> u64,
) -> Result<Leaf, RunError> {
    let own = match cx.side {
        Side::Server => Planes::of(x, bits),
        Side::Client => Planes::of(&x.iter().map(of_share).collect::<Vec<_>>(), bits),
    };
    let leaves = leaf::leaves(cx, &own, bits, x.len(), wanted)?;
    drop(own);
    tree::join(cx, leaves, x.len())
}

/// Shares of whether both sides' lowest `bits` bits add up to 2^bits at least.
///
/// With v the complement of the client's number, `c + s >= 2^bits` is `v < s`.
pub(crate) fn carry(cx: &mut Cx, bits: u32, x: &[u64]) -> Result<Plane, RunError> {
    if bits == 0 {
        return Ok(vec![0; planes::words(x.len())]);
    }
    let Leaf { less, .. } = compare(cx, bits, x, Wanted::Less, |x| !x)?;
    Ok(less.unwrap_or_default())
}

/// What [`carry`] of n elements uses.
pub(crate) fn carry_uses(bits: u32, n: usize) -> Uses {
    if bits == 0 {
        return Uses::default();
    }
    let digits = Leaves { bits, wanted: Wanted::Less }.count();
    leaf::uses(bits, n, Wanted::Less).then(tree::uses(digits, n, 1, 2))
}

/// Shares of the most significant bit: both sides' own, and the carry into it.
pub(crate) fn negative(cx: &mut Cx, ring: Ring, x: &[u64]) -> Result<Plane, RunError> {
    let mut bit = carry(cx, ring.bits() - 1, x)?;
    planes::xor(&mut bit, &planes::plane(x, ring.bits() - 1));
    Ok(bit)
}

/// Shares of whether a shared value is 0: whether one share is the other one's negative.
pub(crate) fn zero(cx: &mut Cx, ring: Ring, x: &[u64]) -> Result<Plane, RunError> {
    let Leaf { equal, .. } = compare(cx, ring.bits(), x, Wanted::Equal, |x| x.wrapping_neg())?;
    Ok(equal.unwrap_or_default())
}

/// What [`zero`] of n elements uses.
pub(crate) fn zero_uses(bits: u32, n: usize) -> Uses {
    let digits = Leaves { bits, wanted: Wanted::Equal }.count();
    leaf::uses(bits, n, Wanted::Equal).then(tree::uses(digits, n, 1, 1))
}
