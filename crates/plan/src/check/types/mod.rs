//! The typing rules of plan operations: of which types operands and result of each have to be.
//!
//! [`check_node`] says in one line for every operation which rule it follows. The rules are in the files of their kind;
//! what they are made of is in `rule.rs`. How many operands a rule takes is in its signature.

mod gates;
mod linear;
mod local;
mod rule;
mod sources;
mod tables;

use super::checked_len;
use crate::ir::{Op, Type};
use rule::{Checked, alike, ensure, take};

/// Most fraction bits.
const MAX_FRAC: u32 = 63;

/// Check one node against the types of its operands (each already checked).
pub(super) fn check_node(op: &Op, xs: &[&Type], y: &Type) -> Checked {
    representable(y)?;
    match op {
        Op::Input { name, owner, limit } => sources::input(take(xs)?, name, owner, *limit),
        Op::Weight { name, owner } | Op::State { name, owner } => sources::kept(take(xs)?, name, owner),
        Op::Public { name, limit } => sources::public(take(xs)?, y, name, *limit),

        Op::Add | Op::Sub => alike(&take::<2>(xs)?, y),
        Op::Neg | Op::AddConst { .. } | Op::MulConst { .. } => alike(&take::<1>(xs)?, y),
        Op::SumPool2d { window } => local::sum_pool(take(xs)?, y, window),
        Op::AdaptiveSumPool2d => local::adaptive_sum_pool(take(xs)?, y),
        Op::Sum { dims } => local::sum(take(xs)?, y, dims),
        Op::Reduce => local::reduce(take(xs)?, y),
        Op::Rescale => local::rescale(take(xs)?, y),
        Op::Reshape => local::reshape(take(xs)?, y),
        Op::Permute { dims } => local::permute(take(xs)?, y, dims),
        Op::Slice { dim, start, end, step } => local::slice(take(xs)?, y, *dim, [*start, *end, *step]),
        Op::Concat { dim } => local::concat(xs, y, *dim),
        Op::Reverse { dims } => local::reverse(take(xs)?, y, dims),
        Op::Pad { amounts } => local::pad(take(xs)?, y, amounts),
        Op::Expand => local::expand(take(xs)?, y),
        Op::Mix { rows } => local::mix(take(xs)?, y, rows),
        Op::ShiftUp { shift } => local::shift_up(take(xs)?, y, *shift),
        Op::Approximates { function } => local::approximates(take(xs)?, y, function),

        Op::Linear => linear::linear(xs, y),
        Op::MatMul => linear::mat_mul(take(xs)?, y),
        Op::Conv2d { geometry } => linear::conv2d(xs, y, geometry),
        Op::Mul => linear::mul(xs, y),
        Op::Scale => linear::scale(take(xs)?, y),

        Op::Dropout { keep, .. } => gates::dropout(take(xs)?, y, *keep),
        Op::Truncate { shift, .. } | Op::Dither { shift } => gates::truncate(take(xs)?, y, *shift),
        Op::Relu => gates::relu(take(xs)?, y),
        Op::Extend => gates::extend(take(xs)?, y),
        Op::MaxPool2d { window } => gates::max_pool(take(xs)?, y, window),
        Op::Max => gates::max(take(xs)?, y),
        Op::IsNegative => gates::is_negative(take(xs)?, y),
        Op::Equal => gates::equal(take(xs)?, y),
        Op::Choose => gates::choose(take(xs)?, y),
        Op::ChooseEvery => gates::choose_every(xs, y),
        Op::Select => gates::select(take(xs)?, y),
        Op::Argmax { dim } => gates::argmax(take(xs)?, y, *dim),

        Op::Piecewise { shift, pieces } => tables::piecewise(take(xs)?, y, *shift, pieces.len()),
        Op::Lookup { tables } => tables::lookup(take(xs)?, y, tables),
        Op::Exponential { first, rows, scale } => tables::exponential(take(xs)?, y, *first, rows, *scale),
        Op::Waves { step, digits, waves } => tables::waves(take(xs)?, y, *step, *digits, waves),
    }
}

/// Ring, fraction and shape of a result, whatever makes it.
fn representable(y: &Type) -> Checked {
    ensure((1..=64).contains(&y.bits), || format!("{} ring bits, not 1 to 64", y.bits))?;
    ensure(y.frac <= MAX_FRAC, || format!("{} fraction bits, at most {MAX_FRAC}", y.frac))?;
    checked_len(&y.shape).map(drop)
}
