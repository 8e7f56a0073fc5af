//! Folding inner products over GF(2^64), and over two Galois rings side by side: the work of the proofs in `docs/rep3.md`, section 6.
//!
//! A group of 2^V items is a polynomial in V variables, `u(X) = sum over l of u_l X^l`, where `X^l` is the product of
//! the variables at the ones of l. The product of two such polynomials has degree 2 in each variable, so it is given
//! by its values where every variable is 0, 1 or infinity (there: the leading coefficient). [`points`] values, value
//! `sum over j of d_j 3^j` with digit d_j 0, 1 or 2 for 0, 1 or infinity in variable j. These points need nothing but
//! additions, so bits stay bits and ring elements ring elements: Karatsuba's method, one level a variable.

pub mod cpu;
mod field;
mod galois;
pub mod spec;
mod words;

pub use cpu::{FoldPath, SecondValues, WordsFoldTwice};
pub use field::{clmul, gf_mul, gf_reduce};
pub use galois::{Element, Powers, RING_BITS, RINGS, Strided, Wide, gr_reduce, gr_times_bits};
pub use words::{WordTerms, Words};

/// Variables of a group of words.
pub const WORD_VARS: u32 = 6;

/// Words of a group; also the lanes of a word.
pub const GROUP: usize = 64;

/// Variables of the second fold of words.
pub const SECOND_VARS: u32 = 4;

/// Lanes that it makes one item of.
pub const LANES_TWICE: usize = 1 << SECOND_VARS;

/// Variables of a group of numbers.
pub const NUMBER_VARS: u32 = 3;

/// Numbers of a group; also the groups of a block, which are 64 numbers. Group h of a block has its numbers h, 8 + h, .., 56 + h, so
/// that a register has a number of each.
pub const NUMBER_GROUP: usize = 8;

/// Numbers that count where a bit is 1.
#[derive(Clone, Copy, Debug)]
pub struct Chosen<'a> {
    /// A word each.
    pub numbers: &'a [u64],
    /// 64 to a word; the last word's other bits are 0.
    pub bits: &'a [u64],
}

impl Chosen<'_> {
    /// Whether there are so many numbers, and a bit for each.
    pub fn has(self, numbers: usize) -> bool {
        self.numbers.len() == numbers && self.bits.len() == numbers.div_ceil(GROUP)
    }
}

/// Sums of numbers that bits choose, and a weight for every group of them.
pub struct NumberTerms<'a> {
    /// Numbers of every term.
    pub numbers: usize,
    /// The terms.
    pub terms: Vec<Chosen<'a>>,
    /// Eight for every block; the last block need not be whole.
    pub weights: &'a [u64],
}

/// Weights of so many numbers.
pub const fn number_weights(numbers: usize) -> usize {
    NUMBER_GROUP * numbers.div_ceil(GROUP)
}

/// Values of a product of polynomials in `vars` variables: 3^vars.
pub const fn points(vars: u32) -> usize {
    3usize.pow(vars)
}

/// The point at which the product has the value `u_l v_l`: infinity in the variables at the ones of `l`, 0 elsewhere.
pub const fn diagonal(l: usize) -> usize {
    let (mut l, mut place, mut e) = (l, 1, 0);
    while l > 0 {
        e += 2 * place * (l & 1);
        (l, place) = (l >> 1, 3 * place);
    }
    e
}
