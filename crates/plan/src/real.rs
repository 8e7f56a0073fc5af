//! A plan without rounding: every value is the real number that its integer stands for.

use crate::Plan;
use crate::float::FloatTensor;
use crate::interpret::{Coins, InterpretError, NoCoins, ended, same_shape, walk::walk};
use crate::ir::Op;
use crate::ops;
use std::collections::BTreeMap;

/// The plan's outputs in double precision, truncation being the identity and no ring wrapping: the
/// reference for `max_abs_err`.
pub fn interpret_real(
    plan: &Plan,
    inputs: &BTreeMap<String, FloatTensor>,
    weights: &BTreeMap<String, FloatTensor>,
) -> Result<Vec<FloatTensor>, InterpretError> {
    let values = run(plan, inputs, weights, &mut NoCoins, false)?;
    Ok(plan.outputs.iter().map(|o| values[o.value].clone().expect("outputs are kept")).collect())
}

/// The same for every node.
pub fn interpret_real_all(
    plan: &Plan,
    inputs: &BTreeMap<String, FloatTensor>,
    weights: &BTreeMap<String, FloatTensor>,
) -> Result<Vec<FloatTensor>, InterpretError> {
    Ok(run(plan, inputs, weights, &mut NoCoins, true)?.into_iter().flatten().collect())
}

/// One step of training, as [`crate::interpret_step`].
pub fn interpret_real_step(
    plan: &Plan,
    inputs: &BTreeMap<String, FloatTensor>,
    weights: &BTreeMap<String, FloatTensor>,
    coins: &mut dyn Coins,
) -> Result<(Vec<FloatTensor>, BTreeMap<String, FloatTensor>), InterpretError> {
    Ok(ended(plan, &run(plan, inputs, weights, coins, false)?))
}

fn run(
    plan: &Plan,
    inputs: &BTreeMap<String, FloatTensor>,
    weights: &BTreeMap<String, FloatTensor>,
    coins: &mut dyn Coins,
    keep_all: bool,
) -> Result<Vec<Option<FloatTensor>>, InterpretError> {
    plan.check()?;
    let values = walk(
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
            same_shape(what, name, &tensor.shape, ty)?;
            Ok(tensor.data.clone())
        },
        |_, x: &[f64], _: &mut dyn Coins| Ok(x.to_vec()),
        coins,
    )?;
    let tensor = |(id, value): (usize, Option<Vec<f64>>)| {
        value.map(|data| FloatTensor { shape: plan.nodes[id].ty.shape.clone(), data })
    };
    Ok(values.into_iter().enumerate().map(tensor).collect())
}
