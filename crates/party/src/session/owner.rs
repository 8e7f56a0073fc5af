//! Which tensors of a plan a role owns, and how they become numbers.

use super::control::{Reply, Talk, TalkError, hear};
use privet_net::Channel;
use privet_plan::ir::{Op, Type, ValueId};
use privet_plan::{EncodeError, FloatTensor, Plan, encode_inputs, encode_weights};
use std::collections::BTreeMap;
use thiserror::Error;

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

    /// Those that one of `roles` owns, in the order in which they travel: value and name.
    pub fn owned<'a>(self, plan: &'a Plan, roles: &[&str]) -> Vec<(ValueId, &'a str)> {
        let owned = self.all(plan).into_iter().filter(|(.., owner)| roles.contains(owner));
        owned.map(|(v, name, _)| (v, name)).collect()
    }

    /// The encoded tensor `name`, of the size that the plan says.
    pub fn tensor<'a>(
        self,
        name: &str,
        ty: &Type,
        encoded: &'a BTreeMap<String, Vec<u64>>,
    ) -> Result<&'a Vec<u64>, OwnerError> {
        let given = encoded.get(name);
        given.filter(|t| t.len() == ty.len()).ok_or_else(|| OwnerError::Length {
            name: name.to_owned(),
            expected: ty.len(),
            found: given.map_or(0, Vec::len),
        })
    }
}

/// Why tensors could not be shared.
#[derive(Debug, Error)]
pub enum OwnerError {
    /// The connection.
    #[error("{0}")]
    Talk(#[from] TalkError),
    /// A message that does not hold the tensor.
    #[error("tensor `{name}`: {cause}")]
    Form {
        /// The tensor.
        name: String,
        /// Why.
        cause: String,
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

/// Wait for a party's leave to send it tensors; gives the seeds that came with it, hexadecimal by name.
pub(super) fn granted(channel: &mut dyn Channel) -> Result<BTreeMap<String, String>, OwnerError> {
    match hear(channel, Talk::Reply)? {
        Reply::Share { seeds } => Ok(seeds),
        Reply::Failed { reason } => Err(OwnerError::Party(reason)),
        _ => Err(OwnerError::Party(format!("{} answered out of turn", channel.peer()))),
    }
}
