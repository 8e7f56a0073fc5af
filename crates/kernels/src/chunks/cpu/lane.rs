//! Words of a plane side by side in a register.

/// Some words of a plane.
pub(super) trait Lane: Copy {
    /// The first words of a slice.
    fn load(words: &[u64]) -> Self;
    /// To the first words of a slice.
    fn store(self, words: &mut [u64]);
    /// All bits alike.
    fn fill(bit: bool) -> Self;
    fn xor(self, b: Self) -> Self;
    fn and(self, b: Self) -> Self;
    fn or(self, b: Self) -> Self;
    /// Bit by bit, `one` where this is 1, else `zero`.
    fn pick(self, one: Self, zero: Self) -> Self;
    /// `(self & f) ^ g`.
    fn and_xor(self, f: Self, g: Self) -> Self;
}

impl Lane for u64 {
    #[inline(always)]
    fn load(words: &[u64]) -> u64 {
        words[0]
    }
    #[inline(always)]
    fn store(self, words: &mut [u64]) {
        words[0] = self;
    }
    #[inline(always)]
    fn fill(bit: bool) -> u64 {
        u64::from(bit).wrapping_neg()
    }
    #[inline(always)]
    fn xor(self, b: u64) -> u64 {
        self ^ b
    }
    #[inline(always)]
    fn and(self, b: u64) -> u64 {
        self & b
    }
    #[inline(always)]
    fn or(self, b: u64) -> u64 {
        self | b
    }
    #[inline(always)]
    fn pick(self, one: u64, zero: u64) -> u64 {
        self & (one ^ zero) ^ zero
    }
    #[inline(always)]
    fn and_xor(self, f: u64, g: u64) -> u64 {
        self & f ^ g
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    //! Only the functions with the same target features in [`super::super`] use these lanes, so the machine has them.
    use super::Lane;
    use std::arch::x86_64::*;

    /// Four words.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx2(__m256i);

    impl Avx2 {
        /// How many.
        pub(in super::super) const WORDS: usize = 4;
    }

    impl Lane for Avx2 {
        #[inline(always)]
        fn load(words: &[u64]) -> Avx2 {
            // SAFETY: four words; AVX2 as said above.
            Avx2(unsafe { _mm256_loadu_si256(words[..4].as_ptr().cast()) })
        }
        #[inline(always)]
        fn store(self, words: &mut [u64]) {
            // SAFETY: four words; AVX2 as said above.
            unsafe { _mm256_storeu_si256(words[..4].as_mut_ptr().cast(), self.0) }
        }
        #[inline(always)]
        fn fill(bit: bool) -> Avx2 {
            // SAFETY: AVX2 as said above.
            Avx2(unsafe { _mm256_set1_epi64x(-i64::from(bit)) })
        }
        #[inline(always)]
        fn xor(self, b: Avx2) -> Avx2 {
            // SAFETY: AVX2 as said above.
            Avx2(unsafe { _mm256_xor_si256(self.0, b.0) })
        }
        #[inline(always)]
        fn and(self, b: Avx2) -> Avx2 {
            // SAFETY: AVX2 as said above.
            Avx2(unsafe { _mm256_and_si256(self.0, b.0) })
        }
        #[inline(always)]
        fn or(self, b: Avx2) -> Avx2 {
            // SAFETY: AVX2 as said above.
            Avx2(unsafe { _mm256_or_si256(self.0, b.0) })
        }
        #[inline(always)]
        fn pick(self, one: Avx2, zero: Avx2) -> Avx2 {
            self.and(one.xor(zero)).xor(zero)
        }
        #[inline(always)]
        fn and_xor(self, f: Avx2, g: Avx2) -> Avx2 {
            self.and(f).xor(g)
        }
    }

    /// Eight words.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx512(__m512i);

    impl Lane for Avx512 {
        #[inline(always)]
        fn load(words: &[u64]) -> Avx512 {
            // SAFETY: eight words; AVX-512 as said above.
            Avx512(unsafe { _mm512_loadu_si512(words[..8].as_ptr().cast()) })
        }
        #[inline(always)]
        fn store(self, words: &mut [u64]) {
            // SAFETY: eight words; AVX-512 as said above.
            unsafe { _mm512_storeu_si512(words[..8].as_mut_ptr().cast(), self.0) }
        }
        #[inline(always)]
        fn fill(bit: bool) -> Avx512 {
            // SAFETY: AVX-512 as said above.
            Avx512(unsafe { _mm512_set1_epi64(-i64::from(bit)) })
        }
        #[inline(always)]
        fn xor(self, b: Avx512) -> Avx512 {
            // SAFETY: AVX-512 as said above.
            Avx512(unsafe { _mm512_xor_si512(self.0, b.0) })
        }
        #[inline(always)]
        fn and(self, b: Avx512) -> Avx512 {
            // SAFETY: AVX-512 as said above.
            Avx512(unsafe { _mm512_and_si512(self.0, b.0) })
        }
        #[inline(always)]
        fn or(self, b: Avx512) -> Avx512 {
            // SAFETY: AVX-512 as said above.
            Avx512(unsafe { _mm512_or_si512(self.0, b.0) })
        }
        #[inline(always)]
        fn pick(self, one: Avx512, zero: Avx512) -> Avx512 {
            // SAFETY: AVX-512 as said above.
            Avx512(unsafe { _mm512_ternarylogic_epi64::<0xca>(self.0, one.0, zero.0) })
        }
        #[inline(always)]
        fn and_xor(self, f: Avx512, g: Avx512) -> Avx512 {
            // SAFETY: AVX-512 as said above.
            Avx512(unsafe { _mm512_ternarylogic_epi64::<0x6a>(self.0, f.0, g.0) })
        }
    }
}
