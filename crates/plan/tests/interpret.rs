//! The interpreter against results worked out by hand.

mod common;

use common::{Numbers, run, single, tensors, ty};
use privet_plan::ir::{Op, Rounding};
use privet_plan::{InterpretError, NoCoins, PlanError, interpret, tournament};
use privet_ring::{Conv2d, Pool2d};
use std::collections::BTreeMap;
use std::slice::from_ref;

fn window(kernel: [usize; 2], stride: [usize; 2]) -> Pool2d {
    Pool2d { kernel, stride, padding: [0, 0], dilation: [1, 1], ceil_mode: false }
}

#[test]
fn arithmetic_wraps_in_the_result_ring() {
    let t = ty(&[2], 8, 0);
    assert_eq!(run(Op::Add, &[t.clone(), t.clone()], t.clone(), &[&[127, -128], &[1, -1]]), [-128, 127]);
    assert_eq!(run(Op::Sub, &[t.clone(), t.clone()], t.clone(), &[&[-128, 5], &[1, 7]]), [127, -2]);
    assert_eq!(run(Op::Neg, from_ref(&t), t.clone(), &[&[-128, 3]]), [-128, -3]);
    assert_eq!(run(Op::AddConst { value: -300 }, from_ref(&t), t.clone(), &[&[0, 100]]), [-44, 56]);
    assert_eq!(run(Op::MulConst { value: -3 }, from_ref(&t), t.clone(), &[&[43, -2]]), [127, 6]);
    assert_eq!(run(Op::Mul, &[t.clone(), t.clone()], t, &[&[16, -3], &[16, 5]]), [0, -15]);
}

#[test]
fn truncation_floors_at_every_edge() {
    let op = Op::Truncate { shift: 3, rounding: Rounding::Floor };
    let values: Vec<i64> = (-128..128).collect();
    let got = run(op, &[ty(&[256], 8, 3)], ty(&[256], 5, 0), &[&values]);
    let want: Vec<i64> = values.iter().map(|v| v.div_euclid(8)).collect();
    assert_eq!(got, want);
}

#[test]
fn stochastic_rounding_goes_up_just_when_the_coin_is_below_the_fraction() {
    let op = Op::Truncate { shift: 2, rounding: Rounding::Stochastic };
    let plan = single(op, &[ty(&[4], 8, 2)], ty(&[4], 6, 0));
    let inputs = tensors(&plan, &[&[6, 6, -5, 127]]);
    let mut coins = |node: usize, count: usize, shift: u32| {
        assert_eq!((node, count, shift), (1, 4, 2));
        vec![1, 2, 2, 0]
    };
    let out = interpret(&plan, &inputs, &BTreeMap::new(), &mut coins).unwrap();
    // 6/4: 1 + (1 < 2), 1 + (2 < 2); -5/4: -2 + (2 < 3); 127/4: 31 + (0 < 3) wraps to -32
    assert_eq!(out[0].data(), [2, 1, 63, 32]);
    let refused = interpret(&plan, &inputs, &BTreeMap::new(), &mut NoCoins).unwrap_err();
    assert_eq!(refused, InterpretError::NoCoins { node: 1, layer: "layer".into() });
}

#[test]
fn comparisons_read_the_sign_of_the_operand_ring() {
    let x: &[i64] = &[-128, -1, 0, 127];
    let t = ty(&[4], 8, 0);
    assert_eq!(run(Op::Relu, from_ref(&t), ty(&[4], 12, 0), &[x]), [0, 0, 0, 127]);
    assert_eq!(run(Op::Extend, from_ref(&t), ty(&[4], 12, 0), &[x]), x);
    assert_eq!(run(Op::IsNegative, from_ref(&t), ty(&[4], 2, 0), &[x]), [1, 1, 0, 0]);
    assert_eq!(run(Op::Equal, &[t.clone(), t.clone()], ty(&[4], 2, 0), &[x, &[-128, 0, 0, 1]]), [1, 0, 1, 0]);
    let bits = ty(&[4], 8, 0);
    assert_eq!(
        run(Op::Select, &[bits, t.clone(), t], ty(&[4], 8, 0), &[&[1, 0, 1, 0], x, &[9; 4]]),
        [-128, 9, 0, 9]
    );
}

#[test]
fn max_is_exact_in_its_range_and_fixed_outside() {
    let t = ty(&[3], 8, 0);
    let got = run(Op::Max, &[t.clone(), t.clone()], t, &[&[-64, 63, 100], &[63, -64, -100]]);
    // 100 - (-100) wraps to -56, so the second operand is taken
    assert_eq!(got, [63, 63, -100]);
}

#[test]
fn pools_follow_padding_and_ceil_mode() {
    let x: Vec<i64> = (1..=25).collect();
    let shape = ty(&[1, 1, 5, 5], 16, 0);
    let pad = Pool2d { kernel: [3, 3], stride: [2, 2], padding: [1, 1], dilation: [1, 1], ceil_mode: false };
    let got = run(Op::MaxPool2d { window: pad }, from_ref(&shape), ty(&[1, 1, 3, 3], 16, 0), &[&x]);
    assert_eq!(got, [7, 9, 10, 17, 19, 20, 22, 24, 25]);
    let negative: Vec<i64> = x.iter().map(|v| -v).collect();
    let got = run(Op::MaxPool2d { window: pad }, from_ref(&shape), ty(&[1, 1, 3, 3], 16, 0), &[&negative]);
    assert_eq!(got, [-1, -2, -4, -6, -7, -9, -16, -17, -19], "padding never wins");
    let ceil = Pool2d { ceil_mode: true, ..window([2, 2], [2, 2]) };
    let got = run(Op::MaxPool2d { window: ceil }, from_ref(&shape), ty(&[1, 1, 3, 3], 16, 0), &[&x]);
    assert_eq!(got, [7, 9, 10, 17, 19, 20, 22, 24, 25]);
    let got = run(Op::SumPool2d { window: ceil }, &[shape], ty(&[1, 1, 3, 3], 16, 0), &[&x]);
    assert_eq!(got, [16, 24, 15, 56, 64, 35, 43, 47, 25]);
}

#[test]
fn argmax_gives_ties_to_the_smallest_index() {
    let x = &[1, 5, 5, 2, 5, 7, 7, 7, 7, 7, -3, -1, -2, -1, -9];
    let op = || Op::Argmax { dim: 1 };
    assert_eq!(run(op(), &[ty(&[3, 5], 16, 0)], ty(&[3], 8, 0), &[x]), [1, 0, 1]);
    assert_eq!(run(op(), &[ty(&[3, 5], 16, 0)], ty(&[3, 1], 8, 0), &[x]), [1, 0, 1]);
    let columns = run(Op::Argmax { dim: 0 }, &[ty(&[3, 5], 16, 0)], ty(&[5], 8, 0), &[x]);
    assert_eq!(columns, [1, 1, 1, 1, 1]);
}

#[test]
fn linear_layers() {
    let (x, w, b): (&[i64], &[i64], &[i64]) = (&[1, 2, 3, -1, 0, 1], &[1, 0, 2, -1, 1, 1], &[10, 100]);
    let got = run(
        Op::Linear,
        &[ty(&[2, 3], 16, 2), ty(&[2, 3], 16, 3), ty(&[2], 16, 5)],
        ty(&[2, 2], 16, 5),
        &[x, w, b],
    );
    assert_eq!(got, [17, 104, 11, 102]);
    let got = run(Op::MatMul, &[ty(&[2, 3], 16, 0), ty(&[3, 2], 16, 0)], ty(&[2, 2], 16, 0), &[x, w]);
    assert_eq!(got, [1 + 4 + 3, -2 + 3, -1 + 1, 1]);
}

#[test]
fn convolution_equals_its_definition() {
    let mut numbers = Numbers(7);
    for case in 0..40 {
        let groups = 1 + numbers.below(3);
        let mut pick = |least: usize, n: usize| least + numbers.below(n);
        let g = Conv2d {
            batch: pick(1, 3),
            in_channels: groups * pick(1, 3),
            input: [pick(4, 30), pick(4, 30)],
            out_channels: groups * pick(1, 3),
            kernel: [pick(1, 3), pick(1, 3)],
            stride: [pick(1, 3), pick(1, 3)],
            padding: [pick(0, 3), pick(0, 3), pick(0, 3), pick(0, 3)],
            dilation: [pick(1, 1), pick(1, 2)],
            groups,
        };
        let [oh, ow] = g.output();
        if oh == 0 || ow == 0 {
            continue;
        }
        let x: Vec<i64> = numbers.words(g.input_len()).iter().map(|&v| v as i64).collect();
        let w: Vec<i64> = numbers.words(g.weight_len()).iter().map(|&v| v as i64).collect();
        let b: Vec<i64> = numbers.words(g.out_channels).iter().map(|&v| v as i64).collect();
        let (ci, co) = (g.in_channels / groups, g.out_channels / groups);
        let got = run(
            Op::Conv2d { geometry: g },
            &[
                ty(&[g.batch, g.in_channels, g.input[0], g.input[1]], 64, 0),
                ty(&[g.out_channels, ci, g.kernel[0], g.kernel[1]], 64, 0),
                ty(&[g.out_channels], 64, 0),
            ],
            ty(&[g.batch, g.out_channels, oh, ow], 64, 0),
            &[&x, &w, &b],
        );
        let mut want = Vec::new();
        for n in 0..g.batch {
            for (o, &bias) in b.iter().enumerate() {
                for y in 0..oh {
                    for z in 0..ow {
                        let mut sum = bias;
                        for c in 0..ci {
                            for ky in 0..g.kernel[0] {
                                for kx in 0..g.kernel[1] {
                                    let iy = (y * g.stride[0] + ky * g.dilation[0]) as isize
                                        - g.padding[0] as isize;
                                    let ix = (z * g.stride[1] + kx * g.dilation[1]) as isize
                                        - g.padding[2] as isize;
                                    if iy < 0
                                        || ix < 0
                                        || iy >= g.input[0] as isize
                                        || ix >= g.input[1] as isize
                                    {
                                        continue;
                                    }
                                    let channel = o / co * ci + c;
                                    let at = ((n * g.in_channels + channel) * g.input[0] + iy as usize)
                                        * g.input[1];
                                    let tap = ((o * ci + c) * g.kernel[0] + ky) * g.kernel[1] + kx;
                                    sum = sum.wrapping_add(x[at + ix as usize].wrapping_mul(w[tap]));
                                }
                            }
                        }
                        want.push(sum);
                    }
                }
            }
        }
        assert_eq!(got, want, "case {case}: {g:?}");
    }
}

#[test]
fn data_movement() {
    let x: Vec<i64> = (0..6).collect();
    let t = ty(&[2, 3], 8, 0);
    assert_eq!(
        run(Op::Permute { dims: vec![1, 0] }, from_ref(&t), ty(&[3, 2], 8, 0), &[&x]),
        [0, 3, 1, 4, 2, 5]
    );
    let slice = Op::Slice { dim: 1, start: 0, end: 3, step: 2 };
    assert_eq!(run(slice, from_ref(&t), ty(&[2, 2], 8, 0), &[&x]), [0, 2, 3, 5]);
    let concat = Op::Concat { dim: 1 };
    let got = run(concat, &[t.clone(), ty(&[2, 1], 8, 0)], ty(&[2, 4], 8, 0), &[&x, &[8, 9]]);
    assert_eq!(got, [0, 1, 2, 8, 3, 4, 5, 9]);
    let pad = Op::Pad { amounts: vec![[1, 0], [0, 1]] };
    assert_eq!(run(pad, from_ref(&t), ty(&[3, 4], 8, 0), &[&x]), [0, 0, 0, 0, 0, 1, 2, 0, 3, 4, 5, 0]);
    assert_eq!(
        run(Op::Expand, &[ty(&[2, 1], 8, 0)], ty(&[2, 2, 2], 8, 0), &[&[1, 2]]),
        [1, 1, 2, 2, 1, 1, 2, 2]
    );
    assert_eq!(run(Op::Sum { dims: vec![0] }, from_ref(&t), ty(&[3], 8, 0), &[&x]), [3, 5, 7]);
    assert_eq!(run(Op::Sum { dims: vec![1] }, from_ref(&t), ty(&[2, 1], 8, 0), &[&x]), [3, 12]);
    assert_eq!(run(Op::Reduce, from_ref(&t), ty(&[2, 3], 2, 0), &[&x]), [0, 1, -2, -1, 0, 1]);
    let pooled = run(
        Op::AdaptiveSumPool2d,
        &[ty(&[1, 1, 2, 4], 8, 0)],
        ty(&[1, 1, 1, 2], 8, 0),
        &[&[1, 2, 3, 4, 5, 6, 7, 8]],
    );
    assert_eq!(pooled, [14, 22]);
}

#[test]
fn tournaments_play_shared_pairs_once() {
    let [rows, columns] = tournament::max_pool(&window([4, 1], [2, 1]), &[2, 1, 6, 3]);
    // windows 0..4 and 2..6 share the pair (2, 3): 3 pairs, then 2, on 2 planes of 3 columns
    assert_eq!(rows.pair_count(), (3 + 2) * 2 * 3);
    assert_eq!((rows.output_len(), columns.levels.len()), (2 * 2 * 3, 0));
    let subsample = tournament::max_pool(&window([1, 1], [2, 2]), &[1, 1, 4, 4]);
    assert_eq!(subsample[0].pair_count() + subsample[1].pair_count(), 0);
    assert_eq!(subsample[1].output_len(), 4);
    assert_eq!(tournament::argmax(&[3, 10], 1).pair_count(), 27);
}

#[test]
fn what_is_missing_or_misshapen_is_named() {
    let plan = single(Op::Neg, &[ty(&[2], 8, 0)], ty(&[2], 8, 0));
    let none = interpret(&plan, &BTreeMap::new(), &BTreeMap::new(), &mut NoCoins).unwrap_err();
    assert_eq!(none, InterpretError::Missing { what: "input", name: "x0".into() });
    let mut inputs = tensors(&plan, &[&[1, 2]]);
    inputs.insert("x0".into(), privet_ring::Tensor::zeros(&[3]));
    let shape = interpret(&plan, &inputs, &BTreeMap::new(), &mut NoCoins).unwrap_err();
    assert!(matches!(shape, InterpretError::Shape { .. }));
    let bad = single(Op::Neg, &[ty(&[2], 8, 0)], ty(&[3], 8, 0));
    let refused = interpret(&bad, &inputs, &BTreeMap::new(), &mut NoCoins).unwrap_err();
    assert!(matches!(refused, InterpretError::Plan(PlanError::Node { node: 1, .. })));
}

/// What follows a truncation that is allowed a unit: sums add up what their operands may be off, comparisons end it.
#[test]
fn slack_follows_the_operations() {
    use privet_plan::ir::{Node, Output, PLAN_VERSION, Plan};
    let node = |op, inputs: &[usize], n, bits, frac| Node {
        op,
        inputs: inputs.to_vec(),
        ty: ty(&[n], bits, frac),
        layer: "layer".into(),
        form: None,
    };
    let truncate = |rounding| Op::Truncate { shift: 4, rounding };
    let nodes = vec![
        node(Op::Input { name: "x".into(), owner: "o".into(), limit: 1.0 }, &[], 6, 24, 8),
        node(truncate(Rounding::OneUlp), &[0], 6, 20, 4),
        node(Op::Relu, &[1], 6, 20, 4),
        node(Op::MulConst { value: -9 }, &[2], 6, 20, 4),
        node(Op::Add, &[3, 1], 6, 20, 4),
        node(truncate(Rounding::Floor), &[4], 6, 16, 0),
        node(Op::Sum { dims: vec![0] }, &[5], 1, 16, 0),
        node(Op::Mul, &[5, 5], 6, 16, 0),
        node(Op::IsNegative, &[5], 6, 16, 0),
    ];
    let outputs = vec![Output { value: 6, name: "y".into(), to: "receiver".into() }];
    let plan =
        Plan { version: PLAN_VERSION, name: "slack".into(), batch: 6, nodes, outputs, updates: vec![] };
    plan.check().unwrap();
    let slack = privet_plan::slack(&plan);
    let known = [0, 1, 1, 9, 10, 1, 6].map(Some);
    assert_eq!(slack, [&known[..], &[None, None]].concat());
}
