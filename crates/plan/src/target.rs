//! The family that a plan is meant for, as far as compiling and checking need to know it.

use crate::cost::Prices;
use crate::ir::{Plan, ValueId};
use crate::program::Program;
use std::fmt;
use thiserror::Error;

/// A family that plans are compiled for: what operations cost under it, and which plans it refuses.
pub trait Target: Prices {
    /// Every node of a checked plan that this family must not run, though another may. Who compiles, estimates or serves
    /// the plan refuses it with the list; an empty list lets it through.
    fn refusals(&self, plan: &Plan) -> Vec<Refusal>;
}

/// A node that a family refuses, and why. A plan has no source lines; compiling a model adds the layer's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The node.
    pub node: ValueId,
    /// Its layer.
    pub layer: String,
    /// What is wrong.
    pub problem: String,
    /// What the user can do.
    pub remedy: String,
}

impl Refusal {
    /// Of node `node` of `plan`.
    pub fn of(plan: &Plan, node: ValueId, problem: impl Into<String>, remedy: impl Into<String>) -> Refusal {
        let layer = plan.nodes[node].layer.clone();
        Refusal { node, layer, problem: problem.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.node)?;
        if !self.layer.is_empty() {
            write!(f, " ({})", self.layer)?;
        }
        write!(f, ": {}", self.problem)?;
        write!(f, "; {}", self.remedy)
    }
}

/// A plan or program that a family must not run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("protocol {protocol} refuses plan {plan}: {}", list(refusals))]
pub struct Refused {
    /// The family.
    pub protocol: &'static str,
    /// The plan's name; in a program, the name that it has there.
    pub plan: String,
    /// Why; there is at least one.
    pub refusals: Vec<Refusal>,
}

fn list(refusals: &[Refusal]) -> String {
    refusals.iter().map(Refusal::to_string).collect::<Vec<_>>().join("\n")
}

/// Refuse a checked plan that `target` must not run.
pub fn admit(plan: &Plan, name: &str, target: &dyn Target) -> Result<(), Refused> {
    let refusals = target.refusals(plan);
    if refusals.is_empty() {
        return Ok(());
    }
    Err(Refused { protocol: target.protocol(), plan: name.into(), refusals })
}

/// [`admit`] every plan of a checked program.
pub fn admit_all(program: &Program, target: &dyn Target) -> Result<(), Refused> {
    program.plans.iter().try_for_each(|named| admit(&named.plan, &named.name, target))
}
