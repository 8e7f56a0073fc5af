//! Products of two shared values: party i holds the summand `x_i y_i + x_i y_(i+1) + x_(i+1) y_i` of the result (Araki et
//! al., CCS 2016, section 2.2), whole inner products at a time, and one reshare makes it a share of it.

use crate::context::ReshareMasks;
use crate::gate::{Gate, Held};
use crate::gates::Joined;
use crate::local::{difference, sum};
use crate::price::proofs::by_element;
use crate::price::{Moves, Setting};
use crate::proof::{Algebra, Column, Kind, Operand as Factor, ProductClaim, TaggedClaim, Tags, View};
use crate::value::Value;
use crate::{Party, PartyId, RunError, Security, Share};
use privet_family::{Prepared, Products};
use privet_kernels::{Device, LinearShape};
use privet_plan::cost::Operation;
use privet_ring::Ring;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// The second operand of a matrix product or convolution at a party, prepared on its device.
#[derive(Clone)]
pub(crate) struct Operand {
    /// What its products are proved by.
    proved: Proved,
    /// `W_i`.
    own: Prepared,
    /// `W_i + W_(i+1)`.
    both: Prepared,
}

/// What a second operand's products are proved by, where they are.
#[derive(Clone)]
enum Proved {
    /// The operand itself.
    Share(Share),
    /// The tags of the session, of which this operand has those from some product on.
    Tags(Arc<Tags>, usize),
}

impl Operand {
    /// From the party's share, of one run.
    pub fn new(device: &dyn Device, ring: Ring, products: Products, w: &Share) -> Operand {
        Operand::with(device, ring, products, w, Proved::Share(w.clone()))
    }

    /// From the party's share, for all runs of a session. Where messages are proved it gets tags: one round.
    pub fn of_session(
        cx: &mut Party,
        ring: Ring,
        products: Products,
        w: &Share,
    ) -> Result<Operand, RunError> {
        let proved = match cx.transcript {
            Some(_) => Proved::Tags(Tags::make(cx, ring, products, w)?.into(), 0),
            None => Proved::Share(Share::default()),
        };
        Ok(Operand::with(cx.device, ring, products, w, proved))
    }

    fn with(device: &dyn Device, ring: Ring, products: Products, w: &Share, proved: Proved) -> Operand {
        let sum = w.own.iter().zip(w.next.iter()).map(|(a, b)| ring.wrap(a.wrapping_add(*b)));
        let both = products.prepare(device, ring, &sum.collect::<Vec<u64>>());
        Operand { proved, own: products.prepare(device, ring, &w.own), both }
    }

    /// Whether it has tags.
    pub fn is_tagged(&self) -> bool {
        matches!(self.proved, Proved::Tags(..))
    }

    /// Of some of several products, whose second operands have these elements.
    fn part(&self, products: Range<usize>, elements: Range<usize>) -> Operand {
        let proved = match &self.proved {
            Proved::Share(share) if share.is_empty() => Proved::Share(Share::default()),
            Proved::Share(share) => Proved::Share(share.part(elements)),
            Proved::Tags(tags, first) => Proved::Tags(tags.clone(), first + products.start),
        };
        Operand { proved, own: self.own.part(products.clone()), both: self.both.part(products) }
    }
}

/// Matrix products or a convolution, and a bias, if there is one: an element for every column ([`Products::columns`]). One round, one
/// element a result; where the statements would be too many to be remembered, a round for every part ([`crate::limits::Limits::parts`]).
pub(crate) fn products(
    cx: &mut Party,
    ring: Ring,
    products: Products,
    x: &Share,
    w: &Operand,
    bias: Option<&Share>,
) -> Result<Share, RunError> {
    if products.shape.weight_len() == 0 && products.output_len() > 0 {
        // A reshare of masks alone: its statements would have no terms, and so no proof.
        return Err(RunError::Missing("a product whose inner dimension is empty has no operands".into()));
    }
    let security = if cx.transcript.is_some() { Security::Malicious } else { Security::SemiHonest };
    let parts: Vec<_> = cx.limits.parts(security, &products, w.is_tagged()).collect();
    if parts.len() == 1 {
        return part_of_products(cx, ring, products, x, w, bias);
    }
    let mut all = Joined::new(products.output_len());
    for units in parts {
        if units.start > 0 {
            cx.verify_if_large()?;
        }
        let of = |len: usize| units.start * (len / products.units())..units.end * (len / products.units());
        let x = x.part(of(products.input_len()));
        let w = match products.count {
            1 => Cow::Borrowed(w),
            _ => Cow::Owned(w.part(units.clone(), of(products.weight_len()))),
        };
        all.push(&part_of_products(cx, ring, products.with_units(units.len()), &x, &w, bias)?);
    }
    Ok(all.into())
}

/// `x_i (W_i + W_(i+1)) + x_(i+1) W_i`, two products on the device, added to the bias, and a reshare.
fn part_of_products(
    cx: &mut Party,
    ring: Ring,
    products: Products,
    x: &Share,
    w: &Operand,
    bias: Option<&Share>,
) -> Result<Share, RunError> {
    let mut z = match bias {
        Some(bias) => products.spread(&bias.own),
        None => vec![0; products.output_len()],
    };
    products.accumulate(cx.device, ring, &x.own, &w.both, &mut z);
    products.accumulate(cx.device, ring, &x.next, &w.own, &mut z);
    cx.stats.macs += 2 * products.macs();
    let w = match &w.proved {
        Proved::Share(w) => w,
        Proved::Tags(tags, first) => {
            let z = cx.reshare_with("product", ring, z, None)?;
            if let Some(transcript) = &mut cx.transcript {
                let (x, bias, z, first) = (x.clone(), bias.cloned(), z.clone(), *first);
                let claim = TaggedClaim { ring, products, x, bias, z, tags: tags.clone(), first };
                transcript.push_tagged(claim, cx.limits.ahead(&products, tags.are_of_rows()));
            }
            return Ok(z);
        }
    };
    let (z, masks) = cx.reshare("product", ring, z)?;
    if let (Some(transcript), Some(mut masks)) = (&mut cx.transcript, masks) {
        match by_place(products, x, w) {
            Some([x, w]) => {
                // of few results
                let bias = bias.map(|bias| products.spread(&bias.next)).unwrap_or_default();
                masks.before.iter_mut().zip(bias).for_each(|(rest, bias)| *rest = rest.wrapping_add(bias));
                claim(cx, ring, [&x, &w], masks);
            }
            None => {
                let (before, after) = (masks.before.into(), masks.after.into());
                let (x, w, bias) = (x.clone(), w.clone(), bias.map(|bias| (&bias.next).into()));
                transcript.push_products(ProductClaim { ring, products, x, w, bias, before, after });
            }
        }
    }
    Ok(z)
}

/// The operands of all elements of the results, one vector for every place of the inner dimension, where that is how they are proved.
fn by_place(products: Products, x: &Share, w: &Share) -> Option<[Vec<Share>; 2]> {
    let k = by_element(products.shape)?;
    let (m, n, stride) = match products.shape {
        LinearShape::MatMulT { m, n, .. } => (m, n, [k, 1]),
        LinearShape::MatMul { m, n, .. } => (m, n, [1, n]),
        LinearShape::Conv2d(_) => return None,
    };
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

/// [`mul`] of any length: one round for every block.
pub(crate) fn mul_in_blocks(cx: &mut Party, ring: Ring, x: &Share, y: &Share) -> Result<Share, RunError> {
    dots_in_blocks(cx, ring, &[[x, y]])
}

/// [`dots`] of any length likewise.
fn dots_in_blocks(cx: &mut Party, ring: Ring, pairs: &[[&Share; 2]]) -> Result<Share, RunError> {
    let n = pairs[0][0].len();
    let limits = cx.limits;
    let side = |i: usize, block: Option<Range<usize>>| -> Vec<Share> {
        let of = |pair: &[&Share; 2]| block.clone().map_or(pair[i].clone(), |block| pair[i].part(block));
        pairs.iter().map(of).collect()
    };
    if n <= limits.block {
        return dots(cx, ring, &side(0, None), &side(1, None));
    }
    let mut all = Joined::new(n);
    for block in limits.blocks(n) {
        if block.start > 0 {
            cx.verify_if_large()?;
        }
        all.push(&dots(cx, ring, &side(0, Some(block.clone())), &side(1, Some(block)))?);
    }
    Ok(all.into())
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
fn claim(cx: &mut Party, ring: Ring, [x, y]: [&[Share]; 2], mut masks: ReshareMasks) {
    let id = cx.id;
    let Some(transcript) = &mut cx.transcript else { return };
    let algebra = Algebra::Ring(ring);
    for (x, y) in x.iter().zip(y) {
        algebra.subtract_product(&mut masks.after, &x.own, &y.own);
    }
    let terms = |[left, right]: [&dyn Fn(&Share) -> Column; 2]| -> Vec<[Column; 2]> {
        x.iter().zip(y).map(|(x, y)| [left(x), right(y)]).collect()
    };
    let total = |x: &Share| Factor::Total([(&x.own).into(), (&x.next).into()]);
    let (before, after): (Column, Column) = (masks.before.into(), masks.after.into());
    for prover in PartyId::ALL {
        let view = if prover == id {
            View::Prover(x.iter().zip(y).map(|(x, y)| [total(x), total(y)]).collect())
        } else if prover == id.next() {
            View::verifier(terms([&|x| (&x.next).into(); 2]), before.clone())
        } else {
            View::verifier(terms([&|x| (&x.own).into(); 2]), after.clone())
        };
        transcript.push(Kind::Ring(ring), prover, view);
    }
}

/// [`privet_plan::ir::Op::Linear`], [`privet_plan::ir::Op::MatMul`] and [`privet_plan::ir::Op::Conv2d`].
pub(crate) struct Linear;

impl Gate for Linear {
    fn eval(&self, cx: &mut Party, x: &Held) -> Result<Value, RunError> {
        let shape = Products::of(x.plan, x.node()).ok_or_else(|| x.missing("product"))?;
        let bias = (x.node().inputs.len() > 2).then(|| x.share(2));
        let w = match x.prepared() {
            Some(w) => Cow::Borrowed(w),
            None => Cow::Owned(Operand::new(cx.device, x.to(), shape, &x.share(1))),
        };
        Ok(products(cx, x.to(), shape, &x.share(0), &w, bias.as_ref())?.into())
    }

    fn price(&self, setting: &Setting, of: &Operation<'_>) -> Moves {
        let products = Products::of_shapes(of.op, |i| of.operands[i].ty.shape.as_slice());
        let tagged = of.operands.get(1).is_some_and(|w| w.is_static);
        products.map(|products| setting.products(&products, of.result_bits(), tagged)).unwrap_or_default()
    }
}

/// [`privet_plan::ir::Op::Mul`].
pub(crate) struct Product;

impl Gate for Product {
    fn eval(&self, cx: &mut Party, x: &Held) -> Result<Value, RunError> {
        let operands: Vec<Share> = (0..x.node().inputs.len()).map(|i| x.share(i)).collect();
        let pairs: Vec<[&Share; 2]> =
            operands.as_chunks::<2>().0.iter().map(|pair| pair.each_ref()).collect();
        Ok(dots_in_blocks(cx, x.to(), &pairs)?.into())
    }

    fn price(&self, setting: &Setting, of: &Operation<'_>) -> Moves {
        setting.products_of_elements(of.elements(), of.result_bits(), of.operands.len() / 2)
    }
}

/// [`privet_plan::ir::Op::Select`]: `y + c (x - y)`.
pub(crate) struct Select;

impl Gate for Select {
    fn eval(&self, cx: &mut Party, x: &Held) -> Result<Value, RunError> {
        let (to, y) = (x.to(), x.share(2));
        let picked = mul_in_blocks(cx, to, &x.share(0), &difference(to, &x.share(1), &y))?;
        Ok(sum(to, &y, &picked).into())
    }

    fn price(&self, setting: &Setting, of: &Operation<'_>) -> Moves {
        setting.products_of_elements(of.elements(), of.result_bits(), 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::testing::{edges, open, share, three};
    use privet_ring::Conv2d;

    /// By rows, products, elements and images: what is remembered stays bounded, and the result is the same.
    #[test]
    fn products_of_many_statements_are_verified_in_parts() {
        let geometry = Conv2d {
            batch: 40,
            in_channels: 2,
            input: [4, 3],
            out_channels: 5,
            kernel: [2, 3],
            stride: [1; 2],
            padding: [1, 0, 1, 1],
            dilation: [1; 2],
            groups: 1,
        };
        for (shape, count) in [
            (LinearShape::MatMulT { m: 200, k: 3, n: 7 }, 1),
            (LinearShape::MatMul { m: 200, k: 3, n: 7 }, 1),
            (LinearShape::MatMul { m: 4, k: 3, n: 5 }, 40),
            (LinearShape::MatMulT { m: 2, k: 3, n: 2 }, 40),
            (LinearShape::Conv2d(geometry), 1),
        ] {
            let (ring, all) = (Ring::new(30), Products { shape, count });
            let [x, w, bias] = [all.input_len(), all.weight_len(), all.columns()].map(|n| edges(ring, n));
            let run = |statements| {
                let results = three(Security::Malicious, |cx| {
                    cx.limits = Limits { block: usize::MAX, worth: u64::MAX, statements, ahead: usize::MAX };
                    let [x, w, bias] = [&x, &w, &bias].map(|values| share(cx.id, ring, values));
                    let w = Operand::new(cx.device, ring, all, &w);
                    let y = products(cx, ring, all, &x, &w, Some(&bias)).unwrap();
                    cx.verify().unwrap();
                    (y, cx.most_remembered(), cx.stats.rounds, cx.checks.rounds)
                });
                let [a, ..] = &results;
                let y = open(ring, results.each_ref().map(|r| &r.0));
                (y, a.1, a.2, a.3)
            };
            let (truth, most, rounds, once) = run(u64::MAX);
            assert_eq!(rounds, 1);
            let limit = most / 8;
            let (found, most, rounds, often) = run(limit);
            assert!(found == truth, "{shape:?}");
            assert!(most <= 2 * limit, "{shape:?}: {most} bytes remembered, of {limit}");
            assert!(rounds >= 8 && often >= 4 * once, "{shape:?}: {rounds} parts, {often} of {once} rounds");
        }
    }

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
                let error = products(cx, ring, shape, &none, &w, None).map(|_| ()).unwrap_err();
                (error.to_string(), cx.place().0)
            });
            for (error, step) in found {
                assert!(error.contains("inner dimension is empty"), "{error}");
                assert_eq!(step, 0, "something was sent");
            }
        }
    }
}
