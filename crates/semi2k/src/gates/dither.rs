//! Stochastic rounding, `floor((x + d) / 2^f)` with d uniform in f bits: d is the low bits of H.
//!
//! `x + H_low = u - 2^f TR(H)`, so modulo 2^(k-f) `floor((x + H_low) / 2^f) = TR(u) - TR(H)`. What is above the low bits of H is
//! used nowhere else, so it may be a private sum: then it is the result's mask, and TR(u) its masked value. Nothing is opened.
//!
//! Into a larger ring, for |x| < 2^(k-2): the same of `v = x + 2^(k-2)`, which is in [0, 2^(k-1)). As an integer
//! `v = u - H + 2^k w` with `w = (1 - MSB(u)) MSB(H)`: where MSB(H) = 0, v + H stays below 2^k, and where it is 1, v + H is at
//! least 2^(k-1), so that u has its top bit cleared exactly if it wrapped. All bits of H are shared; words TR(H), and MSB(H)
//! modulo 2^(k' - k + f).

use crate::Opened;
use crate::compare::{Linked, PIECE};
use crate::eval::{Eval, EvalError};
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::prepare::Given;
use crate::preprocess::{Kept, PrepareError, Preprocess};
use crate::price;
use crate::seeds::PartySeed;
use crate::shares::Words;
use privet_family::{OpeningList, Wire};
use privet_plan::cost::{Cost, Operation};
use privet_ring::Ring;

/// What is added to x so that it is not negative: 2^(k-2), whose lowest f bits are zero.
pub(super) fn offset(from: Ring) -> u64 {
    1 << (from.bits() - 2)
}

/// Whether the result has more bits than truncate-reduce leaves.
pub(super) fn widens([from, to]: [Ring; 2], shift: u32) -> bool {
    to.bits() > from.bits() - shift
}

/// The ring of what multiplies 2^(k-f).
pub(super) fn above([from, to]: [Ring; 2], shift: u32) -> Ring {
    Ring::new(to.bits() + shift - from.bits())
}

fn link(wire: Wire, rings: [Ring; 2], shift: u32) -> Linked {
    let [ring, to] = rings;
    let (bits, words) = match widens(rings, shift) {
        true => (ring.bits(), vec![to, above(rings, shift)]),
        false => (shift, Vec::new()),
    };
    Linked { wire, ring, bits, what: None, plane: false, words, piece: PIECE }
}

/// [`privet_plan::ir::Op::Dither`], and [`privet_plan::ir::Op::Truncate`] rounded by [`privet_plan::ir::Rounding::Stochastic`].
pub(crate) struct Dither {
    pub shift: u32,
}

impl Gate for Dither {
    /// Up where the coin is below `x_low`: where `x_low + H_low` carries.
    fn coins(&self, at: &At, seeds: &[PartySeed], _: &dyn Fn() -> Words) -> Option<Vec<u64>> {
        let low = Ring::new(self.shift);
        let bits = link(at.wire(), [at.from(), at.to()], self.shift).known_bits(seeds, at.len());
        Some(bits.into_iter().map(|h| low.wrap(!h)).collect())
    }

    fn prepare(&self, cx: &mut dyn Preprocess, x: &Given) -> Result<(), PrepareError> {
        let (rings, f, lambda) = ([x.at.from(), x.at.to()], self.shift, x.mask(cx, 0));
        let ([from, to], link) = (rings, link(x.at.wire(), rings, f));
        if !widens(rings, f) {
            let high = cx.mask(x.at.wire(), to, lambda.len());
            return link.prepare(cx, None, &lambda, Some(&high), (from, &[]), |_, _, _| Ok(()));
        }
        let parts = [f..from.bits(), from.bits() - 1..from.bits()];
        link.prepare(cx, None, &lambda, None, (to, &parts), |cx, _, mask| {
            cx.keep(Kept::Words(&mask.words[0].reduced(to)))?;
            cx.keep(Kept::Words(&mask.words[1].reduced(link.words[1])))
        })
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let (rings, f, xh) = ([x.at.from(), x.at.to()], self.shift, x.value(0));
        let ([from, to], link, n) = (rings, link(x.at.wire(), rings, f), xh.len());
        if !widens(rings, f) {
            let read = link.read(cx, "", n, |i| xh[i])?;
            return Ok(Opened::Here(read.u.iter().map(|u| u >> f).collect()));
        }
        let read = link.read(cx, "", n, |i| xh[i].wrapping_add(offset(from)))?;
        let mut y = cx.result_mask(x.at.wire(), to, n);
        let (leads, back) = (cx.leads() as u64, offset(from) >> f);
        for (i, (y, u)) in y.iter_mut().zip(&read.u).enumerate() {
            let wrap = ((1 - from.msb(*u)) * read.words[1][i]) << (from.bits() - f);
            let public = leads * (u >> f).wrapping_sub(back);
            *y = to.wrap(y.wrapping_add(public).wrapping_sub(read.words[0][i]).wrapping_add(wrap));
        }
        cx.open_masked("truncated", to, y.expose())
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens_offsets(list, at.len());
        if widens([at.from(), at.to()], self.shift) {
            at.opens(list, "truncated");
        }
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        let rings = [of.operand_bits(), of.result_bits()].map(Ring::new);
        let link = link(Wire::node(0), rings, self.shift);
        match widens(rings, self.shift) {
            true => price::gate(of, &link),
            false => price::linked(of.form, &link, of.elements()),
        }
    }
}
