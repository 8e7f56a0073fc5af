//! Elementwise product of two masked values: `z + s = (xh - r_x)(yh - r_y) + s`, one word an element; and sums of such, which take no more.

use crate::dealer::Dealt;
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::keys::KeyError;
use crate::price;
use crate::{Deal, Eval, EvalError, Opened, Wire, tables};
use privet_family::OpeningList;
use privet_plan::cost::{Cost, Operation};
use privet_ring::Ring;

/// Deal for pairs of operands with masks `[rx, ry]`, as many elements each.
pub(super) fn deal(cx: &mut Deal, wire: Wire, ring: Ring, pairs: &[[&[u64]; 2]]) -> Result<(), KeyError> {
    let s = cx.fresh_mask(wire, ring, pairs[0][0].len());
    tables::deal(cx, wire, ring, s.len(), |i| {
        [pairs.iter().fold(s[i], |sum, [rx, ry]| sum.wrapping_add(rx[i].wrapping_mul(ry[i])))]
    })
}

/// An operand: masked values, and own shares of the masks.
pub(super) type Masked<'a> = (&'a [u64], &'a [u64]);

/// Evaluate on pairs of operands. One round of k bits.
pub(super) fn eval(
    cx: &mut Eval,
    wire: Wire,
    ring: Ring,
    pairs: &[[Masked<'_>; 2]],
) -> Result<Opened, EvalError> {
    let leads = cx.leads() as u64;
    let mut z = vec![0; pairs[0][0].0.len()];
    tables::eval(cx, wire, ring, pairs[0][0].0.len(), |range, [c]| {
        for (j, i) in range.enumerate() {
            let share = |[(xh, rx), (yh, ry)]: &[Masked<'_>; 2]| {
                let x_share = (leads * xh[i]).wrapping_sub(rx[i]);
                x_share.wrapping_mul(yh[i]).wrapping_sub(xh[i].wrapping_mul(ry[i]))
            };
            z[i] = pairs.iter().fold(c[j], |sum, pair| sum.wrapping_add(share(pair)));
        }
    })?;
    cx.open_masked("product", ring, z)
}

/// [`privet_plan::ir::Op::Mul`].
pub(crate) struct Product;

impl Gate for Product {
    fn deal(&self, cx: &mut Deal, x: &Dealt) -> Result<(), KeyError> {
        let masks: Vec<_> = (0..x.at.node().inputs.len()).map(|i| x.mask(cx, i)).collect();
        let pairs: Vec<[&[u64]; 2]> = masks.as_chunks::<2>().0.iter().map(|[x, y]| [&x[..], y]).collect();
        deal(cx, x.at.wire(), x.at.to(), &pairs)
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let operands: Vec<_> = (0..x.at.node().inputs.len()).map(|i| (x.value(i), x.mask(cx, i))).collect();
        let masked = operands.iter().map(|(value, mask)| (&value[..], &mask[..]));
        let pairs: Vec<Masked<'_>> = masked.collect();
        eval(cx, x.at.wire(), x.at.to(), pairs.as_chunks::<2>().0)
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens(list, "product");
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        price::bilinear(of.elements() * of.operands.len() as u64 / 2, of.result)
    }
}
