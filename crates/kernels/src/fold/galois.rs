//! Two Galois rings side by side, R x R with R = Z_2^64\[Y\]/(Y^32 + Y^7 + Y^3 + Y^2 + 1). Coefficient k of the first one is word 2 k of
//! an element, that of the second one word 2 k + 1. So what does the same in both rings goes through all words alike.

const DEGREE: usize = super::GROUP;

/// Rings side by side.
pub const RINGS: usize = 2;

/// Coefficients of an element of one ring.
const OF_RING: usize = DEGREE / RINGS;

/// Of an element with coefficients 0 and 1 by its bits: those of each ring.
pub const RING_BITS: [u64; RINGS] = [0x5555_5555_5555_5555, 0xaaaa_aaaa_aaaa_aaaa];

/// Words between a coefficient and those that it is taken from where Y^32 = -Y^7 - Y^3 - Y^2 - 1 takes the place of Y^32.
pub(super) const DOWN: [usize; 4] = [0, RINGS * 2, RINGS * 3, RINGS * 7];

/// An element of both Galois rings.
pub type Element = [u64; DEGREE];

/// Polynomials of degree at most 63, side by side: what a product of two elements is before it is reduced.
pub type Wide = [u64; 2 * DEGREE];

/// Which coefficients of elements need not be 0. It is public: kernels do not look for zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Powers {
    /// All.
    All,
    /// Of each ring those of powers of Y below the 24th: the first 48 words of an element.
    Below24,
}

impl Powers {
    /// Whether elements have no others, for tests.
    pub(super) fn are_all_of(self, elements: &[Element]) -> bool {
        match self {
            Powers::All => true,
            Powers::Below24 => elements.iter().all(|element| element[48..].iter().all(|word| *word == 0)),
        }
    }
}

/// Two vectors of elements, of which those that are `stride` apart are multiplied.
pub struct Strided<'a> {
    /// From the first one on.
    pub a: &'a [Element],
    /// From the first one on.
    pub b: &'a [Element],
    /// At least 1.
    pub stride: usize,
}

/// Polynomials of degree at most 63, low and high coefficients, modulo Y^32 = -Y^7 - Y^3 - Y^2 - 1.
#[inline(always)]
pub fn gr_reduce(low: &Element, high: &Element) -> Element {
    const OVER: usize = DOWN[3];
    // high (Y^7 + Y^3 + Y^2 + 1), with room for what comes before and after
    let mut padded = [0u64; DEGREE + 2 * OVER];
    padded[OVER..DEGREE + OVER].copy_from_slice(high);
    let times = |k: usize| DOWN.into_iter().fold(0u64, |sum, down| sum.wrapping_add(padded[k + OVER - down]));
    let mut out: Element = std::array::from_fn(|k| low[k].wrapping_sub(times(k)));
    for k in 0..OVER {
        let again = times(DEGREE + k);
        for down in DOWN {
            out[k + down] = out[k + down].wrapping_add(again);
        }
    }
    out
}

/// Times the element with coefficients 0 and 1 of these bits, bit i for word i, which are public.
#[inline(always)]
pub fn gr_times_bits(a: &Element, bits: u64) -> Element {
    let (mut low, mut high) = ([0; DEGREE], [0; DEGREE]);
    for ring in 0..RINGS {
        // coefficient k is a sum of coefficients k - i over the ones i: read where they stand, so that sums stay in registers
        let mut padded = [0u64; 3 * OF_RING];
        padded[OF_RING..2 * OF_RING]
            .copy_from_slice(&std::array::from_fn::<_, OF_RING, _>(|k| a[RINGS * k + ring]));
        for (first, half) in [(0, &mut low), (OF_RING, &mut high)] {
            let mut sum = [0u64; OF_RING];
            let mut rest = (bits & RING_BITS[ring]) >> ring;
            while rest != 0 {
                let from = first + OF_RING - rest.trailing_zeros() as usize / RINGS;
                for (s, a) in sum.iter_mut().zip(&padded[from..from + OF_RING]) {
                    *s = s.wrapping_add(*a);
                }
                rest &= rest - 1;
            }
            sum.iter().enumerate().for_each(|(k, sum)| half[RINGS * k + ring] = *sum);
        }
    }
    gr_reduce(&low, &high)
}

#[cfg(test)]
mod tests {
    /// Y^(2^32) = Y, and Y^(2^16) + Y is a unit: the polynomial is irreducible modulo 2, by Rabin's test for degree 32 = 2^5. So R is a
    /// Galois ring.
    #[test]
    fn each_ring_is_a_galois_ring() {
        let product = |a: u64, b: u64| {
            let mut wide = super::super::clmul(a, b) as u64;
            for k in (32..63).rev() {
                let top = wide >> k & 1;
                wide ^= top << k ^ [0, 2, 3, 7].iter().fold(0, |sum, down| sum ^ top << (k - 32 + down));
            }
            wide
        };
        let square = |a| product(a, a);
        let half = (0..16).fold(2, |power, _| square(power));
        assert_eq!((0..16).fold(half, |power, _| square(power)), 2);
        // a^(2^32 - 2) a = 1
        let (a, mut inverse, mut s) = (half ^ 2, 1, half ^ 2);
        for _ in 1..32 {
            s = square(s);
            inverse = product(inverse, s);
        }
        assert_eq!(product(inverse, a), 1);
    }
}
