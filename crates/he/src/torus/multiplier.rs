//! What a server multiplies preparations with: sums of weights times operands' polynomials, and of hidings times encryptions of 0.
//!
//! An output reads few coefficients of an operand's polynomials: as many as there are weights. So they meet as integers, in a plain
//! product of matrices, and nothing is transformed. Rows are *windows*: at output t the coefficients `t - a` of all taps a.
//!
//! Three bits of it, modulo X^4 + 1: weights a + b X and an operand v0 + v1 X + v2 X^2 + v3 X^3 have `a v2 + b v1` at X^2, the window
//! (v2, v1), and `a v0 - b v3` at 1. Hidings are dense, and meet encryptions of 0 transformed.

use super::client::divide;
use super::cuts::Cuts;
use super::digits::{gather, integer_digits, put_digits, signed_digits};
use super::factors::{parts, ternary};
use super::keys::Zeros;
use super::layer::{Place, Shape};
use super::server::{Hinted, Masked};
use super::wide::{self, Wide, Wides};
use crate::mutation;
use crate::panel::Panel;
use crate::wire::WireError;
use privet_kernels::{LinearShape, Weights};
use privet_prg::{Seed, Wiped};
use privet_ring::Ring;
use std::ops::Range;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Taps of windows that are multiplied at a time, nearly, and words of these windows: both they and their weights stay in a cache.
const TAPS: usize = 1 << 10;
const ROOM: usize = 1 << 16;

/// Operand polynomials of a tile, some at a time: as many as have [`TAPS`], and one at least.
fn blocks(s: &Shape) -> Vec<Range<usize>> {
    let mut blocks = Vec::new();
    let (mut first, mut taps) = (0, 0);
    for (input, of_input) in s.taps().iter().enumerate() {
        if input > first && taps + of_input.len() > TAPS {
            blocks.push(first..input);
            (first, taps) = (input, 0);
        }
        taps += of_input.len();
    }
    blocks.push(first..s.taps().len());
    blocks
}

/// A layer's weights as operands' windows meet them, and its hidings transformed; wiped on drop. As secret as both. Whoever takes several
/// preparations in a row has it made once.
pub struct Multiplier<'a> {
    hinted: &'a Hinted,
    cuts: Cuts,
    /// Operand polynomials, some at a time.
    blocks: Vec<Range<usize>>,
    /// Of each group and block: a row is a word of an answer's weights, tap by tap.
    weights: Vec<Vec<Arc<dyn Weights>>>,
    /// Of each group, some answers at a time: a row is what hides an answer's hint.
    hidings: Vec<Vec<Panel>>,
}

impl Hinted {
    /// What preparations are multiplied with.
    pub fn multiplier(&self) -> Multiplier<'_> {
        let s = &*self.shape;
        let (b, cuts, blocks) = (s.layout.blocks(), Cuts::of_integers(s), blocks(s));
        let words = signed_digits(self.filters.signed(), cuts.weights);
        let other = mutation::active("torus-hidings-redrawn").then(Seed::random);
        let seed = other.as_ref().unwrap_or(&self.hidings);
        let weights = |group| -> Vec<_> {
            let of = |block: &Range<usize>| {
                let rows = weight_rows(s, &words, group, block);
                s.device.prepare(Ring::R64, product(s, cuts, 0, block), &rows)
            };
            blocks.iter().map(of).collect()
        };
        let hidings = |group| {
            let of = |some: Range<usize>| -> Vec<_> {
                some.map(|answer| ternary(s, seed, group * b.outputs + answer)).collect()
            };
            let parts = parts(b.outputs);
            s.context.each(parts.len(), |i| s.rows(&of(parts[i].clone())))
        };
        Multiplier {
            hinted: self,
            cuts,
            weights: (0..b.groups).map(weights).collect(),
            hidings: (0..b.groups).map(hidings).collect(),
            blocks,
        }
    }
}

/// So many windows of a block times a group's weights.
fn product(s: &Shape, cuts: Cuts, windows: usize, block: &Range<usize>) -> LinearShape {
    LinearShape::MatMulT {
        m: windows,
        k: s.taps()[block.clone()].iter().map(|taps| taps.len()).sum(),
        n: s.layout.blocks().outputs * cuts.weights.count,
    }
}

/// For each answer of a group and each word of its weights: the words of all taps of a block, input by input.
fn weight_rows(
    s: &Shape,
    words: &[Zeroizing<Vec<u64>>],
    group: usize,
    block: &Range<usize>,
) -> Zeroizing<Vec<u64>> {
    let (b, mut rows) = (s.layout.blocks(), Zeroizing::new(Vec::new()));
    let mut poly = Zeroizing::new(vec![0; s.parameters.degree()]);
    for answer in group * b.outputs..(group + 1) * b.outputs {
        for words in words {
            for input in block.clone() {
                s.layout.pack_weights(answer * b.inputs + input, words, &mut poly);
                rows.extend(s.taps()[input].iter().map(|tap| std::mem::take(&mut poly[*tap as usize])));
            }
        }
    }
    rows
}

impl Multiplier<'_> {
    /// Takes a client's preparation of one run, of exactly [`Zeros::prepare_bytes`] bytes, with what came for the run before.
    pub fn prepare(&self, of_run: &mut Zeros, message: &[u8]) -> Result<Masked, WireError> {
        let s = &*self.hinted.shape;
        let (b, expected) = (s.layout.blocks(), of_run.prepare_bytes(&self.hinted.layer()));
        if message.len() != expected {
            return Err(WireError::Length { expected, found: message.len() });
        }
        let due = b.tiles.saturating_sub(of_run.of(&s.kind).len()) * s.vector_bytes();
        let (new, mut from) = message.split_at(due);
        of_run.add(s.kind, new.chunks_exact(s.vector_bytes()).map(<[u8]>::to_vec));
        let zeros = of_run.of(&s.kind)[..b.tiles].iter().map(|came| encryption_of_zero(s, came));
        let zeros = zeros.collect::<Result<Vec<_>, _>>()?;
        let mut corrections = Zeroizing::new(vec![0; s.layout.output_len()]);
        for group in 0..b.groups {
            for (tile, zero) in zeros.iter().enumerate() {
                let first = (group * b.tiles + tile) * b.inputs;
                let operands = (first..first + b.inputs).map(|query| operand(s, query, &mut from));
                let operands = operands.collect::<Result<Vec<_>, _>>()?;
                let mut sums = self.hidden([group, tile], zero);
                self.weigh([group, tile], &operands, &mut sums);
                for (answer, sums) in sums.iter().enumerate() {
                    for (output, sum) in s.outputs([group, tile, answer]).iter().zip(sums.iter()) {
                        // the client's share is a floor too: without the unit half of all sums are one too small
                        let unit = u64::from(!mutation::active("torus-floors-without-a-unit"));
                        corrections[output.index()] = s.share(sum).wrapping_add(unit);
                    }
                }
            }
        }
        Ok(Masked::new(Arc::clone(&self.hinted.shape), corrections))
    }

    /// `sum of u b0` of each answer of a tile, at its outputs.
    fn hidden(&self, [group, tile]: [usize; 2], zero: &Panel) -> Vec<Wides> {
        let s = &*self.hinted.shape;
        let (context, cut, hidings) = (&s.context, s.ternary_cut(), &self.hidings[group]);
        let parts = parts(s.layout.blocks().outputs);
        let of = |i: usize| {
            let outputs = |at: usize| s.outputs([group, tile, parts[i].start + at]);
            let zeros = |at| Zeroizing::new(vec![Wide::default(); outputs(at).len()]);
            let mut sums: Vec<Wides> = (0..parts[i].len()).map(zeros).collect();
            for (j, sum) in zero.times(context, &hidings[i], 0..parts[i].len()).into_iter().enumerate() {
                let (digit, at) = divide(j, parts[i].len());
                let coefficients = outputs(at).iter().map(|o| o.coefficient());
                gather(context, sum, cut.below(digit), coefficients, &mut sums[at]);
            }
            sums
        };
        context.each(parts.len(), of).into_iter().flatten().collect()
    }

    /// Adds `sum of w v` of each answer of a tile, at its outputs.
    fn weigh(&self, [group, tile]: [usize; 2], operands: &[Vec<Wide>], sums: &mut [Wides]) {
        let (s, Cuts { weights, operand }) = (&*self.hinted.shape, self.cuts);
        // the first answer has outputs wherever another one has
        let rows: Vec<usize> = s.outputs([group, tile, 0]).iter().map(|o| o.coefficient()).collect();
        let mut row_of = vec![0; s.parameters.degree()];
        rows.iter().enumerate().for_each(|(row, at)| row_of[*at] = row);
        let across = sums.len() * weights.count;
        for digit in 0..operand.count {
            let digits: Vec<Vec<u64>> =
                operands.iter().map(|v| around(&integer_digits(v, operand, digit))).collect();
            let products = self.products(group, &rows, &digits);
            for (answer, sums) in sums.iter_mut().enumerate() {
                for (o, sum) in s.outputs([group, tile, answer]).iter().zip(sums.iter_mut()) {
                    let first = row_of[o.coefficient()] * across + answer * weights.count;
                    for (word, product) in products[first..first + weights.count].iter().enumerate() {
                        sum.add_shifted(*product as i64, operand.below(digit) + weights.below(word));
                    }
                }
            }
        }
    }

    /// The plain products of a group's weights with the windows at these coefficients, window by window. Exact in two's complement.
    fn products(&self, group: usize, windows: &[usize], digits: &[Vec<u64>]) -> Wiped<u64> {
        let s = &*self.hinted.shape;
        let across = s.layout.blocks().outputs * self.cuts.weights.count;
        let mut out = Wiped::zeros(windows.len() * across);
        for (block, weights) in self.blocks.iter().zip(&self.weights[group]) {
            let taps = product(s, self.cuts, 1, block).input_len();
            let together = ROOM.div_ceil(taps);
            let mut values = vec![0; together.min(windows.len()) * taps];
            for (windows, out) in windows.chunks(together).zip(out.chunks_mut(together * across)) {
                let values = &mut values[..windows.len() * taps];
                fill(s, block, windows, digits, values);
                let shape = product(s, self.cuts, windows.len(), block);
                s.device.linear_acc(Ring::R64, shape, values, &**weights, out);
            }
        }
        out
    }
}

/// Windows of a block, tap by tap. A polynomial's digits stay in the cache for all of them.
fn fill(s: &Shape, block: &Range<usize>, windows: &[usize], digits: &[Vec<u64>], values: &mut [u64]) {
    let (degree, mut first) = (s.parameters.degree(), 0);
    let taps: usize = s.taps()[block.clone()].iter().map(|taps| taps.len()).sum();
    for input in block.clone() {
        let own = &s.taps()[input];
        for (at, window) in windows.iter().zip(values.chunks_exact_mut(taps)) {
            let reached = &digits[input][*at..][..=degree];
            let to = window[first..].iter_mut().zip(own);
            to.for_each(|(v, tap)| *v = reached[degree - *tap as usize]);
        }
        first += own.len();
    }
}

/// Coefficients with those before them that come back from above X^N: with the other sign.
fn around(digits: &[u64]) -> Vec<u64> {
    let sign = |v: &u64| if mutation::active("torus-wraps-without-sign") { *v } else { v.wrapping_neg() };
    digits.iter().map(sign).chain(digits.iter().copied()).collect()
}

/// Digits of each polynomial of a tile's encryption of 0.
fn encryption_of_zero(s: &Shape, mut came: &[u8]) -> Result<Panel, WireError> {
    let (p, cut) = (&s.parameters, s.ternary_cut());
    let mut panel = Panel::new(&s.context, cut.count, p.rank());
    for column in 0..p.rank() {
        let kept = wide::take(p.kept_bits(), p.degree(), &mut came)?;
        let poly: Vec<Wide> = kept.iter().map(|v| v.up(p.dropped_bits())).collect();
        put_digits(&s.context, &mut panel, [0, column], &poly, cut);
    }
    Ok(panel)
}

/// What hides operand polynomial `query` as it came; what no product reads is 0.
fn operand(s: &Shape, query: usize, from: &mut &[u8]) -> Result<Vec<Wide>, WireError> {
    let (p, dropped) = (&s.parameters, s.parameters.operand_dropped());
    let mut poly = vec![Wide::default(); p.degree()];
    let held: &[Place] = s.held(query);
    for (held, low) in held.iter().zip(wide::take(p.low_bits(), held.len(), from)?) {
        poly[held.coefficient()] = low.up(dropped);
    }
    let whole = wide::take(p.blank_bits(), s.blanks(query).count(), from)?;
    if !mutation::active("torus-blanks-forgotten") {
        s.blanks(query).zip(whole).for_each(|(at, v)| poly[at] = v.up(dropped));
    }
    Ok(poly)
}

impl std::fmt::Debug for Multiplier<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Multiplier(..)")
    }
}
