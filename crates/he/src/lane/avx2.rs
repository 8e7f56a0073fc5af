use super::{LIMB, Lane, Order};
use crate::word::Factor;
use std::arch::x86_64::*;

/// Four words, multiplied in double precision with fused multiply-add.
///
/// Its methods are inlined into [`super::dispatch`]'s function for this processor, which alone makes values of it.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// Safety: the processor has AVX2 and FMA.
    pub(super) unsafe fn new() -> Avx2 {
        Avx2(())
    }

    /// Words below 2^52 as doubles, exact: 2^52 with the word for its mantissa, less 2^52.
    #[inline(always)]
    fn double(self, words: __m256i) -> __m256d {
        unsafe {
            let one = _mm256_set1_pd(TWO_52);
            _mm256_sub_pd(_mm256_or_pd(_mm256_castsi256_pd(words), one), one)
        }
    }

    /// Both lower halves, both upper halves. No closure: one would not be compiled for AVX2.
    #[inline(always)]
    fn halves(self, a: __m256i, b: __m256i) -> (__m256i, __m256i) {
        unsafe { (_mm256_permute2x128_si256::<0x20>(a, b), _mm256_permute2x128_si256::<0x31>(a, b)) }
    }

    /// Both even words of each half, both odd ones.
    #[inline(always)]
    fn interleaved(self, a: __m256i, b: __m256i) -> (__m256i, __m256i) {
        unsafe { (_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)) }
    }
}

const TWO_52: f64 = (1u64 << LIMB) as f64;

// SAFETY of every block: a value of this type exists only where the processor has the instructions, and slices are
// checked for their four words.
impl Lane for Avx2 {
    type V = __m256i;
    const WIDTH: usize = 4;

    #[inline(always)]
    fn splat(self, word: u64) -> __m256i {
        unsafe { _mm256_set1_epi64x(word as i64) }
    }

    #[inline(always)]
    fn load(self, words: &[u64]) -> __m256i {
        let words: &[u64; 4] = words.first_chunk().expect("four words");
        unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, words: &mut [u64], v: __m256i) {
        let words: &mut [u64; 4] = words.first_chunk_mut().expect("four words");
        unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), v) }
    }

    #[inline(always)]
    fn spread(self, words: &[u64], t: usize) -> __m256i {
        if t == 1 {
            return self.load(words);
        }
        let words: &[u64; 2] = words.first_chunk().expect("two words");
        unsafe {
            let two = _mm256_castsi128_si256(_mm_loadu_si128(words.as_ptr().cast()));
            _mm256_permute4x64_epi64::<0b01_01_00_00>(two)
        }
    }

    #[inline(always)]
    fn regroup(self, from: Order, to: Order, a: __m256i, b: __m256i) -> (__m256i, __m256i) {
        match (from, to) {
            (Order::Memory, Order::Pairs(2)) | (Order::Pairs(2), Order::Memory) => self.halves(a, b),
            (Order::Pairs(2), Order::Pairs(1)) | (Order::Pairs(1), Order::Pairs(2)) => self.interleaved(a, b),
            (Order::Memory, Order::Pairs(1)) => {
                let (a, b) = self.halves(a, b);
                self.interleaved(a, b)
            }
            (Order::Pairs(1), Order::Memory) => {
                let (a, b) = self.interleaved(a, b);
                self.halves(a, b)
            }
            _ => panic!("no transform goes between these orders"),
        }
    }

    #[inline(always)]
    fn add(self, a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_add_epi64(a, b) }
    }

    #[inline(always)]
    fn sub(self, a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_sub_epi64(a, b) }
    }

    #[inline(always)]
    fn less(self, a: __m256i, bound: __m256i) -> __m256i {
        unsafe {
            let d = _mm256_castsi256_pd(_mm256_sub_epi64(a, bound));
            _mm256_castpd_si256(_mm256_blendv_pd(d, _mm256_castsi256_pd(a), d))
        }
    }

    #[inline(always)]
    fn low(self, a: __m256i) -> __m256i {
        unsafe { _mm256_and_si256(a, _mm256_set1_epi64x((1 << LIMB) - 1)) }
    }

    #[inline(always)]
    fn high(self, a: __m256i) -> __m256i {
        unsafe { _mm256_srli_epi64::<{ LIMB as i32 }>(a) }
    }

    /// The quotient is estimated as c = round(x quotient / 2^52). x factor / p - c lies in (-1, 2): the product in
    /// double precision is off by at most 1/2, rounding by 1/2, Shoup's quotient by less than 1 from below. With h + l
    /// = x factor exactly (fused multiply-add), h - c p is an integer below 2^53, so nothing else is rounded, and
    /// x factor - c p + p lies in (0, 3 p).
    #[inline(always)]
    fn times(self, x: __m256i, factor: Factor<__m256i>, p: __m256i) -> __m256i {
        unsafe {
            const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
            let (x, w, prime) = (self.double(x), self.double(factor.value), self.double(p));
            let ratio = _mm256_mul_pd(self.double(factor.quotient), _mm256_set1_pd(1.0 / TWO_52));
            let c = _mm256_round_pd::<NEAREST>(_mm256_mul_pd(x, ratio));
            let h = _mm256_mul_pd(x, w);
            let l = _mm256_fmsub_pd(x, w, h);
            let r = _mm256_add_pd(_mm256_fnmadd_pd(c, prime, h), l);
            let shifted = _mm256_add_pd(r, _mm256_add_pd(prime, _mm256_set1_pd(TWO_52)));
            let words = self.low(_mm256_castpd_si256(shifted));
            self.less(words, _mm256_add_epi64(p, p))
        }
    }

    /// Products of halves of 26 bits, which 32-bit multipliers take.
    #[inline(always)]
    fn multiply_add(self, (low, high): (__m256i, __m256i), x: __m256i, y: __m256i) -> (__m256i, __m256i) {
        unsafe {
            let half = _mm256_set1_epi64x((1 << 26) - 1);
            let (x0, x1) = (_mm256_and_si256(x, half), _mm256_srli_epi64::<26>(x));
            let (y0, y1) = (_mm256_and_si256(y, half), _mm256_srli_epi64::<26>(y));
            let middle = _mm256_add_epi64(_mm256_mul_epu32(x0, y1), _mm256_mul_epu32(x1, y0));
            let bottom = _mm256_add_epi64(
                _mm256_mul_epu32(x0, y0),
                _mm256_slli_epi64::<26>(_mm256_and_si256(middle, half)),
            );
            let top = _mm256_add_epi64(_mm256_mul_epu32(x1, y1), _mm256_srli_epi64::<26>(middle));
            let top = _mm256_add_epi64(top, self.high(bottom));
            (_mm256_add_epi64(low, self.low(bottom)), _mm256_add_epi64(high, top))
        }
    }
}
