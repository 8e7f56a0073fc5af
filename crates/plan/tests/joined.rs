//! Joining independent gates: fewer of them, and no result changes.

use privet_plan::interpret;
use privet_plan::ir::{Op, Plan};
use privet_plan::lower::{Precision, lower};
use privet_plan::suite::{Numbers, Toll, joined_cases, workload};

fn gates(plan: &Plan) -> usize {
    let source = |op: &Op| matches!(op, Op::Input { .. } | Op::Weight { .. } | Op::State { .. });
    plan.nodes.iter().filter(|n| !n.op.is_local() && !source(&n.op)).count()
}

#[test]
fn joining_changes_no_result() {
    let mut numbers = Numbers(5);
    for [before, after] in joined_cases() {
        after.plan.check().unwrap_or_else(|e| panic!("{}: {e}", after.name));
        let [inputs, weights] = before.operands(&mut || numbers.next());
        // the same for every element, since joined gates have the coins of one node
        let mut coins = |_: usize, n: usize, _: u32| vec![0; n];
        let mut of = |plan| interpret(plan, &inputs, &weights, &mut coins).unwrap();
        assert_eq!(of(&before.plan), of(&after.plan), "{}", after.name);
    }
}

#[test]
fn a_plan_and_its_like_have_the_gates_of_one() {
    for [before, after] in joined_cases() {
        let (many, few) = (gates(&before.plan), gates(&after.plan));
        match before.name.as_str() {
            "three linear layers of one operand" => assert_eq!((many, few), (7, 3)),
            // convolutions and pools stay apart
            "windows of 1 x 1 and 3 x 3 of one value" => assert_eq!((many, few), (2, 1)),
            "convolutions of one value that move by one and by two" => assert_eq!((many, few), (3, 2)),
            "three convolutions of one value" => assert_eq!((many, few), (3, 1)),
            name if name.contains("network") => assert!(few < many),
            name => assert_eq!(few, many / 2, "{name}"),
        }
    }
}

#[test]
fn weights_keep_their_names() {
    let names = |plan: &Plan| -> Vec<(String, Vec<usize>)> {
        let weight = |n: &privet_plan::ir::Node| match &n.op {
            Op::Weight { name, .. } => Some((name.clone(), n.ty.shape.clone())),
            _ => None,
        };
        plan.nodes.iter().filter_map(weight).collect()
    };
    for [before, after] in joined_cases() {
        assert_eq!(names(&before.plan), names(&after.plan), "{}", after.name);
    }
}

/// Queries, keys and values are one product, scores and values of all heads one each, the squares of a normalisation are
/// summed in one more, and nothing is extended behind a truncation.
#[test]
fn attention_has_one_product_for_all_heads() {
    let (graph, params) = workload::shapes("bert-small", 1);
    let precision = Precision { bits: Some(64), fraction: Some(16), ..Precision::default() };
    let plan = lower(&graph, &params, &precision, &Toll).unwrap().plan;
    let count = |kind: &str| plan.nodes.iter().filter(|n| n.op.kind() == kind).count();
    // of each of two layers: projections together, output, and two of the hidden layer; scores and values; and five variances
    assert_eq!((count("linear"), count("mat_mul")), (8, 4 + 5));
    let truncated = |n: &privet_plan::ir::Node| matches!(plan.nodes[n.inputs[0]].op, Op::Truncate { .. });
    let extended = plan.nodes.iter().filter(|n| n.op == Op::Extend && truncated(n)).count();
    assert_eq!(extended, 0);
}
