//! `x > 0 ? x : 0`: the complement of the sign times x. (Of a truncation that nothing else reads, see [`cut`].)

use super::times::bit_times;
use super::{cut, extend, in_blocks, sign};
use crate::context::Party;
use crate::gate::{Gate, Held};
use crate::price::{Moves, Setting};
use crate::value::Value;
use crate::{RunError, Share};
use privet_plan::Form;
use privet_plan::cost::Operation;
use privet_ring::Ring;

/// ReLU from k to k' >= k bits: in k bits, and then a number that is not negative in more of them.
pub(crate) fn eval(cx: &mut Party, from: Ring, to: Ring, x: &Share) -> Result<Share, RunError> {
    in_blocks(cx, x, |cx, x| {
        let keep = sign::msb(cx, from, x)?.not(cx.id);
        let [y] = bit_times(cx, &keep, [(from, x)])?;
        extend::non_negative(cx, from, to, &y)
    })
}

/// [`privet_plan::ir::Op::Relu`].
pub(crate) struct Relu;

impl Gate for Relu {
    fn eval(&self, cx: &mut Party, x: &Held) -> Result<Value, RunError> {
        let (given, rings) = (x.share(0), [x.from(), x.to()]);
        Ok(match (x.cut(), x.node().form) {
            // what the truncation was given
            (Some(cut), Some(Form::AfterTruncation)) => cut::apart(cx, cut, rings, &given)?,
            (Some(cut), _) => cut::relu(cx, cut, x.to(), &given)?,
            (None, _) => eval(cx, x.from(), x.to(), &given)?,
        }
        .into())
    }

    fn price(&self, setting: &Setting, of: &Operation<'_>) -> Moves {
        let (n, from, to) = (of.elements(), of.operand_bits(), of.result_bits());
        match (of.cut, of.form) {
            (Some(cut), Some(Form::AfterTruncation)) => setting.relu_after_cut(n, cut, from, to),
            (Some(cut), _) => setting.relu_of_cut(n, cut, to),
            (None, _) => setting.relu(n, from, to),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{edges, share, value};

    fn check(ring: Ring, to: Ring, x: &[u64]) {
        let y = value(to, |cx| eval(cx, ring, to, &share(cx.id, ring, x)).unwrap());
        let expected: Vec<u64> = x.iter().map(|&x| if ring.signed(x) > 0 { x } else { 0 }).collect();
        assert_eq!(y, expected, "{} of {ring} to {to}", x.len());
    }

    #[test]
    fn small_rings_exhaustively() {
        for bits in 1..=8 {
            for to in [bits, bits + 1, 9, 32, 64] {
                check(Ring::new(bits), Ring::new(to), &(0..1 << bits).collect::<Vec<u64>>());
            }
        }
    }

    #[test]
    fn edges_of_large_rings_and_lengths() {
        for (bits, to) in [(13, 32), (24, 24), (32, 64), (63, 64), (64, 64)] {
            for n in [0, 1, 65, 200, 1000] {
                check(Ring::new(bits), Ring::new(to), &edges(Ring::new(bits), n));
            }
        }
    }
}
