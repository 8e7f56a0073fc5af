use super::buffer::Buffer;
use super::kernel::{Kernel, MAX_ROWS, Own, Panel, Shared, Tile, Tiling, ahead, blocks, in_pairs, positions};
use super::patches::{Patches, Run};
use super::scattered::Scattered;
use crate::threads::{in_parallel, split};
use privet_ring::Conv2d;
use std::borrow::Cow;
use std::ops::Range;

/// A convolution as one matrix product a group: weights packed for good as A, patches of x a block at a time as B.
///
/// The columns are the output pixels of the whole batch, so that tiles stay full when images are small.
#[derive(Clone, Copy)]
pub(super) struct ConvGemm {
    conv: Conv2d,
    /// Output channels of a group: rows of A.
    rows: usize,
    /// Input channels of a group times kernel extent: the depth.
    depth: usize,
    /// Pixels of an output plane.
    plane: usize,
    /// Of a convolution that is scattered, where products belong ([`Scattered`]); `conv` has a row for each of its taps then.
    scattered: Option<Scattered>,
}

/// What one thread computes of a group.
struct Part {
    group: usize,
    /// Rows of A.
    rows: Range<usize>,
    /// Columns, of all pixels of the batch.
    pixels: Range<usize>,
}

/// One thread's working memory.
struct Scratch {
    packed: Buffer,
    /// Patches before packing: a step of rows, a block of tiles wide.
    staging: Vec<u64>,
    tile: Tile,
}

impl Scratch {
    fn new<K: Kernel>(kernel: K, steps: usize, tiles: usize) -> Scratch {
        let tiles = K::BLOCK_TILES.min(tiles);
        Scratch {
            packed: Buffer::unwritten(K::BLOCK_STEPS.min(steps) * tiles * kernel.b_step()),
            staging: vec![0; K::DEPTH * tiles * K::COLS],
            tile: Tile::zeros(),
        }
    }
}

impl ConvGemm {
    pub(super) fn new(of: Conv2d) -> ConvGemm {
        let scattered = Scattered::of(of);
        let conv = scattered.map_or(of, |scattered| scattered.products());
        let [h, w] = conv.output();
        ConvGemm {
            conv,
            rows: conv.out_channels / conv.groups,
            depth: conv.in_channels / conv.groups * conv.kernel[0] * conv.kernel[1],
            plane: h * w,
            scattered,
        }
    }

    /// All groups' weights, one after the other.
    pub(super) fn pack_weights<K: Kernel>(self, kernel: K, threads: usize, w: &[u64]) -> Buffer {
        let w = &*match self.scattered {
            Some(scattered) => Cow::Owned(scattered.rows(w)),
            None => Cow::Borrowed(w),
        };
        let rows = Tiling::even(self.rows, K::ROWS);
        let bytes = self.depth.div_ceil(K::DEPTH) * kernel.a_step();
        let tiles = self.conv.groups * rows.tiles;
        let mut out = Buffer::zeros(tiles * bytes);
        let each = tiles.div_ceil(threads).max(1);
        in_parallel(out.chunks_mut((each * bytes).max(1)).enumerate(), |(part, out)| {
            for (t, out) in out.chunks_mut(bytes).enumerate() {
                let t = part * each + t;
                let (group, range) = (t / rows.tiles, rows.range(t % rows.tiles));
                for (s, out) in out.chunks_mut(kernel.a_step()).enumerate() {
                    let depth = s * K::DEPTH..((s + 1) * K::DEPTH).min(self.depth);
                    let mut slices: [&[u64]; MAX_ROWS] = [&[]; _];
                    for (slice, i) in slices.iter_mut().zip(range.clone()) {
                        *slice = &w[(group * self.rows + i) * self.depth..][depth.clone()];
                    }
                    kernel.pack_a(&slices[..range.len()], out);
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
        if out.is_empty() || self.depth == 0 {
            return;
        }
        let out = Shared::new(out);
        in_parallel(self.split::<K>(threads).into_iter(), |(rows, pixels)| {
            let _state = kernel.enter(Tiling::even(self.rows, K::ROWS).each);
            let mut scratch =
                Scratch::new(kernel, self.depth.div_ceil(K::DEPTH), pixels.len().div_ceil(K::COLS));
            for group in 0..self.conv.groups {
                let part = Part { group, rows: rows.clone(), pixels: pixels.clone() };
                // SAFETY: the parts are disjoint in channels or in pixels, and `out` outlives the threads.
                unsafe { self.part(kernel, part, x, weights, out, &mut scratch) }
            }
        });
    }

    /// Rows and pixels for each thread, whose outputs are disjoint.
    fn split<K: Kernel>(self, threads: usize) -> Vec<(Range<usize>, Range<usize>)> {
        let pixels = self.conv.batch * self.plane;
        let scale = |range: Range<usize>, by: usize, end: usize| range.start * by..(range.end * by).min(end);
        // Splitting pixels makes the patches once; with few pixels it is the channels that keep threads busy.
        let (by_pixels, rows_each, pixels_each) = match self.scattered {
            // An image's products overlap in its outputs, and a channel's taps as well.
            Some(scattered) => (self.conv.batch >= threads, scattered.taps(), self.plane),
            None => {
                let rows = Tiling::even(self.rows, K::ROWS);
                let tiles = pixels.div_ceil(K::COLS);
                (tiles >= 4 * threads || rows.tiles < threads, rows.each, K::COLS)
            }
        };
        match by_pixels {
            true => split(pixels.div_ceil(pixels_each), threads)
                .map(|range| (0..self.rows, scale(range, pixels_each, pixels)))
                .collect(),
            false => split(self.rows.div_ceil(rows_each), threads)
                .map(|range| (scale(range, rows_each, self.rows), 0..pixels))
                .collect(),
        }
    }

    /// # Safety
    /// No other thread touches the outputs of these channels and pixels.
    unsafe fn part<K: Kernel>(
        self,
        kernel: K,
        part: Part,
        x: &[u64],
        weights: &Buffer,
        out: Shared,
        scratch: &mut Scratch,
    ) {
        let Scratch { packed, staging, tile } = scratch;
        let group = part.group;
        let rows = Tiling::even(self.rows, K::ROWS);
        let cols = Tiling::full(part.pixels.len(), K::COLS);
        let steps = self.depth.div_ceil(K::DEPTH);
        let weights = &weights[group * rows.tiles * steps * kernel.a_step()..];
        for block in blocks(0..cols.tiles, K::BLOCK_TILES) {
            let pixels = |range: Range<usize>| part.pixels.start + range.start..part.pixels.start + range.end;
            let patches = Patches::new(
                self.conv,
                group,
                pixels(cols.range(block.start).start..cols.range(block.end - 1).end),
            );
            for depth in blocks(0..steps, K::BLOCK_STEPS) {
                let panel = depth.len() * kernel.b_step();
                let deep = positions::<K>(&depth, self.depth);
                let stride = block.len() * K::COLS;
                for s in depth.clone() {
                    for (i, row) in staging.chunks_mut(stride).take(K::DEPTH).enumerate() {
                        patches.fill(x, s * K::DEPTH + i, row);
                    }
                    let at = (s - depth.start) * kernel.b_step();
                    for (t, out) in packed.chunks_mut(panel).take(block.len()).enumerate() {
                        kernel.pack_b(&staging[t * K::COLS..], stride, &mut out[at..at + kernel.b_step()]);
                    }
                }
                let panels = || packed.chunks(panel).take(block.len());
                let owns: Option<Vec<Own>> =
                    in_pairs::<K>(part.rows.len()).then(|| panels().map(|b| kernel.own_b(b, deep)).collect());
                for r in part.rows.start / rows.each..part.rows.end.div_ceil(rows.each) {
                    let words = &weights[(r * steps + depth.start) * kernel.a_step()..];
                    let own = owns.as_ref().map(|_| kernel.own_a(words, deep));
                    let a = Panel { words, own: own.as_ref() };
                    let next = ((r + 1) * steps + depth.start) * kernel.a_step();
                    for (i, words) in panels().enumerate() {
                        let b = Panel { words, own: owns.as_ref().map(|owns| &owns[i]) };
                        let (t, n) = (block.start + i, block.len());
                        let ahead = ahead(weights, next, depth.len() * kernel.a_step(), i, n);
                        let columns = cols.range(t);
                        kernel.multiply([rows.range(r).len(), columns.len()], a, b, deep, ahead, tile);
                        for run in patches.runs(pixels(columns)) {
                            let rows = TileRows { group, all: rows.range(r), mine: &part.rows };
                            // SAFETY: the outputs of these channels and pixels belong to this part.
                            unsafe { self.add(kernel, tile, rows, run, out) };
                        }
                    }
                }
            }
        }
    }

    /// # Safety
    /// As for [`ConvGemm::part`].
    unsafe fn add<K: Kernel>(self, kernel: K, tile: &Tile, rows: TileRows, run: Run, out: Shared) {
        let Run { image, pixel, column, len } = run;
        let values = rows.all.clone().zip(tile.0.chunks(K::COLS)).filter(|(i, _)| rows.mine.contains(i));
        let values = values.map(|(i, values)| (rows.group * self.rows + i, &values[column..column + len]));
        kernel.within(
            #[inline(always)]
            || match self.scattered {
                None => {
                    for (i, values) in values {
                        let at = (image * self.conv.out_channels + i) * self.plane + pixel;
                        // SAFETY: by this function's contract.
                        unsafe { out.add(at, values) }
                    }
                }
                Some(scattered) => {
                    for (i, values) in values {
                        // SAFETY: by this function's contract: all taps of a channel, or all pixels of an image, are this part's.
                        unsafe { scattered.add(image, i, pixel, values, out) }
                    }
                }
            },
        );
    }
}

/// Rows of a tile.
struct TileRows<'a> {
    group: usize,
    all: Range<usize>,
    /// The thread's: others of the tile are left out.
    mine: &'a Range<usize>,
}
