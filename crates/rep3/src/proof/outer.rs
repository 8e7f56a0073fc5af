//! Values of products of polynomials whose coefficients are elements of the Galois ring: sums of outer products of
//! coefficients, which are matrix products on the device.

use super::galois::{DEGREE, Gr, reduce};
use privet_kernels::fold::{diagonal, points};
use privet_kernels::{Device, LinearShape};
use privet_ring::Ring;

/// The values of `sum over groups of u_g v_g` at all points, so far, as far as the low bits of a ring go.
pub(super) struct Sums {
    ring: Ring,
    vars: u32,
    /// Coefficient i of u times coefficient j of v at `64 i + j`, for every point.
    products: Vec<[u64; DEGREE * DEGREE]>,
    left: Vec<u64>,
    right: Vec<u64>,
}

impl Sums {
    pub fn new(ring: Ring, vars: u32) -> Sums {
        Sums { ring, vars, products: vec![[0; DEGREE * DEGREE]; points(vars)], left: vec![], right: vec![] }
    }

    /// Add groups of 2^vars items; what a last group lacks is 0.
    pub fn add(&mut self, device: &dyn Device, u: &[Gr], v: &[Gr]) {
        let (n, points) = (1 << self.vars, points(self.vars));
        let groups = u.len().div_ceil(n);
        let len = groups * DEGREE;
        [&mut self.left, &mut self.right].into_iter().for_each(|values| values.resize(points * len, 0));
        for l in 0..n {
            let at = diagonal(l) * len..(diagonal(l) + 1) * len;
            let (left, right) = (&mut self.left[at.clone()], &mut self.right[at]);
            if u.len() < groups * n {
                left.fill(0);
                right.fill(0);
            }
            by_coefficient(u.get(l..).unwrap_or_default(), self.vars, groups, left);
            let items = v.get(l..).unwrap_or_default().iter().step_by(n);
            right.as_chunks_mut().0.iter_mut().zip(items).for_each(|(out, item)| *out = *item);
        }
        extend(&mut self.left, len, self.vars);
        extend(&mut self.right, len, self.vars);
        let shape = LinearShape::MatMul { m: DEGREE, k: groups, n: DEGREE };
        let values = self.left.chunks(len).zip(self.right.chunks(len));
        for (out, (left, right)) in self.products.iter_mut().zip(values) {
            let right = device.prepare(self.ring, shape, right);
            device.linear_acc(self.ring, shape, left, right.as_ref(), out);
        }
    }

    /// The values; bits above the ring's mean nothing.
    pub fn finish(self) -> Vec<Gr> {
        self.products.iter().map(|c| collapse(c)).collect()
    }
}

/// Eight groups and coefficients at a time, so that both sides stay in a few cache lines: `out[i * n + g]` becomes
/// coefficient i of item `g << vars`.
fn by_coefficient(items: &[Gr], vars: u32, n: usize, out: &mut [u64]) {
    let groups = items.len().div_ceil(1 << vars);
    for first in (0..groups).step_by(8) {
        let some: Vec<&Gr> = items[first << vars..].iter().step_by(1 << vars).take(8).collect();
        for (i, row) in out.chunks_exact_mut(n).enumerate() {
            for (out, item) in row[first..].iter_mut().zip(&some) {
                *out = item[i];
            }
        }
    }
}

/// The values at all points of polynomials in `vars` variables, `len` words a point, from their coefficients, which stand
/// at [`diagonal`].
fn extend(planes: &mut [u64], len: usize, vars: u32) {
    for j in 0..vars {
        let place = points(j);
        for e in 0..points(vars) {
            // variable j at 1, and those above it not there yet
            if e / place % 3 != 1 || (j + 1..vars).any(|k| e / points(k) % 3 == 1) {
                continue;
            }
            let (before, rest) = planes.split_at_mut(e * len);
            let (out, after) = rest.split_at_mut(len);
            let (zero, infinity) = (&before[(e - place) * len..][..len], &after[(place - 1) * len..][..len]);
            for (out, (a, b)) in out.iter_mut().zip(zero.iter().zip(infinity)) {
                *out = a.wrapping_add(*b);
            }
        }
    }
}

/// The sums of coefficient products `c[i][j]` as a polynomial, reduced.
fn collapse(c: &[u64]) -> Gr {
    let mut wide = [0u64; 2 * DEGREE];
    for (i, row) in c.chunks(DEGREE).enumerate() {
        for (w, c) in wide[i..].iter_mut().zip(row) {
            *w = w.wrapping_add(*c);
        }
    }
    reduce(wide)
}
