//! Values in which each element of another one stands several times: a number of each line at all places of the line.

use crate::ir::{Op, Plan, ValueId};
use crate::ops;
use crate::strided;

/// How elements of a value are alike: `rows` numbers, each at `each` places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Numbers.
    pub rows: usize,
    /// Places of each.
    pub each: usize,
}

/// The [`Op::Expand`] that a value comes from by operations that leave each element where it is.
fn expand(plan: &Plan, mut v: ValueId) -> Option<ValueId> {
    loop {
        match &plan.nodes[v].op {
            Op::Expand => return Some(v),
            Op::Neg
            | Op::AddConst { .. }
            | Op::MulConst { .. }
            | Op::Reduce
            | Op::Rescale
            | Op::Reshape
            | Op::ShiftUp { .. } => v = plan.nodes[v].inputs[0],
            Op::Add
            | Op::Sub
            | Op::SumPool2d { .. }
            | Op::AdaptiveSumPool2d
            | Op::Sum { .. }
            | Op::Permute { .. }
            | Op::Slice { .. }
            | Op::Concat { .. }
            | Op::Reverse { .. }
            | Op::Pad { .. }
            | Op::Mix { .. }
            | Op::Approximates { .. }
            | ops!(source)
            | ops!(gate) => return None,
        }
    }
}

/// The extents of an operand of [`Op::Expand`], with as many dimensions as the result.
fn extents(plan: &Plan, expand: ValueId) -> (Vec<usize>, &[usize]) {
    let node = &plan.nodes[expand];
    let (from, to) = (&plan.nodes[node.inputs[0]].ty.shape, &node.ty.shape);
    let missing = to.len().saturating_sub(from.len());
    (std::iter::repeat_n(1, missing).chain(from.iter().copied()).collect(), to)
}

impl Spread {
    /// Of value `v` of a checked plan, if it is one whose numbers each have several places.
    pub fn of(plan: &Plan, v: ValueId) -> Option<Spread> {
        let (from, to) = extents(plan, expand(plan, v)?);
        let (rows, all) = (from.iter().product::<usize>(), to.iter().product::<usize>());
        (rows > 0 && all > rows).then(|| Spread { rows, each: all / rows })
    }

    /// The places of value `v`, number after number; none where it is no such value.
    pub fn order(plan: &Plan, v: ValueId) -> Vec<usize> {
        let Some(expand) = expand(plan, v) else { return Vec::new() };
        let (from, to) = extents(plan, expand);
        let own = strided::strides(to);
        let is_kept = |d: &usize| from[*d] == to[*d];
        let dims: Vec<usize> =
            (0..to.len()).filter(is_kept).chain((0..to.len()).filter(|d| !is_kept(d))).collect();
        let pick = |of: &[usize]| dims.iter().map(|d| of[*d]).collect::<Vec<_>>();
        let mut order = Vec::with_capacity(to.iter().product());
        strided::walk(&pick(to), &pick(&own), 0, |_, at| order.push(at));
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Node, PLAN_VERSION, Type};

    /// An input, expanded, and what `then` makes of that.
    fn plan(from: &[usize], to: &[usize], then: Op) -> Plan {
        let ty = |shape: &[usize]| Type { shape: shape.to_vec(), bits: 20, frac: 0 };
        let node = |op, inputs: &[ValueId], ty| Node {
            op,
            inputs: inputs.to_vec(),
            ty,
            layer: String::new(),
            form: None,
        };
        let input = Op::Input { name: "x".into(), owner: "data_owner".into(), limit: 1.0 };
        let nodes = vec![
            node(input, &[], ty(from)),
            node(Op::Expand, &[0], ty(to)),
            node(then, &[1], ty(&[to.iter().product()])),
        ];
        let (name, outputs, updates) = (String::new(), Vec::new(), Vec::new());
        Plan { version: PLAN_VERSION, name, batch: 1, nodes, outputs, updates }
    }

    #[test]
    fn places_of_a_number_stand_together() {
        for (from, to) in [
            (vec![3, 1], vec![3, 4]),
            (vec![4], vec![3, 4]),
            (vec![2, 1, 3, 1], vec![2, 5, 3, 2]),
            (vec![], vec![6]),
        ] {
            let plan = plan(&from, &to, Op::Reshape);
            let found = Spread::of(&plan, 2).unwrap();
            let (rows, all): (usize, usize) = (from.iter().product(), to.iter().product());
            assert_eq!(found, Spread { rows, each: all / rows });
            // which number stands where, as an expansion has it
            let strides = strided::broadcast_strides(&from, &to);
            let mut numbers = vec![0; all];
            strided::walk(&to, &strides, 0, |place, number| numbers[place] = number);
            let order = Spread::order(&plan, 2);
            for (row, places) in order.chunks(found.each).enumerate() {
                assert!(places.iter().all(|place| numbers[*place] == row), "{from:?} to {to:?}: {order:?}");
            }
            let mut sorted = order;
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..all));
        }
    }

    #[test]
    fn what_is_not_spread_is_none() {
        assert_eq!(Spread::of(&plan(&[3, 4], &[3, 4], Op::Reshape), 2), None);
        assert_eq!(Spread::of(&plan(&[3, 1], &[3, 4], Op::Permute { dims: vec![0] }), 2), None);
        assert_eq!(Spread::of(&plan(&[3, 1], &[3, 4], Op::Reshape), 0), None);
    }
}
