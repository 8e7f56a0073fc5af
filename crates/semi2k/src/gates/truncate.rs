//! Truncation: `signed(x) >> f`, exactly, or within as many units as half the parties, at no cost.
//!
//! *Exactly.* Modulo 2^(k-f) `TR(x) = TR(u) - TR(H) - 1{u_low < H_low}` with the low f bits of both; what is above them in H is a
//! private sum. The comparison's bit is opened under kappa, which is a word. Into a larger ring of k' bits, for |x| < 2^(k-2), with
//! all bits of H shared as in [`super::dither`].
//!
//! *Within.* `TR(xh) - sum TR(lambda_i)` differs from `TR(x)` by a whole number between 0 and n: with `a` and `l_i` the f low bits
//! of xh and `lambda_i`, `x = 2^f (TR(xh) - sum TR(lambda_i)) + a - sum l_i`. So half of n, rounded down, is subtracted. The result's
//! mask is the sum of `TR(lambda_i)`. The difference depends on how the summands were drawn, so it must not be shown by an
//! output: plans in which it would be are refused.

use super::dither::{Dither, above, offset, widens};
use super::sign::bit_to_ring;
use crate::Opened;
use crate::compare::{Comparison, Linked};
use crate::eval::{Eval, EvalError};
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::masks::{Mask, Masks};
use crate::mutation;
use crate::prepare::Given;
use crate::preprocess::{Kept, PrepareError, Preprocess};
use crate::price;
use crate::seeds::PartySeed;
use crate::shares::Words;
use privet_family::{MaskFrom, OpeningList, Wire};
use privet_plan::cost::{Cost, Operation};
use privet_ring::{BitVec, Ring};

/// [`privet_plan::ir::Op::Truncate`], rounded down.
pub(crate) struct Truncate {
    pub shift: u32,
}

fn link(wire: Wire, rings: [Ring; 2], shift: u32) -> Linked {
    let [from, to] = rings;
    let what = Comparison::less(shift);
    match widens(rings, shift) {
        true => Linked::compared(wire, from, what, false, vec![to, to, above(rings, shift)]),
        false => Linked { bits: shift, ..Linked::compared(wire, from, what, false, vec![to]) },
    }
}

/// The wire of what is above the low bits of H.
fn high(wire: Wire) -> Wire {
    wire.inner(1)
}

impl Gate for Truncate {
    fn prepare(&self, cx: &mut dyn Preprocess, x: &Given) -> Result<(), PrepareError> {
        let (rings, f, lambda) = ([x.at.from(), x.at.to()], self.shift, x.mask(cx, 0));
        let ([from, to], link, form) = (rings, link(x.at.wire(), rings, f), x.at.node().form);
        let kappa = |cx: &mut dyn Preprocess, piece: &crate::compare::Piece| {
            let kappa = piece.result_bits(cx);
            let word = cx.to_words(&[&kappa], piece.len(), to)?;
            cx.keep(Kept::Words(&word[0]))
        };
        if !widens(rings, f) {
            let high = cx.mask(high(x.at.wire()), to, lambda.len());
            return link
                .prepare(cx, form, &lambda, Some(&high), (from, &[]), |cx, piece, _| kappa(cx, piece));
        }
        let parts = [f..from.bits(), from.bits() - 1..from.bits()];
        link.prepare(cx, form, &lambda, None, (to, &parts), |cx, piece, mask| {
            kappa(cx, piece)?;
            cx.keep(Kept::Words(&mask.words[0].reduced(to)))?;
            cx.keep(Kept::Words(&mask.words[1].reduced(link.words[2])))
        })
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let (rings, f, xh) = ([x.at.from(), x.at.to()], self.shift, x.value(0));
        let ([from, to], wire, n) = (rings, x.at.wire(), xh.len());
        let wide = widens(rings, f);
        let add = if wide { offset(from) } else { 0 };
        let mut read = link(wire, rings, f).read(cx, "carry bit", n, |i| xh[i].wrapping_add(add))?;
        let carry = read.open(cx, "carry bit")?;
        let carry = if mutation::active("carry-dropped") { BitVec::zeros(n) } else { carry };
        let zero = privet_family::Secret::new(vec![0; n]);
        let carry = bit_to_ring(to, cx.leads(), &carry, &read.words[0], zero);
        let above = match wide {
            true => read.words[1].clone(),
            false => cx.mask(high(wire), to, n).own().clone(),
        };
        let (leads, mut y) = (cx.leads() as u64, cx.result_mask(wire, to, n));
        for (i, (y, u)) in y.iter_mut().zip(&read.u).enumerate() {
            let wrap = if wide { ((1 - from.msb(*u)) * read.words[2][i]) << (from.bits() - f) } else { 0 };
            let public = leads * (u >> f).wrapping_sub(add >> f);
            let share = public.wrapping_sub(above[i]).wrapping_sub(carry[i]).wrapping_add(wrap);
            *y = to.wrap(y.wrapping_add(share));
        }
        cx.open_masked("truncated", to, y.expose())
    }

    fn compares(&self, _: u32) -> Option<Comparison> {
        Some(Comparison::less(self.shift))
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens_bits_and(list, Comparison::less(self.shift), "carry bit", "truncated");
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        let rings = [of.operand_bits(), of.result_bits()].map(Ring::new);
        price::gate(of, &link(Wire::node(0), rings, self.shift))
    }
}

/// [`privet_plan::ir::Rounding::OneUlp`]. Into a larger ring it is stochastic rounding.
pub(crate) struct Within {
    pub shift: u32,
}

impl Within {
    fn dithers(&self, at: &At) -> Option<Dither> {
        widens([at.from(), at.to()], self.shift).then_some(Dither { shift: self.shift })
    }
}

impl Gate for Within {
    fn mask(&self, at: &At, masks: &dyn Masks, operand: &dyn Fn(usize) -> Mask) -> Words {
        match self.dithers(at) {
            Some(_) => masks.fresh(at.wire(), at.to(), at.len()),
            None => operand(0).truncated(self.shift, at.to()),
        }
    }

    fn mask_from(&self, at: &At) -> MaskFrom {
        if self.dithers(at).is_some() { MaskFrom::Fresh } else { MaskFrom::Derived }
    }

    fn coins(&self, at: &At, seeds: &[PartySeed], mask: &dyn Fn() -> Words) -> Option<Vec<u64>> {
        self.dithers(at)?.coins(at, seeds, mask)
    }

    fn prepare(&self, cx: &mut dyn Preprocess, x: &Given) -> Result<(), PrepareError> {
        self.dithers(&x.at).map_or(Ok(()), |dither| dither.prepare(cx, x))
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        if let Some(dither) = self.dithers(&x.at) {
            return dither.eval(cx, x);
        }
        let (from, to, centre) = (x.at.from(), x.at.to(), cx.parties() as u64 / 2);
        let value = x.value(0);
        let high = value.iter().map(|xh| to.wrap((from.wrap(*xh) >> self.shift).wrapping_sub(centre)));
        Ok(Opened::Here(high.collect()))
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        if let Some(dither) = self.dithers(at) {
            dither.openings(at, list);
        }
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        let dither = Dither { shift: self.shift };
        match widens([of.operand_bits(), of.result_bits()].map(Ring::new), self.shift) {
            true => dither.price(of),
            false => Cost::default(),
        }
    }
}
