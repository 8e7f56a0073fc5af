//! Truncate-reduce: `signed(x) >> f` in k - f bits, exact or stochastic. (Within one unit in the last place it is
//! local, see [`crate::local::truncate_within_one`]. Where a ReLU alone reads it, see [`super::cut`].)
//!
//! The components' own quotients add up to that of x less the carries out of their low bits; where the components
//! wrap around 2^k, the quotients wrap around 2^(k-f) by as much.

use super::{carries, in_blocks, keep};
use crate::context::Party;
use crate::gate::{Gate, Held};
use crate::local::plus_public;
use crate::price::{Moves, Setting};
use crate::value::Value;
use crate::{RunError, Share};
use privet_plan::cost::Operation;
use privet_plan::ir::Rounding;
use privet_ring::Ring;

/// Truncate by `shift`, below the bits of `from`, to what is left of them, or to more where x keeps the promise of
/// [`keep`].
pub(crate) fn eval(
    cx: &mut Party,
    (from, to): (Ring, Ring),
    shift: u32,
    rounding: Rounding,
    x: &Share,
) -> Result<Share, RunError> {
    if to.bits() > from.bits() - shift {
        return keep::eval(cx, (from, to), shift, rounding, x);
    }
    if shift == 0 {
        return Ok(x.clone());
    }
    let x = match rounding {
        Rounding::OneUlp => return Ok(crate::local::truncate_within_one(cx.id, from, shift, x)),
        Rounding::Floor => x.clone(),
        // up exactly where the public coin is below the fraction
        Rounding::Stochastic => {
            let (coins, most) = (cx.coins(shift, x.len())?, (1 << shift) - 1);
            plus_public(cx.id, from, x, |i| most - coins[i])
        }
    };
    in_blocks(cx, &x, |cx, x| {
        let carries = carries::count(cx, shift, to, x)?;
        let sum = |x: &[u64], carries: &[u64]| {
            x.iter().zip(carries).map(|(x, c)| to.wrap((x >> shift).wrapping_add(*c))).collect()
        };
        Ok(Share::new(sum(&x.own, &carries.own), sum(&x.next, &carries.next)))
    })
}

/// [`privet_plan::ir::Op::Truncate`], and [`privet_plan::ir::Op::Dither`], which is one rounded by [`Rounding::Stochastic`].
pub(crate) struct Truncate {
    pub shift: u32,
    pub rounding: Rounding,
}

impl Gate for Truncate {
    fn eval(&self, cx: &mut Party, x: &Held) -> Result<Value, RunError> {
        if x.cut().is_some() {
            // the ReLU that alone reads it finds the carry with its sign
            return Ok(x.share(0).into());
        }
        Ok(eval(cx, (x.from(), x.to()), self.shift, self.rounding, &x.share(0))?.into())
    }

    fn price(&self, setting: &Setting, of: &Operation<'_>) -> Moves {
        if of.cut.is_some() {
            return Moves::default();
        }
        let (n, from, to, shift) = (of.elements(), of.operand_bits(), of.result_bits(), self.shift);
        let kept = from - shift;
        match (to > kept, self.rounding) {
            (true, Rounding::OneUlp) => setting.wraps(n, from, to - kept),
            (true, Rounding::Floor | Rounding::Stochastic) => setting.truncate_keeping(n, from, shift, to),
            (false, Rounding::OneUlp) => Moves::default(),
            (false, Rounding::Floor | Rounding::Stochastic) => setting.truncate(n, from, shift),
        }
    }

    fn draws_coins(&self) -> bool {
        self.rounding == Rounding::Stochastic
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::rounding_coins;
    use crate::testing::{COMMON, edges, share, value};
    use privet_prg::Seed;

    fn check(ring: Ring, shift: u32, x: &[u64]) {
        let to = Ring::new(ring.bits() - shift);
        let floors: Vec<u64> = x.iter().map(|&x| to.wrap((ring.signed(x) >> shift) as u64)).collect();
        let run =
            |rounding| value(to, |cx| eval(cx, (ring, to), shift, rounding, &share(cx.id, ring, x)).unwrap());
        assert_eq!(run(Rounding::Floor), floors, "{} of {ring} by {shift}", x.len());

        let near = run(Rounding::OneUlp);
        assert!(
            near.iter().zip(&floors).all(|(y, floor)| to.wrap(y.wrapping_sub(*floor).wrapping_add(1)) <= 2)
        );

        let low = (1 << shift) - 1;
        let coins = rounding_coins(&Seed::from_bytes(COMMON), 0, shift, x.len());
        let up = x.iter().zip(coins).map(|(x, coin)| (coin < x & low) as u64);
        let expected: Vec<u64> = floors.iter().zip(up).map(|(y, up)| to.wrap(y + up)).collect();
        assert_eq!(run(Rounding::Stochastic), expected, "{} of {ring} by {shift}, stochastic", x.len());
    }

    #[test]
    fn small_rings_exhaustively() {
        for bits in 2..=8 {
            for shift in 1..bits {
                check(Ring::new(bits), shift, &(0..1 << bits).collect::<Vec<u64>>());
            }
        }
    }

    #[test]
    fn edges_of_large_rings_and_lengths() {
        for (bits, shift) in [(13, 12), (24, 13), (32, 13), (33, 1), (63, 24), (64, 24), (64, 63)] {
            for n in [0, 1, 65, 500] {
                check(Ring::new(bits), shift, &edges(Ring::new(bits), n));
            }
        }
    }
}
