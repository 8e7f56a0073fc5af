//! AES in counter mode and the fixed-key hash on 512-bit registers: four blocks to a register, eight registers to a step. The
//! cipher's own batches go through memory and calls, which costs several times what the AES does.

use std::arch::x86_64::*;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Registers to a step: as many as hide the latency of a round.
const STEP: usize = 8;
/// Blocks to a register.
const WIDE: usize = 4;

/// Whether this machine can run these functions.
pub(crate) fn available() -> bool {
    is_x86_feature_detected!("vaes") && is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("aes")
}

/// The key schedule of FIPS 197, section 5.2. It exists only where [`available`] holds.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Rounds([__m128i; 11]);

impl Rounds {
    /// Of this key, where the machine has the instructions.
    pub fn new(key: &[u8; 16]) -> Option<Rounds> {
        // SAFETY: available.
        available().then(|| unsafe { expand(key) })
    }

    /// `AES(first), AES(first + 1), ...`, the counter in the low half of the plaintext block, zero in the high one.
    pub fn keystream(&self, first: u64, out: &mut [[u8; 16]]) {
        // SAFETY: rounds exist only where the instructions do.
        unsafe { keystream(self, first, out) }
    }

    /// `block -> AES(sigma(block)) ^ sigma(block)` on every block, in place.
    pub fn hash(&self, blocks: &mut [u128]) {
        // SAFETY: as above.
        unsafe { hash(self, blocks) }
    }
}

#[target_feature(enable = "aes,avx")]
fn expand(key: &[u8; 16]) -> Rounds {
    #[target_feature(enable = "aes,avx")]
    fn next<const RCON: i32>(k: __m128i) -> __m128i {
        let word = _mm_shuffle_epi32::<0xff>(_mm_aeskeygenassist_si128::<RCON>(k));
        let k = _mm_xor_si128(k, _mm_slli_si128::<4>(k));
        _mm_xor_si128(_mm_xor_si128(k, _mm_slli_si128::<8>(k)), word)
    }
    // SAFETY: 16 bytes.
    let k0 = unsafe { _mm_loadu_si128(key.as_ptr().cast()) };
    let k1 = next::<0x01>(k0);
    let k2 = next::<0x02>(k1);
    let k3 = next::<0x04>(k2);
    let k4 = next::<0x08>(k3);
    let k5 = next::<0x10>(k4);
    let k6 = next::<0x20>(k5);
    let k7 = next::<0x40>(k6);
    let k8 = next::<0x80>(k7);
    let k9 = next::<0x1b>(k8);
    Rounds([k0, k1, k2, k3, k4, k5, k6, k7, k8, k9, next::<0x36>(k9)])
}

/// In place and by loops: `array::map` would be a call of its own, with the registers in memory.
#[inline]
#[target_feature(enable = "avx512f,vaes")]
fn encrypt<const N: usize>(rounds: &[__m512i; 11], y: &mut [__m512i; N]) {
    for y in y.iter_mut() {
        *y = _mm512_xor_si512(*y, rounds[0]);
    }
    for k in &rounds[1..10] {
        for y in y.iter_mut() {
            *y = _mm512_aesenc_epi128(*y, *k);
        }
    }
    for y in y.iter_mut() {
        *y = _mm512_aesenclast_epi128(*y, rounds[10]);
    }
}

/// Every round key four times.
#[inline]
#[target_feature(enable = "avx512f")]
fn broadcast(rounds: &Rounds) -> [__m512i; 11] {
    let mut wide = [_mm512_setzero_si512(); 11];
    for (wide, k) in wide.iter_mut().zip(&rounds.0) {
        *wide = _mm512_broadcast_i32x4(*k);
    }
    wide
}

/// `sigma(l || r) = (l ^ r || l)`: swap the halves, then XOR `l` into the high one.
#[inline]
#[target_feature(enable = "avx512f")]
fn sigma(s: __m512i) -> __m512i {
    let swapped = _mm512_shuffle_epi32::<0x4e>(s);
    _mm512_mask_xor_epi64(swapped, 0b1010_1010, swapped, s)
}

#[target_feature(enable = "avx512f,vaes")]
fn hash(rounds: &Rounds, blocks: &mut [u128]) {
    let wide = broadcast(rounds);
    let (steps, rest) = blocks.as_chunks_mut::<{ STEP * WIDE }>();
    for step in steps {
        let mut masked = [_mm512_setzero_si512(); STEP];
        for (m, s) in masked.iter_mut().zip(step.as_chunks::<WIDE>().0) {
            // SAFETY: four blocks.
            *m = sigma(unsafe { _mm512_loadu_si512(s.as_ptr().cast()) });
        }
        let mut y = masked;
        encrypt(&wide, &mut y);
        for ((to, y), m) in step.as_chunks_mut::<WIDE>().0.iter_mut().zip(y).zip(masked) {
            // SAFETY: four blocks.
            unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), _mm512_xor_si512(y, m)) };
        }
    }
    for part in rest.chunks_mut(WIDE) {
        let words = words_of(part.len());
        // SAFETY: the mask leaves as many blocks as there are.
        let m = sigma(unsafe { _mm512_maskz_loadu_epi64(words, part.as_ptr().cast()) });
        let mut y = [m];
        encrypt(&wide, &mut y);
        // SAFETY: as above.
        unsafe { _mm512_mask_storeu_epi64(part.as_mut_ptr().cast(), words, _mm512_xor_si512(y[0], m)) };
    }
}

/// The mask of the two 64-bit words of each of so many blocks, at most [`WIDE`].
fn words_of(blocks: usize) -> __mmask8 {
    ((1u32 << (2 * blocks)) - 1) as __mmask8
}

#[target_feature(enable = "avx512f,vaes")]
fn keystream(rounds: &Rounds, first: u64, out: &mut [[u8; 16]]) {
    let wide = broadcast(rounds);
    let from = _mm512_set_epi64(0, 3, 0, 2, 0, 1, 0, 0);
    let ahead = |n: u64| _mm512_maskz_set1_epi64(0b0101_0101, n as i64);
    let mut counter = _mm512_add_epi64(from, ahead(first));
    let (steps, rest) = out.as_chunks_mut::<{ STEP * WIDE }>();
    for step in steps {
        let mut y = [counter; STEP];
        for (j, y) in y.iter_mut().enumerate() {
            *y = _mm512_add_epi64(*y, ahead((WIDE * j) as u64));
        }
        encrypt(&wide, &mut y);
        for (to, y) in step.as_chunks_mut::<WIDE>().0.iter_mut().zip(y) {
            // SAFETY: four blocks.
            unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), y) };
        }
        counter = _mm512_add_epi64(counter, ahead((STEP * WIDE) as u64));
    }
    for part in rest.chunks_mut(WIDE) {
        let mut y = [counter];
        encrypt(&wide, &mut y);
        // SAFETY: the mask leaves as many blocks as there are.
        unsafe { _mm512_mask_storeu_epi64(part.as_mut_ptr().cast(), words_of(part.len()), y[0]) };
        counter = _mm512_add_epi64(counter, ahead(WIDE as u64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ctr;
    use aes::Aes128Enc;
    use aes::cipher::{Array, KeyInit};

    #[test]
    fn the_hash_is_the_ciphers() {
        for key in [[0; 16], [0xff; 16], std::array::from_fn(|i| 17 * i as u8)] {
            let Some(rounds) = Rounds::new(&key) else { return };
            let aes = Aes128Enc::new(&Array(key));
            for n in [0, 1, 2, 3, 4, 5, 31, 32, 33, 67, 500] {
                let blocks =
                    |i: usize| (i as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
                let mut found: Vec<u128> = (0..n).map(blocks).collect();
                let mut right = found.clone();
                rounds.hash(&mut found);
                ctr::hash(&aes, &mut right);
                assert_eq!(found, right, "{n} blocks");
            }
        }
    }

    #[test]
    fn the_stream_is_the_ciphers() {
        for key in [[0; 16], [0xff; 16], std::array::from_fn(|i| 17 * i as u8)] {
            let Some(rounds) = Rounds::new(&key) else { return };
            let aes = Aes128Enc::new(&Array(key));
            for n in [0, 1, 2, 3, 4, 5, 31, 32, 33, 67, 500] {
                for first in [0, 7, u64::MAX - 3, 1 << 40] {
                    let (mut found, mut right) = (vec![[9; 16]; n], vec![[0; 16]; n]);
                    rounds.keystream(first, &mut found);
                    ctr::keystream(&aes, 0, first, &mut right);
                    assert_eq!(found, right, "{n} blocks from {first}");
                }
            }
        }
    }
}
