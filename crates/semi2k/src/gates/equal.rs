//! `1{x = 0}` in k' bits (equality of two values is this on their difference): `x = 0` exactly where `u = H`. Opened under kappa,
//! which is a word as well.

use super::max::difference;
use super::sign::bit_to_ring;
use crate::Opened;
use crate::compare::{Comparison, Linked};
use crate::eval::{Eval, EvalError};
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::prepare::Given;
use crate::preprocess::{Kept, PrepareError, Preprocess};
use crate::price;
use privet_family::{OpeningList, Wire};
use privet_plan::cost::{Cost, Operation};
use privet_ring::Ring;

/// [`privet_plan::ir::Op::Equal`].
pub(crate) struct Equal;

fn link(wire: Wire, from: Ring, to: Ring) -> Linked {
    Linked::compared(wire, from, Comparison::equal(from.bits()), false, vec![to])
}

impl Gate for Equal {
    fn prepare(&self, cx: &mut dyn Preprocess, x: &Given) -> Result<(), PrepareError> {
        let (from, to) = (x.at.from(), x.at.to());
        let lambda = x.mask(cx, 0).sub(&x.mask(cx, 1));
        let link = link(x.at.wire(), from, to);
        link.prepare(cx, x.at.node().form, &lambda, None, (from, &[]), |cx, piece, _| {
            let kappa = piece.result_bits(cx);
            let word = cx.to_words(&[&kappa], piece.len(), to)?;
            cx.keep(Kept::Words(&word[0]))
        })
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let (from, to) = (x.at.from(), x.at.to());
        let xh = difference(from, &x.value(0), &x.value(1));
        let mut read = link(x.at.wire(), from, to).read(cx, "equality bit", xh.len(), |i| xh[i])?;
        let bit = read.open(cx, "equality bit")?;
        let s = cx.result_mask(x.at.wire(), to, xh.len());
        let y = bit_to_ring(to, cx.leads(), &bit, &read.words[0], s);
        cx.open_masked("equality", to, y.expose())
    }

    fn compares(&self, from: u32) -> Option<Comparison> {
        Some(Comparison::equal(from))
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens_bits_and(list, Comparison::equal(at.from().bits()), "equality bit", "equality");
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        let [from, to] = [of.operand_bits(), of.result_bits()].map(Ring::new);
        price::gate(of, &link(Wire::node(0), from, to))
    }
}
