//! Bits: lane i of a word is the coefficient of Y^i in GF(2^64).

use super::Column;
use super::batch::{Batch, Weights};
use super::extension::Extension;
use privet_kernels::Device;
use privet_kernels::fold::{GROUP, WORD_VARS, gf_mul, points};
use privet_plan::cost::proofs;
use privet_prg::Prg;
use privet_ring::Ring;

// the device's kernels are made for these groups
const _: () =
    assert!(proofs::Extension::Bits.first(1) == WORD_VARS && proofs::Extension::Bits.items() == GROUP);

/// An element of GF(2^64).
pub(super) type Gf = u64;

fn fold_columns<'a>(
    device: &dyn Device,
    columns: impl Iterator<Item = (&'a Column, Option<&'a [u64]>)>,
    basis: &[Gf],
) -> Vec<Gf> {
    let basis = basis.try_into().expect("a power for every word of a group");
    let columns: Vec<_> = columns.collect();
    let len = |column: &Column| column.len().next_multiple_of(GROUP);
    let mut items = Vec::with_capacity(columns.iter().map(|(column, _)| len(column)).sum());
    for (column, s) in columns {
        device.fold().words_fold(column, basis, s, &mut items);
    }
    items
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

    fn first_fold_u(device: &dyn Device, batches: &[Batch], weights: &Weights, basis: &[Gf]) -> Vec<Gf> {
        let columns = weights.of(batches).flat_map(|(b, s)| b.u.iter().map(move |u| (u, Some(s))));
        fold_columns(device, columns, basis)
    }

    fn first_fold_v(device: &dyn Device, batches: &[Batch], basis: &[Gf]) -> Vec<Gf> {
        fold_columns(device, batches.iter().flat_map(|b| b.v.iter().map(|v| (v, None))), basis)
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

    fn fold(device: &dyn Device, items: &[Gf], basis: &[Gf]) -> Vec<Gf> {
        let mut out = vec![0; items.len().div_ceil(basis.len())];
        device.fold().field_fold(items, basis, &mut out);
        out
    }
}
