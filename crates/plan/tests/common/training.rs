//! One step of a lowered graph of training, in integers and in real numbers.

use super::Numbers;
use super::build::Model;
use super::gradients::coins;
use super::reference::evaluate;
use privet_plan::graph::GraphOp;
use privet_plan::ir::Op;
use privet_plan::lower::RoundingMode;
use privet_plan::suite::Toll;
use privet_plan::target::Target;
use privet_plan::{
    Coins, FloatTensor, Plan, Precision, decode_outputs, encode::fixed_point, encode_inputs, encode_publics,
    encode_states, encode_weights, interpret_real_step, interpret_step, lower,
};
use std::collections::BTreeMap;

pub type Tensors = BTreeMap<String, FloatTensor>;

pub fn precision() -> Precision {
    Precision { keep_ring: true, rounding: RoundingMode::Stochastic, ..Precision::default() }
}

/// Coins of stochastic rounding, and the reference's of dropout.
pub struct Random(pub Numbers);

impl Coins for Random {
    fn draw(&mut self, _: usize, count: usize, _: u32) -> Option<Vec<u64>> {
        Some(self.0.words(count))
    }

    fn dropout(&mut self, stream: u32, count: usize) -> Option<Vec<u64>> {
        Some(coins(stream, count))
    }
}

/// A lowered graph, and the tensors that it reads.
pub struct Step {
    pub plan: Plan,
    pub parameters: Tensors,
}

impl Step {
    pub fn new(model: &Model, precision: &Precision) -> Step {
        Step::on(model, precision, &Toll)
    }

    /// Lowered for a family.
    pub fn on(model: &Model, precision: &Precision, target: &dyn Target) -> Step {
        let lowered = lower(&model.graph, &model.params, precision, target).unwrap_or_else(|e| panic!("{e}"));
        let plan = lowered.plan;
        plan.check().unwrap();
        Step { plan, parameters: lowered.parameters }
    }

    /// Outputs and states after a step over real numbers.
    pub fn real(&self, inputs: &Tensors, states: &Tensors) -> (Vec<FloatTensor>, Tensors) {
        let mut given = self.parameters.clone();
        given.extend(states.clone());
        interpret_real_step(&self.plan, inputs, &given, &mut Random(Numbers(1))).unwrap()
    }

    /// The same in the plan's integers.
    pub fn whole(&self, inputs: &Tensors, states: &Tensors, seed: u64) -> (Vec<FloatTensor>, Tensors) {
        let plan = &self.plan;
        let mut shared = encode_inputs(plan, None, inputs).unwrap();
        let publics = inputs.iter().map(|(name, t)| (name.clone(), t.data[0])).collect();
        shared.extend(encode_publics(plan, &publics).unwrap());
        let mut given = encode_weights(plan, None, &self.parameters).unwrap();
        given.extend(encode_states(plan, None, states).unwrap());
        let (outputs, next) = interpret_step(plan, &shared, &given, &mut Random(Numbers(seed)))
            .unwrap_or_else(|e| panic!("{e}"));
        let node = |name: &str| {
            let is = |op: &Op| matches!(op, Op::State { name: n, .. } if n == name);
            plan.nodes.iter().find(|n| is(&n.op)).unwrap()
        };
        let decode = |(name, t): (&String, &privet_ring::Tensor)| {
            let data = fixed_point(node(name)).decode(t.data());
            (name.clone(), FloatTensor { shape: t.shape().to_vec(), data })
        };
        (decode_outputs(plan, &outputs), next.iter().map(decode).collect())
    }
}

pub fn largest_difference(a: &FloatTensor, b: &FloatTensor) -> f64 {
    assert_eq!(a.shape, b.shape);
    a.data.iter().zip(&b.data).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
}

/// The lowered graph gives what the reference does: over real numbers but for rounding of constants, in integers within
/// `bound`. Outputs and updates.
pub fn agrees(model: &Model, bound: f64) -> Plan {
    agrees_on(model, bound, &Toll)
}

/// The same of what is lowered for a family.
pub fn agrees_on(model: &Model, bound: f64, target: &dyn Target) -> Plan {
    let step = Step::on(model, &precision(), target);
    let reference = evaluate(&model.graph, &model.inputs, &model.params);
    let (real, real_next) = step.real(&model.inputs, &model.params);
    let (whole, next) = step.whole(&model.inputs, &model.params, 7);
    for (i, output) in model.graph.outputs.iter().enumerate() {
        let want = &reference[output.node];
        let differences = [largest_difference(&real[i], want), largest_difference(&whole[i], want)];
        assert!(differences[0] < bound / 4.0 && differences[1] < bound, "{}: {differences:?}", output.name);
    }
    assert_eq!(next.len(), model.graph.updates.len());
    for update in &model.graph.updates {
        let GraphOp::State { name, .. } = &model.graph.nodes[update.state].op else { panic!("no state") };
        let want = &reference[update.node];
        let differences = [largest_difference(&real_next[name], want), largest_difference(&next[name], want)];
        assert!(differences[0] < bound / 4.0 && differences[1] < bound, "{name}: {differences:?}");
    }
    step.plan
}

/// Nodes of a kind.
pub fn count(plan: &Plan, kind: &str) -> usize {
    plan.nodes.iter().filter(|n| n.op.kind() == kind).count()
}

/// Every value but bits and what only the guard reads is in the one ring, and nothing is extended.
pub fn keeps_ring(plan: &Plan) {
    for node in &plan.nodes {
        let compared =
            matches!(node.op, Op::Reduce | Op::AddConst { .. } | Op::IsNegative) || node.ty.bits == 1;
        assert!(node.ty.bits == 64 || compared, "{node:?}");
    }
    assert_eq!(count(plan, "extend"), 0);
}
