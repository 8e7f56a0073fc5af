//! Elements as planes of bits, and back: bit i of word j of a plane is that of element `64 j + i`, zeros past the last.

use privet_kernels::CpuCap;
use privet_kernels::bits::cpu::BitsPath;
use privet_prg::Wiped;
use std::sync::OnceLock;

/// A bit of every element: XORed shares, or a party's own.
pub(crate) type Plane = Vec<u64>;

/// Words of a plane.
pub(crate) const fn words(n: usize) -> usize {
    n.div_ceil(64)
}

/// Several planes of the same elements.
pub(crate) struct Planes {
    each: usize,
    words: Wiped<u64>,
}

impl Planes {
    /// The lowest `count` bits of every element, from the lowest.
    pub fn of(values: &[u64], count: u32) -> Planes {
        let mut words = Wiped::zeros(count as usize * words(values.len()));
        split(values, &mut words);
        Planes { each: self::words(values.len()), words }
    }

    /// Plane i.
    pub fn get(&self, i: usize) -> &[u64] {
        &self.words[i * self.each..][..self.each]
    }
}

/// As many planes of elements as `out` has room for, from the lowest bit.
pub(crate) fn split(values: &[u64], out: &mut [u64]) {
    static PATH: OnceLock<BitsPath> = OnceLock::new();
    const PLACES: [usize; 64] = {
        let mut places = [0; 64];
        let mut i = 0;
        while i < 64 {
            places[i] = i;
            i += 1;
        }
        places
    };
    if values.is_empty() {
        return;
    }
    let path = PATH.get_or_init(|| BitsPath::detect(CpuCap::from_env().unwrap_or_else(|e| panic!("{e}"))));
    path.planes(values, &PLACES[..out.len() / words(values.len())], out);
}

/// Bit `at` of every element.
pub(crate) fn plane(values: &[u64], at: u32) -> Plane {
    let bits = |values: &[u64]| values.iter().enumerate().fold(0, |word, (i, v)| word | (v >> at & 1) << i);
    values.chunks(64).map(bits).collect()
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

/// The complement of each bit of n elements.
pub(crate) fn not(a: &[u64], n: usize) -> Plane {
    let mut out: Plane = a.iter().map(|a| !a).collect();
    tidy(&mut out, n);
    out
}

/// Zeros past the last of n elements.
pub(crate) fn tidy(plane: &mut [u64], n: usize) {
    if let (Some(last), true) = (plane.last_mut(), !n.is_multiple_of(64)) {
        *last &= (1 << (n % 64)) - 1;
    }
}

/// Exchanges a and b where the bit of `by` is 1.
#[inline(always)]
pub(crate) fn swap(a: &mut u64, b: &mut u64, by: u64) {
    let difference = (*a ^ *b) & by;
    *a ^= difference;
    *b ^= difference;
}

/// Of the words of some entries that at places `1, 2, ...` of a number's bits: the entry of the number, bit by bit.
#[inline(always)]
pub(crate) fn select<const BITS: usize>(mut entries: [u64; 8], number: [u64; BITS]) -> u64 {
    for (i, bit) in number.into_iter().enumerate() {
        for j in 0..(1 << (BITS - 1 - i)) {
            entries[j] = entries[2 * j] ^ (entries[2 * j] ^ entries[2 * j + 1]) & bit;
        }
    }
    entries[0]
}
