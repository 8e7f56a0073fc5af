//! Folds of words of bits, prepared for many pieces of them. With AVX-512 both folds are made as one; elsewhere one after the other.

use super::{FoldPath, portable};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
use crate::fold::{GROUP, LANES_TWICE, SECOND_VARS, WordTerms, Words, points};

/// The first fold alone.
enum First {
    /// The basis.
    Portable(Box<[u64; GROUP]>),
    /// Sums of four elements of the basis, for look-ups in registers.
    #[cfg(target_arch = "x86_64")]
    Avx2(Box<avx2::Tables>),
}

impl First {
    /// On this path, or on a slower one of this machine.
    fn new(path: FoldPath, basis: &[u64; GROUP]) -> First {
        match path {
            #[cfg(target_arch = "x86_64")]
            FoldPath::Avx2 => First::Avx2(Box::new(avx2::tables(basis))),
            _ => First::Portable(Box::new(*basis)),
        }
    }

    /// For every group g of 64 words and every lane i, in this order, append `sum over l of basis_l (bit i of word l)`, times `s_g Y^i`
    /// where there are weights.
    fn append(&self, words: Words, weights: Option<&[u64]>, out: &mut Vec<u64>) {
        out.reserve(words.len().next_multiple_of(GROUP));
        match self {
            First::Portable(basis) => portable::words_fold(words, basis, weights, out),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: available, as whoever chose the path checked.
            First::Avx2(tables) => unsafe { avx2::words_fold(words, tables, weights, out) },
        }
    }
}

/// One fold after the other.
pub struct Steps {
    path: FoldPath,
    first: First,
}

impl Steps {
    fn new(path: FoldPath, basis: &[u64; GROUP]) -> Box<Steps> {
        Box::new(Steps { path, first: First::new(path, basis) })
    }
}

/// Words whose lanes are made at a time where a fold comes after the other: 128 KiB.
const PIECE: usize = 64 * GROUP;

/// Two folds of words.
pub enum WordsFoldTwice {
    /// The first fold, and the second basis.
    Steps(Box<Steps>, [u64; LANES_TWICE]),
    /// Bit matrices for both, made where they can be used alone.
    #[cfg(target_arch = "x86_64")]
    Avx512(Box<avx512::TwiceMatrices>),
}

impl WordsFoldTwice {
    /// `path` is one of this machine's.
    pub(super) fn new(path: FoldPath, first: &[u64; GROUP], second: &[u64; LANES_TWICE]) -> WordsFoldTwice {
        match path {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: available, as the caller says.
            FoldPath::Avx512 => WordsFoldTwice::Avx512(unsafe { avx512::twice_matrices(first, second) }),
            path => WordsFoldTwice::Steps(Steps::new(path, first), *second),
        }
    }

    /// For every group of 64 words and every sixteen lanes of it, in this order, append `sum over i of second_i sum over l of first_l (bit i of
    /// these lanes of word l)` to `out`.
    pub fn append(&self, words: Words, out: &mut Vec<u64>) {
        out.reserve(words.len().div_ceil(GROUP) * (GROUP / LANES_TWICE));
        match self {
            WordsFoldTwice::Steps(steps, second) => {
                let mut lanes = vec![];
                for start in (0..words.len()).step_by(PIECE) {
                    lanes.clear();
                    steps.first.append(words.part(start, PIECE), None, &mut lanes);
                    let at = out.len();
                    out.resize(at + lanes.len() / LANES_TWICE, 0);
                    steps.path.field_fold(&lanes, second, &mut out[at..]);
                }
            }
            #[cfg(target_arch = "x86_64")]
            // SAFETY: available, as whoever made it checked.
            WordsFoldTwice::Avx512(matrices) => unsafe { avx512::words_fold_twice(words, matrices, out) },
        }
    }
}

/// Values of the second fold of words.
pub enum SecondValues {
    /// The first fold.
    Steps(Box<Steps>),
    /// Bit matrices for the first fold, made where they can be used alone.
    #[cfg(target_arch = "x86_64")]
    Avx512(Box<avx512::SecondMatrices>),
}

impl SecondValues {
    /// `path` is one of this machine's.
    pub(super) fn new(path: FoldPath, basis: &[u64; GROUP]) -> SecondValues {
        match path {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: available, as the caller says.
            FoldPath::Avx512 => SecondValues::Avx512(unsafe { avx512::second_matrices(basis) }),
            path => SecondValues::Steps(Steps::new(path, basis)),
        }
    }

    /// Add to `sums` (81 elements of GF(2^64)) the values of `sum over groups g of words and sixteen lanes of u v`, of all terms of all batches:
    /// polynomials in 4 variables. The coefficient of `v` for lane i is `sum over l of basis_l (bit i of word l)`, that of `u` the same times
    /// `s_g Y^i`.
    pub fn add(&self, batches: &[WordTerms], sums: &mut [u64]) {
        assert_eq!(sums.len(), points(SECOND_VARS), "number of sums");
        assert!(batches.iter().all(WordTerms::is_even), "number of words or weights");
        match self {
            SecondValues::Steps(steps) => {
                let (mut left, mut right) = (vec![], vec![]);
                let all = batches.iter().flat_map(|b| b.terms.iter().map(|(u, v)| (*u, *v, b.weights)));
                for (u, v, weights) in all {
                    for (i, s) in weights.chunks(PIECE / GROUP).enumerate() {
                        let (u, v) = (u.part(i * PIECE, PIECE), v.part(i * PIECE, PIECE));
                        left.clear();
                        right.clear();
                        steps.first.append(u, Some(s), &mut left);
                        steps.first.append(v, None, &mut right);
                        steps.path.field_message(&left, &right, SECOND_VARS, sums);
                    }
                }
            }
            #[cfg(target_arch = "x86_64")]
            // SAFETY: available, as whoever made it checked.
            SecondValues::Avx512(matrices) => unsafe { avx512::second_values(batches, matrices, sums) },
        }
    }
}
