//! The same signed number in a larger ring.
//!
//! The components of y = x + 2^(m-1), from 0 to 2^m - 1, add up to y and 2^m times the carries out of their m bits: what multiplies 2^m is
//! needed in as many bits as the ring grows by.

use super::{carries, in_blocks};
use crate::context::Party;
use crate::gate::{Gate, Held};
use crate::local::plus_public;
use crate::price::{Moves, Setting};
use crate::value::Value;
use crate::{RunError, Share};
use privet_kernels::wide;
use privet_plan::cost::Operation;
use privet_ring::Ring;

/// Sign extension from `from` to `to`, which is at least as large.
pub(crate) fn eval(cx: &mut Party, from: Ring, to: Ring, x: &Share) -> Result<Share, RunError> {
    if from == to {
        return Ok(x.clone());
    }
    let half = 1 << (from.bits() - 1);
    in_blocks(cx, x, |cx, x| {
        let y = plus_public(cx.id, from, x, |_| half);
        let carries = carries::count(cx, from.bits(), growth(from, to), &y)?;
        Ok(plus_public(cx.id, to, &without(from, to, &y, &carries), |_| half.wrapping_neg()))
    })
}

/// [`eval`] of values that are known not to be negative. Two rounds.
pub(crate) fn non_negative(cx: &mut Party, from: Ring, to: Ring, x: &Share) -> Result<Share, RunError> {
    if from == to {
        return Ok(x.clone());
    }
    let carries = carries::count_below_half(cx, from.bits(), growth(from, to), x)?;
    Ok(without(from, to, x, &carries))
}

fn growth(from: Ring, to: Ring) -> Ring {
    Ring::new(to.bits() - from.bits())
}

/// The components, less the carries.
fn without(from: Ring, to: Ring, x: &Share, carries: &Share) -> Share {
    let difference = |x: &[u64], carries: &[u64]| {
        wide!(x.iter().zip(carries).map(|(x, c)| to.wrap(x.wrapping_sub(c << from.bits()))).collect())
    };
    Share::new(difference(&x.own, &carries.own), difference(&x.next, &carries.next))
}

/// [`privet_plan::ir::Op::Extend`].
pub(crate) struct Extend;

impl Gate for Extend {
    fn eval(&self, cx: &mut Party, x: &Held) -> Result<Value, RunError> {
        Ok(eval(cx, x.from(), x.to(), &x.share(0))?.into())
    }

    fn price(&self, setting: &Setting, of: &Operation<'_>) -> Moves {
        setting.extend(of.elements(), of.operand_bits(), of.result_bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{edges, share, value};

    fn check(from: Ring, to: Ring, x: &[u64]) {
        let y = value(to, |cx| eval(cx, from, to, &share(cx.id, from, x)).unwrap());
        let expected: Vec<u64> = x.iter().map(|&x| to.wrap(from.signed(x) as u64)).collect();
        assert_eq!(y, expected, "{} of {from} to {to}", x.len());

        let x: Vec<u64> = x.iter().copied().filter(|&x| from.signed(x) >= 0).collect();
        let y = value(to, |cx| non_negative(cx, from, to, &share(cx.id, from, &x)).unwrap());
        assert_eq!(y, x, "{} of {from} to {to}", x.len());
    }

    #[test]
    fn small_rings_exhaustively() {
        for from in 1..=8 {
            for to in [from, from + 1, 9, 40, 64] {
                check(Ring::new(from), Ring::new(to), &(0..1 << from).collect::<Vec<u64>>());
            }
        }
    }

    #[test]
    fn edges_of_large_rings_and_lengths() {
        for (from, to) in [(13, 32), (24, 64), (32, 33), (63, 64), (64, 64)] {
            for n in [0, 1, 65, 500] {
                check(Ring::new(from), Ring::new(to), &edges(Ring::new(from), n));
            }
        }
    }
}
