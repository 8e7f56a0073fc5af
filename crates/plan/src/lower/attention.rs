//! Products of a softmax, along its last dimension, that nothing else reads: the values of attention, weighted.

use super::emit::Emitted;
use super::forms::{Emitter, Form};
use super::precision::Formats;
use super::smooth::operand;
use crate::functions::{Function, Weighted, attention as emit};
use crate::graph::{Graph, GraphOp};
use std::collections::BTreeMap;

/// The softmaxes that products `v` weigh values by, by these products. None where ranges promise nothing, or a guard watches them.
pub(super) fn softmaxes(graph: &Graph, formats: &Formats, uses: &[usize]) -> BTreeMap<usize, usize> {
    if formats.parts {
        return BTreeMap::new();
    }
    let weighs = |v: usize| {
        let (node, softmax) = (&graph.nodes[v], *graph.nodes[v].inputs.first()?);
        let of = &graph.nodes[softmax];
        let GraphOp::Smooth { function: Function::Softmax { dim } } = of.op else { return None };
        let values = *node.inputs.get(1)?;
        let alone = uses[softmax] == 1 && dim + 1 == of.shape.len() && node.range.is_some();
        let secret = !matches!(graph.nodes[values].op, GraphOp::Parameter { .. });
        (node.op == GraphOp::MatMul && alone && secret).then_some(softmax)
    };
    (0..graph.nodes.len()).filter_map(|v| Some((v, weighs(v)?))).collect()
}

/// Product `v`, of the softmax that it alone reads.
pub(super) fn attention(e: &mut Emitter<'_>, v: usize, softmax: usize) -> Emitted {
    let GraphOp::Smooth { function } = e.node(softmax).op else { unreachable!("a softmax") };
    let (format, values) = (e.format(v), e.node(v).inputs[1]);
    let x = operand(e, softmax, function);
    let weighed = e.obtain(values, format.k, format.f);
    let (whole, before) = (e.need(values), e.plan.nodes.len());
    let layer = e.node(softmax).layer.clone();
    let mut build = e.build(&layer);
    let (x, values) = (build.value(x.id), build.value(weighed.id));
    let y = emit(&mut build, x, Weighted { values, whole }, format.f);
    e.inside.push(before..y.id);
    Ok(Form { id: y.id, bits: y.bits, frac: y.frac })
}
