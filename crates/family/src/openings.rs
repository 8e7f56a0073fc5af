//! Every opening that a plan leads to, known before anything runs: the list's form. Each family writes its own
//! list, in its crate.

use privet_plan::ir::{Node, Plan, ValueId};
use serde::Serialize;

/// What an opening tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "class")]
pub enum Class {
    /// Uniform whatever the secrets are: nothing.
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
    /// While what a run uses up is prepared, once a run.
    Preparation,
    /// In every run.
    Run,
}

/// One opening: one round, or (inputs, weights, outputs) one message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedOpening {
    /// Position in the list, from 1.
    pub step: usize,
    /// Node of the plan; absent where an opening belongs to the run as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<ValueId>,
    /// Layer of the model.
    pub layer: String,
    /// What is opened.
    pub what: String,
    /// Elements.
    pub elements: u64,
    /// Bits of all elements together.
    pub bits: u64,
    /// When it happens.
    pub when: When,
    /// What it tells, and to whom.
    #[serde(flatten)]
    pub class: Class,
}

/// Openings in the order in which they happen.
#[derive(Debug, Default)]
pub struct OpeningList(Vec<PlannedOpening>);

impl OpeningList {
    /// An opening at node `id` of `elements` elements of `bits` bits each that tells nobody anything.
    pub fn masked(
        &mut self,
        id: ValueId,
        node: &Node,
        what: impl Into<String>,
        elements: u64,
        bits: u32,
        when: When,
    ) {
        let bits = elements * u64::from(bits);
        self.push(Some(id), &node.layer, what.into(), (elements, bits), when, Class::Masked);
    }

    /// The value of node `id` itself, masked.
    pub fn value(&mut self, id: ValueId, node: &Node, what: impl Into<String>, when: When) {
        self.masked(id, node, what, node.ty.len() as u64, node.ty.bits, when);
    }

    /// An opening of the whole run, of `bits` bits in `elements` elements, that tells nobody anything.
    pub fn masked_run(&mut self, what: impl Into<String>, elements: u64, bits: u64) {
        self.push(None, "", what.into(), (elements, bits), When::Run, Class::Masked);
    }

    /// The same of the session, when its weights are shared.
    pub fn masked_session(&mut self, what: impl Into<String>, elements: u64, bits: u64) {
        self.push(None, "", what.into(), (elements, bits), When::Session, Class::Masked);
    }

    /// The plan's outputs, each to its receiver: what every family reveals.
    pub fn outputs(&mut self, plan: &Plan) {
        for o in &plan.outputs {
            let node = &plan.nodes[o.value];
            let elements = node.ty.len() as u64;
            let size = (elements, elements * u64::from(node.ty.bits));
            let class = Class::Revealed { to: o.to.clone() };
            self.push(Some(o.value), &node.layer, format!("output `{}`", o.name), size, When::Run, class);
        }
    }

    /// The list.
    pub fn finish(self) -> Vec<PlannedOpening> {
        self.0
    }

    fn push(
        &mut self,
        node: Option<ValueId>,
        layer: &str,
        what: String,
        (elements, bits): (u64, u64),
        when: When,
        class: Class,
    ) {
        let step = self.0.len() + 1;
        self.0.push(PlannedOpening { step, node, layer: layer.into(), what, elements, bits, when, class });
    }
}
