//! Numbers of which every bit is shared: their words, and products of pairs of their bits. And words of single bits.
//!
//! Each party's share of every bit comes from its own seed, so it need not be kept. What is left is one [`Chain`].

use super::chain::{Block, Chain, Linked, Wanted, batches};
use super::peers::Peers;
use crate::PrepareError;
use privet_prg::Wiped;
use privet_ring::Ring;
use std::ops::Range;

type Words = Wiped<u64>;

/// A party's shares: of words, with anything above the ring, and of products of bits.
pub(super) struct Shared {
    pub words: Vec<Words>,
    pub pairs: Vec<Words>,
}

/// Of planes of bits, `H >> first mod 2^(last - first)` in `ring` for every range of bits, padding included; and the products
/// of bits 2 j and 2 j + 1, if `pairs`.
pub(super) fn masks(
    peers: &mut Peers<'_>,
    own: Vec<&[u64]>,
    ring: Ring,
    ranges: &[Range<u32>],
    pairs: bool,
) -> Result<Shared, PrepareError> {
    let length = own.first().map_or(0, |plane| plane.len());
    let wanted = |bit: u32| {
        let of = || ranges.iter().filter(|range| range.contains(&bit));
        let bits = of().map(|range| ring.bits().saturating_sub(bit - range.start)).max().unwrap_or(0);
        Wanted { bits, fresh: of().any(|range| range.start == bit) }
    };
    let count = own.len() as u32;
    let chain = Chain { what: "masks of bits", own, wanted: (0..count).map(wanted).collect(), pairs };
    let mut out = Shared {
        words: ranges.iter().map(|_| Wiped::zeros(64 * length)).collect(),
        pairs: (0..if pairs { count / 2 } else { 0 }).map(|_| Wiped::zeros(length)).collect(),
    };
    for blocks in batches(length, peers, chain.rows()) {
        for (block, linked) in blocks.iter().zip(chain.run(peers, &blocks)?) {
            out.add(ring, ranges, block, &linked);
        }
    }
    Ok(out)
}

/// Of each plane its bits as words of `ring`, padding included.
pub(super) fn to_words(
    peers: &mut Peers<'_>,
    own: &[&[u64]],
    ring: Ring,
) -> Result<Vec<Words>, PrepareError> {
    let all = Wiped::new(own.concat());
    let words = masks(peers, vec![&all], ring, std::slice::from_ref(&(0..1)), false)?.words.remove(0);
    let mut rest = words.as_slice();
    let cut = own.iter().map(|plane| {
        let (head, tail) = rest.split_at(64 * plane.len());
        rest = tail;
        Wiped::copy_of(head)
    });
    Ok(cut.collect())
}

/// Elements of a block.
fn elements(block: &Block) -> Range<usize> {
    64 * block.words.start..64 * block.words.end
}

impl Shared {
    fn add(&mut self, ring: Ring, ranges: &[Range<u32>], block: &Block, linked: &Linked) {
        for (range, out) in ranges.iter().zip(&mut self.words) {
            for (shift, bit) in range.clone().enumerate().take(ring.bits() as usize) {
                let summands = linked.words[bit as usize].iter();
                let out = out[elements(block)].iter_mut();
                out.zip(summands).for_each(|(out, s)| *out = out.wrapping_add(s << shift));
            }
        }
        for (out, products) in self.pairs.iter_mut().zip(&linked.pairs) {
            out[block.words.clone()].copy_from_slice(products);
        }
    }
}
