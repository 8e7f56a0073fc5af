//! Which tensors of a program a role owns, and how they become numbers.

use super::control::{Reply, Talk, TalkError, hear};
use privet_net::Channel;
use privet_plan::ir::{Op, Type, ValueId};
use privet_plan::{EncodeError, FloatTensor, Plan, Program, encode_inputs, encode_states, encode_weights};
use std::collections::BTreeMap;
use thiserror::Error;

/// Inputs, shared for every run; weights, shared for every session; states, shared when a training begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// [`Op::Input`].
    Inputs,
    /// [`Op::Weight`].
    Weights,
    /// [`Op::State`].
    States,
}

/// A tensor that somebody shares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its node in the plan; 0 for states, which belong to no single plan.
    pub node: ValueId,
    /// Its name.
    pub name: String,
    /// The role that shares it.
    pub owner: String,
    /// Its type.
    pub ty: Type,
}

impl Shared {
    /// Name and owning role, where `op` is of this kind.
    fn of(self, op: &Op) -> Option<(&str, &str)> {
        match (self, op) {
            (Shared::Inputs, Op::Input { name, owner, .. })
            | (Shared::Weights, Op::Weight { name, owner })
            | (Shared::States, Op::State { name, owner }) => Some((name, owner)),
            _ => None,
        }
    }

    /// The plan's tensors of this kind, in the order in which they travel.
    pub fn all(self, plan: &Plan) -> Vec<Piece> {
        let nodes = plan.nodes.iter().enumerate();
        let pieces = nodes.filter_map(|(node, n)| {
            let (name, owner) = self.of(&n.op)?;
            Some(Piece { node, name: name.into(), owner: owner.into(), ty: n.ty.clone() })
        });
        pieces.collect()
    }
}

/// Every role that a program names: of owners and of receivers, in order, each once.
pub fn roles(program: &Program) -> Vec<String> {
    in_order(program.plans.iter().flat_map(|p| roles_of(&p.plan)))
}

/// The same of one plan.
pub fn roles_of(plan: &Plan) -> Vec<String> {
    let kinds = [Shared::Inputs, Shared::Weights, Shared::States];
    let owners = kinds.into_iter().flat_map(|kind| kind.all(plan)).map(|p| p.owner);
    in_order(owners.chain(plan.outputs.iter().map(|o| o.to.clone())))
}

fn in_order(roles: impl Iterator<Item = String>) -> Vec<String> {
    let mut roles: Vec<String> = roles.collect();
    roles.sort();
    roles.dedup();
    roles
}

/// The states of a program, in the order in which they travel.
pub fn states(program: &Program) -> Vec<Piece> {
    let states = program.states().into_values();
    states.map(|s| Piece { node: 0, name: s.name, owner: s.owner, ty: s.ty }).collect()
}

/// Those that one of `roles` owns.
pub fn owned(pieces: Vec<Piece>, roles: &[impl AsRef<str>]) -> Vec<Piece> {
    pieces.into_iter().filter(|p| roles.iter().any(|r| r.as_ref() == p.owner)).collect()
}

impl Piece {
    /// Its encoded elements, as many as the plan says.
    pub fn of<'a>(&self, encoded: &'a BTreeMap<String, Vec<u64>>) -> Result<&'a Vec<u64>, OwnerError> {
        let given = encoded.get(&self.name);
        given.filter(|t| t.len() == self.ty.len()).ok_or_else(|| OwnerError::Length {
            name: self.name.clone(),
            expected: self.ty.len(),
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
    roles: &[impl AsRef<str>],
    given: &BTreeMap<String, FloatTensor>,
) -> Result<BTreeMap<String, Vec<u64>>, EncodeError> {
    let mut encoded = BTreeMap::new();
    for role in roles.iter().map(AsRef::as_ref) {
        let tensors = match kind {
            Shared::Inputs => encode_inputs(plan, Some(role), given)?,
            Shared::Weights => encode_weights(plan, Some(role), given)?,
            Shared::States => encode_states(plan, Some(role), given)?,
        };
        encoded.extend(tensors.into_iter().map(|(name, t)| (name, t.into_data())));
    }
    Ok(encoded)
}

/// The same for the states of all plans of a program.
pub fn encode_all_states(
    program: &Program,
    roles: &[impl AsRef<str>],
    given: &BTreeMap<String, FloatTensor>,
) -> Result<BTreeMap<String, Vec<u64>>, EncodeError> {
    let mut all = BTreeMap::new();
    for named in &program.plans {
        all.extend(encode(&named.plan, Shared::States, roles, given)?);
    }
    Ok(all)
}

/// Wait for a party's leave to send it tensors; gives the seeds that came with it, hexadecimal by name.
pub(super) fn granted(channel: &mut dyn Channel) -> Result<BTreeMap<String, String>, OwnerError> {
    match hear(channel, Talk::Reply)? {
        Reply::Share { seeds } => Ok(seeds),
        Reply::Failed { reason } => Err(OwnerError::Party(reason)),
        _ => Err(OwnerError::Party(format!("{} answered out of turn", channel.peer()))),
    }
}
