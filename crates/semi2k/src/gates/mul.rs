//! Elementwise product of two masked values: `z + s = (xh - lambda_x)(yh - lambda_y) + s`, one word an element; and sums of such.

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

/// Prepare for pairs of operands with these masks, in one ring; `None` for y where it is x.
pub(super) fn prepare(
    cx: &mut dyn Preprocess,
    wire: Wire,
    pairs: &[(&Words, Option<&Words>)],
) -> Result<(), PrepareError> {
    let mut sum: Option<Words> = None;
    for (x, y) in pairs {
        let c = match y {
            Some(y) => cx.multiply(x, y)?,
            None => cx.square(x)?,
        };
        sum = Some(match sum {
            Some(sum) => sum.add(&c),
            None => c,
        });
    }
    let Some(c) = sum else { return Ok(()) };
    let s = cx.mask(wire, c.ring(), c.len());
    words::keep(cx, &c.add(&s))
}

/// An operand: masked values, and own summands of the masks.
pub(super) type Masked<'a> = (&'a [u64], &'a [u64]);

/// Evaluate on pairs of operands. One round of k bits.
pub(super) fn eval(cx: &mut Eval, ring: Ring, pairs: &[[Masked<'_>; 2]]) -> Result<Opened, EvalError> {
    let leads = cx.leads() as u64;
    let mut z = vec![0; pairs[0][0].0.len()];
    words::each(cx, ring, pairs[0][0].0.len(), |range, c| {
        for (i, c) in range.zip(c) {
            let share = |[(xh, rx), (yh, ry)]: &[Masked<'_>; 2]| {
                let x_share = (leads * xh[i]).wrapping_sub(rx[i]);
                x_share.wrapping_mul(yh[i]).wrapping_sub(xh[i].wrapping_mul(ry[i]))
            };
            z[i] = pairs.iter().fold(*c, |sum, pair| sum.wrapping_add(share(pair)));
        }
    })?;
    cx.open_masked("product", ring, z)
}

/// [`privet_plan::ir::Op::Mul`].
pub(crate) struct Product;

impl Gate for Product {
    fn prepare(&self, cx: &mut dyn Preprocess, x: &Given) -> Result<(), PrepareError> {
        let (inputs, to) = (&x.at.node().inputs, x.at.to());
        let masks: Vec<Words> = (0..inputs.len()).map(|i| x.mask(cx, i).reduced(to)).collect();
        let pairs = inputs.as_chunks::<2>().0.iter().zip(masks.as_chunks::<2>().0);
        let pairs = pairs.map(|([i, j], [x, y])| (x, (i != j).then_some(y)));
        prepare(cx, x.at.wire(), &pairs.collect::<Vec<_>>())
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let operands: Vec<_> = (0..x.at.node().inputs.len()).map(|i| (x.value(i), x.mask(cx, i))).collect();
        let masked = operands.iter().map(|(value, mask)| (&value[..], &mask.own()[..]));
        let pairs: Vec<Masked<'_>> = masked.collect();
        eval(cx, x.at.to(), pairs.as_chunks::<2>().0)
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens(list, "product");
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        price::product(of)
    }
}
