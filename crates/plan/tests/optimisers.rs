//! The optimisers of docs/training.md, as graphs, in integers, against double precision.

mod common;

use common::Numbers;
use common::build::Model;
use common::training::{Step, Tensors, precision};
use privet_plan::FloatTensor;
use privet_plan::functions::Function;
use privet_plan::graph::GraphOp;

/// The loss scale.
const SCALE: f64 = 16.0;
/// Parameters of a test.
const N: usize = 96;

/// Gradients of sizes from 1e-6 to 1, each with a constant part and noise of the same size.
struct Gradients {
    numbers: Numbers,
    drift: Vec<f64>,
}

fn size(i: usize) -> f64 {
    10f64.powf(-6.0 * i as f64 / (N - 1) as f64)
}

impl Gradients {
    fn new(seed: u64) -> Self {
        let mut numbers = Numbers(seed);
        let drift = (0..N).map(|i| numbers.real() * size(i)).collect();
        Gradients { numbers, drift }
    }

    fn next(&mut self) -> Vec<f64> {
        (0..N).map(|i| self.drift[i] + self.numbers.real() * size(i)).collect()
    }
}

fn tensor(data: Vec<f64>) -> FloatTensor {
    FloatTensor { shape: vec![N], data }
}

/// A graph with the gradient as its input `x0` and the parameters as its first state.
fn model() -> (Model, usize, usize) {
    let mut m = Model::new(5, 1);
    let g = m.input(&[N]);
    let w = m.state(&[N], 0.5);
    (m, g, w)
}

fn scalar(m: &mut Model, x: usize, value: f64) -> usize {
    m.map(GraphOp::MulScalar { value }, x)
}

fn both(m: &mut Model, op: GraphOp, x: usize, y: usize) -> usize {
    m.op(op, &[x, y], &[N])
}

/// `x + c (y - x)`.
fn towards(m: &mut Model, x: usize, y: usize, c: f64) -> usize {
    let difference = both(m, GraphOp::Sub, y, x);
    let part = scalar(m, difference, c);
    both(m, GraphOp::Add, x, part)
}

/// Run `steps` steps; `rates` gives the public numbers of step t. The states afterwards.
fn run(m: &Model, steps: usize, seed: u64, rates: impl Fn(usize) -> Vec<(&'static str, f64)>) -> Tensors {
    let step = Step::new(m, &precision());
    let mut states = m.params.clone();
    let mut gradients = Gradients::new(seed);
    for t in 1..=steps {
        let g = gradients.next().iter().map(|g| g * SCALE).collect();
        let mut inputs = Tensors::from([("x0".to_owned(), tensor(g))]);
        for (name, value) in rates(t) {
            inputs.insert(name.into(), FloatTensor { shape: vec![], data: vec![value] });
        }
        states.extend(step.whole(&inputs, &states, seed * 1000 + t as u64).1);
    }
    states
}

#[derive(Clone, Copy)]
struct Sgd {
    momentum: f64,
    dampening: f64,
    nesterov: bool,
    decay: f64,
}

#[test]
fn sgd() {
    let plain = Sgd { momentum: 0.0, dampening: 0.0, nesterov: false, decay: 0.0 };
    let cases = [
        plain,
        Sgd { decay: 5e-4, ..plain },
        Sgd { momentum: 0.9, ..plain },
        Sgd { momentum: 0.9, dampening: 0.3, decay: 1e-2, ..plain },
        Sgd { momentum: 0.9, nesterov: true, decay: 1e-4, ..plain },
    ];
    const STEPS: usize = 100;
    const LR: f64 = 0.05;
    for (i, case) in cases.into_iter().enumerate() {
        let (mut m, mut g, w) = model();
        let rate = m.public("rate", LR / SCALE, LR / SCALE);
        if case.decay > 0.0 {
            let pull = scalar(&mut m, w, SCALE * case.decay);
            g = both(&mut m, GraphOp::Add, g, pull);
        }
        let mut d = g;
        if case.momentum > 0.0 {
            let b = m.state_of(tensor(vec![0.0; N]), None);
            let damp = m.public("damp", 1.0, 1.0);
            let kept = scalar(&mut m, b, case.momentum);
            let added = both(&mut m, GraphOp::Mul, g, damp);
            let next = both(&mut m, GraphOp::Add, kept, added);
            m.update(b, next);
            d = next;
            if case.nesterov {
                let ahead = scalar(&mut m, next, case.momentum);
                d = both(&mut m, GraphOp::Add, g, ahead);
            }
        }
        let change = both(&mut m, GraphOp::Mul, d, rate);
        let next = both(&mut m, GraphOp::Sub, w, change);
        m.update(w, next);
        let seed = i as u64 + 1;
        let rates = |t: usize| {
            let damp = if t == 1 { 1.0 } else { 1.0 - case.dampening };
            vec![("rate", LR / SCALE), ("damp", damp)]
        };
        let states = run(&m, STEPS, seed, rates);

        let mut gradients = Gradients::new(seed);
        let (mut w, mut b) = (m.params["s0"].data.clone(), vec![0.0; N]);
        for t in 0..STEPS {
            for (i, g) in gradients.next().into_iter().enumerate() {
                let g = g + case.decay * w[i];
                let damp = if t == 0 { 1.0 } else { 1.0 - case.dampening };
                b[i] = if case.momentum > 0.0 { case.momentum * b[i] + damp * g } else { g };
                w[i] -= LR * if case.nesterov { g + case.momentum * b[i] } else { b[i] };
            }
        }
        // every step rounds by less than a unit in the last place, and so the sum by a few roots of their number
        let worst = (0..N).map(|i| (states["s0"].data[i] - w[i]).abs()).fold(0.0, f64::max);
        let relative = (0..N)
            .map(|i| (states["s0"].data[i] - w[i]).abs() / (w[i] - m.params["s0"].data[i]).abs().max(1e-4))
            .fold(0.0, f64::max);
        println!("sgd {i}: {:.1} units, relative {relative:.1e}", worst * 2f64.powi(24));
        let moved = |i: usize| (w[i] - m.params["s0"].data[i]).abs();
        let fine = |i: usize| (states["s0"].data[i] - w[i]).abs() < 80.0 * 2f64.powi(-24) + 1e-6 * moved(i);
        assert!((0..N).all(fine), "{i}");
    }
}

/// Adam as PyTorch computes it; `decoupled` is AdamW.
fn reference(
    m: &Model,
    seed: u64,
    steps: usize,
    [lr, b1, b2, eps, decay]: [f64; 5],
    decoupled: bool,
) -> Vec<f64> {
    let mut gradients = Gradients::new(seed);
    let mut w = m.params["s0"].data.clone();
    let (mut first, mut second) = (vec![0.0; N], vec![0.0; N]);
    for t in 1..=steps {
        for (i, g) in gradients.next().into_iter().enumerate() {
            let g = if decoupled { g } else { g + decay * w[i] };
            if decoupled {
                w[i] -= lr * decay * w[i];
            }
            first[i] += (1.0 - b1) * (g - first[i]);
            second[i] += (1.0 - b2) * (g * g - second[i]);
            let (m, v) = (first[i] / (1.0 - b1.powi(t as i32)), second[i] / (1.0 - b2.powi(t as i32)));
            w[i] -= lr * m / (v.sqrt() + eps);
        }
    }
    w
}

#[test]
fn adam() {
    const STEPS: usize = 60;
    for (i, (numbers, decoupled)) in [
        ([1e-3, 0.9, 0.999, 1e-8, 0.0], false),
        ([1e-2, 0.9, 0.99, 1e-8, 0.0], false),
        ([1e-3, 0.8, 0.95, 1e-8, 1e-2], true),
        ([1e-3, 0.9, 0.999, 1e-8, 1e-4], false),
    ]
    .into_iter()
    .enumerate()
    {
        let [lr, b1, b2, eps, decay] = numbers;
        let (mut m, mut g, w) = model();
        let rate = m.public("rate", lr, 1.25 * lr);
        let first = m.state_of(tensor(vec![0.0; N]), None);
        let second = m.state_of(tensor(vec![0.0; N]), Some(48));
        if decay > 0.0 && !decoupled {
            let pull = scalar(&mut m, w, SCALE * decay);
            g = both(&mut m, GraphOp::Add, g, pull);
        }
        let first_next = towards(&mut m, first, g, 1.0 - b1);
        let square = both(&mut m, GraphOp::Mul, g, g);
        let second_next = towards(&mut m, second, square, 1.0 - b2);
        let e = (SCALE * eps).max(2f64.powi(-24));
        let above = m.map(GraphOp::AddScalar { value: e * e }, second_next);
        let read = scalar(&mut m, above, 2f64.powi(18));
        let root = m.map(GraphOp::Smooth { function: Function::Rsqrt }, read);
        let scaled = scalar(&mut m, first_next, 512.0);
        let u = both(&mut m, GraphOp::Mul, scaled, root);
        let change = both(&mut m, GraphOp::Mul, u, rate);
        let mut next = both(&mut m, GraphOp::Sub, w, change);
        if decoupled {
            let fade = m.public("decay", lr * decay, lr * decay);
            let faded = both(&mut m, GraphOp::Mul, w, fade);
            next = both(&mut m, GraphOp::Sub, next, faded);
        }
        for (state, next) in [(first, first_next), (second, second_next), (w, next)] {
            m.update(state, next);
        }
        let seed = 20 + i as u64;
        let rates = |t: usize| {
            let corrected = (1.0 - b2.powi(t as i32)).sqrt() / (1.0 - b1.powi(t as i32));
            vec![("rate", lr * corrected), ("decay", lr * decay)]
        };
        let states = run(&m, STEPS, seed, rates);
        let want = reference(&m, seed, STEPS, numbers, decoupled);
        // in learning rates: how far the parameters have gone apart in all steps together
        let apart: Vec<f64> = (0..N).map(|i| (states["s0"].data[i] - want[i]).abs() / lr).collect();
        let decades: Vec<f64> = apart.chunks(N / 6).map(|c| c.iter().copied().fold(0.0, f64::max)).collect();
        println!(
            "adam {i}: off by {decades:.4?} rates after {STEPS} steps, by decades of gradients, 1 to 1e-6"
        );
        let bounds = [0.02, 0.02, 0.05, 0.1, 0.5, 2.0];
        assert!(decades.iter().zip(bounds).all(|(d, b)| *d < b), "{i}: {decades:?}");
    }
}

#[test]
fn what_replaces_a_fine_state_is_computed_as_finely() {
    let mut m = Model::new(5, 1);
    let g = m.input(&[N]);
    let v = m.state_of(tensor(vec![0.0; N]), Some(48));
    let square = both(&mut m, GraphOp::Mul, g, g);
    let next = scalar(&mut m, square, 0.01);
    m.update(v, next);
    let step = Step::new(&m, &precision());
    let data: Vec<f64> = (0..N).map(|i| i as f64 * 2f64.powi(-20)).collect();
    let next = step.whole(&Tensors::from([("x0".to_owned(), tensor(data.clone()))]), &m.params, 1).1;
    for (got, x) in next["s0"].data.iter().zip(&data) {
        // the factor has 10 bits
        let want = 0.01 * x * x;
        assert!((got - want).abs() < want * 2f64.powi(-10) + 3.0 * 2f64.powi(-48), "{got} {want}");
    }
}

#[test]
fn a_second_moment_is_at_least_minus_one_unit_and_decays_to_nothing() {
    let unit = 2f64.powi(-48);
    let mut m = Model::new(5, 1);
    let g = m.input(&[N]);
    let v = m.state_of(tensor((0..N).map(|i| i as f64 * unit).collect()), Some(48));
    let square = both(&mut m, GraphOp::Mul, g, g);
    let next = towards(&mut m, v, square, 0.1);
    m.update(v, next);
    let step = Step::new(&m, &precision());
    let inputs = Tensors::from([("x0".to_owned(), tensor(vec![0.0; N]))]);
    let mut states = m.params.clone();
    for t in 0..300 {
        states = step.whole(&inputs, &states, t).1;
        assert!(states["s0"].data.iter().all(|&v| v >= -unit), "step {t}");
    }
    assert!(states["s0"].data.iter().sum::<f64>().abs() < 6.0 * unit);
}
