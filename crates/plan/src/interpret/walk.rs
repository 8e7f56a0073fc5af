use super::truncate::{Coins, OrMiddle, Truncation};
use super::{InterpretError, bilinear, gates, table};
use crate::Plan;
use crate::element::Element;
use crate::ir::{Op, Rounding, Type};
use crate::local::{Affine, apply_local};
use crate::ops;
use privet_ring::Ring;

/// Evaluate a checked plan node by node. `given` supplies inputs, weights, states and public numbers; `truncate` is the one
/// operation in which ring elements and real numbers differ by more than arithmetic; `coins` are those of dropouts.
///
/// A value is dropped after its last use unless `keep_all` is set or it is an output or an update.
pub(crate) fn walk<E: Element>(
    plan: &Plan,
    keep_all: bool,
    mut given: impl FnMut(&Op, &Type) -> Result<Vec<E>, InterpretError>,
    mut truncate: impl FnMut(Truncation<'_>, &[E], &mut dyn Coins) -> Result<Vec<E>, InterpretError>,
    coins: &mut dyn Coins,
) -> Result<Vec<Option<Vec<E>>>, InterpretError> {
    let last_use = last_uses(plan);
    let mut values: Vec<Option<Vec<E>>> = Vec::with_capacity(plan.nodes.len());
    for (id, node) in plan.nodes.iter().enumerate() {
        let operand = |i: usize| values[i].as_deref().expect("operands are kept until their last use");
        let xs: Vec<&[E]> = node.inputs.iter().map(|&i| operand(i)).collect();
        let types: Vec<&Type> = node.inputs.iter().map(|&i| &plan.nodes[i].ty).collect();
        let value = match &node.op {
            ops!(source) => given(&node.op, &node.ty)?,
            Op::Truncate { shift, rounding } => {
                let (ring, to) = (Ring::new(types[0].bits), Ring::new(node.ty.bits));
                let layer = &node.layer;
                let truncation = Truncation { node: id, layer, ring, to, shift: *shift, rounding: *rounding };
                truncate(truncation, xs[0], coins)?
            }
            Op::Dropout { stream, keep } => {
                let drawn = coins.dropout(*stream, xs[0].len()).filter(|s| s.len() == xs[0].len());
                let drawn =
                    drawn.ok_or_else(|| InterpretError::NoCoins { node: id, layer: node.layer.clone() })?;
                let keep = u64::from(*keep);
                xs[0].iter().zip(drawn).map(|(&x, coin)| if coin < keep { x } else { E::ZERO }).collect()
            }
            Op::Dither { shift } => {
                let (ring, to) = (Ring::new(types[0].bits), Ring::new(node.ty.bits));
                let (layer, rounding) = (&node.layer, Rounding::Stochastic);
                let truncation = Truncation { node: id, layer, ring, to, shift: *shift, rounding };
                truncate(truncation, xs[0], &mut OrMiddle(coins))?
            }
            op @ ops!(table) => table::apply(id, op, types[0], &node.ty, xs[0], coins),
            op @ ops!(local) => apply_local(op, &types, &node.ty, &xs, Affine::Full),
            op @ (ops!(bilinear) | Op::Scale) => bilinear::apply(op, &types, &node.ty, &xs),
            op @ ops!(comparison) => gates::apply(op, &types, &node.ty, &xs),
        };
        debug_assert_eq!(value.len(), node.ty.len());
        values.push(Some(value));
        if !keep_all {
            for &i in &node.inputs {
                if last_use[i] == id {
                    values[i] = None;
                }
            }
        }
    }
    Ok(values)
}

/// For every node the last node that reads it; outputs are read at the end.
fn last_uses(plan: &Plan) -> Vec<usize> {
    let mut last: Vec<usize> = (0..plan.nodes.len()).collect();
    for (id, node) in plan.nodes.iter().enumerate() {
        for &i in &node.inputs {
            last[i] = id;
        }
    }
    let kept = plan.outputs.iter().map(|o| o.value).chain(plan.updates.iter().map(|u| u.value));
    kept.for_each(|value| last[value] = usize::MAX);
    last
}
