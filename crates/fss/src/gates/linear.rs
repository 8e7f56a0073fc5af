//! Linear layers on masked values: `z + s = (xh - r_x)(wh - r_w) + s`.
//!
//! Evaluator b has additive shares of x and w, `[x]_b = b xh - [r_x]_b` (b = 1 for the one that adds
//! public parts) and likewise for w, and computes `[x]_b wh - xh [r_w]_b + [r_x r_w + s]_b`. The sum over
//! both is `x wh - xh r_w + r_x r_w + s = x w + s`. One dealt word an output element, one round of k bits.

use crate::dealer::Dealt;
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::keys::KeyError;
use crate::masks::owned;
use crate::price;
use crate::{Deal, Eval, EvalError, Opened, Secret, Wire, tables};
use privet_family::{OpeningList, spread_bias};
use privet_family::{Prepared, Products};
use privet_plan::cost::{Cost, Operation};
use privet_ring::{Conv2d, Ring};
use std::borrow::Cow;

/// The dealer's side, for operands with masks `rx` and (prepared) `rw`.
fn deal(
    cx: &mut Deal,
    wire: Wire,
    ring: Ring,
    products: Products,
    rx: &[u64],
    rw: &Prepared,
) -> Result<(), KeyError> {
    let mut c = cx.fresh_mask(wire, ring, products.output_len());
    products.accumulate(cx.device, ring, rx, rw, &mut c);
    cx.stats.macs += products.macs();
    tables::deal(cx, wire, ring, c.len(), |i| [c[i]])
}

/// The second operand at an evaluator, prepared on the device.
#[derive(Clone)]
pub(crate) struct Operand {
    /// Its masked value `wh`.
    pub masked: Prepared,
    /// `-[r_w]`, this evaluator's share of its mask, negated.
    pub negated_mask: Prepared,
}

impl Operand {
    /// From the masked value and this evaluator's share of the mask.
    pub fn new(
        device: &dyn privet_kernels::Device,
        ring: Ring,
        products: Products,
        masked: &[u64],
        mut mask: Secret,
    ) -> Operand {
        for r in mask.iter_mut() {
            *r = ring.wrap(r.wrapping_neg());
        }
        Operand {
            masked: products.prepare(device, ring, masked),
            negated_mask: products.prepare(device, ring, &mask),
        }
    }
}

/// An evaluator's side: masked value and own mask share of x, the other operand, and `start`, this
/// evaluator's additive share of what the product is added to (the bias, or zeros).
fn eval(
    cx: &mut Eval,
    wire: Wire,
    ring: Ring,
    products: Products,
    (xh, rx): (&[u64], Secret),
    w: &Operand,
    start: Vec<u64>,
) -> Result<Opened, EvalError> {
    let leads = cx.leads() as u64;
    let mut x_share = rx;
    for (share, xh) in x_share.iter_mut().zip(xh) {
        *share = (leads * xh).wrapping_sub(*share);
    }
    let mut z = start;
    products.accumulate(cx.device, ring, &x_share, &w.masked, &mut z);
    products.accumulate(cx.device, ring, xh, &w.negated_mask, &mut z);
    cx.stats.macs += 2 * products.macs();
    tables::eval(cx, wire, ring, z.len(), |range, [c]| {
        for (z, c) in z[range].iter_mut().zip(c) {
            *z = z.wrapping_add(*c);
        }
    })?;
    cx.open_masked("product", ring, z)
}

/// [`privet_plan::ir::Op::Linear`], [`privet_plan::ir::Op::MatMul`] and [`privet_plan::ir::Op::Conv2d`].
pub(crate) struct Linear<'a> {
    /// Of a convolution.
    pub geometry: Option<&'a Conv2d>,
}

/// The inner dimension of a matrix product.
fn inner(of: &Operation<'_>) -> u64 {
    of.operands[0].ty.shape.last().map_or(0, |&k| k as u64)
}

fn products(at: &At) -> Products {
    Products::of(at.plan, at.node()).expect("the table gives these operations alone")
}

/// This evaluator's additive share of the bias (the third operand), over the whole output.
fn bias_share(cx: &Eval, x: &Held) -> Vec<u64> {
    let node = x.at.node();
    if node.inputs.len() < 3 {
        return vec![0; x.at.len()];
    }
    let leads = cx.leads() as u64;
    let (masked, mask) = (x.value(2), x.mask(cx, 2));
    let share: Secret = masked.iter().zip(mask.iter()).map(|(b, r)| (leads * b).wrapping_sub(*r)).collect();
    spread_bias(node, &share)
}

impl Gate for Linear<'_> {
    fn deal(&self, cx: &mut Deal, x: &Dealt) -> Result<(), KeyError> {
        let (products, to, rx) = (products(&x.at), x.at.to(), x.mask(cx, 0));
        let rw = match x.prepared() {
            Some(rw) => Cow::Borrowed(rw),
            None => Cow::Owned(products.prepare(cx.device, to, &x.mask(cx, 1))),
        };
        deal(cx, x.at.wire(), to, products, &rx, &rw)
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let (products, to, start) = (products(&x.at), x.at.to(), bias_share(cx, x));
        let rx = owned(x.mask(cx, 0));
        let w = match x.prepared() {
            Some(w) => Cow::Borrowed(w),
            None => Cow::Owned(Operand::new(cx.device, to, products, &x.value(1), owned(x.mask(cx, 1)))),
        };
        eval(cx, x.at.wire(), to, products, (&x.value(0), rx), &w, start)
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens(list, "product");
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        let n = of.elements();
        price::bilinear(self.geometry.map_or_else(|| n * inner(of), |geometry| geometry.macs()), of.result)
    }
}
