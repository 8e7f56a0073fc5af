//! Truncation whose result has more than k - f bits: back in the ring that a product came from, for x in
//! [-2^(k-2), 2^(k-2)).
//!
//! `u = x + 2^(k-2)` is not negative and below 2^(k-1), so that its components carry out of k bits where the dealer's two do (e),
//! and where a or b has its top bit (c): no comparison. With m = k - f and a coin r, 0 for the floor, that is added to component 0
//! as a whole number, before the components' quotients are taken,
//!
//! `floor((u + r) / 2^f) = sum of the quotients + carries of the low f bits - 2^m (e + c)`.
//!
//! The carries out of k bits are those of u alone: u + r may reach 2^(k-1), where the top bits say nothing.

use super::{carries, in_blocks, in_blocks_of};
use crate::context::Party;
use crate::local::plus_public;
use crate::parts::Parts;
use crate::{PartyId, RunError, Share};
use privet_plan::ir::Rounding;
use privet_ring::Ring;

/// Truncate by `shift` from `from` to `to`, of more than the bits that are left and at least 2 fewer than `from` has.
pub(crate) fn eval(
    cx: &mut Party,
    (from, to): (Ring, Ring),
    shift: u32,
    rounding: Rounding,
    x: &Share,
) -> Result<Share, RunError> {
    let half = 1 << (from.bits() - 2);
    let u = plus_public(cx.id, from, x, |_| half);
    let offset = |holder: PartyId| if holder.index() == 0 { half >> shift } else { 0 };
    if rounding == Rounding::OneUlp {
        // the floors of three summands, and one, are within one of the floor of their sum
        return in_blocks(cx, &u, |cx, u| {
            let wraps = carries::wraps(cx, (from, shift), to, u)?;
            let component = |holder: PartyId, u: &[u64], wraps: &[u64]| {
                let more = offset(holder).wrapping_sub(u64::from(holder.index() == 0));
                u.iter()
                    .zip(wraps)
                    .map(|(u, w)| to.wrap((u >> shift).wrapping_add(*w).wrapping_sub(more)))
                    .collect()
            };
            let id = cx.id;
            Ok(Share::new(component(id, &u.own, &wraps.own), component(id.next(), &u.next, &wraps.next)))
        });
    }
    let low = (1u64 << shift) - 1;
    let rounded = match rounding {
        // up exactly where the coin is below the fraction; only the holders of component 0 add to it
        Rounding::Stochastic if cx.id != PartyId::ALL[1] => {
            let coins = cx.coins(shift, x.len())?;
            plus_public(cx.id, Ring::R64, &u, |i| low - coins[i])
        }
        Rounding::Stochastic | Rounding::Floor | Rounding::OneUlp => u.clone(),
    };
    let [y] = in_blocks_of(cx, [&rounded, &u], |cx, _, [rounded, u]| {
        let carries = carries::count_less_wraps(cx, (from, shift), to, [rounded, u])?;
        let id = cx.id;
        Ok([carries.join_with(id, &Parts::of(u.len()), |holder, start, out| {
            let component = |of: &Share| if holder == id { of.own.clone() } else { of.next.clone() };
            let (u, rounded) = (component(u), component(rounded));
            let words = out.iter_mut().zip(u[start..].iter().zip(&rounded[start..]));
            let offset = offset(holder);
            words.for_each(|(out, (u, rounded))| {
                // of the whole number u + r, of which `rounded` has the low bits; r is 0 but in component 0
                let coin = rounded.wrapping_sub(*u) & low;
                let quotient = (u >> shift) + (((u & low) + coin) >> shift);
                *out = to.wrap(quotient.wrapping_add(*out).wrapping_sub(offset));
            });
        })])
    })?;
    Ok(y)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::rounding_coins;
    use crate::testing::{COMMON, edges, share, value};
    use privet_prg::Seed;

    fn check(from: Ring, shift: u32, to: Ring, x: &[u64]) {
        let floors: Vec<i64> = x.iter().map(|&x| from.signed(x) >> shift).collect();
        let run =
            |rounding| value(to, |cx| eval(cx, (from, to), shift, rounding, &share(cx.id, from, x)).unwrap());
        let expected: Vec<u64> = floors.iter().map(|&y| to.wrap(y as u64)).collect();
        assert_eq!(run(Rounding::Floor), expected, "{} of {from} by {shift} to {to}", x.len());

        let near = run(Rounding::OneUlp);
        let off = |(y, floor): (&u64, &i64)| to.signed(to.wrap(y.wrapping_sub(*floor as u64))).abs() <= 1;
        assert!(near.iter().zip(&floors).all(off), "{} of {from} by {shift} to {to}", x.len());

        let coins = rounding_coins(&Seed::from_bytes(COMMON), 0, shift, x.len());
        let up = x.iter().zip(coins).map(|(x, coin)| (coin < x & ((1 << shift) - 1)) as u64);
        let expected: Vec<u64> = expected.iter().zip(up).map(|(y, up)| to.wrap(y.wrapping_add(up))).collect();
        assert_eq!(run(Rounding::Stochastic), expected, "{} of {from} by {shift} to {to}", x.len());
    }

    /// All values that keep the promise: the largest ones round up to 2^(k-2).
    #[test]
    fn small_rings_exhaustively() {
        for bits in 3..=8 {
            let from = Ring::new(bits);
            let quarter = 1i64 << (bits - 2);
            for shift in 1..=bits - 2 {
                // many shares and coins of each
                let x: Vec<u64> =
                    (0..8 * quarter).map(|i| from.wrap((i % (2 * quarter) - quarter) as u64)).collect();
                for to in [bits - shift + 1, bits, 40, 64] {
                    check(from, shift, Ring::new(to), &x);
                }
            }
        }
    }

    #[test]
    fn edges_of_large_rings_and_lengths() {
        for (bits, shift, to) in
            [(40, 12, 30), (40, 12, 64), (63, 24, 64), (64, 24, 64), (64, 62, 64), (64, 1, 64)]
        {
            let (from, inner) = (Ring::new(bits), Ring::new(bits - 1));
            for n in [0, 1, 65, 1000] {
                let x: Vec<u64> =
                    edges(inner, n).iter().map(|&x| from.wrap(inner.signed(x) as u64)).collect();
                check(from, shift, Ring::new(to), &x);
            }
        }
    }
}
