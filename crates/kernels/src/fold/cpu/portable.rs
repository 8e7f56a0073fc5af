//! Plain Rust.

use crate::fold::{
    Chosen, Element, GROUP, NUMBER_GROUP, NUMBER_VARS, NumberTerms, Powers, RINGS, Strided, WORD_VARS, Wide,
    WordTerms, Words, clmul, gf_mul, gf_reduce, gr_times_bits, points,
};

/// Values of a polynomial with `src.len()` coefficients at 0, 1 and infinity in every variable.
#[inline(always)]
pub(super) fn extend(src: &[u64], out: &mut [u64], add: impl Fn(u64, u64) -> u64 + Copy) {
    if src.len() == 1 {
        out[0] = src[0];
        return;
    }
    // bottom up: blocks of 3^j values, two of which make three
    let n = src.len();
    out[..n].copy_from_slice(src);
    let (mut blocks, mut size) = (n, 1);
    while blocks > 1 {
        // from the last pair to the first, because results take more room than what they are made of
        for pair in (0..blocks / 2).rev() {
            let (from, to) = (2 * pair * size, 3 * pair * size);
            for i in (0..size).rev() {
                out[to + 2 * size + i] = out[from + size + i];
            }
            for i in (0..size).rev() {
                let (zero, infinity) = (out[from + i], out[to + 2 * size + i]);
                out[to + size + i] = add(zero, infinity);
            }
            for i in (0..size).rev() {
                out[to + i] = out[from + i];
            }
        }
        (blocks, size) = (blocks / 2, size * 3);
    }
}

/// Group `g` of `N` words, 0 after the last.
fn group<const N: usize>(words: &[u64], g: usize) -> [u64; N] {
    let mut group = [0; N];
    let words = &words[(g * N).min(words.len())..words.len().min((g + 1) * N)];
    group[..words.len()].copy_from_slice(words);
    group
}

pub(super) fn words_message(batches: &[WordTerms], sums: &mut [u64]) {
    const POINTS: usize = points(WORD_VARS);
    let mut wide = [0u128; POINTS];
    let (mut a, mut b) = ([0; POINTS], [0; POINTS]);
    let groups = batches.iter().flat_map(|b| b.weights.iter().enumerate().map(|(g, s)| (&b.terms, g, *s)));
    for (terms, g, s) in groups {
        let mut z = [0; POINTS];
        for (u, v) in terms {
            extend(u.some(GROUP * g, &mut [0; GROUP]), &mut a, |a, b| a ^ b);
            extend(v.some(GROUP * g, &mut [0; GROUP]), &mut b, |a, b| a ^ b);
            for (z, (a, b)) in z.iter_mut().zip(a.iter().zip(&b)) {
                *z ^= a & b;
            }
        }
        for (wide, z) in wide.iter_mut().zip(&z) {
            *wide ^= clmul(s, *z);
        }
    }
    for (sum, wide) in sums.iter_mut().zip(wide) {
        *sum ^= gf_reduce(wide);
    }
}

/// One of eight groups of numbers side by side.
fn number_group(block: &[u64; GROUP], h: usize) -> [u64; NUMBER_GROUP] {
    std::array::from_fn(|l| block[NUMBER_GROUP * l + h])
}

/// Numbers where their bits are 1.
fn chosen(block: &[u64; GROUP], bits: u64) -> [u64; GROUP] {
    std::array::from_fn(|i| block[i] & ones(bits >> i))
}

/// The lowest bit in all places.
fn ones(bit: u64) -> u64 {
    (bit & 1).wrapping_neg()
}

pub(super) fn numbers_message(batches: &[NumberTerms], sums: &mut [u64]) {
    const POINTS: usize = points(NUMBER_VARS);
    let mut wide = [0u128; POINTS];
    let (mut a, mut b) = ([0; POINTS], [0; POINTS]);
    for NumberTerms { terms, weights, .. } in batches {
        for (g, s) in weights.iter().enumerate() {
            let (block, h) = (g / NUMBER_GROUP, g % NUMBER_GROUP);
            let mut z = [0; POINTS];
            for Chosen { numbers, bits } in terms {
                extend(&number_group(&group(numbers, block), h), &mut a, |a, b| a ^ b);
                let bits = std::array::from_fn::<_, NUMBER_GROUP, _>(|l| {
                    ones(bits[block] >> (NUMBER_GROUP * l + h))
                });
                extend(&bits, &mut b, |a, b| a ^ b);
                for (z, (a, b)) in z.iter_mut().zip(a.iter().zip(&b)) {
                    *z ^= a & b;
                }
            }
            for (wide, z) in wide.iter_mut().zip(&z) {
                *wide ^= clmul(*s, *z);
            }
        }
    }
    for (sum, wide) in sums.iter_mut().zip(wide) {
        *sum ^= gf_reduce(wide);
    }
}

pub(super) fn numbers_fold(
    numbers: &[u64],
    basis: &[u64; NUMBER_GROUP],
    weights: Option<&[u64]>,
    out: &mut Vec<u64>,
) {
    for b in 0..numbers.len().div_ceil(GROUP) {
        let block = group(numbers, b);
        for h in 0..NUMBER_GROUP {
            let group = number_group(&block, h);
            let item = gf_reduce(group.iter().zip(basis).fold(0, |sum, (a, b)| sum ^ clmul(*a, *b)));
            out.push(weights.map_or(item, |s| gf_mul(item, s[NUMBER_GROUP * b + h])));
        }
    }
}

/// Also the fast paths', with more lanes.
#[inline(always)]
pub(super) fn bits_fold(bits: &[u64], basis: &[u64; NUMBER_GROUP], out: &mut Vec<u64>) {
    for bits in bits {
        let mut items = [0; NUMBER_GROUP];
        for (byte, b) in bits.to_le_bytes().iter().zip(basis) {
            for (h, item) in items.iter_mut().enumerate() {
                *item ^= b & ones(u64::from(*byte) >> h);
            }
        }
        out.extend_from_slice(&items);
    }
}

pub(super) fn numbers_combine(
    numbers: &[u64],
    more: &[Chosen],
    weights: &[u64],
    sums: &mut [u64; NUMBER_GROUP],
) {
    let mut wide = [0u128; NUMBER_GROUP];
    for (b, weights) in weights.as_chunks::<NUMBER_GROUP>().0.iter().enumerate() {
        let mut block = group::<GROUP>(numbers, b);
        for Chosen { numbers, bits } in more {
            let chosen = chosen(&group(numbers, b), bits[b]);
            block.iter_mut().zip(chosen).for_each(|(sum, number)| *sum ^= number);
        }
        for (wide, row) in wide.iter_mut().zip(block.as_chunks::<NUMBER_GROUP>().0) {
            *wide = row.iter().zip(weights).fold(*wide, |sum, (a, s)| sum ^ clmul(*a, *s));
        }
    }
    for (sum, wide) in sums.iter_mut().zip(wide) {
        *sum ^= gf_reduce(wide);
    }
}

pub(super) fn field_weigh(items: &mut [u64], weights: &[u64]) {
    items.iter_mut().zip(weights).for_each(|(item, s)| *item = gf_mul(*item, *s));
}

pub(super) fn words_fold(words: Words, basis: &[u64; GROUP], weights: Option<&[u64]>, out: &mut Vec<u64>) {
    for g in 0..words.len().div_ceil(GROUP) {
        let words = *words.some(GROUP * g, &mut [0; GROUP]);
        let mut items = [0; GROUP];
        for (word, b) in words.iter().zip(basis) {
            for (i, item) in items.iter_mut().enumerate() {
                *item ^= b & (word >> i & 1).wrapping_neg();
            }
        }
        if let Some(weights) = weights {
            let mut s = weights[g];
            for item in &mut items {
                *item = gf_mul(s, *item);
                s = gf_mul(s, 2);
            }
        }
        out.extend_from_slice(&items);
    }
}

pub(super) fn words_combine(words: &[u64], weights: &[u64], sums: &mut [u64; GROUP]) {
    let mut wide = [0u128; GROUP];
    for (words, s) in words.chunks(GROUP).zip(weights) {
        for (wide, word) in wide.iter_mut().zip(words) {
            *wide ^= clmul(*s, *word);
        }
    }
    for (sum, wide) in sums.iter_mut().zip(wide) {
        *sum ^= gf_reduce(wide);
    }
}

pub(super) fn field_message(u: &[u64], v: &[u64], vars: u32, sums: &mut [u64]) {
    let (n, points) = (1 << vars, points(vars));
    let mut wide = vec![0u128; points];
    let (mut a, mut b) = (vec![0; points], vec![0; points]);
    let mut whole = vec![0; n];
    let mut values = |items: &[u64], out: &mut [u64]| {
        whole.fill(0);
        whole[..items.len()].copy_from_slice(items);
        extend(&whole, out, |a, b| a ^ b);
    };
    for (u, v) in u.chunks(n).zip(v.chunks(n)) {
        values(u, &mut a);
        values(v, &mut b);
        for (wide, (a, b)) in wide.iter_mut().zip(a.iter().zip(&b)) {
            *wide ^= clmul(*a, *b);
        }
    }
    for (sum, wide) in sums.iter_mut().zip(wide) {
        *sum ^= gf_reduce(wide);
    }
}

pub(super) fn field_fold(items: &[u64], basis: &[u64], out: &mut [u64]) {
    for (items, out) in items.chunks(basis.len()).zip(out) {
        *out = gf_reduce(items.iter().zip(basis).fold(0, |sum, (a, b)| sum ^ clmul(*a, *b)));
    }
}

pub(super) fn ring_values(
    terms: &[(&[u64], &[u64])],
    vars: u32,
    (groups, stride): (usize, usize),
    scratch: &mut Vec<u64>,
    each: &mut dyn FnMut(usize, &[u64]),
) {
    let len = points(vars) * groups;
    scratch.resize(scratch.len().max(len), 0);
    values_of(terms, vars, stride, &mut scratch[..len]);
    each(0, &scratch[..len]);
}

/// All groups' values at a point, then at the next.
pub(super) fn values_of(terms: &[(&[u64], &[u64])], vars: u32, stride: usize, out: &mut [u64]) {
    let (n, points) = (1 << vars, points(vars));
    let (mut a, mut b) = (vec![0; points], vec![0; points]);
    let mut whole = vec![0; n];
    let mut values = |words: &[u64], g: usize, out: &mut [u64]| {
        whole.fill(0);
        let words = &words[(g * stride).min(words.len())..words.len().min(g * stride + n)];
        whole[..words.len()].copy_from_slice(words);
        extend(&whole, out, u64::wrapping_add);
    };
    let groups = out.len() / points;
    out.fill(0);
    for g in 0..groups {
        for (u, v) in terms {
            values(u, g, &mut a);
            values(v, g, &mut b);
            for (e, (a, b)) in a.iter().zip(&b).enumerate() {
                let out = &mut out[e * groups + g];
                *out = out.wrapping_add(a.wrapping_mul(*b));
            }
        }
    }
}

/// The sums of every choice of four rows once, for eight positions, then one look-up for four rows and a coefficient.
pub(super) fn rows_combine(words: &[u64], strides: [usize; 2], bits: &[u64], out: &mut [Element]) {
    const ROWS: usize = 4;
    const POSITIONS: usize = 8;
    let choices: Vec<[u8; GROUP]> = bits
        .chunks(ROWS)
        .map(|rows| {
            std::array::from_fn(|c| {
                rows.iter().enumerate().fold(0, |choice, (r, bits)| choice | ((bits >> c & 1) << r) as u8)
            })
        })
        .collect();
    for (i, out) in out.chunks_mut(POSITIONS).enumerate() {
        let words = &words[i * POSITIONS * strides[1]..];
        let mut sums = [[0u64; POSITIONS]; GROUP];
        for (g, choices) in choices.iter().enumerate() {
            let mut table = [[0u64; POSITIONS]; 1 << ROWS];
            for r in 0..ROWS.min(bits.len() - ROWS * g) {
                let words = &words[(ROWS * g + r) * strides[0]..];
                let row: [u64; POSITIONS] =
                    std::array::from_fn(|p| if p < out.len() { words[p * strides[1]] } else { 0 });
                let (without, with) = table.split_at_mut(1 << r);
                for (with, without) in with.iter_mut().zip(without) {
                    *with = std::array::from_fn(|p| without[p].wrapping_add(row[p]));
                }
            }
            for (sums, choice) in sums.iter_mut().zip(choices) {
                let chosen = &table[usize::from(*choice)];
                sums.iter_mut().zip(chosen).for_each(|(sum, word)| *sum = sum.wrapping_add(*word));
            }
        }
        for (p, out) in out.iter_mut().enumerate() {
            out.iter_mut().zip(&sums).for_each(|(out, sums)| *out = out.wrapping_add(sums[p]));
        }
    }
}

#[inline(always)]
pub(super) fn weigh(items: &mut [Element], weights: &[u64]) {
    for (item, s) in items.iter_mut().zip(weights) {
        *item = gr_times_bits(item, *s);
    }
}

pub(super) fn products(a: &[Element], b: &[Element], _powers: Powers, groups: usize, sums: &mut [Wide]) {
    for ((a, b), sum) in a.chunks(groups).zip(b.chunks(groups)).zip(sums) {
        for (a, b) in a.iter().zip(b) {
            for (i, a) in a.iter().enumerate() {
                // the other's coefficients in the same ring
                let of_ring = b[i % RINGS..].iter().step_by(RINGS);
                for (sum, b) in sum[i..].iter_mut().step_by(RINGS).zip(of_ring) {
                    *sum = sum.wrapping_add(a.wrapping_mul(*b));
                }
            }
        }
    }
}

pub(super) fn products_of_some(operands: &[Strided], powers: Powers, groups: usize, sums: &mut [Wide]) {
    for (Strided { a, b, stride }, sum) in operands.iter().zip(sums) {
        for (a, b) in a.iter().step_by(*stride).zip(b.iter().step_by(*stride)).take(groups) {
            products(std::slice::from_ref(a), std::slice::from_ref(b), powers, 1, std::slice::from_mut(sum));
        }
    }
}

pub(super) fn ring_fold(items: &[Element], r: &[u64], out: &mut Vec<Element>) {
    for group in items.chunks(1 << r.len()) {
        let mut level = group.to_vec();
        level.resize(1 << r.len(), [0; GROUP]);
        for r in r {
            for i in 0..level.len() / 2 {
                let (even, odd) = (level[2 * i], gr_times_bits(&level[2 * i + 1], *r));
                level[i] = std::array::from_fn(|k| even[k].wrapping_add(odd[k]));
            }
            level.truncate(level.len() / 2);
        }
        out.extend(level);
    }
}
