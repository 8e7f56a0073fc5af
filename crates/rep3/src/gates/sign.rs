//! `1{x < 0}`: `MSB(x) = a_(k-1) ^ b_(k-1) ^ carry` for the two summands of x.

use super::{bits::to_ring, in_blocks, planes_in_blocks};
use crate::adder::{Summands, Top};
use crate::context::Party;
use crate::gate::{Gate, Held};
use crate::planes::to_planes;
use crate::price::{Moves, Setting};
use crate::value::Value;
use crate::{Planes, RunError, Share, tree};
use privet_plan::cost::Operation;
use privet_ring::Ring;

/// `1{x < 0}` in `to`, for x in `from`.
pub(crate) fn eval(cx: &mut Party, from: Ring, to: Ring, x: &Share) -> Result<Share, RunError> {
    in_blocks(cx, x, |cx, x| {
        let bit = msb(cx, from, x)?;
        to_ring(cx, to, &bit)
    })
}

/// `1{x < 0}` as bits, for x in `from` and of any length: a sign without a ring to be carried to.
pub(crate) fn bits(cx: &mut Party, from: Ring, x: &Share) -> Result<Planes, RunError> {
    planes_in_blocks(cx, x, |cx, x| msb(cx, from, x))
}

/// The sign bit of x in `from`, as a plane.
pub(crate) fn msb(cx: &mut Party, from: Ring, x: &Share) -> Result<Planes, RunError> {
    let low = from.bits() as usize - 1;
    if low == 0 {
        // the components of one bit are bits
        let plane = |component: &[u64]| to_planes(cx.device, component, &[0]);
        return Ok(Planes::new(x.len(), 1, plane(&x.own), plane(&x.next)));
    }
    let bits = Summands::deal(cx, "bits", (x, low, Top::Bit), |b| b)?;
    let carry = tree::carry(cx, &bits)?;
    Ok(above(cx, &bits, &carry))
}

/// Bit m of the sum, with what the m bits carry into it.
pub(super) fn above(cx: &Party, bits: &Summands, carry: &Planes) -> Planes {
    let top = tree::sum(cx.id, bits, bits.top());
    top.all().xor(&carry.all()).plane(carry.n)
}

/// [`privet_plan::ir::Op::IsNegative`].
pub(crate) struct Sign;

impl Gate for Sign {
    fn eval(&self, cx: &mut Party, x: &Held) -> Result<Value, RunError> {
        match x.to().bits() {
            1 => Ok(bits(cx, x.from(), &x.share(0))?.into()),
            _ => Ok(eval(cx, x.from(), x.to(), &x.share(0))?.into()),
        }
    }

    fn price(&self, setting: &Setting, of: &Operation<'_>) -> Moves {
        setting.is_negative(of.elements(), of.operand_bits(), of.result_bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{edges, share, value};

    #[test]
    fn small_rings_exhaustively() {
        for bits in 1..=8 {
            let (ring, x) = (Ring::new(bits), (0..1 << bits).collect::<Vec<u64>>());
            for to in [1, 2, 13, 64].map(Ring::new) {
                let y = value(to, |cx| eval(cx, ring, to, &share(cx.id, ring, &x)).unwrap());
                assert_eq!(y, x.iter().map(|x| ring.msb(*x)).collect::<Vec<_>>(), "{ring} to {to}");
            }
        }
    }

    #[test]
    fn edges_of_large_rings_and_lengths() {
        for bits in [13, 24, 32, 33, 63, 64] {
            let ring = Ring::new(bits);
            for n in [0, 1, 64, 65, 200, 1000] {
                let x = edges(ring, n);
                let y = value(ring, |cx| eval(cx, ring, ring, &share(cx.id, ring, &x)).unwrap());
                assert_eq!(y, x.iter().map(|x| ring.msb(*x)).collect::<Vec<_>>(), "{n} of {ring}");
            }
        }
    }
}
