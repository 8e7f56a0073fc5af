//! A plan without rounding: every value is the real number that its integer stands for.

use crate::Plan;
use crate::float::FloatTensor;
use crate::interpret::{InterpretError, same_shape, walk::walk};
use crate::ir::Op;
use std::collections::BTreeMap;

/// The plan's outputs in double precision, truncation being the identity and no ring wrapping: the
/// reference for `max_abs_err`.
pub fn interpret_real(
    plan: &Plan,
    inputs: &BTreeMap<String, FloatTensor>,
    weights: &BTreeMap<String, FloatTensor>,
) -> Result<Vec<FloatTensor>, InterpretError> {
    let values = run(plan, inputs, weights, false)?;
    Ok(plan.outputs.iter().map(|o| values[o.value].clone().expect("outputs are kept")).collect())
}

/// The same for every node.
pub fn interpret_real_all(
    plan: &Plan,
    inputs: &BTreeMap<String, FloatTensor>,
    weights: &BTreeMap<String, FloatTensor>,
) -> Result<Vec<FloatTensor>, InterpretError> {
    Ok(run(plan, inputs, weights, true)?.into_iter().flatten().collect())
}

fn run(
    plan: &Plan,
    inputs: &BTreeMap<String, FloatTensor>,
    weights: &BTreeMap<String, FloatTensor>,
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
                _ => unreachable!("only inputs and weights are given"),
            };
            let tensor = given.ok_or_else(|| InterpretError::Missing { what, name: name.clone() })?;
            same_shape(what, name, &tensor.shape, ty)?;
            Ok(tensor.data.clone())
        },
        |_, x: &[f64]| Ok(x.to_vec()),
    )?;
    let tensor = |(id, value): (usize, Option<Vec<f64>>)| {
        value.map(|data| FloatTensor { shape: plan.nodes[id].ty.shape.clone(), data })
    };
    Ok(values.into_iter().enumerate().map(tensor).collect())
}
