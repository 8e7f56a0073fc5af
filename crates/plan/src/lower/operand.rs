//! What a function alone reads of a product: more fraction bits than activations have, rounded by coins.
//!
//! A truncation to the nearest is off by half a unit in the last place of activations, and it compares. With [`FINER`] bits more, a number
//! that coins round is off by a quarter of that unit, or by 3/8 where a family's truncations within one unit take the coins' place.
//! So a function's result is nearer to that of the product itself, and nothing is compared. It depends on coins, as a
//! function's result does anyway.

use super::forms::{Emitter, Form};
use super::precision::RoundingMode;
use crate::functions::{MOST_FRACTION, Value};

/// Fraction bits beyond those of activations.
pub(super) const FINER: u32 = 2;

/// Low bits of a product that a function drops.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dropped {
    pub product: Form,
    pub bits: u32,
}

impl Dropped {
    /// Those beyond `frac` fraction bits of `x`, where one function reads it so many times and nothing else does.
    pub fn to(e: &Emitter<'_>, x: usize, frac: u32, reads: usize) -> Option<Dropped> {
        if e.is_parameter(x) || e.uses[x] != reads {
            return None;
        }
        let product = e.native(x);
        let bits = product.frac.checked_sub(frac)?;
        (bits > 0).then_some(Dropped { product, bits })
    }

    /// Those that leave [`FINER`] fraction bits more than `f`. None where the user wants another rounding than the nearest or the next
    /// below: that compares nothing as it is.
    pub fn nearer(e: &Emitter<'_>, x: usize, f: u32, reads: usize) -> Option<Dropped> {
        let compares = matches!(e.rounding, RoundingMode::Nearest | RoundingMode::Floor);
        if !compares || e.formats.keep_ring || f + FINER > MOST_FRACTION {
            return None;
        }
        Dropped::to(e, x, f + FINER, reads)
    }

    /// Ring bits that are left.
    pub fn left(self) -> u32 {
        self.product.bits - self.bits
    }

    /// Bits before the fraction.
    pub fn whole(self) -> u32 {
        self.product.bits.saturating_sub(self.product.frac)
    }

    /// The product without them, in a ring of `bits`: of more than are left if the product stays away from the ends of its ring.
    pub fn taken(self, e: &mut Emitter<'_>, v: usize, bits: u32) -> Form {
        let layer = e.node(v).layer.clone();
        let mut build = e.build(&layer);
        let x = build.value(self.product.id);
        let Value { id, bits, frac } = build.nearly(x, self.bits, bits);
        Form { id, bits, frac }
    }
}
