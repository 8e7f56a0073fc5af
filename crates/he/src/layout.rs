//! Where operands, weights and outputs of a linear layer stand in polynomials: coefficient packing (Huang, Lu, Hong,
//! Ding, *Cheetah*, USENIX Security 2022, section 3), so that one product of polynomials is many inner products.
//!
//! A layer is cut into *tiles* of the operand with `inputs` polynomials each (blocks of what is summed) and `outputs`
//! answers each (blocks of output channels). All of it follows from public shapes.

#![expect(clippy::integer_division_remainder_used, reason = "shapes are public")]

mod conv;
mod matmul;
mod windows;

pub use conv::ConvLayout;
pub use matmul::{Matmul, MatmulLayout};
pub use windows::Windowed;

use crate::params::{NoSet, Parameters, SETS, Set};
use crate::wire;
use privet_ring::Ring;

/// How many of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Independent products with weights of their own.
    pub groups: usize,
    /// Tiles of the operand in a group.
    pub tiles: usize,
    /// Polynomials of a tile, over which products are summed.
    pub inputs: usize,
    /// Answers of a tile.
    pub outputs: usize,
}

/// An output in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// The answer's coefficient.
    pub coefficient: usize,
    /// Its place among the layer's outputs.
    pub index: usize,
}

/// A layer's packing. Polynomials are numbered tile by tile, weights group by group and answer by answer.
pub trait Layout: Send + Sync {
    /// How many blocks there are.
    fn blocks(&self) -> Blocks;
    /// Values of the operand.
    fn input_len(&self) -> usize;
    /// Weights.
    fn weight_len(&self) -> usize;
    /// Outputs.
    fn output_len(&self) -> usize;
    /// Most weight coefficients that are not 0 in one polynomial.
    fn weights_in_a_polynomial(&self) -> usize;
    /// Coefficients from the first on that hold all weights of a polynomial of `degree`: all others are 0.
    fn weight_span(&self, degree: usize) -> usize {
        degree
    }
    /// Whether values of a weight polynomial take a whole transform: such are kept for all calls, where there is room. Others are made
    /// part by part whenever they are needed.
    fn weights_are_whole(&self, degree: usize) -> bool {
        2 * self.weight_span(degree) > degree
    }
    /// Write operand polynomial `number` into zeros.
    fn pack_input(&self, number: usize, x: &[u64], out: &mut [u64]);
    /// Write weight polynomial `number` into zeros, of which there are [`Layout::weight_span`] at least; weights are signed.
    fn pack_weights(&self, number: usize, w: &[u64], out: &mut [u64]);
    /// Outputs of an answer.
    fn outputs(&self, answer: usize) -> Vec<Output>;

    /// Tiles of all groups.
    fn tiles(&self) -> usize {
        self.blocks().groups * self.blocks().tiles
    }

    /// Polynomials of the operand.
    fn queries(&self) -> usize {
        self.tiles() * self.blocks().inputs
    }

    /// Polynomials of the weights.
    fn weights(&self) -> usize {
        let b = self.blocks();
        b.groups * b.outputs * b.inputs
    }

    /// Answers.
    fn answers(&self) -> usize {
        self.tiles() * self.blocks().outputs
    }

    /// Weight coefficients that act on one output, at most: what noise and secrecy are reckoned with.
    fn coefficients(&self) -> usize {
        self.blocks().inputs * self.weights_in_a_polynomial()
    }
}

/// What a party has of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roles {
    /// Weights, its share or all of them.
    pub owns: bool,
    /// A share of the operand that it encrypts.
    pub encrypts: bool,
}

impl Roles {
    /// Of a party among all that share operand and weights.
    pub const BOTH: Roles = Roles { owns: true, encrypts: true };
}

/// What a layer costs a party, exactly as it will be counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Bytes to each peer, once for all calls.
    pub hint_bytes: usize,
    /// Bytes to each peer in a call.
    pub operand_bytes: usize,
    /// Bytes to the opener in a call.
    pub partial_bytes: usize,
    /// Transforms of one prime once.
    pub hint_transforms: usize,
    /// Transforms of one prime in a call that works on all tiles at once, where there is room for what is kept.
    pub transforms: usize,
    /// Products of values of one prime, N each, once.
    pub hint_products: usize,
    /// Products of values of one prime in a call.
    pub products: usize,
}

impl Cost {
    /// Of both.
    pub fn plus(self, other: Cost) -> Cost {
        Cost {
            hint_bytes: self.hint_bytes + other.hint_bytes,
            operand_bytes: self.operand_bytes + other.operand_bytes,
            partial_bytes: self.partial_bytes + other.partial_bytes,
            hint_transforms: self.hint_transforms + other.hint_transforms,
            transforms: self.transforms + other.transforms,
            hint_products: self.hint_products + other.hint_products,
            products: self.products + other.products,
        }
    }

    /// Divided by a number of parties, rounded up.
    pub fn shared_by(self, parties: usize) -> Cost {
        Cost {
            hint_bytes: self.hint_bytes.div_ceil(parties),
            operand_bytes: self.operand_bytes.div_ceil(parties),
            partial_bytes: self.partial_bytes.div_ceil(parties),
            hint_transforms: self.hint_transforms.div_ceil(parties),
            transforms: self.transforms.div_ceil(parties),
            hint_products: self.hint_products.div_ceil(parties),
            products: self.products.div_ceil(parties),
        }
    }
}

/// The cost of a layer at a party, which keeps values of weights for later calls if it `keeps` any.
pub fn cost(p: &Parameters, layout: &dyn Layout, roles: Roles, keeps: bool) -> Cost {
    let (primes, poly, b) = (p.set().primes.len(), p.set().poly_bytes(), layout.blocks());
    let coarse = wire::poly_bytes(p.set(), p.kept_bits());
    let (hints, answers) = (b.groups * b.outputs, layout.answers());
    let kept = keeps && layout.weights_are_whole(p.set().degree);
    let again = if kept { 0 } else { hints * (b.inputs + 1) };
    // one's own back and forth again, the peers' once
    let rounded = p.kept_bits().map_or(0, |_| p.parties() + 1);
    let [owns, encrypts] = [roles.owns, roles.encrypts].map(usize::from);
    let partial = |a| wire::wide_bytes(p.output_bits(), layout.outputs(a).len());
    Cost {
        hint_bytes: owns * hints * coarse,
        operand_bytes: encrypts * (b.tiles * coarse + layout.queries() * poly),
        partial_bytes: (0..answers).map(partial).sum(),
        // weights, what hides them, and an error
        hint_transforms: owns * primes * hints * (b.inputs + 2 + rounded),
        // a tile's key and its error, a message; a sum; and what is not kept
        transforms: primes
            * (encrypts * ((2 + rounded) * b.tiles + layout.queries()) + answers + owns * again),
        hint_products: owns * primes * hints * (b.inputs + 2),
        // the hint alone at a party without weights
        products: primes * (encrypts * (b.tiles + layout.queries()) + answers * (owns * (b.inputs + 1) + 1)),
    }
}

/// Bytes of a party's values that a tile's operand may take: blocks with more are not taken where others do.
const TILE_ROOM: usize = 128 << 20;

/// What block sizes are chosen by: bytes, and work as bytes of a link of 1 Gbit/s. A product of N values takes about 0.6 us, a transform
/// 10 us.
#[derive(Clone, Copy)]
struct Traffic {
    set: &'static Set,
    /// Bits that are sent of a coefficient of hints and encryptions of 0; all words where there is no number.
    kept_bits: Option<u32>,
    /// Calls that a hint serves.
    uses: usize,
}

impl Traffic {
    fn of(self, b: Blocks) -> usize {
        let Traffic { set, kept_bits, uses } = self;
        let (coarse, whole) = (wire::poly_bytes(set, kept_bits), set.poly_bytes());
        let (tiles, hints, primes) = (b.groups * b.tiles, b.groups * b.outputs, set.primes.len());
        let once = hints * coarse + primes * hints * (b.inputs + 2) * (75 + 1250);
        let products = tiles * b.outputs * (b.inputs + 2);
        let transforms = 2 * b.tiles + tiles * (b.inputs + b.outputs);
        let sent = b.tiles * coarse + tiles * b.inputs * whole;
        let call = sent + primes * (75 * products + 1250 * transforms);
        let excess = (b.inputs * set.value_bytes()).saturating_sub(TILE_ROOM);
        once + uses * (call + 1000 * excess)
    }

    /// The layout with the least, and of several the one with the fewest products.
    fn least<T: Layout>(self, layouts: impl Iterator<Item = T>) -> Option<T> {
        layouts.min_by_key(|layout| {
            let b = layout.blocks();
            (self.of(b), b.tiles * b.inputs * b.outputs)
        })
    }
}

/// What a layout is wanted for.
#[derive(Clone, Copy)]
struct Wanted {
    ring: Ring,
    weight_bits: u32,
    parties: usize,
    /// Calls that a hint serves.
    uses: usize,
    /// Calls whose answers are within the distance together.
    together: usize,
    /// Whether hints and encryptions of 0 are sent without the bits that noise hides ([`Parameters::coarse`]).
    coarse: bool,
}

impl Wanted {
    /// With a set, if it is large enough.
    fn parameters(&self, set: &'static Set, layout: &dyn Layout) -> Result<Parameters, NoSet> {
        let outputs = layout.output_len().saturating_mul(self.together);
        let coefficients = layout.coefficients();
        let p = Parameters::on(set, self.ring, self.weight_bits, coefficients, outputs, self.parties)?;
        Ok(if self.coarse { p.coarse(coefficients, outputs) } else { p })
    }

    /// The layout and the parameters with the least traffic, of all layouts for polynomials of a degree. None where there is none.
    fn cheapest<T: Layout, I: Iterator<Item = T>>(
        &self,
        layouts: impl Fn(usize) -> I,
    ) -> Option<Result<(Parameters, T), NoSet>> {
        let mut last = None;
        let mut found: Option<(usize, Parameters, T)> = None;
        for set in &SETS {
            // how many bits are kept hardly depends on the layout: the second choice knows what the first one keeps
            let mut kept_bits = None;
            for _ in 0..=usize::from(self.coarse) {
                let traffic = Traffic { set, kept_bits, uses: self.uses };
                let Some(layout) = traffic.least(layouts(set.degree)) else { continue };
                match self.parameters(set, &layout) {
                    Err(why) => last = Some(why),
                    Ok(p) => {
                        kept_bits = p.kept_bits();
                        let bytes = Traffic { kept_bits, ..traffic }.of(layout.blocks());
                        if found.as_ref().is_none_or(|(least, ..)| bytes < *least) {
                            found = Some((bytes, p, layout));
                        }
                    }
                }
            }
        }
        match found {
            Some((_, p, layout)) => Some(Ok((p, layout))),
            None => last.map(Err),
        }
    }
}

/// Sizes of blocks that cut n into as few as they can: the distinct values of `ceil(n / i)`, at most `most`.
pub(crate) fn sizes(n: usize, most: usize) -> Vec<usize> {
    let mut out: Vec<usize> = (1..=n.min(128)).map(|i| n.div_ceil(i)).filter(|s| *s <= most).collect();
    if out.last() != Some(&1) {
        // where n is far larger than a polynomial, whole polynomials and their halves
        out.extend((0..=most.min(n).ilog2()).rev().map(|i| 1 << i));
    }
    out.dedup();
    out
}

/// n cut into `blocks` blocks of `size`: sizes, and how many have them; the last one may be smaller.
fn last_apart(n: usize, size: usize, blocks: usize) -> [(usize, usize); 2] {
    [(size, blocks - 1), (n - (blocks - 1) * size, 1)]
}
