//! Random small networks: the gradients of a lowered step are the slopes of the loss.

mod common;

use common::build::Model;
use common::reference::evaluate;
use common::training::{Step, count, keeps_ring, precision};
use privet_plan::graph::{GraphOp, GraphOutput};
use privet_ring::Pool2d;

/// A network under construction, and the layers to go back through.
struct Network {
    m: Model,
    layers: Vec<(GraphOp, Vec<usize>, usize)>,
    weights: Vec<usize>,
}

impl Network {
    fn layer(&mut self, op: GraphOp, inputs: &[usize], shape: &[usize]) -> usize {
        let y = self.m.op(op.clone(), inputs, shape);
        self.layers.push((op, inputs.to_vec(), y));
        y
    }

    fn weight(&mut self, shape: &[usize]) -> usize {
        let w = self.m.state(shape, 0.6);
        self.weights.push(w);
        w
    }

    fn convolution(&mut self, x: usize) -> usize {
        let [n, c, h, w] = self.m.shape(x)[..] else { panic!() };
        let groups = [1, c][self.m.numbers.below(2)];
        let channels = 2 * c;
        let mut pick = |most: usize| 1 + self.m.numbers.below(most);
        let kernel = [pick(3.min(h)), pick(3.min(w))];
        let (stride, dilation) = ([pick(2), pick(2)], [pick(2), pick(2)]);
        let padding = [pick(2) * (kernel[0] - 1), pick(3) - 1];
        let out = |i: usize, n: usize| {
            (n + 2 * padding[i])
                .checked_sub(dilation[i] * (kernel[i] - 1) + 1)
                .map(|room| room / stride[i] + 1)
        };
        let (Some(oh), Some(ow)) = (out(0, h), out(1, w)) else { return x };
        let weight = self.weight(&[channels, c / groups, kernel[0], kernel[1]]);
        self.layer(
            GraphOp::Conv2d { stride, padding, dilation, groups },
            &[x, weight],
            &[n, channels, oh, ow],
        )
    }

    fn pool(&mut self, x: usize, max: bool) -> usize {
        let [n, c, h, w] = self.m.shape(x)[..] else { panic!() };
        if h < 3 || w < 3 {
            return x;
        }
        let mut pick = |most: usize| 1 + self.m.numbers.below(most);
        let kernel = [pick(3), pick(3)];
        let padding = [(pick(2) - 1).min(kernel[0] / 2), 0];
        let window =
            Pool2d { kernel, stride: [pick(3), pick(2)], padding, dilation: [1, 1], ceil_mode: pick(2) == 1 };
        let [oh, ow] = window.output([h, w]);
        let op = match max {
            true => GraphOp::MaxPool2d { window },
            false => GraphOp::AvgPool2d { window, count_include_pad: pick(2) == 1, divisor: None },
        };
        self.layer(op, &[x], &[n, c, oh, ow])
    }

    fn random(seed: u64) -> Network {
        let mut net = Network { m: Model::new(seed, 2), layers: vec![], weights: vec![] };
        let mut x = net.m.input(&[2, 2, 7, 6]);
        for _ in 0..5 {
            let shape = net.m.shape(x);
            x = match net.m.numbers.below(5) {
                0 | 1 if shape[1] <= 4 => net.convolution(x),
                2 => net.pool(x, true),
                3 => net.pool(x, false),
                _ => net.layer(GraphOp::Relu, &[x], &shape),
            };
        }
        let shape = net.m.shape(x);
        let features = shape[1..].iter().product();
        let flat = net.layer(GraphOp::Reshape, &[x], &[2, features]);
        let w = net.weight(&[3, features]);
        net.layer(GraphOp::Linear, &[flat, w], &[2, 3]);
        net
    }

    fn loss(&self) -> f64 {
        let y = self.layers.last().unwrap().2;
        evaluate(&self.m.graph, &self.m.inputs, &self.m.params)[y].data.iter().map(|y| y * y / 2.0).sum()
    }

    /// Gradients of the weights, as outputs: backwards through the layers, beginning with the result, which is the gradient of
    /// half of its square.
    fn backward(&mut self) {
        let mut gradients = vec![None; self.m.graph.nodes.len()];
        let last = self.layers.last().unwrap().2;
        gradients[last] = Some(last);
        for (op, inputs, y) in self.layers.clone().into_iter().rev() {
            let Some(g) = gradients[y] else { continue };
            for (i, d) in self.vjp(&op, &inputs, g).into_iter().enumerate() {
                gradients[inputs[i]] = Some(d);
            }
        }
        for (i, &w) in self.weights.iter().enumerate() {
            let node = gradients[w].unwrap();
            self.m.graph.outputs.push(GraphOutput { node, name: format!("d{i}"), to: None });
            self.m.graph.updates.push(privet_plan::graph::GraphUpdate { state: w, node });
        }
    }

    fn vjp(&mut self, op: &GraphOp, inputs: &[usize], g: usize) -> Vec<usize> {
        let m = &mut self.m;
        let x = inputs[0];
        let from = m.shape(x);
        match *op {
            GraphOp::Conv2d { stride, padding, dilation, groups } => {
                let w = m.shape(inputs[1]);
                let dx = GraphOp::Conv2dInputGrad { stride, padding, dilation, groups };
                let dw = GraphOp::Conv2dWeightGrad { stride, padding, dilation, groups };
                vec![m.op(dx, &[inputs[1], g], &from), m.op(dw, &[x, g], &w)]
            }
            GraphOp::Linear => {
                let (w, outputs) = (m.shape(inputs[1]), m.shape(g)[1]);
                let dx = m.op(GraphOp::MatMul, &[g, inputs[1]], &from);
                let turned = m.op(GraphOp::Permute { dims: vec![1, 0] }, &[g], &[outputs, from[0]]);
                vec![dx, m.op(GraphOp::MatMul, &[turned, x], &w)]
            }
            GraphOp::Relu => {
                let bit = m.map(GraphOp::Positive, x);
                vec![m.op(GraphOp::Choose, &[bit, g], &from)]
            }
            GraphOp::MaxPool2d { window } => vec![m.op(GraphOp::MaxPool2dGrad { window }, &[x, g], &from)],
            GraphOp::AvgPool2d { window, count_include_pad, divisor } => {
                vec![m.op(GraphOp::AvgPool2dGrad { window, count_include_pad, divisor }, &[g], &from)]
            }
            _ => vec![m.op(GraphOp::Reshape, &[g], &from)],
        }
    }
}

#[test]
fn gradients_are_slopes() {
    const STEP: f64 = 1e-6;
    let mut weights = 0;
    for seed in 0..40 {
        let mut net = Network::random(seed);
        // before the gradients are there, so that the loss is of the forward pass alone
        let slopes: Vec<Vec<f64>> = (0..net.weights.len())
            .map(|w| {
                let name = net.weight_name(w);
                (0..net.m.params[&name].data.len())
                    .map(|i| {
                        let mut at = |by: f64| {
                            let before = net.m.params[&name].data[i];
                            net.m.params.get_mut(&name).unwrap().data[i] = before + by;
                            let loss = net.loss();
                            net.m.params.get_mut(&name).unwrap().data[i] = before;
                            loss
                        };
                        (at(STEP) - at(-STEP)) / (2.0 * STEP)
                    })
                    .collect()
            })
            .collect();
        net.backward();
        let step = Step::new(&net.m, &precision());
        // a pool that needs no gradient stays one, and is extended
        if count(&step.plan, "max_pool2d") == 0 {
            keeps_ring(&step.plan);
        }
        let (real, _) = step.real(&net.m.inputs, &net.m.params);
        let (whole, next) = step.whole(&net.m.inputs, &net.m.params, seed);
        for (w, want) in slopes.iter().enumerate() {
            let size = want.iter().fold(1.0f64, |s, v| s.max(v.abs()));
            let off =
                |got: &[f64]| got.iter().zip(want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / size;
            let (real, whole) = (off(&real[w].data), off(&whole[w].data));
            assert!(real < 1e-5 && whole < 1e-4, "{seed}, weight {w}: {real} {whole}");
            assert!(off(&next[&net.weight_name(w)].data) < 1e-4, "{seed}: the update is the gradient");
            weights += want.len();
        }
    }
    assert!(weights > 1500, "{weights} weights were looked at");
}

impl Network {
    fn weight_name(&self, i: usize) -> String {
        match &self.m.graph.nodes[self.weights[i]].op {
            GraphOp::State { name, .. } => name.clone(),
            _ => unreachable!(),
        }
    }
}
