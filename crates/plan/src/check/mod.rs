//! Checks of plans and graphs that came from outside: topology, shapes, ring bits, bounded sizes. What passed
//! can be interpreted, dealt and run without a further look.

mod graph;
mod shape;
mod types;

use crate::form::Form;
use crate::ir::{Op, PLAN_VERSION, Plan};
use crate::ops;
use std::collections::HashSet;
use thiserror::Error;

pub(crate) use shape::{MAX_POOLED, bounded_by, checked_len, conv_geometry, pool_output};

/// Most nodes of a plan.
pub const MAX_NODES: usize = 1 << 16;
/// Most elements of one value.
pub const MAX_ELEMENTS: usize = 1 << 31;
/// Most dimensions of one value.
pub const MAX_DIMS: usize = 8;
/// Longest name, in bytes.
pub const MAX_NAME: usize = 4096;

/// A plan or graph that must not be run.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum PlanError {
    /// The file is larger than any sensible plan.
    #[error(
        "{bytes} bytes are too many for a plan (at most {}); is this the right file?",
        crate::codec::MAX_JSON_BYTES
    )]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// Not JSON, or not a plan's JSON.
    #[error("not a plan: {0}")]
    Json(String),
    /// Written for another version of the format.
    #[error(
        "format version {found}, but this build reads version {expected}; compile the model again with it"
    )]
    Version {
        /// In the file.
        found: u32,
        /// Ours.
        expected: u32,
    },
    /// Something about the plan as a whole.
    #[error("{0}")]
    Whole(String),
    /// Something about one node.
    #[error("node {node} ({layer}): {problem}")]
    Node {
        /// Its index.
        node: usize,
        /// Its layer.
        layer: String,
        /// What is wrong.
        problem: String,
    },
    /// Something about one plan of a program.
    #[error("plan {plan}: {problem}")]
    InPlan {
        /// Its name.
        plan: String,
        /// What is wrong.
        problem: Box<PlanError>,
    },
}

impl Plan {
    /// Check everything that the rest of privet relies on. Costs time linear in the plan's size (not in that
    /// of its tensors) and never panics.
    pub fn check(&self) -> Result<(), PlanError> {
        if self.version != PLAN_VERSION {
            return Err(PlanError::Version { found: self.version, expected: PLAN_VERSION });
        }
        whole("name", check_name(&self.name, true))?;
        whole("batch", if self.batch == 0 { Err("must be at least 1".into()) } else { Ok(()) })?;
        if self.nodes.len() > MAX_NODES {
            return Err(PlanError::Whole(format!("{} nodes, at most {MAX_NODES}", self.nodes.len())));
        }
        let (mut inputs, mut weights) = (HashSet::new(), HashSet::new());
        for (id, node) in self.nodes.iter().enumerate() {
            let problem = |problem: String| PlanError::Node { node: id, layer: node.layer.clone(), problem };
            check_name(&node.layer, true).map_err(problem)?;
            if let Some(&later) = node.inputs.iter().find(|&&i| i >= id) {
                return Err(problem(format!("operand {later} does not come before the node")));
            }
            for (i, &operand) in node.inputs.iter().enumerate() {
                let public = matches!(self.nodes[operand].op, Op::Public { .. });
                if public != (node.op == Op::Scale && i == 1) {
                    return Err(problem(
                        "scales by a number that is not public, or reads one otherwise".into(),
                    ));
                }
            }
            let operands: Vec<_> = node.inputs.iter().map(|&i| &self.nodes[i].ty).collect();
            types::check_node(&node.op, &operands, &node.ty).map_err(problem)?;
            if let Some(form) = node.form {
                if !Form::applies(&node.op) {
                    return Err(problem("it has a form of comparison, but compares nothing".into()));
                }
                form.check().map_err(problem)?;
            }
            let fresh = match &node.op {
                Op::Input { name, .. } | Op::Public { name, .. } => inputs.insert(name),
                Op::Weight { name, .. } | Op::State { name, .. } => weights.insert(name),
                ops!(local) | ops!(gate) => true,
            };
            if !fresh {
                return Err(problem("its name is already taken by an earlier node".into()));
            }
        }
        self.check_outputs()?;
        self.check_updates()
    }

    fn check_updates(&self) -> Result<(), PlanError> {
        let mut updated = HashSet::new();
        for update in &self.updates {
            let (Some(state), Some(value)) = (self.nodes.get(update.state), self.nodes.get(update.value))
            else {
                return Err(PlanError::Whole("an update names a node that is not there".into()));
            };
            let problem = |problem: &str| PlanError::Node {
                node: update.state,
                layer: state.layer.clone(),
                problem: problem.into(),
            };
            if !matches!(state.op, Op::State { .. }) {
                return Err(problem("only states are updated"));
            }
            if matches!(value.op, Op::Public { .. }) || state.ty != value.ty {
                return Err(problem("its update is of another type"));
            }
            if !updated.insert(update.state) {
                return Err(problem("it is updated twice"));
            }
        }
        Ok(())
    }

    fn check_outputs(&self) -> Result<(), PlanError> {
        let nothing = self.outputs.is_empty() && self.updates.is_empty();
        whole("outputs", if nothing { Err("there is none".into()) } else { Ok(()) })?;
        let mut names = HashSet::new();
        for output in &self.outputs {
            whole("output name", check_name(&output.name, false))?;
            whole("output receiver", check_name(&output.to, false))?;
            if output.value >= self.nodes.len() {
                return Err(PlanError::Whole(format!(
                    "output {} is node {}, which is not there",
                    output.name, output.value
                )));
            }
            if !names.insert(&output.name) {
                return Err(PlanError::Whole(format!("two outputs are named {}", output.name)));
            }
            if let Op::Public { name, .. } = &self.nodes[output.value].op {
                return Err(PlanError::Whole(format!("output {} is the public number {name}", output.name)));
            }
        }
        Ok(())
    }
}

pub(crate) fn whole(what: &str, result: Result<(), String>) -> Result<(), PlanError> {
    result.map_err(|e| PlanError::Whole(format!("{what}: {e}")))
}

pub(crate) fn check_name(name: &str, may_be_empty: bool) -> Result<(), String> {
    match name.len() {
        0 if !may_be_empty => Err("a name is empty".into()),
        n if n > MAX_NAME => Err(format!("a name of {n} bytes, at most {MAX_NAME}")),
        _ if name.chars().any(char::is_control) => Err("a name has control characters".into()),
        _ => Ok(()),
    }
}
