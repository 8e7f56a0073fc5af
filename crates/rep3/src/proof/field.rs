//! GF(2^64): bits, of which lane i of a word is the coefficient of Y^i, and numbers that have words of their own.

use super::batch::{Batch, Factor, Weights};
use super::column::Operand;
use super::extension::{Extension, Nothing};
use super::folded::Folded;
use super::numbers;
use super::tensor::basis;
use crate::price::proofs;
use privet_kernels::Device;
use privet_kernels::fold::{
    GROUP, LANES_TWICE, NUMBER_GROUP, SECOND_VARS, WORD_VARS, WordTerms, WordsFoldTwice, gf_mul,
    number_weights, points,
};
use privet_prg::Prg;
use privet_ring::Ring;
use std::ops::Range;

// the device's kernels are made for these groups
const _: () = assert!(
    proofs::OF_BITS[0] == WORD_VARS && proofs::OF_BITS[1] == SECOND_VARS && proofs::NUMBERS == NUMBER_GROUP
);

/// An element of GF(2^64).
pub(super) type Gf = u64;

/// Factors after both folds, with the weights of their groups; zeros for those that a verifier has nothing of. The second fold is of
/// lanes, and of what numbers leave.
fn fold_factors<'a>(
    device: &dyn Device,
    batches: impl Iterator<Item = (&'a Batch, Option<&'a [u64]>)>,
    factor: Factor,
    points: [&[u64]; 2],
    folded: &mut Folded,
) -> Vec<Gf> {
    let both = BothFolds::new(device, points, factor);
    let batches: Vec<_> = batches.collect();
    let room = |of_numbers: bool, each: fn(usize) -> usize| -> usize {
        let some = batches.iter().filter(|(batch, _)| batch.of_numbers() == of_numbers);
        some.map(|(batch, _)| each(batch.words) * batch.terms.len()).sum()
    };
    let left_of_numbers = room(true, number_weights);
    let mut numbers = Vec::with_capacity(left_of_numbers);
    let mut items = Vec::with_capacity(room(false, items_of) + left_of_numbers.div_ceil(LANES_TWICE));
    for (batch, s) in batches {
        for operand in batch.operands(factor) {
            match operand {
                None if batch.of_numbers() => numbers.resize(numbers.len() + number_weights(batch.words), 0),
                None => items.resize(items.len() + items_of(batch.words), 0),
                Some(operand) if batch.of_numbers() => {
                    both.numbers.append(device, factor, operand, s, &mut numbers);
                }
                Some(operand) => {
                    let at = items.len();
                    let fold = |operand: &Operand, items: &mut Vec<Gf>| both.fold(operand, items);
                    folded.append(operand, factor, fold, &mut items);
                    if let Some(s) = s {
                        let weights: Vec<Gf> = s.iter().flat_map(|s| of_items(*s)).collect();
                        device.fold().field_weigh(&mut items[at..], &weights);
                    }
                }
            }
        }
    }
    items.extend(Gf::fold(device, &numbers, points[1]));
    items
}

/// Items that both folds leave of so many words.
fn items_of(words: usize) -> usize {
    words.div_ceil(GROUP) * ITEMS
}

/// Items that both folds leave of a group.
const ITEMS: usize = GROUP / LANES_TWICE;

/// Both folds of words, at one point each, and the first one of numbers.
struct BothFolds {
    numbers: numbers::First,
    /// Of words of bits. Of left factors, lane i of an item is multiplied by Y^i besides, so that what is left of the
    /// weights is one for an item.
    words: WordsFoldTwice,
}

impl BothFolds {
    fn new(device: &dyn Device, points: [&[u64]; 2], factor: Factor) -> BothFolds {
        let [first, second] = points.map(|r| basis::<Gf>(device, r));
        let mut of_lanes: [Gf; LANES_TWICE] =
            second[..].try_into().expect("an element for every lane of an item");
        if factor == Factor::Left {
            of_lanes.iter_mut().enumerate().for_each(|(i, b)| *b = gf_mul(*b, 1 << i));
        }
        let words = device.fold().words_fold_twice(powers(&first), &of_lanes);
        BothFolds { numbers: numbers::First::new(&first), words }
    }

    /// Append the items of words of bits.
    fn fold(&self, operand: &Operand, items: &mut Vec<Gf>) {
        self.words.append(operand.bits(0..operand.len()), items);
    }
}

/// One for every word of a group.
fn powers(basis: &[Gf]) -> &[Gf; GROUP] {
    basis.try_into().expect("a power for every word of a group")
}

/// The weights of a group's items: `s Y^(16 q)` for item q.
fn of_items(s: u64) -> [Gf; ITEMS] {
    let mut s = s;
    std::array::from_fn(|_| {
        let weight = s;
        let over = s >> (64 - LANES_TWICE);
        s = (s << LANES_TWICE) ^ over ^ (over << 1) ^ (over << 3) ^ (over << 4);
        weight
    })
}

/// The weights of the groups of a piece.
fn of_piece(piece: &Range<usize>) -> Range<usize> {
    piece.start / GROUP..piece.end.div_ceil(GROUP)
}

/// A prover's batches of words of bits, as kernels read them.
fn word_terms<'a>(batches: &[(&'a Batch, &'a [u64])]) -> Vec<WordTerms<'a>> {
    let terms = batches.iter().map(|(b, weights)| {
        let terms = b.factors().map(|(l, r)| (l.bits(0..b.words), r.bits(0..b.words))).collect();
        WordTerms { words: b.words, terms, weights }
    });
    terms.collect()
}

impl Extension for Gf {
    const ZERO: Gf = 0;
    const ONE: u64 = proofs::Extension::Bits.one();
    const BYTES: usize = proofs::Extension::Bits.bytes();
    type Folded = Folded;
    type Joining = Nothing;

    fn embed(bits: u64) -> Gf {
        bits
    }

    fn add(self, other: Gf) -> Gf {
        self ^ other
    }

    fn sub(self, other: Gf) -> Gf {
        self ^ other
    }

    fn times(device: &dyn Device, items: &mut [Gf], bits: u64) {
        let weights = [bits; GROUP];
        for items in items.chunks_mut(GROUP) {
            device.fold().field_weigh(items, &weights[..items.len()]);
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }

    fn get(bytes: &[u8]) -> Gf {
        u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
    }

    fn draw(prg: &mut Prg, n: usize) -> Vec<Gf> {
        prg.elements(Ring::R64, n)
    }

    fn first_message(device: &dyn Device, batches: &[Batch], weights: &Weights) -> Vec<Gf> {
        let mut sums = vec![0; points(WORD_VARS)];
        let (of_numbers, words): (Vec<_>, Vec<_>) = weights.of(batches).partition(|(b, _)| b.of_numbers());
        device.fold().words_message(&word_terms(&words), &mut sums);
        numbers::add_values(device, &of_numbers, &mut sums);
        sums
    }

    fn second_message(
        device: &dyn Device,
        batches: &[Batch],
        weights: &Weights,
        first: &[u64],
        _folded: &mut Folded,
    ) -> (Vec<Gf>, [Vec<Gf>; 2]) {
        let first = basis::<Gf>(device, first);
        let (of_numbers, words): (Vec<_>, Vec<_>) = weights.of(batches).partition(|(b, _)| b.of_numbers());
        let mut sums = vec![0; points(SECOND_VARS)];
        device.fold().second_values(powers(&first)).add(&word_terms(&words), &mut sums);
        let numbers = numbers::First::new(&first).of(device, &of_numbers);
        device.fold().field_message(&numbers[0], &numbers[1], SECOND_VARS, &mut sums);
        (sums, numbers)
    }

    fn words_left(
        device: &dyn Device,
        batches: &[Batch],
        weights: &Weights,
        points: [&[u64]; 2],
        folded: &mut Folded,
    ) -> Vec<Gf> {
        let batches = weights.of(batches).map(|(b, s)| (b, Some(s)));
        fold_factors(device, batches, Factor::Left, points, folded)
    }

    fn words_right(
        device: &dyn Device,
        batches: &[Batch],
        points: [&[u64]; 2],
        folded: &mut Folded,
    ) -> Vec<Gf> {
        fold_factors(device, batches.iter().map(|b| (b, None)), Factor::Right, points, folded)
    }

    fn combine(device: &dyn Device, batches: &[Batch], weights: &Weights) -> Gf {
        let mut sums = [0; GROUP];
        for (b, s) in weights.of(batches) {
            if b.of_numbers() {
                numbers::combine(device, b, s, &mut sums);
                continue;
            }
            let combine = |range: Range<usize>, words: &[u64]| {
                device.fold().words_combine(words, &s[of_piece(&range)], &mut sums);
            };
            b.rest_in_pieces(combine).expect("a verifier's batch");
        }
        let terms = weights.rho.iter().zip(sums).map(|(rho, sum)| gf_mul(*rho, sum));
        terms.fold(0, |sum, term| sum ^ term)
    }

    fn inner(device: &dyn Device, left: &[Gf], right: &[Gf]) -> Gf {
        let mut sum = [0];
        device.fold().field_message(left, right, 0, &mut sum);
        sum[0]
    }

    fn message(device: &dyn Device, left: &[Gf], right: &[Gf], vars: u32) -> Vec<Gf> {
        let mut sums = vec![0; points(vars)];
        device.fold().field_message(left, right, vars, &mut sums);
        sums
    }

    fn fold(device: &dyn Device, items: &[Gf], r: &[u64]) -> Vec<Gf> {
        let basis = basis::<Gf>(device, r);
        let mut out = vec![0; items.len().div_ceil(basis.len())];
        device.fold().field_fold(items, &basis, &mut out);
        out
    }
}
