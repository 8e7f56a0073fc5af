//! Bits: lane i of a word is the coefficient of Y^i in GF(2^64).

use super::Column;
use super::batch::{Batch, Weights};
use super::extension::Extension;
use super::tensor::basis;
use privet_kernels::Device;
use privet_kernels::fold::{GROUP, WORD_VARS, gf_mul, points};
use privet_plan::cost::proofs;
use privet_prg::Prg;
use privet_ring::Ring;

// the device's kernels are made for these groups
const _: () = assert!(proofs::Extension::Bits.first(1) == WORD_VARS);

/// An element of GF(2^64).
pub(super) type Gf = u64;

/// Words at a time: what the first fold makes of them stays in the first-level cache.
const PIECE: usize = 32 * GROUP;

/// Columns after both folds, the second of lanes, with the weights of their groups.
fn fold_columns<'a>(
    device: &dyn Device,
    columns: impl Iterator<Item = (&'a Column, Option<&'a [u64]>)>,
    points: [&[u64]; 2],
) -> Vec<Gf> {
    let [first, second] = points.map(|r| basis::<Gf>(device, r));
    let first = powers(&first);
    let (mut lanes, mut items) = (Vec::with_capacity(PIECE), vec![]);
    for (column, s) in columns {
        for (i, words) in column.chunks(PIECE).enumerate() {
            lanes.clear();
            device.fold().words_fold(words, first, s.map(|s| of_piece(s, i)), &mut lanes);
            let at = items.len();
            items.resize(at + lanes.len().div_ceil(second.len()), 0);
            device.fold().field_fold(&lanes, &second, &mut items[at..]);
        }
    }
    items
}

/// Most words of u whose first fold is kept until the second: 8 MiB, and little where tests are to see both ways.
const KEPT: usize = if cfg!(test) { 1 << 10 } else { 1 << 20 };

/// The weights of the groups of piece `i`.
fn of_piece(s: &[u64], i: usize) -> &[u64] {
    let groups = PIECE / GROUP;
    &s[i * groups..s.len().min((i + 1) * groups)]
}

fn powers(first: &[Gf]) -> &[Gf; GROUP] {
    first.try_into().expect("a power for every word of a group")
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

    fn draw(prg: &mut Prg) -> Gf {
        let mut word = [0];
        prg.fill(Ring::R64, &mut word);
        word[0]
    }

    fn first_message(device: &dyn Device, batches: &[Batch], weights: &Weights) -> Vec<Gf> {
        let mut sums = vec![0; points(WORD_VARS)];
        for (b, s) in weights.of(batches) {
            let terms: Vec<_> = b.u.iter().zip(&b.v).map(|(u, v)| (&u[..], &v[..])).collect();
            device.fold().words_message(&terms, s, &mut sums);
        }
        sums
    }

    fn second_message(
        device: &dyn Device,
        batches: &[Batch],
        weights: &Weights,
        first: &[u64],
    ) -> (Vec<Gf>, Option<[Vec<Gf>; 2]>) {
        let (first, vars) = (basis::<Gf>(device, first), weights.vars[1]);
        let first = powers(&first);
        let words: usize = batches.iter().map(|b| b.words.next_multiple_of(GROUP) * b.terms).sum();
        let keep = words <= KEPT;
        let room = if keep { words } else { PIECE };
        let (mut left, mut right) = (Vec::with_capacity(room), Vec::with_capacity(room));
        let mut sums = vec![0; points(vars)];
        for (b, s) in weights.of(batches) {
            for (u, v) in b.u.iter().zip(&b.v) {
                for (i, (u, v)) in u.chunks(PIECE).zip(v.chunks(PIECE)).enumerate() {
                    if !keep {
                        left.clear();
                        right.clear();
                    }
                    let at = left.len();
                    device.fold().words_fold(u, first, Some(of_piece(s, i)), &mut left);
                    device.fold().words_fold(v, first, None, &mut right);
                    device.fold().field_message(&left[at..], &right[at..], vars, &mut sums);
                }
            }
        }
        (sums, keep.then_some([left, right]))
    }

    fn words_u(device: &dyn Device, batches: &[Batch], weights: &Weights, points: [&[u64]; 2]) -> Vec<Gf> {
        let columns = weights.of(batches).flat_map(|(b, s)| b.u.iter().map(move |u| (u, Some(s))));
        fold_columns(device, columns, points)
    }

    fn words_v(device: &dyn Device, batches: &[Batch], points: [&[u64]; 2]) -> Vec<Gf> {
        fold_columns(device, batches.iter().flat_map(|b| b.v.iter().map(|v| (v, None))), points)
    }

    fn combine(device: &dyn Device, batches: &[Batch], weights: &Weights) -> Gf {
        let mut sums = [0; GROUP];
        for (b, s) in weights.of(batches) {
            let column = b.s.as_ref().expect("verifiers have s");
            device.fold().words_combine(column, s, &mut sums);
        }
        let terms = weights.rho.iter().zip(sums).map(|(rho, sum)| gf_mul(*rho, sum));
        terms.fold(0, |sum, term| sum ^ term)
    }

    fn message(device: &dyn Device, u: &[Gf], v: &[Gf], vars: u32) -> Vec<Gf> {
        let mut sums = vec![0; points(vars)];
        device.fold().field_message(u, v, vars, &mut sums);
        sums
    }

    fn fold(device: &dyn Device, items: Vec<Gf>, r: &[u64]) -> Vec<Gf> {
        let basis = basis::<Gf>(device, r);
        let mut out = vec![0; items.len().div_ceil(basis.len())];
        device.fold().field_fold(&items, &basis, &mut out);
        out
    }
}
