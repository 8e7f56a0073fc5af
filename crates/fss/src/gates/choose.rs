//! `b x` for a bit b of one bit's ring: the masked bit `bh = b ^ m` picks the words of ReLU's selection, with
//! `d(bh) = bh ^ m` for the selector. No comparison, and no bit is opened.

use super::relu;
use crate::dealer::Dealt;
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::keys::KeyError;
use crate::price;
use crate::{Deal, Eval, EvalError, Opened, Wire};
use privet_family::OpeningList;
use privet_plan::cost::{Cost, Operation};
use privet_ring::{BitVec, Ring};

/// Deal for a bit with mask `m` and a value with mask `r`.
pub(super) fn deal(cx: &mut Deal, wire: Wire, ring: Ring, m: &[u64], r: &[u64]) -> Result<(), KeyError> {
    let not_m = bits(m, |m| 1 ^ m);
    relu::deal_select(cx, wire, ring, &not_m, r)
}

/// Evaluate on both masked values and this evaluator's share of the second one's mask. One round of k bits.
pub(super) fn eval(
    cx: &mut Eval,
    wire: Wire,
    ring: Ring,
    bh: &[u64],
    (xh, r): (&[u64], &[u64]),
) -> Result<Opened, EvalError> {
    relu::eval_select(cx, wire, "chosen", ring, &bits(bh, |b| b), (xh, r))
}

/// A bit of every element, packed.
pub(super) fn bits(elements: &[u64], bit: impl Fn(u64) -> u64) -> BitVec {
    let mut out = BitVec::zeros(elements.len());
    for (word, elements) in out.words_mut().iter_mut().zip(elements.chunks(64)) {
        *word = elements.iter().enumerate().fold(0, |word, (j, &x)| word | (bit(x) & 1) << j);
    }
    out
}

/// [`privet_plan::ir::Op::Choose`].
pub(crate) struct Choose;

impl Gate for Choose {
    fn deal(&self, cx: &mut Deal, x: &Dealt) -> Result<(), KeyError> {
        let (m, r) = (x.mask(cx, 0), x.mask(cx, 1));
        deal(cx, x.at.wire(), x.at.to(), &m, &r)
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let r = x.mask(cx, 1);
        eval(cx, x.at.wire(), x.at.to(), &x.value(0), (&x.value(1), &r))
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens(list, "chosen");
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        price::opened(of.elements(), 2, of.result_bits())
    }
}
