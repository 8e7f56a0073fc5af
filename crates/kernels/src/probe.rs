//! What the machine could do: the limits that kernels are judged by, measured in the same run as they are.

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use std::hint::black_box;
use std::time::Instant;

/// Bytes that are far from fitting any private cache.
const STREAM_BYTES: usize = 512 << 20;

/// Units of work a second: repeats `work`, which returns its units, until `seconds` have passed (at least once).
pub(crate) fn rate(seconds: f64, mut work: impl FnMut() -> f64) -> f64 {
    work();
    let start = Instant::now();
    let mut done = 0.0;
    loop {
        done += work();
        let elapsed = start.elapsed().as_secs_f64();
        if elapsed >= seconds {
            return done / elapsed;
        }
    }
}

/// AES-128 blocks a second on one thread, with a fixed key and independent blocks.
pub fn aes_rate(seconds: f64) -> f64 {
    const CALLS: usize = 1 << 16;
    rate(seconds, || {
        aes_calls(CALLS);
        CALLS as f64
    })
}

/// About `calls` AES-128 encryptions: on registers with VAES where there is VAES, the most that the machine can do,
/// else by the crate `aes`.
pub fn aes_calls(calls: usize) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("vaes") && is_x86_feature_detected!("avx512f") {
        // SAFETY: as just checked.
        return unsafe { vaes_calls(calls) };
    }
    // Speed does not depend on the key.
    let aes = Aes128::new(&Array([1; 16]));
    let mut blocks = [Array([0u8; 16]); 64];
    for _ in 0..calls / blocks.len() {
        aes.encrypt_blocks(&mut blocks);
    }
    black_box(&mut blocks);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,vaes")]
fn vaes_calls(calls: usize) {
    use std::arch::x86_64::*;
    let mut keys: [__m512i; 11] = std::array::from_fn(|i| _mm512_set1_epi64(i as i64 + 1));
    let mut y: [__m512i; 12] = std::array::from_fn(|i| _mm512_set1_epi64(i as i64));
    black_box(&mut keys);
    for _ in 0..calls / (4 * y.len()) {
        // Plain loops: a closure would not inherit the target features, and be called instead of inlined.
        for k in &keys[1..10] {
            for y in &mut y {
                *y = _mm512_aesenc_epi128(*y, *k);
            }
        }
        for y in &mut y {
            *y = _mm512_aesenclast_epi128(*y, keys[10]);
        }
    }
    black_box(&mut y);
}

/// Bytes a second that `threads` threads together read from memory, each streaming its own part of 512 MiB.
pub fn memory_read_rate(seconds: f64, threads: usize) -> f64 {
    let data = vec![1u64; STREAM_BYTES / 8];
    let part = data.len().div_ceil(threads.max(1));
    rate(seconds, || {
        crate::threads::in_parallel(data.chunks(part), |words| {
            let mut sums = [0u64; 16];
            for line in black_box(words).as_chunks::<16>().0 {
                for (s, w) in sums.iter_mut().zip(line) {
                    *s ^= w;
                }
            }
            black_box(sums);
        });
        STREAM_BYTES as f64
    })
}

/// Products of two bytes a second that one thread's AMX tile unit adds up, operands in registers; `None` where
/// there is no AMX. A ring product of k bits takes [`limb_products`] of them.
pub fn amx_rate(seconds: f64) -> Option<f64> {
    crate::linear::cpu::amx_peak(seconds)
}

/// Byte products in one product of two k-bit ring elements modulo 2^k: L (L + 1) / 2 for L = ceil(k / 8).
pub const fn limb_products(bits: u32) -> u32 {
    let limbs = bits.div_ceil(8);
    limbs * (limbs + 1) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_rates() {
        assert!(aes_rate(0.0) > 0.0);
        assert!(memory_read_rate(0.0, 2) > 0.0);
        assert!(amx_rate(0.0).is_none_or(|r| r > 0.0));
        assert!(rate(0.0, || 2.0).is_finite());
    }

    #[test]
    fn limbs() {
        assert_eq!([1, 8, 9, 32, 40, 64].map(limb_products), [1, 1, 3, 10, 15, 36]);
    }
}
