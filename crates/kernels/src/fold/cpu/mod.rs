//! The paths on the CPU. Everything but weights, bases and lengths is secret: never branched on, never an index.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod folds;
#[cfg(target_arch = "x86_64")]
mod pieces;
mod portable;
#[cfg(target_arch = "x86_64")]
mod products;
mod words;

use super::{
    Chosen, Element, GROUP, LANES_TWICE, NUMBER_GROUP, NUMBER_VARS, NumberTerms, Powers, Strided, WORD_VARS,
    Wide, WordTerms, number_weights, points,
};
use crate::CpuCap;
use std::fmt;
pub use words::{SecondValues, WordsFoldTwice};

/// Which implementation runs; all give the same words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FoldPath {
    /// Integer multiplications; runs anywhere.
    Portable,
    /// Carry-less multiplications of single words, and 256-bit registers.
    Avx2,
    /// Carry-less multiplications and bit matrices on 512-bit registers.
    Avx512,
}

/// The same function on the path: of this machine's, as is checked.
macro_rules! on_path {
    ($path:expr, $function:ident($($argument:expr),*)) => {
        match $path.checked() {
            FoldPath::Portable => portable::$function($($argument),*),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: available, as just checked.
            FoldPath::Avx2 => unsafe { avx2::$function($($argument),*) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: available, as just checked.
            FoldPath::Avx512 => unsafe { avx512::$function($($argument),*) },
            #[cfg(not(target_arch = "x86_64"))]
            _ => unreachable!("not available"),
        }
    };
}

impl FoldPath {
    /// Every path, slowest first.
    pub const ALL: [FoldPath; 3] = [FoldPath::Portable, FoldPath::Avx2, FoldPath::Avx512];

    /// Whether this machine can run the path.
    pub fn available(self) -> bool {
        match self {
            FoldPath::Portable => true,
            #[cfg(target_arch = "x86_64")]
            FoldPath::Avx2 => avx2::available(),
            #[cfg(target_arch = "x86_64")]
            FoldPath::Avx512 => avx512::available(),
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// The fastest path of this machine within `cap`.
    pub fn detect(cap: CpuCap) -> FoldPath {
        let allowed = |p: &FoldPath| p.least_cap() <= cap && p.available();
        FoldPath::ALL.into_iter().rfind(allowed).unwrap_or(FoldPath::Portable)
    }

    fn least_cap(self) -> CpuCap {
        match self {
            FoldPath::Portable => CpuCap::Portable,
            FoldPath::Avx2 => CpuCap::Avx2,
            FoldPath::Avx512 => CpuCap::Avx512,
        }
    }

    /// Itself. Panics where this machine lacks it: its instructions would be undefined behaviour.
    fn checked(self) -> FoldPath {
        assert!(self.available(), "the CPU path {self} is not available here; take FoldPath::detect");
        self
    }

    /// Add to `sums` (729 elements of GF(2^64)) the values of `sum over groups g of s_g sum over terms of u_g v_g` of all batches,
    /// where group g are words 64 g .. 64 g + 63 of a term's two operands (0 after the last) as polynomials in 6 variables
    /// over GF(2) lane by lane, and a word is then an element of GF(2^64).
    pub fn words_message(self, batches: &[WordTerms], sums: &mut [u64]) {
        assert_eq!(sums.len(), points(WORD_VARS), "number of sums");
        assert!(batches.iter().all(WordTerms::is_even), "number of words or weights");
        on_path!(self, words_message(batches, sums));
    }

    /// A fold of words with the first basis, and of sixteen lanes of what that makes with the second.
    pub fn words_fold_twice(self, first: &[u64; GROUP], second: &[u64; LANES_TWICE]) -> WordsFoldTwice {
        WordsFoldTwice::new(self.checked(), first, second)
    }

    /// The values of the second fold, where the first one has this basis.
    pub fn second_values(self, basis: &[u64; GROUP]) -> SecondValues {
        SecondValues::new(self.checked(), basis)
    }

    /// Add to `sums` (27 elements of GF(2^64)) the values of `sum over groups g of s_g sum over terms of u_g v_g` of all batches, where
    /// u_g are the numbers of group g and v_g their bits, as polynomials in 3 variables.
    pub fn numbers_message(self, batches: &[NumberTerms], sums: &mut [u64]) {
        assert_eq!(sums.len(), points(NUMBER_VARS), "number of sums");
        for NumberTerms { numbers, terms, weights } in batches {
            assert_eq!(number_weights(*numbers), weights.len(), "number of weights");
            assert!(terms.iter().all(|term| term.has(*numbers)), "number of numbers");
        }
        on_path!(self, numbers_message(batches, sums));
    }

    /// For every group g of numbers, 0 after the last, append `sum over l of basis_l (number l)` in GF(2^64), times `s_g` where there are
    /// weights.
    pub fn numbers_fold(
        self,
        numbers: &[u64],
        basis: &[u64; NUMBER_GROUP],
        weights: Option<&[u64]>,
        out: &mut Vec<u64>,
    ) {
        assert!(weights.is_none_or(|s| s.len() == number_weights(numbers.len())), "number of weights");
        out.reserve(number_weights(numbers.len()));
        on_path!(self, numbers_fold(numbers, basis, weights, out));
    }

    /// For every group of numbers that are bits, 64 in a word, append `sum over l of basis_l (bit l)`.
    pub fn bits_fold(self, bits: &[u64], basis: &[u64; NUMBER_GROUP], out: &mut Vec<u64>) {
        out.reserve(NUMBER_GROUP * bits.len());
        on_path!(self, bits_fold(bits, basis, out));
    }

    /// Add to `sums[l]` the sum over groups of `s_g` times number l of the group, in GF(2^64). To every number those of `more` are added
    /// before, where their bit is 1.
    pub fn numbers_combine(
        self,
        numbers: &[u64],
        more: &[Chosen],
        weights: &[u64],
        sums: &mut [u64; NUMBER_GROUP],
    ) {
        assert_eq!(number_weights(numbers.len()), weights.len(), "number of weights");
        assert!(more.iter().all(|term| term.has(numbers.len())), "number of numbers");
        on_path!(self, numbers_combine(numbers, more, weights, sums));
    }

    /// Every item times its weight, in GF(2^64).
    pub fn field_weigh(self, items: &mut [u64], weights: &[u64]) {
        assert_eq!(items.len(), weights.len(), "number of weights");
        on_path!(self, field_weigh(items, weights));
    }

    /// Add to `sums[l]` the sum over groups of `s_g` times word l of the group, in GF(2^64).
    pub fn words_combine(self, words: &[u64], weights: &[u64], sums: &mut [u64; GROUP]) {
        assert_eq!(words.len().div_ceil(GROUP), weights.len(), "number of weights");
        on_path!(self, words_combine(words, weights, sums));
    }

    /// Add to `sums` (3^vars) the values of `sum over groups of u_g v_g`, groups of 2^vars consecutive items (0 after
    /// the last), in GF(2^64). Without variables it is the inner product.
    pub fn field_message(self, u: &[u64], v: &[u64], vars: u32, sums: &mut [u64]) {
        assert_eq!(sums.len(), points(vars), "number of sums");
        assert_eq!(u.len(), v.len(), "number of items");
        on_path!(self, field_message(u, v, vars, sums));
    }

    /// For every group of as many items as `basis` has, their inner product with it, in GF(2^64).
    pub fn field_fold(self, items: &[u64], basis: &[u64], out: &mut [u64]) {
        assert_eq!(out.len(), items.len().div_ceil(basis.len()), "number of items");
        on_path!(self, field_fold(items, basis, out));
    }

    /// The 3^vars values of `sum over terms of u_g v_g` over Z_2^64, for `groups` groups of 2^vars words (0 after the last),
    /// which start `stride` words apart. `each(first, values)` is called with the values of some points, `first` and those
    /// behind it, in order: those of all groups at a point, then at the next. There is at least one term, and no word that does
    /// not belong to a group or stand between two. `scratch` is for the next call, so that it need not clear memory.
    pub fn ring_values(
        self,
        terms: &[(&[u64], &[u64])],
        vars: u32,
        (groups, stride): (usize, usize),
        scratch: &mut Vec<u64>,
        each: &mut dyn FnMut(usize, &[u64]),
    ) {
        assert!(groups > 0 && !terms.is_empty(), "values of nothing");
        assert!(stride >= 1 << vars, "groups that overlap");
        for (u, v) in terms {
            assert!(u.len() == v.len() && u.len().div_ceil(stride) <= groups, "number of words");
        }
        on_path!(self, ring_values(terms, vars, (groups, stride), scratch, each));
    }

    /// Add to element p of the Galois ring the sum over rows r of the one with coefficients 0 and 1 of `bits[r]`, which are
    /// public, times the word of row r at position p. It stands at `r strides[0] + p strides[1]`; fastest where one stride is 1, and faster
    /// where no row has a coefficient from Y^48 on.
    pub fn rows_combine(self, words: &[u64], strides: [usize; 2], bits: &[u64], out: &mut [Element]) {
        let (Some(row), Some(position)) = (bits.len().checked_sub(1), out.len().checked_sub(1)) else {
            return;
        };
        assert!(row * strides[0] + position * strides[1] < words.len(), "number of words");
        on_path!(self, rows_combine(words, strides, bits, out));
    }

    /// Every element of the Galois ring times the one with coefficients 0 and 1 of its weight's bits. Weights are public.
    pub fn weigh(self, items: &mut [Element], weights: &[u64]) {
        assert_eq!(items.len(), weights.len(), "number of weights");
        on_path!(self, weigh(items, weights));
    }

    /// Append the value of every group of 2^(r.len()) consecutive items (0 after the last) as a polynomial over the Galois ring, with
    /// coefficient l for the product of the variables at the ones of l, where variable j is the element with coefficients 0
    /// and 1 of `r[j]`'s bits. The point is public.
    pub fn ring_fold(self, items: &[Element], r: &[u64], out: &mut Vec<Element>) {
        on_path!(self, ring_fold(items, r, out));
    }

    /// [`FoldPath::products`] of elements that need not stand side by side: for each sum the `groups` pairs of two vectors that are
    /// `stride` apart, from their first ones on; what is behind the last one is 0.
    pub fn products_of_some(self, operands: &[Strided], powers: Powers, groups: usize, sums: &mut [Wide]) {
        assert_eq!(operands.len(), sums.len(), "number of sums");
        assert!(operands.iter().all(|o| o.stride > 0), "a stride of nothing");
        debug_assert!(operands.iter().all(|o| powers.are_all_of(o.a) && powers.are_all_of(o.b)));
        if groups == 0 {
            return;
        }
        on_path!(self, products_of_some(operands, powers, groups, sums));
    }

    /// Add to every sum s the products of its `groups` pairs of elements as polynomials over Z_2^64: of `a[s * groups + g]` and
    /// `b[s * groups + g]`. No element has other coefficients than `powers` says; with AVX-512 it takes less time where these are few.
    pub fn products(self, a: &[Element], b: &[Element], powers: Powers, groups: usize, sums: &mut [Wide]) {
        assert!(a.len() == b.len() && a.len() == groups * sums.len(), "number of elements");
        debug_assert!(powers.are_all_of(a) && powers.are_all_of(b));
        if groups == 0 {
            return;
        }
        on_path!(self, products(a, b, powers, groups, sums));
    }
}

impl fmt::Display for FoldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FoldPath::Portable => "portable folds",
            FoldPath::Avx2 => "AVX2 and PCLMULQDQ",
            FoldPath::Avx512 => "VPCLMULQDQ-512",
        })
    }
}
