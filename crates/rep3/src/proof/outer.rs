//! Values of products of polynomials whose coefficients are elements of the Galois rings.

use super::galois::{DEGREE, Gr, reduce};
use privet_kernels::fold::{Powers, Strided, Wide, points};
use privet_kernels::{Device, wide};

/// Groups at a time: their values at all points stay in the second-level cache, and products of many are cheaper.
fn groups(vars: u32) -> usize {
    (64 >> vars).max(8)
}

/// The values of `sum over groups of u_g v_g` at all points, so far.
pub(super) struct Sums {
    vars: u32,
    powers: Powers,
    /// At every point, before they are reduced.
    values: Vec<Wide>,
    /// Values of u and of v that are not coefficients.
    left: Vec<Gr>,
    right: Vec<Gr>,
}

impl Sums {
    /// Of polynomials in so many variables, whose coefficients have no other powers.
    pub fn new(vars: u32, powers: Powers) -> Sums {
        Sums { vars, powers, values: vec![[0; 2 * DEGREE]; points(vars)], left: vec![], right: vec![] }
    }

    /// Items that are best added at a time.
    pub fn piece(&self) -> usize {
        groups(self.vars) << self.vars
    }

    /// Add groups of 2^vars items; what a last group lacks is 0.
    pub fn add(&mut self, device: &dyn Device, u: &[Gr], v: &[Gr]) {
        let (vars, powers, piece) = (self.vars, self.powers, self.piece());
        for (u, v) in u.chunks(piece).zip(v.chunks(piece)) {
            let groups = u.len().div_ceil(1 << vars);
            let u = Values::of(u, vars, groups, &mut self.left);
            let v = Values::of(v, vars, groups, &mut self.right);
            // the value at the first point is not asked for
            let values = &mut self.values[1..];
            if groups < ENOUGH {
                // pairs of several points go into one instruction
                device.fold().products(&u.side_by_side(), &v.side_by_side(), powers, groups, values);
                continue;
            }
            let operands = (1..points(vars)).map(|e| {
                let ((a, stride), (b, _)) = (u.at(e), v.at(e));
                Strided { a, b, stride }
            });
            device.fold().products_of_some(&operands.collect::<Vec<_>>(), powers, groups, values);
        }
    }

    /// The values, 0 at the first point.
    pub fn finish(self) -> Vec<Gr> {
        self.values.into_iter().map(reduce).collect()
    }
}

/// Groups from which on those of one point fill instructions by themselves.
const ENOUGH: usize = 8;

/// The values of groups of items as polynomials: coefficients stay where they are, all others are made.
struct Values<'a> {
    items: &'a [Gr],
    vars: u32,
    groups: usize,
    /// Those of all groups at a point side by side; nothing at the points where they are coefficients.
    made: &'a [Gr],
}

impl<'a> Values<'a> {
    fn of(items: &'a [Gr], vars: u32, groups: usize, made: &'a mut Vec<Gr>) -> Values<'a> {
        made.resize(made.len().max(points(vars) * groups), [0; DEGREE]);
        for j in 0..vars {
            let place = points(j);
            for e in 0..points(vars) {
                // variable j at 1, and those above it not there yet
                if e / place % 3 != 1 || (j + 1..vars).any(|k| e / points(k) % 3 == 1) {
                    continue;
                }
                let (before, rest) = made.split_at_mut(e * groups);
                let (out, after) = rest.split_at_mut(groups);
                let zero = match coefficient(e - place, vars) {
                    Some(l) => (&items[l.min(items.len())..], 1 << vars),
                    None => (&before[(e - place) * groups..], 1),
                };
                let infinity = match coefficient(e + place, vars) {
                    Some(l) => (&items[l.min(items.len())..], 1 << vars),
                    None => (&after[(place - 1) * groups..], 1),
                };
                for (g, out) in out.iter_mut().enumerate() {
                    let at = |(items, stride): (&[Gr], usize)| -> usize { (g * stride).min(items.len()) };
                    let (a, b) = (&zero.0[at(zero)..], &infinity.0[at(infinity)..]);
                    *out = match (a.first(), b.first()) {
                        (Some(a), Some(b)) => wide!(std::array::from_fn(|i| a[i].wrapping_add(b[i]))),
                        (Some(one), None) | (None, Some(one)) => *one,
                        (None, None) => [0; DEGREE],
                    };
                }
            }
        }
        Values { items, vars, groups, made }
    }

    /// Those at point `e`: the first group's, and how far apart they are.
    fn at(&self, e: usize) -> (&[Gr], usize) {
        match coefficient(e, self.vars) {
            Some(l) => (&self.items[l.min(self.items.len())..], 1 << self.vars),
            None => (&self.made[e * self.groups..], 1),
        }
    }

    /// Those at all points but the first, of all groups at one point and then at the next.
    fn side_by_side(&self) -> Vec<Gr> {
        let at = |e| {
            let (values, stride) = self.at(e);
            (0..self.groups).map(move |g| values.get(g * stride).copied().unwrap_or([0; DEGREE]))
        };
        (1..points(self.vars)).flat_map(at).collect()
    }
}

/// The coefficient that is the value at a point where no variable is 1.
fn coefficient(e: usize, vars: u32) -> Option<usize> {
    (0..vars).try_fold(0, |l, j| match e / points(j) % 3 {
        0 => Some(l),
        1 => None,
        _ => Some(l | 1 << j),
    })
}
