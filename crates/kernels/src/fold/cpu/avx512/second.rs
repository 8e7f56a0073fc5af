//! Values of the second fold of words, of sixteen lanes of a group at a time: what the first fold makes of them stays in registers.
//!
//! Two groups at a time have eight such polynomials, one a lane of a register. A byte has the bits of one of them in eight words, and the
//! bytes at one place of all eight stand in one word of a register. So the first fold is a bit matrix for each place; that of left factors has
//! the place's power of Y in it.

use super::V;
use super::field::{multiply, multiply_add, times_low, total};
use super::lanes::{LANES, load, store, transpose};
use super::points::{NINE, nine};
use crate::avx512::{byte_by_byte, bytes, columns, matrices_of};
use crate::fold::{GROUP, LANES_TWICE, SECOND_VARS, WordTerms, Words, gf_mul, gf_reduce, points};
use crate::near::ahead;
use std::arch::x86_64::*;
use zeroize::Zeroizing;

/// Polynomials of a group.
const POLYNOMIALS: usize = GROUP / LANES_TWICE;
/// Values in two of the four variables, for each place in the other two.
const UPPER: usize = 4 * NINE;

/// The first fold's basis as bit matrices: of left factors for the lower and the upper eight places, for eight words after the
/// other and for each byte of what they become, a word a place; of right factors, which have the same at every place.
pub struct SecondMatrices {
    left: [[[[u64; 8]; 8]; 8]; 2],
    right: [[u64; 8]; 8],
}

/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx512f,avx512vbmi,gfni")]
pub(in crate::fold::cpu) unsafe fn second_matrices(basis: &[u64; GROUP]) -> Box<SecondMatrices> {
    let mut all = Box::new(SecondMatrices { left: [[[[0; 8]; 8]; 8]; 2], right: of_bytes(basis) });
    for place in 0..LANES_TWICE {
        let matrices = of_bytes(&basis.map(|b| gf_mul(b, 1 << place)));
        for (left, matrices) in all.left[place / 8].iter_mut().zip(matrices) {
            left.iter_mut().zip(matrices).for_each(|(places, m)| places[place % 8] = m);
        }
    }
    all
}

/// A basis as bit matrices: for eight words after the other, and for each byte of their sum.
#[target_feature(enable = "avx512f,avx512vbmi,gfni")]
#[inline]
fn of_bytes(basis: &[u64; GROUP]) -> [[u64; 8]; 8] {
    let mut matrices = [[0; 8]; 8];
    for (matrices, basis) in matrices.iter_mut().zip(basis.as_chunks().0) {
        store(matrices, matrices_of(load(basis)));
    }
    matrices
}

/// Bytes of two registers that have a byte for every lane of a group: those of the lower (or upper) eight places, for each place that of the
/// first group's polynomials before that of the second's.
const fn places(upper: u8) -> [u8; 64] {
    let mut index = [0; 64];
    let mut i = 0;
    while i < 64 {
        let (place, polynomial) = (i / 8, i % 8);
        let lane = LANES_TWICE * (polynomial % POLYNOMIALS) + place;
        index[i] = (64 * (polynomial / POLYNOMIALS) + lane) as u8 + 8 * upper;
        i += 1;
    }
    index
}

/// What the first fold makes of two groups: sixteen coefficients of eight polynomials, one a lane. `matrix(h, o, q)` is what takes eight words
/// `8 o ..` to byte q, at the lower (h = 0) or upper eight places.
#[target_feature(enable = "avx512f,avx512vbmi,gfni")]
#[inline]
fn fold_two(words: &[u64; 2 * GROUP], matrix: impl Fn(usize, usize, usize) -> V) -> [V; LANES_TWICE] {
    const INDEX: [[u8; 64]; 2] = [places(0), places(1)];
    let (a, b) = words.split_at(GROUP);
    let (a, b) = (a.as_chunks::<8>().0, b.as_chunks::<8>().0);
    let zero = _mm512_setzero_si512();
    let mut x = [[zero; 8]; 2];
    for (o, (a, b)) in a.iter().zip(b).enumerate() {
        ahead(a);
        ahead(b);
        let (a, b) = (columns(load(a)), columns(load(b)));
        for (x, index) in x.iter_mut().zip(&INDEX) {
            x[o] = _mm512_permutex2var_epi8(a, bytes(index), b);
        }
    }
    let mut coefficients = [zero; LANES_TWICE];
    for (h, (x, coefficients)) in x.iter().zip(coefficients.as_chunks_mut::<8>().0).enumerate() {
        let mut y = [zero; 8];
        for (q, y) in y.iter_mut().enumerate() {
            let part = |o: usize| _mm512_gf2p8affine_epi64_epi8::<0>(x[o], matrix(h, o, q));
            let three = |a, b, c| _mm512_ternarylogic_epi64::<0x96>(a, b, c);
            let first = three(part(0), part(1), part(2));
            let second = three(part(3), part(4), part(5));
            *y = three(three(first, second, part(6)), part(7), zero);
        }
        for (coefficient, y) in coefficients.iter_mut().zip(transpose(y)) {
            *coefficient = byte_by_byte(y);
        }
    }
    coefficients
}

/// The weights of two groups' polynomials: `s Y^(16 q)` for polynomial q.
#[target_feature(enable = "avx512f")]
#[inline]
fn weights_of(s: &[u64]) -> V {
    let (s, t) = (s[0] as i64, s.get(1).map_or(0, |s| *s as i64));
    let s = _mm512_setr_epi64(s, s, s, s, t, t, t, t);
    let up = _mm512_setr_epi64(0, 16, 32, 48, 0, 16, 32, 48);
    // shifts by 64 give 0
    let over = _mm512_srlv_epi64(s, _mm512_sub_epi64(_mm512_set1_epi64(64), up));
    // what is over has 48 bits, and times Y^64 52
    _mm512_xor_si512(_mm512_sllv_epi64(s, up), times_low(over))
}

/// Values in the upper two variables: `upper[4 e + l]` for point e and place l in the lower two.
#[target_feature(enable = "avx512f")]
#[inline]
fn extend_upper_two(c: &[V; LANES_TWICE], upper: &mut [V; UPPER]) {
    for l in 0..4 {
        let values = nine::<false>(c[l], c[4 + l], c[8 + l], c[12 + l]);
        for (e, value) in values.into_iter().enumerate() {
            upper[4 * e + l] = value;
        }
    }
}

/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx512f,avx512vbmi,vpclmulqdq,gfni")]
pub(in crate::fold::cpu) unsafe fn second_values(
    batches: &[WordTerms],
    matrices: &SecondMatrices,
    sums: &mut [u64],
) {
    const { assert!(2 * POLYNOMIALS == LANES) };
    let mut acc = [_mm512_setzero_si512(); points(SECOND_VARS)];
    for run in batches.chunk_by(WordTerms::has_left_of) {
        match run {
            [WordTerms { terms, weights, .. }] => {
                terms.iter().for_each(|(u, v)| add_values(*u, &[(*v, *weights)], matrices, &mut acc));
            }
            run => {
                let rights: Vec<_> = run.iter().map(|batch| (batch.terms[0].1, batch.weights)).collect();
                add_values(run[0].terms[0].0, &rights, matrices, &mut acc);
            }
        }
    }
    for (sum, acc) in sums.iter_mut().zip(acc) {
        *sum ^= gf_reduce(total(acc));
    }
}

/// Add the values of the products of one left operand with each of these, whose groups have weights.
#[target_feature(enable = "avx512f,avx512vbmi,vpclmulqdq,gfni")]
fn add_values(
    u: Words,
    rights: &[(Words, &[u64])],
    matrices: &SecondMatrices,
    acc: &mut [V; points(SECOND_VARS)],
) {
    let zero = _mm512_setzero_si512();
    let (mut left, mut right) = ([zero; UPPER], [zero; UPPER]);
    let mut last = Zeroizing::new([0; 2 * GROUP]);
    for at in (0..u.len()).step_by(2 * GROUP) {
        let whole = fold_two(u.some(at, &mut last), |h, o, q| load(&matrices.left[h][o][q]));
        for (v, weights) in rights {
            let s = weights_of(&weights[at / GROUP..]);
            let mut a = whole;
            a.iter_mut().for_each(|a| *a = multiply(*a, s));
            extend_upper_two(&a, &mut left);
            let v = v.some(at, &mut last);
            let b = fold_two(v, |_, o, q| _mm512_set1_epi64(matrices.right[o][q] as i64));
            extend_upper_two(&b, &mut right);
            let upper = left.as_chunks::<4>().0.iter().zip(right.as_chunks::<4>().0);
            for (acc, (a, b)) in acc.as_chunks_mut::<NINE>().0.iter_mut().zip(upper) {
                let (a, b) = (nine::<false>(a[0], a[1], a[2], a[3]), nine::<false>(b[0], b[1], b[2], b[3]));
                for (acc, (a, b)) in acc.iter_mut().zip(a.into_iter().zip(b)) {
                    *acc = multiply_add(*acc, a, b);
                }
            }
        }
    }
}
