//! `b x` for a bit b of one bit's ring: the masked bit `bh = b ^ m` picks as in ReLU's selection, with `e = 1 ^ bh` and kappa = m.
//! No comparison, and no bit is opened.

use super::relu;
use crate::compare::{PIECE, pieces};
use crate::eval::{Eval, EvalError};
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::prepare::Given;
use crate::preprocess::{PrepareError, Preprocess};
use crate::price;
use crate::shares::{Bits, Words};
use privet_family::{OpeningList, Secret};
use privet_plan::cost::{Cost, Operation};
use privet_ring::{BitVec, Ring};

/// Shares of elements of Z_2 as XOR shares of packed bits: the same.
pub(super) fn bits(elements: &Words) -> Bits {
    let pack = |share: &Secret| {
        share.chunks(64).map(|bits| bits.iter().enumerate().fold(0, |w, (j, b)| w | (b & 1) << j)).collect()
    };
    Bits::new(elements.seats(), elements.shares().iter().map(pack).collect())
}

/// [`privet_plan::ir::Op::Choose`].
pub(crate) struct Choose;

impl Gate for Choose {
    fn prepare(&self, cx: &mut dyn Preprocess, x: &Given) -> Result<(), PrepareError> {
        let (m, lambda) = (x.mask(cx, 0), x.mask(cx, 1));
        for (_, range) in pieces(lambda.len(), PIECE) {
            let kappa = bits(&m.slice(range.clone()));
            relu::prepare_select(cx, &kappa, &lambda.slice(range))?;
        }
        Ok(())
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Vec<u64>, EvalError> {
        let (ring, bh, xh, lambda): (Ring, _, _, _) = (x.at.to(), x.value(0), x.value(1), x.mask(cx, 1));
        let n = xh.len();
        let (mut kappa, mut product) =
            (Secret::new(Vec::with_capacity(n)), Secret::new(Vec::with_capacity(n)));
        for (_, range) in pieces(n, PIECE) {
            kappa.extend_from_slice(&cx.take(ring, range.len())?);
            product.extend_from_slice(&cx.take(ring, range.len())?);
        }
        let mut e = BitVec::zeros(n);
        for (w, bits) in e.words_mut().iter_mut().zip(bh.chunks(64)) {
            *w = bits.iter().enumerate().fold(0, |w, (j, b)| w | (1 ^ (b & 1)) << j);
        }
        let s = cx.result_mask(x.at.wire(), ring, n);
        let y = relu::select(ring, cx.leads(), &e, (&xh, lambda.own()), [&kappa, &product], s);
        cx.open_masked("chosen", ring, y)
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens(list, "chosen");
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        let (n, bits) = (of.elements(), of.result_bits());
        price::sum([price::words(n, 2, bits), price::selected(n, bits), price::opened(n, bits)])
    }
}
