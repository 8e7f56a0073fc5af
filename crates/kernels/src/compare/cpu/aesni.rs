//! AES-NI, eight keys at a time on 128-bit registers.

use super::{Block, BlockOut, Deal};
use crate::compare::BLOCK;
use privet_prg::TreeHash;
use std::arch::x86_64::*;

/// Keys to a step: enough independent AES streams to hide the latency of `aesenc`.
const LANES: usize = 8;
const GROUPS: usize = BLOCK / LANES;
type Group = [__m128i; LANES];

/// Round keys of AES-128.
pub(super) type Rounds = [__m128i; 11];

pub(super) struct AesNi {
    inner: Rounds,
    leaf: Rounds,
}

pub(super) fn available() -> bool {
    is_x86_feature_detected!("aes") && is_x86_feature_detected!("avx") && is_x86_feature_detected!("popcnt")
}

impl AesNi {
    /// # Safety
    /// [`available`] is true.
    pub(super) unsafe fn new(hash: &TreeHash) -> AesNi {
        // SAFETY: the caller's promise.
        unsafe { AesNi { inner: expand(hash.keys().inner), leaf: expand(hash.keys().leaf) } }
    }
}

impl Block for AesNi {
    fn eval(&self, bits: u32, key: &[u8], x: &[u64; BLOCK], want_eq: bool) -> BlockOut {
        // SAFETY: an `AesNi` exists only where its instructions do.
        unsafe { eval(self, bits, key, x, want_eq) }
    }

    fn deal(&self, bits: u32, block: &Deal, key0: &mut [u8], key1: &mut [u8]) {
        // SAFETY: as above.
        unsafe { deal(self, bits, block, key0, key1) }
    }
}

/// The key schedule of FIPS 197, section 5.2. The keys are public.
#[target_feature(enable = "aes,avx")]
pub(super) fn expand(key: [u8; 16]) -> Rounds {
    #[target_feature(enable = "aes,avx")]
    fn next<const RCON: i32>(k: __m128i) -> __m128i {
        let word = _mm_shuffle_epi32::<0xff>(_mm_aeskeygenassist_si128::<RCON>(k));
        let k = _mm_xor_si128(k, _mm_slli_si128::<4>(k));
        _mm_xor_si128(_mm_xor_si128(k, _mm_slli_si128::<8>(k)), word)
    }
    let k0 = from_u128(u128::from_le_bytes(key));
    let k1 = next::<0x01>(k0);
    let k2 = next::<0x02>(k1);
    let k3 = next::<0x04>(k2);
    let k4 = next::<0x08>(k3);
    let k5 = next::<0x10>(k4);
    let k6 = next::<0x20>(k5);
    let k7 = next::<0x40>(k6);
    let k8 = next::<0x80>(k7);
    let k9 = next::<0x1b>(k8);
    [k0, k1, k2, k3, k4, k5, k6, k7, k8, k9, next::<0x36>(k9)]
}

#[target_feature(enable = "avx")]
fn from_u128(v: u128) -> __m128i {
    _mm_set_epi64x((v >> 64) as i64, v as i64)
}

#[target_feature(enable = "avx")]
fn to_u128(v: __m128i) -> u128 {
    (_mm_extract_epi64::<1>(v) as u64 as u128) << 64 | _mm_cvtsi128_si64(v) as u64 as u128
}

/// `sigma(l || r) = (l ^ r || l)`.
#[inline]
#[target_feature(enable = "avx")]
fn sigma(s: __m128i) -> __m128i {
    _mm_xor_si128(_mm_shuffle_epi32::<0xee>(s), _mm_slli_si128::<8>(s))
}

/// All ones where the control bit of `s` is set.
#[inline]
#[target_feature(enable = "avx")]
fn control(s: __m128i) -> __m128i {
    _mm_srai_epi32::<31>(_mm_slli_epi32::<31>(_mm_shuffle_epi32::<0>(s)))
}

/// All ones where the point has the bit, which `bit` holds in both halves.
#[inline]
#[target_feature(enable = "avx")]
fn goes_right(x: u64, bit: __m128i) -> __m128i {
    _mm_cmpeq_epi64(_mm_and_si128(_mm_set1_epi64x(x as i64), bit), bit)
}

/// `AES(sigma(s)) ^ sigma(s)` on every lane.
#[inline]
#[target_feature(enable = "aes,avx")]
fn hash(rounds: &Rounds, s: &Group) -> Group {
    let mut y = *s;
    let mut last = *s;
    for (y, last) in y.iter_mut().zip(&mut last) {
        let a = sigma(*y);
        *y = _mm_xor_si128(a, rounds[0]);
        *last = _mm_xor_si128(a, rounds[10]);
    }
    for k in &rounds[1..10] {
        for y in &mut y {
            *y = _mm_aesenc_si128(*y, *k);
        }
    }
    for (y, last) in y.iter_mut().zip(&last) {
        *y = _mm_aesenclast_si128(*y, *last);
    }
    y
}

/// Lanes `LANES * g ..` of a row.
#[inline]
#[target_feature(enable = "avx")]
fn load(row: &[u8], g: usize) -> Group {
    let part = &row[16 * LANES * g..16 * LANES * (g + 1)];
    // SAFETY: unaligned loads within `part`.
    std::array::from_fn(|i| unsafe { _mm_loadu_si128(part.as_ptr().cast::<__m128i>().add(i)) })
}

#[inline]
#[target_feature(enable = "avx")]
fn store(row: &mut [u8], g: usize, v: &Group) {
    let part = &mut row[16 * LANES * g..16 * LANES * (g + 1)];
    for (i, v) in v.iter().enumerate() {
        // SAFETY: an unaligned store within `part`.
        unsafe { _mm_storeu_si128(part.as_mut_ptr().cast::<__m128i>().add(i), *v) };
    }
}

#[target_feature(enable = "aes,avx,popcnt")]
fn eval(aes: &AesNi, bits: u32, key: &[u8], x: &[u64; BLOCK], want_eq: bool) -> BlockOut {
    let row = 16 * BLOCK;
    let mut s: [Group; GROUPS] = std::array::from_fn(|g| load(key, g));
    // XOR over the levels with x_i = 0 of the right sibling l ^ s. Where x_i = 0 the next seed is l, so
    // over all levels those terms telescope to first ^ last, once l of the other levels is taken out.
    let mut siblings = s;
    let x = x.as_chunks::<LANES>().0;
    for (i, level) in super::levels(bits).enumerate() {
        let cw = &key[row * (i + 1)..row * (i + 2)];
        let bit = _mm_set1_epi64x(1 << level);
        for g in 0..GROUPS {
            let h = hash(&aes.inner, &s[g]);
            let cw = load(cw, g);
            for j in 0..LANES {
                let right = goes_right(x[g][j], bit);
                let l = _mm_xor_si128(h[j], _mm_and_si128(cw[j], control(s[g][j])));
                siblings[g][j] = _mm_xor_si128(siblings[g][j], _mm_and_si128(l, right));
                s[g][j] = _mm_xor_si128(l, _mm_and_si128(s[g][j], right));
            }
        }
    }
    let mut out = BlockOut::default();
    let cw = &key[key.len() - row..];
    for g in 0..GROUPS {
        let h = hash(&aes.leaf, &s[g]);
        let cw = load(cw, g);
        for j in 0..LANES {
            let word = to_u128(_mm_xor_si128(h[j], _mm_and_si128(cw[j], control(s[g][j]))));
            let sibling = _mm_cvtsi128_si64(_mm_xor_si128(siblings[g][j], s[g][j])) as u64;
            let at = x[g][j] & 127;
            let above = word & (!1 << at);
            let parity = ((above >> 64) as u64 ^ above as u64).count_ones() as u64 ^ sibling;
            out.lt |= (parity & 1) << (LANES * g + j);
            if want_eq {
                out.eq |= ((word >> at) as u64 & 1) << (LANES * g + j);
            }
        }
    }
    out
}

#[target_feature(enable = "aes,avx")]
fn deal(aes: &AesNi, bits: u32, block: &Deal, key0: &mut [u8], key1: &mut [u8]) {
    let row = 16 * BLOCK;
    let xor = |a: &Group, b: &Group| std::array::from_fn(|j| _mm_xor_si128(a[j], b[j]));
    for g in 0..GROUPS {
        let lanes = |v: &[u128; BLOCK]| -> Group { std::array::from_fn(|j| from_u128(v[LANES * g + j])) };
        let mut s = lanes(&block.roots);
        let delta = lanes(&block.deltas).map(|d| _mm_or_si128(d, _mm_set_epi64x(0, 1)));
        let alpha = &block.alpha[LANES * g..LANES * (g + 1)];
        store(&mut key0[..row], g, &s);
        // On the path the parties' seeds differ by delta.
        store(&mut key1[..row], g, &xor(&s, &delta));
        let mut at = row;
        for level in super::levels(bits) {
            let bit = _mm_set1_epi64x(1 << level);
            let h = hash(&aes.inner, &s);
            let mut cw = xor(&h, &hash(&aes.inner, &xor(&s, &delta)));
            for j in 0..LANES {
                let right = goes_right(alpha[j], bit);
                cw[j] = _mm_xor_si128(cw[j], _mm_andnot_si128(right, delta[j]));
                let l = _mm_xor_si128(h[j], _mm_and_si128(cw[j], control(s[j])));
                s[j] = _mm_xor_si128(l, _mm_and_si128(s[j], right));
            }
            store(&mut key0[at..at + row], g, &cw);
            store(&mut key1[at..at + row], g, &cw);
            at += row;
        }
        let h = xor(&hash(&aes.leaf, &s), &hash(&aes.leaf, &xor(&s, &delta)));
        let point = std::array::from_fn(|j| from_u128(super::one_hot(alpha[j])));
        let word = xor(&h, &point);
        store(&mut key0[at..at + row], g, &word);
        store(&mut key1[at..at + row], g, &word);
    }
}
