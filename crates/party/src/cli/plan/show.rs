use super::hash_text;
use crate::cli::{CliError, Out};
use crate::registry::forecasts;
use privet_plan::form::{named, summary};
use privet_plan::ir::{Op, Type};
use privet_plan::{Plan, admit, ops};
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Shown {
    name: String,
    hash: String,
    version: u32,
    batch: usize,
    inputs: Vec<Value>,
    weights: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    states: Vec<Value>,
    /// How many of the states a run replaces.
    #[serde(skip_serializing_if = "is_zero")]
    updates: usize,
    /// Names of the public numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    publics: Vec<String>,
    outputs: Vec<Value>,
    layers: Vec<Layer>,
    operations: usize,
    /// How many comparisons have which form, where the plan states them.
    #[serde(skip_serializing_if = "Option::is_none")]
    comparisons: Option<String>,
    /// Families that must not run the plan, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refused: Vec<String>,
}

#[derive(Serialize)]
struct Value {
    name: String,
    /// Who shares it, or who learns it.
    role: String,
    #[serde(flatten)]
    ty: Type,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

#[derive(Serialize)]
struct Layer {
    layer: String,
    ops: Vec<String>,
    shape: Vec<usize>,
    bits: u32,
    frac: u32,
}

/// What there is to show of a plan.
pub(super) fn of(plan: &Plan) -> Shown {
    let (mut inputs, mut weights, mut states) = (Vec::new(), Vec::new(), Vec::new());
    let (mut publics, mut layers) = (Vec::new(), Vec::<Layer>::new());
    for node in &plan.nodes {
        let value =
            |name: &str, role: &str| Value { name: name.into(), role: role.into(), ty: node.ty.clone() };
        let ty = &node.ty;
        match &node.op {
            Op::Input { name, owner, .. } => inputs.push(value(name, owner)),
            Op::Weight { name, owner } => weights.push(value(name, owner)),
            Op::State { name, owner } => states.push(value(name, owner)),
            Op::Public { name, .. } => publics.push(name.clone()),
            ops!(local) | ops!(gate) => {
                if layers.last().is_none_or(|l| l.layer != node.layer) {
                    let (layer, shape) = (node.layer.clone(), Vec::new());
                    layers.push(Layer { layer, ops: Vec::new(), shape, bits: 0, frac: 0 });
                }
                let last = layers.len() - 1;
                let layer = &mut layers[last];
                layer.ops.push(named(node));
                (layer.shape, layer.bits, layer.frac) = (ty.shape.clone(), ty.bits, ty.frac);
            }
        }
    }
    let outputs = plan.outputs.iter();
    Shown {
        name: plan.name.clone(),
        hash: hash_text(plan),
        version: plan.version,
        batch: plan.batch,
        inputs,
        weights,
        states,
        updates: plan.updates.len(),
        publics,
        outputs: outputs
            .map(|o| Value { name: o.name.clone(), role: o.to.clone(), ty: plan.nodes[o.value].ty.clone() })
            .collect(),
        layers,
        operations: plan.nodes.len(),
        comparisons: summary(plan),
        refused: refused(plan),
    }
}

/// What each family says that refuses the plan, once.
fn refused(plan: &Plan) -> Vec<String> {
    let all = forecasts().filter_map(|family| admit(plan, &plan.name, &*family).err());
    let mut texts: Vec<String> = all.map(|refused| refused.to_string()).collect();
    texts.dedup();
    texts
}

/// For people.
pub(super) fn show(plan: &Shown, out: &mut Out) -> Result<(), CliError> {
    out.line(format_args!("plan     {}", plan.name))?;
    out.line(format_args!("hash     {}", plan.hash))?;
    out.line(format_args!("batch    {}, {} operations", plan.batch, plan.operations))?;
    for v in &plan.inputs {
        out.line(format_args!("input    {} from {}: {}", v.name, v.role, type_text(&v.ty)))?;
    }
    let elements: usize = plan.weights.iter().map(|w| w.ty.len()).sum();
    out.line(format_args!("weights  {} tensors, {elements} elements", plan.weights.len()))?;
    if !plan.states.is_empty() {
        let elements: usize = plan.states.iter().map(|s| s.ty.len()).sum();
        let (tensors, updates) = (plan.states.len(), plan.updates);
        out.line(format_args!("states   {tensors} tensors, {elements} elements; a run replaces {updates}"))?;
    }
    if !plan.publics.is_empty() {
        out.line(format_args!("public   {}", plan.publics.join(", ")))?;
    }
    for v in &plan.outputs {
        out.line(format_args!("output   {} to {}: {}", v.name, v.role, type_text(&v.ty)))?;
    }
    if let Some(forms) = &plan.comparisons {
        out.line(format_args!("compares {forms}"))?;
    }
    for text in &plan.refused {
        out.line(format_args!("refused  {text}"))?;
    }
    let width = plan.layers.iter().map(|l| l.layer.chars().count()).max().unwrap_or(0).clamp(5, 40);
    out.line(format_args!("\n{:<width$}  {:<18} {:>7}  operations", "layer", "shape", "bits.f"))?;
    for l in &plan.layers {
        let (shape, bits) = (shape_text(&l.shape), format!("{}.{}", l.bits, l.frac));
        out.line(format_args!("{:<width$}  {shape:<18} {bits:>7}  {}", l.layer, l.ops.join(", ")))?;
    }
    Ok(())
}

fn type_text(ty: &Type) -> String {
    format!("{} over Z_2^{}, {} fraction bits", shape_text(&ty.shape), ty.bits, ty.frac)
}

/// `128x1x28x28`.
pub(super) fn shape_text(shape: &[usize]) -> String {
    match shape {
        [] => "scalar".into(),
        _ => shape.iter().map(usize::to_string).collect::<Vec<_>>().join("x"),
    }
}
