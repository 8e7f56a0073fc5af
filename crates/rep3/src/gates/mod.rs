//! The gates, of three moves each (docs/rep3.md, section 3); each takes and gives replicated shares.

pub mod argmax;
pub mod bits;
mod carries;
pub mod choose;
pub mod cut;
pub(crate) mod digits;
pub mod equal;
pub mod extend;
pub mod keep;
pub mod lookup;
pub mod max;
pub mod pieces;
#[cfg(test)]
mod price;
pub mod relu;
pub mod sign;
mod times;
pub mod truncate;
pub mod waves;

use crate::context::Party;
use crate::{Planes, RunError, Share};
use std::ops::Range;

/// A gate on a vector of any length, [`crate::Rep3::BLOCK`] elements at a time, so that memory stays bounded: that of its planes, and
/// that of its statements, which are verified between two blocks when they have grown large. So of one operation a party
/// remembers at most as much as it may keep between operations and the statements of one block.
fn in_blocks(
    cx: &mut Party,
    x: &Share,
    mut gate: impl FnMut(&mut Party, &Share) -> Result<Share, RunError>,
) -> Result<Share, RunError> {
    let [y] = in_blocks_of(cx, [x], |cx, _, [x]| Ok([gate(cx, x)?]))?;
    Ok(y)
}

/// [`in_blocks`] for a gate on several vectors of one length that gives several, and is told the elements of each block.
pub(crate) fn in_blocks_of<const N: usize, const M: usize>(
    cx: &mut Party,
    xs: [&Share; N],
    mut gate: impl FnMut(&mut Party, Range<usize>, [&Share; N]) -> Result<[Share; M], RunError>,
) -> Result<[Share; M], RunError> {
    let n = xs[0].len();
    if n <= cx.limits.block {
        return gate(cx, 0..n, xs);
    }
    let mut all = [(); M].map(|()| Joined::new(n));
    for block in cx.limits.blocks(n) {
        if block.start > 0 {
            cx.verify_if_large()?;
        }
        let parts = xs.map(|x| x.part(block.clone()));
        let ys = gate(cx, block, parts.each_ref())?;
        all.iter_mut().zip(&ys).for_each(|(all, y)| all.push(y));
    }
    Ok(all.map(Share::from))
}

/// A share that grows part by part.
pub(crate) struct Joined {
    own: Vec<u64>,
    next: Vec<u64>,
}

impl Joined {
    /// Of nothing yet, with room for n elements.
    pub fn new(n: usize) -> Joined {
        Joined { own: Vec::with_capacity(n), next: Vec::with_capacity(n) }
    }

    /// Append a part.
    pub fn push(&mut self, part: &Share) {
        self.own.extend_from_slice(&part.own);
        self.next.extend_from_slice(&part.next);
    }
}

impl From<Joined> for Share {
    fn from(all: Joined) -> Share {
        Share::new(all.own, all.next)
    }
}

/// [`in_blocks`] for a gate that gives a bit an element: packed, as blocks end where words do.
fn planes_in_blocks(
    cx: &mut Party,
    x: &Share,
    mut gate: impl FnMut(&mut Party, &Share) -> Result<Planes, RunError>,
) -> Result<Planes, RunError> {
    let words = in_blocks(cx, x, |cx, x| gate(cx, x).map(|bits| Share { own: bits.own, next: bits.next }))?;
    Ok(Planes { n: x.len(), count: 1, own: words.own, next: words.next })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::linear;
    use crate::local::scaled;
    use crate::testing::{edges, open, share, three};
    use crate::{PartyId, Security};
    use privet_family::NodeStats;
    use privet_plan::Cut;
    use privet_plan::ir::Rounding;
    use privet_plan::tournament;
    use privet_ring::Ring;

    type Gate = fn(&mut Party, Ring, &Share) -> Result<Share, RunError>;

    const GATES: [(&str, Gate); 8] = [
        ("relu", |cx, ring, x| relu::eval(cx, ring, ring, x)),
        ("relu of a truncation", |cx, ring, x| {
            cut::relu(cx, Cut { bits: ring.bits(), shift: 5, promised: false }, ring, x)
        }),
        ("sign", |cx, ring, x| sign::eval(cx, ring, ring, x)),
        ("equal", |cx, ring, x| equal::eval(cx, ring, ring, x)),
        ("truncate", |cx, ring, x| truncate::eval(cx, (ring, Ring::new(15)), 5, Rounding::Floor, x)),
        ("extend", |cx, ring, x| extend::eval(cx, ring, Ring::new(30), x)),
        ("argmax", |cx, ring, x| {
            let shape = [2, x.len()];
            let mut candidates = Joined::new(2 * x.len());
            [x, &scaled(ring, x, 3)].into_iter().for_each(|x| candidates.push(x));
            let (games, places) = (tournament::argmax(&shape, 0), tournament::positions(&shape, 0));
            argmax::eval(cx, ring, ring, &games, candidates.into(), &places)
        }),
        ("product of elements", |cx, ring, x| linear::mul_in_blocks(cx, ring, x, &scaled(ring, x, 3))),
    ];

    /// The shares' sum, the most that a party remembered at a time, and what verifications cost.
    fn run(gate: Gate, limits: Limits, x: &[u64]) -> (Vec<u64>, u64, NodeStats) {
        let ring = Ring::new(20);
        let results = three(Security::Malicious, |cx| {
            cx.limits = limits;
            let y = gate(cx, ring, &share(cx.id, ring, x)).unwrap();
            cx.verify().unwrap();
            (y, cx.most_remembered(), cx.checks)
        });
        let sum = open(Ring::R64, results.each_ref().map(|(y, ..)| y));
        assert!(results.iter().all(|r| r.1 == results[0].1), "all parties remember alike");
        (sum, results[0].1, results[0].2)
    }

    /// What a party remembers of one operation does not grow with its elements, and the result is the same.
    #[test]
    fn a_long_operation_is_verified_in_pieces() {
        let ring = Ring::new(20);
        let (block, short, long) = (128, edges(ring, 128), edges(ring, 40 * 128 + 17));
        let whole = Limits { block: usize::MAX, worth: u64::MAX, statements: u64::MAX, ahead: 0 };
        for (name, gate) in GATES {
            let (_, of_a_block, _) = run(gate, whole, &short);
            let limit = 3 * of_a_block;
            let (truth, all, once) = run(gate, whole, &long);
            assert!(all > 30 * of_a_block, "{name}: {all} bytes at once");
            // each time before anything else is done, and beside the next block
            for (worth, beside) in [(u64::MAX, false), (0, true)] {
                let (found, most, often) =
                    run(gate, Limits { block, worth, statements: limit, ahead: 0 }, &long);
                let mask = Ring::new(15).mask();
                let low = |x: &[u64]| x.iter().map(|x| x & mask).collect::<Vec<_>>();
                assert_eq!(low(&found), low(&truth), "{name}");
                assert!(
                    most <= limit + of_a_block,
                    "{name}: {most} bytes, of which {of_a_block} are a block's"
                );
                let (sent, rounds) = (often.sent_bytes / once.sent_bytes, often.rounds / once.rounds);
                assert!(sent >= 8, "{name}: proofs of {sent} times as much");
                // a product has too few rounds of its own
                let beside = beside && name != "product of elements";
                assert_eq!(rounds < 8, beside, "{name}: {rounds} times as many rounds");
            }
        }
    }

    /// Each piece is verified before the next: a lie in the first block ends the operation there.
    #[test]
    fn a_lie_in_an_early_piece_ends_the_operation() {
        let ring = Ring::new(20);
        let x = edges(ring, 20 * 128);
        // at once, and beside the second block
        for statements in [1, u64::MAX] {
            let limits = Limits { block: 128, worth: 1, statements, ahead: 0 };
            let results = three(Security::Malicious, |cx| {
                cx.limits = limits;
                let mut x = share(cx.id, ring, &x);
                if cx.id == PartyId::ALL[0] {
                    // a component that its co-holder does not have
                    std::sync::Arc::make_mut(&mut x.own)[3] ^= 1;
                }
                relu::eval(cx, ring, ring, &x).map(|_| ()).map_err(|_| cx.place().0)
            });
            let steps = results.map(|r| r.expect_err("a wrong component was accepted"));
            let honest = three(Security::Malicious, |cx| {
                cx.limits = limits;
                relu::eval(cx, ring, ring, &share(cx.id, ring, &x)).unwrap();
                cx.place().0
            });
            assert!(steps.iter().all(|step| step * 8 < honest[0]), "{steps:?} of {}", honest[0]);
        }
    }
}
