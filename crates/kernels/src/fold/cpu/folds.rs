//! Values of polynomials over the Galois ring, a few polynomials at a time, one a lane.
//!
//! Multiples are taken by the method of four Russians: all sums of four consecutive coefficients are tabulated, and every
//! coefficient of the product looks one up in each table. Where follows from the multiplier alone, which is public.
//!
//! AVX2 and AVX-512 differ in nothing but how many lanes they have and what their additions are called, so both are made of one
//! macro: `#[target_feature]` names its features in words, which generics cannot.

use crate::fold::GROUP;

/// Coefficients a table is made of.
pub(super) const WINDOW: usize = 4;
pub(super) const WINDOWS: usize = GROUP / WINDOW;

/// Windows of the product handled together: fewer, longer rounds of the loops of `add_multiple`.
pub(super) const TOGETHER: usize = 2;

/// Which sums a multiplier takes: coefficient 4 (w + m) + c of the product gets sum `[m][c]` of window w.
pub(super) type Places = [[u8; WINDOW]; WINDOWS + 1];

pub(super) fn places(r: u64) -> Places {
    // bit i of a window's index belongs to the multiplier's bit 4 m + c - i
    let bit = |at: usize, i: usize| at >= i && at - i < GROUP && r >> (at - i) & 1 == 1;
    let index = |at: usize| (0..WINDOW).map(|i| u8::from(bit(at, i)) << i).sum();
    std::array::from_fn(|m| std::array::from_fn(|c| index(WINDOW * m + c)))
}

/// The fold of a folder of paths: its register `V`, its elements by lanes `$Lanes` with what `lanes.rs` does with them, and what it
/// calls zeros, sums and differences of words.
macro_rules! galois_folds {
    ($features:literal, $Lanes:ident, $zero:ident, $add:ident, $sub:ident) => {
        /// The sums of every window: of its coefficients at the ones of the index.
        type Tables = [[V; 1 << WINDOW]; WINDOWS];

        /// See [`crate::fold::FoldPath::ring_fold`]: for one variable after the other, the even ones and r times the odd ones.
        ///
        /// # Safety
        /// [`super::available`].
        #[target_feature(enable = $features)]
        pub(in crate::fold::cpu) unsafe fn ring_fold(items: &[Element], r: &[u64], out: &mut Vec<Element>) {
            let (zero, size) = ($zero(), 1 << r.len());
            let places: Vec<Places> = r.iter().map(|r| places(*r)).collect();
            let mut tables: Tables = [[zero; 1 << WINDOW]; WINDOWS];
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
            for (x, table) in x.as_chunks::<WINDOW>().0.iter().zip(tables) {
                for (i, x) in x.iter().enumerate() {
                    let (without, with) = table.split_at_mut(1 << i);
                    for (with, without) in with.iter_mut().zip(without) {
                        *with = $add(*without, *x);
                    }
                }
            }
        }

        /// Add the tabulated element times the one of `places`.
        #[target_feature(enable = $features)]
        #[inline]
        fn add_multiple(tables: &Tables, places: &Places, sum: &mut $Lanes) {
            let zero = $zero();
            let add = |to: &mut [V; WINDOW], table: &[V; 1 << WINDOW], places: &[u8; WINDOW]| {
                for (to, place) in to.iter_mut().zip(places) {
                    *to = $add(*to, table[usize::from(place % (1 << WINDOW))]);
                }
            };
            // Y^64 = -Y^4 - Y^3 - Y - 1: what four coefficients get of the four before them and of those at their own place
            let times = |[a, b, c, d]: [V; WINDOW], [e, f, g, h]: [V; WINDOW]| {
                let sum = |p: V, q: V, r: V, s: V| $add($add(p, q), $add(r, s));
                [sum(e, d, b, a), sum(f, e, c, b), sum(g, f, d, c), sum(h, g, e, d)]
            };
            let mut below = [zero; WINDOW];
            for (i, sum) in sum.as_chunks_mut::<{ WINDOW * TOGETHER }>().0.iter_mut().enumerate() {
                let k = TOGETHER * i;
                // coefficients from 4 k on, and from 64 + 4 k on
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
                for ((sum, low), high) in sum.as_chunks_mut::<WINDOW>().0.iter_mut().zip(low).zip(high) {
                    for ((sum, low), times) in sum.iter_mut().zip(low).zip(times(below, high)) {
                        *sum = $add(*sum, $sub(low, times));
                    }
                    below = high;
                }
            }
            // and again for what comes out beyond the last one
            for (k, again) in times(below, [zero; WINDOW]).into_iter().enumerate() {
                for down in [0, 1, 3, 4] {
                    sum[k + down] = $add(sum[k + down], again);
                }
            }
        }
    };
}
pub(super) use galois_folds;
