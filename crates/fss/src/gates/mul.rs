//! Elementwise product of two masked values: `z + s = (xh - r_x)(yh - r_y) + s`, one word an element.

use crate::dealer::Dealt;
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::keys::KeyError;
use crate::price;
use crate::{Deal, Eval, EvalError, Opened, Wire, tables};
use privet_family::OpeningList;
use privet_plan::cost::{Cost, Operation};
use privet_ring::Ring;

/// Deal for operands with masks `rx` and `ry`.
pub(super) fn deal(cx: &mut Deal, wire: Wire, ring: Ring, rx: &[u64], ry: &[u64]) -> Result<(), KeyError> {
    let s = cx.fresh_mask(wire, ring, rx.len());
    tables::deal(cx, wire, ring, rx.len(), |i| [rx[i].wrapping_mul(ry[i]).wrapping_add(s[i])])
}

/// Evaluate on `(masked value, own mask share)` of both operands. One round of k bits.
pub(super) fn eval(
    cx: &mut Eval,
    wire: Wire,
    ring: Ring,
    (xh, rx): (&[u64], &[u64]),
    (yh, ry): (&[u64], &[u64]),
) -> Result<Opened, EvalError> {
    let leads = cx.leads() as u64;
    let mut z = vec![0; xh.len()];
    tables::eval(cx, wire, ring, xh.len(), |range, [c]| {
        for (j, i) in range.enumerate() {
            let x_share = (leads * xh[i]).wrapping_sub(rx[i]);
            z[i] = x_share.wrapping_mul(yh[i]).wrapping_sub(xh[i].wrapping_mul(ry[i])).wrapping_add(c[j]);
        }
    })?;
    cx.open_masked("product", ring, z)
}

/// [`privet_plan::ir::Op::Mul`].
pub(crate) struct Product;

impl Gate for Product {
    fn deal(&self, cx: &mut Deal, x: &Dealt) -> Result<(), KeyError> {
        let (rx, ry) = (x.mask(cx, 0), x.mask(cx, 1));
        deal(cx, x.at.wire(), x.at.to(), &rx, &ry)
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let (rx, ry) = (x.mask(cx, 0), x.mask(cx, 1));
        eval(cx, x.at.wire(), x.at.to(), (&x.value(0), &rx), (&x.value(1), &ry))
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens(list, "product");
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        price::bilinear(of.elements(), of.result)
    }
}
