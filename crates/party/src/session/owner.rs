//! Which tensors of a plan a role owns, and how an owner's tensors travel: masked, packed, in plan order.

use super::control::TalkError;
use super::control::{Reply, Talk, hear, say};
use crate::store::{hex, unhex};
use privet_fss::Wire;
use privet_net::Channel;
use privet_plan::ir::{Op, ValueId};
use privet_plan::{EncodeError, FloatTensor, Plan, encode_inputs, encode_weights};
use privet_prg::{Domain, Seed};
use privet_ring::{PackError, Ring, pack, unpack};
use std::collections::BTreeMap;
use thiserror::Error;
use zeroize::Zeroizing;

/// Inputs, shared for every run, or weights, shared for every session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// [`Op::Input`].
    Inputs,
    /// [`Op::Weight`].
    Weights,
}

impl Shared {
    /// Name and owning role, where `op` is of this kind.
    pub fn of(self, op: &Op) -> Option<(&str, &str)> {
        match (self, op) {
            (Shared::Inputs, Op::Input { name, owner, .. }) => Some((name, owner)),
            (Shared::Weights, Op::Weight { name, owner }) => Some((name, owner)),
            _ => None,
        }
    }

    /// The plan's tensors of this kind: value, name, owning role.
    pub fn all(self, plan: &Plan) -> Vec<(ValueId, &str, &str)> {
        let of = |(v, op)| self.of(op).map(|(name, owner)| (v, name, owner));
        plan.nodes.iter().map(|n| &n.op).enumerate().filter_map(of).collect()
    }
}

/// Why tensors could not be shared.
#[derive(Debug, Error)]
pub enum OwnerError {
    /// The connection.
    #[error("{0}")]
    Talk(#[from] TalkError),
    /// Wrong number of bytes.
    #[error("tensor `{name}`: {source}")]
    Pack {
        /// The tensor.
        name: String,
        /// Why.
        source: PackError,
    },
    /// The owner has no such tensor, or of another size.
    #[error("`{name}` needs {expected} elements, but {found} were given")]
    Length {
        /// The tensor.
        name: String,
        /// The plan's size.
        expected: usize,
        /// What was given.
        found: usize,
    },
    /// The party asks for tensors that are not ours, or fails.
    #[error("{0}")]
    Party(String),
}

impl From<privet_net::NetError> for OwnerError {
    fn from(e: privet_net::NetError) -> Self {
        OwnerError::Talk(e.into())
    }
}

/// A party's side, first half: give the owner the seeds of this party's shares of the masks.
pub fn grant_masks(
    channel: &mut dyn Channel,
    plan: &Plan,
    kind: Shared,
    roles: &[&str],
    seed: &Seed,
) -> Result<(), OwnerError> {
    let seeds = mask_seeds(plan, kind, roles, seed);
    let seeds = seeds.into_iter().map(|(name, seed)| (name, hex(seed.expose()))).collect();
    Ok(say(channel, Talk::Reply, &Reply::Masks { seeds })?)
}

/// A party's side, second half: receive the masked tensors.
pub fn receive_masked(
    channel: &mut dyn Channel,
    plan: &Plan,
    kind: Shared,
    roles: &[&str],
    digest: &mut blake3::Hasher,
) -> Result<BTreeMap<String, Vec<u64>>, OwnerError> {
    let mut tensors = BTreeMap::new();
    for (v, name, _) in kind.all(plan).into_iter().filter(|(.., owner)| roles.contains(owner)) {
        let ty = &plan.nodes[v].ty;
        let ring = Ring::new(ty.bits);
        let bytes = channel.recv(&Talk::Masked.step(), ring.packed_bytes(ty.len()))?;
        digest.update(name.as_bytes()).update(&bytes);
        let tensor = unpack(ring, &bytes, ty.len())
            .map_err(|source| OwnerError::Pack { name: name.to_owned(), source })?;
        tensors.insert(name.to_owned(), tensor);
    }
    Ok(tensors)
}

/// Encode the tensors of a kind that `roles` own; refuses what does not fit before anything is sent.
pub fn encode(
    plan: &Plan,
    kind: Shared,
    roles: &[&str],
    given: &BTreeMap<String, FloatTensor>,
) -> Result<BTreeMap<String, Vec<u64>>, EncodeError> {
    let mut encoded = BTreeMap::new();
    for role in roles {
        let tensors = match kind {
            Shared::Inputs => encode_inputs(plan, Some(role), given)?,
            Shared::Weights => encode_weights(plan, Some(role), given)?,
        };
        encoded.extend(tensors.into_iter().map(|(name, t)| (name, t.into_data())));
    }
    Ok(encoded)
}

/// The owner's side: receive both parties' mask seeds, add both masks to the encoded `tensors`, and send the
/// sums to both. Without the masks the sums are uniform; each party knows one mask of the two.
pub fn share(
    channels: [&mut dyn Channel; 2],
    plan: &Plan,
    kind: Shared,
    roles: &[&str],
    tensors: &BTreeMap<String, Vec<u64>>,
) -> Result<(), OwnerError> {
    let [c0, c1] = channels;
    let seeds = [granted(c0)?, granted(c1)?];
    mask_each(plan, kind, roles, tensors, seeds, &mut |_, bytes| {
        c0.send(&Talk::Masked.step(), bytes.clone())?;
        Ok(c1.send(&Talk::Masked.step(), bytes)?)
    })
}

/// The side of a party that owns the tensors itself: only the other party must grant its mask and get the
/// sums. This party then knows the whole mask of its own tensors, which tells it nothing new.
pub fn share_own(
    peer: &mut dyn Channel,
    plan: &Plan,
    kind: Shared,
    roles: &[&str],
    tensors: &BTreeMap<String, Vec<u64>>,
    seed: &Seed,
    digest: &mut blake3::Hasher,
) -> Result<BTreeMap<String, Vec<u64>>, OwnerError> {
    let own = mask_seeds(plan, kind, roles, seed);
    let seeds = [granted(peer)?, own];
    let mut masked = BTreeMap::new();
    mask_each(plan, kind, roles, tensors, seeds, &mut |(v, name), bytes| {
        digest.update(name.as_bytes()).update(&bytes);
        let ty = &plan.nodes[v].ty;
        let tensor = unpack(Ring::new(ty.bits), &bytes, ty.len())
            .map_err(|source| OwnerError::Pack { name: name.to_owned(), source })?;
        masked.insert(name.to_owned(), tensor);
        Ok(peer.send(&Talk::Masked.step(), bytes)?)
    })?;
    Ok(masked)
}

type SendMasked<'a> = dyn FnMut((ValueId, &str), Vec<u8>) -> Result<(), OwnerError> + 'a;

fn mask_each(
    plan: &Plan,
    kind: Shared,
    roles: &[&str],
    tensors: &BTreeMap<String, Vec<u64>>,
    mut seeds: [BTreeMap<String, Seed>; 2],
    send: &mut SendMasked,
) -> Result<(), OwnerError> {
    for (v, name, _) in kind.all(plan).into_iter().filter(|(.., owner)| roles.contains(owner)) {
        let ty = &plan.nodes[v].ty;
        let ring = Ring::new(ty.bits);
        let given = tensors.get(name).filter(|t| t.len() == ty.len()).ok_or_else(|| OwnerError::Length {
            name: name.to_owned(),
            expected: ty.len(),
            found: tensors.get(name).map_or(0, Vec::len),
        })?;
        let mut masked = given.clone();
        for seeds in &mut seeds {
            let seed = seeds
                .remove(name)
                .ok_or_else(|| OwnerError::Party(format!("a party did not say how to mask `{name}`")))?;
            let mask = Zeroizing::new(seed.stream().elements(ring, ty.len()));
            for (x, r) in masked.iter_mut().zip(mask.iter()) {
                *x = x.wrapping_add(*r);
            }
        }
        let mut bytes = Vec::new();
        pack(ring, &masked, &mut bytes);
        send((v, name), bytes)?;
    }
    Ok(())
}

/// The seeds of one party's shares of the masks of the tensors that `roles` own, by name.
fn mask_seeds(plan: &Plan, kind: Shared, roles: &[&str], seed: &Seed) -> BTreeMap<String, Seed> {
    kind.all(plan)
        .into_iter()
        .filter(|(.., owner)| roles.contains(owner))
        .map(|(v, name, _)| (name.to_owned(), seed.derive(Domain::Mask, Wire::node(v).index())))
        .collect()
}

fn granted(channel: &mut dyn Channel) -> Result<BTreeMap<String, Seed>, OwnerError> {
    match hear(channel, Talk::Reply)? {
        Reply::Masks { seeds } => seeds
            .into_iter()
            .map(|(name, s)| Some((name, Seed::from_bytes(unhex(&s)?))))
            .collect::<Option<_>>()
            .ok_or_else(|| OwnerError::Party("a party sent a malformed mask seed".into())),
        Reply::Failed { reason } => Err(OwnerError::Party(reason)),
        _ => Err(OwnerError::Party(format!("{} answered out of turn", channel.peer()))),
    }
}
