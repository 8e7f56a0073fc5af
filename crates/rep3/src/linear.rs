//! Products of two shared values: party i holds the summand `x_i y_i + x_i y_(i+1) + x_(i+1) y_i` of the result (Araki et
//! al., CCS 2016, section 2.2), whole inner products at a time, and one reshare makes it a share of it.

use crate::context::Masks;
use crate::gate::{Gate, Held};
use crate::local::{difference, sum};
use crate::price::proofs::{Extension, by_element};
use crate::price::{Moves, Setting};
use crate::proof::{Algebra, Column, Kind, ProductClaim, View};
use crate::value::Value;
use crate::{Party, PartyId, RunError, Share};
use privet_family::{Prepared, Products, spread_bias};
use privet_kernels::{Device, LinearShape};
use privet_plan::cost::Operation;
use privet_ring::{Conv2d, Ring};
use std::borrow::Cow;
use std::sync::Arc;

/// The second operand of a matrix product or convolution at a party, prepared on its device.
#[derive(Clone)]
pub(crate) struct Operand {
    /// The share itself, for proofs; empty where there are none.
    pub share: Share,
    /// `W_i`.
    own: Prepared,
    /// `W_i + W_(i+1)`.
    both: Prepared,
}

impl Operand {
    /// From the party's share.
    pub fn new(device: &dyn Device, ring: Ring, products: Products, w: &Share) -> Operand {
        let sum = w.own.iter().zip(w.next.iter()).map(|(a, b)| ring.wrap(a.wrapping_add(*b)));
        let both = products.prepare(device, ring, &sum.collect::<Vec<u64>>());
        Operand { share: w.clone(), own: products.prepare(device, ring, &w.own), both }
    }
}

/// Matrix products or a convolution: `x_i (W_i + W_(i+1)) + x_(i+1) W_i`, two products on the device, added to `start`, a
/// share of what the result is added to. One round, one element a result.
pub(crate) fn products(
    cx: &mut Party,
    ring: Ring,
    products: Products,
    x: &Share,
    w: &Operand,
    start: Share,
) -> Result<Share, RunError> {
    if products.shape.weight_len() == 0 && products.output_len() > 0 {
        // A reshare of masks alone: its statements would have no terms, and so no proof.
        return Err(RunError::Missing("a product whose inner dimension is empty has no operands".into()));
    }
    let mut z = Arc::unwrap_or_clone(start.own);
    products.accumulate(cx.device, ring, &x.own, &w.both, &mut z);
    products.accumulate(cx.device, ring, &x.next, &w.own, &mut z);
    cx.stats.macs += 2 * products.macs();
    let (z, masks) = cx.reshare("product", ring, z)?;
    if let (Some(transcript), Some(mut masks)) = (&mut cx.transcript, masks) {
        for (rest, start) in masks.before.iter_mut().zip(start.next.iter()) {
            *rest = rest.wrapping_add(*start);
        }
        match by_place(products, x, &w.share) {
            Some([x, w]) => claim(cx, ring, [&x, &w], masks),
            None => {
                let (before, after) = (masks.before.into(), masks.after.into());
                let (x, w) = (x.clone(), w.share.clone());
                transcript.push_products(ProductClaim { ring, products, x, w, before, after });
            }
        }
    }
    Ok(z)
}

/// The operands of all elements of the results, one vector for every place of the inner dimension, where that is how they are proved.
fn by_place(products: Products, x: &Share, w: &Share) -> Option<[Vec<Share>; 2]> {
    let (m, k, n, stride) = match products.shape {
        LinearShape::MatMulT { m, k, n } => (m, k, n, [k, 1]),
        LinearShape::MatMul { m, k, n } => (m, k, n, [1, n]),
        LinearShape::Conv2d(_) => return None,
    };
    if !by_element(m, k, n) {
        return None;
    }
    let columns = |share: &Share, at: &dyn Fn(usize, usize, usize, usize) -> usize| {
        let column = |words: &[u64], place| {
            let results = (0..products.count * m * n).map(|i| (i / (m * n), i / n % m, i % n));
            results.map(|(product, row, column)| words[at(product, row, column, place)]).collect()
        };
        let share = |place| Share::new(column(&share.own, place), column(&share.next, place));
        (0..k).map(share).collect()
    };
    Some([
        columns(x, &|product, row, _, place| (product * m + row) * k + place),
        columns(w, &|product, _, column, place| product * k * n + column * stride[0] + place * stride[1]),
    ])
}

/// Elementwise product. One round.
pub(crate) fn mul(cx: &mut Party, ring: Ring, x: &Share, y: &Share) -> Result<Share, RunError> {
    dots(cx, ring, std::slice::from_ref(x), std::slice::from_ref(y))
}

/// Elementwise sums of products `x_0 y_0 + x_1 y_1 + ...`, one element a sum. One round.
pub(crate) fn dots(cx: &mut Party, ring: Ring, x: &[Share], y: &[Share]) -> Result<Share, RunError> {
    let n = x.first().map_or(0, Share::len);
    let mut summand = vec![0u64; n];
    for (x, y) in x.iter().zip(y) {
        let own = x.own.iter().zip(x.next.iter()).zip(y.own.iter().zip(y.next.iter()));
        for (s, ((x0, x1), (y0, y1))) in summand.iter_mut().zip(own) {
            let product = x0.wrapping_mul(y0.wrapping_add(*y1)).wrapping_add(x1.wrapping_mul(*y0));
            *s = s.wrapping_add(product);
        }
    }
    let (z, masks) = cx.reshare("product", ring, summand)?;
    if let Some(masks) = masks {
        claim(cx, ring, [x, y], masks);
    }
    Ok(z)
}

/// What every party stated by resharing sums of products: a batch of statements about each, in the order of the parties.
fn claim(cx: &mut Party, ring: Ring, [x, y]: [&[Share]; 2], mut masks: Masks) {
    let id = cx.id;
    let Some(transcript) = &mut cx.transcript else { return };
    let algebra = Algebra::Ring(ring);
    for (x, y) in x.iter().zip(y) {
        algebra.subtract_product(&mut masks.after, &x.own, &y.own);
    }
    let terms = |[left, right]: [&dyn Fn(&Share) -> Column; 2]| -> Vec<[Column; 2]> {
        x.iter().zip(y).map(|(x, y)| [left(x), right(y)]).collect()
    };
    let sum = |ring: Ring| move |x: &Share| Column::from(Algebra::Ring(ring).sum(&x.own, &x.next));
    let (before, after): (Column, Column) = (masks.before.into(), masks.after.into());
    for prover in PartyId::ALL {
        let view = if prover == id {
            View::Prover(terms([&sum(ring), &sum(Ring::R64)]))
        } else if prover == id.next() {
            View::verifier(terms([&|x| (&x.next).into(); 2]), before.clone())
        } else {
            View::verifier(terms([&|x| (&x.own).into(); 2]), after.clone())
        };
        transcript.push(Kind::Ring(ring), prover, view);
    }
}

/// [`privet_plan::ir::Op::Linear`], [`privet_plan::ir::Op::MatMul`] and [`privet_plan::ir::Op::Conv2d`].
pub(crate) struct Linear<'a> {
    /// Of a convolution.
    pub geometry: Option<&'a Conv2d>,
}

/// The bias (the third operand) over the whole output.
fn bias(cx: &Party, x: &Held) -> Share {
    let (node, zeros) = (x.node(), || vec![0; x.node().ty.len()]);
    if node.inputs.len() < 3 {
        return Share::new(zeros(), zeros());
    }
    let bias = x.share(2);
    // the second component is for proofs alone
    let next = if cx.transcript.is_some() { spread_bias(node, &bias.next) } else { zeros() };
    Share::new(spread_bias(node, &bias.own), next)
}

impl Gate for Linear<'_> {
    fn eval(&self, cx: &mut Party, x: &Held) -> Result<Value, RunError> {
        let shape = Products::of(x.plan, x.node()).ok_or_else(|| x.missing("product"))?;
        let start = bias(cx, x);
        let w = match x.prepared() {
            Some(w) => Cow::Borrowed(w),
            None => Cow::Owned(Operand::new(cx.device, x.to(), shape, &x.share(1))),
        };
        Ok(products(cx, x.to(), shape, &x.share(0), &w, start)?.into())
    }

    /// A reshare of the result, proved as inner products as long as the inner dimension, or element by element.
    fn price(&self, _: &Setting, of: &Operation<'_>) -> Moves {
        let (x, w, y) = (of.operands[0].ty, of.operands[1].ty, of.result);
        let lens = [x.len(), w.len(), y.len()];
        let moves = Moves::reshare(of.elements(), of.result_bits());
        if let Some(geometry) = self.geometry {
            let depth = geometry.in_channels * geometry.kernel[0] * geometry.kernel[1];
            return moves.stating_products(depth, lens).multiplying(geometry.macs());
        }
        let depth = x.shape.last().copied().unwrap_or(0);
        let moves = moves.multiplying(of.elements() * depth as u64);
        match (&x.shape[..], &y.shape[..]) {
            (_, [.., rows, columns]) if by_element(*rows, depth, *columns) => {
                moves.stating(Extension::Ring, [of.elements(); 3], depth)
            }
            // once for every product of a batch
            ([batch @ .., _, _], _) => moves.stating_products(batch.iter().product::<usize>() * depth, lens),
            _ => moves,
        }
    }
}

/// [`privet_plan::ir::Op::Mul`].
pub(crate) struct Product;

impl Gate for Product {
    fn eval(&self, cx: &mut Party, x: &Held) -> Result<Value, RunError> {
        Ok(mul(cx, x.to(), &x.share(0), &x.share(1))?.into())
    }

    fn price(&self, setting: &Setting, of: &Operation<'_>) -> Moves {
        setting.sums_of_products(of.elements(), of.result_bits(), 1).multiplying(of.elements())
    }
}

/// [`privet_plan::ir::Op::Select`]: `y + c (x - y)`.
pub(crate) struct Select;

impl Gate for Select {
    fn eval(&self, cx: &mut Party, x: &Held) -> Result<Value, RunError> {
        let (to, y) = (x.to(), x.share(2));
        let picked = mul(cx, to, &x.share(0), &difference(to, &x.share(1), &y))?;
        Ok(sum(to, &y, &picked).into())
    }

    fn price(&self, setting: &Setting, of: &Operation<'_>) -> Moves {
        setting.sums_of_products(of.elements(), of.result_bits(), 1).multiplying(of.elements())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Security;
    use crate::testing::three;

    /// Results that nothing is multiplied for would be messages that nobody proves.
    #[test]
    fn an_empty_inner_dimension_is_refused_before_anything_is_sent() {
        let shapes = [LinearShape::MatMul { m: 3, k: 0, n: 4 }, LinearShape::MatMulT { m: 3, k: 0, n: 4 }];
        for (security, shape) in [Security::SemiHonest, Security::Malicious]
            .into_iter()
            .flat_map(|s| shapes.map(|shape| (s, shape)))
        {
            let found = three(security, |cx| {
                let (ring, shape) = (Ring::new(30), Products { shape, count: 2 });
                let none = Share::default();
                let w = Operand::new(cx.device, ring, shape, &none);
                let start = Share::new(vec![0; 24], vec![0; 24]);
                let error = products(cx, ring, shape, &none, &w, start).map(|_| ()).unwrap_err();
                (error.to_string(), cx.place().0)
            });
            for (error, step) in found {
                assert!(error.contains("inner dimension is empty"), "{error}");
                assert_eq!(step, 0, "something was sent");
            }
        }
    }
}
