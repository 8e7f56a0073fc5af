//! Ring elements, and elements of both Galois rings.

use super::V;
use super::lanes::{LANES, load, multiply, store};
use super::points::{CUBE, NINE, extend_nine, extend_upper, sixteen};
use crate::fold::cpu::pieces::strided;
use crate::fold::cpu::portable;
use crate::fold::{Element, GROUP, RINGS, WORD_VARS, gr_reduce, points};
use std::arch::x86_64::*;

/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx2")]
pub(in crate::fold::cpu) unsafe fn ring_values(
    terms: &[(&[u64], &[u64])],
    vars: u32,
    (groups, stride): (usize, usize),
    scratch: &mut Vec<u64>,
    each: &mut dyn FnMut(usize, &[u64]),
) {
    let len = points(vars) * groups;
    scratch.resize(scratch.len().max(len), 0);
    let values = &mut scratch[..len];
    match vars {
        4 => sixteens(terms, (groups, stride), values),
        WORD_VARS => sixty_fours(terms, (groups, stride), values),
        // little
        _ => portable::values_of(terms, vars, stride, values),
    }
    each(0, values);
}

#[target_feature(enable = "avx2")]
fn sixteens(terms: &[(&[u64], &[u64])], (groups, stride): (usize, usize), out: &mut [u64]) {
    let zero = _mm256_setzero_si256();
    let (mut a, mut b) = ([zero; 3 * CUBE], [zero; 3 * CUBE]);
    for (t, (u, v)) in terms.iter().enumerate() {
        strided::<16, LANES>((groups, stride), &[u, v], |g, operands, stride| {
            sixteen::<true>(operands[0], stride, &mut a);
            sixteen::<true>(operands[1], stride, &mut b);
            for ((a, b), out) in a.iter().zip(&b).zip(out.chunks_exact_mut(groups)) {
                put(multiply(*a, *b), g, t == 0, out);
            }
        });
    }
}

#[target_feature(enable = "avx2")]
fn sixty_fours(terms: &[(&[u64], &[u64])], (groups, stride): (usize, usize), out: &mut [u64]) {
    let zero = _mm256_setzero_si256();
    let mut upper = vec![[zero; 8 * CUBE]; 2];
    for (t, (u, v)) in terms.iter().enumerate() {
        strided::<GROUP, LANES>((groups, stride), &[u, v], |g, operands, stride| {
            for (upper, words) in upper.iter_mut().zip(operands) {
                extend_upper::<true>(words, stride, upper);
            }
            for (i, out) in out.chunks_exact_mut(NINE * groups).enumerate() {
                let (e, top) = (i / 3, i % 3);
                let u = extend_nine::<true>(&upper[0][8 * e..], top);
                let v = extend_nine::<true>(&upper[1][8 * e..], top);
                for ((u, v), out) in u.into_iter().zip(v).zip(out.chunks_exact_mut(groups)) {
                    put(multiply(u, v), g, t == 0, out);
                }
            }
        });
    }
}

/// Four groups' values, from group `g` on, to their places or added to what stands there.
#[target_feature(enable = "avx2")]
#[inline]
fn put(z: V, g: usize, first: bool, out: &mut [u64]) {
    if let Some(out) = out[g..].first_chunk_mut() {
        return store(out, if first { z } else { _mm256_add_epi64(load(out), z) });
    }
    let mut values = [0; LANES];
    store(&mut values, z);
    for (out, z) in out[g..].iter_mut().zip(values) {
        *out = if first { z } else { out.wrapping_add(z) };
    }
}

/// Words before and behind an element in [`weigh`].
const MARGIN: usize = LANES;
/// Registers of an element shifted by up to three words.
const SHIFTED: usize = GROUP / LANES + 1;
/// Bits of a weight that move an element by a register, two of each ring.
const NIBBLES: usize = GROUP / LANES;

/// Two bits of a weight at a time, one of each ring: what they add is looked up among four sums for each of the two places in a nibble.
///
/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx2")]
pub(in crate::fold::cpu) unsafe fn weigh(items: &mut [Element], weights: &[u64]) {
    let zero = _mm256_setzero_si256();
    let mut padded = [0; GROUP + 2 * MARGIN];
    let mut sums = [[[zero; SHIFTED]; 4]; 2];
    for (item, s) in items.iter_mut().zip(weights) {
        padded[MARGIN..MARGIN + GROUP].copy_from_slice(item);
        for (p, [_, firsts, seconds, both]) in sums.iter_mut().enumerate() {
            let places = firsts.iter_mut().zip(seconds).zip(both);
            for (j, ((first, second), both)) in places.enumerate() {
                let from = MARGIN + LANES * j - RINGS * p;
                *both = load(padded[from..].first_chunk().expect("a margin of a register"));
                *first = _mm256_blend_epi32::<0b1100_1100>(*both, zero);
                *second = _mm256_blend_epi32::<0b0011_0011>(*both, zero);
            }
        }
        let of: [[&[V; SHIFTED]; 2]; NIBBLES] = std::array::from_fn(|nibble| {
            std::array::from_fn(|p| &sums[p][(s >> (4 * nibble + 2 * p) & 3) as usize])
        });
        let mut words = [[0; LANES]; 2 * GROUP / LANES];
        for (t, words) in words.iter_mut().enumerate() {
            let nibbles = t.saturating_sub(SHIFTED - 1)..NIBBLES.min(t + 1);
            let sum = of[nibbles.clone()].iter().zip(nibbles).fold(zero, |sum, ([a, b], nibble)| {
                _mm256_add_epi64(sum, _mm256_add_epi64(a[t - nibble], b[t - nibble]))
            });
            store(words, sum);
        }
        let (low, high) = words.as_flattened().split_at(GROUP);
        *item = gr_reduce(low.try_into().expect("half"), high.try_into().expect("half"));
    }
}
