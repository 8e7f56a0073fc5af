//! Products of elements of the Galois ring as polynomials, eight pairs at a time, one a lane.

use super::V;
use super::lanes::{LANES, lanes, store, transpose};
use crate::fold::{Element, GROUP, Wide};
use std::arch::x86_64::*;

/// Coefficients handled together, so that their sums stay in registers.
const TILE: usize = 8;
const TILES: usize = GROUP / TILE;

/// A coefficient of eight polynomials a register.
type Eight = [V; GROUP];
type EightWide = [V; 2 * GROUP];

/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx512f,avx512dq")]
pub(in crate::fold::cpu) unsafe fn products(a: &[Element], b: &[Element], groups: usize, sums: &mut [Wide]) {
    let zero = _mm512_setzero_si512();
    let (mut x, mut y): (Eight, Eight) = ([zero; GROUP], [zero; GROUP]);
    let mut wide: EightWide = [zero; 2 * GROUP];
    if groups < LANES {
        // pairs of several sums in a register
        for (first, (a, b)) in a.chunks(LANES).zip(b.chunks(LANES)).enumerate() {
            gather(a, &mut x);
            gather(b, &mut y);
            wide.fill(zero);
            multiply_add(&x, &y, &mut wide);
            let lanes = scatter(&wide);
            for (i, product) in lanes[..a.len()].iter().enumerate() {
                add(product, &mut sums[(first * LANES + i) / groups]);
            }
        }
        return;
    }
    for ((a, b), sum) in a.chunks(groups).zip(b.chunks(groups)).zip(sums) {
        wide.fill(zero);
        for (a, b) in a.chunks(LANES).zip(b.chunks(LANES)) {
            gather(a, &mut x);
            gather(b, &mut y);
            multiply_add(&x, &y, &mut wide);
        }
        for (sum, lanes) in sum.iter_mut().zip(wide) {
            *sum = sum.wrapping_add(_mm512_reduce_add_epi64(lanes) as u64);
        }
    }
}

/// Elements, zeros after the last, one a lane.
#[target_feature(enable = "avx512f")]
#[inline]
fn gather(elements: &[Element], out: &mut Eight) {
    let mut padded = [[0; GROUP]; LANES];
    let elements = match elements.len() {
        LANES => elements,
        n => {
            padded[..n].copy_from_slice(elements);
            &padded
        }
    };
    for (i, out) in out.as_chunks_mut::<TILE>().0.iter_mut().enumerate() {
        *out = lanes(elements.as_flattened(), GROUP, i);
    }
}

/// The polynomials of all lanes.
#[target_feature(enable = "avx512f")]
#[inline]
fn scatter(wide: &EightWide) -> [Wide; LANES] {
    let mut out = [[0; 2 * GROUP]; LANES];
    for (i, part) in wide.as_chunks::<TILE>().0.iter().enumerate() {
        for (out, words) in out.iter_mut().zip(transpose(*part)) {
            store(out[TILE * i..].first_chunk_mut().expect("a register of words"), words);
        }
    }
    out
}

fn add(product: &Wide, sum: &mut Wide) {
    sum.iter_mut().zip(product).for_each(|(sum, product)| *sum = sum.wrapping_add(*product));
}

/// Tile d of the sums gets its lower half from tiles i and d - i, its upper half belongs to tile d + 1.
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn multiply_add(x: &Eight, y: &Eight, wide: &mut EightWide) {
    let (x, y) = (x.as_chunks::<TILE>().0, y.as_chunks::<TILE>().0);
    let zero = _mm512_setzero_si512();
    let mut sums = [zero; 2 * TILE];
    for (d, out) in wide.as_chunks_mut::<TILE>().0.iter_mut().enumerate() {
        for i in d.saturating_sub(TILES - 1)..TILES.min(d + 1) {
            for (p, x) in x[i].iter().enumerate() {
                for (q, y) in y[d - i].iter().enumerate() {
                    sums[p + q] = _mm512_add_epi64(sums[p + q], _mm512_mullo_epi64(*x, *y));
                }
            }
        }
        let (low, high) = sums.split_at_mut(TILE);
        for ((out, low), high) in out.iter_mut().zip(low).zip(high) {
            *out = _mm512_add_epi64(*out, *low);
            (*low, *high) = (*high, zero);
        }
    }
}
