//! One run: everything is opened to everybody, the interpreter computes, and what it gives is shared again.

use privet_plan::ir::{Op, Type, ValueId};
use privet_plan::{Coins, InterpretError, Plan, interpret_step};
use privet_prg::{Domain, Seed};
use privet_ring::{Ring, Tensor, pack, unpack};
use std::collections::BTreeMap;
use thiserror::Error;

/// Additive shares of tensors, by name.
pub(super) type Shares = BTreeMap<String, Vec<u64>>;

/// Why a run failed.
#[derive(Debug, Error)]
pub(super) enum ProtocolError {
    #[error("{0}")]
    Interpret(#[from] InterpretError),
    #[error("shares of `{name}` cannot be read: {cause}")]
    Form { name: String, cause: String },
}

/// What a party brings to a run.
pub(super) struct Step<'a> {
    pub plan: &'a Plan,
    pub me: usize,
    pub parties: usize,
    /// Known to all parties, and to nobody else: the coins of this run.
    pub common: &'a Seed,
    pub inputs: &'a Shares,
    /// With the states.
    pub weights: &'a Shares,
    pub publics: &'a BTreeMap<String, u64>,
}

impl Step<'_> {
    /// The plan's shared tensors, in its order: whether it is an input, the name, the type.
    fn sources(&self) -> impl Iterator<Item = (bool, &str, &Type)> {
        self.plan.nodes.iter().filter_map(|node| match &node.op {
            Op::Input { name, .. } => Some((true, &**name, &node.ty)),
            Op::Weight { name, .. } | Op::State { name, .. } => Some((false, &**name, &node.ty)),
            _ => None,
        })
    }

    fn share(&self, input: bool, name: &str, ty: &Type) -> Result<&Vec<u64>, String> {
        let from = if input { self.inputs } else { self.weights };
        from.get(name).filter(|s| s.len() == ty.len()).ok_or_else(|| name.to_owned())
    }

    /// This party's message to all: its shares of everything. The error names what it lacks.
    pub fn shares(&self) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        for (input, name, ty) in self.sources() {
            pack(Ring::new(ty.bits), self.share(input, name, ty)?, &mut bytes);
        }
        Ok(bytes)
    }

    /// From the others' messages: this party's shares of the outputs, in order, and of the states that the plan replaces.
    pub fn finish(&self, theirs: &[Vec<u8>]) -> Result<(Vec<Vec<u64>>, Shares), ProtocolError> {
        let mut operands = [BTreeMap::new(), BTreeMap::new()];
        let mut at = 0;
        for (input, name, ty) in self.sources() {
            let (ring, n) = (Ring::new(ty.bits), ty.len());
            let form = |cause: String| ProtocolError::Form { name: name.to_owned(), cause };
            let mut all =
                vec![self.share(input, name, ty).map_err(|_| form("it is not there".into()))?.clone()];
            let next = at + ring.packed_bytes(n);
            for bytes in theirs {
                let part = bytes.get(at..next).ok_or_else(|| form("a message is too short".into()))?;
                all.push(unpack(ring, part, n).map_err(|e| form(e.to_string()))?);
            }
            at = next;
            let tensor = tensor(ty, sum(ring, n, &all));
            operands[usize::from(!input)].insert(name.to_owned(), tensor);
        }
        let [mut inputs, weights] = operands;
        for node in &self.plan.nodes {
            if let Op::Public { name, .. } = &node.op {
                let value = self.publics.get(name).copied().unwrap_or_default();
                inputs.insert(name.clone(), tensor(&node.ty, vec![value; node.ty.len()]));
            }
        }
        let (outputs, updates) = interpret_step(self.plan, &inputs, &weights, &mut CommonCoins(self.common))?;
        let mut number = 0;
        let mut own = |ring: Ring, value: &Tensor| {
            number += 1;
            let mut shares =
                split(ring, value.data(), self.parties, &self.common.derive(Domain::Common, number));
            shares.swap_remove(self.me)
        };
        let rings = self.plan.outputs.iter().map(|o| Ring::new(self.plan.nodes[o.value].ty.bits));
        let outputs = rings.zip(&outputs).map(|(ring, value)| own(ring, value)).collect();
        let states = self.sources().filter_map(|(_, name, ty)| Some((name, ty, updates.get(name)?)));
        let updates =
            states.map(|(name, ty, value)| (name.to_owned(), own(Ring::new(ty.bits), value))).collect();
        Ok((outputs, updates))
    }
}

fn tensor(ty: &Type, data: Vec<u64>) -> Tensor {
    Tensor::new(ty.shape.clone(), data).unwrap_or_default()
}

/// Shares of `values` for so many parties, all but the first from `seed`.
pub(super) fn split(ring: Ring, values: &[u64], parties: usize, seed: &Seed) -> Vec<Vec<u64>> {
    let share = |party| seed.derive(Domain::Party, party as u64).stream().elements(ring, values.len());
    let rest: Vec<Vec<u64>> = (1..parties).map(share).collect();
    let others = sum(ring, values.len(), &rest);
    let first = values.iter().zip(others).map(|(x, r)| ring.wrap(x.wrapping_sub(r))).collect();
    [vec![first], rest].concat()
}

/// What shares add up to.
pub(super) fn sum(ring: Ring, len: usize, shares: &[Vec<u64>]) -> Vec<u64> {
    let mut sum = vec![0u64; len];
    for share in shares {
        sum.iter_mut().zip(share).for_each(|(sum, x)| *sum = ring.wrap(sum.wrapping_add(*x)));
    }
    sum
}

/// The same at all parties.
pub(super) struct CommonCoins<'a>(pub &'a Seed);

impl Coins for CommonCoins<'_> {
    fn draw(&mut self, node: ValueId, count: usize, shift: u32) -> Option<Vec<u64>> {
        Some(self.0.derive(Domain::Table, node as u64).stream().elements(Ring::new(shift), count))
    }

    fn dropout(&mut self, stream: u32, count: usize) -> Option<Vec<u64>> {
        Some(self.0.derive(Domain::Mask, stream.into()).stream().elements(Ring::new(32), count))
    }
}
