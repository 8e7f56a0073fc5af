//! Bits, 64 to a word, beside words: what joins the two.

use privet_kernels::CpuCap;
use privet_kernels::bits::cpu::BitsPath;
use privet_prg::Wiped;
use std::sync::OnceLock;

/// Words of a plane of `n` bits.
pub(super) const fn plane_words(n: usize) -> usize {
    n.div_ceil(64)
}

/// Planes 0 to `count - 1` of the bits of `values`, one after the other.
pub(super) fn planes(values: &[u64], count: usize) -> Wiped<u64> {
    static PATH: OnceLock<BitsPath> = OnceLock::new();
    let path = PATH.get_or_init(|| BitsPath::detect(CpuCap::from_env().unwrap_or_else(|e| panic!("{e}"))));
    let places: Vec<usize> = (0..count).collect();
    let mut out = Wiped::zeros(count * plane_words(values.len()));
    path.planes(values, &places, &mut out);
    out
}

/// All ones where bit `i` is set, by arithmetic: no branch on what may be secret.
#[inline(always)]
fn mask(bits: u64, i: usize) -> u64 {
    (bits >> i & 1).wrapping_neg()
}

/// Adds `by` to `to` where the bit is 1.
pub(super) fn add_where(bits: &[u64], by: &[u64], to: &mut [u64]) {
    for ((bits, by), to) in bits.iter().zip(by.chunks(64)).zip(to.chunks_mut(64)) {
        for (i, (by, to)) in by.iter().zip(to).enumerate() {
            *to = to.wrapping_add(by & mask(*bits, i));
        }
    }
}

/// Adds each bit, as 0 or 1, to a word.
pub(super) fn add_bits(bits: &[u64], to: &mut [u64]) {
    for (bits, to) in bits.iter().zip(to.chunks_mut(64)) {
        for (i, to) in to.iter_mut().enumerate() {
            *to = to.wrapping_add(bits >> i & 1);
        }
    }
}

/// XORs `by` into `to`.
pub(super) fn xor(by: &[u64], to: &mut [u64]) {
    to.iter_mut().zip(by).for_each(|(to, by)| *to ^= by);
}

/// XORs a plane, as it came in 8 bytes a word, into `to` where the bit is 1.
pub(super) fn xor_where(bits: &[u64], plane: &[u8], to: &mut [u64]) {
    for ((to, by), bits) in to.iter_mut().zip(plane.as_chunks::<8>().0).zip(bits) {
        *to ^= u64::from_le_bytes(*by) & bits;
    }
}

/// Appends a plane, 8 bytes a word.
pub(super) fn to_bytes(plane: &[u64], out: &mut Vec<u8>) {
    plane.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_prg::Seed;
    use privet_ring::Ring;

    #[test]
    fn planes_and_words_agree_at_sizes_around_a_word() {
        for n in [1, 63, 64, 65, 200] {
            let values = Seed::from_bytes([1; 16]).stream().elements(Ring::new(37), n);
            let planes = planes(&values, 37);
            let mut back = vec![0; n];
            for (l, plane) in planes.chunks(plane_words(n)).enumerate() {
                let mut bits = vec![0; n];
                add_bits(plane, &mut bits);
                back.iter_mut().zip(&bits).for_each(|(v, b)| *v += b << l);
                let mut some = vec![5; n];
                add_where(plane, &values, &mut some);
                for (i, (some, v)) in some.iter().zip(&values).enumerate() {
                    assert_eq!(*some, if bits[i] == 1 { v + 5 } else { 5 });
                }
                let (mut bytes, mut both) = (Vec::new(), vec![u64::MAX; plane.len()]);
                to_bytes(plane, &mut bytes);
                xor_where(plane, &bytes, &mut both);
                assert!(both.iter().zip(plane).all(|(b, p)| *b == !p));
            }
            assert_eq!(back, values);
        }
    }
}
