//! `1{x < 0}`: `MSB(x) = a_(k-1) ^ b_(k-1) ^ carry` for the two summands of x, and a bit turned into a number.

use crate::adder::{Summands, Top};
use crate::context::Party;
use crate::moves::{Deal, Split};
use crate::parts::Parts;
use crate::planes::{elements, to_planes};
use crate::proof::Algebra;
use crate::{Planes, RunError, Share, tree};
use privet_ring::Ring;

/// `1{x < 0}` in `to`, for x in `from`.
pub(crate) fn eval(cx: &mut Party, from: Ring, to: Ring, x: &Share) -> Result<Share, RunError> {
    let bit = msb(cx, from, x)?;
    bit_to_ring(cx, to, &bit)
}

/// The sign bit of x in `from`, as a plane.
pub(crate) fn msb(cx: &mut Party, from: Ring, x: &Share) -> Result<Planes, RunError> {
    let low = from.bits() as usize - 1;
    if low == 0 {
        // the components of one bit are bits
        let plane = |component: &[u64]| to_planes(cx.device, component, &[0]);
        return Ok(Planes::new(x.len(), 1, plane(&x.own), plane(&x.next)));
    }
    let bits = Summands::deal(cx, "bits", x, low, Top::Bit, |b| b)?;
    let carry = tree::carry(cx, &bits)?;
    let top = tree::sum(cx.id, &bits, bits.top());
    Ok(top.all().xor(&carry.all()).plane(x.len()))
}

/// A plane as elements 0 and 1 of `to`: with u and v its two summands modulo 2, `u + v - 2uv`. Two rounds.
pub(crate) fn bit_to_ring(cx: &mut Party, to: Ring, bit: &Planes) -> Result<Share, RunError> {
    let n = bit.n;
    if to.bits() == 1 {
        return Ok(Share::new(elements(&bit.own, 0..n), elements(&bit.next, 0..n)));
    }
    let (algebra, parts) = (Algebra::Ring(to), Parts::of(n));
    let words = parts.elements(cx.id).map(|part| part.len());
    let (shared, v) = bit.summands(cx.id, &parts);
    let u = shared.own.iter().zip(shared.next.iter()).map(|(a, b)| a ^ b).collect();
    let [u] = cx.deal("bit", [Deal { algebra, values: u, words }])?;
    cx.claim_xor(to, &shared, &u);
    let minus_two_v = v.map(|v| v.iter().map(|v| to.wrap(v.wrapping_mul(2).wrapping_neg())).collect());
    let [mut product] = cx.split("bit", [Split { algebra, terms: vec![(u.clone(), minus_two_v)], words }])?;
    product.add_dealt(algebra, &u);
    product.add_known(algebra, &v);
    Ok(product.join(cx.id, &parts))
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
