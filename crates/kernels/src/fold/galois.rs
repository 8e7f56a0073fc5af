//! The Galois ring Z_2^64\[Y\]/(Y^64 + Y^4 + Y^3 + Y + 1), coefficient i for Y^i.

const DEGREE: usize = super::GROUP;

/// An element of the Galois ring.
pub type Element = [u64; DEGREE];

/// A polynomial of degree at most 127: what a product of two elements is before it is reduced.
pub type Wide = [u64; 2 * DEGREE];

/// Two vectors of elements, of which those that are `stride` apart are multiplied.
pub struct Strided<'a> {
    /// From the first one on.
    pub a: &'a [Element],
    /// From the first one on.
    pub b: &'a [Element],
    /// At least 1.
    pub stride: usize,
}

/// A polynomial of degree at most 127, low and high coefficients, modulo Y^64 = -Y^4 - Y^3 - Y - 1.
#[inline(always)]
pub fn gr_reduce(low: &Element, high: &Element) -> Element {
    // high (Y^4 + Y^3 + Y + 1), with four places for what comes before and after
    let mut padded = [0u64; DEGREE + 8];
    padded[4..DEGREE + 4].copy_from_slice(high);
    let times = |k: usize| {
        let terms = [padded[k + 4], padded[k + 3], padded[k + 1], padded[k]];
        terms.into_iter().fold(0, u64::wrapping_add)
    };
    let mut out: Element = std::array::from_fn(|k| low[k].wrapping_sub(times(k)));
    for k in 0..4 {
        let again = times(DEGREE + k);
        for down in [0, 1, 3, 4] {
            out[k + down] = out[k + down].wrapping_add(again);
        }
    }
    out
}

/// Times the element with coefficients 0 and 1 of these bits, which are public.
#[inline(always)]
pub fn gr_times_bits(a: &Element, bits: u64) -> Element {
    // out[k] is the sum of a[k - i] over the ones i: read where it stands, so that sums stay in registers
    let mut padded = [0u64; 3 * DEGREE];
    padded[DEGREE..2 * DEGREE].copy_from_slice(a);
    let half = |first: usize| {
        let mut sum = [0u64; DEGREE];
        let mut rest = bits;
        while rest != 0 {
            let from = first + DEGREE - rest.trailing_zeros() as usize;
            for (s, a) in sum.iter_mut().zip(&padded[from..from + DEGREE]) {
                *s = s.wrapping_add(*a);
            }
            rest &= rest - 1;
        }
        sum
    };
    gr_reduce(&half(0), &half(DEGREE))
}
