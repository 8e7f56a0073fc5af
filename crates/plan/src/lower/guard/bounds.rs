//! Sound bounds of a plan's values over the whole numbers, that is before anything wraps.

use crate::float::FloatTensor;
use crate::functions::Function;
use crate::ir::{Node, Op, Plan, ValueId};
use crate::local::adaptive_window;
use crate::ops;

/// What a value cannot exceed, in units of its last place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    /// The largest magnitude of an element.
    pub most: f64,
    /// The largest sum of magnitudes along the last dimension, where more is known than `most` says.
    pub line: Option<f64>,
}

impl From<f64> for Bound {
    fn from(most: f64) -> Bound {
        // what a few roundings of this arithmetic lose
        Bound { most: most * (1.0 + 1e-9), line: None }
    }
}

/// The tensors of a plan's weights.
type Weights<'a> = Box<dyn Fn(&str) -> Option<&'a FloatTensor> + 'a>;

/// Bounds by node; a skipped node's is infinite.
pub(super) struct Bounds<'a> {
    plan: &'a Plan,
    weights: Weights<'a>,
    all: Vec<Bound>,
}

impl<'a> Bounds<'a> {
    pub fn new(plan: &'a Plan, weights: impl Fn(&str) -> Option<&'a FloatTensor> + 'a) -> Bounds<'a> {
        Bounds { plan, weights: Box::new(weights), all: Vec::with_capacity(plan.nodes.len()) }
    }

    pub fn push(&mut self, bound: Bound) {
        self.all.push(bound);
    }

    pub fn skip(&mut self) {
        self.push(f64::INFINITY.into());
    }

    pub fn at(&self, id: ValueId) -> Bound {
        self.all[id]
    }

    /// The bound of node `id` by those of its operands.
    pub fn of(&self, id: ValueId) -> Bound {
        let node = &self.plan.nodes[id];
        let of = |i: usize| self.all[node.inputs[i]].most;
        let shape = |i: usize| self.plan.nodes[node.inputs[i]].ty.shape.as_slice();
        let most = || node.inputs.iter().map(|&i| self.all[i].most).fold(0.0, f64::max);
        let unit = 2f64.powi(node.ty.frac as i32);
        match &node.op {
            Op::Input { limit, .. } | Op::Public { limit, .. } => limit * unit + 1.0,
            Op::Weight { .. } => self.weight(id).map_or(f64::INFINITY, |w| w.largest),
            Op::State { .. } => f64::INFINITY,
            Op::Add | Op::Sub => of(0) + of(1),
            Op::AddConst { value } => of(0) + value.unsigned_abs() as f64,
            Op::MulConst { value } => of(0) * value.unsigned_abs() as f64,
            Op::SumPool2d { window } => of(0) * (window.kernel[0] * window.kernel[1]) as f64,
            Op::AdaptiveSumPool2d => {
                let extent = |axis: usize| {
                    let (start, end) = adaptive_window(shape(0)[axis], node.ty.shape[axis], 0);
                    end - start
                };
                of(0) * (extent(2) * extent(3)) as f64
            }
            Op::Sum { dims } => of(0) * dims.iter().map(|&d| shape(0)[d]).product::<usize>() as f64,
            Op::Mix { rows } => {
                let sum = |row: &Vec<i64>| row.iter().map(|c| c.unsigned_abs() as f64).sum();
                of(0) * rows.iter().map(sum).fold(0.0, f64::max)
            }
            Op::ShiftUp { shift } => of(0) * 2f64.powi(*shift as i32),
            Op::Approximates { function } => return self.function(*function, node, of(0)),
            Op::Reshape if shape(0).last() == node.ty.shape.last() => return self.all[node.inputs[0]],
            Op::Neg | Op::Reduce | Op::Rescale | Op::Reshape | Op::Permute { .. } => most(),
            Op::Slice { .. } | Op::Concat { .. } | Op::Reverse { .. } | Op::Pad { .. } | Op::Expand => most(),
            Op::Linear | Op::Conv2d { .. } => self.layer(node),
            Op::MatMul => {
                let inner = *shape(0).last().unwrap_or(&1) as f64;
                let line = self.all[node.inputs[0]].line.unwrap_or(f64::INFINITY);
                (inner * of(0)).min(line) * of(1)
            }
            Op::Mul => (0..node.inputs.len()).step_by(2).map(|i| of(i) * of(i + 1)).sum(),
            Op::Scale => of(0) * of(1),
            Op::Dropout { .. } => of(0),
            Op::Truncate { shift, .. } | Op::Dither { shift } => of(0) / 2f64.powi(*shift as i32) + 2.0,
            Op::Relu | Op::Extend | Op::Max | Op::MaxPool2d { .. } | Op::Select => most(),
            Op::Choose => of(1),
            Op::ChooseEvery => of(node.inputs.len() - 1),
            Op::IsNegative | Op::Equal => 1.0,
            Op::Argmax { dim } => shape(0)[*dim] as f64,
            // outside of functions nothing reads tables
            ops!(table) => f64::INFINITY,
        }
        .into()
    }

    /// A layer with a weight: the largest sum of magnitudes that one result weighs its operand with.
    fn layer(&self, node: &Node) -> f64 {
        let x = self.all[node.inputs[0]].most;
        let bias = node.inputs.get(2).map_or(0.0, |&b| self.all[b].most);
        let ty = &self.plan.nodes[node.inputs[1]].ty;
        let lines = ty.shape[0].max(1);
        let line = match self.weight(node.inputs[1]) {
            Some(weight) => weight.line,
            None => self.all[node.inputs[1]].most * (ty.len() / lines) as f64,
        };
        x * line + bias
    }

    /// Of a weight, the largest magnitude and the largest sum of these along all dimensions but the first.
    fn weight(&self, id: ValueId) -> Option<Weight> {
        let Node { op: Op::Weight { name, .. }, ty, .. } = &self.plan.nodes[id] else { return None };
        let tensor = (self.weights)(name)?;
        let unit = 2f64.powi(ty.frac as i32);
        let sizes = || tensor.data.iter().map(|w| w.abs() * unit + 0.5);
        let length = (tensor.data.len() / ty.shape.first().copied().unwrap_or(1).max(1)).max(1);
        let all: Vec<f64> = sizes().collect();
        let line = all.chunks(length).map(|line| line.iter().sum()).fold(0.0, f64::max);
        Some(Weight { largest: all.iter().copied().fold(0.0, f64::max), line })
    }

    /// A function's result for operands of magnitude `x` (docs/functions.md, Accuracy), what it saturates at included.
    fn function(&self, function: Function, node: &Node, x: f64) -> Bound {
        let operand = &self.plan.nodes[node.inputs[0]].ty;
        let real = x / 2f64.powi(operand.frac as i32);
        let least = 2f64.powi(-(operand.frac as i32));
        let ends = 2f64.powi((node.ty.bits - node.ty.frac) as i32 - 1);
        let largest = match function {
            Function::Sigmoid | Function::Tanh | Function::Erf | Function::Sin | Function::Cos => 1.0,
            Function::Floor => real + 1.0,
            Function::GeluGrad | Function::GeluTanhGrad | Function::SiluGrad => 1.2,
            Function::Gelu | Function::GeluTanh | Function::Silu => real,
            Function::Softmax { .. } => 1.0,
            Function::LogSoftmax { dim } => 2.0 * real + (operand.shape[dim] as f64).ln(),
            Function::Exp => real.exp(),
            Function::Log => real.max(1.0).ln().max(-least.ln()),
            Function::Sqrt => real.sqrt(),
            Function::Reciprocal => 1.0 / least,
            Function::Rsqrt => least.powf(-0.5),
            // its sum of squares would have to be watched; a guarded plan has it in parts
            Function::Normalise { .. } => f64::INFINITY,
        };
        let unit = 2f64.powi(node.ty.frac as i32);
        let most = (largest * (1.0 + 2f64.powi(-16))).min(ends) * unit + 4.0;
        let last = node.ty.shape.len().wrapping_sub(1);
        let line = matches!(function, Function::Softmax { dim } if dim == last);
        // each of a line's terms may be off by 2^-18
        let off = unit * 2f64.powi(-17) * *node.ty.shape.last().unwrap_or(&1) as f64;
        Bound { most, line: line.then_some(unit + off + 4.0 * *node.ty.shape.last().unwrap_or(&1) as f64) }
    }
}

struct Weight {
    largest: f64,
    line: f64,
}
