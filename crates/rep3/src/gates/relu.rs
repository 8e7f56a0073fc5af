//! `x > 0 ? x : 0`, and the selection by a bit that max and argmax share with it.
//!
//! With the bit `c = u ^ v` and `x = s + b`, u and s known to the dealer and v and b to the two others,
//! `c x = u s + (s - 2 u s) v + u (1 - 2v) b + v b`: u and u s are dealt, the two middle terms are one split, and the others are local.

use super::{extend, in_blocks, sign};
use crate::context::Party;
use crate::moves::{Deal, Dealt, Known, Product, Split};
use crate::parts::Parts;
use crate::proof::Algebra;
use crate::{Planes, RunError, Share};
use privet_ring::Ring;

/// ReLU from k to k' >= k bits: in k bits, and then a number that is not negative in more of them.
pub(crate) fn eval(cx: &mut Party, from: Ring, to: Ring, x: &Share) -> Result<Share, RunError> {
    in_blocks(cx, x, |cx, x| {
        let keep = sign::msb(cx, from, x)?.not(cx.id);
        let [y] = bit_times(cx, &keep, [(from, x)])?;
        extend::non_negative(cx, from, to, &y)
    })
}

/// A bit times values of as many elements, each in its own ring. Two rounds; 4/3 of a ring's bits a value and party.
pub(crate) fn bit_times<const N: usize>(
    cx: &mut Party,
    bit: &Planes,
    values: [(Ring, &Share); N],
) -> Result<[Share; N], RunError> {
    let (parts, proves) = (Parts::of(bit.n), cx.transcript.is_some());
    let words = parts.elements(cx.id).map(|part| part.len());
    let (bit, v) = bit.summands(cx, &parts);
    let summands = values.map(|(_, x)| (Dealt::summand(cx.id, &parts, x), Known::summand(cx.id, &parts, x)));

    let mut columns = Vec::with_capacity(2 * N);
    for ((ring, _), (s, _)) in values.iter().zip(&summands) {
        let us = bit.values.iter().zip(s.own.iter().zip(s.next.iter()));
        let us = us.map(|(u, (a, b))| ring.wrap(u.wrapping_mul(a.wrapping_add(*b)))).collect();
        for values in [bit.values.clone(), us] {
            columns.push(Deal { algebra: Algebra::Ring(*ring), values, words });
        }
    }
    let dealt = cx.deal_all("bit and selected", columns)?;

    let mut splits = Vec::with_capacity(N);
    for (i, (ring, _)) in values.iter().enumerate() {
        let algebra = Algebra::Ring(*ring);
        let (u, us, (s, b)) = (&dealt[2 * i], &dealt[2 * i + 1], &summands[i]);
        if proves {
            bit.claim(cx, *ring, u);
            cx.claim_dealt(algebra, &[Product(u, s)], &us.seen(|us| negated(algebra, us)));
        }
        let both = |f: fn(u64, u64) -> u64| {
            move |a: &[u64], b: &[u64]| {
                a.iter().zip(b).map(|(a, b)| ring.wrap(f(*a, *b))).collect::<Vec<u64>>()
            }
        };
        let rest = s.operand(us, proves, both(|s, us| s.wrapping_sub(us.wrapping_mul(2))));
        let signed = v.zip(b, both(|v, b| b.wrapping_sub(v.wrapping_mul(2).wrapping_mul(b))));
        splits.push(Split { algebra, terms: vec![(rest, v.clone()), (u.clone(), signed)], words });
    }
    let pieces = cx.split_all("select", splits)?;
    let mut out = values.map(|_| Share::default());
    for (i, mut y) in pieces.into_iter().enumerate() {
        let algebra = Algebra::Ring(values[i].0);
        y.add_dealt(algebra, &dealt[2 * i + 1]);
        y.add_known_product(algebra, &v, &summands[i].1);
        out[i] = y.join(cx.id, &parts);
    }
    Ok(out)
}

fn negated(algebra: Algebra, words: &[u64]) -> Vec<u64> {
    let mut out = words.to_vec();
    algebra.negate(&mut out);
    out
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
