//! Products and folds of elements of the Galois ring, eight at a time, one a lane.

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
    every(elements, 1, out);
}

/// Eight elements, `stride` apart, one a lane.
#[target_feature(enable = "avx512f")]
#[inline]
fn every(elements: &[Element], stride: usize, out: &mut Eight) {
    for (i, out) in out.as_chunks_mut::<TILE>().0.iter_mut().enumerate() {
        *out = lanes(elements.as_flattened(), stride * GROUP, i);
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

/// Registers before and behind an element, of which its multiples are read.
const MARGIN: usize = GROUP;

/// See [`crate::fold::FoldPath::ring_fold`]: for one variable after the other, the even ones and r times the odd ones.
///
/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx512f,avx512dq")]
pub(in crate::fold::cpu) unsafe fn ring_fold(items: &[Element], r: &[u64], out: &mut Vec<Element>) {
    let (zero, size) = (_mm512_setzero_si512(), 1 << r.len());
    let ones: Vec<Vec<usize>> = r.iter().map(|r| (0..GROUP).filter(|i| r >> i & 1 == 1).collect()).collect();
    let mut last = vec![];
    let mut level: Vec<Eight> = vec![[zero; GROUP]; size];
    let mut padded = [zero; GROUP + 2 * MARGIN];
    for groups in items.chunks(LANES * size) {
        let count = groups.len().div_ceil(size);
        let groups = match groups.len() == LANES * size {
            true => groups,
            false => {
                last.clear();
                last.extend_from_slice(groups);
                last.resize(LANES * size, [0; GROUP]);
                &last
            }
        };
        level.iter_mut().enumerate().for_each(|(l, item)| every(&groups[l..], size, item));
        let mut half = size;
        for ones in &ones {
            half /= 2;
            for i in 0..half {
                padded[MARGIN..MARGIN + GROUP].copy_from_slice(&level[2 * i + 1]);
                level[i] = level[2 * i];
                add_multiple(&padded, ones, &mut level[i]);
            }
        }
        let first = out.len();
        out.resize(first + count, [0; GROUP]);
        for (i, part) in level[0].as_chunks::<TILE>().0.iter().enumerate() {
            for (out, words) in out[first..].iter_mut().zip(transpose(*part)) {
                store(out[TILE * i..].first_chunk_mut().expect("a register of words"), words);
            }
        }
    }
}

/// Add the element in the middle of `padded` times the sum of Y^i for the i in `ones`, in order.
#[target_feature(enable = "avx512f")]
#[inline]
fn add_multiple(padded: &[V; GROUP + 2 * MARGIN], ones: &[usize], sum: &mut Eight) {
    let zero = _mm512_setzero_si512();
    // coefficients 64 to 126, with four places before and after them
    let mut high = [zero; GROUP + TILE];
    for tile in (0..2 * GROUP).step_by(TILE) {
        // those that meet the tile
        let from = ones.partition_point(|one| one + GROUP <= tile);
        let to = ones.partition_point(|one| *one < tile + TILE);
        let mut acc = [zero; TILE];
        for one in &ones[from..to] {
            let place = MARGIN + tile - one;
            let words: &[V; TILE] = padded[place..].first_chunk().expect("a margin of an element");
            acc.iter_mut().zip(words).for_each(|(acc, word)| *acc = _mm512_add_epi64(*acc, *word));
        }
        let to = if tile < GROUP { &mut sum[tile..] } else { &mut high[tile - GROUP + 4..] };
        to.iter_mut().zip(acc).for_each(|(to, acc)| *to = _mm512_add_epi64(*to, acc));
    }
    // Y^64 = -Y^4 - Y^3 - Y - 1, and again for what comes out above
    let times = |k: usize| {
        let (a, b) = (_mm512_add_epi64(high[k + 4], high[k + 3]), _mm512_add_epi64(high[k + 1], high[k]));
        _mm512_add_epi64(a, b)
    };
    sum.iter_mut().enumerate().for_each(|(k, sum)| *sum = _mm512_sub_epi64(*sum, times(k)));
    for k in 0..4 {
        let again = times(GROUP + k);
        for down in [0, 1, 3, 4] {
            sum[k + down] = _mm512_add_epi64(sum[k + down], again);
        }
    }
}
