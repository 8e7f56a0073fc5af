//! Captured graphs, built by hand and calibrated by the reference.

use super::Numbers;
use super::reference::evaluate;
use privet_plan::FloatTensor;
use privet_plan::graph::{GRAPH_VERSION, Graph, GraphNode, GraphOp, GraphOutput, GraphUpdate};
use std::collections::BTreeMap;

/// A graph with its parameters and one example input.
pub struct Model {
    pub graph: Graph,
    pub params: BTreeMap<String, FloatTensor>,
    pub inputs: BTreeMap<String, FloatTensor>,
    pub numbers: Numbers,
}

impl Model {
    pub fn new(seed: u64, batch: usize) -> Self {
        let graph = Graph {
            version: GRAPH_VERSION,
            name: "test".into(),
            batch,
            nodes: vec![],
            outputs: vec![],
            updates: vec![],
        };
        Model { graph, params: BTreeMap::new(), inputs: BTreeMap::new(), numbers: Numbers(seed) }
    }

    pub fn tensor(&mut self, shape: &[usize], scale: f64) -> FloatTensor {
        let data = (0..shape.iter().product()).map(|_| self.numbers.real() * scale).collect();
        FloatTensor { shape: shape.to_vec(), data }
    }

    pub fn input(&mut self, shape: &[usize]) -> usize {
        let name = format!("x{}", self.inputs.len());
        let data = self.tensor(shape, 2.0);
        self.inputs.insert(name.clone(), data);
        self.op(GraphOp::Input { name, owner: None }, &[], shape)
    }

    /// A state with a random first value.
    pub fn state(&mut self, shape: &[usize], scale: f64) -> usize {
        let tensor = self.tensor(shape, scale);
        self.state_of(tensor, None)
    }

    pub fn state_of(&mut self, tensor: FloatTensor, frac: Option<u32>) -> usize {
        let name = format!("s{}", self.params.len());
        let shape = tensor.shape.clone();
        self.params.insert(name.clone(), tensor);
        self.op(GraphOp::State { name, frac, owner: None }, &[], &shape)
    }

    pub fn public(&mut self, name: &str, value: f64, limit: f64) -> usize {
        self.inputs.insert(name.into(), FloatTensor { shape: vec![], data: vec![value] });
        self.op(GraphOp::Public { name: name.into(), limit }, &[], &[])
    }

    /// `node` takes the place of `state`.
    pub fn update(&mut self, state: usize, node: usize) {
        self.graph.updates.push(GraphUpdate { state, node });
    }

    pub fn shape(&self, x: usize) -> Vec<usize> {
        self.graph.nodes[x].shape.clone()
    }

    pub fn param(&mut self, shape: &[usize]) -> usize {
        let tensor = self.tensor(shape, 0.5);
        self.param_of(tensor)
    }

    pub fn positive(&mut self, shape: &[usize]) -> usize {
        let mut tensor = self.tensor(shape, 0.5);
        tensor.data.iter_mut().for_each(|v| *v += 1.0);
        self.param_of(tensor)
    }

    pub fn param_of(&mut self, tensor: FloatTensor) -> usize {
        let name = format!("p{}", self.params.len());
        let shape = tensor.shape.clone();
        self.params.insert(name.clone(), tensor);
        self.op(GraphOp::Parameter { name }, &[], &shape)
    }

    pub fn op(&mut self, op: GraphOp, inputs: &[usize], shape: &[usize]) -> usize {
        let id = self.graph.nodes.len();
        self.graph.nodes.push(GraphNode {
            op,
            inputs: inputs.to_vec(),
            shape: shape.to_vec(),
            layer: format!("layer{id}"),
            source: format!("model.py:{id} in forward"),
            range: None,
        });
        id
    }

    /// An operation that keeps its operand's shape.
    pub fn map(&mut self, op: GraphOp, x: usize) -> usize {
        let shape = self.graph.nodes[x].shape.clone();
        self.op(op, &[x], &shape)
    }

    pub fn conv(
        &mut self,
        x: usize,
        channels: usize,
        kernel: usize,
        stride: usize,
        padding: usize,
        groups: usize,
    ) -> usize {
        let [n, c, h, w] = self.graph.nodes[x].shape[..] else { panic!() };
        let weight = self.param(&[channels, c / groups, kernel, kernel]);
        let bias = self.param(&[channels]);
        let out = |e: usize| (e + 2 * padding - kernel) / stride + 1;
        let op = GraphOp::Conv2d { stride: [stride; 2], padding: [padding; 2], dilation: [1; 2], groups };
        self.op(op, &[x, weight, bias], &[n, channels, out(h), out(w)])
    }

    pub fn linear(&mut self, x: usize, n: usize) -> usize {
        let mut shape = self.graph.nodes[x].shape.clone();
        let k = *shape.last().unwrap();
        let (w, b) = (self.param(&[n, k]), self.param(&[n]));
        *shape.last_mut().unwrap() = n;
        self.op(GraphOp::Linear, &[x, w, b], &shape)
    }

    pub fn batch_norm(&mut self, x: usize) -> usize {
        let c = self.graph.nodes[x].shape[1];
        let inputs = [x, self.positive(&[c]), self.param(&[c]), self.param(&[c]), self.positive(&[c])];
        let shape = self.graph.nodes[x].shape.clone();
        self.op(GraphOp::BatchNorm { eps: 1e-5 }, &inputs, &shape)
    }

    pub fn flatten(&mut self, x: usize) -> usize {
        let shape = &self.graph.nodes[x].shape;
        let out = [shape[0], shape[1..].iter().product()];
        self.op(GraphOp::Reshape, &[x], &out)
    }

    /// Name the output and record ranges from the example.
    pub fn finish(&mut self, output: usize) -> FloatTensor {
        let name = format!("y{}", self.graph.outputs.len());
        self.graph.outputs.push(GraphOutput { node: output, name, to: None });
        let values = evaluate(&self.graph, &self.inputs, &self.params);
        for (node, value) in self.graph.nodes.iter_mut().zip(&values) {
            node.range = value.range();
        }
        values[output].clone()
    }
}
