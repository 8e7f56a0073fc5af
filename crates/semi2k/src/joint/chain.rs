//! XOR shares of bits to additive shares, and products of pairs of bits, from one transfer a bit and pair of parties.
//!
//! Parties stand in a row; positions 0 to n - 1 go round from block to block, so that all have the same to do. Position 0
//! starts with its bit b as a word. At stage j the party at position j comes in with its bit b_j:
//!
//! `x ^ b_j = x + b_j - 2 x b_j,        x = s_0 + .. + s_(j-1)`
//!
//! It is receiver of rows from all before it, with its bits as choices; the party at position i puts in s_i. Of bit l, that is
//! wanted modulo 2^K, one bit less has to be sent, as the product is doubled afterwards. The same transfer carries i's bit of
//! the other bit of the pair: `(h1_i + h1_j)(h0_i + h0_j)` has two cross terms, one in the row of each bit. So stage by stage
//! all pairs of parties meet once.
//!
//! *Fresh.* The lowest bit of a share of `x - 2 x b` is the party's own bit, which is no fresh share. So the lowest bit of
//! each word has a row that carries `2 s_i` with all K bits: its strings make the word's shares uniform.
//!
//! SECURITY. All that is sent belongs to rows (`row.rs`), whose messages are uniform to who gets them: a simulator of any
//! coalition draws them and computes the rest as its parties do. Any two parties share a fresh row of each word and pair, so
//! the shares of all but one party are uniform and independent of the bits, and the last one's is what is missing.

use super::bits::{add_bits, xor};
use super::peers::{Exchanged, Peers, Rows};
use super::row::{Give, Load, RUN, Take};
use crate::{PrepareError, mutation};
use privet_prg::Wiped;
use std::ops::Range;

/// Words of 64 elements that go through all stages together, and who stands where.
pub(super) struct Block {
    /// Words of every plane.
    pub words: Range<usize>,
    first: usize,
}

impl Block {
    /// Elements, padding included.
    pub fn n(&self) -> usize {
        64 * self.words.len()
    }

    /// Where a party stands.
    pub fn position(&self, party: usize, parties: usize) -> usize {
        (party + parties - self.first) % parties
    }
}

/// All words, in blocks; position 0 goes to one party after the other. As many as have `rows` rows each go together as there is room for.
pub(super) fn batches(
    words: usize,
    peers: &Peers<'_>,
    rows: usize,
) -> impl Iterator<Item = Vec<Block>> + use<> {
    let (parties, room) = (peers.parties(), peers.room);
    let size = words.div_ceil(parties).clamp(1, RUN / 64);
    let together = parties * (room / rows.max(1)).max(1);
    let block = move |i: usize| Block { words: i * size..((i + 1) * size).min(words), first: i % parties };
    let count = words.div_ceil(size);
    (0..count).step_by(together).map(move |at| (at..(at + together).min(count)).map(block).collect())
}

/// What goes through the stages: planes of this party's bits, what is wanted of each, and whether pairs are.
pub(super) struct Chain<'a> {
    pub what: &'a str,
    /// This party's share of every plane.
    pub own: Vec<&'a [u64]>,
    /// What is wanted of each plane.
    pub wanted: Vec<Wanted>,
    /// Whether the products of planes 2 j and 2 j + 1 are.
    pub pairs: bool,
}

/// The word that is wanted of each bit of a plane.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    /// Modulo 2^bits; 0: none.
    pub bits: u32,
    /// Whether its shares are fresh: else their lowest bits are the parties' bits.
    pub fresh: bool,
}

impl Wanted {
    /// By how many bits s is shifted before it is sent, and by how many the product afterwards.
    fn shifts(self) -> [u32; 2] {
        if self.fresh && !mutation::active("words-not-fresh") { [1, 0] } else { [0, 1] }
    }
}

/// A party's shares of a block: of every plane's bits as words, and of the products.
pub(super) struct Linked {
    pub words: Vec<Wiped<u64>>,
    pub pairs: Vec<Wiped<u64>>,
}

impl<'a> Chain<'a> {
    /// The other bit of the pair.
    fn other(&self, plane: usize) -> Option<usize> {
        (self.pairs && plane ^ 1 < self.own.len()).then_some(mutation::other_bit(plane))
    }

    fn load(&self, plane: usize) -> Load {
        let [_, after] = self.wanted[plane].shifts();
        let width = self.wanted[plane].bits.saturating_sub(after);
        Load::one(width, self.other(plane).iter().count())
    }

    /// Planes of which there is anything to send.
    fn planes(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.own.len()).filter(|plane| self.load(*plane) != Load::NONE)
    }

    /// Rows of a block.
    pub fn rows(&self) -> usize {
        self.planes().count()
    }

    /// All stages of some blocks.
    pub fn run(&self, peers: &mut Peers<'_>, blocks: &[Block]) -> Result<Vec<Linked>, PrepareError> {
        let (me, parties) = (peers.me, peers.parties());
        let place = |block: &Block, party| block.position(party, parties);
        let mut linked: Vec<Linked> =
            blocks.iter().map(|block| self.start(block, place(block, me) == 0)).collect();
        for stage in 1..parties {
            for (block, linked) in blocks.iter().zip(&mut linked) {
                if place(block, me) == stage {
                    self.enter(block, linked);
                }
            }
            let gives = |block: &Block, to| place(block, to) == stage && place(block, me) < stage;
            let takes = |block: &Block, from| place(block, me) == stage && place(block, from) < stage;
            let all = peers.rows(self.what, |peer| {
                let mut rows = Rows::default();
                for (block, linked) in blocks.iter().zip(&linked) {
                    if gives(block, peer) {
                        rows.give.extend(self.give(block, linked));
                    } else if takes(block, peer) {
                        rows.take.extend(self.take(block));
                    }
                }
                rows
            })?;
            for Exchanged { peer, given, taken } in all {
                let (mut given, mut taken) = (given.into_iter(), taken.into_iter());
                for (block, linked) in blocks.iter().zip(&mut linked) {
                    let shares = if gives(block, peer) { &mut given } else { &mut taken };
                    if !gives(block, peer) && !takes(block, peer) {
                        continue;
                    }
                    for (plane, shares) in self.planes().zip(shares) {
                        let [_, after] = self.wanted[plane].shifts();
                        let less = |(s, t): (&mut u64, &u64)| *s = s.wrapping_sub(t << after);
                        if let Some(words) = shares.words.first() {
                            linked.words[plane].iter_mut().zip(words.iter()).for_each(less);
                        }
                        shares.bits.iter().for_each(|bits| xor(bits, &mut linked.pairs[plane / 2]));
                    }
                }
            }
        }
        Ok(linked)
    }

    /// This party's own products; its words are nothing yet, or its bits where it is the first.
    fn start(&self, block: &Block, first: bool) -> Linked {
        let words = self.wanted.iter().map(|w| Wiped::zeros(if w.bits > 0 { block.n() } else { 0 }));
        let product = |pair: &[&[u64]]| {
            let [low, high] = [pair[0], pair[1]].map(|plane| &plane[block.words.clone()]);
            low.iter().zip(high).map(|(a, b)| a & b).collect::<Wiped<u64>>()
        };
        let pairs = if self.pairs { self.own.chunks_exact(2).map(product).collect() } else { Vec::new() };
        let mut linked = Linked { words: words.collect(), pairs };
        if first {
            self.enter(block, &mut linked);
        }
        linked
    }

    /// Adds this party's bits.
    fn enter(&self, block: &Block, linked: &mut Linked) {
        for (own, words) in self.own.iter().zip(&mut linked.words) {
            add_bits(&own[block.words.clone()], words);
        }
    }

    fn give<'r>(&'r self, block: &'r Block, linked: &'r Linked) -> impl Iterator<Item = Give<'r>> {
        self.planes().map(|plane| {
            let plane_of = |plane: usize| &self.own[plane][block.words.clone()];
            let bits = self.other(plane).map(plane_of).into_iter().collect();
            let [shift, _] = self.wanted[plane].shifts();
            Give { n: block.n(), load: self.load(plane), words: [&linked.words[plane], &[]], shift, bits }
        })
    }

    fn take<'r>(&'r self, block: &'r Block) -> impl Iterator<Item = Take<'r>> {
        self.planes().map(|plane| Take {
            n: block.n(),
            load: self.load(plane),
            choices: &self.own[plane][block.words.clone()],
        })
    }
}
