//! One block, some words of its planes at a time: the steps of [`super::super::spec`] on whole lanes.
//!
//! x and what was opened is public. All else is secret and goes through the same operations whatever it is.

use super::lane::Lane;
use crate::chunks::{Chunks, Group, Level};

/// Planes of a block, of which a lane reads the words from `at` on.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// Words of a plane.
    pub side: usize,
    /// The first word.
    pub at: usize,
}

impl Place {
    #[inline(always)]
    fn load<L: Lane>(self, planes: &[u64], plane: usize) -> L {
        L::load(&planes[plane * self.side + self.at..])
    }

    #[inline(always)]
    fn store<L: Lane>(self, planes: &mut [u64], plane: usize, lane: L) {
        lane.store(&mut planes[plane * self.side + self.at..]);
    }
}

/// Calls `$f::<L, N, 2^(N-2)>` (at least one) for the number N of bits of a chunk.
macro_rules! by_size {
    ($size:expr, $f:ident, $($arg:expr),*) => {
        match $size {
            1 => $f::<L, 1, 1>($($arg),*),
            2 => $f::<L, 2, 1>($($arg),*),
            3 => $f::<L, 3, 2>($($arg),*),
            4 => $f::<L, 4, 4>($($arg),*),
            5 => $f::<L, 5, 8>($($arg),*),
            6 => $f::<L, 6, 16>($($arg),*),
            7 => $f::<L, 7, 32>($($arg),*),
            _ => $f::<L, 8, 64>($($arg),*),
        }
    };
}

/// Calls `$f::<L, N, 2^N>` for the number N of items of a group.
macro_rules! by_items {
    ($items:expr, $f:ident, $($arg:expr),*) => {
        match $items {
            1 => $f::<L, 1, 2>($($arg),*),
            2 => $f::<L, 2, 4>($($arg),*),
            3 => $f::<L, 3, 8>($($arg),*),
            4 => $f::<L, 4, 16>($($arg),*),
            5 => $f::<L, 5, 32>($($arg),*),
            6 => $f::<L, 6, 64>($($arg),*),
            7 => $f::<L, 7, 128>($($arg),*),
            8 => $f::<L, 8, 256>($($arg),*),
            _ => $f::<L, 9, 512>($($arg),*),
        }
    };
}

/// See [`super::super::spec::leaves`]; plane l of `x` has bit l of the points.
#[inline(always)]
pub(super) fn leaves<L: Lane>(
    chunks: &Chunks,
    leads: bool,
    place: Place,
    x: &[u64],
    tables: &[u64],
    out: &mut [u64],
) {
    let (mut shift, mut table, mut next) = (chunks.bits() as usize, 0, 0);
    for (i, &size) in chunks.sizes.iter().enumerate() {
        shift -= size as usize;
        let (before, lt) =
            by_size!(size, read, place, leads, &x[shift * place.side..], &tables[table * place.side..]);
        table += (1 << size) - 1;
        if !chunks.equal {
            place.store(out, next, lt);
            next += 1;
        }
        if chunks.equal || i + 1 < chunks.sizes.len() {
            place.store(out, next, lt.xor(before));
            next += 1;
        }
    }
}

/// The table of `S` bits just before the place x and at it: 1 before the first, 0 at the last.
///
/// A search by halves from the top bit t of x, its end points kept: what stands between them at the odd multiples of 2^t is
/// first chosen by the bits above t.
#[inline(always)]
fn read<L: Lane, const S: usize, const HALF: usize>(
    place: Place,
    leads: bool,
    x: &[u64],
    table: &[u64],
) -> (L, L) {
    let x: [L; S] = std::array::from_fn(|t| place.load(x, t));
    let (mut before, mut at) = (L::fill(leads), L::fill(false));
    for t in (0..S).rev() {
        let entry = |odd: usize| place.load::<L>(table, (odd << t) - 1);
        let middle = if t + 1 == S {
            entry(1)
        } else {
            let mut chosen = [at; HALF];
            let mut left = 1 << (S - 2 - t);
            for (k, chosen) in chosen[..left].iter_mut().enumerate() {
                *chosen = x[t + 1].pick(entry(4 * k + 3), entry(4 * k + 1));
            }
            for x in &x[t + 2..] {
                left /= 2;
                for k in 0..left {
                    chosen[k] = x.pick(chosen[2 * k + 1], chosen[2 * k]);
                }
            }
            chosen[0]
        };
        (before, at) = (x[t].pick(middle, before), x[t].pick(at, middle));
    }
    (before, at)
}

/// See [`super::super::spec::tables`]; plane l of `r` has bit l of the thresholds.
#[inline(always)]
pub(super) fn tables<L: Lane>(chunks: &Chunks, place: Place, r: &[u64], out: &mut [u64]) {
    let (mut shift, mut first) = (chunks.bits() as usize, 0);
    for &size in &chunks.sizes {
        shift -= size as usize;
        for m in 0..size as usize {
            // one bit more at the top: entries below half and the half itself, then those above
            let (bit, half): (L, usize) = (place.load(r, shift + m), 1 << m);
            for v in first..first + half - 1 {
                let lower: L = place.load(out, v);
                place.store(out, v + half, bit.and(lower));
                place.store(out, v, bit.or(lower));
            }
            place.store(out, first + half - 1, bit);
        }
        first += (1 << size) - 1;
    }
}

/// See [`super::super::spec::products`].
#[inline(always)]
pub(super) fn products<L: Lane>(level: &Level, place: Place, masks: &[u64], out: &mut [u64]) {
    let mut next = 0;
    for group in level.each() {
        by_items!(group.size, group_products, &group, place, masks, out, &mut next);
    }
}

#[inline(always)]
fn group_products<L: Lane, const G: usize, const SETS: usize>(
    group: &Group,
    place: Place,
    masks: &[u64],
    out: &mut [u64],
    next: &mut usize,
) {
    let mut put = |lane: L| {
        place.store(out, *next, lane);
        *next += 1;
    };
    let mut all = [L::fill(true); SETS];
    for set in 1usize..1 << group.variables() {
        let top = set.ilog2() as usize;
        all[set] = all[set ^ 1 << top].and(place.load(masks, group.eq(top)));
        if !set.is_power_of_two() {
            put(all[set]);
        }
    }
    if !group.equal {
        for i in (0..G).rev() {
            let b: L = place.load(masks, group.lt(i));
            all[1..1 << i].iter().for_each(|all| put(b.and(*all)));
        }
    }
}

/// See [`super::super::spec::combine`].
#[inline(always)]
pub(super) fn combine<L: Lane>(
    level: &Level,
    leads: bool,
    place: Place,
    [opened, products, masks]: [&[u64]; 3],
    out: &mut [u64],
) {
    let (mut dealt, mut next) = (0, 0);
    for group in level.each() {
        by_items!(
            group.size,
            fold,
            &group,
            place,
            leads,
            [opened, products, masks],
            &mut dealt,
            out,
            &mut next
        );
    }
}

/// The polynomials of a group by folding one variable after the other: with `f[S]` the share of what is multiplied by the
/// masks S, `(q & f[S]) ^ f[S + j]` is that of what is multiplied by `eq_j = q ^ a_j` too.
#[inline(always)]
fn fold<L: Lane, const G: usize, const SETS: usize>(
    group: &Group,
    place: Place,
    leads: bool,
    [opened, products, masks]: [&[u64]; 3],
    dealt: &mut usize,
    out: &mut [u64],
    next: &mut usize,
) {
    let mut product = || {
        *dealt += 1;
        place.load::<L>(products, *dealt - 1)
    };
    let mut put = |lane: L| {
        place.store(out, *next, lane);
        *next += 1;
    };
    let mut f = [L::fill(leads); SETS];
    for (set, f) in f.iter_mut().enumerate().take(1 << group.variables()).skip(1) {
        *f = match set.is_power_of_two() {
            true => place.load(masks, group.eq(set.ilog2() as usize)),
            false => product(),
        };
    }
    if !group.equal {
        // from the last item on: `w[S]` is the share of the masks S times `lt_i ^ eq_i (lt_(i+1) ^ eq_(i+1) (...))`
        let mut w = f;
        for i in (0..G).rev() {
            let p: L = place.load(opened, group.lt(i));
            let q: L = if i + 1 < G { place.load(opened, group.eq(i)) } else { L::fill(false) };
            for set in 0..1usize << i {
                let b = if set == 0 { place.load(masks, group.lt(i)) } else { product() };
                let lt = p.and_xor(f[set], b);
                w[set] = if i + 1 < G { lt.xor(q.and_xor(w[set], w[set | 1 << i])) } else { lt };
            }
        }
        put(w[0]);
    }
    if group.equal || !group.last {
        for i in (0..G).rev() {
            let q: L = place.load(opened, group.eq(i));
            for set in 0..1usize << i {
                f[set] = q.and_xor(f[set], f[set | 1 << i]);
            }
        }
        put(f[0]);
    }
}
