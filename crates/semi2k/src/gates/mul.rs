//! Elementwise product of two masked values: `z + s = (xh - lambda_x)(yh - lambda_y) + s`, one word an element.

use crate::Opened;
use crate::eval::{Eval, EvalError};
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::prepare::Given;
use crate::preprocess::{PrepareError, Preprocess};
use crate::price;
use crate::shares::Words;
use crate::words;
use privet_family::{OpeningList, Wire};
use privet_plan::cost::{Cost, Operation};
use privet_ring::Ring;

/// Prepare for operands with these masks; `None` for y where it is x.
pub(super) fn prepare(
    cx: &mut dyn Preprocess,
    wire: Wire,
    x: &Words,
    y: Option<&Words>,
) -> Result<(), PrepareError> {
    let c = match y {
        Some(y) => cx.multiply(x, y)?,
        None => cx.square(x)?,
    };
    let s = cx.mask(wire, x.ring(), x.len());
    words::keep(cx, &c.add(&s))
}

/// Evaluate on `(masked value, own summand of the mask)` of both operands. One round of k bits.
pub(super) fn eval(
    cx: &mut Eval,
    ring: Ring,
    (xh, rx): (&[u64], &[u64]),
    (yh, ry): (&[u64], &[u64]),
) -> Result<Opened, EvalError> {
    let leads = cx.leads() as u64;
    let mut z = vec![0; xh.len()];
    words::each(cx, ring, xh.len(), |range, c| {
        for (i, c) in range.zip(c) {
            let x_share = (leads * xh[i]).wrapping_sub(rx[i]);
            z[i] = x_share.wrapping_mul(yh[i]).wrapping_sub(xh[i].wrapping_mul(ry[i])).wrapping_add(*c);
        }
    })?;
    cx.open_masked("product", ring, z)
}

/// [`privet_plan::ir::Op::Mul`].
pub(crate) struct Product;

impl Gate for Product {
    fn prepare(&self, cx: &mut dyn Preprocess, x: &Given) -> Result<(), PrepareError> {
        let rx = x.mask(cx, 0);
        let inputs = &x.at.node().inputs;
        if inputs[0] == inputs[1] {
            return prepare(cx, x.at.wire(), &rx, None);
        }
        let ry = x.mask(cx, 1);
        prepare(cx, x.at.wire(), &rx, Some(&ry))
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let (rx, ry) = (x.mask(cx, 0), x.mask(cx, 1));
        eval(cx, x.at.to(), (&x.value(0), rx.own()), (&x.value(1), ry.own()))
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens(list, "product");
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        price::product(of)
    }
}
