//! The plain definitions.

use super::{GROUP, diagonal, gf_mul, points};

/// Digit `j` of `e` in base 3.
fn digit(e: usize, j: u32) -> usize {
    e / 3usize.pow(j) % 3
}

/// The value at point `e` of the polynomial with coefficients `u`: the sum of those that do not vanish there.
fn value(u: &[u64], vars: u32, e: usize, add: fn(u64, u64) -> u64) -> u64 {
    let counts = |l: usize| (0..vars).all(|j| matches!((digit(e, j), l >> j & 1), (0, 0) | (2, 1) | (1, _)));
    u.iter().enumerate().filter(|(l, _)| counts(*l)).fold(0, |sum, (_, u)| add(sum, *u))
}

/// Word `i`, or 0 after the last.
fn word(words: &[u64], i: usize) -> u64 {
    words.get(i).copied().unwrap_or(0)
}

fn group(words: &[u64], g: usize) -> Vec<u64> {
    (0..GROUP).map(|l| word(words, g * GROUP + l)).collect()
}

/// See [`super::FoldPath::words_message`].
pub fn words_message(terms: &[(&[u64], &[u64])], weights: &[u64], sums: &mut [u64]) {
    for (g, &s) in weights.iter().enumerate() {
        for (u, v) in terms {
            let (u, v) = (group(u, g), group(v, g));
            for (e, sum) in sums.iter_mut().enumerate() {
                let xor = |a, b| a ^ b;
                *sum ^= gf_mul(s, value(&u, 6, e, xor) & value(&v, 6, e, xor));
            }
        }
    }
}

/// The words of which these are the bits.
pub fn spread(bits: &[u64], words: usize) -> Vec<u64> {
    (0..words).map(|i| (bits[i / 64] >> (i % 64) & 1).wrapping_neg()).collect()
}

/// Group h of block b.
fn numbers_of(numbers: &[u64], b: usize, h: usize) -> Vec<u64> {
    (0..8).map(|l| word(numbers, GROUP * b + 8 * l + h)).collect()
}

/// See [`super::FoldPath::numbers_message`].
pub fn numbers_message(terms: &[(&[u64], &[u64])], weights: &[u64], sums: &mut [u64]) {
    for (g, &s) in weights.iter().enumerate() {
        for (numbers, bits) in terms {
            let bit = |l: usize| (bits[g / 8] >> (8 * l + g % 8) & 1).wrapping_neg();
            let (u, v) = (numbers_of(numbers, g / 8, g % 8), (0..8).map(bit).collect::<Vec<_>>());
            for (e, sum) in sums.iter_mut().enumerate() {
                let xor = |a, b| a ^ b;
                *sum ^= gf_mul(s, value(&u, 3, e, xor) & value(&v, 3, e, xor));
            }
        }
    }
}

/// See [`super::FoldPath::numbers_fold`].
pub fn numbers_fold(numbers: &[u64], basis: &[u64; 8], weights: Option<&[u64]>) -> Vec<u64> {
    let item = |g: usize| {
        let group = numbers_of(numbers, g / 8, g % 8);
        let sum = group.iter().zip(basis).fold(0, |sum, (a, b)| sum ^ gf_mul(*a, *b));
        weights.map_or(sum, |s| gf_mul(s[g], sum))
    };
    (0..8 * numbers.len().div_ceil(GROUP)).map(item).collect()
}

/// See [`super::FoldPath::numbers_combine`].
pub fn numbers_combine(numbers: &[u64], weights: &[u64], sums: &mut [u64; 8]) {
    for (i, number) in numbers.iter().enumerate() {
        sums[i % GROUP / 8] ^= gf_mul(weights[i / GROUP * 8 + i % 8], *number);
    }
}

/// See [`super::FoldPath::field_weigh`].
pub fn field_weigh(items: &mut [u64], weights: &[u64]) {
    items.iter_mut().zip(weights).for_each(|(item, s)| *item = gf_mul(*item, *s));
}

/// The first fold of [`super::WordsFoldTwice`] and of [`super::SecondValues`]: for every group g and every lane i the inner product of its
/// words' bits with the basis, times `s_g Y^i` where there are weights.
pub fn words_fold(words: &[u64], basis: &[u64; GROUP], weights: Option<&[u64]>, out: &mut [u64]) {
    for (g, out) in out.chunks_mut(GROUP).enumerate() {
        for (i, out) in out.iter_mut().enumerate() {
            let bits = (0..GROUP).filter(|l| word(words, g * GROUP + l) >> i & 1 == 1);
            let folded = bits.fold(0, |sum, l| sum ^ basis[l]);
            *out = match weights {
                Some(s) => gf_mul(gf_mul(s[g], 1 << i), folded),
                None => folded,
            };
        }
    }
}

/// See [`super::FoldPath::words_combine`].
pub fn words_combine(words: &[u64], weights: &[u64], sums: &mut [u64; GROUP]) {
    for (m, word) in words.iter().enumerate() {
        sums[m % GROUP] ^= gf_mul(weights[m / GROUP], *word);
    }
}

/// See [`super::FoldPath::rows_combine`].
pub fn rows_combine(words: &[u64], strides: [usize; 2], bits: &[u64], out: &mut [[u64; 64]]) {
    for (p, out) in out.iter_mut().enumerate() {
        for (r, bits) in bits.iter().enumerate() {
            let word = words[r * strides[0] + p * strides[1]];
            for (c, sum) in out.iter_mut().enumerate() {
                *sum = sum.wrapping_add(word * (bits >> c & 1));
            }
        }
    }
}

/// See [`super::FoldPath::field_message`].
pub fn field_message(u: &[u64], v: &[u64], vars: u32, sums: &mut [u64]) {
    for (u, v) in u.chunks(1 << vars).zip(v.chunks(1 << vars)) {
        for (e, sum) in sums.iter_mut().enumerate().take(points(vars)) {
            let xor = |a, b| a ^ b;
            *sum ^= gf_mul(value(u, vars, e, xor), value(v, vars, e, xor));
        }
    }
}

/// See [`super::FoldPath::field_fold`].
pub fn field_fold(items: &[u64], basis: &[u64], out: &mut [u64]) {
    for (items, out) in items.chunks(basis.len()).zip(out) {
        *out = items.iter().zip(basis).fold(0, |sum, (a, b)| sum ^ gf_mul(*a, *b));
    }
}

/// See [`super::FoldPath::ring_values`].
pub fn ring_values(terms: &[(&[u64], &[u64])], vars: u32, stride: usize, out: &mut [u64]) {
    let groups = out.len() / points(vars);
    for (i, out) in out.iter_mut().enumerate() {
        let (e, g) = (i / groups, i % groups);
        *out = terms.iter().fold(0u64, |sum, (u, v)| {
            let at = |w: &[u64]| {
                let w: Vec<u64> = (0..1 << vars).map(|l| word(w, g * stride + l)).collect();
                value(&w, vars, e, u64::wrapping_add)
            };
            sum.wrapping_add(at(u).wrapping_mul(at(v)))
        });
    }
}

/// [`diagonal`] by its meaning.
pub fn is_diagonal(e: usize, l: usize) -> bool {
    (0..usize::BITS).all(|j| digit_or_zero(e, j) == 2 * (l >> j & 1)) && diagonal(l) == e
}

fn digit_or_zero(e: usize, j: u32) -> usize {
    3usize.checked_pow(j).map_or(0, |place| e / place % 3)
}

/// See [`super::gr_times_bits`].
pub fn times_bits(a: &[u64; 64], bits: u64) -> [u64; 64] {
    let mut sums = [0u64; 64];
    for ring in 0..2 {
        let mut power: [u64; 32] = std::array::from_fn(|k| a[2 * k + ring]);
        for i in 0..32 {
            if bits >> (2 * i + ring) & 1 == 1 {
                for (k, p) in power.iter().enumerate() {
                    sums[2 * k + ring] = sums[2 * k + ring].wrapping_add(*p);
                }
            }
            // times Y
            let top = power[31];
            power.rotate_right(1);
            power[0] = 0;
            for down in [0, 2, 3, 7] {
                power[down] = power[down].wrapping_sub(top);
            }
        }
    }
    sums
}

/// See [`super::FoldPath::products`].
pub fn products(a: &[[u64; 64]], b: &[[u64; 64]], groups: usize, sums: &mut [[u64; 128]]) {
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        for (p, q, ring) in (0..32).flat_map(|p| (0..32).flat_map(move |q| [(p, q, 0), (p, q, 1)])) {
            let sum = &mut sums[i / groups][2 * (p + q) + ring];
            *sum = sum.wrapping_add(a[2 * p + ring].wrapping_mul(b[2 * q + ring]));
        }
    }
}

/// See [`super::FoldPath::ring_fold`].
pub fn ring_fold(items: &[[u64; 64]], r: &[u64], out: &mut Vec<[u64; 64]>) {
    for group in items.chunks(1 << r.len()) {
        let mut sum = [0u64; 64];
        for (l, item) in group.iter().enumerate() {
            let variables = r.iter().enumerate().filter(|(j, _)| l >> j & 1 == 1);
            let term = variables.fold(*item, |term, (_, r)| times_bits(&term, *r));
            sum.iter_mut().zip(term).for_each(|(sum, term)| *sum = sum.wrapping_add(term));
        }
        out.push(sum);
    }
}
