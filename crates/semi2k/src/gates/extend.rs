//! Sign extension from k to k' > k bits.
//!
//! With `v = x + 2^(k-1)` unsigned, `signed(x) = v - 2^(k-1)`, and over the integers `v = u - H + 2^k c` with `u = v + H mod
//! 2^k` and `c = 1{u < H}` over k bits, opened as `c ^ kappa`. Words: H, and kappa modulo 2^(k' - k).

use super::sign::bit_to_ring;
use crate::Opened;
use crate::compare::{Comparison, Linked};
use crate::eval::{Eval, EvalError};
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::prepare::Given;
use crate::preprocess::{Kept, PrepareError, Preprocess};
use crate::price;
use privet_family::{MaskFrom, OpeningList, Secret, Wire};
use privet_plan::cost::{Cost, Operation};
use privet_ring::Ring;

/// [`privet_plan::ir::Op::Extend`]. To equally many bits it is the operand.
pub(crate) struct Extend;

fn link(wire: Wire, from: Ring, to: Ring) -> Linked {
    let words = vec![to, Ring::new(to.bits() - from.bits())];
    Linked::compared(wire, from, Comparison::less(from.bits()), false, words)
}

impl Gate for Extend {
    fn mask_from(&self, at: &At) -> MaskFrom {
        self.value_of(at).map_or(MaskFrom::Fresh, MaskFrom::Operand)
    }

    fn value_of(&self, at: &At) -> Option<usize> {
        (at.from() == at.to()).then_some(0)
    }

    fn prepare(&self, cx: &mut dyn Preprocess, x: &Given) -> Result<(), PrepareError> {
        let (from, to) = (x.at.from(), x.at.to());
        if from == to {
            return Ok(());
        }
        let (link, k, lambda) = (link(x.at.wire(), from, to), from.bits(), x.mask(cx, 0));
        link.prepare(
            cx,
            x.at.node().form,
            &lambda,
            None,
            (to, std::slice::from_ref(&(0..k))),
            |cx, piece, mask| {
                cx.keep(Kept::Words(&mask.words[0]))?;
                let kappa = piece.result_bits(cx);
                let word = cx.to_words(&[&kappa], piece.len(), link.words[1])?;
                cx.keep(Kept::Words(&word[0]))
            },
        )
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let (from, to, xh) = (x.at.from(), x.at.to(), x.value(0));
        let (n, half, leads) = (xh.len(), 1u64 << (from.bits() - 1), cx.leads() as u64);
        let link = link(x.at.wire(), from, to);
        let mut read = link.read(cx, "carry bit", n, |i| xh[i].wrapping_add(half))?;
        let carry = read.open(cx, "carry bit")?;
        let zero = Secret::new(vec![0; n]);
        let carry = bit_to_ring(link.words[1], cx.leads(), &carry, &read.words[1], zero);
        let mut y = cx.result_mask(x.at.wire(), to, n);
        for (i, y) in y.iter_mut().enumerate() {
            let v = (leads * read.u[i].wrapping_sub(half)).wrapping_sub(read.words[0][i]);
            *y = to.wrap(y.wrapping_add(v).wrapping_add(carry[i] << from.bits()));
        }
        cx.open_masked("extended", to, y.expose())
    }

    fn compares(&self, from: u32) -> Option<Comparison> {
        Some(Comparison::less(from))
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        if at.from() != at.to() {
            at.opens_bits_and(list, Comparison::less(at.from().bits()), "carry bit", "extended");
        }
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        let [from, to] = [of.operand_bits(), of.result_bits()].map(Ring::new);
        if from == to { Cost::default() } else { price::gate(of, &link(Wire::node(0), from, to)) }
    }
}
