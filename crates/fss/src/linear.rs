//! Linear layers on masked values: `z + s = (xh - r_x)(wh - r_w) + s`.
//!
//! Evaluator b has additive shares of x and w, `[x]_b = b xh - [r_x]_b` (b = 1 for the one that adds
//! public parts) and likewise for w, and computes `[x]_b wh - xh [r_w]_b + [r_x r_w + s]_b`. The sum over
//! both is `x wh - xh r_w + r_x r_w + s = x w + s`. One dealt word an output element, one round of k bits.

use crate::keys::KeyError;
use crate::{Deal, Eval, EvalError, Wire, tables};
use privet_kernels::{LinearShape, Weights};
use privet_plan::ir::{Node, Op, Plan};
use privet_ring::Ring;
use std::sync::Arc;

/// A linear node as `count` equal products side by side (over 1 for a batched matrix product).
#[derive(Clone, Copy)]
pub(crate) struct Products {
    pub shape: LinearShape,
    pub count: usize,
}

impl Products {
    /// Of a checked node; `None` where the node is not linear in two operands.
    pub fn of(plan: &Plan, node: &Node) -> Option<Products> {
        let operand = |i: usize| plan.nodes[node.inputs[i]].ty.shape.as_slice();
        Some(match &node.op {
            Op::Linear => {
                let (x, w) = (operand(0), operand(1));
                Products { shape: LinearShape::MatMulT { m: x[0], k: x[1], n: w[0] }, count: 1 }
            }
            Op::MatMul => {
                let (x, y) = (operand(0), operand(1));
                let d = x.len() - 2;
                let shape = LinearShape::MatMul { m: x[d], k: x[d + 1], n: y[d + 1] };
                Products { shape, count: x[..d].iter().product() }
            }
            Op::Conv2d { geometry } => Products { shape: LinearShape::Conv2d(*geometry), count: 1 },
            _ => return None,
        })
    }

    /// Split an operand into the parts of each product.
    fn parts<'a>(&self, data: &'a [u64], each: usize) -> impl Iterator<Item = &'a [u64]> + use<'a> {
        (0..self.count).map(move |i| &data[i * each..(i + 1) * each])
    }

    /// The second operand, brought into the device's layout.
    pub fn prepare(&self, device: &dyn privet_kernels::Device, ring: Ring, w: &[u64]) -> Prepared {
        Prepared(
            self.parts(w, self.shape.weight_len()).map(|w| device.prepare(ring, self.shape, w)).collect(),
        )
    }

    fn accumulate(
        &self,
        device: &dyn privet_kernels::Device,
        ring: Ring,
        x: &[u64],
        w: &Prepared,
        out: &mut [u64],
    ) {
        let xs = self.parts(x, self.shape.input_len());
        for ((x, w), out) in xs.zip(&w.0).zip(out.chunks_mut(self.shape.output_len().max(1))) {
            device.linear_acc(ring, self.shape, x, w.as_ref(), out);
        }
    }

    fn output_len(&self) -> usize {
        self.count * self.shape.output_len()
    }

    fn macs(&self) -> u64 {
        self.count as u64 * self.shape.macs()
    }
}

/// Weights of [`Products`] on a device.
#[derive(Clone)]
pub(crate) struct Prepared(Vec<Arc<dyn Weights>>);

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

/// Spread a bias over an output: `[n]` over the last dimension of `[m, n]`, `[c]` over NCHW.
pub(crate) fn spread_bias(node: &Node, bias: &[u64]) -> Vec<u64> {
    let shape = &node.ty.shape;
    match node.op {
        Op::Conv2d { .. } => {
            let plane = shape[2] * shape[3];
            let image: Vec<u64> = bias.iter().flat_map(|&b| std::iter::repeat_n(b, plane)).collect();
            image.repeat(shape[0])
        }
        _ => bias.repeat(node.ty.len() / bias.len().max(1)),
    }
}
