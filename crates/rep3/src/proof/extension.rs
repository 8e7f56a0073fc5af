//! What statements are combined over.

use super::batch::{Batch, Role, Statements, Weights};
use crate::price::proofs::Shape;
use privet_kernels::Device;
use privet_prg::Prg;
use std::borrow::Cow;

/// GF(2^64), or two Galois rings of degree 32 over Z_2^64 side by side. The *exceptional set* are the elements with coefficients 0
/// and 1: the difference of any two is a unit, or a unit of one ring and 0 in the other.
pub(super) trait Extension: Copy + Send + Sync + 'static {
    /// 0.
    const ZERO: Self;
    /// The coefficients of 1, an element of the exceptional set.
    const ONE: u64;
    /// Bytes on the wire.
    const BYTES: usize;
    /// What the folds of words make of columns at one pair of points.
    type Folded: Default + Send;
    /// What joins the folded words.
    type Joining: Joining<Self> + Send;

    /// The element of the exceptional set with these coefficients, a bit each.
    fn embed(bits: u64) -> Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    /// All items times the element of the exceptional set with these coefficients, which is public.
    fn times(device: &dyn Device, items: &mut [Self], bits: u64);
    /// Append [`Extension::BYTES`] bytes.
    fn put(&self, out: &mut Vec<u8>);
    /// Read [`Extension::BYTES`] bytes; every string is an element.
    fn get(bytes: &[u8]) -> Self;
    /// So many uniform elements.
    fn draw(prg: &mut Prg, n: usize) -> Vec<Self>;

    /// Values of the first fold's polynomial, for the prover's columns.
    fn first_message(device: &dyn Device, batches: &[Batch], weights: &Weights) -> Vec<Self>;
    /// Values of the second fold's polynomial, where the first fold was at `first`. What the first fold makes of words takes as much memory
    /// as they do. Of ring elements it is kept in `folded`. Of words of bits it is made a piece at a time, and again for the fold itself. Of
    /// numbers, where it is an eighth of them, the prover keeps what is returned: left factors with their weights, and right ones.
    fn second_message(
        device: &dyn Device,
        batches: &[Batch],
        weights: &Weights,
        first: &[u64],
        folded: &mut Self::Folded,
    ) -> (Vec<Self>, [Vec<Self>; 2]);
    /// What a party has of the left factors after both folds of words, at these two points, every item times its weight. `folded` has what
    /// is made of columns by now; where all three proofs are at these points, by the party's other roles too.
    fn words_left(
        device: &dyn Device,
        batches: &[Batch],
        weights: &Weights,
        points: [&[u64]; 2],
        folded: &mut Self::Folded,
    ) -> Vec<Self>;
    /// The right factors after both folds of words.
    fn words_right(
        device: &dyn Device,
        batches: &[Batch],
        points: [&[u64]; 2],
        folded: &mut Self::Folded,
    ) -> Vec<Self>;
    /// The combination of the batches' `s` columns: every word times its coefficient.
    fn combine(device: &dyn Device, batches: &[Batch], weights: &Weights) -> Self;
    /// The inner product.
    fn inner(device: &dyn Device, left: &[Self], right: &[Self]) -> Self;
    /// Values of `sum over groups of left_g right_g`, groups of 2^vars items; not the first one, which nobody is told.
    fn message(device: &dyn Device, left: &[Self], right: &[Self], vars: u32) -> Vec<Self>;
    /// Groups of 2^(r.len()) items as polynomials, at the point `r`.
    fn fold(device: &dyn Device, items: &[Self], r: &[u64]) -> Vec<Self>;
}

/// Items that join the folded words: factors of products, which are combined in another way, the same in all three proofs.
pub(super) trait Joining<E: Extension> {
    /// Both factors, as far as the party has them that is this in a proof.
    fn factors(&self, role: Role) -> [Cow<'_, [E]>; 2];
    /// The prover's [`Extension::message`], where these are all items.
    fn message(&self, device: &dyn Device, vars: u32) -> Vec<E>;
    /// What a verifier with these statements adds by itself, and takes off its share of the claim.
    fn sum(&self, device: &dyn Device, statements: &Statements) -> E;
    /// Whether the items of fold `k` of a proof with this shape are these, and no others.
    fn are_items(&self, k: usize, shape: &Shape) -> bool;
    /// Whether fold `k` of a proof with this shape is one that all three have in common.
    fn folds_in_common(&self, k: usize, shape: &Shape) -> bool;
    /// Variables of fold `k`, if it is one that all three proofs have in common.
    fn common_vars(&self, k: usize) -> Option<u32>;
    /// Go on, for all three proofs, with the items of the next fold that they have in common, at this point.
    fn fold(&mut self, device: &dyn Device, r: &[u64]);
}

/// Nothing joins the words of bits.
pub(super) struct Nothing;

impl<E: Extension> Joining<E> for Nothing {
    fn factors(&self, _: Role) -> [Cow<'_, [E]>; 2] {
        [(&[]).into(), (&[]).into()]
    }

    fn message(&self, _: &dyn Device, _: u32) -> Vec<E> {
        unreachable!("these are never all items")
    }

    fn sum(&self, _: &dyn Device, _: &Statements) -> E {
        E::ZERO
    }

    fn are_items(&self, _: usize, _: &Shape) -> bool {
        false
    }

    fn folds_in_common(&self, _: usize, _: &Shape) -> bool {
        false
    }

    fn common_vars(&self, _: usize) -> Option<u32> {
        None
    }

    fn fold(&mut self, _: &dyn Device, _: &[u64]) {}
}
