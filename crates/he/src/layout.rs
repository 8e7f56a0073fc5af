//! Where operands, weights and outputs of a linear layer stand in polynomials: coefficient packing (Huang, Lu, Hong,
//! Ding, *Cheetah*, USENIX Security 2022, section 3), so that one product of polynomials is many inner products.
//!
//! A layer is cut into *tiles* of the operand with `inputs` polynomials each (blocks of what is summed) and `outputs`
//! answers each (blocks of output channels). All of it follows from public shapes.

#![expect(clippy::integer_division_remainder_used, reason = "shapes are public")]

mod conv;
mod matmul;

pub use conv::ConvLayout;
pub use matmul::{Matmul, MatmulLayout};

use crate::params::{NoSet, Parameters, SETS, Set};
use crate::{modulus::PRIME_BITS, wire};
use privet_prg::Seed;
use privet_ring::Ring;
use std::ops::Range;

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
pub trait Layout {
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
    /// Write operand polynomial `number` into zeros.
    fn pack_input(&self, number: usize, x: &[u64], out: &mut [u64]);
    /// Write weight polynomial `number` into zeros; weights are signed.
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

    /// The operand's polynomials of a tile.
    fn queries_of(&self, tile: usize) -> Range<usize> {
        let n = self.blocks().inputs;
        tile * n..(tile + 1) * n
    }

    /// The answers of a tile.
    fn answers_of(&self, tile: usize) -> Range<usize> {
        let n = self.blocks().outputs;
        tile * n..(tile + 1) * n
    }

    /// The weights' polynomials of an answer, one for each of its tile's.
    fn weights_of(&self, answer: usize) -> Range<usize> {
        let b = self.blocks();
        let group = answer / b.outputs / b.tiles;
        let first = (group * b.outputs + answer % b.outputs) * b.inputs;
        first..first + b.inputs
    }

    /// Weight coefficients that act on one output, at most: what noise and secrecy are reckoned with.
    fn coefficients(&self) -> usize {
        self.blocks().inputs * self.weights_in_a_polynomial()
    }
}

/// What a layer costs, exactly as it will be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Bytes from the operand's holder.
    pub query_bytes: usize,
    /// Bytes back.
    pub answer_bytes: usize,
    /// Transforms of one prime by the operand's holder.
    pub holder_transforms: usize,
    /// Transforms of one prime by the weights' owner for a query.
    pub owner_transforms: usize,
    /// Transforms of one prime by the weights' owner once for all queries.
    pub weight_transforms: usize,
    /// Products of values of one prime, N each, by the weights' owner.
    pub products: usize,
}

/// The cost of a layer with a pairwise key.
pub fn cost(p: &Parameters, layout: &dyn Layout) -> Cost {
    let (primes, answers) = (p.set().primes.len(), layout.answers());
    Cost {
        query_bytes: Seed::BYTES + layout.queries() * p.set().poly_bytes(),
        answer_bytes: crate::Answer::bytes(p, layout),
        // a message, and the mask to be multiplied by the key and back, modulo all primes
        holder_transforms: primes * (layout.queries() + 2 * answers),
        owner_transforms: primes * 3 * answers,
        weight_transforms: primes * layout.weights(),
        products: primes * 2 * answers * (layout.blocks().inputs + 1),
    }
}

/// Bytes both ways of a layout with this set, and its work as bytes of a link of 1 Gbit/s: what block sizes are chosen by.
/// A product of N values takes about 2 us, a transform 12 us; weights are transformed for several queries.
fn traffic(set: &Set, ring: Ring, b: Blocks, outputs: usize) -> usize {
    let mask = ring.bits() + set.degree.trailing_zeros() + 3;
    let tiles = b.groups * b.tiles;
    let query = set.primes.len() * Ring::new(PRIME_BITS).packed_bytes(set.degree);
    let bytes = tiles * (b.inputs * query + b.outputs * wire::wide_bytes(mask, set.degree))
        + outputs * (ring.bits() as usize + 5) / 8;
    let (products, transforms) = (2 * tiles * b.outputs * b.inputs, tiles * (3 * b.outputs + b.inputs));
    bytes + set.primes.len() * (250 * products + 1500 * (transforms + b.groups * b.inputs * b.outputs / 4))
}

/// The layout and the parameters with the least traffic: `best` gives a set's best layout, if any fits.
fn cheapest<T: Layout>(
    ring: Ring,
    weight_bits: u32,
    parties: usize,
    best: impl Fn(&'static Set) -> Option<T>,
) -> Result<(Parameters, T), NoSet> {
    let mut last = None;
    let mut found: Option<(usize, Parameters, T)> = None;
    for set in &SETS {
        let Some(layout) = best(set) else { continue };
        let outputs = layout.output_len();
        match Parameters::on(set, ring, weight_bits, layout.coefficients(), outputs, parties) {
            Err(why) => last = Some(why),
            Ok(p) => {
                let bytes = traffic(set, ring, layout.blocks(), outputs);
                if found.as_ref().is_none_or(|(least, ..)| bytes < *least) {
                    found = Some((bytes, p, layout));
                }
            }
        }
    }
    match found {
        Some((_, p, layout)) => Ok((p, layout)),
        None => Err(last.expect("the largest set's degree holds a kernel's window")),
    }
}

/// Sizes of blocks that cut n into as few as they can: the distinct values of `ceil(n / i)`, at most `most`.
fn sizes(n: usize, most: usize) -> Vec<usize> {
    let mut out: Vec<usize> = (1..=n.min(128)).map(|i| n.div_ceil(i)).filter(|s| *s <= most).collect();
    if out.last() != Some(&1) {
        // where n is far larger than a polynomial, whole polynomials and their halves
        out.extend((0..=most.min(n).ilog2()).rev().map(|i| 1 << i));
    }
    out.dedup();
    out
}
