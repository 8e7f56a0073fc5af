//! Words of bits, whose lanes are coefficients of elements of GF(2^64).

use super::V;
use super::field::{Wide, halves, load_two, multiply_add, multiply_two, number, store_two, xor};
use super::lanes::{LANES, load};
use super::points::{CUBE, NINE, extend_nine, extend_upper};
use crate::fold::cpu::pieces::side_by_side;
use crate::fold::{GROUP, WORD_VARS, WordTerms, Words, gf_reduce, points};
use crate::near::ahead;
use std::arch::x86_64::*;
use zeroize::Zeroizing;

/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx2,pclmulqdq")]
pub(in crate::fold::cpu) unsafe fn words_message(batches: &[WordTerms], sums: &mut [u64]) {
    let zero = _mm256_setzero_si256();
    let mut acc = vec![_mm_setzero_si128(); points(WORD_VARS)];
    let (mut upper, mut four_groups) = (vec![], Zeroizing::new([0; GROUP * LANES]));
    let runs = batches.chunk_by(|a, b| a.terms.len() == b.terms.len());
    for groups in runs.flat_map(|run| side_by_side::<LANES>(run.iter())) {
        // never shorter again: what is there is written over
        upper.resize(upper.len().max(2 * groups.terms()), [zero; 8 * CUBE]);
        let upper = &mut upper[..2 * groups.terms()];
        for (t, pair) in upper.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            for (upper, right) in pair.iter_mut().zip([false, true]) {
                extend_upper::<false>(groups.operand(t, right, &mut four_groups), GROUP, upper);
            }
        }
        let s = halves(load(&groups.weights()));
        for (i, acc) in acc.chunks_exact_mut(NINE).enumerate() {
            let (e, top) = (i / 3, i % 3);
            let mut z = [zero; NINE];
            for pair in upper.chunks_exact(2) {
                let u = extend_nine::<false>(&pair[0][8 * e..], top);
                let v = extend_nine::<false>(&pair[1][8 * e..], top);
                for (z, (u, v)) in z.iter_mut().zip(u.into_iter().zip(v)) {
                    *z = _mm256_xor_si256(*z, _mm256_and_si256(u, v));
                }
            }
            for (acc, z) in acc.iter_mut().zip(z) {
                *acc = multiply_add(*acc, z, s);
            }
        }
    }
    for (sum, acc) in sums.iter_mut().zip(acc) {
        *sum ^= gf_reduce(number(acc));
    }
}

/// A basis as sums of four: for the words 16 p + 4 n .. of the lower half and 16 p + 4 n + 8 .. of the upper, byte q of all sixteen sums.
pub(in crate::fold::cpu) type Tables = [[[[u64; LANES]; 8]; 2]; 4];

pub(in crate::fold::cpu) fn tables(basis: &[u64; GROUP]) -> Tables {
    let sum = |first: usize, choice: usize| {
        (0..4).filter(|k| choice >> k & 1 == 1).fold(0, |sum, k| sum ^ basis[first + k])
    };
    let byte = |p, n, q: usize, at: usize| sum(16 * p + 4 * n + at / 16 * 8, at % 16).to_le_bytes()[q];
    std::array::from_fn(|p| {
        std::array::from_fn(|n| {
            std::array::from_fn(|q| {
                std::array::from_fn(|word| {
                    u64::from_le_bytes(std::array::from_fn(|i| byte(p, n, q, 8 * word + i)))
                })
            })
        })
    })
}

/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx2,pclmulqdq")]
pub(in crate::fold::cpu) unsafe fn words_fold(
    words: Words,
    tables: &Tables,
    weights: Option<&[u64]>,
    out: &mut Vec<u64>,
) {
    let mut last = Zeroizing::new([0; GROUP]);
    for g in 0..words.len().div_ceil(GROUP) {
        let words = words.some(g * GROUP, &mut last);
        words.chunks_exact(8).for_each(ahead);
        let mut items = [0; GROUP];
        fold_group(words, tables, &mut items);
        if let Some(s) = weights {
            let mut power = load_two(&[s[g], crate::fold::gf_mul(s[g], 2)]);
            for pair in items.as_chunks_mut::<2>().0 {
                store_two(pair, multiply_two(load_two(pair), power));
                power = times_square(power);
            }
        }
        out.extend_from_slice(&items);
    }
}

/// Two elements times Y^2.
#[target_feature(enable = "avx2")]
#[inline]
fn times_square(a: Wide) -> Wide {
    let over = _mm_srli_epi64::<62>(a);
    let times =
        xor(xor(over, _mm_slli_epi64::<1>(over)), xor(_mm_slli_epi64::<3>(over), _mm_slli_epi64::<4>(over)));
    xor(_mm_slli_epi64::<2>(a), times)
}

/// The 64 sums of one group: for each lane, bits of four words choose one of sixteen sums, a byte at a time.
#[target_feature(enable = "avx2")]
#[inline]
fn fold_group(words: &[u64; GROUP], tables: &Tables, items: &mut [u64; GROUP]) {
    let zero = _mm256_setzero_si256();
    let low = _mm256_set1_epi8(0xf);
    let mut nibbles = [[[zero; 4]; 2]; 4];
    for (words, [first, last]) in words.as_chunks::<16>().0.iter().zip(&mut nibbles) {
        for ((x, first), last) in by_lane(words).into_iter().zip(first).zip(last) {
            *first = _mm256_and_si256(x, low);
            *last = _mm256_and_si256(_mm256_srli_epi64::<4>(x), low);
        }
    }
    let mut sums = [[zero; 4]; 8];
    for (q, sums) in sums.iter_mut().enumerate() {
        for (nibbles, tables) in nibbles.as_flattened().iter().zip(tables.as_flattened()) {
            let table = load(&tables[q]);
            for (sum, x) in sums.iter_mut().zip(nibbles) {
                *sum = _mm256_xor_si256(*sum, _mm256_shuffle_epi8(table, *x));
            }
        }
    }
    // lanes 16 h .. and 32 + 16 h .., both halves of the words added up
    for h in 0..2 {
        let y: [V; 8] = std::array::from_fn(|q| {
            let (a, b) = (sums[q][h], sums[q][h + 2]);
            _mm256_xor_si256(_mm256_permute2x128_si256::<0x20>(a, b), _mm256_permute2x128_si256::<0x31>(a, b))
        });
        for (i, pair) in interleave(y).into_iter().enumerate() {
            let [first, second] = halves(pair);
            let at = 16 * h + 2 * i;
            store_two((&mut items[at..at + 2]).try_into().expect("two"), first);
            store_two((&mut items[at + 32..at + 34]).try_into().expect("two"), second);
        }
    }
}

/// A byte for every lane: its bits of the first eight words in the lower half, and of the others in the upper; 16 lanes a register.
#[target_feature(enable = "avx2")]
#[inline]
fn by_lane(words: &[u64; 16]) -> [V; 4] {
    let bytes = _mm256_setr_epi8(
        0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14,
        7, 15,
    );
    // two words of either half, byte by byte
    let two = |i: usize| {
        let pair = |at: usize| load_two(words[at..].first_chunk().expect("two words"));
        let both = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(pair(2 * i)), pair(2 * i + 8));
        _mm256_shuffle_epi8(both, bytes)
    };
    let (a, b, c, d) = (two(0), two(1), two(2), two(3));
    let (ab, cd) = (_mm256_unpacklo_epi16(a, b), _mm256_unpacklo_epi16(c, d));
    let (ab2, cd2) = (_mm256_unpackhi_epi16(a, b), _mm256_unpackhi_epi16(c, d));
    [
        turn(_mm256_unpacklo_epi32(ab, cd)),
        turn(_mm256_unpackhi_epi32(ab, cd)),
        turn(_mm256_unpacklo_epi32(ab2, cd2)),
        turn(_mm256_unpackhi_epi32(ab2, cd2)),
    ]
}

/// Every word as an 8x8 matrix of bits, transposed (Hacker's Delight, section 7-3).
#[target_feature(enable = "avx2")]
#[inline]
fn turn(x: V) -> V {
    let x = swap::<7>(x, 0x00aa_00aa_00aa_00aa);
    let x = swap::<14>(x, 0x0000_cccc_0000_cccc);
    swap::<28>(x, 0x0000_0000_f0f0_f0f0)
}

#[target_feature(enable = "avx2")]
#[inline]
fn swap<const BY: i32>(x: V, mask: i64) -> V {
    let t = _mm256_xor_si256(x, _mm256_srli_epi64::<BY>(x));
    let t = _mm256_and_si256(t, _mm256_set1_epi64x(mask));
    _mm256_xor_si256(x, _mm256_xor_si256(t, _mm256_slli_epi64::<BY>(t)))
}

/// Words from their bytes, of 16 lanes in each half: register q has byte q of every word; result i has words 2 i and 2 i + 1.
#[target_feature(enable = "avx2")]
#[inline]
fn interleave(y: [V; 8]) -> [V; 8] {
    let mut out = [_mm256_setzero_si256(); 8];
    let four = |a: V, b: V, c: V, d: V| {
        let (ab, cd) = (_mm256_unpacklo_epi8(a, b), _mm256_unpacklo_epi8(c, d));
        let (ab2, cd2) = (_mm256_unpackhi_epi8(a, b), _mm256_unpackhi_epi8(c, d));
        [
            _mm256_unpacklo_epi16(ab, cd),
            _mm256_unpackhi_epi16(ab, cd),
            _mm256_unpacklo_epi16(ab2, cd2),
            _mm256_unpackhi_epi16(ab2, cd2),
        ]
    };
    let (low, high) = (four(y[0], y[1], y[2], y[3]), four(y[4], y[5], y[6], y[7]));
    for t in 0..4 {
        out[2 * t] = _mm256_unpacklo_epi32(low[t], high[t]);
        out[2 * t + 1] = _mm256_unpackhi_epi32(low[t], high[t]);
    }
    out
}

/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx2,pclmulqdq")]
pub(in crate::fold::cpu) unsafe fn words_combine(words: &[u64], weights: &[u64], sums: &mut [u64; GROUP]) {
    let mut acc = [_mm_setzero_si128(); GROUP];
    for (words, s) in words.chunks(GROUP).zip(weights) {
        words.chunks(8).for_each(ahead);
        let s = load_two(&[*s, 0]);
        let (pairs, last) = words.as_chunks::<2>();
        for (acc, pair) in acc.as_chunks_mut::<2>().0.iter_mut().zip(pairs) {
            let pair = load_two(pair);
            acc[0] = xor(acc[0], _mm_clmulepi64_si128::<0x00>(pair, s));
            acc[1] = xor(acc[1], _mm_clmulepi64_si128::<0x01>(pair, s));
        }
        if let [last] = last {
            let acc = &mut acc[words.len() - 1];
            *acc = xor(*acc, _mm_clmulepi64_si128::<0x00>(load_two(&[*last, 0]), s));
        }
    }
    for (sum, acc) in sums.iter_mut().zip(acc) {
        *sum ^= gf_reduce(number(acc));
    }
}
