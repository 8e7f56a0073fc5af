//! How tensors are masked by their owner, and results put together by their receiver.

use crate::session::control::Talk;
use crate::session::family::{Encoded, Outside, ResultError};
use crate::session::owner::{OwnerError, Shared, granted};
use crate::store::unhex;
use privet_fss::Wire;
use privet_net::{Channel, TcpChannel};
use privet_plan::Plan;
use privet_plan::ir::{Type, ValueId};
use privet_prg::{Domain, Seed};
use privet_ring::{Ring, pack, unpack};
use std::collections::BTreeMap;
use zeroize::Zeroizing;

/// Owners mask, receivers add two shares up.
pub(in crate::session::family) struct FssOutside;

impl Outside for FssOutside {
    /// Receive both parties' mask seeds, add both masks to the encoded tensors, and send the sums to both. Without the
    /// masks the sums are uniform; each party knows one mask of the two.
    fn share(
        &self,
        channels: &mut [TcpChannel],
        plan: &Plan,
        kind: Shared,
        roles: &[&str],
        encoded: &Encoded,
    ) -> Result<(), OwnerError> {
        let [c0, c1] = channels else {
            return Err(OwnerError::Party("fss has two parties: correct the deployment".into()));
        };
        let seeds = [granted_seeds(c0)?, granted_seeds(c1)?];
        mask_each(plan, kind, roles, encoded, seeds, &mut |_, _, bytes| {
            c0.send(&Talk::Tensor.step(), bytes.clone())?;
            Ok(c1.send(&Talk::Tensor.step(), bytes)?)
        })
    }

    fn result_bytes(&self, ty: &Type) -> usize {
        Ring::new(ty.bits).packed_bytes(ty.len())
    }

    fn combine(&self, name: &str, ty: &Type, sent: &[Vec<u8>]) -> Result<Vec<u64>, ResultError> {
        let ring = Ring::new(ty.bits);
        let mut sum = vec![0u64; ty.len()];
        for bytes in sent {
            let share = unpack(ring, bytes, ty.len())
                .map_err(|e| ResultError { name: name.to_owned(), cause: e.to_string() })?;
            sum.iter_mut().zip(share).for_each(|(sum, x)| *sum = ring.wrap(sum.wrapping_add(x)));
        }
        Ok(sum)
    }
}

type SendMasked<'a> = dyn FnMut(&str, &Type, Vec<u8>) -> Result<(), OwnerError> + 'a;

/// Add all masks to each tensor that `roles` own and hand the sums to `send`.
pub(super) fn mask_each(
    plan: &Plan,
    kind: Shared,
    roles: &[&str],
    encoded: &Encoded,
    mut seeds: [BTreeMap<String, Seed>; 2],
    send: &mut SendMasked,
) -> Result<(), OwnerError> {
    for (v, name) in kind.owned(plan, roles) {
        let ty = &plan.nodes[v].ty;
        let ring = Ring::new(ty.bits);
        let mut masked = kind.tensor(name, ty, encoded)?.clone();
        for seeds in &mut seeds {
            let seed = seeds
                .remove(name)
                .ok_or_else(|| OwnerError::Party(format!("a party did not say how to mask `{name}`")))?;
            let mask = Zeroizing::new(seed.stream().elements(ring, ty.len()));
            masked.iter_mut().zip(mask.iter()).for_each(|(x, r)| *x = x.wrapping_add(*r));
        }
        let mut bytes = Vec::new();
        pack(ring, &masked, &mut bytes);
        send(name, ty, bytes)?;
    }
    Ok(())
}

/// The seeds of one party's shares of the masks of the tensors that `roles` own, by name.
pub(super) fn mask_seeds(plan: &Plan, kind: Shared, roles: &[&str], seed: &Seed) -> BTreeMap<String, Seed> {
    let owned = kind.owned(plan, roles).into_iter();
    owned
        .map(|(v, name): (ValueId, &str)| (name.to_owned(), seed.derive(Domain::Mask, Wire::node(v).index())))
        .collect()
}

/// The seeds that a party gives with its leave to send.
pub(super) fn granted_seeds(channel: &mut dyn Channel) -> Result<BTreeMap<String, Seed>, OwnerError> {
    let seed = |(name, s): (String, String)| Some((name, Seed::from_bytes(unhex(&s)?)));
    let seeds = granted(channel)?.into_iter().map(seed).collect::<Option<_>>();
    seeds.ok_or_else(|| OwnerError::Party("a party sent a malformed mask seed".into()))
}
