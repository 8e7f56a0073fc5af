//! Operations on shares alone: linear maps, and products with public numbers.

use crate::context::{Cx, RunError, Side};
use crate::gate::{At, Gate, Held};
use crate::uses::Uses;
use privet_family::Secret;
use privet_plan::{Affine, apply_local};
use std::sync::Arc;

/// Every operation of [`privet_plan::apply_local`]; the server's share has the constants.
pub(crate) struct Local;

/// The map of one side's shares.
pub(crate) fn map(at: &At, side: Side, operands: &[Arc<Secret>]) -> Vec<u64> {
    let affine = if side == Side::Server { Affine::Full } else { Affine::Linear };
    let types: Vec<_> = (0..operands.len()).map(|i| at.operand(i)).collect();
    let operands: Vec<&[u64]> = operands.iter().map(|x| x.as_slice()).collect();
    apply_local(&at.node().op, &types, &at.node().ty, &operands, affine)
}

impl Gate for Local {
    fn eval(&self, cx: &mut Cx, x: &Held) -> Result<Vec<u64>, RunError> {
        let operands: Vec<_> = (0..x.at.node().inputs.len()).map(|i| x.share(i)).collect();
        Ok(map(&x.at, cx.side, &operands))
    }

    fn uses(&self, _: &At) -> Uses {
        Uses::default()
    }
}

/// [`Op::Scale`].
pub(crate) struct Scale;

impl Gate for Scale {
    fn eval(&self, _: &mut Cx, x: &Held) -> Result<Vec<u64>, RunError> {
        let (ring, factor) = (x.at.to(), x.public(1)?);
        Ok(x.share(0).iter().map(|x| ring.wrap(x.wrapping_mul(factor))).collect())
    }

    fn uses(&self, _: &At) -> Uses {
        Uses::default()
    }
}
