//! What outlives a run: additive shares of states, opened under fresh masks when a run begins, made again from
//! masked values when it ends.

use crate::{Eval, EvalError, PartyId, Secret, Wire, mutation};
use privet_plan::ir::{Op, Plan, ValueId};
use privet_prg::Seed;
use privet_ring::Ring;
use std::collections::BTreeMap;

/// One evaluator's additive shares of states by name, in the rings of their nodes; zeroed when dropped.
#[derive(Clone, Default)]
pub struct States(BTreeMap<String, Secret>);

impl States {
    /// None.
    pub fn new() -> States {
        States::default()
    }

    /// Put in the share of a state; one of the same name is replaced.
    pub fn insert(&mut self, name: impl Into<String>, share: Vec<u64>) {
        self.0.insert(name.into(), Secret::new(share));
    }

    /// The share of a state.
    pub fn get(&self, name: &str) -> Option<&[u64]> {
        self.0.get(name).map(|share| share.as_slice())
    }

    /// Names and shares, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u64])> {
        self.0.iter().map(|(name, share)| (name.as_str(), share.as_slice()))
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Take over what a run made of some of them: all of `updates` replace those of their names.
    pub fn replace(&mut self, mut updates: States) {
        self.0.append(&mut updates.0);
    }
}

impl std::fmt::Debug for States {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The share of a state's first value that belongs to the evaluator that is given `seed`: uniform elements, expanded from
/// a seed that is fresh for this state and used for nothing else.
pub fn expand_state(seed: &Seed, ring: Ring, n: usize) -> Vec<u64> {
    seed.stream().elements(ring, n)
}

/// The other evaluator's share of `value` (elements of `ring`): `value` minus [`expand_state`]. The owner of a state
/// sends `seed` to one evaluator and this to the other one; each is uniform by itself.
pub fn share_state(value: &[u64], ring: Ring, seed: &Seed) -> Vec<u64> {
    let mut share = expand_state(seed, ring, value.len());
    for (s, v) in share.iter_mut().zip(value) {
        *s = ring.wrap(v.wrapping_sub(*s));
    }
    share
}

/// Open all states of a plan under this record's fresh masks, in one round. Gives the masked values with the bytes sent
/// for each.
///
/// Evaluator b sends `[w]_b + [r]_b`. The sum is `w + r`, uniform because `[r]_(1-b)` is, which serves this record alone.
pub(crate) fn open(
    cx: &mut Eval,
    plan: &Plan,
    states: &States,
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
        let mut masked = match mutation::on("state-opened-unmasked") {
            true => Secret::new(vec![0; share.len()]),
            false => cx.mask_share(Wire::node(v), ring, share.len()),
        };
        for (m, w) in masked.iter_mut().zip(share) {
            *m = ring.wrap(m.wrapping_add(*w));
        }
        cx.enter(node);
        let before = cx.stats.sent_bytes;
        let opening = cx.send_masked(&format!("state `{name}`"), ring, masked.expose())?;
        sent.insert(v, (opening, cx.stats.sent_bytes - before));
    }
    let mut opened = BTreeMap::new();
    for (v, (opening, bytes)) in sent {
        opened.insert(v, (cx.receive_masked(opening)?, bytes));
    }
    Ok(opened)
}

/// Additive shares of a masked value, in place of it: `[b = 0] yh - [r]_b`, given `mask`, this evaluator's `[r]_b`.
pub(crate) fn unmask(party: PartyId, ring: Ring, masked: &[u64], mask: Secret) -> Secret {
    let leads = party.leads() as u64;
    let mut share = mask;
    for (r, y) in share.iter_mut().zip(masked) {
        *r = ring.wrap((leads * y).wrapping_sub(*r));
    }
    share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_a_state_add_up_and_are_no_part_of_what_is_printed() {
        let ring = Ring::new(40);
        let value: Vec<u64> = [0, 1, 1 << 39, ring.mask(), 77].to_vec();
        let seed = Seed::from_bytes([9; 16]);
        let (a, b) = (expand_state(&seed, ring, value.len()), share_state(&value, ring, &seed));
        let sum: Vec<u64> = a.iter().zip(&b).map(|(a, b)| ring.wrap(a + b)).collect();
        assert_eq!(sum, value);
        assert!(b.iter().all(|&b| b == ring.wrap(b)));

        let mut states = States::new();
        states.insert("w", vec![123_456_789]);
        states.insert("v", vec![2]);
        assert_eq!(format!("{states:?}"), r#"{"v", "w"}"#);
        let mut updates = States::new();
        updates.insert("w", vec![5]);
        states.replace(updates);
        assert_eq!(
            (states.get("w"), states.get("v"), states.get("u")),
            (Some(&[5][..]), Some(&[2][..]), None)
        );
        assert_eq!(states.len(), 2);
    }
}
