//! VAES on 512-bit registers: four keys to a register, eight registers to a step.
//!
//! A level costs a register ten AES instructions and about as many others, and the AES unit shares its
//! port with half of those, so what counts is instructions off the AES port; see the notes at each.

use super::{Block, BlockOut, Deal, aesni};
use crate::compare::BLOCK;
use privet_prg::TreeHash;
use std::arch::x86_64::*;

/// Registers to a step.
const STEP: usize = 8;
/// Registers to a block.
const REGS: usize = BLOCK / 4;
/// How far ahead of its use a key is brought into the first-level cache: one row of a block.
const NEAR: usize = 16 * BLOCK;
/// And into the second-level cache. Both together stream keys at about 0.9 of the rate of a bare read; one
/// distance alone, or a longer one, gives 0.75 to 0.8 (the hardware's prefetcher stops at every page).
const FAR: usize = 3 * NEAR;

type Rounds = [__m512i; 11];
type Row = [__m512i; REGS];

pub(super) struct Vaes {
    inner: Rounds,
    leaf: Rounds,
}

pub(super) fn available() -> bool {
    aesni::available()
        && is_x86_feature_detected!("vaes")
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512vpopcntdq")
        && is_x86_feature_detected!("bmi2")
}

impl Vaes {
    /// # Safety
    /// [`available`] is true.
    pub(super) unsafe fn new(hash: &TreeHash) -> Vaes {
        // SAFETY: the caller's promise.
        unsafe { Vaes { inner: broadcast(hash.keys().inner), leaf: broadcast(hash.keys().leaf) } }
    }
}

#[target_feature(enable = "avx512f,aes")]
fn broadcast(key: [u8; 16]) -> Rounds {
    aesni::expand(key).map(|k| _mm512_broadcast_i32x4(k))
}

impl Block for Vaes {
    fn eval(&self, bits: u32, key: &[u8], x: &[u64; BLOCK], want_eq: bool) -> BlockOut {
        // SAFETY: a `Vaes` exists only where its instructions do.
        unsafe { eval(self, bits, key, x, want_eq) }
    }

    fn deal(&self, bits: u32, block: &Deal, key0: &mut [u8], key1: &mut [u8]) {
        // SAFETY: as above.
        unsafe { deal(self, bits, block, key0, key1) }
    }
}

/// `sigma(l || r) = (l ^ r || l)`: swap the halves, then XOR `l` into the high one.
#[inline]
#[target_feature(enable = "avx512f")]
fn sigma(s: __m512i) -> __m512i {
    let swapped = _mm512_shuffle_epi32::<0x4e>(s);
    _mm512_mask_xor_epi64(swapped, 0b1010_1010, swapped, s)
}

/// Mask of the 32-bit words of the keys whose control bit is set.
#[inline]
#[target_feature(enable = "avx512f")]
fn control(s: __m512i) -> __mmask16 {
    _mm512_test_epi32_mask(_mm512_shuffle_epi32::<0>(s), _mm512_set1_epi32(1))
}

/// The middle rounds of AES on every register.
#[inline]
#[target_feature(enable = "avx512f,vaes")]
fn middle<const N: usize>(rounds: &Rounds, y: &mut [__m512i; N]) {
    for k in &rounds[1..10] {
        for y in y.iter_mut() {
            *y = _mm512_aesenc_epi128(*y, *k);
        }
    }
}

/// Left children `H(s) ^ t*CW` of `STEP` registers. The feed-forward and the correction word go into the
/// last round key, so nothing waits for the AES.
#[inline]
#[target_feature(enable = "avx512f,vaes")]
fn left(rounds: &Rounds, s: &[__m512i; STEP], cw: &[__m512i; STEP]) -> [__m512i; STEP] {
    let mut y = *s;
    let mut last = *s;
    for j in 0..STEP {
        let a = sigma(s[j]);
        y[j] = _mm512_xor_si512(a, rounds[0]);
        let a = _mm512_xor_si512(a, rounds[10]);
        last[j] = _mm512_mask_xor_epi32(a, control(s[j]), a, cw[j]);
    }
    middle(rounds, &mut y);
    for j in 0..STEP {
        y[j] = _mm512_aesenclast_epi128(y[j], last[j]);
    }
    y
}

/// Registers `at..at + STEP` of a row; also asks for the cache lines that come [`NEAR`] and [`FAR`] bytes later.
#[inline]
#[target_feature(enable = "avx512f")]
fn load(row: &[u8], at: usize) -> [__m512i; STEP] {
    let part = &row[64 * at..64 * (at + STEP)];
    std::array::from_fn(|j| {
        let p = part.as_ptr().wrapping_add(64 * j);
        _mm_prefetch::<_MM_HINT_T1>(p.wrapping_add(FAR).cast());
        _mm_prefetch::<_MM_HINT_T0>(p.wrapping_add(NEAR).cast());
        // SAFETY: an unaligned load within `part`; a prefetch never faults.
        unsafe { _mm512_loadu_si512(p.cast()) }
    })
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(row: &mut [u8], at: usize, v: &[__m512i; STEP]) {
    let part = &mut row[64 * at..64 * (at + STEP)];
    for (j, v) in v.iter().enumerate() {
        // SAFETY: an unaligned store within `part`.
        unsafe { _mm512_storeu_si512(part.as_mut_ptr().wrapping_add(64 * j).cast(), *v) };
    }
}

/// `STEP` registers of a block's state from `at`.
#[inline]
fn step(v: &mut Row, at: usize) -> &mut [__m512i; STEP] {
    (&mut v[at..at + STEP]).try_into().expect("STEP registers")
}

/// Every point twice, so that it meets both halves of its key.
#[inline]
#[target_feature(enable = "avx512f")]
fn doubled(x: &[u64; BLOCK]) -> Row {
    let twice = _mm512_set_epi64(3, 3, 2, 2, 1, 1, 0, 0);
    std::array::from_fn(|r| {
        let four = &x[4 * r..4 * r + 4];
        // SAFETY: four words.
        let four = unsafe { _mm256_loadu_si256(four.as_ptr().cast()) };
        _mm512_permutexvar_epi64(twice, _mm512_castsi256_si512(four))
    })
}

#[target_feature(enable = "avx512f,vaes,avx512vpopcntdq,bmi2")]
fn eval(aes: &Vaes, bits: u32, key: &[u8], x: &[u64; BLOCK], want_eq: bool) -> BlockOut {
    let mut rows = key.chunks_exact(16 * BLOCK);
    let mut next = || rows.next().expect("a row a level");
    let mut x = doubled(x);
    let mut s: Row = [_mm512_setzero_si512(); REGS];
    let root = next();
    for at in (0..REGS).step_by(STEP) {
        *step(&mut s, at) = load(root, at);
    }
    // XOR over the levels with x_i = 0 of the right sibling l ^ s. Where x_i = 0 the next seed is l, so
    // over all levels those terms telescope to first ^ last, once l of the other levels is taken out.
    let mut siblings = s;
    for level in super::levels(bits) {
        let row = next();
        let bit = _mm512_set1_epi64(1 << level);
        for at in (0..REGS).step_by(STEP) {
            let (s, x, siblings) = (step(&mut s, at), step(&mut x, at), step(&mut siblings, at));
            let l = left(&aes.inner, s, &load(row, at));
            for j in 0..STEP {
                let right = _mm512_test_epi64_mask(x[j], bit);
                siblings[j] = _mm512_mask_xor_epi64(siblings[j], right, siblings[j], l[j]);
                s[j] = _mm512_mask_xor_epi64(l[j], right, l[j], s[j]);
            }
        }
    }
    let row = next();
    let mut out = BlockOut::default();
    for at in (0..REGS).step_by(STEP) {
        let (s, x, siblings) = (step(&mut s, at), step(&mut x, at), step(&mut siblings, at));
        let word = left(&aes.leaf, s, &load(row, at));
        let (mut lt, mut eq) = (0, 0);
        for j in 0..STEP {
            let sibling = _mm512_xor_si512(siblings[j], s[j]);
            lt |= (parity_above(word[j], x[j], sibling) as u64) << (8 * j);
            if want_eq {
                eq |= (bit_at(word[j], x[j]) as u64) << (8 * j);
            }
        }
        // Two mask bits a key, of which the lower counts.
        out.lt |= _pext_u64(lt, 0x5555_5555_5555_5555) << (4 * at);
        out.eq |= _pext_u64(eq | eq >> 1, 0x5555_5555_5555_5555) << (4 * at);
    }
    out
}

/// Position of the point within each half of the leaf: negative when it lies below, 64 or more when above.
#[inline]
#[target_feature(enable = "avx512f")]
fn position(x: __m512i) -> __m512i {
    let halves = _mm512_set_epi64(64, 0, 64, 0, 64, 0, 64, 0);
    _mm512_sub_epi64(_mm512_and_si512(x, _mm512_set1_epi64(127)), halves)
}

/// Parity of the leaf bits above the point, XOR the lowest bit of `sibling`; in the lower mask bit of each key.
#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn parity_above(word: __m512i, x: __m512i, sibling: __m512i) -> __mmask8 {
    let at = position(x);
    let ones = _mm512_set1_epi64(-1);
    let not_below = _mm512_cmpge_epi64_mask(at, _mm512_setzero_si512());
    // A shift by 64 or more gives zero: nothing of that half is above.
    let above = _mm512_mask_sllv_epi64(ones, not_below, _mm512_set1_epi64(!1), at);
    let count = _mm512_popcnt_epi64(_mm512_and_si512(word, above));
    let count = _mm512_xor_si512(count, _mm512_shuffle_epi32::<0x4e>(count));
    _mm512_test_epi64_mask(_mm512_xor_si512(count, sibling), _mm512_set1_epi64(1))
}

/// The leaf bit at the point, in one of the two mask bits of each key.
#[inline]
#[target_feature(enable = "avx512f")]
fn bit_at(word: __m512i, x: __m512i) -> __mmask8 {
    // A shift by 64 or more (a negative one counts as such) gives zero: the point is in the other half.
    _mm512_test_epi64_mask(word, _mm512_sllv_epi64(_mm512_set1_epi64(1), position(x)))
}

#[target_feature(enable = "avx512f,vaes")]
fn deal(aes: &Vaes, bits: u32, block: &Deal, key0: &mut [u8], key1: &mut [u8]) {
    let mut rows = key0.chunks_exact_mut(16 * BLOCK).zip(key1.chunks_exact_mut(16 * BLOCK));
    let mut next = || rows.next().expect("a row a level");
    let mut alpha = doubled(&block.alpha);
    let mut s = words(&block.roots);
    let low = _mm512_set_epi64(0, 1, 0, 1, 0, 1, 0, 1);
    let mut delta = words(&block.deltas).map(|d| _mm512_or_si512(d, low));
    let (row0, row1) = next();
    for at in (0..REGS).step_by(STEP) {
        let (s, delta) = (step(&mut s, at), step(&mut delta, at));
        store(row0, at, s);
        // On the path the parties' seeds differ by delta, so party 1's are never kept.
        store(row1, at, &std::array::from_fn(|j| _mm512_xor_si512(s[j], delta[j])));
    }
    for level in super::levels(bits) {
        let (row0, row1) = next();
        let bit = _mm512_set1_epi64(1 << level);
        for at in (0..REGS).step_by(STEP) {
            let (s, alpha, delta) = (step(&mut s, at), step(&mut alpha, at), step(&mut delta, at));
            let [h0, mut cw] = both(&aes.inner, s, delta);
            for j in 0..STEP {
                let right = _mm512_test_epi64_mask(alpha[j], bit);
                cw[j] = _mm512_xor_si512(cw[j], h0[j]);
                cw[j] = _mm512_mask_xor_epi64(cw[j], !right, cw[j], delta[j]);
                let l = _mm512_mask_xor_epi32(h0[j], control(s[j]), h0[j], cw[j]);
                s[j] = _mm512_mask_xor_epi64(l, right, l, s[j]);
            }
            store(row0, at, &cw);
            store(row1, at, &cw);
        }
    }
    let (row0, row1) = next();
    for at in (0..REGS).step_by(STEP) {
        let (s, alpha, delta) = (step(&mut s, at), step(&mut alpha, at), step(&mut delta, at));
        let [mut word, h1] = both(&aes.leaf, s, delta);
        for j in 0..STEP {
            let point = _mm512_sllv_epi64(_mm512_set1_epi64(1), position(alpha[j]));
            word[j] = _mm512_xor_si512(word[j], _mm512_xor_si512(h1[j], point));
        }
        store(row0, at, &word);
        store(row1, at, &word);
    }
}

/// The hashes of both parties' seeds, `s` and `s ^ delta`.
#[inline]
#[target_feature(enable = "avx512f,vaes")]
fn both(rounds: &Rounds, s: &[__m512i; STEP], delta: &[__m512i; STEP]) -> [[__m512i; STEP]; 2] {
    let zero = [_mm512_setzero_si512(); STEP];
    let other = std::array::from_fn(|j| _mm512_xor_si512(s[j], delta[j]));
    [left(rounds, s, &zero), left(rounds, &other, &zero)]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn words(v: &[u128; BLOCK]) -> Row {
    // SAFETY: `v` is as long as a row.
    std::array::from_fn(|r| unsafe { _mm512_loadu_si512(v.as_ptr().add(4 * r).cast()) })
}
