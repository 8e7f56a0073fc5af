//! AES in counter mode on 512-bit registers: four blocks to a register, eight registers to a step. The cipher's own batches
//! go through memory and calls, which costs several times what the AES does.

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
#[derive(Zeroize, ZeroizeOnDrop)]
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

#[target_feature(enable = "avx512f,vaes")]
fn encrypt<const N: usize>(rounds: &[__m512i; 11], counters: [__m512i; N]) -> [__m512i; N] {
    let mut y = counters.map(|c| _mm512_xor_si512(c, rounds[0]));
    for k in &rounds[1..10] {
        for y in &mut y {
            *y = _mm512_aesenc_epi128(*y, *k);
        }
    }
    y.map(|y| _mm512_aesenclast_epi128(y, rounds[10]))
}

#[target_feature(enable = "avx512f,vaes")]
fn keystream(rounds: &Rounds, first: u64, out: &mut [[u8; 16]]) {
    let rounds = rounds.0.map(|k| _mm512_broadcast_i32x4(k));
    let from = _mm512_set_epi64(0, 3, 0, 2, 0, 1, 0, 0);
    let ahead = |n: u64| _mm512_maskz_set1_epi64(0b0101_0101, n as i64);
    let mut counter = _mm512_add_epi64(from, ahead(first));
    let (steps, rest) = out.as_chunks_mut::<{ STEP * WIDE }>();
    for step in steps {
        let counters = std::array::from_fn(|j| _mm512_add_epi64(counter, ahead((WIDE * j) as u64)));
        let blocks: [__m512i; STEP] = encrypt(&rounds, counters);
        for (to, y) in step.as_chunks_mut::<WIDE>().0.iter_mut().zip(blocks) {
            // SAFETY: four blocks.
            unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), y) };
        }
        counter = _mm512_add_epi64(counter, ahead((STEP * WIDE) as u64));
    }
    for part in rest.chunks_mut(WIDE) {
        let [y] = encrypt(&rounds, [counter]);
        // two 64-bit words a block
        let words = (1u32 << (2 * part.len())) - 1;
        // SAFETY: the mask leaves as many blocks as there are.
        unsafe { _mm512_mask_storeu_epi64(part.as_mut_ptr().cast(), words as __mmask8, y) };
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
