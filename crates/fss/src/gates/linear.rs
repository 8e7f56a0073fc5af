//! Linear layers on masked values: one product for each evaluator.
//!
//! Evaluator b has R_b and S_b, its shares of the masks of x and w: `xh = x + R_0 + R_1`, `wh = w + S_0 + S_1`. Modulo 2^(k+1)
//!
//! ```text
//! (xh - 2 R_0)(wh - 2 S_0) + (xh - 2 R_1)(wh - 2 S_1) = 2 (xh wh - xh (S_0 + S_1) - (R_0 + R_1) wh + 2 R_0 S_0 + 2 R_1 S_1)
//!                                                     = 2 (x w + (R_0 - R_1)(S_0 - S_1))
//! ```
//!
//! Each evaluator computes one summand of the left side. Both summands are `xh wh` modulo 2, so their halves, both rounded down, lack
//! that bit: evaluator 0 adds it. The dealer computes the last product and deals what is left, `t - (R_0 - R_1)(S_0 - S_1)` for a
//! fresh mask t: one word an output element. One round of k bits opens `x w + t`.
//!
//! Example with k = 2: x = 3, w = 2, R = (1, 3), S = (2, 3), so xh = 3 and wh = 3 modulo 4. The summands are (3 - 2)(3 - 4) = -1 and
//! (3 - 6)(3 - 6) = 9, modulo 8 both odd: 7 and 1. Their halves are 3 and 0, and the bit makes it 4 = 0. Off go (1 - 3)(2 - 3) = 2:
//! -2 = 2 modulo 4, which is 3 * 2.
//!
//! *In a ring of 64 bits* there is no bit more, and one more than 32 would need words of 64. There `wh = 2 h + b`, and h takes the
//! place of half of wh:
//!
//! ```text
//! sum over evaluators of (xh - 2 R)(h - S) + [x] b = x w + (R_0 - R_1)(S_0 - S_1),     [x] = xh - R_0 and -R_1
//! ```
//!
//! The product by bits takes no multiplications ([`privet_kernels::Device::prepare_bits`]). The bits are those of wh, which both
//! evaluators know and which tells nothing, as the mask is uniform.

use crate::dealer::Dealt;
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::keys::KeyError;
use crate::masks::owned;
use crate::price;
use crate::{Deal, Eval, EvalError, Opened, Secret, Wire, tables};
use privet_family::{OpeningList, spread_bias};
use privet_family::{Prepared, Products};
use privet_kernels::Device;
use privet_plan::cost::{Cost, Operation};
use privet_ring::{Conv2d, Ring};
use std::borrow::Cow;

/// The dealer's side, for the differences of both shares of the operands' masks, the second one prepared.
fn deal(
    cx: &mut Deal,
    wire: Wire,
    ring: Ring,
    products: Products,
    dx: &[u64],
    dw: &Prepared,
) -> Result<(), KeyError> {
    let negated: Secret = dx.iter().map(|d| d.wrapping_neg()).collect();
    let mut c = cx.fresh_mask(wire, ring, products.output_len());
    products.accumulate(cx.device, ring, &negated, dw, &mut c);
    cx.stats.macs += products.macs();
    tables::deal(cx, wire, ring, c.len(), |i| [c[i]])
}

/// The second operand at an evaluator, prepared on the device.
#[derive(Clone)]
pub(crate) struct Factor {
    ring: Ring,
    /// `wh - 2 S` in a ring of one bit more; where a word is full `h - S`.
    doubled: Prepared,
    /// Where a word is full: the lowest bit of wh.
    odd: Option<Prepared>,
}

impl Factor {
    /// From the masked value and this evaluator's share of the mask.
    pub fn new(
        device: &dyn Device,
        ring: Ring,
        products: Products,
        masked: &[u64],
        mut share: Secret,
    ) -> Factor {
        if let Some(wider) = wider(ring) {
            for (s, wh) in share.iter_mut().zip(masked) {
                *s = wider.wrap(wh.wrapping_sub(s.wrapping_mul(2)));
            }
            return Factor { ring, doubled: products.prepare(device, wider, &share), odd: None };
        }
        for (s, wh) in share.iter_mut().zip(masked) {
            *s = (ring.wrap(*wh) >> 1).wrapping_sub(*s);
        }
        let doubled = products.prepare(device, ring, &share);
        // large weights once less while their bits are packed
        drop(share);
        Factor { ring, doubled, odd: Some(products.prepare_bits(device, ring, masked)) }
    }

    /// Add to `out` this evaluator's summand of `x w + (R_0 - R_1)(S_0 - S_1)`, for the masked value and its share of the mask of x.
    fn add(
        &self,
        device: &dyn Device,
        products: Products,
        leads: bool,
        (xh, rx): (&[u64], Secret),
        out: &mut [u64],
    ) {
        let (doubled, ring, leads) = (self.ring_of_doubled(), self.ring, leads as u64);
        let less_twice = |(xh, r): (&u64, &u64)| doubled.wrap(xh.wrapping_sub(r.wrapping_mul(2)));
        let x: Secret = xh.iter().zip(rx.iter()).map(less_twice).collect();
        let Some(odd) = &self.odd else {
            let mut twice = Secret::new(vec![0; out.len()]);
            products.accumulate(device, doubled, &x, &self.doubled, &mut twice);
            for (out, twice) in out.iter_mut().zip(twice.iter()) {
                let twice = doubled.wrap(*twice);
                *out = ring.wrap(out.wrapping_add(twice >> 1).wrapping_add(twice & leads));
            }
            return;
        };
        products.accumulate(device, doubled, &x, &self.doubled, out);
        drop(x);
        let mut share = rx;
        share.iter_mut().zip(xh).for_each(|(r, xh)| *r = (leads * xh).wrapping_sub(*r));
        products.accumulate(device, ring, &share, odd, out);
    }

    fn ring_of_doubled(&self) -> Ring {
        wider(self.ring).unwrap_or(self.ring)
    }
}

/// The ring of one bit more, where a word of 32 or 64 bits has room for it.
fn wider(ring: Ring) -> Option<Ring> {
    (!ring.bits().is_multiple_of(32)).then(|| Ring::new(ring.bits() + 1))
}

/// An evaluator's side: masked value and own mask share of x, the other operand, and `start`, this
/// evaluator's additive share of what the product is added to (the bias, or zeros).
fn eval(
    cx: &mut Eval,
    wire: Wire,
    ring: Ring,
    products: Products,
    x: (&[u64], Secret),
    w: &Factor,
    start: Vec<u64>,
) -> Result<Opened, EvalError> {
    let mut z = start;
    w.add(cx.device, products, cx.leads(), x, &mut z);
    cx.stats.macs += products.macs();
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
        let (products, to, dx) = (products(&x.at), x.at.to(), x.difference(cx, 0));
        let dw = match x.prepared() {
            Some(dw) => Cow::Borrowed(dw),
            None => Cow::Owned(products.prepare(cx.device, to, &x.difference(cx, 1))),
        };
        deal(cx, x.at.wire(), to, products, &dx, &dw)
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let (products, to, start) = (products(&x.at), x.at.to(), bias_share(cx, x));
        let rx = owned(x.mask(cx, 0));
        let w = match x.prepared() {
            Some(w) => Cow::Borrowed(w),
            None => Cow::Owned(Factor::new(cx.device, to, products, &x.value(1), owned(x.mask(cx, 1)))),
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

#[cfg(test)]
mod tests {
    use super::*;
    use privet_kernels::{LinearShape, linear};
    use privet_prg::Seed;
    use proptest::prelude::*;

    /// Elements of a ring, the ends of the ring among them.
    fn elements(stream: &mut privet_prg::Prg, ring: Ring, n: usize) -> Vec<u64> {
        let ends = [0, 1, u64::MAX, 1 << (ring.bits() - 1)].map(|v| ring.wrap(v));
        let picks = stream.elements(Ring::new(3), n);
        let any = stream.elements(ring, n);
        picks.iter().zip(any).map(|(pick, v)| ends.get(*pick as usize).copied().unwrap_or(v)).collect()
    }

    proptest! {
        /// Both summands with the dealer's product are the product, in every ring.
        #[test]
        fn summands_make_the_product(bits in 1u32..=64, dims in proptest::array::uniform3(1usize..7), count in 1usize..3, seed: [u8; 16]) {
            let (ring, [m, k, n]) = (Ring::new(bits), dims);
            let products = Products { shape: LinearShape::MatMul { m, k, n }, count };
            let (device, mut stream) = (privet_kernels::cpu(1), Seed::from_bytes(seed).stream());
            let mut shared = |n: usize| {
                let [value, first, second] = [(); 3].map(|()| elements(&mut stream, ring, n));
                let masked: Vec<u64> = (0..n)
                    .map(|i| ring.wrap(value[i].wrapping_add(first[i]).wrapping_add(second[i])))
                    .collect();
                (value, masked, [first, second])
            };
            let (x, xh, rx) = shared(products.input_len());
            let (w, wh, rw) = shared(products.weight_len());
            let mut out = elements(&mut stream, ring, products.output_len());
            let start = out.clone();
            for (b, (rx, rw)) in rx.iter().zip(&rw).enumerate() {
                let factor = Factor::new(&*device, ring, products, &wh, Secret::new(rw.clone()));
                factor.add(&*device, products, b == 0, (&xh, Secret::new(rx.clone())), &mut out);
            }
            let difference = |[a, b]: &[Vec<u64>; 2]| -> Vec<u64> {
                a.iter().zip(b).map(|(a, b)| a.wrapping_sub(*b)).collect()
            };
            let (dx, dw) = (difference(&rx), difference(&rw));
            for i in 0..count {
                let part = |v: &[u64], len: usize| v[i * len..(i + 1) * len].to_vec();
                let of = |x: &[u64], w: &[u64]| {
                    linear::reference(ring, products.shape, &part(x, m * k), &part(w, k * n))
                };
                let (product, dealt) = (of(&x, &w), of(&dx, &dw));
                for (j, (p, d)) in product.iter().zip(&dealt).enumerate() {
                    let at = i * m * n + j;
                    prop_assert_eq!(
                        ring.wrap(out[at].wrapping_sub(start[at]).wrapping_sub(*d)), *p, "{} bits, element {}", bits, at
                    );
                }
            }
        }
    }
}
