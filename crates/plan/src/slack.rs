//! How far a protocol's integers may be from the interpreter's: zero but for truncations that are allowed a unit.

use crate::ir::{Op, Plan, Rounding};
use crate::local::adaptive_window;

/// For every value of a checked plan, the largest distance, modulo 2^k and in units of the last place, between what a
/// protocol and what the interpreter with the same coins may give. `None` where no such bound follows from the plan
/// alone: in products of inexact values, and in comparisons of them, which may fall on either side.
///
/// For the operations on the sign of an inexact value (`relu`, `extend`, `max`, `max_pool2d`) the bound holds as long as
/// no value, nor a difference that a maximum is taken by, is as near to the ends of the signed range as its slack.
pub fn slack(plan: &Plan) -> Vec<Option<u64>> {
    slack_within(plan, 1)
}

/// The same where [`Rounding::OneUlp`] may be off by `units` from the floor: so many a family says that needs more than one.
pub fn slack_within(plan: &Plan, units: u64) -> Vec<Option<u64>> {
    let mut all: Vec<Option<u64>> = Vec::with_capacity(plan.nodes.len());
    for node in &plan.nodes {
        let of = |i: usize| all[node.inputs[i]];
        let shape = |i: usize| plan.nodes[node.inputs[i]].ty.shape.as_slice();
        let largest = || node.inputs.iter().try_fold(0, |most, &i| Some(all[i]?.max(most)));
        let exact = || largest().filter(|&s| s == 0);
        let times = |n: u64| of(0).and_then(|s: u64| s.checked_mul(n));
        let slack = match &node.op {
            Op::Input { .. } | Op::Weight { .. } | Op::State { .. } | Op::Public { .. } => Some(0),
            // zero, whatever it is
            Op::Sub if node.inputs[0] == node.inputs[1] => Some(0),
            Op::Add | Op::Sub => of(0).zip(of(1)).and_then(|(a, b)| a.checked_add(b)),
            Op::MulConst { value } => times(value.unsigned_abs()),
            Op::Mix { rows } => {
                let sums =
                    rows.iter().map(|row| row.iter().try_fold(0u64, |n, c| n.checked_add(c.unsigned_abs())));
                sums.max().flatten().and_then(times)
            }
            Op::ShiftUp { shift } => of(0).and_then(|s| s.checked_mul(1 << shift)),
            // sums: the slack of as many elements as one result adds up
            Op::SumPool2d { window } => times((window.kernel[0] * window.kernel[1]) as u64),
            Op::AdaptiveSumPool2d => times(adaptive_elements(shape(0), &node.ty.shape)),
            Op::Sum { dims } => times(dims.iter().map(|&d| shape(0)[d] as u64).product()),
            // floor((x + d) / 2^f) is at most ceil(d / 2^f) away from floor(x / 2^f), with a coin added as well
            Op::Truncate { shift, rounding } => of(0)
                .map(|s| s.div_ceil(1 << shift))
                .and_then(|s| s.checked_add(if *rounding == Rounding::OneUlp { units } else { 0 })),
            // maxima move no further than what they are taken of
            Op::Relu | Op::Extend | Op::Max | Op::MaxPool2d { .. } => largest(),
            Op::Linear | Op::MatMul | Op::Conv2d { .. } | Op::Mul | Op::Scale => exact(),
            // with the same coins these are exact
            Op::Dither { .. } => of(0).and_then(|s| s.checked_add(u64::from(s > 0))),
            Op::Piecewise { .. } | Op::Lookup { .. } | Op::Exponential { .. } | Op::Waves { .. } => exact(),
            Op::IsNegative | Op::Equal | Op::Argmax { .. } => exact(),
            // an exact choice between inexact values
            Op::Choose => of(0).filter(|&b| b == 0).and(of(1)),
            Op::ChooseEvery => {
                let x = node.inputs.len() - 1;
                (0..x).all(|b| of(b) == Some(0)).then(|| of(x)).flatten()
            }
            Op::Select => of(0).filter(|&c| c == 0).and(largest()),
            Op::Approximates { .. } => of(1),
            // the same elements elsewhere, others left out, or read otherwise
            Op::Neg | Op::AddConst { .. } | Op::Reduce | Op::Rescale => largest(),
            Op::Reshape | Op::Permute { .. } | Op::Slice { .. } | Op::Concat { .. } => largest(),
            Op::Reverse { .. } | Op::Pad { .. } | Op::Expand | Op::Dropout { .. } => largest(),
        };
        all.push(slack);
    }
    all
}

/// Elements of a window of an adaptive pool over NCHW; all are of the same size.
fn adaptive_elements(x: &[usize], y: &[usize]) -> u64 {
    let extent = |axis: usize| {
        let (start, end) = adaptive_window(x[axis], y[axis], 0);
        (end - start) as u64
    };
    extent(2) * extent(3)
}
