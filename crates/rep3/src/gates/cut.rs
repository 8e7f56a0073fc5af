//! A ReLU of a value that is cut to fewer bits: one addition of x's summands gives the sign and the carry of what is cut off.
//!
//! With m = k - f bits left and x not negative, x wraps around 2^k where the dealer's two components do (e), and where a or b has its
//! top bit (c): no comparison. So with the carries of the low f bits
//!
//! `floor(x / 2^f) = sum of the components' quotients + carries - 2^m (e + c)`
//!
//! in any ring, and the larger ring that a ReLU leads to takes no steps of its own. Where x is negative, that is some other number,
//! and the ReLU's bit makes it 0. What is cut off changes no sign.

use super::times::bit_times;
use super::{carries, in_blocks, sign, truncate};
use crate::adder::Summands;
use crate::context::Party;
use crate::tree::Tree;
use crate::{PartyId, RunError, Share, mutation};
use privet_plan::Cut;
use privet_plan::ir::Rounding;
use privet_ring::Ring;

/// `max(0, floor(x / 2^f))` in `to`, which has at least the bits that are left. Rounds: those of a sign of k bits and 3 more, 4 where the low part's carry takes as
/// many levels as the sign.
pub(crate) fn relu(cx: &mut Party, cut: Cut, to: Ring, x: &Share) -> Result<Share, RunError> {
    let (from, shift) = (Ring::new(cut.bits), cut.shift);
    in_blocks(cx, x, |cx, x| {
        let top = carries::top_of_bits(cx, cut.bits - shift, to);
        let bits = Summands::deal(cx, "bits", (x, cut.bits as usize - 1, top), |b| b)?;
        let mut tree = Tree::new(cx, &bits, Some(shift as usize))?;
        let low = tree.low(cx)?;
        let mut carries = carries::of_bits(cx, &bits, (from, shift), to, (x, &low));
        let dealt = tree.level(cx, carries.deals(cx))?;
        let sign = tree.top(cx)?;
        let keep = sign::above(cx, &bits, &sign).not(cx.id);
        let carries = carries.of_dealt(cx, dealt)?;
        let forgotten = mutation::active("low-part-forgotten");
        let value = carries.join_with(cx.id, &bits.parts, |holder: PartyId, start, out| {
            let x = if holder == cx.id { &x.own[start..] } else { &x.next[start..] };
            let add = |(out, x): (&mut u64, &u64)| {
                *out = to.wrap((x >> shift).wrapping_add(if forgotten { 0 } else { *out }));
            };
            out.iter_mut().zip(x).for_each(add);
        });
        let [y] = bit_times(cx, &keep, [(to, &value)])?;
        Ok(y)
    })
}

/// The same by a truncation to the bits of `from`, and a ReLU of these: in the form where the plan says so.
pub(crate) fn apart(cx: &mut Party, cut: Cut, [from, to]: [Ring; 2], x: &Share) -> Result<Share, RunError> {
    let y = truncate::eval(cx, (Ring::new(cut.bits), from), cut.shift, Rounding::Floor, x)?;
    cx.verify_if_large()?;
    super::relu::eval(cx, from, to, &y)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{edges, share, value};

    fn check(cut: Cut, to: Ring, x: &[u64]) {
        let from = Ring::new(cut.bits);
        let y = value(to, |cx| relu(cx, cut, to, &share(cx.id, from, x)).unwrap());
        let expected: Vec<u64> =
            x.iter().map(|&x| to.wrap((from.signed(x) >> cut.shift).max(0) as u64)).collect();
        assert_eq!(y, expected, "{} of {cut:?} to {to}", x.len());
    }

    /// All values, promised or not: several shares of each.
    #[test]
    fn small_rings_exhaustively() {
        for bits in 3..=9 {
            for shift in 1..=bits - 2 {
                let cut = Cut { bits, shift, promised: false };
                let all: Vec<u64> = (0..3 << bits).map(|i| i % (1 << bits)).collect();
                for to in [bits - shift, bits - shift + 1, 40, 64] {
                    check(cut, Ring::new(to), &all);
                }
            }
        }
    }

    /// Every number of pairs below the cut, and odd bits.
    #[test]
    fn edges_of_large_rings_and_lengths() {
        for shift in 1..=62 {
            let cut = Cut { bits: 64, shift, promised: false };
            check(cut, Ring::R64, &edges(Ring::R64, 130));
        }
        for (bits, shift, to) in [(40, 24, 16), (40, 24, 40), (33, 15, 64), (64, 24, 64), (64, 24, 40)] {
            for n in [0, 1, 64, 65, 1000] {
                check(Cut { bits, shift, promised: false }, Ring::new(to), &edges(Ring::new(bits), n));
            }
        }
    }
}
