//! Bits times words: additive shares of `x y`, where x is shared by XOR and y by a sum.
//!
//! Parties stand in a row as in `chain.rs`. With z = (x_0 ^ .. ^ x_(j-1)) y shared among all, the party at position j
//! brings in its bit:
//!
//! `(x ^ x_j) y = z + x_j (y - 2 z)`
//!
//! It is receiver of a row from every other party, which puts in its share of `y - 2 z`. So n stages take a transfer each
//! way between any two parties.
//!
//! SECURITY. Rows alone (`row.rs`): a simulator draws what n - 1 parties get, and their shares follow.

use super::bits::add_where;
use super::chain::{Block, batches};
use super::peers::{Exchanged, Peers, Rows};
use super::row::{Give, Load, Take};
use crate::{PrepareError, mutation};
use privet_prg::Wiped;
use privet_ring::Ring;

/// A plane of bits and words of a ring, of each this party's share.
#[derive(Clone, Copy)]
pub(super) struct Product<'a> {
    pub bits: &'a [u64],
    pub words: &'a [u64],
    pub ring: Ring,
}

impl Product<'_> {
    /// The words of a block, with zeros past the last.
    fn words(&self, block: &Block) -> Wiped<u64> {
        let end = |words: usize| (64 * words).min(self.words.len());
        let mut words = Wiped::copy_of(&self.words[end(block.words.start)..end(block.words.end)]);
        words.resize(block.n(), 0);
        words
    }
}

/// This party's shares of a product, as many as the plane has bits; what lies above the ring is anything.
pub(super) fn times(peers: &mut Peers<'_>, product: Product<'_>) -> Result<Wiped<u64>, PrepareError> {
    let (me, parties) = (peers.me, peers.parties());
    let mut out = Wiped::with_room(64 * product.bits.len());
    for blocks in batches(product.bits.len(), parties, 1) {
        let y: Vec<_> = blocks.iter().map(|block| product.words(block)).collect();
        let mut z: Vec<_> = blocks.iter().map(|block| Wiped::zeros(block.n())).collect();
        for stage in 0..parties - mutation::active("last-stage-left-out") as usize {
            let rest: Vec<Wiped<u64>> = y.iter().zip(&z).map(|(y, z)| rest(y, z)).collect();
            let at = |block: &Block, party| block.position(party, parties) == stage;
            let bits = |block: &Block| &product.bits[block.words.clone()];
            let width = product.ring.bits();
            let rows = |peer| {
                let mut rows = Rows::default();
                for (block, rest) in blocks.iter().zip(&rest) {
                    let n = block.n();
                    if at(block, peer) {
                        rows.give.push(Give { n, width, words: rest, shift: 0, bits: Vec::new() });
                    } else if at(block, me) {
                        rows.take.push(Take { n, load: Load { width, bits: 0 }, choices: bits(block) });
                    }
                }
                rows
            };
            let all = peers.rows("bits times words", rows)?;
            for ((block, rest), z) in blocks.iter().zip(&rest).zip(&mut z) {
                if at(block, me) {
                    add_where(bits(block), rest, z);
                }
            }
            for Exchanged { peer, given, taken } in all {
                let (mut given, mut taken) = (given.into_iter(), taken.into_iter());
                for (block, z) in blocks.iter().zip(&mut z) {
                    let shares = match (at(block, peer), at(block, me)) {
                        (true, _) => given.next(),
                        (_, true) => taken.next(),
                        _ => continue,
                    };
                    let shares = shares.expect("shares of every row");
                    z.iter_mut().zip(shares.words.iter()).for_each(|(z, s)| *z = z.wrapping_add(*s));
                }
            }
        }
        z.iter().for_each(|z| out.extend_from_slice(z));
    }
    Ok(out)
}

/// `y - 2 z`.
fn rest(y: &[u64], z: &[u64]) -> Wiped<u64> {
    y.iter().zip(z).map(|(y, z)| y.wrapping_sub(z << 1)).collect()
}
