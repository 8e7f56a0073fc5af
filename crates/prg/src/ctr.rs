//! AES in counter mode and the fixed-key hash as closures over the cipher's own batch, so that counters
//! and the linear layer are compiled for the same vector registers as the AES.

use aes::Aes128Enc;
use aes::cipher::consts::U16;
use aes::cipher::{
    Array, Block, BlockCipherEncBackend, BlockCipherEncClosure, BlockCipherEncrypt, BlockSizeUser, ParBlocks,
};

type AesBlock = Array<u8, U16>;

/// Fill `out` with `AES(first), AES(first + 1), ...`, the counter in the low and `domain` in the high 64
/// bits of the plaintext block, little endian.
pub(crate) fn keystream(aes: &Aes128Enc, domain: u64, first: u64, out: &mut [[u8; 16]]) {
    aes.encrypt_with_backend(Keystream { domain, first, out: Array::cast_slice_from_core_mut(out) });
}

/// `block -> AES(sigma(block)) ^ sigma(block)` on every block, in place.
pub(crate) fn hash(aes: &Aes128Enc, blocks: &mut [u128]) {
    aes.encrypt_with_backend(Hash { blocks });
}

fn plaintext(domain: u64, counter: u64) -> AesBlock {
    Array((((domain as u128) << 64) | counter as u128).to_le_bytes())
}

struct Keystream<'a> {
    domain: u64,
    first: u64,
    out: &'a mut [AesBlock],
}

impl BlockSizeUser for Keystream<'_> {
    type BlockSize = U16;
}

impl BlockCipherEncClosure for Keystream<'_> {
    #[inline(always)]
    fn call<B: BlockCipherEncBackend<BlockSize = U16>>(self, backend: &B) {
        let mut counter = self.first;
        let (batches, rest) = Array::slice_as_chunks_mut(self.out);
        let mut plain = ParBlocks::<B>::default();
        for batch in batches {
            for (i, p) in plain.iter_mut().enumerate() {
                *p = plaintext(self.domain, counter.wrapping_add(i as u64));
            }
            counter = counter.wrapping_add(plain.len() as u64);
            backend.encrypt_par_blocks((&plain, batch).into());
        }
        for (i, p) in rest.iter_mut().enumerate() {
            *p = plaintext(self.domain, counter.wrapping_add(i as u64));
        }
        backend.encrypt_tail_blocks(rest.into());
    }
}

struct Hash<'a> {
    blocks: &'a mut [u128],
}

impl BlockSizeUser for Hash<'_> {
    type BlockSize = U16;
}

impl BlockCipherEncClosure for Hash<'_> {
    #[inline(always)]
    fn call<B: BlockCipherEncBackend<BlockSize = U16>>(self, backend: &B) {
        let mut image = ParBlocks::<B>::default();
        let mut masked = ParBlocks::<B>::default();
        for batch in self.blocks.chunks_mut(image.len()) {
            for (m, s) in masked.iter_mut().zip(batch.iter()) {
                m.0 = crate::hash::sigma(*s).to_le_bytes();
            }
            if batch.len() == masked.len() {
                backend.encrypt_par_blocks((&masked, &mut image).into());
            } else {
                let n = batch.len();
                image[..n].copy_from_slice(&masked[..n]);
                let tail: &mut [Block<B>] = &mut image[..n];
                backend.encrypt_tail_blocks(tail.into());
            }
            for ((s, m), e) in batch.iter_mut().zip(&masked).zip(&image) {
                *s = u128::from_le_bytes(m.0) ^ u128::from_le_bytes(e.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aes::cipher::KeyInit;

    #[test]
    fn keystream_is_aes_of_fips_197() {
        // Appendix C.1: the plaintext 00112233..ff read as a counter and a domain.
        let aes = Aes128Enc::new(&Array(std::array::from_fn(|i| i as u8)));
        let mut out = [[0; 16]];
        keystream(&aes, 0xffee_ddcc_bbaa_9988, 0x7766_5544_3322_1100, &mut out);
        assert_eq!(u128::from_be_bytes(out[0]), 0x69c4_e0d8_6a7b_0430_d8cd_b780_70b4_c55a);
    }

    #[test]
    fn batches_and_tails_give_the_same_stream() {
        let aes = Aes128Enc::new(&Array([3; 16]));
        let mut whole = [[0; 16]; 200];
        keystream(&aes, 0, 7, &mut whole);
        for (i, expected) in whole.iter().enumerate() {
            let mut one = [[0; 16]];
            keystream(&aes, 0, 7 + i as u64, &mut one);
            assert_eq!(one[0], *expected);
        }
        for n in [0, 1, 63, 64, 65, 129] {
            let mut part = vec![[0; 16]; n];
            keystream(&aes, 0, 7, &mut part);
            assert_eq!(part, whole[..n]);
        }
    }
}
