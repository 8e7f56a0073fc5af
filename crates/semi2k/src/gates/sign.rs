//! `1{x < 0}` in k' bits: the opened `e = MSB(x) ^ kappa` turned into a number, `e + (1 - 2 e) kappa`. In one bit kappa is the
//! result's mask, so the opening of the comparison is that of the result.

use super::choose::bits;
use super::relu::{eval_sign, prepare_sign, sign_of, signed};
use crate::Opened;
use crate::compare::{Comparison, Linked};
use crate::eval::{Eval, EvalError};
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::prepare::Given;
use crate::preprocess::{Kept, PrepareError, Preprocess};
use crate::price;
use privet_family::{OpeningList, Secret, Wire};
use privet_plan::cost::{Cost, Operation};
use privet_ring::{BitVec, Ring};

/// The ring of bits.
const BIT: u32 = 1;

fn link(wire: Wire, from: Ring, to: Ring) -> Linked {
    signed(wire, from, if to.bits() == BIT { Vec::new() } else { vec![to] })
}

/// This party's share of `bit ^ kappa + s`, from its word of kappa.
pub(super) fn bit_to_ring(ring: Ring, leads: bool, bit: &BitVec, kappa: &[u64], mut s: Secret) -> Secret {
    let leads = u64::from(leads);
    for (i, (y, kappa)) in s.iter_mut().zip(kappa).enumerate() {
        let bit = bit.get(i);
        let flipped = 1u64.wrapping_sub(2 * bit).wrapping_mul(*kappa);
        *y = ring.wrap(y.wrapping_add(leads * bit).wrapping_add(flipped));
    }
    s
}

/// [`privet_plan::ir::Op::IsNegative`].
pub(crate) struct Sign;

impl Gate for Sign {
    fn prepare(&self, cx: &mut dyn Preprocess, x: &Given) -> Result<(), PrepareError> {
        let (lambda, from, to) = (x.mask(cx, 0), x.at.from(), x.at.to());
        let (link, form) = (link(x.at.wire(), from, to), x.at.node().form);
        if to.bits() == BIT {
            let kappa = bits(&cx.mask(x.at.wire(), to, lambda.len()));
            let of_piece = |_: &dyn Preprocess, piece: &crate::compare::Piece| {
                kappa.slice(piece.range.start / 64..piece.range.end.div_ceil(64))
            };
            return prepare_sign(cx, form, &link, &lambda, (from, &[]), of_piece, |_, _, _, _| Ok(()));
        }
        let kappa = |cx: &dyn Preprocess, piece: &crate::compare::Piece| piece.result_bits(cx);
        prepare_sign(cx, form, &link, &lambda, (from, &[]), kappa, |cx, piece, kappa, _| {
            let word = cx.to_words(&[kappa], piece.len(), to)?;
            cx.keep(Kept::Words(&word[0]))
        })
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let (from, to, xh) = (x.at.from(), x.at.to(), x.value(0));
        let (link, n) = (link(x.at.wire(), from, to), xh.len());
        if to.bits() == BIT {
            let (read, leads) = (link.read(cx, "sign bit", n, |i| xh[i])?, u64::from(cx.leads()));
            let share = (0..n).map(|i| read.bits.get(i) ^ (leads & from.msb(read.u[i])));
            return cx.open_masked("sign bit", to, share.collect());
        }
        let (e, read) = eval_sign(cx, &link, &xh)?;
        let s = cx.result_mask(x.at.wire(), to, xh.len());
        let y = bit_to_ring(to, cx.leads(), &e, &read.words[0], s);
        cx.open_masked("sign", to, y.expose())
    }

    fn compares(&self, from: u32) -> Option<Comparison> {
        Some(sign_of(from))
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        let what = sign_of(at.from().bits());
        match at.to().bits() {
            BIT => {
                at.opens_offsets(list, at.len());
                at.opens_levels(list, what, "sign bit", at.len());
                at.opens(list, "sign bit");
            }
            _ => at.opens_bits_and(list, what, "sign bit", "sign"),
        }
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        let [from, to] = [of.operand_bits(), of.result_bits()].map(Ring::new);
        let link = link(Wire::node(0), from, to);
        match to.bits() {
            // the opening of the comparison is that of the result
            BIT => price::linked(of.form, &link, of.elements()),
            _ => price::gate(of, &link),
        }
    }
}
