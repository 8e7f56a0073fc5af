//! Where operations are cut, and verified in between, as declared.

use super::*;
use crate::testing::{edges, share, three};
use crate::{Evaluator, Given, SharedWeights};
use privet_plan::ir::{Node, Output, PLAN_VERSION, Rounding};
use privet_ring::Ring;
use std::collections::BTreeMap;

const N: usize = 1000;

/// Gates that go in blocks, one that does not, and one between them that states nothing.
fn plan() -> Plan {
    let mut nodes = vec![];
    let mut node = |op, inputs: &[usize], bits, frac| {
        let ty = Type { shape: vec![N], bits, frac };
        nodes.push(Node { op, inputs: inputs.to_vec(), ty, layer: "layer".into(), form: None });
        nodes.len() - 1
    };
    let x = node(Op::Input { name: "x".into(), owner: "data-owner".into(), limit: 1.0 }, &[], 20, 5);
    let relu = node(Op::Relu, &[x], 20, 5);
    let bit = node(Op::IsNegative, &[x], 1, 0);
    let chosen = node(Op::Choose, &[bit, relu], 20, 5);
    let negated = node(Op::Neg, &[chosen], 20, 5);
    let max = node(Op::Max, &[negated, relu], 20, 5);
    let truncated = node(Op::Truncate { shift: 5, rounding: Rounding::Floor }, &[max], 15, 0);
    let extended = node(Op::Extend, &[truncated], 30, 0);
    let square = node(Op::Mul, &[extended, extended], 30, 0);
    let dithered = node(Op::Dither { shift: 5 }, &[max], 20, 0);
    let equal = node(Op::Equal, &[max, chosen], 7, 0);
    let output = |value| Output { value, name: format!("y{value}"), to: "receiver".into() };
    let outputs = vec![output(square), output(dithered), output(equal)];
    Plan { version: PLAN_VERSION, name: "cut".into(), batch: N, nodes, outputs, updates: vec![] }
}

/// What every node, and verification, costs each party within these limits, counted in a run.
fn counted(plan: &Plan, Setting { security, limits }: Setting) -> (Vec<Talk>, Talk) {
    let x = edges(Ring::new(18), N);
    let parties = three(security, |cx| {
        cx.limits = limits;
        let weights = SharedWeights::new(plan, cx.device, cx.id, security, BTreeMap::new()).unwrap();
        let inputs = [(0, share(cx.id, Ring::new(20), &x))].into();
        let given = Given { inputs, ..Given::default() };
        let outcome = Evaluator::new(plan, &weights).run(cx, given, &mut |_| ()).unwrap();
        (outcome.nodes, outcome.checks)
    });
    let talk = |stats: [privet_family::NodeStats; 3]| {
        assert!(stats.iter().all(|s| s.rounds == stats[0].rounds));
        Talk { sent: stats.map(|s| s.sent_bytes), rounds: stats[0].rounds }
    };
    let nodes = (0..plan.nodes.len()).map(|v| talk(parties.each_ref().map(|p| p.0[v])));
    (nodes.collect(), talk(parties.each_ref().map(|p| p.1)))
}

/// The limits say where; the evaluator and the prices ask them alike.
#[test]
fn declared_is_counted_where_operations_are_cut() {
    let plan = plan();
    plan.check().unwrap();
    let mut rounds = vec![];
    for (block, statements) in [
        (usize::MAX, u64::MAX),
        (128, u64::MAX),
        (usize::MAX, 30_000),
        (128, 0),
        (128, 30_000),
        (320, 100_000),
    ] {
        for security in [Security::SemiHonest, Security::Malicious] {
            let setting = Setting { security, limits: Limits { block, statements } };
            let (nodes, checks) = counted(&plan, setting);
            for (v, (node, counted)) in plan.nodes.iter().zip(nodes).enumerate() {
                let operands: Vec<&Type> = node.inputs.iter().map(|&i| &plan.nodes[i].ty).collect();
                let declared = setting.moves(&Operation::of_types(&node.op, &operands, &node.ty)).talk;
                assert_eq!(declared, counted, "{setting:?}: node {v} {:?}", node.op);
            }
            assert_eq!(setting.verification(&plan), checks, "{setting:?}");
            rounds.push(checks.rounds);
        }
    }
    // once, once, after some nodes, after every block and product, and after some blocks
    let [once, blocks, nodes, all, some, few] = [1, 3, 5, 7, 9, 11].map(|i| rounds[i]);
    assert!(once <= blocks && blocks < nodes && nodes < some && few < some && some < all, "{rounds:?}");
}
