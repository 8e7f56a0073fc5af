//! Which values are wanted in the wide ring of a linear layer, so that ReLU can widen as it goes.

use super::precision::Formats;
use crate::graph::{Graph, GraphOp};

/// For every node the ring bits of the linear layers that read it, directly or through local operations that can
/// stay wide; `None` where no one needs more than activation bits.
pub(super) fn wide(graph: &Graph, formats: &Formats) -> Vec<Option<u32>> {
    let can = can_be_wide(graph);
    let mut wide: Vec<Option<u32>> = vec![None; graph.nodes.len()];
    for (id, node) in graph.nodes.iter().enumerate().rev() {
        let demand = match &node.op {
            GraphOp::Conv2d { .. } | GraphOp::Linear | GraphOp::MatMul | GraphOp::Mul => {
                Some(formats.of(&node.layer).k)
            }
            GraphOp::MulScalar { value } if !exact_scalar(*value) => Some(formats.of(&node.layer).k),
            op if is_local(op) && can[id] => wide[id],
            _ => None,
        };
        for &i in &node.inputs {
            wide[i] = wide[i].max(demand);
        }
    }
    wide
}

/// Values that come in the wide ring without a further gate.
fn can_be_wide(graph: &Graph) -> Vec<bool> {
    let mut can: Vec<bool> = Vec::with_capacity(graph.nodes.len());
    for node in &graph.nodes {
        let all = node.inputs.iter().all(|&i| can[i]);
        can.push(match &node.op {
            GraphOp::Input { .. } | GraphOp::Parameter { .. } | GraphOp::Relu => true,
            GraphOp::Smooth { .. } => true,
            op => is_local(op) && all,
        });
    }
    can
}

/// Operations that a linear sharing computes without communication.
fn is_local(op: &GraphOp) -> bool {
    match op {
        GraphOp::MulScalar { value } => exact_scalar(*value),
        GraphOp::AvgPool2d { divisor, .. } => *divisor == Some(1),
        _ => matches!(
            op,
            GraphOp::Sum { .. }
                | GraphOp::Add
                | GraphOp::Sub
                | GraphOp::Neg
                | GraphOp::AddScalar { .. }
                | GraphOp::Reshape
                | GraphOp::Permute { .. }
                | GraphOp::Slice { .. }
                | GraphOp::Concat { .. }
                | GraphOp::Pad { .. }
                | GraphOp::Expand
        ),
    }
}

/// Factors that need no truncation of their own: small integers, and powers of two, which only move the point.
pub(super) fn exact_scalar(value: f64) -> bool {
    small_integer(value).is_some() || halvings(value).is_some()
}

/// `value` as a small integer.
pub(super) fn small_integer(value: f64) -> Option<i64> {
    (value.fract() == 0.0 && value.abs() <= 1024.0).then_some(value as i64)
}

/// j where `value` is 2^-j or -2^-j, j from 1 to 16.
pub(super) fn halvings(value: f64) -> Option<u32> {
    (1..=16).find(|&j| value.abs() == 2f64.powi(-(j as i32)))
}
