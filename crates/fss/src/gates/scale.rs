//! Product with a public number p that the dealer does not know: evaluators compute on their shares of x and open
//! `p [x]_b + [s]_b`. Nothing is dealt.

use crate::dealer::Dealt;
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::keys::KeyError;
use crate::price;
use crate::{Deal, Eval, EvalError, Opened, Wire};
use privet_family::OpeningList;
use privet_plan::cost::{Cost, Operation};
use privet_ring::Ring;

/// Evaluate on the masked value, this evaluator's share of its mask, and the number. One round of k bits.
pub(super) fn eval(
    cx: &mut Eval,
    wire: Wire,
    ring: Ring,
    (xh, rx): (&[u64], &[u64]),
    p: u64,
) -> Result<Opened, EvalError> {
    let leads = cx.leads() as u64;
    let mut y = cx.result_mask_share(wire, ring, xh.len());
    for (y, (xh, r)) in y.iter_mut().zip(xh.iter().zip(rx)) {
        *y = ring.wrap(p.wrapping_mul((leads * xh).wrapping_sub(*r)).wrapping_add(*y));
    }
    cx.open_masked("product", ring, y.expose())
}

/// [`privet_plan::ir::Op::Scale`].
pub(crate) struct Scale;

impl Gate for Scale {
    fn deal(&self, _: &mut Deal, _: &Dealt) -> Result<(), KeyError> {
        Ok(())
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let rx = x.mask(cx, 0);
        eval(cx, x.at.wire(), x.at.to(), (&x.value(0), &rx), x.value(1)[0])
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens(list, "product");
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        // on shares of the operand; nothing is dealt
        price::sent(of.elements(), of.result_bits())
    }
}
