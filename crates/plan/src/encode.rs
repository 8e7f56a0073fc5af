//! Real tensors to ring elements and back, as a plan's types say.

use crate::Plan;
use crate::float::FloatTensor;
use crate::ir::{Node, Op};
use privet_ring::{FixedError, FixedPoint, Ring, Tensor};
use std::collections::BTreeMap;
use thiserror::Error;

/// A tensor that cannot be encoded. Messages name the tensor and the place, never a value.
#[derive(Debug, Error, PartialEq)]
pub enum EncodeError {
    /// The plan wants a tensor that was not given.
    #[error("{what} `{name}` was not given")]
    Missing {
        /// `input`, `weight`, `state` or `public number`.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// Another shape than the plan's.
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
    /// A number that does not fit.
    #[error("{what} `{name}`: {problem}; calibrate with inputs like it, or give the plan more bits")]
    Number {
        /// `input`, `weight`, `state` or `public number`.
        what: &'static str,
        /// Its name.
        name: String,
        /// Which element and why.
        problem: FixedError,
    },
}

/// Whether this is the owner that was asked for, if one was.
fn is(asked: Option<&str>, owner: &str) -> bool {
    asked.is_none_or(|asked| asked == owner)
}

/// Encode all inputs that `owner` shares (all owners' when `None`), within their limits.
pub fn encode_inputs(
    plan: &Plan,
    owner: Option<&str>,
    given: &BTreeMap<String, FloatTensor>,
) -> Result<BTreeMap<String, Tensor>, EncodeError> {
    encode(plan, "input", given, |op| {
        let Op::Input { name, owner: o, limit } = op else { return None };
        is(owner, o).then_some((name, *limit))
    })
}

/// Encode all weights that `owner` shares (all owners' when `None`).
pub fn encode_weights(
    plan: &Plan,
    owner: Option<&str>,
    given: &BTreeMap<String, FloatTensor>,
) -> Result<BTreeMap<String, Tensor>, EncodeError> {
    encode(plan, "weight", given, |op| {
        let Op::Weight { name, owner: o } = op else { return None };
        is(owner, o).then_some((name, f64::INFINITY))
    })
}

/// Encode the public numbers of a run, within their limits.
pub fn encode_publics(
    plan: &Plan,
    given: &BTreeMap<String, f64>,
) -> Result<BTreeMap<String, Tensor>, EncodeError> {
    let tensors: BTreeMap<String, FloatTensor> = given
        .iter()
        .map(|(name, &value)| (name.clone(), FloatTensor { shape: vec![], data: vec![value] }))
        .collect();
    encode(plan, "public number", &tensors, |op| {
        let Op::Public { name, limit } = op else { return None };
        Some((name, *limit))
    })
}

/// Encode the first values of all states that `owner` shares (all owners' when `None`).
pub fn encode_states(
    plan: &Plan,
    owner: Option<&str>,
    given: &BTreeMap<String, FloatTensor>,
) -> Result<BTreeMap<String, Tensor>, EncodeError> {
    encode(plan, "state", given, |op| {
        let Op::State { name, owner: o } = op else { return None };
        is(owner, o).then_some((name, f64::INFINITY))
    })
}

/// The plan's outputs as real numbers, in order.
pub fn decode_outputs(plan: &Plan, outputs: &[Tensor]) -> Vec<FloatTensor> {
    let decode = |(output, tensor): (&crate::ir::Output, &Tensor)| {
        let fixed = fixed_point(&plan.nodes[output.value]);
        FloatTensor { shape: tensor.shape().to_vec(), data: fixed.decode(tensor.data()) }
    };
    plan.outputs.iter().zip(outputs).map(decode).collect()
}

/// The fixed-point numbers of a node's value.
pub fn fixed_point(node: &Node) -> FixedPoint {
    FixedPoint::new(Ring::new(node.ty.bits), node.ty.frac)
}

fn encode<'p>(
    plan: &'p Plan,
    what: &'static str,
    given: &BTreeMap<String, FloatTensor>,
    wanted: impl Fn(&'p Op) -> Option<(&'p String, f64)>,
) -> Result<BTreeMap<String, Tensor>, EncodeError> {
    let mut encoded = BTreeMap::new();
    for node in &plan.nodes {
        let Some((name, limit)) = wanted(&node.op) else { continue };
        let name = name.clone();
        let Some(tensor) = given.get(&name) else { return Err(EncodeError::Missing { what, name }) };
        if tensor.shape != node.ty.shape || tensor.data.len() != node.ty.len() {
            let (found, expected) = (tensor.shape.clone(), node.ty.shape.clone());
            return Err(EncodeError::Shape { what, name, found, expected });
        }
        let data = match fixed_point(node).encode(&tensor.data, limit) {
            Ok(data) => data,
            Err(problem) => return Err(EncodeError::Number { what, name, problem }),
        };
        let tensor = Tensor::new(node.ty.shape.clone(), data).expect("the length was compared");
        encoded.insert(name, tensor);
    }
    Ok(encoded)
}
