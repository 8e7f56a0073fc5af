//! Words of bits, whose lanes are coefficients of elements of GF(2^64).

use super::V;
use super::field::{multiply_add, reduce, total};
use super::lanes::{LANES, load, store};
use super::points::{CUBE, NINE, extend_nine, extend_upper};
use crate::fold::cpu::pieces::{MAX_OPERANDS, blocks, side_by_side};
use crate::fold::{GROUP, WORD_VARS, WordTerms, gf_reduce, points};
use crate::near::ahead;
use std::arch::x86_64::*;
use zeroize::Zeroizing;

/// The weights of eight groups, 0 after the last.
#[target_feature(enable = "avx512f")]
#[inline]
fn eight(weights: &[u64], first: usize) -> V {
    let mut s = [0; LANES];
    s.iter_mut().zip(&weights[first..]).for_each(|(s, w)| *s = *w);
    load(&s)
}

/// Values in the upper three variables of eight groups of one operand.
type Upper = [V; 8 * CUBE];

/// Room for so many operands. It is never shorter again: what is there is written over.
#[target_feature(enable = "avx512f")]
fn room(upper: &mut Vec<Upper>, operands: usize) -> &mut [Upper] {
    upper.resize(upper.len().max(operands), [_mm512_setzero_si512(); 8 * CUBE]);
    &mut upper[..operands]
}

/// `z ^ (u & v)` at nine points. A function would be given them in memory.
macro_rules! add_products {
    ($z:expr, $u:expr, $v:expr) => {{
        let z: [V; NINE] = $z;
        let [u0, u1, u2, u3, u4, u5, u6, u7, u8] = $u;
        let [v0, v1, v2, v3, v4, v5, v6, v7, v8] = $v;
        let more = |z, u, v| _mm512_ternarylogic_epi64::<0x78>(z, u, v);
        [
            more(z[0], u0, v0),
            more(z[1], u1, v1),
            more(z[2], u2, v2),
            more(z[3], u3, v3),
            more(z[4], u4, v4),
            more(z[5], u5, v5),
            more(z[6], u6, v6),
            more(z[7], u7, v7),
            more(z[8], u8, v8),
        ]
    }};
}

/// Batches of one term that all have the same left operand.
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vbmi,vpclmulqdq,gfni")]
fn of_one_left(run: &[WordTerms], upper: &mut Vec<Upper>, acc: &mut [V]) {
    let zero = _mm512_setzero_si512();
    let (words, left) = (run[0].words, run[0].terms[0].0);
    let mut eight_groups = Zeroizing::new([0; GROUP * LANES]);
    for run in run.chunks(MAX_OPERANDS - 1) {
        let upper = room(upper, 1 + run.len());
        for at in (0..words).step_by(GROUP * LANES) {
            let operands = std::iter::once(left).chain(run.iter().map(|batch| batch.terms[0].1));
            for (upper, operand) in upper.iter_mut().zip(operands) {
                extend_upper::<false>(operand.some(at, &mut eight_groups), GROUP, upper);
            }
            let mut s = [zero; MAX_OPERANDS];
            s.iter_mut().zip(run).for_each(|(s, batch)| *s = eight(batch.weights, at / GROUP));
            for (i, acc) in acc.as_chunks_mut::<NINE>().0.iter_mut().enumerate() {
                let (e, top) = (i / 3, i % 3);
                let u = extend_nine::<false>(&upper[0][8 * e..], top);
                let mut sums = *acc;
                for (right, s) in upper[1..].iter().zip(&s) {
                    let v = extend_nine::<false>(&right[8 * e..], top);
                    let z = add_products!([zero; NINE], u, v);
                    for (sum, z) in sums.iter_mut().zip(z) {
                        *sum = multiply_add(*sum, z, *s);
                    }
                }
                *acc = sums;
            }
        }
    }
}

/// Batches with as many terms, whose groups stand side by side.
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vbmi,vpclmulqdq,gfni")]
fn of_one_length(run: &[&WordTerms], upper: &mut Vec<Upper>, acc: &mut [V]) {
    const MOST: usize = MAX_OPERANDS / 2;
    let zero = _mm512_setzero_si512();
    let mut eight_groups = Zeroizing::new([0; GROUP * LANES]);
    for groups in side_by_side::<LANES>(run.iter().copied()) {
        let s = load(&groups.weights());
        // linear in the terms, so a long sum may be cut
        for start in (0..groups.terms()).step_by(MOST) {
            let terms = start..groups.terms().min(start + MOST);
            let upper = room(upper, 2 * terms.len());
            for (pair, t) in upper.as_chunks_mut::<2>().0.iter_mut().zip(terms) {
                for (upper, right) in pair.iter_mut().zip([false, true]) {
                    extend_upper::<false>(groups.operand(t, right, &mut eight_groups), GROUP, upper);
                }
            }
            for (i, acc) in acc.as_chunks_mut::<NINE>().0.iter_mut().enumerate() {
                let (e, top) = (i / 3, i % 3);
                let mut z = [zero; NINE];
                for pair in upper.chunks_exact(2) {
                    let u = extend_nine::<false>(&pair[0][8 * e..], top);
                    let v = extend_nine::<false>(&pair[1][8 * e..], top);
                    z = add_products!(z, u, v);
                }
                (0..NINE).for_each(|i| acc[i] = multiply_add(acc[i], z[i], s));
            }
        }
    }
}

/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vbmi,vpclmulqdq,gfni")]
pub(in crate::fold::cpu) unsafe fn words_message(batches: &[WordTerms], sums: &mut [u64]) {
    let mut acc = vec![_mm512_setzero_si512(); points(WORD_VARS)];
    let (mut upper, mut others) = (vec![], Vec::with_capacity(batches.len()));
    // a short batch would not fill a register
    let have_left = |a: &WordTerms, b: &WordTerms| a.words >= GROUP * LANES && a.has_left_of(b);
    for run in batches.chunk_by(have_left) {
        match run {
            [one] => others.push(one),
            run => of_one_left(run, &mut upper, &mut acc),
        }
    }
    for run in others.chunk_by(|a, b| a.terms.len() == b.terms.len()) {
        of_one_length(run, &mut upper, &mut acc);
    }
    for (sum, acc) in sums.iter_mut().zip(acc) {
        *sum ^= gf_reduce(total(acc));
    }
}

/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx512f,vpclmulqdq")]
pub(in crate::fold::cpu) unsafe fn words_combine(words: &[u64], weights: &[u64], sums: &mut [u64; GROUP]) {
    let mut even = [_mm512_setzero_si512(); 8];
    let mut odd = even;
    blocks::<GROUP>(words.len(), &[words], |at, operands| {
        let s = _mm512_set1_epi64(weights[at / GROUP] as i64);
        for (i, words) in operands[0].as_chunks::<8>().0.iter().enumerate() {
            ahead(words);
            let words = load(words);
            even[i] = _mm512_xor_si512(even[i], _mm512_clmulepi64_epi128::<0x00>(words, s));
            odd[i] = _mm512_xor_si512(odd[i], _mm512_clmulepi64_epi128::<0x11>(words, s));
        }
    });
    for (i, sums) in sums.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let found = _mm512_unpacklo_epi64(reduce(even[i]), reduce(odd[i]));
        let found = _mm512_xor_si512(load(sums), found);
        store(sums, found);
    }
}
