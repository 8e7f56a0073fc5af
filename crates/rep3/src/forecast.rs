//! Everything that becomes known to anybody in a run, from the plan alone.
//!
//! Parties open nothing to each other: every message is uniform to its receiver (`docs/rep3.md`, section 2), and so are
//! the proofs (section 6). What is left are the shares that owners hand out, two of three components to each party,
//! and the outputs. States are read and replaced in place: nothing of them is opened.

use crate::Security;
use crate::gate::{Kind, kind};
use crate::price::proofs::making_tags;
use crate::price::{packed, tagged};
use privet_family::{Dealing, Facts, Forecast, OpeningList, PlannedOpening, When};
use privet_plan::cost::Prices;
use privet_plan::shown;
use privet_plan::{Plan, Refusal, Target};

/// The family, as estimates and audits see it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rep3 {
    /// Against whom. Verification is paid once a run ([`Prices::run`]); the messages of the nodes are the same but for
    /// some bits that extensions, truncations and ReLUs of these deal only to be proved.
    pub security: Security,
}

impl Rep3 {
    /// Against parties of this kind.
    pub fn new(security: Security) -> Rep3 {
        Rep3 { security }
    }
}

/// What holds for all plans.
pub const FACTS: Facts = Facts {
    name: "rep3",
    about: "three parties of which two are honest",
    collusion: "no party learns anything alone; any two of the three together learn everything",
    parties: 3..=3,
    dealing: Dealing::Never,
    uses_up: None,
    streams: false,
    withstands: &[Security::Malicious, Security::SemiHonest],
    rules: &[],
    parameters: &[],
};

/// A `one_ulp` truncation adds up floors of the three components: its result is a function of the shares, not of the value
/// alone. A receiver who is a party knows two components, and from the sum of the floors it would learn more of the value
/// than the rounded value tells. So such a result is never opened directly; through a gate it is an operand like any
/// other, of a functionality that docs/rep3.md states.
impl Target for Rep3 {
    fn refusals(&self, plan: &Plan) -> Vec<Refusal> {
        let refusal = |id| {
            let problem = "an output shows a truncation with `one_ulp`, whose last unit depends on how shares were drawn";
            let remedy = "compile the model again with this version, which rounds outputs to the nearest";
            Refusal::of(plan, id, problem, remedy)
        };
        let mut all: Vec<Refusal> = shown::inexact(plan).into_iter().map(refusal).collect();
        let unproved = (0..plan.nodes.len()).filter(|&id| !self.has(&plan.nodes[id].op));
        all.extend(unproved.map(|id| {
            let problem = "nobody can prove a sum of waves, and the parties are to prove all that they send";
            Refusal::of(
                plan,
                id,
                problem,
                "compile the model again for malicious security, or run it semi-honest",
            )
        }));
        all
    }
}

impl Rep3 {
    /// What is sent once a session of layers with weights, and proofs of it.
    fn tags(&self, plan: &Plan, list: &mut OpeningList) {
        let mut sent = 0;
        for (id, node) in plan.nodes.iter().enumerate() {
            if let Some(products) = tagged(plan, node) {
                let elements = making_tags(&products).output_len() as u64;
                list.masked(id, node, "shares of tags of weights", elements, node.ty.bits, When::Session);
                sent += packed(elements, node.ty.bits);
            }
        }
        let all = self.preparation(plan).sent.into_iter().max().unwrap_or(0);
        if all > sent {
            list.masked_session("proofs of all tags", (all - sent) / 8, 8 * (all - sent));
        }
    }
}

impl Forecast for Rep3 {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn openings(&self, plan: &Plan) -> Vec<PlannedOpening> {
        let mut list = OpeningList::default();
        for (id, node) in plan.nodes.iter().enumerate() {
            match kind(&node.op) {
                Kind::Weight { name, owner } => {
                    list.value(id, node, format!("shares of weight `{name}` of {owner}"), When::Session);
                }
                // later values are made by the parties, who show them to nobody
                Kind::State { name, owner } => {
                    let what = format!("shares of the first value of state `{name}` of {owner}");
                    list.value(id, node, what, When::Session);
                }
                Kind::Input { .. } | Kind::Public | Kind::Gate(_) => {}
            }
        }
        if self.security == Security::Malicious {
            self.tags(plan, &mut list);
        }
        for (id, node) in plan.nodes.iter().enumerate() {
            if let Kind::Input { name, owner } = kind(&node.op) {
                list.value(id, node, format!("shares of input `{name}` of {owner}"), When::Run);
            }
        }
        if self.security == Security::Malicious {
            let bits = 8 * self.run(plan).wire_bytes.most();
            list.masked_run("proofs of all messages", bits / 64, bits);
        }
        list.outputs(plan);
        list.finish()
    }

    fn remark(&self) -> &'static str {
        match self.security {
            Security::Malicious => {
                "Each party gets two of the three components of a share, which are uniform whatever the data are; so are all\n\
                 messages and proofs. A party that deviates is found out before an output is revealed, but for an error of\n\
                 at most 2^-40. All parties also know the plan itself: shapes, layer types and fixed-point formats."
            }
            Security::SemiHonest => {
                "Each party gets two of the three components of a share, which are uniform whatever the data are; so are all\n\
                 messages. Two parties together know everything, and one that deviates can change results unnoticed.\n\
                 All parties also know the plan itself: shapes, layer types and fixed-point formats."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_family::Class;
    use privet_plan::ir::Op;
    use privet_plan::suite::{cases, training_cases};

    #[test]
    fn only_outputs_are_revealed_and_only_malicious_runs_are_proved() {
        for case in cases().into_iter().chain(training_cases()) {
            let plan = &case.plan;
            let shared = |op: &Op| matches!(op, Op::Input { .. } | Op::Weight { .. } | Op::State { .. });
            let operands = plan.nodes.iter().filter(|n| shared(&n.op)).count();
            for (security, proofs) in [(Security::SemiHonest, 0), (Security::Malicious, 1)] {
                let list = Rep3::new(security).openings(plan);
                let revealed: Vec<_> = list.iter().filter(|o| o.class != Class::Masked).collect();
                assert_eq!(revealed.len(), plan.outputs.len(), "{}", case.name);
                assert!(revealed.iter().zip(&plan.outputs).all(|(r, o)| r.node == Some(o.value)));
                let tags = proofs * plan.nodes.iter().filter(|node| tagged(plan, node).is_some()).count();
                let proofs = proofs + usize::from(tags > 0);
                assert_eq!(list.iter().filter(|o| o.node.is_none()).count(), proofs, "{}", case.name);
                assert_eq!(list.len(), operands + tags + proofs + plan.outputs.len(), "{}", case.name);
            }
        }
    }
}
