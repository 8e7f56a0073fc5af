//! Which values are wanted in the wide ring of a linear layer, so that ReLU can widen as it goes.

use super::precision::{Format, Formats, range_bits};
use crate::graph::{Graph, GraphNode, GraphOp};

/// For every node the ring bits of the linear layers that read it, directly or through local operations that can
/// stay wide; `None` where no one needs more than activation bits.
pub(super) fn wide(graph: &Graph, formats: &Formats) -> Vec<Option<u32>> {
    let can = can_be_wide(graph, formats);
    let mut wide: Vec<Option<u32>> = vec![None; graph.nodes.len()];
    for (id, node) in graph.nodes.iter().enumerate().rev() {
        let demand = match is_product(&node.op) {
            true => Some(formats.of(&node.layer).k),
            false => wide[id].filter(|_| is_local(&node.op) && can[id]),
        };
        for &i in &node.inputs {
            wide[i] = wide[i].max(demand);
        }
    }
    wide
}

/// Values that come in the wide ring without a further gate: products do where their truncation may widen.
fn can_be_wide(graph: &Graph, formats: &Formats) -> Vec<bool> {
    let room = |node: &GraphNode| {
        let Format { k, f, g, .. } = formats.of(&node.layer);
        node.range.is_some_and(|range| f + g + range_bits(range, formats.headroom + 1) < k)
    };
    let mut can: Vec<bool> = Vec::with_capacity(graph.nodes.len());
    for node in &graph.nodes {
        let all = node.inputs.iter().all(|&i| can[i]);
        let made_so = matches!(
            node.op,
            GraphOp::Input { .. } | GraphOp::Parameter { .. } | GraphOp::Relu | GraphOp::Smooth { .. }
        );
        can.push(made_so || is_product(&node.op) && room(node) || is_local(&node.op) && all);
    }
    can
}

/// Products that need room for the fraction bits of both factors.
fn is_product(op: &GraphOp) -> bool {
    matches!(op, GraphOp::Conv2d { .. } | GraphOp::Linear | GraphOp::MatMul | GraphOp::Mul)
        || matches!(op, GraphOp::MulScalar { value } if !exact_scalar(*value))
}

/// Operations that a linear sharing computes without communication.
fn is_local(op: &GraphOp) -> bool {
    match op {
        GraphOp::MulScalar { value } => exact_scalar(*value),
        GraphOp::AvgPool2d { divisor, .. } => *divisor == Some(1),
        GraphOp::Sum { .. } | GraphOp::Add | GraphOp::Sub | GraphOp::Neg | GraphOp::AddScalar { .. } => true,
        GraphOp::Reshape | GraphOp::Permute { .. } | GraphOp::Slice { .. } | GraphOp::Concat { .. } => true,
        GraphOp::Pad { .. } | GraphOp::Expand => true,
        // in training all values have one ring, and nothing is wide
        GraphOp::Reverse { .. } | GraphOp::Dropout { .. } => false,
        GraphOp::Input { .. }
        | GraphOp::Parameter { .. }
        | GraphOp::State { .. }
        | GraphOp::Public { .. } => false,
        GraphOp::Conv2d { .. } | GraphOp::Linear | GraphOp::MatMul | GraphOp::Mul => false,
        GraphOp::Relu | GraphOp::Smooth { .. } | GraphOp::MaxPool2d { .. } | GraphOp::Argmax { .. } => false,
        GraphOp::Positive | GraphOp::Choose | GraphOp::InRange { .. } => false,
        // rules have turned these into others
        GraphOp::BatchNorm { .. } | GraphOp::Clamp { .. } | GraphOp::LeakyRelu { .. } => false,
        GraphOp::AdaptiveAvgPool2d { .. } | GraphOp::Mean { .. } => false,
        GraphOp::Conv2dInputGrad { .. } | GraphOp::Conv2dWeightGrad { .. } => false,
        GraphOp::MaxPool2dGrad { .. } | GraphOp::AvgPool2dGrad { .. } | GraphOp::Unsupported { .. } => false,
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
