//! Bits: lane i of a word is the coefficient of Y^i in GF(2^64).

use super::batch::{Batch, Weights};
use super::extension::Extension;
use super::tensor::basis;
use crate::price::proofs;
use privet_kernels::Device;
use privet_kernels::fold::{GROUP, WORD_VARS, WordTerms, Words, WordsFold, gf_mul, points};
use privet_prg::Prg;
use privet_ring::Ring;

// the device's kernels are made for these groups
const _: () = assert!(proofs::OF_BITS[0] == WORD_VARS);

/// An element of GF(2^64).
pub(super) type Gf = u64;

/// Words at a time: what the first fold makes of them stays in the first-level cache.
const PIECE: usize = 32 * GROUP;

/// Factors after both folds, with the weights of their groups; zeros for those that a verifier has nothing of. The second fold is of
/// lanes, and of what numbers leave.
fn fold_factors<'a>(
    device: &dyn Device,
    factors: impl Iterator<Item = (&'a Batch, Option<Words<'a>>, Option<&'a [u64]>)>,
    points: [&[u64]; 2],
) -> Vec<Gf> {
    let [first, second] = points.map(|r| basis::<Gf>(device, r));
    let first = First::new(device, &first);
    let (mut lanes, mut numbers, mut items) = (Vec::with_capacity(PIECE), vec![], vec![]);
    let fold = |lanes: &[Gf], items: &mut Vec<Gf>| {
        let at = items.len();
        items.resize(at + lanes.len().div_ceil(second.len()), 0);
        device.fold().field_fold(lanes, &second, &mut items[at..]);
    };
    for (batch, factor, s) in factors {
        let groups = batch.words.div_ceil(GROUP);
        match factor {
            None if batch.of_numbers() => numbers.resize(numbers.len() + groups, 0),
            None => items.resize(items.len() + groups * GROUP / second.len(), 0),
            Some(Words::Whole(words)) if !batch.of_numbers() => {
                for (i, words) in words.chunks(PIECE).enumerate() {
                    lanes.clear();
                    first.words.append(words, s.map(|s| of_piece(s, i)), &mut lanes);
                    fold(&lanes, &mut items);
                }
            }
            Some(factor) => first.number(device, factor, s, &mut numbers),
        }
    }
    fold(&numbers, &mut items);
    items
}

/// The first fold.
struct First {
    powers: [Gf; GROUP],
    words: WordsFold,
}

impl First {
    /// At the point with these powers.
    fn new(device: &dyn Device, powers: &[Gf]) -> First {
        let powers = powers.try_into().expect("a power for every word of a group");
        First { powers, words: device.fold().words_fold(&powers) }
    }

    /// Append an item for each group of words that are one element each, or of bits that are 0 or 1, times its weight.
    fn number(&self, device: &dyn Device, operand: Words, s: Option<&[u64]>, items: &mut Vec<Gf>) {
        let at = items.len();
        match operand {
            Words::Whole(words) => {
                items.resize(at + words.len().div_ceil(GROUP), 0);
                device.fold().field_fold(words, &self.powers, &mut items[at..]);
            }
            Words::Bits(bits) => items.extend(device.fold().bits_fold(bits, &self.powers)),
        }
        if let Some(s) = s {
            device.fold().field_weigh(&mut items[at..], s);
        }
    }
}

/// Lanes of left factors, and as many of right ones, whose products are added at a time: they stay in the second-level cache, and what is left to do for
/// every sum at the end is little against them.
const TOGETHER: usize = 8 * PIECE;

/// Most words of left factors whose first fold is kept until the second: 8 MiB, and little where tests are to see both ways.
const KEPT: usize = if cfg!(test) { 1 << 10 } else { 1 << 20 };

/// The weights of the groups of piece `i`.
fn of_piece(s: &[u64], i: usize) -> &[u64] {
    let groups = PIECE / GROUP;
    &s[i * groups..s.len().min((i + 1) * groups)]
}

impl Extension for Gf {
    const ZERO: Gf = 0;
    const BYTES: usize = proofs::Extension::Bits.bytes();

    fn embed(bits: u64) -> Gf {
        bits
    }

    fn add(self, other: Gf) -> Gf {
        self ^ other
    }

    fn sub(self, other: Gf) -> Gf {
        self ^ other
    }

    fn mul(self, other: Gf) -> Gf {
        gf_mul(self, other)
    }

    fn times(_device: &dyn Device, items: &mut [Gf], bits: u64) {
        items.iter_mut().for_each(|item| *item = gf_mul(*item, bits));
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
        let batches: Vec<_> = weights
            .of(batches)
            .map(|(b, weights)| WordTerms { words: b.words, terms: b.factors().collect(), weights })
            .collect();
        device.fold().words_message(&batches, &mut sums);
        sums
    }

    fn second_message(
        device: &dyn Device,
        batches: &[Batch],
        weights: &Weights,
        first: &[u64],
    ) -> (Vec<Gf>, Option<[Vec<Gf>; 2]>) {
        let (first, vars) = (First::new(device, &basis::<Gf>(device, first)), weights.vars[1]);
        let (numbers, words): (Vec<_>, Vec<_>) = weights.of(batches).partition(|(b, _)| b.of_numbers());
        let sum = |of: &[(&Batch, _)]| {
            of.iter().map(|(b, _)| b.words.div_ceil(GROUP) * b.terms.len()).sum::<usize>()
        };
        let (lanes, others) = (GROUP * sum(&words), sum(&numbers));
        let keep = lanes <= KEPT;
        let room = others + if keep { lanes } else { TOGETHER + PIECE };
        let (mut left, mut right) = (Vec::with_capacity(room), Vec::with_capacity(room));
        let (mut sums, mut added) = (vec![0; points(vars)], 0);
        let terms = words.iter().flat_map(|(b, s)| b.left_words().zip(b.right_words()).map(move |f| (f, s)));
        for ((a, b), s) in terms {
            for (i, (a, b)) in a.chunks(PIECE).zip(b.chunks(PIECE)).enumerate() {
                first.words.append(a, Some(of_piece(s, i)), &mut left);
                first.words.append(b, None, &mut right);
                if left.len() - added >= TOGETHER {
                    device.fold().field_message(&left[added..], &right[added..], vars, &mut sums);
                    if !keep {
                        left.clear();
                        right.clear();
                    }
                    added = left.len();
                }
            }
        }
        for (b, s) in numbers {
            for (number, bit) in b.factors() {
                first.number(device, number, Some(s), &mut left);
                first.number(device, bit, None, &mut right);
            }
        }
        device.fold().field_message(&left[added..], &right[added..], vars, &mut sums);
        (sums, keep.then_some([left, right]))
    }

    fn words_left(device: &dyn Device, batches: &[Batch], weights: &Weights, points: [&[u64]; 2]) -> Vec<Gf> {
        let factors = weights.of(batches).flat_map(|(b, s)| b.left().map(move |left| (b, left, Some(s))));
        fold_factors(device, factors, points)
    }

    fn words_right(device: &dyn Device, batches: &[Batch], points: [&[u64]; 2]) -> Vec<Gf> {
        fold_factors(device, batches.iter().flat_map(|b| b.right().map(move |r| (b, r, None))), points)
    }

    fn combine(device: &dyn Device, batches: &[Batch], weights: &Weights) -> Gf {
        let mut sums = [0; GROUP];
        for (b, s) in weights.of(batches) {
            let column = b.rest.as_ref().expect("a verifier's batch");
            device.fold().words_combine(column, s, &mut sums);
        }
        let terms = weights.rho.iter().zip(sums).map(|(rho, sum)| gf_mul(*rho, sum));
        terms.fold(0, |sum, term| sum ^ term)
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
