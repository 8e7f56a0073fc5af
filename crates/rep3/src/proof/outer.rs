//! Values of products of polynomials whose coefficients are elements of the Galois ring.

use super::galois::{DEGREE, Gr, reduce};
use privet_kernels::Device;
use privet_kernels::fold::{Wide, diagonal, points};

/// Groups at a time: their values at all points stay in the second-level cache.
const GROUPS: usize = 8;

/// The values of `sum over groups of u_g v_g` at all points, so far.
pub(super) struct Sums {
    vars: u32,
    /// At every point, before they are reduced.
    values: Vec<Wide>,
    /// Values of u and of v, those of all groups at a point side by side.
    left: Vec<Gr>,
    right: Vec<Gr>,
}

impl Sums {
    pub fn new(vars: u32) -> Sums {
        Sums { vars, values: vec![[0; 2 * DEGREE]; points(vars)], left: vec![], right: vec![] }
    }

    /// Add groups of 2^vars items; what a last group lacks is 0.
    pub fn add(&mut self, device: &dyn Device, u: &[Gr], v: &[Gr]) {
        let piece = GROUPS << self.vars;
        for (u, v) in u.chunks(piece).zip(v.chunks(piece)) {
            let groups = u.len().div_ceil(1 << self.vars);
            at_all_points(u, self.vars, groups, &mut self.left);
            at_all_points(v, self.vars, groups, &mut self.right);
            device.fold().products(&self.left, &self.right, groups, &mut self.values);
        }
    }

    /// The values.
    pub fn finish(self) -> Vec<Gr> {
        self.values.into_iter().map(reduce).collect()
    }
}

/// Groups of 2^vars items as polynomials, at all points.
fn at_all_points(items: &[Gr], vars: u32, groups: usize, out: &mut Vec<Gr>) {
    out.resize(points(vars) * groups, [0; DEGREE]);
    for l in 0..1 << vars {
        let of_groups = &mut out[diagonal(l) * groups..][..groups];
        for (g, out) in of_groups.iter_mut().enumerate() {
            *out = items.get((g << vars) + l).copied().unwrap_or([0; DEGREE]);
        }
    }
    extend(out.as_flattened_mut(), groups * DEGREE, vars);
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
