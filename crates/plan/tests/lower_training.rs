//! Lowered steps of training against direct definitions in double precision.

mod common;

use common::build::Model;
use common::lower;
use common::training::{Step, agrees, count, keeps_ring, largest_difference, precision};
use privet_plan::FloatTensor;
use privet_plan::functions::Function;
use privet_plan::graph::{GraphOp, GraphOutput};
use privet_plan::ir::{Op, Plan};
use privet_ring::Pool2d;

fn output(m: &mut Model, node: usize, to: Option<&str>) {
    let name = format!("y{}", m.graph.outputs.len());
    m.graph.outputs.push(GraphOutput { node, name, to: to.map(str::to_owned) });
}

/// Elements compared with zero.
fn comparisons(plan: &Plan) -> usize {
    plan.nodes.iter().filter(|n| n.op.kind() == "is_negative").map(|n| n.ty.len()).sum()
}

#[test]
fn gradients_of_convolutions() {
    let cases = [
        ([3, 3], [1, 1], [1, 1], [1, 1], 1),
        ([3, 3], [1, 1], [0, 0], [1, 1], 1),
        ([3, 3], [2, 2], [1, 1], [1, 1], 1),
        ([3, 2], [2, 3], [0, 1], [1, 1], 2),
        ([1, 1], [1, 1], [0, 0], [1, 1], 4),
        ([1, 1], [2, 2], [0, 0], [1, 1], 1),
        ([5, 3], [1, 2], [4, 0], [1, 1], 2),
        ([3, 3], [1, 1], [2, 2], [2, 2], 1),
        ([2, 3], [3, 2], [1, 3], [3, 2], 4),
        ([1, 1], [1, 1], [2, 1], [1, 1], 2),
        ([7, 8], [1, 1], [0, 0], [1, 1], 1),
    ];
    for (seed, (kernel, stride, padding, dilation, groups)) in cases.into_iter().enumerate() {
        let mut m = Model::new(seed as u64, 2);
        let x = m.input(&[2, 4, 7, 8]);
        let w = m.state(&[8, 4 / groups, kernel[0], kernel[1]], 0.5);
        let out = |i: usize| ([7, 8][i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) / stride[i] + 1;
        let y = [2, 8, out(0), out(1)];
        let g = m.input(&y);
        let forward = m.op(GraphOp::Conv2d { stride, padding, dilation, groups }, &[x, w], &y);
        let input = GraphOp::Conv2dInputGrad { stride, padding, dilation, groups };
        let weight = GraphOp::Conv2dWeightGrad { stride, padding, dilation, groups };
        let dx = m.op(input, &[w, g], &[2, 4, 7, 8]);
        let shape = m.shape(w);
        let dw = m.op(weight, &[x, g], &shape);
        let next = m.op(GraphOp::Sub, &[w, dw], &shape);
        output(&mut m, forward, None);
        output(&mut m, dx, None);
        m.update(w, next);
        let plan = agrees(&m, 1e-5);
        keeps_ring(&plan);
        if stride == [1, 1] {
            let padded = plan.nodes.iter().filter(|node| matches!(node.op, Op::Pad { .. })).count();
            assert_eq!(padded, 0, "the convolution's padding, which kernels need not multiply");
        }
    }
}

fn windows() -> Vec<Pool2d> {
    let mut all = Vec::new();
    for (kernel, stride, padding, dilation) in [
        ([2, 2], [2, 2], [0, 0], [1, 1]),
        ([3, 3], [2, 2], [1, 1], [1, 1]),
        ([3, 3], [1, 1], [1, 1], [1, 1]),
        ([3, 2], [3, 1], [0, 1], [1, 1]),
        ([2, 3], [3, 2], [1, 0], [1, 1]),
        ([1, 4], [1, 4], [0, 2], [1, 1]),
        ([5, 2], [5, 3], [2, 0], [1, 1]),
        ([1, 1], [1, 1], [0, 0], [1, 1]),
    ] {
        for ceil_mode in [false, true] {
            all.push(Pool2d { kernel, stride, padding, dilation, ceil_mode });
        }
    }
    all
}

#[test]
fn gradients_of_pools() {
    for (seed, window) in windows().into_iter().enumerate() {
        let mut m = Model::new(seed as u64, 2);
        let x = m.input(&[2, 3, 7, 8]);
        let [oh, ow] = window.output([7, 8]);
        let y = [2, 3, oh, ow];
        let g = m.input(&y);
        let pooled = m.op(GraphOp::MaxPool2d { window }, &[x], &y);
        let dx = m.op(GraphOp::MaxPool2dGrad { window }, &[x, g], &[2, 3, 7, 8]);
        output(&mut m, pooled, None);
        output(&mut m, dx, Some("data_owner"));
        for (count_include_pad, divisor) in [(true, None), (false, None), (false, Some(3))] {
            let op = GraphOp::AvgPool2dGrad { window, count_include_pad, divisor };
            let dx = m.op(op, &[g], &[2, 3, 7, 8]);
            output(&mut m, dx, None);
        }
        let plan = agrees(&m, 2e-5);
        keeps_ring(&plan);
        assert_eq!(count(&plan, "max_pool2d"), 0, "the games are shared");
        assert_eq!(plan.outputs[1].to, "data_owner");
        let dilated = Pool2d { dilation: [2, 3], stride: [1, 2], ..window };
        if dilated.kernel[0] > 3 || dilated.kernel[1] > 2 {
            continue;
        }
        let mut m = Model::new(seed as u64, 2);
        let x = m.input(&[2, 3, 7, 8]);
        let [oh, ow] = dilated.output([7, 8]);
        let g = m.input(&[2, 3, oh, ow]);
        let dx = m.op(GraphOp::MaxPool2dGrad { window: dilated }, &[x, g], &[2, 3, 7, 8]);
        output(&mut m, dx, None);
        agrees(&m, 2e-5);
    }
}

#[test]
fn the_first_of_equals_wins_and_negative_images_do_not_lose_to_padding() {
    for window in windows() {
        let mut m = Model::new(3, 1);
        let x = m.input(&[1, 1, 7, 8]);
        let ties = FloatTensor {
            shape: vec![1, 1, 7, 8],
            data: (0..56).map(|i| -5.0 - (i / 3 % 4) as f64).collect(),
        };
        m.inputs.insert("x0".into(), ties);
        let [oh, ow] = window.output([7, 8]);
        let g = m.input(&[1, 1, oh, ow]);
        let y = m.op(GraphOp::MaxPool2d { window }, &[x], &[1, 1, oh, ow]);
        let dx = m.op(GraphOp::MaxPool2dGrad { window }, &[x, g], &[1, 1, 7, 8]);
        output(&mut m, y, None);
        output(&mut m, dx, None);
        agrees(&m, 2e-6);
    }
}

#[test]
fn bits_dropout_reverse_and_public_numbers() {
    let mut m = Model::new(11, 2);
    let (x, g, rate) = (m.input(&[2, 6, 5]), m.input(&[2, 6, 5]), m.public("rate", 0.0371, 0.05));
    let bit = m.map(GraphOp::Positive, x);
    let turned = m.op(GraphOp::Permute { dims: vec![0, 2, 1] }, &[bit], &[2, 5, 6]);
    let part = m.op(GraphOp::Slice { dim: 1, start: 1, end: 5, step: 2 }, &[turned], &[2, 2, 6]);
    let both = m.op(GraphOp::Concat { dim: 1 }, &[part, turned], &[2, 7, 6]);
    let all = m.op(GraphOp::Reverse { dims: vec![0, 2] }, &[both], &[2, 7, 6]);
    let values = m.op(GraphOp::Concat { dim: 1 }, &[x, g], &[2, 12, 5]);
    let values = m.op(GraphOp::Reshape, &[values], &[2, 10, 6]);
    let values = m.op(GraphOp::Slice { dim: 1, start: 0, end: 7, step: 1 }, &[values], &[2, 7, 6]);
    let chosen = m.op(GraphOp::Choose, &[all, values], &[2, 7, 6]);
    output(&mut m, chosen, None);
    let dropped = m.map(GraphOp::Dropout { stream: 3, keep: 0.7 }, g);
    let again = m.op(GraphOp::Mul, &[x, g], &[2, 6, 5]);
    let again = m.map(GraphOp::Dropout { stream: 3, keep: 0.7 }, again);
    let reversed = m.map(GraphOp::Reverse { dims: vec![1] }, again);
    for y in [dropped, reversed] {
        output(&mut m, y, None);
    }
    let scaled = m.op(GraphOp::Mul, &[rate, again], &[2, 6, 5]);
    output(&mut m, scaled, None);
    let plan = agrees(&m, 1e-6);
    assert_eq!(count(&plan, "scale"), 1);
    let publics: Vec<_> = plan.nodes.iter().filter(|n| n.op.kind() == "public").collect();
    assert!(publics[0].ty.frac >= 16 + 4, "0.05 with a relative error below 2^-16");
}

#[test]
fn public_factors_of_every_size() {
    for (i, value) in [
        3.0,
        -2.0,
        1024.0,
        4096.0,
        0.5,
        -0.125,
        1.0,
        -1.0,
        0.9,
        -0.1,
        1e-3,
        3e-5,
        1e-6,
        7.3,
        123.456,
        2f64.powi(-20),
        0.0,
    ]
    .into_iter()
    .enumerate()
    {
        let mut m = Model::new(40 + i as u64, 1);
        let (x, z) = (m.input(&[1, 9]), m.input(&[1, 9]));
        let product = m.op(GraphOp::Mul, &[x, z], &[1, 9]);
        for x in [x, product] {
            let y = m.map(GraphOp::MulScalar { value }, x);
            let sum = m.op(GraphOp::Add, &[y, x], &[1, 9]);
            output(&mut m, y, None);
            output(&mut m, sum, None);
        }
        agrees(&m, (value.abs() * 4.0).max(1.0) * 2e-6);
    }
}

#[test]
fn long_sums_and_means_do_not_wrap() {
    for n in [7, 300, 1 << 12, 70_001] {
        let mut m = Model::new(n as u64, 1);
        let x = m.input(&[1, n]);
        let z = m.param_of(FloatTensor { shape: vec![1, n], data: vec![900.0; n] });
        let product = m.op(GraphOp::Mul, &[x, z], &[1, n]);
        let shifted = m.map(GraphOp::AddScalar { value: 7000.0 }, product);
        let sum = m.op(GraphOp::Sum { dims: vec![1], keepdim: false }, &[shifted], &[1]);
        let mean = m.op(GraphOp::Mean { dims: vec![1], keepdim: true }, &[shifted], &[1, 1]);
        output(&mut m, sum, None);
        output(&mut m, mean, None);
        let step = Step::new(&m, &precision());
        let (real, _) = step.real(&m.inputs, &m.params);
        let (whole, _) = step.whole(&m.inputs, &m.params, 1);
        for (a, b) in real.iter().zip(&whole) {
            let relative = largest_difference(a, b) / b.data[0].abs();
            assert!(relative < 2f64.powi(-15), "{n}: {relative}");
        }
        let exact = m.inputs["x0"].data.iter().map(|x| x * 900.0 + 7000.0).sum::<f64>() / n as f64;
        assert!((whole[1].data[0] / exact - 1.0).abs() < 2f64.powi(-15), "{n}");
    }
}

#[test]
fn one_comparison_for_a_relu_and_its_gradient() {
    for by_result in [false, true] {
        let mut m = Model::new(5, 2);
        let (x, g) = (m.input(&[2, 50]), m.input(&[2, 50]));
        // the gradient at 0 is 0
        m.inputs.get_mut("x0").unwrap().data[..20].fill(0.0);
        let y = m.map(GraphOp::Relu, x);
        let bit = m.map(GraphOp::Positive, if by_result { y } else { x });
        let dx = m.op(GraphOp::Choose, &[bit, g], &[2, 50]);
        output(&mut m, y, None);
        output(&mut m, dx, None);
        let plan = agrees(&m, 1e-6);
        keeps_ring(&plan);
        assert_eq!((comparisons(&plan), count(&plan, "relu")), (100, 0));
    }
}

#[test]
fn decay_momentum_and_gradient_are_truncated_once() {
    let mut m = Model::new(6, 2);
    let (x, g, rate) = (m.input(&[2, 6]), m.input(&[2, 4]), m.public("rate", 0.01, 0.01));
    let (w, b) = (m.state(&[4, 6], 0.5), m.state(&[4, 6], 0.5));
    let turned = m.op(GraphOp::Permute { dims: vec![1, 0] }, &[g], &[4, 2]);
    let dw = m.op(GraphOp::MatMul, &[turned, x], &[4, 6]);
    let pull = m.map(GraphOp::MulScalar { value: 16.0 * 1e-4 }, w);
    let dw = m.op(GraphOp::Add, &[dw, pull], &[4, 6]);
    let kept = m.map(GraphOp::MulScalar { value: 0.9 }, b);
    let b_next = m.op(GraphOp::Add, &[kept, dw], &[4, 6]);
    let change = m.op(GraphOp::Mul, &[b_next, rate], &[4, 6]);
    let w_next = m.op(GraphOp::Sub, &[w, change], &[4, 6]);
    m.update(b, b_next);
    m.update(w, w_next);
    assert_eq!(count(&agrees(&m, 1e-6), "truncate"), 2);
}

#[test]
fn long_sums_of_products_are_cut() {
    for (shape, dims) in [
        (vec![5, 3, 7, 6], vec![0, 2, 3]),
        (vec![3, 40], vec![1]),
        (vec![64], vec![0]),
        (vec![4, 5], vec![0]),
    ] {
        for keepdim in [false, true] {
            let mut m = Model::new(6, shape[0]);
            let (x, z) = (m.input(&shape), m.input(&shape));
            let to: Vec<usize> = (0..shape.len())
                .filter(|d| keepdim || !dims.contains(d))
                .map(|d| if dims.contains(&d) { 1 } else { shape[d] })
                .collect();
            let product = m.op(GraphOp::Mul, &[x, z], &shape);
            let sum = m.op(GraphOp::Sum { dims: dims.clone(), keepdim }, &[product], &to);
            let square = m.op(GraphOp::Mul, &[x, x], &shape);
            let mean = m.op(GraphOp::Mean { dims: dims.clone(), keepdim }, &[square], &to);
            output(&mut m, sum, None);
            output(&mut m, mean, None);
            let w = m.state(&[1], 1.0);
            m.update(w, w);
            let plan = agrees(&m, 2e-6);
            let truncated: usize =
                plan.nodes.iter().filter(|n| n.op.kind() == "truncate").map(|n| n.ty.len()).sum();
            let products: usize = shape.iter().product();
            assert!(shape == [4, 5] || truncated <= products / 4, "{shape:?}: {truncated}");
        }
    }
}

/// Two parameters of different shapes and depths with the same update each, and one alone.
#[test]
fn gates_that_do_not_depend_on_each_other_are_joined() {
    let of = |parameters: usize| {
        let mut m = Model::new(6, 2);
        let mut x = m.input(&[2, 6]);
        for i in 0..parameters {
            let w = m.state(&[6, 6 - i], 0.5);
            let shape = m.shape(w);
            let square = m.op(GraphOp::Mul, &[w, w], &shape);
            let root = m.map(GraphOp::Smooth { function: Function::Sigmoid }, square);
            let bit = m.map(GraphOp::Positive, w);
            let next = m.op(GraphOp::Choose, &[bit, root], &shape);
            m.update(w, next);
            let x_next = m.op(GraphOp::MatMul, &[x, w], &[2, 6 - i]);
            x = m.op(GraphOp::Pad { amounts: vec![[0, 0], [0, i]] }, &[x_next], &[2, 6]);
            x = m.map(GraphOp::Relu, x);
        }
        output(&mut m, x, None);
        let plan = agrees(&m, 1e-4);
        let gates = |kind: &str| count(&plan, kind);
        (gates("equal"), gates("mat_mul") - parameters, gates("choose"), gates("is_negative"))
    };
    assert_eq!(of(1), of(3));
}

#[test]
fn a_softmax_and_its_logarithm_share_their_exponentials() {
    let of = |both: bool| {
        let mut m = Model::new(7, 3);
        let x = m.input(&[3, 5]);
        let y = m.map(GraphOp::Smooth { function: Function::LogSoftmax { dim: 1 } }, x);
        output(&mut m, y, None);
        if both {
            let p = m.map(GraphOp::Smooth { function: Function::Softmax { dim: 1 } }, x);
            output(&mut m, p, None);
        }
        count(&agrees(&m, 1e-4), "max_pool2d")
    };
    assert_eq!((of(false), of(true)), (1, 1));
}

#[test]
fn coins_are_not_shared() {
    let mut m = Model::new(7, 3);
    let x = m.input(&[3, 400]);
    let z = m.input(&[3, 400]);
    for _ in 0..2 {
        let product = m.op(GraphOp::Mul, &[x, z], &[3, 400]);
        let root = m.map(GraphOp::MulScalar { value: 0.3 }, product);
        output(&mut m, root, None);
        let sum = m.op(GraphOp::Sum { dims: vec![1], keepdim: false }, &[product], &[3]);
        output(&mut m, sum, None);
    }
    let step = Step::new(&m, &precision());
    let (whole, _) = step.whole(&m.inputs, &m.params, 3);
    let differs = largest_difference(&whole[1], &whole[3]);
    assert!(differs > 0.0 && differs < 1e-4, "one product, rounded twice: {differs}");
}

#[test]
fn pools_come_before_activations_and_their_gradients_after() {
    let pool =
        |padding| Pool2d { kernel: [2, 2], stride: [2, 2], padding, dilation: [1, 1], ceil_mode: false };
    for (padding, other_reader, compared) in
        [([0, 0], false, 3 + 1), ([0, 0], true, 3 + 4), ([1, 1], false, 0)]
    {
        let (n, o) = (64, if padding[0] == 0 { 4 } else { 5 });
        let window = pool(padding);
        let mut m = Model::new(9, 1);
        let x = m.input(&[1, 1, 8, 8]);
        let g = m.input(&[1, 1, o, o]);
        // windows of zeros, of zeros and negative numbers, and of equal ones
        let data = &mut m.inputs.get_mut("x0").unwrap().data;
        [0, 1, 8, 9, 2, 3].into_iter().for_each(|i| data[i] = 0.0);
        [10, 11, 20, 21, 28].into_iter().for_each(|i| data[i] = -1.0);
        [4, 5, 12, 13, 30, 39].into_iter().for_each(|i| data[i] = 1.5);
        let r = m.map(GraphOp::Relu, x);
        let p = m.op(GraphOp::MaxPool2d { window }, &[r], &[1, 1, o, o]);
        let gr = m.op(GraphOp::MaxPool2dGrad { window }, &[r, g], &[1, 1, 8, 8]);
        let bit = m.map(GraphOp::Positive, r);
        let gx = m.op(GraphOp::Choose, &[bit, gr], &[1, 1, 8, 8]);
        output(&mut m, p, None);
        output(&mut m, gx, None);
        if other_reader {
            output(&mut m, r, None);
        }
        let plan = agrees(&m, 1e-6);
        if compared > 0 {
            assert_eq!(comparisons(&plan), n / 4 * compared, "{other_reader}");
        }
    }
}

#[test]
fn a_forward_pass_in_the_numbers_of_training() {
    let window =
        Pool2d { kernel: [2, 2], stride: [2, 2], padding: [0, 0], dilation: [1, 1], ceil_mode: false };
    let mut m = Model::new(4, 2);
    let x = m.input(&[2, 3, 8, 8]);
    let (w, b, l) = (m.state(&[4, 3, 3, 3], 0.5), m.state(&[4], 0.5), m.state(&[5, 64], 0.5));
    let op = GraphOp::Conv2d { stride: [1, 1], padding: [1, 1], dilation: [1, 1], groups: 1 };
    let y = m.op(op, &[x, w, b], &[2, 4, 8, 8]);
    let y = m.map(GraphOp::Relu, y);
    let y = m.op(GraphOp::MaxPool2d { window }, &[y], &[2, 4, 4, 4]);
    let y = m.flatten(y);
    let y = m.op(GraphOp::Linear, &[y, l], &[2, 5]);
    let best = m.op(GraphOp::Argmax { dim: 1, keepdim: false }, &[y], &[2]);
    output(&mut m, y, None);
    output(&mut m, best, Some("data_owner"));
    let plan = agrees(&m, 1e-5);
    let at = |kind: &str| plan.nodes.iter().position(|n| n.op.kind() == kind).unwrap();
    assert!(at("max_pool2d") < at("relu") && count(&plan, "extend") == 0, "ReLU widens what was pooled");
    assert_eq!((plan.nodes[at("max_pool2d")].ty.bits, plan.nodes[at("relu")].ty.bits), (40, 64));
    // every batch has a plan of its own, over the same states
    let more = m.graph.with_batch(7).unwrap();
    let plan = lower(&more, &m.params, &precision()).unwrap().plan;
    assert_eq!(plan.nodes[plan.outputs[0].value].ty.shape, [7, 5]);
}

#[test]
fn batch_normalisation_by_states() {
    for shape in [vec![2, 3, 4, 5], vec![4, 3]] {
        let mut m = Model::new(8, shape[0]);
        let x = m.input(&shape);
        let statistics: Vec<usize> = (0..4)
            .map(|i| {
                let mut p = m.tensor(&[3], 0.5);
                p.data.iter_mut().for_each(|v| *v += if i == 3 { 1.0 } else { 0.0 });
                m.state_of(p, None)
            })
            .collect();
        let y = m.op(GraphOp::BatchNorm { eps: 1e-5 }, &[&[x], &statistics[..]].concat(), &shape);
        output(&mut m, y, None);
        agrees(&m, 2e-4);
    }
}

#[test]
fn the_guard_sees_what_is_out_of_range() {
    for (value, inside) in [
        (0.0, 1.0),
        (3.999, 1.0),
        (-3.999, 1.0),
        (4.0, 0.0),
        (-4.01, 0.0),
        (65536.0, 0.0),
        (-131_072.0, 0.0),
        (5e11, 0.0),
        (-5e11, 0.0),
    ] {
        let mut m = Model::new(2, 1);
        let x = m.state(&[3, 5], 1.0);
        let y = m.state(&[4], 1.0);
        let mut changed = m.params["s0"].clone();
        changed.data[7] = value;
        m.params.insert("s0".into(), changed);
        let good = m.op(GraphOp::InRange { limit: 4.0 }, &[x, y], &[]);
        output(&mut m, good, None);
        let next = m.map(GraphOp::Neg, y);
        m.update(y, next);
        let step = Step::new(&m, &precision());
        let (whole, _) = step.whole(&m.inputs, &m.params, 1);
        assert_eq!(whole[0].data, [inside], "{value}");
        assert_eq!(step.real(&m.inputs, &m.params).0[0].data, [inside], "{value}");
    }
    // sums of squares as products leave them
    let mut m = Model::new(3, 1);
    let w = m.state(&[6, 10], 1.0);
    let row = m.op(GraphOp::Reshape, &[w], &[6, 1, 10]);
    let column = m.op(GraphOp::Reshape, &[w], &[6, 10, 1]);
    let squares = m.op(GraphOp::MatMul, &[row, column], &[6, 1, 1]);
    let good = m.op(GraphOp::InRange { limit: 16.0 }, &[squares], &[]);
    output(&mut m, good, None);
    m.update(w, w);
    let step = Step::new(&m, &precision());
    assert_eq!((count(&step.plan, "truncate"), comparisons(&step.plan)), (0, 2 * 6 + 1));
    assert_eq!(step.whole(&m.inputs, &m.params, 1).0[0].data, [1.0]);
    m.params.get_mut("s0").unwrap().data[3] = -4.5;
    assert_eq!(step.whole(&m.inputs, &m.params, 1).0[0].data, [0.0]);
}

/// A mean over 320 numbers has more fraction bits than a sum: the guard's limit is more than the form can hold.
#[test]
fn the_guard_reads_results_of_many_fraction_bits() {
    let mut m = Model::new(4, 1);
    let x = m.state(&[320], 1.0);
    let square = m.op(GraphOp::Mul, &[x, x], &[320]);
    let sum = m.op(GraphOp::Sum { dims: vec![0], keepdim: false }, &[square], &[]);
    let mean = m.map(GraphOp::MulScalar { value: 1.0 / 320.0 }, sum);
    let good = m.op(GraphOp::InRange { limit: 4096.0 }, &[mean], &[]);
    output(&mut m, good, None);
    let next = m.map(GraphOp::Neg, x);
    m.update(x, next);
    let step = Step::new(&m, &precision());
    assert_eq!(step.whole(&m.inputs, &m.params, 1).0[0].data, [1.0]);
}

#[test]
fn bad_graphs_are_refused() {
    let refused = |build: &dyn Fn(&mut Model) -> usize, why: &str| {
        let mut m = Model::new(1, 1);
        let y = build(&mut m);
        output(&mut m, y, None);
        let error = lower(&m.graph, &m.params, &precision()).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    };
    refused(
        &|m| {
            let (x, p) = (m.input(&[1, 3]), m.public("p", 0.5, 1.0));
            m.op(GraphOp::Add, &[x, p], &[1, 3])
        },
        "public number",
    );
    refused(
        &|m| {
            let (p, q) = (m.public("p", 0.5, 1.0), m.public("q", 0.5, 1.0));
            m.op(GraphOp::Mul, &[p, q], &[])
        },
        "public number",
    );
    refused(
        &|m| {
            let x = m.input(&[1, 3]);
            let b = m.map(GraphOp::Positive, x);
            m.op(GraphOp::Add, &[x, b], &[1, 3])
        },
        "as if it were a number",
    );
    refused(
        &|m| {
            let x = m.input(&[1, 3]);
            m.op(GraphOp::Choose, &[x, x], &[1, 3])
        },
        "no bit",
    );
    refused(
        &|m| {
            let x = m.state_of(FloatTensor { shape: vec![2], data: vec![0.0; 2] }, Some(20));
            m.map(GraphOp::Neg, x)
        },
        "20 fraction bits",
    );
    refused(
        &|m| {
            let x = m.input(&[1, 3]);
            m.op(GraphOp::InRange { limit: 3.0 }, &[x], &[])
        },
        "power of two",
    );
    refused(
        &|m| {
            let x = m.state_of(FloatTensor { shape: vec![2], data: vec![0.0; 2] }, Some(44));
            m.map(GraphOp::MulScalar { value: 0.9 }, x)
        },
        "in place of c x",
    );
    refused(
        &|m| {
            let (x, p) = (m.input(&[1, 3]), m.public("p", 1e-9, 1e-9));
            m.op(GraphOp::Mul, &[x, p], &[1, 3])
        },
        "public number",
    );
    let mut m = Model::new(1, 1);
    let x = m.input(&[1, 3]);
    output(&mut m, x, None);
    let mut exception = precision();
    exception.per_layer.insert("layer0".into(), Default::default());
    assert!(lower(&m.graph, &m.params, &exception).unwrap_err().to_string().contains("one ring"));
}
