//! Ring elements: statements over Z_2^64 in the Galois ring Z_2^64\[Y\]/(Y^64 + Y^4 + Y^3 + Y + 1).

use super::Column;
use super::batch::{Batch, Weights, groups};
use super::extension::Extension;
use privet_kernels::Device;
use privet_kernels::fold::cpu::ring_values;
use privet_kernels::fold::points;
use privet_prg::Prg;
use privet_ring::Ring;

/// Coefficients of an element.
pub(super) const DEGREE: usize = 64;

/// An element of the Galois ring, coefficient i for Y^i.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Gr(pub [u64; DEGREE]);

/// A polynomial of degree at most 126 modulo Y^64 = -Y^4 - Y^3 - Y - 1.
fn reduce(mut wide: [u64; 2 * DEGREE]) -> Gr {
    for i in (DEGREE..2 * DEGREE).rev() {
        let c = wide[i];
        for down in [0, 1, 3, 4] {
            wide[i - DEGREE + down] = wide[i - DEGREE + down].wrapping_sub(c);
        }
    }
    let mut low = [0; DEGREE];
    low.copy_from_slice(&wide[..DEGREE]);
    Gr(low)
}

impl Gr {
    /// Times an element of the exceptional set (public: branches on its bits).
    fn times_bits(&self, bits: u64) -> Gr {
        let mut wide = [0u64; 2 * DEGREE];
        let mut rest = bits;
        while rest != 0 {
            let i = rest.trailing_zeros() as usize;
            for (w, c) in wide[i..].iter_mut().zip(&self.0) {
                *w = w.wrapping_add(*c);
            }
            rest &= rest - 1;
        }
        reduce(wide)
    }

    fn scale(&self, c: u64) -> Gr {
        Gr(self.0.map(|a| a.wrapping_mul(c)))
    }

    fn fold_column(column: &Column, shift: u32, basis: &[Gr], s: Option<&[u64]>, items: &mut Vec<Gr>) {
        for (g, words) in column.chunks(basis.len()).enumerate() {
            let terms = words.iter().zip(basis).map(|(w, b)| b.scale(w << shift));
            let item = terms.fold(Gr::ZERO, Gr::add);
            items.push(s.map_or(item, |s| item.times_bits(s[g])));
        }
    }
}

impl Extension for Gr {
    const ZERO: Gr = Gr([0; DEGREE]);
    const BYTES: usize = 8 * DEGREE;
    const FIRST: u32 = 4;

    fn embed(bits: u64) -> Gr {
        Gr(std::array::from_fn(|i| bits >> i & 1))
    }

    fn add(self, other: Gr) -> Gr {
        Gr(std::array::from_fn(|i| self.0[i].wrapping_add(other.0[i])))
    }

    fn sub(self, other: Gr) -> Gr {
        Gr(std::array::from_fn(|i| self.0[i].wrapping_sub(other.0[i])))
    }

    fn mul(self, other: Gr) -> Gr {
        let mut wide = [0u64; 2 * DEGREE];
        for (i, a) in self.0.iter().enumerate() {
            for (w, b) in wide[i..].iter_mut().zip(&other.0) {
                *w = w.wrapping_add(a.wrapping_mul(*b));
            }
        }
        reduce(wide)
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.0.iter().flat_map(|c| c.to_le_bytes()));
    }

    fn get(bytes: &[u8]) -> Gr {
        let mut element = Gr::ZERO;
        for (c, bytes) in element.0.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *c = u64::from_le_bytes(*bytes);
        }
        element
    }

    fn draw(prg: &mut Prg) -> Gr {
        let mut element = Gr::ZERO;
        prg.fill(Ring::R64, &mut element.0);
        element
    }

    fn items(words: usize, terms: usize) -> usize {
        groups::<Gr>(words) * terms
    }

    fn first_message(_device: &dyn Device, batches: &[Batch], weights: &Weights) -> Vec<Gr> {
        let mut sums = vec![Gr::ZERO; points(Gr::FIRST)];
        for (b, s) in weights.of::<Gr>(batches) {
            let terms: Vec<_> = b.u.iter().zip(&b.v).map(|(u, v)| (&u[..], &v[..])).collect();
            let mut values = vec![0; s.len() * sums.len()];
            ring_values(&terms, Gr::FIRST, &mut values);
            for (values, s) in values.chunks(sums.len()).zip(s) {
                for (sum, z) in sums.iter_mut().zip(values) {
                    *sum = sum.add(Gr::embed(*s).scale(z << b.shift));
                }
            }
        }
        sums
    }

    fn first_fold_u(_device: &dyn Device, batches: &[Batch], weights: &Weights, basis: &[Gr]) -> Vec<Gr> {
        let mut items = vec![];
        for (b, s) in weights.of::<Gr>(batches) {
            b.u.iter().for_each(|u| Gr::fold_column(u, b.shift, basis, Some(s), &mut items));
        }
        items
    }

    fn first_fold_v(_device: &dyn Device, batches: &[Batch], basis: &[Gr]) -> Vec<Gr> {
        let mut items = vec![];
        for b in batches {
            b.v.iter().for_each(|v| Gr::fold_column(v, 0, basis, None, &mut items));
        }
        items
    }

    fn combine(_device: &dyn Device, batches: &[Batch], weights: &Weights) -> Gr {
        let mut total = Gr::ZERO;
        for (b, s) in weights.of::<Gr>(batches) {
            let column = b.s.as_ref().expect("verifiers have s");
            for (words, s) in column.chunks(1 << Gr::FIRST).zip(s) {
                let terms =
                    words.iter().zip(&weights.rho).map(|(w, rho)| Gr::embed(*rho).scale(w << b.shift));
                total = total.add(terms.fold(Gr::ZERO, Gr::add).times_bits(*s));
            }
        }
        total
    }

    fn message(_device: &dyn Device, u: &[Gr], v: &[Gr], vars: u32) -> Vec<Gr> {
        let mut sums = vec![Gr::ZERO; points(vars)];
        for (u, v) in u.chunks(1 << vars).zip(v.chunks(1 << vars)) {
            let (u, v) = (super::tensor::extend(u, vars), super::tensor::extend(v, vars));
            for (sum, (u, v)) in sums.iter_mut().zip(u.into_iter().zip(v)) {
                *sum = sum.add(u.mul(v));
            }
        }
        sums
    }

    fn fold(_device: &dyn Device, items: &[Gr], basis: &[Gr]) -> Vec<Gr> {
        let inner = |items: &[Gr]| items.iter().zip(basis).fold(Gr::ZERO, |sum, (a, b)| sum.add(a.mul(*b)));
        items.chunks(basis.len()).map(inner).collect()
    }
}
