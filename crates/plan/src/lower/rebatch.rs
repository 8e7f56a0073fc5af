use super::infer::infer;
use crate::check::PlanError;
use crate::graph::{Graph, GraphNode, GraphOp};

impl Graph {
    /// The same model for `n` rows: dimension 0 of every input becomes n, and so on through the graph. An error names
    /// the first operation that mixes the batch dimension with others, since its meaning would change.
    pub fn with_batch(&self, n: usize) -> Result<Graph, PlanError> {
        self.check()?;
        if n == self.batch {
            return Ok(self.clone());
        }
        let mut out = Graph { batch: n, nodes: Vec::with_capacity(self.nodes.len()), ..self.clone() };
        let mut batched: Vec<bool> = Vec::with_capacity(self.nodes.len());
        for (id, node) in self.nodes.iter().enumerate() {
            let fail = |problem: String| PlanError::Node { node: id, layer: node.layer.clone(), problem };
            let follows: Vec<bool> = node.inputs.iter().map(|&i| batched[i]).collect();
            let is = match follows.contains(&true) {
                _ if matches!(node.op, GraphOp::Input { .. }) => true,
                false => false,
                true => {
                    let shapes = node.inputs.iter().map(|&i| self.nodes[i].shape.as_slice());
                    keeps_batch(node, &shapes.collect::<Vec<_>>(), &follows, self.batch).map_err(|why| {
                        fail(format!("{why}; capture the model with a batch of {n} instead"))
                    })?;
                    true
                }
            };
            let mut declared = node.shape.clone();
            if is {
                declared[0] = n;
            }
            let shapes = node.inputs.iter().map(|&i| out.nodes[i].shape.as_slice()).collect::<Vec<_>>();
            let shape = infer(&node.op, &shapes, &declared).map_err(fail)?;
            out.nodes.push(GraphNode { shape, ..node.clone() });
            batched.push(is);
        }
        out.check()?;
        Ok(out)
    }
}

/// Whether dimension 0 of the result is the batch again.
pub(super) fn keeps_batch(
    node: &GraphNode,
    shapes: &[&[usize]],
    follows: &[bool],
    batch: usize,
) -> Result<(), String> {
    use GraphOp::*;
    let mixes = |what: &str| Err(format!("{what} mixes the rows of a batch"));
    match &node.op {
        Conv2d { .. } | Linear | BatchNorm { .. } => {
            if follows[1..].contains(&true) {
                return mixes("a weight that depends on the input");
            }
            if shapes[0].len() < 2 {
                return mixes("a layer on a vector");
            }
        }
        MatMul => {
            let joined = if shapes[0].len() == 2 { !follows[1] } else { follows[0] && follows[1] };
            if !joined {
                return mixes("a matrix product");
            }
        }
        Add | Sub | Mul => {
            let aligned = |(shape, &batched): (&&[usize], &bool)| {
                let leads = shape.len() == node.shape.len();
                if batched { leads } else { !leads || shape[0] == 1 }
            };
            if !shapes.iter().zip(follows).all(aligned) {
                return mixes("broadcasting");
            }
        }
        Concat { dim } if *dim == 0 || follows.contains(&false) => return mixes("a concatenation"),
        Sum { dims, .. } | Mean { dims, .. } if dims.contains(&0) => return mixes("a sum"),
        Argmax { dim: 0, .. } => return mixes("argmax"),
        Conv2dWeightGrad { .. } => return mixes("a gradient of weights"),
        Reverse { dims } if dims.contains(&0) => return mixes("a reversal"),
        Smooth { function } if function.dim() == Some(0) => return mixes("a softmax"),
        Slice { dim: 0, .. } => return mixes("a slice"),
        Permute { dims } if dims.first() != Some(&0) => return mixes("a permutation"),
        Pad { amounts } if amounts.first() != Some(&[0, 0]) => return mixes("padding"),
        Expand if shapes[0].len() != node.shape.len() => return mixes("broadcasting"),
        Reshape | Expand if node.shape.first() != Some(&batch) => return mixes("a reshape"),
        Unsupported { .. } => return Err("an unsupported operation".into()),
        // the rest of those above, which leave dimension 0 alone
        Concat { .. } | Sum { .. } | Mean { .. } | Argmax { .. } | Reverse { .. } | Smooth { .. } => {}
        Slice { .. } | Permute { .. } | Pad { .. } | Expand | Reshape => {}
        // each row by itself
        Positive | Relu | Clamp { .. } | LeakyRelu { .. } | Neg | AddScalar { .. } | MulScalar { .. } => {}
        MaxPool2d { .. } | AvgPool2d { .. } | AdaptiveAvgPool2d { .. } | Choose | Dropout { .. } => {}
        MaxPool2dGrad { .. } | AvgPool2dGrad { .. } | Conv2dInputGrad { .. } => {}
        // these have no rows, or one result for all, which is found below
        Input { .. } | Parameter { .. } | State { .. } | Public { .. } | InRange { .. } => {}
    }
    if node.shape.is_empty() { mixes("a scalar result") } else { Ok(()) }
}
