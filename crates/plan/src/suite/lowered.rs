//! Steps of training as they are lowered: small networks' forward and backward pass, optimisers, the guard.

use super::{Case, Operands, Toll};
use crate::functions::Function;
use crate::graph::{GRAPH_VERSION, Graph, GraphNode, GraphOp, GraphOutput, GraphUpdate};
use crate::ir::Op;
use crate::lower::{Precision, RoundingMode, lower};
use privet_ring::{Pool2d, Ring, Tensor};
use std::collections::BTreeMap;

/// Writes a graph.
struct Writer(Graph);

impl Writer {
    fn op(&mut self, op: GraphOp, inputs: &[usize], shape: &[usize]) -> usize {
        let (inputs, shape) = (inputs.to_vec(), shape.to_vec());
        let layer = format!("layer{}", self.0.nodes.len() / 8);
        self.0.nodes.push(GraphNode { op, inputs, shape, layer, source: String::new(), range: None });
        self.0.nodes.len() - 1
    }

    /// An operation of values of one shape.
    fn map(&mut self, op: GraphOp, inputs: &[usize]) -> usize {
        let shape = self.0.nodes[inputs[0]].shape.clone();
        self.op(op, inputs, &shape)
    }

    fn input(&mut self, name: &str, shape: &[usize]) -> usize {
        self.op(GraphOp::Input { name: name.into(), owner: None }, &[], shape)
    }

    fn state(&mut self, name: &str, shape: &[usize], frac: Option<u32>) -> usize {
        self.op(GraphOp::State { name: name.into(), frac, owner: None }, &[], shape)
    }

    fn scaled(&mut self, x: usize, value: f64) -> usize {
        self.map(GraphOp::MulScalar { value }, &[x])
    }

    /// `x + c (y - x)`.
    fn towards(&mut self, x: usize, y: usize, c: f64) -> usize {
        let difference = self.map(GraphOp::Sub, &[y, x]);
        let part = self.scaled(difference, c);
        self.map(GraphOp::Add, &[x, part])
    }

    fn update(&mut self, state: usize, node: usize) {
        self.0.updates.push(GraphUpdate { state, node });
    }
}

/// A lowered step, with the ranges that its operands are drawn from where they have others than [-1/2, 1/2).
pub struct LoweredStep {
    /// The plan.
    pub case: Case,
    ranges: BTreeMap<String, [f64; 2]>,
}

/// [`lowered_step`], and steps as PyTorch is captured (`python -m privet.workloads`): convolutions of lines, a normalisation by
/// groups, Softplus, and cross entropy with weights of classes and smooth labels; ELU, and the smooth L1 loss.
pub fn lowered_steps() -> Vec<LoweredStep> {
    let second = BTreeMap::from([("second".to_owned(), [0.0, 0.25])]);
    let mut steps = vec![LoweredStep { case: lowered_step(), ranges: second }];
    let captured = [
        ("lines", &include_bytes!("steps/lines.graph.json")[..]),
        ("curves", &include_bytes!("steps/curves.graph.json")[..]),
    ];
    for (name, json) in captured {
        let graph = Graph::from_json(json).unwrap_or_else(|e| panic!("{name}: {e}"));
        let range = |node: &GraphNode| match &node.op {
            GraphOp::Input { name, .. } | GraphOp::State { name, .. } => Some((name.clone(), node.range?)),
            _ => None,
        };
        let ranges = graph.nodes.iter().filter_map(range).collect();
        steps.push(LoweredStep { case: lowered(&graph, name), ranges });
    }
    steps
}

fn lowered(graph: &Graph, name: &str) -> Case {
    let precision = Precision { keep_ring: true, rounding: RoundingMode::Stochastic, ..Precision::default() };
    let lowered = lower(graph, &BTreeMap::new(), &precision, &Toll);
    Case { name: name.into(), plan: lowered.expect("a graph of supported operations").plan }
}

/// One step: convolution, ReLU, max pool, dropout, linear layer, softmax; momentum for the convolution, Adam for the linear
/// layer.
pub fn lowered_step() -> Case {
    let graph = Graph {
        version: GRAPH_VERSION,
        name: "step".into(),
        batch: 2,
        nodes: vec![],
        outputs: vec![],
        updates: vec![],
    };
    let mut w = Writer(graph);
    let (x, target) = (w.input("x", &[2, 1, 4, 4]), w.input("target", &[2, 3]));
    let (kernel, dense) = (w.state("kernel", &[2, 1, 3, 3], None), w.state("dense", &[3, 8], None));
    let rate = w.op(GraphOp::Public { name: "rate".into(), limit: 0.1 }, &[], &[]);
    let [stride, padding, dilation] = [[1, 1]; 3];
    let y = w.op(GraphOp::Conv2d { stride, padding, dilation, groups: 1 }, &[x, kernel], &[2, 2, 4, 4]);
    let relu = w.map(GraphOp::Relu, &[y]);
    let window =
        Pool2d { kernel: [2, 2], stride: [2, 2], padding: [0, 0], dilation: [1, 1], ceil_mode: false };
    let pooled = w.op(GraphOp::MaxPool2d { window }, &[relu], &[2, 2, 2, 2]);
    let kept = w.map(GraphOp::Dropout { stream: 0, keep: 0.75 }, &[pooled]);
    let flat = w.op(GraphOp::Reshape, &[kept], &[2, 8]);
    let scores = w.op(GraphOp::Linear, &[flat, dense], &[2, 3]);
    let softmax = w.map(GraphOp::Smooth { function: Function::Softmax { dim: 1 } }, &[scores]);

    let g = w.map(GraphOp::Sub, &[softmax, target]);
    let g = w.scaled(g, 8.0);
    let turned = w.op(GraphOp::Permute { dims: vec![1, 0] }, &[g], &[3, 2]);
    let d_dense = w.op(GraphOp::MatMul, &[turned, flat], &[3, 8]);
    let g = w.op(GraphOp::MatMul, &[g, dense], &[2, 8]);
    let g = w.op(GraphOp::Reshape, &[g], &[2, 2, 2, 2]);
    let g = w.map(GraphOp::Dropout { stream: 0, keep: 0.75 }, &[g]);
    let g = w.op(GraphOp::MaxPool2dGrad { window }, &[relu, g], &[2, 2, 4, 4]);
    let bit = w.map(GraphOp::Positive, &[y]);
    let g = w.map(GraphOp::Choose, &[bit, g]);
    let grad = GraphOp::Conv2dWeightGrad { stride, padding, dilation, groups: 1 };
    let d_kernel = w.op(grad, &[x, g], &[2, 1, 3, 3]);

    let momentum = w.state("momentum", &[2, 1, 3, 3], None);
    let slower = w.scaled(momentum, 0.9);
    let momentum_next = w.map(GraphOp::Add, &[slower, d_kernel]);
    let change = w.map(GraphOp::Mul, &[momentum_next, rate]);
    let kernel_next = w.map(GraphOp::Sub, &[kernel, change]);
    let (first, second) = (w.state("first", &[3, 8], None), w.state("second", &[3, 8], Some(48)));
    let first_next = w.towards(first, d_dense, 0.1);
    let square = w.map(GraphOp::Mul, &[d_dense, d_dense]);
    let second_next = w.towards(second, square, 0.001);
    let above = w.map(GraphOp::AddScalar { value: 2f64.powi(-46) }, &[second_next]);
    let root = w.scaled(above, 2f64.powi(18));
    let root = w.map(GraphOp::Smooth { function: Function::Rsqrt }, &[root]);
    let size = w.scaled(first_next, 512.0);
    let direction = w.map(GraphOp::Mul, &[size, root]);
    let change = w.map(GraphOp::Mul, &[direction, rate]);
    let dense_next = w.map(GraphOp::Sub, &[dense, change]);
    let good = w.op(GraphOp::InRange { limit: 16.0 }, &[scores, dense_next], &[]);
    for (state, node) in [
        (kernel, kernel_next),
        (dense, dense_next),
        (momentum, momentum_next),
        (first, first_next),
        (second, second_next),
    ] {
        w.update(state, node);
    }
    for (node, name) in [(scores, "scores"), (good, "in_range")] {
        w.0.outputs.push(GraphOutput { node, name: name.into(), to: None });
    }
    lowered(&w.0, "a lowered step")
}

impl LoweredStep {
    /// Operands in their ranges, and the largest public numbers. `next` gives uniform words.
    pub fn operands(&self, next: &mut dyn FnMut() -> u64) -> [Operands; 2] {
        let mut all = [Operands::new(), Operands::new()];
        for node in &self.case.plan.nodes {
            let (which, name, [low, high]) = match &node.op {
                Op::Public { name, limit } => (0, name, [*limit; 2]),
                Op::Input { name, .. } => (0, name, self.range(name)),
                Op::State { name, .. } => (1, name, self.range(name)),
                _ => continue,
            };
            let unit = 2f64.powi(node.ty.frac as i32);
            let mut number = || {
                let part = (next() >> 11) as f64 * 2f64.powi(-53);
                ((low + (high - low) * part) * unit).floor() as i64 as u64
            };
            let data = (0..node.ty.len()).map(|_| Ring::new(node.ty.bits).wrap(number())).collect();
            all[which].insert(name.clone(), Tensor::new(node.ty.shape.clone(), data).unwrap_or_default());
        }
        all
    }

    fn range(&self, name: &str) -> [f64; 2] {
        self.ranges.get(name).copied().unwrap_or([-0.5, 0.5])
    }
}
