//! What outlives a run: additive shares of states, opened under fresh masks when a run begins, made again from
//! masked values when it ends.

use crate::exchange::{EvalError, Exchange};
use privet_family::{Secret, States};
use privet_plan::ir::{Op, Plan, ValueId};
use privet_ring::Ring;
use std::collections::BTreeMap;

/// Open all states of a plan under this record's fresh masks, in one round that the caller counts. `mask` gives this party's
/// summand of the mask of a state's node: so many elements of its ring. Gives the masked values with the bytes sent for each.
///
/// Party i sends `[w]_i + mask_i`. The sum is `w + mask`, uniform because every other party's `mask_i` is, which serves this
/// record alone.
pub fn open_states(
    exchange: &mut Exchange<'_>,
    plan: &Plan,
    states: &States,
    mask: impl Fn(ValueId, Ring, usize) -> Secret,
) -> Result<BTreeMap<ValueId, (Vec<u64>, u64)>, EvalError> {
    let mut shares = Vec::new();
    for (v, node) in plan.nodes.iter().enumerate() {
        let Op::State { name, .. } = &node.op else { continue };
        let share = states.get(name).filter(|share| share.len() == node.ty.len()).ok_or_else(|| {
            EvalError::Missing(format!("no share of state `{name}`; its owner must share its first value"))
        })?;
        shares.push((v, node, name, share));
    }
    let mut sent = BTreeMap::new();
    for (v, node, name, share) in shares {
        let ring = Ring::new(node.ty.bits);
        let mut masked = mask(v, ring, share.len());
        for (m, w) in masked.iter_mut().zip(share) {
            *m = ring.wrap(m.wrapping_add(*w));
        }
        exchange.enter(&node.layer);
        let before = exchange.stats.sent_bytes;
        let opening = exchange.open_masked(&format!("state `{name}`"), ring, masked.expose())?;
        sent.insert(v, (opening, exchange.stats.sent_bytes - before));
    }
    let mut opened = BTreeMap::new();
    for (v, (opening, bytes)) in sent {
        opened.insert(v, (exchange.receive(opening)?, bytes));
    }
    Ok(opened)
}

/// Additive shares of a masked value, in place of it: `[leads] masked - mask_i`, given `mask`, this party's summand. Exactly one
/// party leads.
pub fn unmask(leads: bool, ring: Ring, masked: &[u64], mask: Secret) -> Secret {
    let leads = u64::from(leads);
    let mut share = mask;
    for (r, y) in share.iter_mut().zip(masked) {
        *r = ring.wrap((leads * y).wrapping_sub(*r));
    }
    share
}
