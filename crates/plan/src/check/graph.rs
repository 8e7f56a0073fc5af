use super::{MAX_NODES, PlanError, check_name, checked_len, whole};
use crate::graph::{GRAPH_VERSION, Graph, GraphOp};
use std::collections::HashSet;

impl Graph {
    /// Check topology, sizes, names and numbers. Shapes are checked against the operations when the graph is
    /// lowered ([`fn@crate::lower`]), since the plan it becomes is checked in full.
    pub fn check(&self) -> Result<(), PlanError> {
        if self.version != GRAPH_VERSION {
            return Err(PlanError::Version { found: self.version, expected: GRAPH_VERSION });
        }
        whole("name", check_name(&self.name, true))?;
        whole("batch", if self.batch == 0 { Err("must be at least 1".into()) } else { Ok(()) })?;
        if self.nodes.len() > MAX_NODES {
            return Err(PlanError::Whole(format!("{} nodes, at most {MAX_NODES}", self.nodes.len())));
        }
        let mut inputs = HashSet::new();
        for (id, node) in self.nodes.iter().enumerate() {
            let problem = |problem: String| PlanError::Node { node: id, layer: node.layer.clone(), problem };
            check_name(&node.layer, true).map_err(problem)?;
            if let Some(&later) = node.inputs.iter().find(|&&i| i >= id) {
                return Err(problem(format!("operand {later} does not come before the node")));
            }
            checked_len(&node.shape).map_err(problem)?;
            if let Some([lo, hi]) = node.range
                && !(lo.is_finite() && hi.is_finite() && lo <= hi)
            {
                return Err(problem("its calibrated range is not a pair of ordered numbers".into()));
            }
            check_op(&node.op, node.inputs.len()).map_err(problem)?;
            if let GraphOp::Input { name, .. } = &node.op {
                if !inputs.insert(name) {
                    return Err(problem(format!("two inputs are named {name}")));
                }
                // in training several owners' rows make up the batch
                if self.updates.is_empty() && node.shape.first() != Some(&self.batch) {
                    return Err(problem(format!(
                        "input {name} of shape {:?} does not begin with the batch of {}",
                        node.shape, self.batch
                    )));
                }
            }
        }
        self.check_outputs()
    }

    fn check_outputs(&self) -> Result<(), PlanError> {
        let nothing = self.outputs.is_empty() && self.updates.is_empty();
        whole("outputs", if nothing { Err("there is none".into()) } else { Ok(()) })?;
        let state = |v: usize| matches!(self.nodes.get(v), Some(n) if matches!(n.op, GraphOp::State { .. }));
        if self.updates.iter().any(|u| !state(u.state) || u.node >= self.nodes.len()) {
            return Err(PlanError::Whole("an update names a node that is not there, or no state".into()));
        }
        let mut names = HashSet::new();
        for output in &self.outputs {
            whole("output name", check_name(&output.name, false))?;
            if output.node >= self.nodes.len() || !names.insert(&output.name) {
                return Err(PlanError::Whole(format!(
                    "output {} names a node that is not there, or two outputs share its name",
                    output.name
                )));
            }
        }
        Ok(())
    }
}

fn check_op(op: &GraphOp, operands: usize) -> Result<(), String> {
    use GraphOp::*;
    let arity = match op {
        Input { .. } | Parameter { .. } | State { .. } | Public { .. } => 0..=0,
        Positive | Relu | Clamp { .. } | LeakyRelu { .. } | Neg | Smooth { .. } | Dropout { .. } => 1..=1,
        AddScalar { .. } | MulScalar { .. } | Mean { .. } | Sum { .. } | Argmax { .. } => 1..=1,
        MaxPool2d { .. } | AvgPool2d { .. } | AdaptiveAvgPool2d { .. } | AvgPool2dGrad { .. } => 1..=1,
        Reshape | Permute { .. } | Slice { .. } | Reverse { .. } | Pad { .. } | Expand => 1..=1,
        Choose | Conv2dInputGrad { .. } | Conv2dWeightGrad { .. } | MaxPool2dGrad { .. } => 2..=2,
        MatMul | Add | Sub | Mul => 2..=2,
        Conv2d { .. } | Linear => 2..=3,
        BatchNorm { .. } => 5..=5,
        Concat { .. } | InRange { .. } => 1..=usize::MAX,
        Unsupported { .. } => 0..=usize::MAX,
    };
    if !arity.contains(&operands) {
        return Err(format!("{operands} operands"));
    }
    if constants(op).iter().any(|v| !v.is_finite()) {
        return Err("a constant is not a finite number".into());
    }
    match op {
        Input { name, .. } | Parameter { name } | State { name, .. } => check_name(name, false),
        InRange { limit } if !(limit.log2().fract() == 0.0 && (1.0..=16384.0).contains(limit)) => {
            Err(format!("a limit of {limit}, which is not a power of two from 1 to 2^14"))
        }
        Public { name, limit } if *limit > 0.0 => check_name(name, false),
        Public { .. } => Err("the limit of a public number is not above 0".into()),
        Dropout { keep, .. } if !(*keep > 0.0 && *keep < 1.0) => {
            Err(format!("keeps elements with probability {keep}"))
        }
        AvgPool2d { divisor: Some(0), .. } | AvgPool2dGrad { divisor: Some(0), .. } => {
            Err("divides by zero".into())
        }
        Clamp { lo: Some(lo), hi: Some(hi) } if lo > hi => Err(format!("clamps to [{lo}, {hi}]")),
        InRange { .. } | Dropout { .. } | AvgPool2d { .. } | AvgPool2dGrad { .. } | Clamp { .. } => Ok(()),
        // what else there is to check are shapes, when the graph is lowered
        Positive | Relu | LeakyRelu { .. } | Neg | Smooth { .. } | AddScalar { .. } | MulScalar { .. } => {
            Ok(())
        }
        Mean { .. } | Sum { .. } | Argmax { .. } | Add | Sub | Mul | Choose | BatchNorm { .. } => Ok(()),
        Conv2d { .. } | Conv2dInputGrad { .. } | Conv2dWeightGrad { .. } | Linear | MatMul => Ok(()),
        MaxPool2d { .. } | MaxPool2dGrad { .. } | AdaptiveAvgPool2d { .. } => Ok(()),
        Reshape | Permute { .. } | Slice { .. } | Reverse { .. } | Pad { .. } | Expand => Ok(()),
        Concat { .. } | Unsupported { .. } => Ok(()),
    }
}

/// The real numbers that an operation is given.
fn constants(op: &GraphOp) -> Vec<f64> {
    use GraphOp::*;
    match op {
        BatchNorm { eps } => vec![*eps],
        LeakyRelu { slope } => vec![*slope],
        AddScalar { value } | MulScalar { value } => vec![*value],
        Clamp { lo, hi } => [*lo, *hi].into_iter().flatten().collect(),
        Public { limit, .. } | InRange { limit } => vec![*limit],
        Dropout { keep, .. } => vec![*keep],
        Input { .. } | Parameter { .. } | State { .. } | Unsupported { .. } => vec![],
        Positive | Relu | Neg | Smooth { .. } | Choose | Add | Sub | Mul | Linear | MatMul => vec![],
        Conv2d { .. } | Conv2dInputGrad { .. } | Conv2dWeightGrad { .. } => vec![],
        MaxPool2d { .. } | MaxPool2dGrad { .. } | AdaptiveAvgPool2d { .. } => vec![],
        AvgPool2d { .. } | AvgPool2dGrad { .. } | Mean { .. } | Sum { .. } | Argmax { .. } => vec![],
        Reshape | Permute { .. } | Slice { .. } | Reverse { .. } | Pad { .. } | Expand => vec![],
        Concat { .. } => vec![],
    }
}
