//! What all parties hold alike of a product, and the polynomials that they send each other.

use crate::context::{Context, Points};
use crate::layout::Layout;
use crate::mutation;
use crate::params::Parameters;
use crate::wire::{self, Coarse, WireError};
use privet_prg::Seed;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

/// The number of the public polynomial that hides encryptions of 0.
const ZERO: u64 = u64::MAX;

/// A product of a shared operand with shared weights: parameters, packing and public polynomials, alike at all parties.
#[derive(Clone)]
pub struct Product {
    pub(crate) context: Arc<Context>,
    pub(crate) parameters: Parameters,
    pub(crate) layout: Arc<dyn Layout>,
    public: Arc<Seed>,
}

/// What a message holds, one party's or the sum of all parties'.
pub trait Kind {
    /// Whether it may be sent without its lowest bits: it is multiplied by ternary polynomials alone.
    const IS_COARSE: bool;
}

/// A party's weights times the public polynomials, hidden: one polynomial for each answer of a tile, once for all calls.
pub enum Hint {}
/// Encryptions of 0 under fresh keys, one for each tile.
pub enum Zero {}
/// The operand's polynomials of a group, tile by tile.
pub enum Operand {}

impl Kind for Hint {
    const IS_COARSE: bool = true;
}
impl Kind for Zero {
    const IS_COARSE: bool = true;
}
impl Kind for Operand {
    const IS_COARSE: bool = false;
}

/// Polynomials modulo q as values; pseudo-random to everybody but their sender. Their sum over parties is of the sum of
/// what they hold.
pub struct Message<K: Kind> {
    pub(crate) polynomials: Vec<Points>,
    /// What is sent, where that is less than all words; of a sum nothing is.
    coarse: Vec<Coarse>,
    kind: PhantomData<K>,
}

impl Product {
    /// A product whose public polynomials follow from a public seed: all parties tossed it together, for this product alone.
    ///
    /// Panics where the parameters are of another set than the context.
    pub fn new(
        context: &Arc<Context>,
        parameters: &Parameters,
        layout: Arc<dyn Layout>,
        public: Seed,
    ) -> Product {
        assert_eq!(parameters.set(), context.set(), "parameters of the context's set");
        let public = if mutation::active("publics-repeat") { Seed::from_bytes([0; 16]) } else { public };
        Product { context: Arc::clone(context), parameters: *parameters, layout, public: Arc::new(public) }
    }

    /// The transforms.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The packing.
    pub fn layout(&self) -> &dyn Layout {
        &*self.layout
    }

    /// The parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The public polynomial that operand polynomial `input` of every tile of a group is hidden under.
    pub(crate) fn public(&self, group: usize, input: usize) -> Points {
        let number =
            if mutation::active("publics-repeat") { 0 } else { group * self.layout.blocks().inputs + input };
        self.context.uniform(&self.public, number as u64)
    }

    /// The public polynomial that encryptions of 0 are hidden under.
    pub(crate) fn public_of_zero(&self) -> Points {
        self.context.uniform(&self.public, ZERO)
    }

    /// The number of an answer of a group's tile.
    pub(crate) fn answer(&self, group: usize, tile: usize, output: usize) -> usize {
        let b = self.layout.blocks();
        (group * b.tiles + tile) * b.outputs + output
    }

    /// Polynomials of a [`Hint`] of so many groups.
    pub fn hints(&self, groups: usize) -> usize {
        groups * self.layout.blocks().outputs
    }

    /// Polynomials of an [`Operand`] of so many tiles.
    pub fn operands(&self, tiles: usize) -> usize {
        tiles * self.layout.blocks().inputs
    }

    /// Tiles of a group at a time, so that their polynomials take at most `room` bytes in memory; at least one.
    pub fn tiles_in(&self, room: usize) -> usize {
        let b = self.layout.blocks();
        let tile = (b.inputs + 2) * self.context.set().value_bytes();
        room.checked_div(tile).expect("a tile has bytes").clamp(1, b.tiles)
    }

    /// Bits that are sent of a coefficient of this kind, where not all words are.
    fn kept_bits<K: Kind>(&self) -> Option<u32> {
        self.parameters.kept_bits().filter(|_| K::IS_COARSE)
    }

    /// Bytes of a message of so many polynomials.
    pub fn bytes<K: Kind>(&self, polynomials: usize) -> usize {
        polynomials * wire::poly_bytes(self.context.set(), self.kept_bits::<K>())
    }

    /// Polynomials as they are sent: their sender goes on with what its peers read.
    pub(crate) fn message<K: Kind>(&self, polynomials: Vec<Points>) -> Message<K> {
        let Some(bits) = self.kept_bits::<K>() else { return Message::new(polynomials) };
        let kept = |i: usize| Coarse::of(&self.context, polynomials[i].clone(), bits);
        self.read(self.context.each(polynomials.len(), kept))
    }

    fn read<K: Kind>(&self, coarse: Vec<Coarse>) -> Message<K> {
        let polynomials = self.context.each(coarse.len(), |i| coarse[i].points(&self.context));
        Message { coarse, ..Message::new(polynomials) }
    }
}

impl<K: Kind> Message<K> {
    pub(crate) fn new(polynomials: Vec<Points>) -> Message<K> {
        Message { polynomials, coarse: Vec::new(), kind: PhantomData }
    }

    /// Number of polynomials.
    pub fn len(&self) -> usize {
        self.polynomials.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Words of 50 bits, or the bits that are kept of each coefficient.
    pub fn encode(&self) -> Vec<u8> {
        if self.coarse.is_empty() {
            return wire::put_polynomials(&self.polynomials);
        }
        let mut out = Vec::new();
        self.coarse.iter().for_each(|v| wire::put_wide(v.bits, &v.words, &mut out));
        out
    }

    /// Exactly [`Product::bytes`] bytes, each word below its prime.
    pub fn decode(product: &Product, polynomials: usize, bytes: &[u8]) -> Result<Message<K>, WireError> {
        let context = &product.context;
        Ok(match product.kept_bits::<K>() {
            Some(bits) => product.read(wire::coarse(context, bits, polynomials, bytes)?),
            None => Message::new(wire::polynomials(context, polynomials, bytes)?),
        })
    }

    /// Add another party's. Panics where it is of another length.
    pub fn add(&mut self, context: &Context, other: &Message<K>) {
        assert_eq!(self.len(), other.len(), "messages of one layout");
        self.coarse.clear();
        for (a, b) in self.polynomials.iter_mut().zip(&other.polynomials) {
            context.add(&mut a.words, &b.words, false);
        }
    }
}

/// Numbers of a group's tiles that are worked on together.
pub(crate) type Tiles = Range<usize>;

#[cfg(test)]
#[path = "product_tests.rs"]
mod tests;
