use crate::graph::{Graph, GraphNode, GraphOp};
use crate::lower::draft::{Draft, Rewrite};
use std::collections::HashMap;

/// `maxpool(relu(x)) = relu(maxpool(x))`, with gradients: a comparison for every window in place of every element.
///
/// With q = maxpool(x), the gradient `choose(x > 0, maxpool_grad(relu(x), g))` is `maxpool_grad(x, choose(q > 0, g))`. That is
/// so everywhere, ties included: where q > 0 the first largest element of x is that of relu(x), and positive; where q <= 0
/// no element of the window is, and both are 0.
pub(super) fn apply(draft: &mut Draft<'_>) {
    let uses = draft.uses();
    let mut roles: HashMap<usize, Role> = HashMap::new();
    for (pool, node) in draft.graph.nodes.iter().enumerate() {
        if let GraphOp::MaxPool2d { .. } = node.op
            && let Some(group) = group(&draft.graph, &uses, pool)
        {
            roles.insert(pool, Role::Pool);
            roles.insert(group.gradient, Role::Gradient { pool });
            roles.insert(group.chosen, Role::Chosen);
        }
    }
    // bits of q, by the old number of the pool
    let mut bits: HashMap<usize, usize> = HashMap::new();
    let mut id = 0;
    draft.rewrite(|graph, node| {
        let here = id;
        id += 1;
        match roles.get(&here) {
            Some(Role::Pool) => {
                let x = before_relu(graph, node.inputs[0]);
                let (shape, range) = (node.shape.clone(), graph.nodes[x].range);
                let q = graph.add(node, node.op.clone(), vec![x], shape.clone(), range);
                let bit = graph.add(node, GraphOp::Positive, vec![q], shape.clone(), None);
                bits.insert(here, bit);
                graph.add(node, GraphOp::Choose, vec![bit, q], shape, node.range)
            }
            Some(Role::Gradient { pool }) => {
                let x = before_relu(graph, node.inputs[0]);
                let shape = graph.nodes[node.inputs[1]].shape.clone();
                let g = graph.add(node, GraphOp::Choose, vec![bits[pool], node.inputs[1]], shape, None);
                graph.add(node, node.op.clone(), vec![x, g], node.shape.clone(), node.range)
            }
            // the gradient's own choice has been made
            Some(Role::Chosen) => node.inputs[1],
            None => graph.keep(node),
        }
    });
}

enum Role {
    Pool,
    Gradient { pool: usize },
    Chosen,
}

/// The gradient of a pool of a ReLU, and what chooses of it by the ReLU's bit.
struct Group {
    gradient: usize,
    chosen: usize,
}

/// `pool` is `MaxPool2d(relu)`, relu is `Choose(bit, x)`; besides only `Choose(bit, MaxPool2dGrad(relu, g))` reads relu and bit.
fn group(graph: &Graph, uses: &[usize], pool: usize) -> Option<Group> {
    let nodes = &graph.nodes;
    let GraphOp::MaxPool2d { window } = nodes[pool].op else { return None };
    let relu = nodes[pool].inputs[0];
    let bit = bit_of_relu(nodes, relu)?;
    if uses[relu] != 2 || uses[bit] != 2 {
        return None;
    }
    let is_gradient = |n: &GraphNode| n.op == GraphOp::MaxPool2dGrad { window } && n.inputs[0] == relu;
    let gradient = pool + 1 + nodes[pool + 1..].iter().position(is_gradient)?;
    let chooses = |n: &GraphNode| n.op == GraphOp::Choose && n.inputs == [bit, gradient];
    let chosen = gradient + 1 + nodes[gradient + 1..].iter().position(chooses)?;
    (uses[gradient] == 1).then_some(Group { gradient, chosen })
}

/// The bit of a ReLU that is written as a choice.
fn bit_of_relu(nodes: &[GraphNode], relu: usize) -> Option<usize> {
    let [bit, x] = *nodes[relu].inputs.as_slice() else { return None };
    let is =
        nodes[relu].op == GraphOp::Choose && nodes[bit].op == GraphOp::Positive && nodes[bit].inputs[0] == x;
    is.then_some(bit)
}

fn before_relu(graph: &Rewrite<'_>, relu: usize) -> usize {
    graph.nodes[relu].inputs[1]
}
