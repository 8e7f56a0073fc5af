//! Where matrices stand in polynomials, and what a product takes.
//!
//! With K columns a block: `X[i, j]` of a block of N / K rows is coefficient `i K + j`, and all of them are used. Output (i, c) of a block of
//! K columns of W is coefficient `i K + c` of an answer, and all of them are outputs.

use super::{DEGREE, WIDTH, noise, set, turn, wide_set};
use crate::layout::Matmul;
use crate::params::DISTANCE_BITS;
use crate::wire;
use privet_ring::Ring;
use std::ops::Range;

/// A product of matrices `[groups, m, k] x [groups, k, o]` modulo 2^k, and its packing. AGREEMENT class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GaloisLayout {
    pub(super) shape: Matmul,
    pub(super) ring: Ring,
    /// K.
    pub(super) width: usize,
}

/// What one direction of a product takes: bytes, transforms of a prime's N values, and products of so many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GaloisCost {
    /// Of operands, from the encryptor.
    pub operand_bytes: usize,
    /// Of answers, from the multiplier.
    pub answer_bytes: usize,
    /// Both sides'.
    pub transforms: usize,
    /// Both sides'.
    pub products: usize,
}

/// Products that take as long as one transform.
const PRODUCTS: usize = 6;
/// Values that are transformed in the time of a byte of a link of 1 Gbit/s, 8 ns.
const VALUES: usize = 5;

#[expect(clippy::integer_division_remainder_used, reason = "shapes are public")]
impl GaloisLayout {
    /// The packing that takes least for products modulo 2^k of any k-bit matrices. `calls` of them are within 2^-40 of answers that are made
    /// without W, together. None: the modulus is too small for this ring or for so much.
    pub fn plan(shape: Matmul, ring: Ring, calls: usize) -> Option<GaloisLayout> {
        let widths = (0..=WIDTH.trailing_zeros()).map(|log| 1 << log);
        let all = widths.map(|width| GaloisLayout { shape, ring, width });
        let fits = |l: &GaloisLayout| {
            noise::decrypts(l) && noise::distance_bits(l, l.answers() * DEGREE * calls) >= DISTANCE_BITS
        };
        all.filter(fits).min_by_key(|l| l.cost().weight())
    }

    /// Rows of a block.
    pub(super) fn rows(&self) -> usize {
        DEGREE / self.width
    }

    /// Blocks of rows of a group.
    pub(super) fn row_blocks(&self) -> usize {
        self.shape.m.div_ceil(self.rows())
    }

    /// Blocks of what is summed.
    pub(super) fn inner_blocks(&self) -> usize {
        self.shape.k.div_ceil(self.width)
    }

    /// Blocks of columns of outputs.
    pub(super) fn column_blocks(&self) -> usize {
        self.shape.o.div_ceil(self.width)
    }

    /// Polynomials of the operand: group by group, of a group by rows, then by what is summed.
    pub fn operands(&self) -> usize {
        self.shape.groups * self.row_blocks() * self.inner_blocks()
    }

    /// Answers: group by group, of a group by rows, then by columns.
    pub fn answers(&self) -> usize {
        self.shape.groups * self.row_blocks() * self.column_blocks()
    }

    /// Bytes of operands.
    pub fn operand_bytes(&self) -> usize {
        self.operands() * wire::poly_bytes(set(), None)
    }

    /// Bytes of answers: bodies of outputs alone, and whole masks.
    pub fn answer_bytes(&self) -> usize {
        let [body, mask] = [noise::body_bits(self.ring), noise::mask_bits(self.ring)];
        let bytes = |i: usize| wire::wide_bytes(body, self.outputs(i).count());
        self.answers() * wire::wide_bytes(mask, DEGREE) + (0..self.answers()).map(bytes).sum::<usize>()
    }

    /// What one direction takes.
    pub fn cost(&self) -> GaloisCost {
        let (q, wide) = (set().primes.len(), wide_set().primes.len());
        let (first, second) = (turn::keys_of(self.width, 0).count(), turn::keys_of(self.width, 1).count());
        let weights = self.width * self.shape.groups * self.inner_blocks() * self.column_blocks();
        let turned = first * self.operands();
        let again = second * self.answers() * self.inner_parts().count();
        // message and digits of an operand; a mask divided and its digits; an answer divided, re-randomised and read
        let transforms = self.operands() * (2 * q + q * wide)
            + weights * wide
            + again * (wide + q * wide)
            + self.answers() * (2 * wide + 3 * q);
        // each digit with both parts of a key, and turned; both parts with what stands for weights
        let products = (turned + again) * 2 * wide * (q + 1)
            + self.width * self.operands() * self.column_blocks() * 2 * wide;
        GaloisCost {
            operand_bytes: self.operand_bytes(),
            answer_bytes: self.answer_bytes(),
            transforms,
            products,
        }
    }

    /// Parts of the blocks of what is summed: of a part turned operands are in memory at a time, for all rows of a group.
    pub(super) fn inner_parts(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        /// Operands that are held with all their turns, each 4 MiB.
        const HELD: usize = 16;
        let (all, at_once) = (self.inner_blocks(), (HELD / self.row_blocks()).max(1));
        (0..all).step_by(at_once).map(move |first| first..(first + at_once).min(all))
    }

    /// The operand's polynomial of this number: its coefficients, in order.
    pub(super) fn pack(&self, number: usize, x: &[u64]) -> Vec<u64> {
        let Matmul { m, k, .. } = self.shape;
        let (inner, rest) = (number % self.inner_blocks(), number / self.inner_blocks());
        let (block, group) = (rest % self.row_blocks(), rest / self.row_blocks());
        let mut out = vec![0; DEGREE];
        let columns = inner * self.width..((inner + 1) * self.width).min(k);
        for row in block * self.rows()..((block + 1) * self.rows()).min(m) {
            let from = &x[(group * m + row) * k..][columns.clone()];
            out[(row - block * self.rows()) * self.width..][..from.len()].copy_from_slice(from);
        }
        out
    }

    /// For each coefficient of an answer that is an output: itself, and the output's place.
    pub(super) fn outputs(&self, answer: usize) -> impl Iterator<Item = (usize, usize)> {
        let Matmul { m, o, .. } = self.shape;
        let (column, rest) = (answer % self.column_blocks(), answer / self.column_blocks());
        let (block, group) = (rest % self.row_blocks(), rest / self.row_blocks());
        let (rows, width) = (self.rows(), self.width);
        let columns = column * width..((column + 1) * width).min(o);
        (block * rows..((block + 1) * rows).min(m)).flat_map(move |row| {
            let at = (row - block * rows) * width;
            columns.clone().map(move |c| (at + c - column * width, (group * m + row) * o + c))
        })
    }
}

impl GaloisCost {
    /// Values that are transformed, and others that take as long.
    #[expect(clippy::integer_division_remainder_used, reason = "shapes are public")]
    pub fn values(&self) -> usize {
        DEGREE * (self.transforms + self.products / PRODUCTS)
    }

    /// All of it, as bytes of a link of 1 Gbit/s.
    #[expect(clippy::integer_division_remainder_used, reason = "shapes are public")]
    fn weight(&self) -> usize {
        self.operand_bytes + self.answer_bytes + self.values() / VALUES
    }
}
