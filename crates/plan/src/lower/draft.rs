//! A graph on its way to a plan, and how rules rewrite it.

use crate::float::FloatTensor;
use crate::graph::{Graph, GraphNode, GraphOp};
use std::collections::BTreeMap;

/// A graph, its parameters and what was done to it.
pub(crate) struct Draft<'a> {
    pub graph: Graph,
    /// The parameters as given.
    pub given: &'a BTreeMap<String, FloatTensor>,
    /// Parameters that rules made.
    pub made: BTreeMap<String, FloatTensor>,
    pub notes: Vec<String>,
}

impl Draft<'_> {
    /// The tensor of a parameter node; `None` for other nodes.
    pub fn parameter(&self, node: &GraphNode) -> Option<&FloatTensor> {
        match &node.op {
            GraphOp::Parameter { name } => self.made.get(name).or_else(|| self.given.get(name)),
            _ => None,
        }
    }

    /// How often each node is read, by nodes, as an output, and as an update.
    pub fn uses(&self) -> Vec<usize> {
        uses(&self.graph)
    }

    /// Rewrite the graph node by node. `rule` gets every node with its operands already renumbered and returns
    /// the id of the node that takes its place: one it added, or [`Rewrite::keep`].
    pub fn rewrite(&mut self, mut rule: impl FnMut(&mut Rewrite<'_>, &GraphNode) -> usize) {
        let old = std::mem::take(&mut self.graph.nodes);
        let uses = uses_of(&old, &self.graph);
        let mut rewrite = Rewrite {
            nodes: Vec::with_capacity(old.len()),
            uses: Vec::new(),
            given: self.given,
            made: &mut self.made,
            notes: &mut self.notes,
        };
        let mut map = Vec::with_capacity(old.len());
        for (id, node) in old.into_iter().enumerate() {
            let inputs = node.inputs.iter().map(|&i| map[i]).collect();
            let before = rewrite.nodes.len();
            let new = rule(&mut rewrite, &GraphNode { inputs, ..node });
            rewrite.uses.resize(rewrite.nodes.len(), 1);
            // an operand that takes the place of one of its readers gets that one's readers in exchange
            rewrite.uses[new] = if new < before { rewrite.uses[new] + uses[id] - 1 } else { uses[id] };
            map.push(new);
        }
        self.graph.nodes = rewrite.nodes;
        self.renumber(&map);
    }

    /// Outputs and updates name nodes by their new numbers.
    pub fn renumber(&mut self, map: &[usize]) {
        for output in &mut self.graph.outputs {
            output.node = map[output.node];
        }
        for update in &mut self.graph.updates {
            (update.state, update.node) = (map[update.state], map[update.node]);
        }
    }
}

/// The graph being rebuilt by [`Draft::rewrite`].
pub(crate) struct Rewrite<'a> {
    /// The nodes so far.
    pub nodes: Vec<GraphNode>,
    uses: Vec<usize>,
    given: &'a BTreeMap<String, FloatTensor>,
    made: &'a mut BTreeMap<String, FloatTensor>,
    /// Remarks for the user.
    pub notes: &'a mut Vec<String>,
}

impl Rewrite<'_> {
    /// Take a node over unchanged.
    pub fn keep(&mut self, node: &GraphNode) -> usize {
        self.push(node.clone())
    }

    pub fn push(&mut self, node: GraphNode) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Add an operation that belongs to `like`'s layer.
    pub fn add(
        &mut self,
        like: &GraphNode,
        op: GraphOp,
        inputs: Vec<usize>,
        shape: Vec<usize>,
        range: Option<[f64; 2]>,
    ) -> usize {
        self.push(GraphNode {
            op,
            inputs,
            shape,
            range,
            layer: like.layer.clone(),
            source: like.source.clone(),
        })
    }

    /// Add a new parameter. Its name is `name`, made unique by a suffix where that is taken.
    pub fn add_parameter(&mut self, like: &GraphNode, name: String, tensor: FloatTensor) -> usize {
        let taken = |n: &String| self.made.contains_key(n) || self.given.contains_key(n);
        let unique = (1..)
            .map(|i| if i == 1 { name.clone() } else { format!("{name}.{i}") })
            .find(|n| !taken(n))
            .expect("some suffix is free");
        let (shape, range) = (tensor.shape.clone(), tensor.range());
        self.made.insert(unique.clone(), tensor);
        self.add(like, GraphOp::Parameter { name: unique }, vec![], shape, range)
    }

    /// The tensor of new node `id` when that is a parameter.
    pub fn parameter(&self, id: usize) -> Option<&FloatTensor> {
        match &self.nodes[id].op {
            GraphOp::Parameter { name } => self.made.get(name).or_else(|| self.given.get(name)),
            _ => None,
        }
    }

    /// The name of new node `id` when that is a parameter; a fallback for the layer otherwise.
    pub fn parameter_name(&self, id: usize) -> String {
        match &self.nodes[id].op {
            GraphOp::Parameter { name } => name.clone(),
            _ => format!("{}.constant", self.nodes[id].layer),
        }
    }

    /// Whether only the node being rewritten reads new node `id`.
    pub fn used_once(&self, id: usize) -> bool {
        self.uses[id] == 1
    }
}

fn uses(graph: &Graph) -> Vec<usize> {
    uses_of(&graph.nodes, graph)
}

fn uses_of(nodes: &[GraphNode], graph: &Graph) -> Vec<usize> {
    let mut uses = vec![0; nodes.len()];
    let results = graph.outputs.iter().map(|o| &o.node).chain(graph.updates.iter().map(|u| &u.node));
    for id in nodes.iter().flat_map(|n| &n.inputs).chain(results) {
        uses[*id] += 1;
    }
    uses
}

/// `range` scaled by `factor` and shifted by `offset`.
pub(crate) fn affine_range(range: Option<[f64; 2]>, factor: f64, offset: f64) -> Option<[f64; 2]> {
    let [lo, hi] = range?;
    let (a, b) = (lo * factor + offset, hi * factor + offset);
    Some([a.min(b), a.max(b)])
}

/// The range of `max(x, 0)`.
pub(crate) fn relu_range(range: Option<[f64; 2]>) -> Option<[f64; 2]> {
    range.map(|[lo, hi]| [lo.max(0.0), hi.max(0.0)])
}
