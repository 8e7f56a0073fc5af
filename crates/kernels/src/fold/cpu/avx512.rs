//! AVX-512 with carry-less multiplication (eight words a register) and 8x8 bit matrices (GFNI).
//!
//! Groups are taken eight at a time, one a lane, so that everything but the loads is done lane by lane.

use crate::fold::{Element, GROUP, WORD_VARS, gf_reduce, gr_reduce, points};
use std::arch::x86_64::*;

/// Groups at a time.
const LANES: usize = 8;
/// Values of a polynomial in three variables.
const CUBE: usize = 27;
/// In two variables.
const NINE: usize = 9;
/// Y^64 = Y^4 + Y^3 + Y + 1.
const FOLD: i64 = 0x1b;

type V = __m512i;

/// Whether this machine can run these functions.
pub(super) fn available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("vpclmulqdq")
        && is_x86_feature_detected!("gfni")
}

#[target_feature(enable = "avx512f")]
#[inline]
fn load(words: &[u64; 8]) -> V {
    // SAFETY: eight words.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f")]
#[inline]
fn store(words: &mut [u64; 8], v: V) {
    // SAFETY: eight words.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), v) }
}

/// Lane j of result i is lane i of row j.
#[target_feature(enable = "avx512f")]
#[inline]
fn transpose(r: [V; 8]) -> [V; 8] {
    let low = |i: usize| _mm512_unpacklo_epi64(r[i], r[i + 1]);
    let high = |i: usize| _mm512_unpackhi_epi64(r[i], r[i + 1]);
    let quarters = |a: V, b: V, c: V, d: V| {
        let (ab, cd) = (_mm512_shuffle_i64x2::<0x44>(a, b), _mm512_shuffle_i64x2::<0x44>(c, d));
        let (ab2, cd2) = (_mm512_shuffle_i64x2::<0xee>(a, b), _mm512_shuffle_i64x2::<0xee>(c, d));
        [
            _mm512_shuffle_i64x2::<0x88>(ab, cd),
            _mm512_shuffle_i64x2::<0xdd>(ab, cd),
            _mm512_shuffle_i64x2::<0x88>(ab2, cd2),
            _mm512_shuffle_i64x2::<0xdd>(ab2, cd2),
        ]
    };
    let even = quarters(low(0), low(2), low(4), low(6));
    let odd = quarters(high(0), high(2), high(4), high(6));
    [even[0], odd[0], even[1], odd[1], even[2], odd[2], even[3], odd[3]]
}

/// Word `8 i + l` of eight groups of `stride` words, one group a lane. The next eight groups' words are brought near
/// meanwhile: many operands are read at once, more than the processor foresees.
#[target_feature(enable = "avx512f")]
#[inline]
fn lanes(words: &[u64], stride: usize, i: usize) -> [V; 8] {
    let row = |j: usize| {
        let row: &[u64; 8] = words[j * stride + 8 * i..].first_chunk().expect("whole groups");
        // prefetching is harmless at any address
        _mm_prefetch::<_MM_HINT_T0>(row.as_ptr().wrapping_add(LANES * stride).cast());
        load(row)
    };
    transpose([row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7)])
}

/// Sum in GF(2), or in Z_2^64.
#[target_feature(enable = "avx512f")]
#[inline]
fn sum<const RING: bool>(a: V, b: V) -> V {
    if RING { _mm512_add_epi64(a, b) } else { _mm512_xor_si512(a, b) }
}

/// Values of a polynomial in three variables at 0, 1 and infinity in each.
#[target_feature(enable = "avx512f")]
#[inline]
fn extend<const RING: bool>(c: [V; 8]) -> [V; CUBE] {
    let mut out = [_mm512_setzero_si512(); CUBE];
    let line = |out: &mut [V; CUBE], at: usize, step: usize, zero: V, infinity: V| {
        out[at] = zero;
        out[at + step] = sum::<RING>(zero, infinity);
        out[at + 2 * step] = infinity;
    };
    // variable 0 on the four pairs, then the others on what has come out
    for (i, pair) in c.as_chunks::<2>().0.iter().enumerate() {
        let at = 6 * (i % 2) + 18 * (i / 2);
        line(&mut out, at, 1, pair[0], pair[1]);
    }
    for top in [0, 18] {
        for i in 0..3 {
            let (zero, infinity) = (out[top + i], out[top + 6 + i]);
            line(&mut out, top + i, 3, zero, infinity);
        }
    }
    for i in 0..9 {
        let (zero, infinity) = (out[i], out[18 + i]);
        line(&mut out, i, 9, zero, infinity);
    }
    out
}

/// Values of a polynomial in two variables at 0, 1 and infinity in each: few enough that those of two operands and the sums of
/// their products stay in registers.
#[target_feature(enable = "avx512f")]
#[inline]
fn nine<const RING: bool>(c0: V, c1: V, c2: V, c3: V) -> [V; NINE] {
    let (first, last) = (sum::<RING>(c0, c1), sum::<RING>(c2, c3));
    [c0, first, c1, sum::<RING>(c0, c2), sum::<RING>(first, last), sum::<RING>(c1, c3), c2, last, c3]
}

/// [`nine`] of eight coefficients in three variables, where the upper one is 0, 1 or infinity (`top` 0, 1 or 2).
#[target_feature(enable = "avx512f")]
#[inline]
fn extend_nine<const RING: bool>(c: &[[u64; LANES]], top: usize) -> [V; NINE] {
    let c: &[[u64; LANES]; 8] = c.first_chunk().expect("eight coefficients");
    match top {
        0 => nine::<RING>(load(&c[0]), load(&c[1]), load(&c[2]), load(&c[3])),
        1 => nine::<RING>(
            sum::<RING>(load(&c[0]), load(&c[4])),
            sum::<RING>(load(&c[1]), load(&c[5])),
            sum::<RING>(load(&c[2]), load(&c[6])),
            sum::<RING>(load(&c[3]), load(&c[7])),
        ),
        _ => nine::<RING>(load(&c[4]), load(&c[5]), load(&c[6]), load(&c[7])),
    }
}

/// `acc ^ a b` in the four even and four odd lanes, which are added up.
#[target_feature(enable = "avx512f,vpclmulqdq")]
#[inline]
fn multiply_add(acc: V, a: V, b: V) -> V {
    let even = _mm512_clmulepi64_epi128::<0x00>(a, b);
    let odd = _mm512_clmulepi64_epi128::<0x11>(a, b);
    _mm512_ternarylogic_epi64::<0x96>(acc, even, odd)
}

/// The four 128-bit products of a register added up.
#[target_feature(enable = "avx512f")]
#[inline]
fn total(v: V) -> u128 {
    let mut words = [0; 8];
    store(&mut words, v);
    words.as_chunks::<2>().0.iter().fold(0, |sum, w| sum ^ (u128::from(w[1]) << 64 | u128::from(w[0])))
}

/// Four unreduced products, reduced in their low halves.
#[target_feature(enable = "avx512f,vpclmulqdq")]
#[inline]
fn reduce(p: V) -> V {
    let poly = _mm512_set1_epi64(FOLD);
    let once = _mm512_clmulepi64_epi128::<0x01>(p, poly);
    let twice = _mm512_clmulepi64_epi128::<0x01>(once, poly);
    _mm512_ternarylogic_epi64::<0x96>(p, once, twice)
}

/// Eight products in GF(2^64).
#[target_feature(enable = "avx512f,vpclmulqdq")]
#[inline]
fn multiply(a: V, b: V) -> V {
    let even = reduce(_mm512_clmulepi64_epi128::<0x00>(a, b));
    let odd = reduce(_mm512_clmulepi64_epi128::<0x11>(a, b));
    _mm512_unpacklo_epi64(even, odd)
}

/// Call `each` with the place of every `N` words of the operands, all of `len` words, and the words themselves; the last
/// ones are padded with zeros.
fn blocks<const N: usize>(len: usize, operands: &[&[u64]], mut each: impl FnMut(usize, &[&[u64]])) {
    let whole = len / N * N;
    for at in (0..whole).step_by(N) {
        let mut parts: [&[u64]; MAX_OPERANDS] = [&[]; MAX_OPERANDS];
        parts.iter_mut().zip(operands).for_each(|(part, words)| *part = &words[at..at + N]);
        each(at, &parts[..operands.len()]);
    }
    if whole < len {
        let mut last = vec![[0; N]; operands.len()];
        last.iter_mut().zip(operands).for_each(|(last, words)| {
            last[..len - whole].copy_from_slice(&words[whole..]);
        });
        let parts: Vec<&[u64]> = last.iter().map(|l| &l[..]).collect();
        each(whole, &parts);
    }
}

/// [`blocks`] of eight groups of `N` words each, `stride` words apart, of which there are `groups`: the operands from the
/// block's first group on, and how far apart their groups are.
fn strided<const N: usize>(
    (groups, stride): (usize, usize),
    operands: &[&[u64]],
    mut each: impl FnMut(usize, &[&[u64]], usize),
) {
    let mut last = vec![];
    for first in (0..groups).step_by(LANES) {
        let mut parts: [&[u64]; MAX_OPERANDS] = [&[]; MAX_OPERANDS];
        let needed = (first + LANES - 1) * stride + N;
        if operands.iter().all(|words| words.len() >= needed) {
            parts.iter_mut().zip(operands).for_each(|(part, words)| *part = &words[first * stride..]);
            each(first, &parts[..operands.len()], stride);
            continue;
        }
        last.clear();
        last.resize(operands.len(), [[0; N]; LANES]);
        for (last, words) in last.iter_mut().zip(operands) {
            for (group, g) in last.iter_mut().zip(first..groups) {
                let words = &words[words.len().min(g * stride)..words.len().min(g * stride + N)];
                group[..words.len()].copy_from_slice(words);
            }
        }
        parts.iter_mut().zip(&last).for_each(|(part, last)| *part = last.as_flattened());
        each(first, &parts[..operands.len()], N);
    }
}

/// Operands of one call of [`blocks`].
const MAX_OPERANDS: usize = 16;

/// The weights of eight groups, 0 after the last.
#[target_feature(enable = "avx512f")]
#[inline]
fn eight(weights: &[u64], first: usize) -> V {
    let mut s = [0; LANES];
    s.iter_mut().zip(&weights[first..]).for_each(|(s, w)| *s = *w);
    load(&s)
}

/// Values in the upper three of six variables, of eight groups of 64 words `stride` apart, for each place in the lower three:
/// `upper[8 e + l]` for point e and place l.
#[target_feature(enable = "avx512f")]
#[inline]
fn extend_upper<const RING: bool>(words: &[u64], stride: usize, upper: &mut [[u64; LANES]]) {
    let upper: &mut [[u64; LANES]; 8 * CUBE] = upper.first_chunk_mut().expect("as many values");
    let mut places = [[[0; LANES]; 8]; 8];
    for i in 0..8 {
        for (place, value) in places.iter_mut().zip(lanes(words, stride, i)) {
            store(&mut place[i], value);
        }
    }
    for (l, place) in places.iter().enumerate() {
        for top in 0..3 {
            let values = extend_nine::<RING>(place, top);
            for (i, value) in values.into_iter().enumerate() {
                store(&mut upper[8 * (NINE * top + i) + l], value);
            }
        }
    }
}

/// # Safety
/// [`available`].
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vbmi,vpclmulqdq,gfni")]
pub(super) unsafe fn words_message(terms: &[(&[u64], &[u64])], weights: &[u64], sums: &mut [u64]) {
    const POINTS: usize = points(WORD_VARS);
    let Some(len) = terms.first().map(|(u, _)| u.len()) else { return };
    let zero = _mm512_setzero_si512();
    let mut acc = vec![zero; POINTS];
    // linear in the terms, so a long sum may be cut
    for terms in terms.chunks(MAX_OPERANDS / 2) {
        let operands: Vec<&[u64]> = terms.iter().flat_map(|(u, v)| [*u, *v]).collect();
        let mut upper = vec![[[0; LANES]; 8 * CUBE]; operands.len()];
        blocks::<{ GROUP * LANES }>(len, &operands, |at, operands| {
            for (upper, words) in upper.iter_mut().zip(operands) {
                extend_upper::<false>(words, GROUP, upper);
            }
            let s = eight(weights, at / GROUP);
            for (i, acc) in acc.chunks_exact_mut(NINE).enumerate() {
                let (e, top) = (i / 3, i % 3);
                let mut z = [zero; NINE];
                for pair in upper.chunks_exact(2) {
                    let [u0, u1, u2, u3, u4, u5, u6, u7, u8] = extend_nine::<false>(&pair[0][8 * e..], top);
                    let [v0, v1, v2, v3, v4, v5, v6, v7, v8] = extend_nine::<false>(&pair[1][8 * e..], top);
                    // z ^ (u & v)
                    let more = |z, u, v| _mm512_ternarylogic_epi64::<0x78>(z, u, v);
                    z = [
                        more(z[0], u0, v0),
                        more(z[1], u1, v1),
                        more(z[2], u2, v2),
                        more(z[3], u3, v3),
                        more(z[4], u4, v4),
                        more(z[5], u5, v5),
                        more(z[6], u6, v6),
                        more(z[7], u7, v7),
                        more(z[8], u8, v8),
                    ];
                }
                (0..NINE).for_each(|i| acc[i] = multiply_add(acc[i], z[i], s));
            }
        });
    }
    for (sum, acc) in sums.iter_mut().zip(acc) {
        *sum ^= gf_reduce(total(acc));
    }
}

/// Byte `8 b + 7 - k` of the result is byte b of word k: with rows reversed, as [`_mm512_gf2p8affine_epi64_epi8`] has them.
const BYTES_OF_WORDS: [u8; 64] = {
    let mut index = [0; 64];
    let mut i = 0;
    while i < 64 {
        index[8 * (i / 8) + 7 - i % 8] = (8 * (i % 8) + i / 8) as u8;
        i += 1;
    }
    index
};

/// The lane at every byte, so that three rounds of interleaving bytes, 16 at a time, bring the lanes in order.
const LANE_ORDER: [u8; 64] = {
    let mut index = [0; 64];
    let mut p = 0;
    while p < 64 {
        let (quarter, r, h) = (p / 16, p % 16 / 2, p % 2);
        index[p] = (8 * r + 2 * quarter + h) as u8;
        p += 1;
    }
    index
};

#[target_feature(enable = "avx512f")]
#[inline]
fn bytes(index: &[u8; 64]) -> V {
    // SAFETY: 64 bytes.
    unsafe { _mm512_loadu_si512(index.as_ptr().cast()) }
}

/// The 8x8 matrix that takes eight bits of a lane, of words `8 o ..`, to byte `q` of the sum of their basis elements.
fn matrix(basis: &[u64; GROUP], q: usize, o: usize) -> i64 {
    let row = |t: usize| (0..8).fold(0u64, |row, k| row | (basis[8 * o + k] >> (8 * q + t) & 1) << k);
    (0..8).fold(0, |m, t| m | row(t) << (8 * (7 - t))) as i64
}

/// # Safety
/// [`available`].
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vbmi,vpclmulqdq,gfni")]
pub(super) unsafe fn words_fold(
    words: &[u64],
    basis: &[u64; GROUP],
    weights: Option<&[u64]>,
    out: &mut Vec<u64>,
) {
    let mut matrices = [[0; 8]; 8];
    for (q, row) in matrices.iter_mut().enumerate() {
        row.iter_mut().enumerate().for_each(|(o, m)| *m = matrix(basis, q, o));
    }
    let (to_bytes, order) = (bytes(&BYTES_OF_WORDS), bytes(&LANE_ORDER));
    let identity = _mm512_set1_epi64(0x8040_2010_0804_0201u64 as i64);
    let mut last = [0; GROUP];
    for g in 0..words.len().div_ceil(GROUP) {
        let words = &words[g * GROUP..];
        let words: &[u64; GROUP] = match words.first_chunk() {
            Some(whole) => whole,
            None => {
                last[..words.len()].copy_from_slice(words);
                &last
            }
        };
        // a byte for every lane: its bits of eight words
        let mut x = [_mm512_setzero_si512(); 8];
        for (x, words) in x.iter_mut().zip(words.as_chunks::<8>().0) {
            let rows = _mm512_permutexvar_epi8(to_bytes, load(words));
            let columns = _mm512_gf2p8affine_epi64_epi8::<0>(identity, rows);
            *x = _mm512_permutexvar_epi8(order, columns);
        }
        // byte q of every lane
        let mut y = [_mm512_setzero_si512(); 8];
        for (y, matrices) in y.iter_mut().zip(&matrices) {
            for (x, m) in x.iter().zip(matrices) {
                let part = _mm512_gf2p8affine_epi64_epi8::<0>(*x, _mm512_set1_epi64(*m));
                *y = _mm512_xor_si512(*y, part);
            }
        }
        let mut items = [0; GROUP];
        for (i, (item, out)) in interleave(y).into_iter().zip(items.as_chunks_mut::<8>().0).enumerate() {
            let item = match weights {
                Some(s) => multiply(item, powers(s[g], 8 * i as i64)),
                None => item,
            };
            store(out, item);
        }
        out.extend_from_slice(&items);
    }
}

/// Words from their bytes: register q has byte q of every word, in [`LANE_ORDER`].
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn interleave(y: [V; 8]) -> [V; 8] {
    // four times two bytes, twice four bytes, then all eight; each register has the words at places 2 r and 2 r + 1 of
    // every quarter
    let four = |a: V, b: V, c: V, d: V| {
        let (ab, cd) = (_mm512_unpacklo_epi8(a, b), _mm512_unpacklo_epi8(c, d));
        let (ab2, cd2) = (_mm512_unpackhi_epi8(a, b), _mm512_unpackhi_epi8(c, d));
        [
            _mm512_unpacklo_epi16(ab, cd),
            _mm512_unpackhi_epi16(ab, cd),
            _mm512_unpacklo_epi16(ab2, cd2),
            _mm512_unpackhi_epi16(ab2, cd2),
        ]
    };
    let (low, high) = (four(y[0], y[1], y[2], y[3]), four(y[4], y[5], y[6], y[7]));
    let mut out = [_mm512_setzero_si512(); 8];
    for t in 0..4 {
        out[2 * t] = _mm512_unpacklo_epi32(low[t], high[t]);
        out[2 * t + 1] = _mm512_unpackhi_epi32(low[t], high[t]);
    }
    out
}

/// `s Y^i` for i = first .. first + 8.
#[target_feature(enable = "avx512f")]
#[inline]
fn powers(s: u64, first: i64) -> V {
    let i = _mm512_add_epi64(_mm512_set1_epi64(first), _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
    let s = _mm512_set1_epi64(s as i64);
    let low = _mm512_sllv_epi64(s, i);
    // shifts by 64 give 0
    let high = _mm512_srlv_epi64(s, _mm512_sub_epi64(_mm512_set1_epi64(64), i));
    let three = |a: V, b: V, c: V| _mm512_ternarylogic_epi64::<0x96>(a, b, c);
    let times = |w: V| {
        let more = three(w, _mm512_slli_epi64::<1>(w), _mm512_slli_epi64::<3>(w));
        _mm512_xor_si512(more, _mm512_slli_epi64::<4>(w))
    };
    let again =
        three(_mm512_srli_epi64::<60>(high), _mm512_srli_epi64::<61>(high), _mm512_srli_epi64::<63>(high));
    three(low, times(high), times(again))
}

/// # Safety
/// [`available`].
#[target_feature(enable = "avx512f,vpclmulqdq")]
pub(super) unsafe fn words_combine(words: &[u64], weights: &[u64], sums: &mut [u64; GROUP]) {
    let mut even = [_mm512_setzero_si512(); 8];
    let mut odd = even;
    blocks::<GROUP>(words.len(), &[words], |at, operands| {
        let s = _mm512_set1_epi64(weights[at / GROUP] as i64);
        for (i, words) in operands[0].as_chunks::<8>().0.iter().enumerate() {
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

/// Values of eight groups of 16 items `stride` apart, one a lane.
#[target_feature(enable = "avx512f")]
#[inline]
fn sixteen<const RING: bool>(items: &[u64], stride: usize, out: &mut [V; 3 * CUBE]) {
    let zero = extend::<RING>(lanes(items, stride, 0));
    let infinity = extend::<RING>(lanes(items, stride, 1));
    for e in 0..CUBE {
        out[e] = zero[e];
        out[CUBE + e] = sum::<RING>(zero[e], infinity[e]);
        out[2 * CUBE + e] = infinity[e];
    }
}

/// Of four variables.
///
/// # Safety
/// [`available`].
#[target_feature(enable = "avx512f,vpclmulqdq")]
pub(super) unsafe fn field_message(u: &[u64], v: &[u64], sums: &mut [u64]) {
    let mut acc = [_mm512_setzero_si512(); 3 * CUBE];
    let (mut a, mut b) = (acc, acc);
    blocks::<{ 16 * LANES }>(u.len(), &[u, v], |_, operands| {
        sixteen::<false>(operands[0], 16, &mut a);
        sixteen::<false>(operands[1], 16, &mut b);
        for (acc, (a, b)) in acc.iter_mut().zip(a.iter().zip(&b)) {
            *acc = multiply_add(*acc, *a, *b);
        }
    });
    for (sum, acc) in sums.iter_mut().zip(acc) {
        *sum ^= gf_reduce(total(acc));
    }
}

/// For a basis of sixteen.
///
/// # Safety
/// [`available`].
#[target_feature(enable = "avx512f,vpclmulqdq")]
pub(super) unsafe fn field_fold(items: &[u64], basis: &[u64; 16], out: &mut [u64]) {
    let zero = _mm512_setzero_si512();
    let b: [V; 16] = std::array::from_fn(|i| _mm512_set1_epi64(basis[i] as i64));
    blocks::<{ 16 * LANES }>(items.len(), &[items], |at, operands| {
        let (mut even, mut odd) = (zero, zero);
        for i in 0..2 {
            for (x, b) in lanes(operands[0], 16, i).into_iter().zip(&b[8 * i..]) {
                even = _mm512_xor_si512(even, _mm512_clmulepi64_epi128::<0x00>(x, *b));
                odd = _mm512_xor_si512(odd, _mm512_clmulepi64_epi128::<0x11>(x, *b));
            }
        }
        let mut folded = [0; LANES];
        store(&mut folded, _mm512_unpacklo_epi64(reduce(even), reduce(odd)));
        let out = &mut out[at / 16..];
        match out.first_chunk_mut() {
            Some(out) => *out = folded,
            None => out.iter_mut().zip(folded).for_each(|(out, f)| *out = f),
        }
    });
}

/// Of four variables.
///
/// # Safety
/// [`available`].
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) unsafe fn ring_values(terms: &[(&[u64], &[u64])], stride: usize, out: &mut [u64]) {
    let groups = out.len() / (3 * CUBE);
    let zero = _mm512_setzero_si512();
    let (mut a, mut b) = ([zero; 3 * CUBE], [zero; 3 * CUBE]);
    for (first, terms) in terms.chunks(MAX_OPERANDS / 2).enumerate() {
        let operands: Vec<&[u64]> = terms.iter().flat_map(|(u, v)| [*u, *v]).collect();
        strided::<16>((groups, stride), &operands, |g, operands, stride| {
            let mut z = [zero; 3 * CUBE];
            for pair in operands.chunks_exact(2) {
                sixteen::<true>(pair[0], stride, &mut a);
                sixteen::<true>(pair[1], stride, &mut b);
                for (z, (a, b)) in z.iter_mut().zip(a.iter().zip(&b)) {
                    *z = _mm512_add_epi64(*z, _mm512_mullo_epi64(*a, *b));
                }
            }
            for (z, out) in z.iter().zip(out.chunks_exact_mut(groups)) {
                put(*z, g, first == 0, out);
            }
        });
    }
}

/// Eight groups' values, from group `g` on, to their places or added to what stands there.
#[target_feature(enable = "avx512f")]
#[inline]
fn put(z: V, g: usize, first: bool, out: &mut [u64]) {
    if let Some(out) = out[g..].first_chunk_mut() {
        return store(out, if first { z } else { _mm512_add_epi64(load(out), z) });
    }
    let mut values = [0; LANES];
    store(&mut values, z);
    for (out, z) in out[g..].iter_mut().zip(values) {
        *out = if first { z } else { out.wrapping_add(z) };
    }
}

/// Of six variables: 27 values at a time, those at one point in the upper three.
///
/// # Safety
/// [`available`].
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) unsafe fn ring_values_6(
    terms: &[(&[u64], &[u64])],
    (groups, stride): (usize, usize),
    scratch: &mut Vec<u64>,
    each: &mut dyn FnMut(usize, &[u64]),
) {
    let (operands, zero) = (2 * terms.len(), _mm512_setzero_si512());
    // of eight groups and one operand: values in the upper three variables for each place in the lower three
    const UPPER: usize = CUBE * 8 * LANES;
    let upper = groups.div_ceil(LANES) * operands * UPPER;
    if scratch.len() < upper + CUBE * groups {
        scratch.resize(upper + CUBE * groups, 0);
    }
    let (upper, values) = scratch.split_at_mut(upper);
    let values = &mut values[..CUBE * groups];
    for (some, terms) in terms.chunks(MAX_OPERANDS / 2).enumerate() {
        let columns: Vec<&[u64]> = terms.iter().flat_map(|(u, v)| [*u, *v]).collect();
        strided::<GROUP>((groups, stride), &columns, |g, columns, stride| {
            let first = g / LANES * operands + some * MAX_OPERANDS;
            for (words, out) in columns.iter().zip(upper[first * UPPER..].chunks_exact_mut(UPPER)) {
                extend_upper::<true>(words, stride, out.as_chunks_mut().0);
            }
        });
    }
    for e in 0..CUBE {
        for (g, operands) in upper.chunks_exact(operands * UPPER).enumerate() {
            for (top, values) in values.chunks_exact_mut(NINE * groups).enumerate() {
                let mut z = [zero; NINE];
                for pair in operands.chunks_exact(2 * UPPER) {
                    let (u, v) = pair.split_at(UPPER);
                    let (u, v) = (&u.as_chunks().0[8 * e..], &v.as_chunks().0[8 * e..]);
                    let [u0, u1, u2, u3, u4, u5, u6, u7, u8] = extend_nine::<true>(u, top);
                    let [v0, v1, v2, v3, v4, v5, v6, v7, v8] = extend_nine::<true>(v, top);
                    let more = |z, u, v| _mm512_add_epi64(z, _mm512_mullo_epi64(u, v));
                    z = [
                        more(z[0], u0, v0),
                        more(z[1], u1, v1),
                        more(z[2], u2, v2),
                        more(z[3], u3, v3),
                        more(z[4], u4, v4),
                        more(z[5], u5, v5),
                        more(z[6], u6, v6),
                        more(z[7], u7, v7),
                        more(z[8], u8, v8),
                    ];
                }
                for (z, out) in z.iter().zip(values.chunks_exact_mut(groups)) {
                    put(*z, LANES * g, true, out);
                }
            }
        }
        each(CUBE * e, values);
    }
}

/// Words of an element before and behind itself in [`weigh`].
const MARGIN: usize = 8;
/// Registers of an element shifted by up to seven words.
const SHIFTED: usize = GROUP / LANES + 1;

/// Two bits of a weight at a time: what they add is looked up among four sums for each of the four places in a byte, and a byte is
/// as many bits as words fit a register.
///
/// # Safety
/// [`available`].
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) unsafe fn weigh(items: &mut [Element], weights: &[u64]) {
    let zero = _mm512_setzero_si512();
    let mut padded = [0; GROUP + 2 * MARGIN];
    let mut sums = [[[zero; SHIFTED]; 4]; 4];
    for (item, s) in items.iter_mut().zip(weights) {
        padded[MARGIN..MARGIN + GROUP].copy_from_slice(item);
        for (p, [_, ones, twos, both]) in sums.iter_mut().enumerate() {
            let places = ones.iter_mut().zip(twos).zip(both);
            for (j, ((one, two), both)) in places.enumerate() {
                let shifted = |words: usize| {
                    let from = MARGIN + LANES * j - words;
                    load(padded[from..].first_chunk().expect("a margin of a register"))
                };
                (*one, *two) = (shifted(2 * p), shifted(2 * p + 1));
                *both = _mm512_add_epi64(*one, *two);
            }
        }
        // from the highest byte to the lowest: what is there moves up by one register
        let mut wide = [zero; 2 * GROUP / LANES];
        for byte in s.to_be_bytes() {
            let of = |p: usize| &sums[p][usize::from(byte >> (2 * p) & 3)];
            let (a, b, c, d) = (of(0), of(1), of(2), of(3));
            for j in (1..wide.len()).rev() {
                wide[j] = wide[j - 1];
            }
            wide[0] = zero;
            for j in 0..SHIFTED {
                let (low, high) = (_mm512_add_epi64(a[j], b[j]), _mm512_add_epi64(c[j], d[j]));
                wide[j] = _mm512_add_epi64(wide[j], _mm512_add_epi64(low, high));
            }
        }
        let mut words = [0; 2 * GROUP];
        words.as_chunks_mut::<LANES>().0.iter_mut().zip(wide).for_each(|(words, wide)| store(words, wide));
        let (low, high) = words.split_at(GROUP);
        *item = gr_reduce(low.try_into().expect("half"), high.try_into().expect("half"));
    }
}
