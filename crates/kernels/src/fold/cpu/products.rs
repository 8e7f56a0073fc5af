//! Sums of products of elements of both Galois rings as polynomials, a few pairs at a time, one a lane.
//!
//! A 64-bit product is the slowest instruction here and a sum costs next to nothing, so Karatsuba's method is used in each ring, for tiles of
//! 8 coefficients: twice for four tiles, which takes 9 products of tiles instead of 16, and once for three, which takes 6 instead of 9. It is
//! linear in every product, so those of all pairs of a sum are added up before they are put together, but for four tiles' first level, which would
//! not stay in the first-level cache.
//!
//! AVX2 and AVX-512 have products of tiles of their own. All else is made of one macro, as in `folds.rs`.

use crate::fold::{GROUP, RINGS};

/// Coefficients handled together.
pub(super) const TILE: usize = 8;

/// Tiles of a ring's coefficients, and of those of [`crate::fold::Powers::Below24`].
pub(super) const ALL: usize = GROUP / RINGS / TILE;
pub(super) const FEW: usize = 3;
const _: () = assert!(ALL == 4);

/// What is kept of a polynomial, and of products: so many tiles and sums of tiles, see `split`.
pub(super) const KEPT: usize = 6;

/// The products of a folder of paths: its elements by lanes `$Lanes` with what `lanes.rs` does with them, its products of tiles `tile`, and
/// what it calls zeros, sums and differences of words.
macro_rules! galois_products {
    ($features:literal, $Lanes:ident, $zero:ident, $add:ident, $sub:ident) => {
        /// What is needed for a register of pairs after another, of polynomials of `N` tiles in each ring.
        struct Work<const N: usize> {
            x: $Lanes,
            factors: [[[[V; TILE]; KEPT]; RINGS]; 2],
            /// Products of tiles; of four tiles those of two and two, each of which takes two of these.
            products: [[[V; 2 * TILE]; KEPT]; RINGS],
            wide: [V; 2 * GROUP],
        }

        impl<const N: usize> Work<N> {
            #[target_feature(enable = $features)]
            fn new() -> Work<N> {
                let zero = $zero();
                Work {
                    x: [zero; GROUP],
                    factors: [[[[zero; TILE]; KEPT]; RINGS]; 2],
                    products: [[[zero; 2 * TILE]; KEPT]; RINGS],
                    wide: [zero; 2 * GROUP],
                }
            }

            /// Add the products of a register of pairs, or begin with them.
            #[target_feature(enable = $features)]
            #[inline]
            fn add(&mut self, a: &[Element], b: &[Element], stride: usize, first: bool) {
                for (elements, factors) in [a, b].into_iter().zip(&mut self.factors) {
                    gather(elements, stride, &mut self.x[..RINGS * N * TILE]);
                    factors
                        .iter_mut()
                        .enumerate()
                        .for_each(|(ring, factors)| split::<N>(&self.x, ring, factors));
                }
                let [a, b] = &self.factors;
                for ((a, b), products) in a.iter().zip(b).zip(&mut self.products) {
                    if N == ALL {
                        let pairs = a.as_chunks().0.iter().zip(b.as_chunks().0);
                        for ((a, b), product) in pairs.zip(products.as_chunks_mut::<2>().0) {
                            add_up(&two(a, b), first, product.as_flattened_mut());
                        }
                    } else {
                        for ((a, b), product) in a.iter().zip(b).zip(products) {
                            add_up(&tile(a, b), first, product);
                        }
                    }
                }
            }

            /// Put together what has come.
            #[target_feature(enable = $features)]
            #[inline]
            fn put_together(&mut self) {
                // one coefficient of all tiles at a time, so that all stays in registers
                for k in 0..TILE {
                    for (ring, products) in self.products.iter().enumerate() {
                        let mut whole = [$zero(); 2 * ALL];
                        if N == ALL {
                            let two = |p: usize| -> [V; 4] {
                                std::array::from_fn(|t| products[2 * p + t / 2][TILE * (t % 2) + k])
                            };
                            join(&two(0), &two(1), &two(2), &mut whole);
                        } else {
                            let one = |i: usize| [products[i][k], products[i][TILE + k]];
                            of_three(std::array::from_fn(one), &mut whole);
                        }
                        for (t, word) in whole.into_iter().enumerate() {
                            self.wide[RINGS * (TILE * t + k) + ring] = word;
                        }
                    }
                }
            }

            /// Add what has come to a sum.
            #[target_feature(enable = $features)]
            #[inline]
            fn finish(&mut self, sum: &mut Wide) {
                self.put_together();
                for (i, words) in self.wide.as_chunks::<LANES>().0.iter().enumerate() {
                    let zero = $zero();
                    let words = transpose(*words).into_iter().fold(zero, |sum, words| $add(sum, words));
                    add(words, sum, i);
                }
            }
        }

        /// See [`crate::fold::FoldPath::products_of_some`]; there is at least one group.
        ///
        /// # Safety
        /// [`super::available`].
        #[target_feature(enable = $features)]
        pub(in crate::fold::cpu) unsafe fn products_of_some(
            operands: &[Strided],
            powers: Powers,
            groups: usize,
            sums: &mut [Wide],
        ) {
            match powers {
                Powers::All => strided::<ALL>(operands, groups, sums),
                Powers::Below24 => strided::<FEW>(operands, groups, sums),
            }
        }

        #[target_feature(enable = $features)]
        fn strided<const N: usize>(operands: &[Strided], groups: usize, sums: &mut [Wide]) {
            let mut work = Work::<N>::new();
            for (Strided { a, b, stride }, sum) in operands.iter().zip(sums) {
                for first in (0..groups).step_by(LANES) {
                    let end = groups.min(first + LANES);
                    let some = |of: &[Element]| of.len().min(first * stride)..of.len().min(end * stride);
                    work.add(&a[some(a)], &b[some(b)], *stride, first == 0);
                }
                work.finish(sum);
            }
        }

        /// # Safety
        /// [`super::available`].
        #[target_feature(enable = $features)]
        pub(in crate::fold::cpu) unsafe fn products(
            a: &[Element],
            b: &[Element],
            powers: Powers,
            groups: usize,
            sums: &mut [Wide],
        ) {
            match powers {
                Powers::All => side_by_side::<ALL>(a, b, groups, sums),
                Powers::Below24 => side_by_side::<FEW>(a, b, groups, sums),
            }
        }

        #[target_feature(enable = $features)]
        fn side_by_side<const N: usize>(a: &[Element], b: &[Element], groups: usize, sums: &mut [Wide]) {
            let mut work = Work::<N>::new();
            if groups < LANES {
                // pairs of several sums in a register
                for (first, (a, b)) in a.chunks(LANES).zip(b.chunks(LANES)).enumerate() {
                    work.add(a, b, 1, true);
                    work.put_together();
                    let of_lane: [usize; LANES] = std::array::from_fn(|lane| (first * LANES + lane) / groups);
                    for (i, words) in work.wide.as_chunks::<LANES>().0.iter().enumerate() {
                        for (sum, words) in of_lane[..a.len()].iter().zip(transpose(*words)) {
                            add(words, &mut sums[*sum], i);
                        }
                    }
                }
                return;
            }
            for ((a, b), sum) in a.chunks(groups).zip(b.chunks(groups)).zip(sums) {
                for (i, (a, b)) in a.chunks(LANES).zip(b.chunks(LANES)).enumerate() {
                    work.add(a, b, 1, i == 0);
                }
                work.finish(sum);
            }
        }

        /// Add words to sums, or begin with them.
        #[target_feature(enable = $features)]
        #[inline]
        fn add_up(words: &[V], first: bool, sums: &mut [V]) {
            for (sum, word) in sums.iter_mut().zip(words) {
                *sum = if first { *word } else { $add(*sum, *word) };
            }
        }

        /// Add to register i of a sum's words.
        #[target_feature(enable = $features)]
        #[inline]
        fn add(words: V, sum: &mut Wide, i: usize) {
            let sum = &mut sum.as_chunks_mut().0[i];
            store(sum, $add(load(sum), words));
        }

        /// What is kept of a ring's polynomial. Of tiles t, u, v, w these are the lower half, the upper half and the sum of both: `t, u, v, w, t + v,
        /// u + w`; of t, u, v they are `t, u, v, t + u, t + v, u + v`.
        #[target_feature(enable = $features)]
        #[inline]
        fn split<const N: usize>(x: &$Lanes, ring: usize, kept: &mut [[V; TILE]; KEPT]) {
            for k in 0..TILE {
                let [t, u, v, w]: [V; ALL] = std::array::from_fn(|i| x[RINGS * (TILE * i + k) + ring]);
                let sum = |a, b| $add(a, b);
                let all = match N {
                    ALL => [t, u, v, w, sum(t, v), sum(u, w)],
                    _ => [t, u, v, sum(t, u), sum(t, v), sum(u, v)],
                };
                kept.iter_mut().zip(all).for_each(|(kept, word)| kept[k] = word);
            }
        }

        /// The product of polynomials of three tiles from those of what [`split`] makes.
        #[target_feature(enable = $features)]
        #[inline]
        fn of_three([tt, uu, vv, tu, tv, uv]: [[V; 2]; KEPT], out: &mut [V; 2 * ALL]) {
            let sum = |a: [V; 2], b: [V; 2]| [$add(a[0], b[0]), $add(a[1], b[1])];
            let less = |a: [V; 2], b: [V; 2]| [$sub(a[0], b[0]), $sub(a[1], b[1])];
            let (tu, tv, uv) = (less(tu, sum(tt, uu)), less(sum(tv, uu), sum(tt, vv)), less(uv, sum(uu, vv)));
            for (i, product) in [tt, tu, tv, uv, vv].into_iter().enumerate() {
                for (sum, word) in out[i..].iter_mut().zip(product) {
                    *sum = $add(*sum, word);
                }
            }
        }

        /// The product of polynomials from those of their lower halves, their upper halves and the sums of both.
        #[target_feature(enable = $features)]
        #[inline]
        fn join(low: &[V], high: &[V], both: &[V], out: &mut [V]) {
            let n = low.len();
            for k in 0..n {
                (out[k], out[n + k]) = (low[k], high[k]);
            }
            for k in 0..n {
                let middle = $sub(both[k], $add(low[k], high[k]));
                out[n / 2 + k] = $add(out[n / 2 + k], middle);
            }
        }

        /// The product of two tiles and two, made of three products of tiles.
        #[target_feature(enable = $features)]
        #[inline]
        fn two(x: &[[V; TILE]; 2], y: &[[V; TILE]; 2]) -> [V; 4 * TILE] {
            let sum = |x: &[[V; TILE]; 2]| std::array::from_fn(|k| $add(x[0][k], x[1][k]));
            let mut product = [$zero(); 4 * TILE];
            join(&tile(&x[0], &y[0]), &tile(&x[1], &y[1]), &tile(&sum(x), &sum(y)), &mut product);
            product
        }
    };
}
pub(super) use galois_products;
