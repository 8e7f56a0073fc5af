//! Trees over the bits of two summands (docs/rep3.md, section 3): the carry of their addition, and whether all bits differ.
//!
//! The first level takes two bits at a time and is a split, not an AND: with a dealt and b known, and with the products
//! `a_1 a_0` dealt and `b_1 b_0` local, two bits propagate `(a_1 + b_1)(a_0 + b_0) = a_1 a_0 + a_1 b_0 + a_0 b_1 + b_1 b_0`. That is
//! a level less, and 7/3 bits a party for two bits instead of 4.
//!
//! A block's carry is `generate + propagate c` for a carry c that comes in. If c is its bit `a_0`, the *tie*, the lower place has
//! that bit twice among its three, so it carries a_0 whatever b_0 is. The upper one then carries `a_1 a_0 + b_1 (a_1 + a_0)`: one
//! product, where `generate` takes three. So blocks have `carries = generate + propagate tie`, and c gives
//! `carries + propagate (c + tie)`.

use crate::adder::Summands;
use crate::context::Party;
use crate::moves::{And, Deal, Dealt, Known, Pieces, Split};
use crate::planes::Words;
use crate::proof::Algebra;
use crate::{PartyId, Planes, RunError, mutation};
use std::collections::VecDeque;

/// Some neighbouring bits: what they carry if what comes in is a bit that is shared, and whether they hand on what comes in.
#[derive(Clone)]
struct Block {
    carries: Words,
    propagate: Words,
    tie: Words,
}

impl Block {
    /// What is carried out of it, with a carry that comes in.
    fn over(&self, carry: &Words) -> And {
        let y = if mutation::active("tie-forgotten") { carry.clone() } else { carry.xor(&self.tie) };
        And { x: self.propagate.clone(), y, plus: Some(self.carries.clone()) }
    }
}

/// The carry out of all bits of `a + b`; one plane. One round for pairs of bits, and one for each level above them.
pub(crate) fn carry(cx: &mut Party, bits: &Summands) -> Result<Planes, RunError> {
    let n = bits.parts.len();
    if bits.bits() == 0 {
        let words = n.div_ceil(64);
        return Ok(Planes::new(n, 1, vec![0; words], vec![0; words]));
    }
    Tree::new(cx, bits, None)?.top(cx)
}

/// The carry out of some bits, and that out of the lowest `low` of them, level by level.
pub(crate) struct Tree {
    n: usize,
    /// What the lowest block carries: nothing comes in to it.
    lowest: Words,
    /// The blocks above it.
    blocks: Vec<Block>,
    /// Pairs of bits in every block that is not the last one.
    pairs: usize,
    below: Option<Below>,
}

impl Tree {
    /// With its first level, of pairs of bits: one round. `bits` are one or more, and more than `low`.
    ///
    /// The carry out of `low` bits is made of blocks that the tree has anyway: 11 pairs are the lowest block when it has 8, then one of 2 and one
    /// of 1. An odd bit on top is a block by itself. Each block but the first takes one AND, in a level of the tree as long as there is one.
    pub fn new(cx: &mut Party, bits: &Summands, low: Option<usize>) -> Result<Tree, RunError> {
        let (lowest, blocks) = pairs(cx, bits)?;
        let below = low.map(|low| Below::new(cx.id, bits, low));
        let mut tree = Tree { n: bits.parts.len(), lowest, blocks, pairs: 1, below };
        tree.look_below();
        Ok(tree)
    }

    /// The carry out of the lowest bits, level by level.
    pub fn low(&mut self, cx: &mut Party) -> Result<Planes, RunError> {
        loop {
            if let Some(carry) = self.below.as_ref().and_then(Below::done) {
                return Ok(carry.plane(self.n));
            }
            self.level(cx, vec![])?;
        }
    }

    /// The carry out of all bits, level by level.
    pub fn top(mut self, cx: &mut Party) -> Result<Planes, RunError> {
        while !self.blocks.is_empty() {
            self.level(cx, vec![])?;
        }
        Ok(self.lowest.plane(self.n))
    }

    /// The next level, if there is one, and a deal in the same round.
    pub fn level(&mut self, cx: &mut Party, columns: Vec<Deal>) -> Result<Vec<Dealt>, RunError> {
        let mut gates = Vec::with_capacity(self.blocks.len() + 1);
        gates.extend(self.blocks.first().map(|block| block.over(&self.lowest)));
        let pairs = self.blocks.get(1..).unwrap_or_default().chunks_exact(2);
        let unpaired = pairs.remainder().to_vec();
        // what a pair's carries suppose to come in is what its low block's do
        let mut ties = Vec::with_capacity(pairs.len());
        for pair in pairs {
            let (low, high) = (&pair[0], &pair[1]);
            gates.push(high.over(&low.carries));
            gates.push(And { x: high.propagate.clone(), y: low.propagate.clone(), plus: None });
            ties.push(low.tie.clone());
        }
        let below = self.below.as_mut().and_then(Below::next);
        let takes_more = below.is_some();
        gates.extend(below);
        let what = if columns.is_empty() { "carry" } else { "carry, and carries below" };
        let (mut made, dealt) = cx.and_beside_deal(what, &gates, columns)?;
        if let (Some(below), true) = (&mut self.below, takes_more) {
            below.carry = made.pop();
        }
        let mut made = made.into_iter();
        if !self.blocks.is_empty()
            && let Some(lowest) = made.next()
        {
            self.lowest = lowest;
        }
        self.blocks.clear();
        for tie in ties {
            if let (Some(carries), Some(propagate)) = (made.next(), made.next()) {
                self.blocks.push(Block { carries, propagate, tie });
            }
        }
        self.blocks.extend(unpaired);
        self.pairs *= 2;
        self.look_below();
        Ok(dealt)
    }

    fn look_below(&mut self) {
        if let Some(below) = &mut self.below {
            below.look(self.pairs, &self.lowest, &self.blocks);
        }
    }
}

/// The carry out of the lowest bits, as the tree over more of them goes on.
struct Below {
    /// How many pairs the lowest block has when it is the first of the blocks that these bits are made of; 0 where they are one bit.
    first: usize,
    /// The blocks above the first one.
    above: VecDeque<Later>,
    /// Out of the blocks that were taken.
    carry: Option<Words>,
}

/// A block of the lowest bits, made by the tree when it has so many pairs to a block; it begins at pair `start`.
struct Later {
    pairs: usize,
    start: usize,
    block: Option<Block>,
}

impl Below {
    /// Of the lowest `low` bits.
    fn new(id: PartyId, bits: &Summands, low: usize) -> Below {
        let (n, pairs) = (bits.parts.len(), low / 2);
        let powers = (0..usize::BITS).rev().map(|e| 1 << e).filter(|power| pairs & power != 0);
        // a block begins where those of more pairs end
        let of = |power: usize| Later { pairs: power, start: pairs & !(2 * power - 1), block: None };
        let mut above: VecDeque<Later> = powers.map(of).collect();
        let first = above.pop_front().map_or(0, |first| first.pairs);
        if low % 2 == 1 {
            above.push_back(Later { pairs: 1, start: pairs, block: Some(single(id, bits, pairs)) });
        }
        let nothing = || Planes::new(n, 1, vec![0; n.div_ceil(64)], vec![0; n.div_ceil(64)]).all();
        Below { first, above, carry: (first == 0).then(nothing) }
    }

    /// Keep what is needed of a level, whose blocks have so many pairs.
    fn look(&mut self, pairs: usize, lowest: &Words, blocks: &[Block]) {
        if pairs == self.first {
            self.carry = Some(lowest.clone());
        }
        for later in self.above.iter_mut().filter(|later| later.block.is_none() && later.pairs == pairs) {
            later.block = blocks.get(later.start / pairs - 1).cloned();
        }
    }

    /// What it takes in the next round.
    fn next(&mut self) -> Option<And> {
        let carry = self.carry.as_ref()?;
        self.above.pop_front()?.block.map(|block| block.over(carry))
    }

    /// The carry, when it is that of all blocks.
    fn done(&self) -> Option<&Words> {
        self.carry.as_ref().filter(|_| self.above.is_empty())
    }
}

/// What the lowest two bits carry, and the blocks above them; the highest has one bit where their number is odd.
fn pairs(cx: &mut Party, bits: &Summands) -> Result<(Words, Vec<Block>), RunError> {
    let (pairs, single) = (bits.bits() / 2, bits.bits() % 2);
    // nothing comes in to the lowest pair
    let (lowest, above) = (1.min(pairs), pairs.saturating_sub(1));
    let ((even_a, even_b), (product_a, product_b)) = (bits.even(0, lowest), bits.product(0, lowest));
    let generate = match pairs {
        0 => split(bits, single, vec![bits.even(0, single)]),
        _ => split(bits, 1, vec![bits.odd(0, 1), (product_a, even_b), (even_a, product_b)]),
    };
    let ((even, _), (odd, odd_b)) = (bits.even(lowest, above), bits.odd(lowest, above));
    let proves = cx.transcript.is_some();
    let differs =
        even.operand(&odd, proves, |even, odd| even.iter().zip(odd).map(|(even, odd)| even ^ odd).collect());
    let splits = [generate, split(bits, above, vec![(differs, odd_b)]), propagation(bits, lowest, above)];
    let [generate, mut carries, mut propagate] = cx.split("generate and propagate", splits)?;
    let product = bits.product(lowest, above);
    carries.add_dealt(&product.0);
    add(&mut propagate, product);

    let (id, parts) = (cx.id, bits.parts);
    let generate = generate.join_planes(id, &parts, 1);
    let carries = carries.join_planes(id, &parts, above);
    let propagate = propagate.join_planes(id, &parts, above);
    let ties = alone(&even).join_planes(id, &parts, above);
    let plane = |of: &Planes, t: usize| of.range(t..t + 1);
    let mut blocks: Vec<Block> = (0..above)
        .map(|t| Block { carries: plane(&carries, t), propagate: plane(&propagate, t), tie: plane(&ties, t) })
        .collect();
    if pairs > 0 && single == 1 {
        blocks.push(self::single(id, bits, pairs));
    }
    Ok((generate.all(), blocks))
}

/// Bit 2t by itself: it carries what comes in if that equals it.
fn single(id: PartyId, bits: &Summands, t: usize) -> Block {
    let bit = bits.even(t, 1);
    let tie = alone(&bit.0).join_planes(id, &bits.parts, 1).all();
    Block { carries: tie.clone(), propagate: sum(id, bits, bit).all(), tie }
}

/// A dealt value by itself.
pub(crate) fn alone(a: &Dealt) -> Pieces {
    Pieces::dealt(Algebra::Bits, a)
}

/// Whether every bit of a differs from that of b; one plane. Rounds as for a carry.
pub(crate) fn all_differ(cx: &mut Party, bits: &Summands) -> Result<Planes, RunError> {
    let (pairs, single) = (bits.bits() / 2, bits.bits() % 2);
    let mut leaves = Vec::with_capacity(pairs + single);
    if pairs > 0 {
        let [mut pieces] = cx.split("both differ", [propagation(bits, 0, pairs)])?;
        add(&mut pieces, bits.product(0, pairs));
        let planes = pieces.join_planes(cx.id, &bits.parts, pairs);
        leaves.extend((0..pairs).map(|t| planes.range(t..t + 1)));
    }
    if single == 1 {
        leaves.push(sum(cx.id, bits, bits.even(pairs, 1)).all());
    }
    while leaves.len() > 1 {
        let gates: Vec<And> =
            leaves.chunks_exact(2).map(|p| And { x: p[0].clone(), y: p[1].clone(), plus: None }).collect();
        let mut next = cx.and("all differ", &gates)?;
        next.extend(leaves.chunks_exact(2).remainder().iter().cloned());
        leaves = next;
    }
    Ok(leaves.swap_remove(0).plane(bits.parts.len()))
}

/// `a_(2t+1) b_(2t) + a_(2t) b_(2t+1)`: what two bits propagate but for the products that are known.
fn propagation(bits: &Summands, t: usize, count: usize) -> Split {
    let ((even_a, even_b), (odd_a, odd_b)) = (bits.even(t, count), bits.odd(t, count));
    split(bits, count, vec![(even_a, odd_b), (odd_a, even_b)])
}

fn split(bits: &Summands, planes: usize, terms: Vec<(Dealt, Known)>) -> Split {
    Split { terms, words: bits.words.map(|w| planes * w) }
}

fn add(pieces: &mut Pieces, (a, b): (Dealt, Known)) {
    pieces.add_dealt(&a);
    pieces.add_known(&b);
}

/// One plane `a + b`, of what is shared and known already.
pub(crate) fn sum(id: PartyId, bits: &Summands, (a, b): (Dealt, Known)) -> Planes {
    let mut pieces = Pieces::dealt(Algebra::Bits, &a);
    pieces.add_known(&b);
    pieces.join_planes(id, &bits.parts, 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adder::Top;
    use crate::planes::elements;
    use crate::testing::{open_planes, share, three};
    use crate::{Security, Share};
    use privet_ring::Ring;

    fn run(x: &[u64], ring: Ring, program: impl Fn(&mut Party, &Share) -> Planes + Sync) -> (Vec<u64>, u64) {
        let results = three(Security::SemiHonest, |cx| {
            let x = share(cx.id, ring, x);
            (program(cx, &x), cx.stats.rounds)
        });
        let plane = open_planes(results.each_ref().map(|r| &r.0));
        (elements(&plane, 0..x.len()), results[0].1)
    }

    /// The carry of the low m bits, for every number of them, with the rounds that docs/rep3.md states.
    #[test]
    fn carries_of_any_number_of_bits() {
        let ring = Ring::new(64);
        let x = crate::testing::edges(ring, 150);
        let shares = PartyId::ALL.map(|id| share(id, ring, &x));
        for m in 1..=64 {
            let low = |x: u64| (x & Ring::new(m as u32).mask()) as u128;
            // part j has the summands x_j + x_(j+1) and x_(j+2)
            let parts = crate::parts::Parts::of(x.len());
            let expected = PartyId::ALL.into_iter().flat_map(|j| {
                let (a, b) = (&shares[j.index()], &shares[j.next().index()].next);
                let carry = move |i: usize| ((low(a.own[i].wrapping_add(a.next[i])) + low(b[i])) >> m) & 1;
                parts.elements(j).mine.map(carry).map(|c| c as u64)
            });
            let (found, rounds) = run(&x, ring, |cx, x| {
                let bits = Summands::deal(cx, "bits", (x, m, Top::None), |b| b).unwrap();
                carry(cx, &bits).unwrap()
            });
            assert_eq!(found, expected.collect::<Vec<u64>>(), "{m} bits");
            assert_eq!(rounds, 2 + u64::from(m.div_ceil(2).next_power_of_two().ilog2()), "{m} bits");
        }
    }

    /// Both carries, wherever the lowest bits end; the lower one takes more rounds only where its blocks are many and the others few.
    #[test]
    fn carries_of_the_lowest_bits_beside_those_of_all() {
        let ring = Ring::new(64);
        let x = crate::testing::edges(ring, 150);
        for (m, low) in [2, 3, 8, 21, 63, 64].into_iter().flat_map(|m| (1..m).map(move |low| (m, low))) {
            let alone = |m: usize| {
                run(&x, ring, |cx, x| {
                    let bits = Summands::deal(cx, "bits", (x, m, Top::None), |b| b).unwrap();
                    carry(cx, &bits).unwrap()
                })
            };
            let both = |top: bool| {
                run(&x, ring, |cx, x| {
                    let bits = Summands::deal(cx, "bits", (x, m, Top::None), |b| b).unwrap();
                    let mut tree = Tree::new(cx, &bits, Some(low)).unwrap();
                    let below = tree.low(cx).unwrap();
                    let all = tree.top(cx).unwrap();
                    if top { all } else { below }
                })
            };
            let ((lower, _), (upper, rounds)) = (alone(low), alone(m));
            assert_eq!((both(false).0, both(true).0), (lower, upper), "{low} of {m} bits");
            let pairs = low / 2;
            let blocks = u64::from(pairs.count_ones()).saturating_sub(1) + low as u64 % 2;
            let own = 2 + u64::from(pairs.checked_ilog2().unwrap_or(0)) + blocks;
            assert_eq!(both(true).1, rounds.max(own), "{low} of {m} bits");
        }
    }

    #[test]
    fn zero_is_found_among_any_number_of_bits() {
        for m in 1..=20 {
            let ring = Ring::new(m as u32);
            let mut x = vec![0; 70];
            x.extend((0..m).map(|l| 1 << l));
            let (found, _) = run(&x, ring, |cx, x| {
                let bits = Summands::deal(cx, "bits", (x, m, Top::None), |b| b.wrapping_sub(1)).unwrap();
                all_differ(cx, &bits).unwrap()
            });
            assert_eq!(found, x.iter().map(|&x| (x == 0) as u64).collect::<Vec<_>>(), "{m} bits");
        }
    }
}
