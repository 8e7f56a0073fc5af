//! Every opening that a plan leads to under protocol `fss`, known before anything runs.
//!
//! The list follows from the plan alone: it is what the evaluators will open, in their order (an engine test
//! compares the two). *Masked*: the mask is uniform in the ring, fresh, and known to no evaluator, so the
//! opened value is uniform whatever the secret is. *Revealed*: the receiver learns the value itself.

use privet_plan::Plan;
use privet_plan::ir::{Node, Op};
use privet_plan::tournament::{self, Tournament};
use serde::Serialize;

/// What an opening tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "class")]
pub enum Class {
    /// Uniform: nothing.
    Masked,
    /// The value, to one role.
    Revealed {
        /// The role.
        to: String,
    },
}

/// How often an opening happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// Once, when weights are shared.
    Session,
    /// In every run.
    Run,
}

/// One opening: one round, or (inputs, weights, outputs) one message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Opening {
    /// Position in the list, from 1.
    pub step: usize,
    /// Node of the plan.
    pub node: usize,
    /// Layer of the model.
    pub layer: String,
    /// What is opened.
    pub what: String,
    /// Elements.
    pub elements: u64,
    /// Bits of all elements together.
    pub bits: u64,
    /// Once a session or in every run.
    pub when: When,
    /// What it tells, and to whom.
    #[serde(flatten)]
    pub class: Class,
}

/// List every opening of `plan`, which must have passed [`Plan::check`].
pub fn audit(plan: &Plan) -> Vec<Opening> {
    let mut list = List(Vec::new());
    for (id, node) in plan.nodes.iter().enumerate() {
        if let Op::Weight { name, owner } = &node.op {
            list.values(id, node, format!("weight `{name}` of {owner}"), When::Session);
        }
    }
    for (id, node) in plan.nodes.iter().enumerate() {
        list.node(plan, id, node);
    }
    for output in &plan.outputs {
        let node = &plan.nodes[output.value];
        let elements = node.ty.len() as u64;
        list.0.push(Opening {
            step: list.0.len() + 1,
            node: output.value,
            layer: node.layer.clone(),
            what: format!("output `{}`", output.name),
            elements,
            bits: elements * u64::from(node.ty.bits),
            when: When::Run,
            class: Class::Revealed { to: output.to.clone() },
        });
    }
    list.0
}

struct List(Vec<Opening>);

impl List {
    fn node(&mut self, plan: &Plan, id: usize, node: &Node) {
        let operand = |i: usize| &plan.nodes[node.inputs[i]].ty;
        match &node.op {
            Op::Input { name, owner, .. } => {
                self.values(id, node, format!("input `{name}` of {owner}"), When::Run);
            }
            Op::Linear | Op::MatMul | Op::Conv2d { .. } | Op::Mul | Op::Select => {
                self.values(id, node, "product".into(), When::Run);
            }
            Op::Truncate { .. } => self.compare(id, node, "carry bit", "truncated"),
            Op::Extend => self.compare(id, node, "carry bit", "extended"),
            Op::Relu | Op::Max => self.compare(id, node, "sign bit", "relu"),
            Op::IsNegative => self.compare(id, node, "sign bit", "sign"),
            Op::Equal => self.compare(id, node, "equality bit", "equality"),
            Op::MaxPool2d { window } => {
                let bits = node.ty.bits;
                let tournaments = tournament::max_pool(window, &operand(0).shape);
                tournaments.iter().for_each(|t| self.tournament(id, node, t, &[("relu", bits)]));
            }
            Op::Argmax { dim } => {
                let operand = operand(0);
                let tournament = tournament::argmax(&operand.shape, *dim);
                let opened = [("larger", operand.bits), ("index of larger", node.ty.bits)];
                self.tournament(id, node, &tournament, &opened);
            }
            Op::Weight { .. }
            | Op::Add
            | Op::Sub
            | Op::Neg
            | Op::AddConst { .. }
            | Op::MulConst { .. }
            | Op::SumPool2d { .. }
            | Op::AdaptiveSumPool2d
            | Op::Sum { .. }
            | Op::Reduce
            | Op::Rescale
            | Op::Reshape
            | Op::Permute { .. }
            | Op::Slice { .. }
            | Op::Concat { .. }
            | Op::Pad { .. }
            | Op::Expand => {}
        }
    }

    /// A masked comparison bit an element, then the masked result.
    fn compare(&mut self, id: usize, node: &Node, bit: &str, value: &str) {
        let n = node.ty.len() as u64;
        self.masked(id, node, bit.into(), n, 1, When::Run);
        self.masked(id, node, value.into(), n, node.ty.bits, When::Run);
    }

    /// Level by level a masked sign bit a pair, then the masked values that the winner brings.
    fn tournament(&mut self, id: usize, node: &Node, tournament: &Tournament, opened: &[(&str, u32)]) {
        for level in &tournament.levels {
            let pairs = level.pair_len() as u64;
            if pairs == 0 {
                continue;
            }
            self.masked(id, node, "sign bit".into(), pairs, 1, When::Run);
            for (what, bits) in opened {
                self.masked(id, node, (*what).into(), pairs, *bits, When::Run);
            }
        }
    }

    fn values(&mut self, id: usize, node: &Node, what: String, when: When) {
        self.masked(id, node, what, node.ty.len() as u64, node.ty.bits, when);
    }

    fn masked(&mut self, id: usize, node: &Node, what: String, elements: u64, bits: u32, when: When) {
        self.0.push(Opening {
            step: self.0.len() + 1,
            node: id,
            layer: node.layer.clone(),
            what,
            elements,
            bits: elements * u64::from(bits),
            when,
            class: Class::Masked,
        });
    }
}
