//! Convolutions with windows of 3 x 3 in fewer multiplications: 36 products for 9 outputs, where the definition takes 81.
//!
//! Along one axis three outputs of three taps are `y_i = sum over j of h_j x_(i+j)`. With
//!
//! ```text
//! P_i  = h_i (x_(2i) - the two other x_(i+j))     for i = 0, 1, 2
//! Q_ij = (h_i + h_j) x_(i+j)                      for i < j
//! y_i  = P_i + both Q with i in them
//! ```
//!
//! six products do, in any ring: nothing is divided, as Winograd's methods do. This is Karatsuba's product of two polynomials
//! of three coefficients, transposed (Winograd, *Arithmetic Complexity of Computations*, SIAM 1980). Along both axes, as
//! Lavin and Gray nest such methods (CVPR 2016), it is 6 x 6 products for a patch of 3 x 3 outputs. Each of them is a matrix
//! product over the channels: sums of taps are A, sums of inputs B.

mod inputs;

use super::buffer::Buffer;
use super::kernel::{Kernel, Own, Panel, Shared, Tile, Tiling, blocks, in_pairs, positions};
use super::scratch::Scratch;
use super::words;
use crate::threads::{in_parallel, split};
use inputs::Lines;
use privet_ring::Conv2d;
use std::ops::Range;

/// Taps, and outputs of a patch, along an axis.
const TAPS: usize = 3;
/// Inputs that a patch reads along an axis.
const INPUTS: usize = 2 * TAPS - 1;
/// Products along an axis: `P_0, P_1, P_2, Q_01, Q_02, Q_12`.
const PRODUCTS: usize = 6;
/// The taps that a product's factor sums, which are also the outputs that the product is added to.
const PARTS: [&[usize]; PRODUCTS] = [&[0], &[1], &[2], &[0, 1], &[0, 2], &[1, 2]];
/// Bytes of sums of inputs that a thread makes at a time: those of one product should stay in its caches.
const BLOCK_BYTES: usize = 2 << 20;
/// Tiles of patches in a block at least, as every block sums taps anew.
const BLOCK_TILES: usize = 6;

/// Taps of a window, or outputs of a patch, that the product of row `i` and column `j` has to do with: the first so many of four.
fn parts(i: usize, j: usize) -> ([usize; 4], usize) {
    let (mut all, mut count) = ([0; 4], 0);
    for y in PARTS[i] {
        for x in PARTS[j] {
            (all[count], count) = (y * TAPS + x, count + 1);
        }
    }
    (all, count)
}

/// A convolution cut into patches of 3 x 3 outputs. They are counted over the whole batch, row by row; those at the end of a
/// row or a column may be partly outside.
#[derive(Clone, Copy)]
pub(super) struct Karatsuba {
    conv: Conv2d,
    /// Patches along either axis.
    patches: [usize; 2],
}

/// Those of some patches that lie in one row of an image.
struct Row {
    image: usize,
    /// The first one's place in its image, counted in patches.
    at: [usize; 2],
    /// The first one's place among all.
    first: usize,
    count: usize,
}

/// One thread's working memory but for the sums of inputs: tiles of patches of every product.
struct Working<'a> {
    /// Sums of taps of one product, for a tile of output channels.
    taps: Buffer,
    /// What the outputs of a tile of channels get: for each tile of patches, and each place in a patch, `[channels, patches]`.
    outputs: Buffer,
    tile: &'a mut Tile,
}

impl Karatsuba {
    /// Of a convolution that takes less time so.
    pub(super) fn of<K: Kernel>(conv: Conv2d) -> Option<Karatsuba> {
        conv.work_in_patches(K::FEWER?)?;
        Some(Karatsuba { conv, patches: conv.patches()? })
    }

    fn patch_count(self) -> usize {
        self.conv.batch * self.patches[0] * self.patches[1]
    }

    fn steps<K: Kernel>(self) -> usize {
        self.conv.in_channels.div_ceil(K::DEPTH)
    }

    /// These patches row by row.
    fn rows(self, patches: Range<usize>) -> impl Iterator<Item = Row> {
        let [height, width] = self.patches;
        let mut p = patches.start;
        std::iter::from_fn(move || {
            let count = (width - p % width).min(patches.end - p);
            let row = Row {
                image: p / width / height,
                at: [p / width % height, p % width],
                first: p - patches.start,
                count,
            };
            p += count;
            (count > 0).then_some(row)
        })
    }

    /// The taps as they came, laid out to be summed. Of a tile of output channels and a step of input channels there is a block
    /// for each tap: A's packed step in words of 64 bits.
    pub(super) fn pack_weights<K: Kernel>(self, _: K, threads: usize, w: &[u64]) -> Buffer {
        let (rows, steps) = (Tiling::full(self.conv.out_channels, K::ROWS), self.steps::<K>());
        let bytes = steps * TAPS * TAPS * K::DEPTH * K::ROWS * size_of::<u64>();
        let mut out = Buffer::zeros(rows.tiles * bytes);
        let each = rows.tiles.div_ceil(threads).max(1);
        in_parallel(out.chunks_mut((each * bytes).max(1)).enumerate(), |(part, out)| {
            for (t, out) in out.chunks_mut(bytes).enumerate() {
                let channels = rows.range(part * each + t);
                for (b, out) in words::view_mut::<u64>(out).chunks_mut(K::DEPTH * K::ROWS).enumerate() {
                    let (step, tap) = (b / (TAPS * TAPS), b % (TAPS * TAPS));
                    let depth = step * K::DEPTH..((step + 1) * K::DEPTH).min(self.conv.in_channels);
                    for (l, out) in depth.zip(out.chunks_mut(K::ROWS)) {
                        for (o, out) in channels.clone().zip(out) {
                            *out = w[(o * self.conv.in_channels + l) * TAPS * TAPS + tap];
                        }
                    }
                }
            }
        });
        out
    }

    pub(super) fn run<K: Kernel>(
        self,
        kernel: K,
        threads: usize,
        x: &[u64],
        weights: &Buffer,
        out: &mut [u64],
    ) {
        if out.is_empty() {
            return;
        }
        let rows = Tiling::full(self.conv.out_channels, K::ROWS);
        let out = Shared::new(out);
        // Splitting patches sums inputs once; with few of them it is the channels that keep threads busy.
        let parts: Vec<_> = match self.patch_count() >= 4 * threads * K::COLS {
            true => split(self.patch_count(), threads).map(|p| (p, 0..rows.tiles)).collect(),
            false => split(rows.tiles, threads).map(|r| (0..self.patch_count(), r)).collect(),
        };
        in_parallel(parts.into_iter(), |(patches, row_tiles)| {
            // SAFETY: the parts are disjoint in patches or in channels, and `out` outlives the threads.
            unsafe { self.part(kernel, patches, row_tiles, x, weights, out) }
        });
    }

    /// # Safety
    /// No other thread touches these patches and channels of `out`.
    unsafe fn part<K: Kernel>(
        self,
        kernel: K,
        patches: Range<usize>,
        row_tiles: Range<usize>,
        x: &[u64],
        weights: &Buffer,
        out: Shared,
    ) {
        let (steps, rows) = (self.steps::<K>(), Tiling::full(self.conv.out_channels, K::ROWS));
        let panel = steps * kernel.b_step();
        let most = (BLOCK_BYTES / (PRODUCTS * PRODUCTS * panel)).max(BLOCK_TILES);
        let tiles = Tiling::even(patches.len().div_ceil(K::COLS), most).each;
        // What is left from products before meets taps of zero, or gives outputs that nobody reads.
        let len = PRODUCTS * PRODUCTS * tiles * panel;
        let mut scratch = Scratch::take(len);
        let (inputs, tile) = scratch.parts(len);
        let mut working = Working {
            taps: Buffer::zeros(steps * kernel.a_step()),
            outputs: Buffer::zeros(tiles * TAPS * TAPS * K::ROWS * K::COLS * size_of::<u64>()),
            tile,
        };
        let channels = rows.range(row_tiles.end - 1).end - rows.range(row_tiles.start).start;
        let _state = kernel.enter(K::ROWS);
        for block in blocks(patches, tiles * K::COLS) {
            self.sum_inputs(kernel, x, block.clone(), inputs);
            let tiles = PRODUCTS * PRODUCTS * block.len().div_ceil(K::COLS);
            let panels = inputs.chunks(panel).take(tiles);
            let panels = panels.flat_map(|b| depths::<K>(steps).map(move |depth| (b, depth)));
            let owns: Option<Vec<Own>> = in_pairs::<K>(channels).then(|| {
                panels
                    .map(|(b, depth)| {
                        kernel.own_b(
                            &b[depth.start * kernel.b_step()..],
                            positions::<K>(&depth, self.conv.in_channels),
                        )
                    })
                    .collect()
            });
            for r in row_tiles.clone() {
                let channels = rows.range(r);
                let taps = &words::view(weights)[r * steps * TAPS * TAPS * K::DEPTH * K::ROWS..];
                self.multiply(
                    kernel,
                    channels.len(),
                    block.len(),
                    taps,
                    (inputs, owns.as_deref()),
                    &mut working,
                );
                // SAFETY: these patches and channels belong to this part.
                unsafe { self.add_outputs(kernel, &working.outputs, block.clone(), channels, out) };
            }
        }
    }

    /// All products of `count` patches for the `rows` output channels that these taps belong to.
    fn multiply<K: Kernel>(
        self,
        kernel: K,
        rows: usize,
        count: usize,
        taps: &[u64],
        (inputs, owns): (&[u8], Option<&[Own]>),
        working: &mut Working,
    ) {
        let Working { taps: factor, outputs, tile } = working;
        let (steps, cols) = (self.steps::<K>(), Tiling::full(count, K::COLS));
        let outputs = words::view_mut::<u64>(outputs);
        outputs.fill(0);
        for (p, inputs) in
            inputs.chunks(cols.tiles * steps * kernel.b_step()).take(PRODUCTS * PRODUCTS).enumerate()
        {
            let (i, j) = (p / PRODUCTS, p % PRODUCTS);
            let (parts, count) = parts(i, j);
            sum_taps(kernel, taps, &parts[..count], factor);
            let of_factor: Option<Vec<Own>> = owns.map(|_| {
                depths::<K>(steps)
                    .map(|depth| {
                        kernel.own_a(
                            &factor[depth.start * kernel.a_step()..],
                            positions::<K>(&depth, self.conv.in_channels),
                        )
                    })
                    .collect()
            });
            for (t, b) in inputs.chunks(steps * kernel.b_step()).enumerate() {
                for (d, depth) in depths::<K>(steps).enumerate() {
                    let own = of_factor.as_ref().map(|owns| &owns[d]);
                    let a = Panel { words: &factor[depth.start * kernel.a_step()..], own };
                    let own = owns.map(|owns| &owns[(p * cols.tiles + t) * depths::<K>(steps).count() + d]);
                    let b = Panel { words: &b[depth.start * kernel.b_step()..], own };
                    let deep = positions::<K>(&depth, self.conv.in_channels);
                    kernel.multiply([rows, cols.range(t).len()], a, b, deep, &[], tile);
                    let (len, values) = (K::ROWS * K::COLS, &tile.0[..rows * K::COLS]);
                    let outputs = &mut outputs[t * TAPS * TAPS * len..][..TAPS * TAPS * len];
                    kernel.within(
                        #[inline(always)]
                        || {
                            for part in &parts[..count] {
                                add(&mut outputs[part * len..][..values.len()], values);
                            }
                        },
                    );
                }
            }
        }
    }

    /// The sums of inputs of all products for these patches, packed as B: tiles of patches of each product.
    fn sum_inputs<K: Kernel>(self, kernel: K, x: &[u64], patches: Range<usize>, out: &mut [u8]) {
        let (steps, cols) = (self.steps::<K>(), Tiling::full(patches.len(), K::COLS));
        let panel = steps * kernel.b_step();
        let mut lines = Lines::new::<K>();
        for t in 0..cols.tiles {
            let tile = cols.range(t);
            let rows: Vec<Row> = self.rows(patches.start + tile.start..patches.start + tile.end).collect();
            for l in 0..self.conv.in_channels {
                rows.iter().for_each(|row| lines.read::<K>(self, x, row, l));
                let place = t * panel + l / K::DEPTH * kernel.b_step();
                kernel.within(
                    #[inline(always)]
                    || {
                        lines.sum::<K>(|p, words| {
                            let out = &mut out[p * cols.tiles * panel + place..][..kernel.b_step()];
                            kernel.put_b(words, l % K::DEPTH * K::COLS, out);
                        })
                    },
                );
            }
        }
    }

    /// Add what these patches and channels have got.
    ///
    /// # Safety
    /// As for [`Karatsuba::part`].
    unsafe fn add_outputs<K: Kernel>(
        self,
        kernel: K,
        outputs: &[u8],
        patches: Range<usize>,
        channels: Range<usize>,
        out: Shared,
    ) {
        let [height, width] = self.conv.output();
        let outputs = words::view::<u64>(outputs);
        let cols = Tiling::full(patches.len(), K::COLS);
        let mut line = vec![0; K::COLS * TAPS];
        for t in 0..cols.tiles {
            let tile = cols.range(t);
            for row in self.rows(patches.start + tile.start..patches.start + tile.end) {
                let [top, left] = row.at.map(|at| at * TAPS);
                for (o, channel) in channels.clone().enumerate() {
                    let plane = (row.image * self.conv.out_channels + channel) * height;
                    for dy in 0..TAPS.min(height - top) {
                        let got = |dx: usize| {
                            let place = (t * TAPS + dy) * TAPS + dx;
                            &outputs[(place * K::ROWS + o) * K::COLS + row.first..][..row.count]
                        };
                        let got = got(0).iter().zip(got(1)).zip(got(2));
                        for (line, ((a, b), c)) in line.as_chunks_mut::<TAPS>().0.iter_mut().zip(got) {
                            *line = [*a, *b, *c];
                        }
                        let at = (plane + top + dy) * width + left;
                        let line = &line[..(row.count * TAPS).min(width - left)];
                        // SAFETY: these outputs belong to this part.
                        kernel.within(
                            #[inline(always)]
                            || unsafe { out.add(at, line) },
                        );
                    }
                }
            }
        }
    }
}

/// Steps of the depth that are multiplied at a time.
fn depths<K: Kernel>(steps: usize) -> impl Iterator<Item = Range<usize>> {
    blocks(0..steps, K::BLOCK_STEPS)
}

/// The factor of a product that is made of taps, packed as A.
fn sum_taps<K: Kernel>(kernel: K, taps: &[u64], which: &[usize], out: &mut [u8]) {
    let len = K::DEPTH * K::ROWS;
    let mut sum = vec![0; len];
    for (taps, out) in taps.chunks(TAPS * TAPS * len).zip(out.chunks_mut(kernel.a_step())) {
        let tap = |n: usize| &taps[which[n] * len..][..len];
        kernel.within(
            #[inline(always)]
            || match which.len() {
                1 => kernel.put_a(tap(0), out),
                2 => {
                    for (sum, (a, b)) in sum.iter_mut().zip(tap(0).iter().zip(tap(1))) {
                        *sum = a.wrapping_add(*b);
                    }
                    kernel.put_a(&sum, out);
                }
                _ => {
                    let [left, right] = [[0, 1], [2, 3]].map(|[a, b]| tap(a).iter().zip(tap(b)));
                    for (sum, ((a, b), (c, d))) in sum.iter_mut().zip(left.zip(right)) {
                        *sum = a.wrapping_add(*b).wrapping_add(c.wrapping_add(*d));
                    }
                    kernel.put_a(&sum, out);
                }
            },
        );
    }
}

#[inline(always)]
fn add(out: &mut [u64], values: &[u64]) {
    for (o, v) in out.iter_mut().zip(values) {
        *o = o.wrapping_add(*v);
    }
}
