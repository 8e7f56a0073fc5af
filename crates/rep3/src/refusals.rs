//! Plans that `rep3` does not run, though they are sound for another family.

use privet_plan::ir::{Node, Op, Rounding, ValueId};
use privet_plan::{Plan, PlanError};

/// Refuse a plan whose outputs would show how its values are shared.
///
/// A truncation within one unit is off by a function of the parties' shares (docs/rep3.md, section 3). What reaches an output
/// from it by local operations alone shows its receiver that function, which a party that is in league with it can read.
pub(crate) fn check(plan: &Plan) -> Result<(), PlanError> {
    let shown: Vec<ValueId> = plan.outputs.iter().map(|output| output.value).collect();
    let mut seen = vec![false; plan.nodes.len()];
    let mut left = shown;
    while let Some(v) = left.pop() {
        if std::mem::replace(&mut seen[v], true) {
            continue;
        }
        let node = &plan.nodes[v];
        match node.op {
            Op::Truncate { shift: 1.., rounding: Rounding::OneUlp } => return Err(shows_shares(v, node)),
            _ if node.op.is_local() => left.extend(&node.inputs),
            _ => {}
        }
    }
    Ok(())
}

fn shows_shares(v: ValueId, node: &Node) -> PlanError {
    PlanError::Node {
        node: v,
        layer: node.layer.clone(),
        problem: "an output shows this truncation within one unit (`one_ulp`), whose last place depends on the parties' shares; \
                  compile the model with another rounding, or reveal a value that it is not the last step of"
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_plan::ir::{Output, PLAN_VERSION, Type};

    fn plan(ops: Vec<(Op, Vec<ValueId>)>, outputs: &[ValueId]) -> Plan {
        let input = Op::Input { name: "x".into(), owner: "data-owner".into(), limit: 1.0 };
        let all = std::iter::once((input, vec![])).chain(ops).enumerate();
        let nodes = all.map(|(v, (op, inputs))| {
            let ty = Type { shape: vec![4], bits: 20, frac: 0 };
            Node { op, inputs, ty, layer: format!("layer {v}") }
        });
        let nodes = nodes.collect();
        let output = |&value: &ValueId| Output { value, name: format!("y{value}"), to: "receiver".into() };
        let outputs = outputs.iter().map(output).collect();
        Plan { version: PLAN_VERSION, name: "p".into(), batch: 1, nodes, outputs, updates: vec![] }
    }

    fn truncate(rounding: Rounding) -> Op {
        Op::Truncate { shift: 4, rounding }
    }

    #[test]
    fn a_truncation_within_one_unit_is_not_shown() {
        let one = || truncate(Rounding::OneUlp);
        let shown = [
            plan(vec![(one(), vec![0])], &[1]),
            plan(vec![(one(), vec![0]), (Op::Neg, vec![1]), (Op::AddConst { value: 3 }, vec![2])], &[3]),
            // added to something else, and beside an output that shows nothing
            plan(vec![(one(), vec![0]), (Op::Relu, vec![0]), (Op::Add, vec![2, 1])], &[2, 3]),
        ];
        for plan in shown {
            let e = check(&plan).unwrap_err();
            assert!(matches!(&e, PlanError::Node { node: 1, layer, .. } if layer == "layer 1"), "{e}");
            assert!(e.to_string().contains("one_ulp") && e.to_string().contains("another rounding"), "{e}");
        }
    }

    #[test]
    fn what_hides_the_last_place_or_needs_no_shares_is_run() {
        let sound = [
            plan(vec![(truncate(Rounding::Floor), vec![0])], &[1]),
            plan(vec![(truncate(Rounding::Stochastic), vec![0]), (Op::Neg, vec![1])], &[2]),
            plan(vec![(truncate(Rounding::OneUlp), vec![0]), (Op::Relu, vec![1])], &[2]),
            // the output does not come from it
            plan(vec![(truncate(Rounding::OneUlp), vec![0]), (Op::Neg, vec![0])], &[2]),
        ];
        for plan in sound {
            check(&plan).unwrap();
        }
    }
}
