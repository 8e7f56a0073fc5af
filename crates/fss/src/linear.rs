//! Linear layers on masked values: `z + s = (xh - r_x)(wh - r_w) + s`.
//!
//! Evaluator b has additive shares of x and w, `[x]_b = b xh - [r_x]_b` (b = 1 for the one that adds
//! public parts) and likewise for w, and computes `[x]_b wh - xh [r_w]_b + [r_x r_w + s]_b`. The sum over
//! both is `x wh - xh r_w + r_x r_w + s = x w + s`. One dealt word an output element, one round of k bits.

use crate::keys::KeyError;
use crate::{Deal, Eval, EvalError, Wire, tables};
use privet_family::{Prepared, Products};
use privet_ring::Ring;

/// The dealer's side, for operands with masks `rx` and (prepared) `rw`.
pub(crate) fn deal(
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
        mut mask: Vec<u64>,
    ) -> Operand {
        for r in &mut mask {
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
pub(crate) fn eval(
    cx: &mut Eval,
    wire: Wire,
    ring: Ring,
    products: Products,
    (xh, rx): (&[u64], Vec<u64>),
    w: &Operand,
    start: Vec<u64>,
) -> Result<Vec<u64>, EvalError> {
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
