//! `1{x = 0}`: `x = a + b` is zero exactly where a is -b, that is, where every bit of a differs from that of
//! `b - 1`, the complement of -b.

use super::{bits::to_ring, in_blocks, planes_in_blocks};
use crate::adder::{Summands, Top};
use crate::context::Party;
use crate::gate::{Gate, Held};
use crate::local::difference;
use crate::price::{Moves, Setting};
use crate::value::Value;
use crate::{Planes, RunError, Share, tree};
use privet_plan::cost::Operation;
use privet_ring::Ring;

/// `1{x = 0}` in `to`, for x in `from`.
pub(crate) fn eval(cx: &mut Party, from: Ring, to: Ring, x: &Share) -> Result<Share, RunError> {
    in_blocks(cx, x, |cx, x| {
        let zero = plane(cx, from, x)?;
        to_ring(cx, to, &zero)
    })
}

/// `1{x = 0}` as bits, for x in `from` and of any length.
pub(crate) fn bits(cx: &mut Party, from: Ring, x: &Share) -> Result<Planes, RunError> {
    planes_in_blocks(cx, x, |cx, x| plane(cx, from, x))
}

fn plane(cx: &mut Party, from: Ring, x: &Share) -> Result<Planes, RunError> {
    let operands = (x, from.bits() as usize, Top::None);
    let bits = Summands::deal(cx, "bits", operands, |b| b.wrapping_sub(1))?;
    tree::all_differ(cx, &bits)
}

/// [`privet_plan::ir::Op::Equal`].
pub(crate) struct Equal;

impl Gate for Equal {
    fn eval(&self, cx: &mut Party, x: &Held) -> Result<Value, RunError> {
        let difference = difference(x.from(), &x.share(0), &x.share(1));
        match x.to().bits() {
            1 => Ok(bits(cx, x.from(), &difference)?.into()),
            _ => Ok(eval(cx, x.from(), x.to(), &difference)?.into()),
        }
    }

    fn price(&self, setting: &Setting, of: &Operation<'_>) -> Moves {
        setting.equal(of.elements(), of.operand_bits(), of.result_bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{edges, share, value};

    fn check(from: Ring, to: Ring, x: &[u64]) {
        let y = value(to, |cx| eval(cx, from, to, &share(cx.id, from, x)).unwrap());
        let expected: Vec<u64> = x.iter().map(|&x| (x == 0) as u64).collect();
        assert_eq!(y, expected, "{} of {from} to {to}", x.len());
    }

    #[test]
    fn small_rings_exhaustively() {
        for from in 1..=8 {
            for to in [1, 2, 33, 64] {
                check(Ring::new(from), Ring::new(to), &(0..1 << from).collect::<Vec<u64>>());
            }
        }
    }

    #[test]
    fn single_bits_and_edges_of_large_rings() {
        for bits in [13, 31, 32, 63, 64] {
            let ring = Ring::new(bits);
            let mut x: Vec<u64> = (0..bits).map(|l| 1 << l).collect();
            x.extend([0; 130]);
            x.extend(edges(ring, 100));
            check(ring, ring, &x);
            check(ring, ring, &[]);
        }
    }
}
