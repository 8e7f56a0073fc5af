//! `b x` for a bit b of one bit's ring: the masked bit `bh = b ^ m` picks as in ReLU's selection, with `e = 1 ^ bh` and kappa = m.
//! No comparison, and no bit is opened.

use super::relu;
use crate::Opened;
use crate::compare::{PIECE, pieces};
use crate::eval::{Eval, EvalError};
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::prepare::Given;
use crate::preprocess::{PrepareError, Preprocess};
use crate::price;
use crate::shares::{Bits, Words};
use privet_family::{OpeningList, Secret, Wire};
use privet_plan::cost::{Cost, Operation};
use privet_ring::{BitVec, Ring};

/// Shares of elements of Z_2 as XOR shares of packed bits: the same.
pub(super) fn bits(elements: &Words) -> Bits {
    let pack = |share: &Secret| {
        share.chunks(64).map(|bits| bits.iter().enumerate().fold(0, |w, (j, b)| w | (b & 1) << j)).collect()
    };
    Bits::new(elements.seats(), elements.shares().iter().map(pack).collect())
}

/// Prepare for a bit with mask `m` and a value with mask `lambda`.
fn prepare(cx: &mut dyn Preprocess, m: &Words, lambda: &Words) -> Result<(), PrepareError> {
    for (_, range) in pieces(lambda.len(), PIECE) {
        let kappa = bits(&m.slice(range.clone()));
        relu::prepare_select(cx, &kappa, &lambda.slice(range))?;
    }
    Ok(())
}

/// Evaluate on both masked values and this party's summand of the second one's mask, under the mask of `wire`. One round.
fn eval(
    cx: &mut Eval,
    wire: Wire,
    ring: Ring,
    bh: &[u64],
    (xh, lambda): (&[u64], &[u64]),
) -> Result<Opened, EvalError> {
    let n = xh.len();
    let (mut kappa, mut product) = (Secret::new(Vec::with_capacity(n)), Secret::new(Vec::with_capacity(n)));
    for (_, range) in pieces(n, PIECE) {
        kappa.extend_from_slice(&cx.take(ring, range.len())?);
        product.extend_from_slice(&cx.take(ring, range.len())?);
    }
    let mut e = BitVec::zeros(n);
    for (w, bits) in e.words_mut().iter_mut().zip(bh.chunks(64)) {
        *w = bits.iter().enumerate().fold(0, |w, (j, b)| w | (1 ^ (b & 1)) << j);
    }
    let s = cx.result_mask(wire, ring, n);
    let y = relu::select(ring, cx.leads(), &e, (xh, lambda), [&kappa, &product], s);
    cx.open_masked("chosen", ring, y)
}

fn price_of(n: u64, bits: u32) -> Cost {
    price::sum([price::words(n, 2, bits), price::selected(n, bits), price::opened(n, bits)])
}

/// [`privet_plan::ir::Op::Choose`].
pub(crate) struct Choose;

impl Gate for Choose {
    fn prepare(&self, cx: &mut dyn Preprocess, x: &Given) -> Result<(), PrepareError> {
        let (m, lambda) = (x.mask(cx, 0), x.mask(cx, 1));
        prepare(cx, &m, &lambda)
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let lambda = x.mask(cx, 1);
        eval(cx, x.at.wire(), x.at.to(), &x.value(0), (&x.value(1), lambda.own()))
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens(list, "chosen");
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        price_of(of.elements(), of.result_bits())
    }
}

/// [`privet_plan::ir::Op::ChooseEvery`]: by one bit after the other, what is between under the masks of inner wires.
pub(crate) struct ChooseEvery;

impl ChooseEvery {
    /// Wires of what the bits before the last one leave, and of the result.
    fn wires(at: &At) -> Vec<Wire> {
        let bits = at.node().inputs.len() - 1;
        (1..bits).map(|i| at.wire().inner(i)).chain([at.wire()]).collect()
    }
}

impl Gate for ChooseEvery {
    fn prepare(&self, cx: &mut dyn Preprocess, x: &Given) -> Result<(), PrepareError> {
        let wires = ChooseEvery::wires(&x.at);
        let mut lambda = x.mask(cx, wires.len());
        for (i, wire) in wires.into_iter().enumerate() {
            let m = x.mask(cx, i);
            prepare(cx, &m, &lambda)?;
            lambda = cx.mask(wire, x.at.to(), x.at.len()).into();
        }
        Ok(())
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let (wires, ring, n) = (ChooseEvery::wires(&x.at), x.at.to(), x.at.len());
        let (mut xh, mut lambda) = (Opened::Here(x.value(wires.len()).to_vec()), x.mask(cx, wires.len()));
        for (i, wire) in wires.into_iter().enumerate() {
            let given = cx.receive(xh)?;
            xh = eval(cx, wire, ring, &x.value(i), (&given, lambda.own()))?;
            lambda = cx.mask(wire, ring, n).into();
        }
        Ok(xh)
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        ChooseEvery::wires(at).iter().for_each(|_| at.opens(list, "chosen"));
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        price::sum((1..of.operands.len()).map(|_| price_of(of.elements(), of.result_bits())))
    }
}
