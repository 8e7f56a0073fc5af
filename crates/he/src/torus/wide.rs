//! Elements of Z_{2^LQ}, LQ at most 256, and how they are cut to digits and sent.

use privet_prg::Prg;
use privet_ring::{Ring, pack, unpack};
use zeroize::{Zeroize, Zeroizing};

use crate::wire::WireError;

const LIMBS: usize = 4;

/// The widest modulus that [`Wide`] holds.
pub(crate) const MOST_BITS: u32 = 64 * LIMBS as u32;

/// An integer modulo 2^256 in two's complement; whoever needs it modulo less keeps the low bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wide([u64; LIMBS]);

impl Zeroize for Wide {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

/// Secret elements; wiped on drop.
pub(crate) type Wides = Zeroizing<Vec<Wide>>;

impl Wide {
    /// Add `value 2^shift`; nothing where that is a multiple of 2^256.
    #[inline(always)]
    pub(crate) fn add_shifted(&mut self, value: i64, shift: u32) {
        let value = i128::from(value);
        let added = match shift {
            0..128 => [value << shift, (value >> (127 - shift)) >> 1],
            128..256 => [0, value << (shift - 128)],
            _ => return,
        };
        let [low, high] = self.halves();
        let (low, carry) = low.overflowing_add(added[0] as u128);
        let high = high.wrapping_add(added[1] as u128).wrapping_add(u128::from(carry));
        self.0 = [low as u64, (low >> 64) as u64, high as u64, (high >> 64) as u64];
    }

    fn halves(&self) -> [u128; 2] {
        let half = |low: usize| u128::from(self.0[low + 1]) << 64 | u128::from(self.0[low]);
        [half(0), half(2)]
    }

    /// `self + other`.
    #[inline(always)]
    pub(crate) fn plus(&self, other: &Wide) -> Wide {
        let ([low, high], others) = (self.halves(), other.halves());
        let (low, carry) = low.overflowing_add(others[0]);
        let high = high.wrapping_add(others[1]).wrapping_add(u128::from(carry));
        Wide([low as u64, (low >> 64) as u64, high as u64, (high >> 64) as u64])
    }

    /// `-self`.
    pub(crate) fn negated(&self) -> Wide {
        let mut out = Wide(self.0.map(|limb| !limb));
        out.add_shifted(1, 0);
        out
    }

    /// `bits` <= 64 bits from bit `at` on.
    #[inline(always)]
    pub(crate) fn bits(&self, at: u32, bits: u32) -> u64 {
        let (limb, shift) = ((at >> 6) as usize, at & 63);
        let low = u128::from(self.0.get(limb).copied().unwrap_or(0));
        let high = u128::from(self.0.get(limb + 1).copied().unwrap_or(0));
        (((high << 64 | low) >> shift) as u64) & (u64::MAX >> (64 - bits))
    }

    /// The bits from `at` to `end` at the bottom.
    pub(crate) fn part(&self, at: u32, end: u32) -> Wide {
        let limb = |i: u32| {
            let from = at + 64 * i;
            if from < end { self.bits(from, (end - from).min(64)) } else { 0 }
        };
        Wide([limb(0), limb(1), limb(2), limb(3)])
    }

    /// `self 2^shift`.
    pub(crate) fn up(&self, shift: u32) -> Wide {
        let (limbs, bits) = ((shift >> 6) as usize, shift & 63);
        let mut out = Wide::default();
        let mut before = 0u64;
        for (out, limb) in out.0.iter_mut().skip(limbs).zip(self.0) {
            let both = u128::from(limb) << 64 | u128::from(before);
            *out = ((both << bits) >> 64) as u64;
            before = limb;
        }
        out
    }

    /// The multiple of 2^shift that is nearest, over 2^shift, below 2^(bits - shift).
    pub(crate) fn rounded(&self, shift: u32, bits: u32) -> Wide {
        let mut sum = *self;
        if shift > 0 {
            sum.add_shifted(1, shift - 1);
        }
        sum.part(shift, bits)
    }
}

impl Wide {
    /// The multiple of 2^shift that is nearest, shift at least 1; of two, the even one. So its difference has the mean 0 where the element
    /// is uniform.
    pub(crate) fn rounded_to_even(&self, shift: u32) -> Wide {
        let mut sum = *self;
        sum.add_shifted((1 << (shift - 1)) - 1 + self.bits(shift, 1) as i64, 0);
        sum.part(shift, MOST_BITS).up(shift)
    }
}

/// Uniform elements below 2^bits.
pub(crate) fn uniform(prg: &mut Prg, bits: u32, n: usize) -> Vec<Wide> {
    let limbs: Vec<Vec<u64>> = planes(bits).map(|plane| prg.elements(plane, n)).collect();
    let at = |i: usize| {
        let mut w = Wide::default();
        limbs.iter().zip(&mut w.0).for_each(|(limb, into)| *into = limb[i]);
        w
    };
    (0..n).map(at).collect()
}

/// The rings of 64 bits and of the rest that `bits` are packed as.
fn planes(bits: u32) -> impl Iterator<Item = Ring> {
    (0..bits).step_by(64).map(move |at| Ring::new((bits - at).min(64)))
}

/// Bytes of `n` elements of `bits` bits.
pub(crate) fn bytes(bits: u32, n: usize) -> usize {
    planes(bits).map(|plane| plane.packed_bytes(n)).sum()
}

/// Append elements of `bits` bits, 64 bits of all of them after the other.
pub(crate) fn put(bits: u32, values: &[Wide], out: &mut Vec<u8>) {
    for (i, plane) in planes(bits).enumerate() {
        let words = Zeroizing::new(values.iter().map(|v| v.0[i]).collect::<Vec<u64>>());
        pack(plane, &words, out);
    }
}

/// The inverse of [`put`]; what was read is taken off `from`. Nothing is allocated before there are bytes enough.
pub(crate) fn take(bits: u32, n: usize, from: &mut &[u8]) -> Result<Vec<Wide>, WireError> {
    let expected = bytes(bits, n);
    if from.len() < expected {
        return Err(WireError::Length { expected, found: from.len() });
    }
    let mut out = vec![Wide::default(); n];
    for (i, plane) in planes(bits).enumerate() {
        let (here, rest) = from.split_at(plane.packed_bytes(n));
        let words = unpack(plane, here, n)?;
        out.iter_mut().zip(words).for_each(|(v, word)| v.0[i] = word);
        *from = rest;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_prg::Seed;

    /// Against 128-bit integers, at every shift.
    #[test]
    fn sums_cuts_and_roundings_are_those_of_integers() {
        let mut prg = Seed::from_bytes([1; 16]).stream();
        for (i, w) in prg.elements(Ring::R64, 3 * 105).chunks_exact(3).enumerate() {
            let shift = i as u32;
            let mut sum = Wide::default();
            sum.add_shifted(w[1] as i64 & i64::MAX, 0);
            sum.add_shifted((w[1] >> 63) as i64, 63);
            sum.add_shifted((w[0] >> 1) as i64, 61);
            sum.add_shifted((w[0] & 1) as i64, 60);
            let value = |v: &Wide| u128::from(v.0[1]) << 64 | u128::from(v.0[0]);
            let plain = (u128::from(w[1])).wrapping_add(u128::from(w[0]) << 60);
            assert_eq!(value(&sum), plain);
            sum.add_shifted(w[2] as i64, shift);
            let plain = plain.wrapping_add((i128::from(w[2] as i64) << shift) as u128);
            assert_eq!(value(&sum), plain);
            assert_eq!(value(&sum.negated()), plain.wrapping_neg());
            assert_eq!(value(&sum.up(shift)), plain << shift);
            assert_eq!(u128::from(sum.bits(shift, 20)), plain >> shift & ((1 << 20) - 1));
            assert_eq!(value(&sum.part(shift, 110)), (plain & ((1 << 110) - 1)) >> shift);
            let half = if shift > 0 { 1 << (shift - 1) } else { 0 };
            if (1..60).contains(&shift) {
                let rounded = value(&sum.rounded_to_even(shift));
                let (below, odd) = (plain & ((1 << shift) - 1), plain >> shift & 1);
                let up = below > half || below == half && odd == 1;
                assert_eq!(rounded, (plain - below).wrapping_add(u128::from(up) << shift));
            }
            assert_eq!(
                value(&sum.rounded(shift, 110)),
                (plain.wrapping_add(half) & ((1 << 110) - 1)) >> shift
            );
        }
    }

    #[test]
    fn bytes_give_elements_back_and_short_ones_are_named() {
        let mut prg = Seed::from_bytes([2; 16]).stream();
        for bits in [1, 37, 64, 65, 118, 128, 200, 256] {
            for n in [0, 1, 33] {
                let values = uniform(&mut prg, bits, n);
                let mut out = Vec::new();
                put(bits, &values, &mut out);
                assert_eq!(out.len(), bytes(bits, n));
                let mut from = &out[..];
                assert_eq!(take(bits, n, &mut from).unwrap(), values);
                assert!(from.is_empty());
                if n > 0 {
                    let found = out.len() - 1;
                    let error = take(bits, n, &mut &out[..found]).unwrap_err();
                    assert_eq!(error, WireError::Length { expected: out.len(), found });
                }
            }
        }
    }
}
