//! Elements as planes of bits, and back.

use crate::context::Plane;

/// Words of a plane.
pub(crate) fn words(n: usize) -> usize {
    n.div_ceil(64)
}

/// Bit `at` of every element.
pub(crate) fn plane(values: &[u64], at: u32) -> Plane {
    let bits = |values: &[u64]| values.iter().enumerate().fold(0, |word, (i, v)| word | (v >> at & 1) << i);
    values.chunks(64).map(bits).collect()
}

/// The lowest `bits` bits of every element, from the lowest.
pub(crate) fn split(values: &[u64], bits: u32) -> Vec<Plane> {
    (0..bits).map(|at| plane(values, at)).collect()
}

/// Bit i of a plane.
#[inline(always)]
pub(crate) fn bit(plane: &[u64], i: usize) -> u64 {
    plane[i / 64] >> (i % 64) & 1
}

/// All ones where bit i is 1.
#[inline(always)]
pub(crate) fn mask(plane: &[u64], i: usize) -> u64 {
    bit(plane, i).wrapping_neg()
}

pub(crate) fn xor(a: &mut [u64], b: &[u64]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a ^= b);
}

/// `a ^= b c`.
pub(crate) fn xor_and(a: &mut [u64], b: &[u64], c: &[u64]) {
    a.iter_mut().zip(b.iter().zip(c)).for_each(|(a, (b, c))| *a ^= b & c);
}

/// The complement of each bit of n elements.
pub(crate) fn not(a: &[u64], n: usize) -> Plane {
    let mut out: Plane = a.iter().map(|a| !a).collect();
    if let (Some(last), true) = (out.last_mut(), !n.is_multiple_of(64)) {
        *last &= (1 << (n % 64)) - 1;
    }
    out
}

/// For each value j of some planes (the lowest first): where they are j.
pub(crate) fn one_hot(planes: &[Plane], n: usize) -> Vec<Plane> {
    let mut hot = vec![not(&vec![0; words(n)], n)];
    for plane in planes {
        let (mut low, mut high) = (Vec::with_capacity(2 * hot.len()), Vec::with_capacity(hot.len()));
        for h in hot {
            let one: Plane = h.iter().zip(plane).map(|(h, p)| h & p).collect();
            low.push(h.iter().zip(&one).map(|(h, o)| h ^ o).collect());
            high.push(one);
        }
        low.append(&mut high);
        hot = low;
    }
    hot
}
