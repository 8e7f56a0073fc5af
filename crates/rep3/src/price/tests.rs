//! Where operations are cut, and verified in between, as declared.

use super::*;
use crate::testing::{edges, share, three};
use crate::{Evaluator, Given, SharedWeights};
use privet_plan::ir::{Node, Output, PLAN_VERSION, Rounding};
use privet_ring::{Conv2d, Ring};
use std::collections::BTreeMap;

const N: usize = 1000;

/// Gates that go in blocks, products that go in parts, and one between them that states nothing.
fn plan() -> Plan {
    let mut nodes = vec![];
    let mut shaped = |op, inputs: &[usize], shape: &[usize], bits, frac| {
        let ty = Type { shape: shape.to_vec(), bits, frac };
        nodes.push(Node { op, inputs: inputs.to_vec(), ty, layer: "layer".into(), form: None });
        nodes.len() - 1
    };
    let mut node = |op, inputs: &[usize], bits, frac| shaped(op, inputs, &[N], bits, frac);
    let x = node(Op::Input { name: "x".into(), owner: "data-owner".into(), limit: 1.0 }, &[], 20, 5);
    let relu = node(Op::Relu, &[x], 20, 5);
    let bit = node(Op::IsNegative, &[x], 1, 0);
    let chosen = node(Op::Choose, &[bit, relu], 20, 5);
    let negated = node(Op::Neg, &[chosen], 20, 5);
    let max = node(Op::Max, &[negated, relu], 20, 5);
    let truncated = node(Op::Truncate { shift: 5, rounding: Rounding::Floor }, &[max], 15, 0);
    let extended = node(Op::Extend, &[truncated], 30, 0);
    let cut = node(Op::Truncate { shift: 3, rounding: Rounding::Floor }, &[max], 17, 2);
    let of_cut = node(Op::Relu, &[cut], 20, 2);
    let square = node(Op::Mul, &[extended, extended], 30, 0);
    let dithered = node(Op::Dither { shift: 5 }, &[max], 20, 0);
    let equal = node(Op::Equal, &[max, chosen], 7, 0);
    let low = node(Op::Reduce, &[max], 4, 5);
    let found = shaped(Op::Lookup { tables: vec![(0..16).collect()] }, &[low], &[1, N], 30, 0);
    let flat = shaped(Op::Reshape, &[found], &[N], 30, 0);
    let mut as_shape = |shape: &[usize]| shaped(Op::Reshape, &[max], shape, 20, 5);
    let [candidates, rows, columns] = [[200, 5], [100, 10], [10, 100]].map(|shape| as_shape(&shape));
    let [batch, small] = [[10, 10, 10], [250, 2, 2]].map(|shape| as_shape(&shape));
    let images = as_shape(&[10, 4, 5, 5]);
    let w = shaped(Op::Weight { name: "w".into(), owner: "model-owner".into() }, &[], &[10, 7], 20, 5);
    let by_weights = shaped(Op::MatMul, &[rows, w], &[100, 7], 20, 10);
    let best = shaped(Op::Argmax { dim: 1 }, &[candidates], &[200], 7, 0);
    let by_rows = shaped(Op::MatMul, &[rows, columns], &[100, 100], 20, 10);
    let by_products = shaped(Op::MatMul, &[batch, batch], &[10, 10, 10], 20, 10);
    let by_elements = shaped(Op::MatMul, &[small, small], &[250, 2, 2], 20, 10);
    let geometry = Conv2d {
        batch: 10,
        in_channels: 4,
        input: [5, 5],
        out_channels: 10,
        kernel: [5, 5],
        stride: [1; 2],
        padding: [2; 4],
        dilation: [1; 2],
        groups: 1,
    };
    let by_images = shaped(Op::Conv2d { geometry }, &[images, images], &[10, 10, 5, 5], 20, 10);
    let output = |value| Output { value, name: format!("y{value}"), to: "receiver".into() };
    let of = [
        square,
        of_cut,
        dithered,
        equal,
        best,
        by_weights,
        by_rows,
        by_products,
        by_elements,
        by_images,
        flat,
    ];
    let outputs = of.map(output).to_vec();
    Plan { version: PLAN_VERSION, name: "cut".into(), batch: N, nodes, outputs, updates: vec![] }
}

/// What every node, and verification, costs each party within these limits, counted in a run.
fn counted(plan: &Plan, Setting { security, limits }: Setting) -> (Vec<Talk>, Talk) {
    let x = edges(Ring::new(18), N);
    let parties = three(security, |cx| {
        cx.limits = limits;
        let w = BTreeMap::from([("w".into(), share(cx.id, Ring::new(20), &edges(Ring::new(18), 70)))]);
        let weights = SharedWeights::new(cx, plan, w).unwrap();
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
    let (mut verified, mut combined_ahead) = (vec![], vec![]);
    for (block, worth, statements) in [
        (usize::MAX, u64::MAX, u64::MAX),
        (128, u64::MAX, u64::MAX),
        (usize::MAX, u64::MAX, 30_000),
        (128, u64::MAX, 0),
        (128, u64::MAX, 30_000),
        (320, u64::MAX, 100_000),
        // beside what follows: as soon as anything is stated, and not before the one under way is at its end
        (128, 0, u64::MAX),
        (128, 10_000, u64::MAX),
        // but for what there is no room for
        (128, 0, 30_000),
        (usize::MAX, 0, 30_000),
        (320, 50_000, 100_000),
    ] {
        for (security, ahead) in
            [(Security::SemiHonest, usize::MAX), (Security::Malicious, 1700), (Security::Malicious, 1701)]
        {
            let setting = Setting { security, limits: Limits { block, worth, statements, ahead } };
            let (nodes, checks) = counted(&plan, setting);
            let known = known(&plan);
            for (v, (node, counted)) in plan.nodes.iter().zip(nodes).enumerate() {
                let declared = setting.moves(&Operation::of(&plan, v, &known)).talk;
                assert_eq!(declared, counted, "{setting:?}: node {v} {:?}", node.op);
            }
            assert_eq!(setting.verification(&plan), checks, "{setting:?}");
            if security == Security::Malicious {
                let counts = if ahead > 1700 { &mut verified } else { &mut combined_ahead };
                counts.push(checks);
            }
        }
    }
    // a seed of which two halves are told, with two copies of each
    assert!(combined_ahead[0].sent.iter().zip(verified[0].sent).all(|(ahead, last)| *ahead == last + 96));
    // what is verified at once needs none
    assert_eq!(combined_ahead[3], verified[3]);
    let rounds: Vec<u64> = verified.iter().map(|talk| talk.rounds).collect();
    // once, once, after some nodes, after every block and product, and after some blocks
    let [once, blocks, nodes, all, some, few] = std::array::from_fn(|i| rounds[i]);
    assert!(once <= blocks && blocks < nodes && nodes < some && few < some && some < all, "{rounds:?}");
    // often, in the protocol's rounds
    let sent = |i: usize| verified[i].sent[0];
    assert!(sent(6) > 8 * sent(1) && rounds[6] == blocks, "{verified:?}");
    assert!(sent(7) < sent(6) && rounds[7] == blocks, "{verified:?}");
    assert!(blocks < rounds[8] && rounds[8] < some, "{verified:?}");
}
