//! The gates, of three moves each (docs/rep3.md, section 3); each takes and gives replicated shares.

pub mod argmax;
pub mod bits;
mod carries;
pub mod choose;
pub mod equal;
pub mod extend;
pub mod keep;
pub mod lookup;
pub mod max;
#[cfg(test)]
mod price;
pub mod relu;
pub mod sign;
mod times;
pub mod truncate;

use crate::context::Party;
use crate::{Planes, Rep3, RunError, Share};
use std::ops::Range;

/// A gate on a vector of any length, [`Rep3::BLOCK`] elements at a time, so that memory stays bounded.
fn in_blocks(
    cx: &mut Party,
    x: &Share,
    mut gate: impl FnMut(&mut Party, &Share) -> Result<Share, RunError>,
) -> Result<Share, RunError> {
    in_blocks_of(cx, [x], |cx, _, [x]| gate(cx, x))
}

/// [`in_blocks`] for a gate on several vectors, which is also told the elements of each block.
fn in_blocks_of<const N: usize>(
    cx: &mut Party,
    xs: [&Share; N],
    mut gate: impl FnMut(&mut Party, Range<usize>, [&Share; N]) -> Result<Share, RunError>,
) -> Result<Share, RunError> {
    let n = xs[0].len();
    if n <= Rep3::BLOCK {
        return gate(cx, 0..n, xs);
    }
    let (mut own, mut next) = (Vec::with_capacity(n), Vec::with_capacity(n));
    for block in blocks(n) {
        let part = |x: &[u64]| x[block.clone()].to_vec();
        let parts = xs.map(|x| Share::new(part(&x.own), part(&x.next)));
        let y = gate(cx, block, parts.each_ref())?;
        own.extend_from_slice(&y.own);
        next.extend_from_slice(&y.next);
    }
    Ok(Share::new(own, next))
}

/// [`in_blocks`] for a gate that gives a bit an element: packed, as blocks end where words do.
fn planes_in_blocks(
    cx: &mut Party,
    x: &Share,
    mut gate: impl FnMut(&mut Party, &Share) -> Result<Planes, RunError>,
) -> Result<Planes, RunError> {
    let words = in_blocks(cx, x, |cx, x| gate(cx, x).map(|bits| Share { own: bits.own, next: bits.next }))?;
    Ok(Planes { n: x.len(), count: 1, own: words.own, next: words.next })
}

/// The elements of every block; one where there is no element.
fn blocks(n: usize) -> impl Iterator<Item = Range<usize>> {
    (0..n.max(1)).step_by(Rep3::BLOCK).map(move |start| start..n.min(start + Rep3::BLOCK))
}
