//! Every opening that a plan leads to under `fss`, known before anything runs.
//!
//! The list follows from the plan alone: it is what the evaluators will open, in their order (a test compares the
//! two). *Masked*: the mask is uniform in the ring, fresh, and known to no evaluator, so the opened value is uniform
//! whatever the secret is. *Revealed*: the receiver learns the value itself.

use privet_family::{Facts, Forecast, OpeningList, PlannedOpening, When};
use privet_plan::cost::Security;
use privet_plan::ir::{Node, Op, Rounding, ValueId};
use privet_plan::tournament::{self, Tournament};
use privet_plan::{Plan, Refusal, Target};

/// The family, as estimates and audits see it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fss;

/// What holds for all plans.
pub const FACTS: Facts = Facts {
    name: "fss",
    parties: 2..=2,
    has_dealer: true,
    needs_preparation: true,
    withstands: &[Security::SemiHonest],
};

/// Every checked plan can be run.
impl Target for Fss {
    fn refusals(&self, _plan: &Plan) -> Vec<Refusal> {
        Vec::new()
    }
}

impl Forecast for Fss {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn openings(&self, plan: &Plan) -> Vec<PlannedOpening> {
        let mut list = OpeningList::default();
        for (id, node) in plan.nodes.iter().enumerate() {
            if let Op::Weight { name, owner } = &node.op {
                list.value(id, node, format!("weight `{name}` of {owner}"), When::Session);
            }
        }
        for (id, node) in plan.nodes.iter().enumerate() {
            if let Op::Input { name, owner, .. } = &node.op {
                list.value(id, node, format!("input `{name}` of {owner}"), When::Run);
            }
        }
        for (id, node) in plan.nodes.iter().enumerate() {
            if let Op::State { name, .. } = &node.op {
                list.value(id, node, format!("state `{name}`"), When::Run);
            }
        }
        for (id, node) in plan.nodes.iter().enumerate() {
            openings(&mut list, plan, id, node);
        }
        list.outputs(plan);
        list.finish()
    }

    fn remark(&self) -> &'static str {
        "Masked values are uniform whatever the data are. Both parties also know the plan itself: shapes, layer\n\
         types and fixed-point formats. The dealer sees no message of a run."
    }
}

fn openings(list: &mut OpeningList, plan: &Plan, id: ValueId, node: &Node) {
    let operand = |i: usize| &plan.nodes[node.inputs[i]].ty;
    match &node.op {
        Op::Choose => list.value(id, node, "chosen", When::Run),
        Op::Linear | Op::MatMul | Op::Conv2d { .. } | Op::Mul | Op::Scale | Op::Select => {
            list.value(id, node, "product", When::Run);
        }
        Op::Dither { .. } | Op::Truncate { rounding: Rounding::Stochastic, .. } => {
            list.value(id, node, "truncated", When::Run);
        }
        Op::Truncate { .. } => compare(list, id, node, "carry bit", "truncated"),
        Op::Lookup { .. } | Op::Piecewise { .. } => list.value(id, node, "looked up", When::Run),
        Op::Exponential { .. } => list.value(id, node, "exponential", When::Run),
        Op::Extend => compare(list, id, node, "carry bit", "extended"),
        Op::Relu | Op::Max => compare(list, id, node, "sign bit", "relu"),
        Op::IsNegative if node.ty.bits == 1 => list.value(id, node, "sign bit", When::Run),
        Op::IsNegative => compare(list, id, node, "sign bit", "sign"),
        Op::Equal => compare(list, id, node, "equality bit", "equality"),
        Op::MaxPool2d { window } => {
            let bits = node.ty.bits;
            let tournaments = tournament::max_pool(window, &operand(0).shape);
            tournaments.iter().for_each(|t| tournament(list, id, node, t, &[("relu", bits)]));
        }
        Op::Argmax { dim } => {
            let operand = operand(0);
            let games = tournament::argmax(&operand.shape, *dim);
            let opened = [("larger", operand.bits), ("index of larger", node.ty.bits)];
            tournament(list, id, node, &games, &opened);
        }
        Op::Input { .. }
        | Op::Weight { .. }
        | Op::State { .. }
        | Op::Public { .. }
        | Op::Dropout { .. }
        | Op::Reverse { .. }
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
        | Op::Expand
        | Op::Mix { .. }
        | Op::ShiftUp { .. }
        | Op::Approximates { .. } => {}
    }
}

/// A masked comparison bit an element, then the masked result.
fn compare(list: &mut OpeningList, id: ValueId, node: &Node, bit: &str, value: &str) {
    list.masked(id, node, bit, node.ty.len() as u64, 1, When::Run);
    list.value(id, node, value, When::Run);
}

/// Level by level a masked sign bit a pair, then the masked values that the winner brings.
fn tournament(
    list: &mut OpeningList,
    id: ValueId,
    node: &Node,
    tournament: &Tournament,
    opened: &[(&str, u32)],
) {
    for level in &tournament.levels {
        let pairs = level.pair_len() as u64;
        if pairs == 0 {
            continue;
        }
        list.masked(id, node, "sign bit", pairs, 1, When::Run);
        for (what, bits) in opened {
            list.masked(id, node, *what, pairs, *bits, When::Run);
        }
    }
}
