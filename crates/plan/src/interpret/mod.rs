//! The cleartext integer interpreter: what a plan means. Every protocol is tested against it.

mod bilinear;
mod gates;
mod parallel;
mod table;
mod truncate;
pub(crate) mod walk;

pub use truncate::{Coins, NoCoins, Promises};

use crate::Plan;
use crate::check::PlanError;
use crate::ir::{Op, Type};
use crate::ops;
use privet_ring::{Ring, Tensor};
use std::collections::BTreeMap;
use thiserror::Error;

/// Why a plan could not be interpreted. Messages name tensors and shapes, never values.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum InterpretError {
    /// The plan itself is bad.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// An input or weight was not given.
    #[error("{what} `{name}` was not given")]
    Missing {
        /// `input`, `weight`, `state` or `public number`.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// An input or weight of another shape.
    #[error("{what} `{name}` has shape {found:?}, but the plan takes {expected:?}")]
    Shape {
        /// `input`, `weight`, `state` or `public number`.
        what: &'static str,
        /// Its name.
        name: String,
        /// Given.
        found: Vec<usize>,
        /// Wanted.
        expected: Vec<usize>,
    },
    /// A value that must not be so large, by the promise of a truncation that keeps the ring.
    #[error(
        "node {node} ({layer}): a value overflows what its ring can hold; use fewer fraction bits, or smaller numbers (in training, a lower learning rate)"
    )]
    Overflow {
        /// The node.
        node: usize,
        /// Its layer.
        layer: String,
    },
    /// Stochastic rounding without randomness.
    #[error(
        "node {node} ({layer}) rounds stochastically, but no randomness was given; pass coins or choose another rounding"
    )]
    NoCoins {
        /// The node.
        node: usize,
        /// Its layer.
        layer: String,
    },
}

/// The values of the plan's outputs, in order, as ring elements. `coins` decide stochastic roundings.
pub fn interpret(
    plan: &Plan,
    inputs: &BTreeMap<String, Tensor>,
    weights: &BTreeMap<String, Tensor>,
    coins: &mut dyn Coins,
) -> Result<Vec<Tensor>, InterpretError> {
    let values = run(plan, inputs, weights, coins, (false, Promises::Kept))?;
    Ok(ended(plan, &values).0)
}

/// The same where values may break what truncations ask for: then a result is off by what a protocol may make of it, and
/// what follows is computed from that. A plan's guard says so (`docs/guard.md`).
pub fn interpret_beyond(
    plan: &Plan,
    inputs: &BTreeMap<String, Tensor>,
    weights: &BTreeMap<String, Tensor>,
    coins: &mut dyn Coins,
) -> Result<Vec<Tensor>, InterpretError> {
    let values = run(plan, inputs, weights, coins, (false, Promises::Broken))?;
    Ok(ended(plan, &values).0)
}

/// One step of training: the outputs, in order, and the states after it, by name. `weights` holds the states as well,
/// `inputs` the public numbers.
pub fn interpret_step(
    plan: &Plan,
    inputs: &BTreeMap<String, Tensor>,
    weights: &BTreeMap<String, Tensor>,
    coins: &mut dyn Coins,
) -> Result<(Vec<Tensor>, BTreeMap<String, Tensor>), InterpretError> {
    Ok(ended(plan, &run(plan, inputs, weights, coins, (false, Promises::Kept))?))
}

/// What a step leaves of the values of its nodes: the outputs, and the states after it.
pub(crate) fn ended<T: Clone>(plan: &Plan, values: &[Option<T>]) -> (Vec<T>, BTreeMap<String, T>) {
    let value = |v: usize| values[v].clone().expect("outputs and updates are kept");
    let next = |update: &crate::ir::Update| {
        let Op::State { name, .. } = &plan.nodes[update.state].op else { return None };
        Some((name.clone(), value(update.value)))
    };
    let outputs = plan.outputs.iter().map(|o| value(o.value)).collect();
    (outputs, plan.updates.iter().filter_map(next).collect())
}

/// The value of every node, for layer-by-layer comparison.
pub fn interpret_all(
    plan: &Plan,
    inputs: &BTreeMap<String, Tensor>,
    weights: &BTreeMap<String, Tensor>,
    promises: Promises,
    coins: &mut dyn Coins,
) -> Result<Vec<Tensor>, InterpretError> {
    Ok(run(plan, inputs, weights, coins, (true, promises))?.into_iter().flatten().collect())
}

fn run(
    plan: &Plan,
    inputs: &BTreeMap<String, Tensor>,
    weights: &BTreeMap<String, Tensor>,
    coins: &mut dyn Coins,
    (keep_all, promises): (bool, Promises),
) -> Result<Vec<Option<Tensor>>, InterpretError> {
    plan.check()?;
    let values = walk::walk(
        plan,
        keep_all,
        |op, ty| {
            let (what, name, given) = match op {
                Op::Input { name, .. } => ("input", name, inputs.get(name)),
                Op::Weight { name, .. } => ("weight", name, weights.get(name)),
                Op::State { name, .. } => ("state", name, weights.get(name)),
                Op::Public { name, .. } => ("public number", name, inputs.get(name)),
                ops!(local) | ops!(gate) => unreachable!("only sources are given"),
            };
            let tensor = given.ok_or_else(|| InterpretError::Missing { what, name: name.clone() })?;
            same_shape(what, name, tensor.shape(), ty)?;
            let ring = Ring::new(ty.bits);
            Ok(tensor.data().iter().map(|&v| ring.wrap(v)).collect())
        },
        |truncation, x: &[u64], coins: &mut dyn Coins| truncation.apply(x, promises, coins),
        coins,
    )?;
    let tensor = |(id, value): (usize, Option<Vec<u64>>)| {
        value.map(|data| Tensor::new(plan.nodes[id].ty.shape.clone(), data).expect("shapes are checked"))
    };
    Ok(values.into_iter().enumerate().map(tensor).collect())
}

pub(crate) fn same_shape(
    what: &'static str,
    name: &str,
    found: &[usize],
    ty: &Type,
) -> Result<(), InterpretError> {
    if found != ty.shape {
        let (found, expected) = (found.to_vec(), ty.shape.clone());
        return Err(InterpretError::Shape { what, name: name.into(), found, expected });
    }
    Ok(())
}
