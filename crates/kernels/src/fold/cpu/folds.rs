//! Values of polynomials over both Galois rings, a few polynomials at a time, one a lane.
//!
//! Multiples are taken by the method of four Russians: all sums of four consecutive coefficients are tabulated, and every
//! coefficient of the product looks one up in each table. Where follows from the multiplier alone, which is public.
//!
//! AVX2 and AVX-512 differ in nothing but how many lanes they have and what their additions are called, so both are made of one
//! macro: `#[target_feature]` names its features in words, which generics cannot.

use crate::fold::{GROUP, RINGS};

/// Coefficients of one ring that a table is made of.
pub(super) const WINDOW: usize = 4;
/// Of each ring.
pub(super) const WINDOWS: usize = GROUP / RINGS / WINDOW;

/// Windows of the product handled together: fewer, longer rounds of the loops of `add_multiple`.
pub(super) const TOGETHER: usize = 2;

/// Which sums a multiplier takes in each ring: coefficient 4 (w + m) + c of the product gets sum `[m][c]` of window w.
pub(super) type Places = [[[u8; WINDOW]; WINDOWS + 1]; RINGS];

pub(super) fn places(r: u64) -> Places {
    std::array::from_fn(|ring| {
        // bit i of a window's index belongs to the multiplier's coefficient 4 m + c - i
        let coefficient = |k: usize| r >> (RINGS * k + ring) & 1 == 1;
        let bit = |at: usize, i: usize| at >= i && at - i < GROUP / RINGS && coefficient(at - i);
        let index = |at: usize| (0..WINDOW).map(|i| u8::from(bit(at, i)) << i).sum();
        std::array::from_fn(|m| std::array::from_fn(|c| index(WINDOW * m + c)))
    })
}

/// The fold of a folder of paths: its register `V`, its elements by lanes `$Lanes` with what `lanes.rs` does with them, and what it
/// calls zeros, sums and differences of words.
macro_rules! galois_folds {
    ($features:literal, $Lanes:ident, $zero:ident, $add:ident, $sub:ident) => {
        /// The sums of every window of each ring: of its coefficients at the ones of the index.
        type Tables = [[[V; 1 << WINDOW]; WINDOWS]; RINGS];

        /// See [`crate::fold::FoldPath::ring_fold`]: for one variable after the other, the even ones and r times the odd ones.
        ///
        /// # Safety
        /// [`super::available`].
        #[target_feature(enable = $features)]
        pub(in crate::fold::cpu) unsafe fn ring_fold(items: &[Element], r: &[u64], out: &mut Vec<Element>) {
            let (zero, size) = ($zero(), 1 << r.len());
            let places: Vec<Places> = r.iter().map(|r| places(*r)).collect();
            let mut tables: Tables = [[[zero; 1 << WINDOW]; WINDOWS]; RINGS];
            // what waits for its odd one, of each variable, and the odd one
            let mut waiting: Vec<$Lanes> = vec![[zero; GROUP]; r.len() + 1];
            for groups in items.chunks(LANES * size) {
                let mut depth = 0;
                for l in 0..size {
                    gather(groups.get(l..).unwrap_or_default(), size, &mut waiting[depth]);
                    for places in &places[..l.trailing_ones() as usize] {
                        tabulate(&waiting[depth], &mut tables);
                        depth -= 1;
                        add_multiple(&tables, places, &mut waiting[depth]);
                    }
                    depth += 1;
                }
                let first = out.len();
                out.resize(first + groups.len().div_ceil(size), [0; GROUP]);
                for (i, part) in waiting[0].as_chunks().0.iter().enumerate() {
                    for (out, words) in out[first..].iter_mut().zip(transpose(*part)) {
                        store(&mut out.as_chunks_mut().0[i], words);
                    }
                }
            }
        }

        #[target_feature(enable = $features)]
        #[inline]
        fn tabulate(x: &$Lanes, tables: &mut Tables) {
            for (ring, tables) in tables.iter_mut().enumerate() {
                for (x, table) in x.as_chunks::<{ RINGS * WINDOW }>().0.iter().zip(tables) {
                    let of_ring: [V; WINDOW] = std::array::from_fn(|i| x[RINGS * i + ring]);
                    for (i, x) in of_ring.iter().enumerate() {
                        let (without, with) = table.split_at_mut(1 << i);
                        for (with, without) in with.iter_mut().zip(without) {
                            *with = $add(*without, *x);
                        }
                    }
                }
            }
        }

        /// Add the tabulated element times the one of `places`.
        #[target_feature(enable = $features)]
        #[inline]
        fn add_multiple([first, second]: &Tables, places: &Places, sum: &mut $Lanes) {
            add_multiple_in::<0>(first, &places[0], sum);
            add_multiple_in::<1>(second, &places[1], sum);
        }

        /// The same in one ring.
        #[target_feature(enable = $features)]
        #[inline]
        fn add_multiple_in<const RING: usize>(
            tables: &[[V; 1 << WINDOW]; WINDOWS],
            places: &[[u8; WINDOW]; WINDOWS + 1],
            sum: &mut $Lanes,
        ) {
            let zero = $zero();
            let add = |to: &mut [V; WINDOW], table: &[V; 1 << WINDOW], places: &[u8; WINDOW]| {
                for (to, place) in to.iter_mut().zip(places) {
                    *to = $add(*to, table[usize::from(place % (1 << WINDOW))]);
                }
            };
            // Y^32 = -Y^7 - Y^3 - Y^2 - 1: what four coefficients get of the eight before them and of those at their own place
            let times = |[_, b, c, d]: [V; WINDOW], [e, f, g, h]: [V; WINDOW], [i, j, k, l]: [V; WINDOW]| {
                let sum = |p: V, q: V, r: V, s: V| $add($add(p, q), $add(r, s));
                [sum(i, g, f, b), sum(j, h, g, c), sum(k, i, h, d), sum(l, j, i, e)]
            };
            let mut below = [[zero; WINDOW]; 2];
            for (i, sum) in sum.as_chunks_mut::<{ RINGS * WINDOW * TOGETHER }>().0.iter_mut().enumerate() {
                let k = TOGETHER * i;
                // coefficients from 4 k on, and from 32 + 4 k on
                let (mut low, mut high) = ([[zero; WINDOW]; TOGETHER], [[zero; WINDOW]; TOGETHER]);
                for w in 0..k {
                    for (t, low) in low.iter_mut().enumerate() {
                        add(low, &tables[w], &places[k + t - w]);
                    }
                }
                for w in 0..TOGETHER {
                    for t in 0..TOGETHER {
                        if w <= t {
                            add(&mut low[t], &tables[k + w], &places[t - w]);
                        }
                        if w >= t {
                            add(&mut high[t], &tables[k + w], &places[WINDOWS + t - w]);
                        }
                    }
                }
                for w in k + TOGETHER..WINDOWS {
                    for (t, high) in high.iter_mut().enumerate() {
                        add(high, &tables[w], &places[WINDOWS + k + t - w]);
                    }
                }
                for ((sum, low), high) in
                    sum.as_chunks_mut::<{ RINGS * WINDOW }>().0.iter_mut().zip(low).zip(high)
                {
                    let times = times(below[0], below[1], high);
                    for (c, (low, times)) in low.into_iter().zip(times).enumerate() {
                        let sum = &mut sum[RINGS * c + RING];
                        *sum = $add(*sum, $sub(low, times));
                    }
                    below = [below[1], high];
                }
            }
            // and again for what comes out beyond the last one
            let nothing = [zero; WINDOW];
            let over = [times(below[0], below[1], nothing), times(below[1], nothing, nothing)];
            for (k, again) in over.as_flattened().iter().enumerate() {
                for down in DOWN {
                    let sum = &mut sum[RINGS * k + RING + down];
                    *sum = $add(*sum, *again);
                }
            }
        }
    };
}
pub(super) use galois_folds;
