//! The gates, of three moves each (docs/rep3.md, section 3); each takes and gives replicated shares.

pub mod argmax;
pub mod bits;
mod carries;
pub mod equal;
pub mod extend;
pub mod max;
#[cfg(test)]
mod price;
pub mod relu;
pub mod sign;
pub mod truncate;

use crate::context::Party;
use crate::{RunError, Share};
use privet_plan::cost::Rep3;

/// A gate on a vector of any length, [`Rep3::BLOCK`] elements at a time, so that memory stays bounded.
fn in_blocks(
    cx: &mut Party,
    x: &Share,
    mut gate: impl FnMut(&mut Party, &Share) -> Result<Share, RunError>,
) -> Result<Share, RunError> {
    if x.len() <= Rep3::BLOCK {
        return gate(cx, x);
    }
    let (mut own, mut next) = (Vec::with_capacity(x.len()), Vec::with_capacity(x.len()));
    for (a, b) in x.own.chunks(Rep3::BLOCK).zip(x.next.chunks(Rep3::BLOCK)) {
        let y = gate(cx, &Share::new(a.to_vec(), b.to_vec()))?;
        own.extend_from_slice(&y.own);
        next.extend_from_slice(&y.next);
    }
    Ok(Share::new(own, next))
}
