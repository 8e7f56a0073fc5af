//! The guard: what is out of range is reported, and nothing else is.

mod common;

use common::build::Model;
use common::lower;
use privet_plan::functions::Function;
use privet_plan::graph::GraphOp;
use privet_plan::lower::{GUARD, GuardMode, Lowered};
use privet_plan::{
    FloatTensor, NoCoins, Precision, decode_outputs, encode_inputs, encode_weights, interpret_beyond,
    interpret_real,
};
use privet_ring::Pool2d;
use std::collections::BTreeMap;

fn watched() -> Precision {
    Precision { guard: GuardMode::On, ..Precision::default() }
}

/// Two convolutions, a pool, two linear layers, a residual sum.
fn network(batch: usize) -> Model {
    let mut m = Model::new(5, batch);
    let x = m.input(&[batch, 2, 8, 8]);
    let c = m.conv(x, 6, 3, 1, 1, 1);
    let r = m.map(GraphOp::Relu, c);
    let window =
        Pool2d { kernel: [2; 2], stride: [2; 2], padding: [0; 2], dilation: [1; 2], ceil_mode: false };
    let p = m.op(GraphOp::MaxPool2d { window }, &[r], &[batch, 6, 4, 4]);
    let c = m.conv(p, 6, 3, 1, 1, 1);
    let s = m.op(GraphOp::Add, &[c, p], &[batch, 6, 4, 4]);
    let r = m.map(GraphOp::Relu, s);
    let f = m.flatten(r);
    let l = m.linear(f, 50);
    let r = m.map(GraphOp::Relu, l);
    let y = m.linear(r, 3);
    m.finish(y);
    m
}

/// Attention of 12 tokens over 16 numbers, its normalisation, and a GELU.
fn transformer(batch: usize) -> Model {
    let (t, d) = (12, 16);
    let mut m = Model::new(9, batch);
    let x = m.input(&[batch, t, d]);
    let [q, k, v] = [0; 3].map(|_| m.linear(x, d));
    let k = m.op(GraphOp::Permute { dims: vec![0, 2, 1] }, &[k], &[batch, d, t]);
    let s = m.op(GraphOp::MatMul, &[q, k], &[batch, t, t]);
    let s = m.map(GraphOp::MulScalar { value: 0.25 }, s);
    let w = m.map(GraphOp::Smooth { function: Function::Softmax { dim: 2 } }, s);
    let a = m.op(GraphOp::MatMul, &[w, v], &[batch, t, d]);
    let x = m.op(GraphOp::Add, &[x, a], &[batch, t, d]);
    let mean = m.op(GraphOp::Mean { dims: vec![2], keepdim: true }, &[x], &[batch, t, 1]);
    let c = m.op(GraphOp::Sub, &[x, mean], &[batch, t, d]);
    let sq = m.op(GraphOp::Mul, &[c, c], &[batch, t, d]);
    let var = m.op(GraphOp::Mean { dims: vec![2], keepdim: true }, &[sq], &[batch, t, 1]);
    let var = m.map(GraphOp::AddScalar { value: 1e-5 }, var);
    let inv = m.map(GraphOp::Smooth { function: Function::Rsqrt }, var);
    let n = m.op(GraphOp::Mul, &[c, inv], &[batch, t, d]);
    let h = m.linear(n, 2 * d);
    let h = m.map(GraphOp::Smooth { function: Function::Gelu }, h);
    let y = m.linear(h, d);
    let y = m.op(GraphOp::Add, &[y, x], &[batch, t, d]);
    m.finish(y);
    m
}

struct Run {
    /// By row.
    guard: Vec<bool>,
    /// The largest error of a result, relative to the largest one, by row.
    error: Vec<f64>,
}

/// Other inputs of the model's distribution, through the plan as a protocol would compute it and over real numbers.
fn run(model: &mut Model, lowered: &Lowered, scale: f64) -> Run {
    run_rows(model, lowered, scale, |_| true)
}

/// The same with zeros in the rows that are not wanted.
fn run_rows(model: &mut Model, lowered: &Lowered, scale: f64, wanted: impl Fn(usize) -> bool) -> Run {
    let Lowered { plan, parameters, .. } = lowered;
    let batch = plan.batch;
    let names: Vec<(String, Vec<usize>)> =
        model.inputs.iter().map(|(n, t)| (n.clone(), t.shape.clone())).collect();
    let given: BTreeMap<String, FloatTensor> =
        names.into_iter().map(|(name, shape)| (name, drawn(model, &shape, scale, &wanted))).collect();
    let inputs = encode_inputs(plan, None, &given).unwrap();
    let weights = encode_weights(plan, None, parameters).unwrap();
    let found = decode_outputs(plan, &interpret_beyond(plan, &inputs, &weights, &mut NoCoins).unwrap());
    let real = interpret_real(plan, &given, parameters).unwrap();
    let at = plan.outputs.iter().position(|o| o.name == GUARD).expect("the plan has a guard");
    let row = |t: &FloatTensor, r: usize| -> Vec<f64> {
        let n = t.data.len() / batch;
        t.data[r * n..(r + 1) * n].to_vec()
    };
    let error = (0..batch).map(|r| {
        let (a, b) = (row(&found[0], r), row(&real[0], r));
        let largest = b.iter().fold(1.0f64, |m, x| m.max(x.abs()));
        a.iter().zip(&b).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max) / largest
    });
    Run { guard: found[at].data.iter().map(|&b| b == 1.0).collect(), error: error.collect() }
}

fn drawn(model: &mut Model, shape: &[usize], scale: f64, wanted: &impl Fn(usize) -> bool) -> FloatTensor {
    let mut tensor = model.tensor(shape, scale);
    let n = tensor.data.len() / shape[0];
    for (_, line) in tensor.data.chunks_mut(n).enumerate().filter(|(r, _)| !wanted(*r)) {
        line.fill(0.0);
    }
    tensor
}

fn proven(lowered: &Lowered) -> bool {
    lowered.notes.iter().any(|n| n.contains("no value leaves its range unseen"))
}

/// The model with a layer whose weights are larger by 2^shift than those that it was calibrated with: what this layer gives, and
/// what follows, is as far out of range as an input can make it where calibration rows are not like it.
fn amplified(model: &Model, weight: &str, shift: i32, seed: u64) -> Model {
    let mut params = model.params.clone();
    let scale = 2f64.powi(shift);
    params.get_mut(weight).unwrap().data.iter_mut().for_each(|w| *w *= scale);
    let (graph, inputs) = (model.graph.clone(), model.inputs.clone());
    Model { graph, params, inputs, numbers: common::Numbers(seed) }
}

/// Matrices and kernels, by name.
fn layers(model: &Model) -> Vec<String> {
    let of = |(name, t): (&String, &FloatTensor)| (t.shape.len() > 1).then(|| name.clone());
    model.params.iter().filter_map(of).collect()
}

#[test]
fn what_calibration_saw_raises_no_alarm() {
    for make in [network as fn(usize) -> Model, transformer] {
        let mut model = make(2);
        let lowered = lower(&model.graph, &model.params, &watched()).unwrap();
        assert!(proven(&lowered), "{:?}", lowered.notes);
        for _ in 0..100 {
            let run = run(&mut model, &lowered, 2.0);
            assert_eq!(run.guard, [true, true]);
            assert!(run.error.iter().all(|&e| e < 1e-2), "{:?}", run.error);
        }
    }
}

/// Of more than 1,000 runs in which some layer left its range, at every layer and by factors up to 2^24, so that values wrap
/// many times: none whose result is wrong says that all was in range.
#[test]
fn nothing_overflows_unseen_at_any_layer() {
    let (mut wrong, mut caught) = (0, 0);
    for make in [network as fn(usize) -> Model, transformer] {
        let model = make(1);
        for (i, weight) in layers(&model).iter().enumerate() {
            let mut seen = 0;
            for shift in [8, 10, 12, 14, 16, 18, 20, 24] {
                let mut model = amplified(&model, weight, shift, i as u64);
                let lowered = lower(&model.graph, &model.params, &watched()).unwrap();
                for _ in 0..24 {
                    let run = run(&mut model, &lowered, 2.0);
                    let bad = run.error[0] > 5e-2;
                    assert!(
                        !(bad && run.guard[0]),
                        "{weight} 2^{shift}: {} {:?}",
                        run.error[0],
                        lowered.notes
                    );
                    wrong += usize::from(bad);
                    seen += usize::from(!run.guard[0]);
                }
            }
            assert!(seen > 0, "{weight} was never out of range");
            caught += seen;
        }
    }
    eprintln!("{wrong} wrong results, {caught} caught");
    assert!(wrong > 1000 && caught > wrong);
}

/// One element of a layer, above its limit and below, among few and among many.
#[test]
fn one_value_is_enough_on_either_side() {
    for width in [6, 200] {
        for sign in [1.0, -1.0] {
            let mut m = Model::new(3, 1);
            let x = m.input(&[1, 8]);
            let l = m.linear(x, width);
            let r = m.map(GraphOp::Relu, l);
            let y = m.linear(r, 2);
            m.finish(y);
            // results that fit to the example's signs are as large as they get
            let example = m.inputs["x0"].data.clone();
            let weight = m.params.values_mut().find(|t| t.shape == [width, 8]).unwrap();
            let row = weight.data.chunks_exact_mut(8).nth(4).unwrap();
            row.iter_mut().zip(&example).for_each(|(w, x)| *w = sign * x.signum() * 3e4);
            let lowered = lower(&m.graph, &m.params, &watched()).unwrap();
            assert!(proven(&lowered));
            let inputs = encode_inputs(&lowered.plan, None, &m.inputs).unwrap();
            let weights = encode_weights(&lowered.plan, None, &lowered.parameters).unwrap();
            let found = interpret_beyond(&lowered.plan, &inputs, &weights, &mut NoCoins).unwrap();
            assert_eq!(found[1].data(), [0], "{width} {sign}");
        }
    }
}

#[test]
fn a_row_that_is_out_of_range_is_named() {
    for make in [network as fn(usize) -> Model, transformer] {
        let calibrated = make(3);
        let mut model = amplified(&calibrated, &layers(&calibrated)[0], 16, 4);
        let lowered = lower(&model.graph, &model.params, &watched()).unwrap();
        for bad in 0..3 {
            // of zeros a larger weight makes nothing larger
            let run = run_rows(&mut model, &lowered, 2.0, |r| r == bad);
            assert_eq!(run.guard, [0, 1, 2].map(|r| r != bad), "row {bad}");
        }
    }
}

#[test]
fn plans_without_a_guard_stay_what_they_were() {
    let model = network(1);
    let of =
        |guard| lower(&model.graph, &model.params, &Precision { guard, ..Precision::default() }).unwrap();
    let (off, auto) = (of(GuardMode::Off), of(GuardMode::Auto));
    assert!(off.plan.outputs.iter().all(|o| o.name != GUARD));
    assert_eq!(off.plan, auto.plan, "a guard that costs more than a tenth is not there unasked");
    assert!(
        auto.notes.iter().any(|n| n.starts_with("guard: off") && n.contains("wrong result unseen")),
        "{:?}",
        auto.notes
    );
}

/// A name that a result has already is left to it.
#[test]
fn a_result_of_that_name_keeps_it() {
    let mut model = network(1);
    model.graph.outputs[0].name = GUARD.into();
    let lowered = lower(&model.graph, &model.params, &watched()).unwrap();
    let names: Vec<&str> = lowered.plan.outputs.iter().map(|o| o.name.as_str()).collect();
    assert_eq!(names, [GUARD, "guard_"]);
}
