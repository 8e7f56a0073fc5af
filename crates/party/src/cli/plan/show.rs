use super::{hash_text, op_name};
use crate::cli::{CliError, Out};
use privet_plan::Plan;
use privet_plan::ir::{Op, Type};
use serde::Serialize;

#[derive(Serialize)]
struct Shown<'a> {
    name: &'a str,
    hash: String,
    version: u32,
    batch: usize,
    inputs: Vec<Value<'a>>,
    weights: Vec<Value<'a>>,
    outputs: Vec<Value<'a>>,
    layers: Vec<Layer>,
    operations: usize,
}

#[derive(Serialize)]
struct Value<'a> {
    name: &'a str,
    /// Who shares it, or who learns it.
    role: &'a str,
    #[serde(flatten)]
    ty: &'a Type,
}

#[derive(Serialize)]
struct Layer {
    layer: String,
    ops: Vec<String>,
    shape: Vec<usize>,
    bits: u32,
    frac: u32,
}

/// Show a plan.
pub fn run(plan: &Plan, json: bool, out: &mut Out) -> Result<(), CliError> {
    let shown = collect(plan);
    if json { out.json(&shown) } else { show(&shown, out) }
}

fn collect(plan: &Plan) -> Shown<'_> {
    let (mut inputs, mut weights, mut layers) = (Vec::new(), Vec::new(), Vec::<Layer>::new());
    for node in &plan.nodes {
        let ty = &node.ty;
        match &node.op {
            Op::Input { name, owner, .. } => inputs.push(Value { name, role: owner, ty }),
            Op::Weight { name, owner } => weights.push(Value { name, role: owner, ty }),
            op => {
                if layers.last().is_none_or(|l| l.layer != node.layer) {
                    let (layer, shape) = (node.layer.clone(), Vec::new());
                    layers.push(Layer { layer, ops: Vec::new(), shape, bits: 0, frac: 0 });
                }
                let last = layers.len() - 1;
                let layer = &mut layers[last];
                layer.ops.push(op_name(op));
                (layer.shape, layer.bits, layer.frac) = (ty.shape.clone(), ty.bits, ty.frac);
            }
        }
    }
    let outputs = plan.outputs.iter();
    Shown {
        name: &plan.name,
        hash: hash_text(plan),
        version: plan.version,
        batch: plan.batch,
        inputs,
        weights,
        outputs: outputs.map(|o| Value { name: &o.name, role: &o.to, ty: &plan.nodes[o.value].ty }).collect(),
        layers,
        operations: plan.nodes.len(),
    }
}

fn show(plan: &Shown, out: &mut Out) -> Result<(), CliError> {
    out.line(format_args!("plan     {}", plan.name))?;
    out.line(format_args!("hash     {}", plan.hash))?;
    out.line(format_args!("batch    {}, {} operations", plan.batch, plan.operations))?;
    for v in &plan.inputs {
        out.line(format_args!("input    {} from {}: {}", v.name, v.role, type_text(v.ty)))?;
    }
    let elements: usize = plan.weights.iter().map(|w| w.ty.len()).sum();
    out.line(format_args!("weights  {} tensors, {elements} elements", plan.weights.len()))?;
    for v in &plan.outputs {
        out.line(format_args!("output   {} to {}: {}", v.name, v.role, type_text(v.ty)))?;
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
