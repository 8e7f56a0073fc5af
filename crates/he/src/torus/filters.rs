//! Weights as the server keeps them, and whether their norms are within the bound that parameters are for.

use super::layer::Shape;
use privet_ring::Ring;
use thiserror::Error;
use zeroize::Zeroizing;

/// Weights whose norm exceeds the bound that the parameters are for: hints of them would tell the client the weights.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "the weights of an output exceed the norm 2^{norm_bits} that these parameters are for; take parameters for a larger one"
)]
pub struct TooHeavy {
    /// log2 of the bound.
    pub norm_bits: u32,
}

/// The weights of a layer, in the layout's order: signed integers in as few bytes as the public bound of their norms takes. Hints,
/// products and their transforms are made of them. Wiped on drop.
pub struct Filters(Words);

enum Words {
    Short(Zeroizing<Vec<i32>>),
    Long(Zeroizing<Vec<i64>>),
}

impl Filters {
    /// Elements of the ring, of filters with a norm of at most 2^`norm_bits`. Those that are too large to have one stay so, and
    /// [`super::TorusLayer::hint`] refuses them.
    pub fn new(ring: Ring, norm_bits: u32, w: &[u64]) -> Filters {
        let signed = w.iter().map(|w| ring.signed(*w));
        Filters(if norm_bits < i32::BITS - 1 {
            let [least, most] = [i32::MIN, i32::MAX].map(i64::from);
            Words::Short(Zeroizing::new(signed.map(|w| w.clamp(least, most) as i32).collect()))
        } else {
            Words::Long(Zeroizing::new(signed.collect()))
        })
    }

    /// How many.
    pub fn len(&self) -> usize {
        match &self.0 {
            Words::Short(words) => words.len(),
            Words::Long(words) => words.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// In two's complement of 64 bits.
    pub(super) fn signed(&self) -> Zeroizing<Vec<u64>> {
        Zeroizing::new(match &self.0 {
            Words::Short(words) => words.iter().map(|w| i64::from(*w) as u64).collect(),
            Words::Long(words) => words.iter().map(|w| *w as u64).collect(),
        })
    }

    /// As elements of a ring.
    pub(super) fn elements(&self, ring: Ring) -> Zeroizing<Vec<u64>> {
        let mut elements = self.signed();
        elements.iter_mut().for_each(|w| *w = ring.wrap(*w));
        elements
    }
}

impl std::fmt::Debug for Filters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Filters(..)")
    }
}

/// Whether each packed filter's Euclidean norm is within the bound; no early end, so that only the answer tells anything.
pub(super) fn within_norm(s: &Shape, signed: &[u64]) -> Result<(), TooHeavy> {
    let (b, norm_bits) = (s.layout.blocks(), s.parameters.norm_bits());
    // 2^12 polynomials of 2^12 squares below 2^104 are no more than 2^128
    let coarse = norm_bits.saturating_sub(52).min(64);
    let most = (norm_bits - coarse.min(norm_bits)).min(63);
    let squares_of = |poly: &[u64]| {
        let sizes = poly.iter().map(|w| (*w as i64).unsigned_abs());
        if norm_bits < 31 {
            // as sizes are; one that is too large counts as 2^62
            let size = |size: u64| (size & u64::from(u32::MAX)) | (size >> 32).min(1) << 31;
            return u128::from(sizes.fold(0u64, |sum, s| sum.saturating_add(size(s) * size(s))));
        }
        // rounded up where it is coarse
        let size = |size: u64| (u128::from(size) + (1u128 << coarse) - 1) >> coarse;
        sizes.fold(0u128, |sum, s| sum.saturating_add(size(s) * size(s)))
    };
    let heavy = |filter: usize| {
        let mut poly = Zeroizing::new(vec![0; s.parameters.degree()]);
        let mut squares = 0u128;
        for input in 0..b.inputs {
            poly.fill(0);
            s.layout.pack_weights(filter * b.inputs + input, signed, &mut poly);
            squares = squares.saturating_add(squares_of(&poly));
        }
        u32::from(squares > 1u128 << (2 * most))
    };
    let heavy = s.context.each(b.groups * b.outputs, heavy).iter().fold(0, |any, one| any | one);
    if heavy == 0 { Ok(()) } else { Err(TooHeavy { norm_bits }) }
}
