//! Linear layers on masked values: `z + s = (xh - lambda_x)(wh - lambda_w) + s`.
//!
//! Party i has additive shares of x and w, `[x]_i = [i = 0] xh - lambda_x,i` and likewise for w, and computes
//! `[x]_i wh - xh lambda_w,i + [lambda_x lambda_w + s]_i`. The sum over all is `x wh - xh lambda_w + lambda_x lambda_w + s = x w +
//! s`. One word of the record an output element, one round of k bits.

use crate::Opened;
use crate::eval::{Eval, EvalError};
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::prepare::Given;
use crate::preprocess::{Factor, PrepareError, Preprocess, static_operand};
use crate::price;
use crate::words;
use privet_family::{OpeningList, Prepared, Products, Secret, spread_bias};
use privet_plan::cost::{Cost, Operation};
use privet_ring::{Conv2d, Ring};
use std::borrow::Cow;

/// The second operand at a party, prepared on the device.
#[derive(Clone)]
pub(crate) struct Operand {
    /// Its masked value `wh`.
    masked: Prepared,
    /// `-lambda_w,i`; none where it is 0.
    negated_mask: Option<Prepared>,
}

impl Operand {
    /// From the masked value and this party's summand of the mask, if that is not 0.
    pub fn new(
        device: &dyn privet_kernels::Device,
        ring: Ring,
        products: Products,
        masked: &[u64],
        mask: Option<&[u64]>,
    ) -> Operand {
        let negated = |mask: &[u64]| -> Secret { mask.iter().map(|r| ring.wrap(r.wrapping_neg())).collect() };
        Operand {
            masked: products.prepare(device, ring, masked),
            negated_mask: mask.map(|mask| products.prepare(device, ring, &negated(mask))),
        }
    }
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

/// This party's additive share of the bias (the third operand), over the whole output.
fn bias_share(cx: &Eval, x: &Held) -> Vec<u64> {
    let node = x.at.node();
    if node.inputs.len() < 3 {
        return vec![0; x.at.len()];
    }
    let leads = cx.leads() as u64;
    let (masked, mask) = (x.value(2), x.mask(cx, 2));
    let share = masked.iter().zip(mask.own().iter()).map(|(b, r)| (leads * b).wrapping_sub(*r));
    spread_bias(node, &share.collect::<Secret>())
}

impl Gate for Linear<'_> {
    fn prepare(&self, cx: &mut dyn Preprocess, x: &Given) -> Result<(), PrepareError> {
        let (products, to, lambda) = (products(&x.at), x.at.to(), x.mask(cx, 0));
        let c = match static_operand(x.at.plan, x.at.id) {
            Some(_) => cx.products(products, &lambda, Factor::Session(x.at.id))?,
            None => {
                let w = x.mask(cx, 1);
                cx.products(products, &lambda, Factor::Record(&w))?
            }
        };
        let s = cx.mask(x.at.wire(), to, c.len());
        words::keep(cx, &c.add(&s))
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let (products, to, leads) = (products(&x.at), x.at.to(), cx.leads() as u64);
        let xh = x.value(0);
        let lambda = x.mask(cx, 0);
        let x_share: Secret =
            xh.iter().zip(lambda.own().iter()).map(|(xh, r)| (leads * xh).wrapping_sub(*r)).collect();
        let w = match x.prepared() {
            Some(w) => Cow::Borrowed(w),
            None => Cow::Owned(Operand::new(cx.device, to, products, &x.value(1), Some(x.mask(cx, 1).own()))),
        };
        let mut z = bias_share(cx, x);
        products.accumulate(cx.device, to, &x_share, &w.masked, &mut z);
        cx.stats.macs += products.macs();
        if let Some(negated_mask) = &w.negated_mask {
            products.accumulate(cx.device, to, &xh, negated_mask, &mut z);
            cx.stats.macs += products.macs();
        }
        words::each(cx, to, z.len(), |range, c| {
            z[range].iter_mut().zip(c).for_each(|(z, c)| *z = z.wrapping_add(*c));
        })?;
        cx.open_masked("product", to, z)
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens(list, "product");
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        let macs = self.geometry.map_or_else(|| of.elements() * inner(of), |geometry| geometry.macs());
        price::linear(of, macs)
    }
}
