//! Truncation within units: how far it is off, for any number of parties; and what it must not be shown by.
//! What the family refuses.

mod common;

use common::{Seeds, World, sources};
use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Plan, Rounding, Type};
use privet_plan::{Target, admit};
use privet_prg::Seed;
use privet_ring::{Conv2d, Ring, Tensor};
use privet_semi2k::{Done, Semi2k};
use privet_testkit::Mesh;
use std::collections::BTreeMap;

fn ty(shape: &[usize], bits: u32, frac: u32) -> Type {
    Type { shape: shape.to_vec(), bits, frac }
}

/// `x` truncated by `shift`, then these operations within the result's type.
fn truncated(n: usize, [from, shift]: [u32; 2], after: &[Op]) -> Plan {
    let node = |op, inputs: Vec<usize>, ty| Node { op, inputs, ty, layer: "t".into(), form: None };
    let input = Op::Input { name: "x".into(), owner: "data_owner".into(), limit: 1.0 };
    let mut nodes = vec![node(input, vec![], ty(&[n], from, shift))];
    let to = ty(&[n], from - shift, 0);
    nodes.push(node(Op::Truncate { shift, rounding: Rounding::OneUlp }, vec![0], to.clone()));
    for op in after {
        nodes.push(node(op.clone(), vec![nodes.len() - 1], to.clone()));
    }
    let output = Output { value: nodes.len() - 1, name: "y".into(), to: "receiver".into() };
    let (name, outputs) = ("truncated".into(), vec![output]);
    Plan { version: PLAN_VERSION, name, batch: n, nodes, outputs, updates: vec![] }
}

/// Differences from the floor, element by element.
fn differences(parties: usize, x: &[u64], [from, shift]: [u32; 2]) -> Vec<i64> {
    let plan = truncated(x.len(), [from, shift], &[]);
    let inputs = BTreeMap::from([("x".to_string(), Tensor::new(vec![x.len()], x.to_vec()).unwrap())]);
    let (world, mut keys) =
        World::new(&plan, &[inputs, BTreeMap::new()], Seeds::of(parties, &Seed::random()));
    assert!(keys.iter().all(|keys| keys.bytes() == 0), "it is free");
    let done: Vec<Done> =
        world.run(sources(&mut keys), Mesh::new(parties)).into_iter().map(|d| d.unwrap().0).collect();
    let ring = Ring::new(from - shift);
    let found = world.outputs(&done).swap_remove(0);
    found.iter().zip(x).map(|(y, x)| ring.signed(y.wrapping_sub(x >> shift))).collect()
}

/// From `-floor(n / 2)` to `ceil(n / 2)`, every one of them; with the mean of n + 1 uniform numbers.
#[test]
fn truncation_is_within_half_the_parties_units() {
    for parties in [2usize, 3, 4, 5] {
        for kind in [[64, 24], [20, 9], [12, 7]] {
            let ring = Ring::new(kind[0]);
            let mut x = Seed::random().stream().elements(ring, 20_000);
            let edges = [0, 1, ring.mask(), 1 << (kind[0] - 1), (1 << (kind[0] - 1)) - 1, 1 << kind[1]];
            x[..6].copy_from_slice(&edges);
            let found = differences(parties, &x, kind);
            let [low, high] = [*found.iter().min().unwrap(), *found.iter().max().unwrap()];
            let half = parties as i64 / 2;
            assert!(-half <= low && high <= parties as i64 - half, "{parties} of {kind:?}: {low}..={high}");
            if parties < 4 {
                assert_eq!([low, high], [-half, parties as i64 - half], "{parties} of {kind:?}");
            }
            // the fraction of x is half on average, and so is the sum of n + 1 fractions' part
            let mean = found.iter().sum::<i64>() as f64 / found.len() as f64;
            let expected = parties as f64 / 2.0 - half as f64;
            assert!((mean - expected).abs() < 0.05, "{parties} of {kind:?}: {mean}, not {expected}");
        }
    }
}

#[test]
fn what_depends_on_masks_is_not_shown_by_an_output() {
    let family = Semi2k::helped(3);
    let refused = |after: &[Op]| family.refusals(&truncated(4, [16, 4], after)).len();
    assert_eq!([refused(&[]), refused(&[Op::Neg, Op::Reshape]), refused(&[Op::Relu])], [1, 1, 0]);
    let error = admit(&truncated(4, [16, 4], &[]), "net", &family).unwrap_err().to_string();
    assert!(error.contains("semi2k") && error.contains("one_ulp"), "{error}");
}

#[test]
fn what_it_lacks_is_refused_with_the_reason() {
    let [family, alone] = [Semi2k::helped(2), Semi2k::alone(2)];
    let node = |op, ty| Node { op, inputs: vec![], ty, layer: "t".into(), form: None };
    let input = Op::Input { name: "x".into(), owner: "data_owner".into(), limit: 1.0 };
    let table = |family: &Semi2k, op, bits: u32, shape: &[usize]| {
        let mut nodes = vec![node(input.clone(), ty(&[3], bits, 0)), node(op, ty(shape, 64, 0))];
        nodes[1].inputs = vec![0];
        let output = Output { value: 1, name: "y".into(), to: "receiver".into() };
        let (name, outputs) = ("table".into(), vec![output]);
        family.refusals(&Plan { version: PLAN_VERSION, name, batch: 3, nodes, outputs, updates: vec![] })
    };
    let small = table(&family, Op::Lookup { tables: vec![vec![0; 512]] }, 9, &[1, 3]);
    let large = table(&family, Op::Lookup { tables: vec![vec![0; 1024]] }, 10, &[1, 3]);
    assert!(small.is_empty() && large[0].problem.contains("1024 places"), "{large:?}");
    let waves = || Op::Waves { step: 1, digits: 4, waves: vec![[1, 1]] };
    let refused = table(&alone, waves(), 10, &[3]);
    assert!(refused[0].problem.contains("waves only where a dealer prepares"), "{refused:?}");
    assert!(table(&family, waves(), 10, &[3]).is_empty());
    let wide = |family: &Semi2k, dilation| {
        let geometry = Conv2d {
            batch: 1,
            in_channels: 1,
            input: [120, 120],
            out_channels: 32,
            kernel: [3; 2],
            stride: [1; 2],
            padding: [0; 4],
            dilation: [dilation; 2],
            groups: 1,
        };
        let weight = Op::Weight { name: "w".into(), owner: "model_owner".into() };
        let [height, width] = geometry.output();
        let mut nodes = vec![
            node(input.clone(), ty(&[1, 1, 120, 120], 64, 0)),
            node(weight, ty(&[32, 1, 3, 3], 64, 0)),
            node(Op::Conv2d { geometry }, ty(&[1, 32, height, width], 64, 0)),
        ];
        nodes[2].inputs = vec![0, 1];
        let output = Output { value: 2, name: "y".into(), to: "receiver".into() };
        let (name, outputs) = ("wide".into(), vec![output]);
        family.refusals(&Plan { version: PLAN_VERSION, name, batch: 1, nodes, outputs, updates: vec![] })
    };
    let refused = wide(&alone, 50);
    assert!(refused[0].problem.contains("over 101 x 101 pixels"), "{refused:?}");
    assert!(wide(&alone, 40).is_empty() && wide(&family, 50).is_empty());
}
