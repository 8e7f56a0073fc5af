//! Ring elements, and elements of both Galois rings.

use super::V;
use super::lanes::{LANES, load, store};
use super::points::{CUBE, NINE, extend_nine, extend_upper, sixteen};
use crate::fold::cpu::pieces::{MAX_OPERANDS, strided};
use crate::fold::cpu::portable;
use crate::fold::{Element, GROUP, RINGS, WORD_VARS, gr_reduce, points};
use std::arch::x86_64::*;

/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx512f,avx512dq")]
pub(in crate::fold::cpu) unsafe fn ring_values(
    terms: &[(&[u64], &[u64])],
    vars: u32,
    (groups, stride): (usize, usize),
    scratch: &mut Vec<u64>,
    each: &mut dyn FnMut(usize, &[u64]),
) {
    if vars == WORD_VARS {
        return sixty_fours(terms, (groups, stride), scratch, each);
    }
    let len = points(vars) * groups;
    scratch.resize(scratch.len().max(len), 0);
    let values = &mut scratch[..len];
    match vars {
        4 => sixteens(terms, stride, values),
        _ => portable::values_of(terms, vars, stride, values),
    }
    each(0, values);
}

#[target_feature(enable = "avx512f,avx512dq")]
fn sixteens(terms: &[(&[u64], &[u64])], stride: usize, out: &mut [u64]) {
    let groups = out.len() / (3 * CUBE);
    let zero = _mm512_setzero_si512();
    let (mut a, mut b) = ([zero; 3 * CUBE], [zero; 3 * CUBE]);
    for (first, terms) in terms.chunks(MAX_OPERANDS / 2).enumerate() {
        let operands: Vec<&[u64]> = terms.iter().flat_map(|(u, v)| [*u, *v]).collect();
        strided::<16, LANES>((groups, stride), &operands, |g, operands, stride| {
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

/// 27 values at a time, those at one point in the upper three.
#[target_feature(enable = "avx512f,avx512dq")]
fn sixty_fours(
    terms: &[(&[u64], &[u64])],
    (groups, stride): (usize, usize),
    scratch: &mut Vec<u64>,
    each: &mut dyn FnMut(usize, &[u64]),
) {
    let (operands, zero) = (2 * terms.len(), _mm512_setzero_si512());
    // of eight groups and one operand: values in the upper three variables for each place in the lower three
    const UPPER: usize = CUBE * 8;
    let upper = groups.div_ceil(LANES) * operands * UPPER;
    let words = CUBE * groups + LANES * (upper + 1);
    if scratch.len() < words {
        scratch.resize(words, 0);
    }
    let (values, registers) = scratch.split_at_mut(CUBE * groups);
    // SAFETY: any words are a register. Those that begin where a line of the cache does are written in half the time.
    let (_, registers, _) = unsafe { registers.align_to_mut::<V>() };
    let upper = &mut registers[..upper];
    for (some, terms) in terms.chunks(MAX_OPERANDS / 2).enumerate() {
        let columns: Vec<&[u64]> = terms.iter().flat_map(|(u, v)| [*u, *v]).collect();
        strided::<GROUP, LANES>((groups, stride), &columns, |g, columns, stride| {
            let first = g / LANES * operands + some * MAX_OPERANDS;
            for (words, out) in columns.iter().zip(upper[first * UPPER..].chunks_exact_mut(UPPER)) {
                extend_upper::<true>(words, stride, out);
            }
        });
    }
    for e in 0..CUBE {
        for (g, operands) in upper.chunks_exact(operands * UPPER).enumerate() {
            for (top, values) in values.chunks_exact_mut(NINE * groups).enumerate() {
                let mut z = [zero; NINE];
                for pair in operands.chunks_exact(2 * UPPER) {
                    let (u, v) = pair.split_at(UPPER);
                    let (u, v) = (&u[8 * e..], &v[8 * e..]);
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
/// Lanes of the first ring's coefficients, and of the second one's.
const OF_RING: [u8; RINGS] = [0b0101_0101, 0b1010_1010];

/// Two bits of a weight at a time, one of each ring: what they add is looked up among four sums for each of the four places in a byte, and a
/// byte is as many bits as words fit a register.
///
/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx512f,avx512dq")]
pub(in crate::fold::cpu) unsafe fn weigh(items: &mut [Element], weights: &[u64]) {
    let zero = _mm512_setzero_si512();
    let mut padded = [0; GROUP + 2 * MARGIN];
    let mut sums = [[[zero; SHIFTED]; 4]; 4];
    for (item, s) in items.iter_mut().zip(weights) {
        padded[MARGIN..MARGIN + GROUP].copy_from_slice(item);
        for (p, [_, firsts, seconds, both]) in sums.iter_mut().enumerate() {
            let places = firsts.iter_mut().zip(seconds).zip(both);
            for (j, ((first, second), both)) in places.enumerate() {
                let from = MARGIN + LANES * j - RINGS * p;
                *both = load(padded[from..].first_chunk().expect("a margin of a register"));
                *first = _mm512_maskz_mov_epi64(OF_RING[0], *both);
                *second = _mm512_maskz_mov_epi64(OF_RING[1], *both);
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
