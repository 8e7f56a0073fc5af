//! Comparisons of two numbers, one at each side, and what follows for shares.

use crate::context::{Cx, Plane, RunError, Side};
use crate::leaf::{self, Leaf, Wanted};
use crate::planes;
use crate::tree;
use crate::uses::Uses;
use privet_ring::Ring;

/// Shares of whether both sides' lowest `bits` bits add up to 2^bits at least.
///
/// With v the complement of the client's number, `c + s >= 2^bits` is `v < s`.
pub(crate) fn carry(cx: &mut Cx, bits: u32, x: &[u64]) -> Result<Plane, RunError> {
    if bits == 0 {
        return Ok(vec![0; planes::words(x.len())]);
    }
    let own = match cx.side {
        Side::Server => planes::split(x, bits),
        Side::Client => planes::split(&x.iter().map(|x| !x).collect::<Vec<_>>(), bits),
    };
    let leaves = leaf::leaves(cx, &own, x.len(), Wanted::Less)?;
    let Leaf { less, .. } = tree::join(cx, leaves, x.len())?;
    Ok(less.unwrap_or_default())
}

/// What [`carry`] of n elements uses.
pub(crate) fn carry_uses(bits: u32, n: usize) -> Uses {
    if bits == 0 {
        return Uses::default();
    }
    leaf::uses(bits, n, Wanted::Less).then(tree::uses(leaf::count(bits), n, 1, 2))
}

/// Shares of the most significant bit: both sides' own, and the carry into it.
pub(crate) fn negative(cx: &mut Cx, ring: Ring, x: &[u64]) -> Result<Plane, RunError> {
    let mut bit = carry(cx, ring.bits() - 1, x)?;
    planes::xor(&mut bit, &planes::plane(x, ring.bits() - 1));
    Ok(bit)
}

/// Shares of whether a shared value is 0: whether one share is the other one's negative.
pub(crate) fn zero(cx: &mut Cx, ring: Ring, x: &[u64]) -> Result<Plane, RunError> {
    let own = match cx.side {
        Side::Server => planes::split(x, ring.bits()),
        Side::Client => planes::split(&x.iter().map(|x| x.wrapping_neg()).collect::<Vec<_>>(), ring.bits()),
    };
    let leaves = leaf::leaves(cx, &own, x.len(), Wanted::Equal)?;
    let Leaf { equal, .. } = tree::join(cx, leaves, x.len())?;
    Ok(equal.unwrap_or_default())
}

/// What [`zero`] of n elements uses.
pub(crate) fn zero_uses(bits: u32, n: usize) -> Uses {
    leaf::uses(bits, n, Wanted::Equal).then(tree::uses(leaf::count(bits), n, 1, 1))
}
