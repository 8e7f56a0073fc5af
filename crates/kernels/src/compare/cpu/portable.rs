//! The path without intrinsics. Its AES is the crate `aes`, which picks AES-NI or ARMv8 by itself and is
//! constant-time (bit-sliced) where there is neither.

use super::{Block, BlockOut, Deal};
use crate::compare::BLOCK;
use crate::secret::mask128;
use privet_prg::TreeHash;

pub(super) struct Portable<'a>(pub &'a TreeHash);

fn load(row: &[u8], out: &mut [u128; BLOCK]) {
    for (o, b) in out.iter_mut().zip(row.as_chunks::<16>().0) {
        *o = u128::from_le_bytes(*b);
    }
}

fn store(row: &mut [u8], words: &[u128; BLOCK]) {
    for (b, w) in row.as_chunks_mut::<16>().0.iter_mut().zip(words) {
        *b = w.to_le_bytes();
    }
}

impl Block for Portable<'_> {
    fn eval(&self, bits: u32, key: &[u8], x: &[u64; BLOCK], want_eq: bool) -> BlockOut {
        let mut rows = key.chunks_exact(16 * BLOCK);
        let mut next = |row: &mut [u128; BLOCK]| load(rows.next().expect("a row a level"), row);
        let (mut s, mut cw) = ([0; BLOCK], [0; BLOCK]);
        let mut siblings = [0u128; BLOCK];
        next(&mut s);
        for level in super::levels(bits) {
            next(&mut cw);
            let mut h = s;
            self.0.inner(&mut h);
            for j in 0..BLOCK {
                // public
                let right = ((x[j] >> level & 1) as u128).wrapping_neg();
                let l = h[j] ^ (cw[j] & mask128(s[j]));
                siblings[j] ^= (l ^ s[j]) & !right;
                s[j] = l ^ (s[j] & right);
            }
        }
        next(&mut cw);
        let mut leaf = s;
        self.0.leaf(&mut leaf);
        let mut out = BlockOut::default();
        for j in 0..BLOCK {
            let word = leaf[j] ^ (cw[j] & mask128(s[j]));
            let at = x[j] & 127;
            let above = (word & (!1 << at)).count_ones() as u64 ^ siblings[j] as u64;
            out.lt |= (above & 1) << j;
            if want_eq {
                out.eq |= ((word >> at) as u64 & 1) << j;
            }
        }
        out
    }

    fn deal(&self, bits: u32, deal: &Deal, key0: &mut [u8], key1: &mut [u8]) {
        let mut rows = key0.chunks_exact_mut(16 * BLOCK).zip(key1.chunks_exact_mut(16 * BLOCK));
        let mut next = || rows.next().expect("a row a level");
        let delta = deal.deltas.map(|d| d | 1);
        let mut s = deal.roots;
        // On the path the parties' seeds differ by delta, so party 1's is never stored.
        let other = |s: &[u128; BLOCK]| std::array::from_fn::<_, BLOCK, _>(|j| s[j] ^ delta[j]);
        let (row0, row1) = next();
        store(row0, &s);
        store(row1, &other(&s));
        for level in super::levels(bits) {
            let (mut h0, mut h1) = (s, other(&s));
            self.0.inner(&mut h0);
            self.0.inner(&mut h1);
            let mut cw = [0; BLOCK];
            for j in 0..BLOCK {
                let right = mask128((deal.alpha[j] >> level) as u128);
                cw[j] = h0[j] ^ h1[j] ^ (delta[j] & !right);
                s[j] = h0[j] ^ (cw[j] & mask128(s[j])) ^ (s[j] & right);
            }
            let (row0, row1) = next();
            store(row0, &cw);
            store(row1, &cw);
        }
        let (mut h0, mut h1) = (s, other(&s));
        self.0.leaf(&mut h0);
        self.0.leaf(&mut h1);
        let word = std::array::from_fn(|j| h0[j] ^ h1[j] ^ super::one_hot(deal.alpha[j]));
        let (row0, row1) = next();
        store(row0, &word);
        store(row1, &word);
    }
}
