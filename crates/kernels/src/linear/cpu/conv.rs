use super::buffer::Buffer;
use super::kernel::{Kernel, MAX_ROWS, Shared, Tile, Tiling, ahead, blocks};
use super::patches::{Patches, Run};
use crate::threads::{in_parallel, split};
use privet_ring::Conv2d;
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
}

/// What one thread computes of a group.
struct Part {
    group: usize,
    row_tiles: Range<usize>,
    col_tiles: Range<usize>,
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
            packed: Buffer::zeros(K::BLOCK_STEPS.min(steps) * tiles * kernel.b_step()),
            staging: vec![0; K::DEPTH * tiles * K::COLS],
            tile: Tile::zeros(),
        }
    }
}

impl ConvGemm {
    pub(super) fn new(conv: Conv2d) -> ConvGemm {
        let [h, w] = conv.output();
        ConvGemm {
            conv,
            rows: conv.out_channels / conv.groups,
            depth: conv.in_channels / conv.groups * conv.kernel[0] * conv.kernel[1],
            plane: h * w,
        }
    }

    /// All groups' weights, one after the other.
    pub(super) fn pack_weights<K: Kernel>(self, kernel: K, threads: usize, w: &[u64]) -> Buffer {
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
        let rows = Tiling::even(self.rows, K::ROWS);
        let cols = Tiling::full(self.conv.batch * self.plane, K::COLS);
        let out = Shared::new(out);
        // Splitting pixels makes the patches once; with few pixels it is the channels that keep threads busy.
        let by_cols = cols.tiles >= 4 * threads || rows.tiles < threads;
        let parts: Vec<_> = if by_cols {
            split(cols.tiles, threads).map(|c| (0..rows.tiles, c)).collect()
        } else {
            split(rows.tiles, threads).map(|r| (r, 0..cols.tiles)).collect()
        };
        in_parallel(parts.into_iter(), |(row_tiles, col_tiles)| {
            let _state = kernel.enter(rows.each);
            let mut scratch = Scratch::new(kernel, self.depth.div_ceil(K::DEPTH), col_tiles.len());
            for group in 0..self.conv.groups {
                let part = Part { group, row_tiles: row_tiles.clone(), col_tiles: col_tiles.clone() };
                // SAFETY: the parts are disjoint in channels or in pixels, and `out` outlives the threads.
                unsafe { self.part(kernel, part, x, weights, out, &mut scratch) }
            }
        });
    }

    /// # Safety
    /// No other thread touches these channels and pixels of `out`.
    unsafe fn part<K: Kernel>(
        self,
        kernel: K,
        part: Part,
        x: &[u64],
        weights: &Buffer,
        out: Shared,
        scratch: &mut Scratch,
    ) {
        let Part { group, row_tiles, col_tiles } = part;
        let Scratch { packed, staging, tile } = scratch;
        let rows = Tiling::even(self.rows, K::ROWS);
        let cols = Tiling::full(self.conv.batch * self.plane, K::COLS);
        let steps = self.depth.div_ceil(K::DEPTH);
        let weights = &weights[group * rows.tiles * steps * kernel.a_step()..];
        for block in blocks(col_tiles, K::BLOCK_TILES) {
            let pixels = cols.range(block.start).start..cols.range(block.end - 1).end;
            let patches = Patches::new(self.conv, group, pixels);
            for depth in blocks(0..steps, K::BLOCK_STEPS) {
                let panel = depth.len() * kernel.b_step();
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
                for r in row_tiles.clone() {
                    let a = &weights[(r * steps + depth.start) * kernel.a_step()..];
                    let next = ((r + 1) * steps + depth.start) * kernel.a_step();
                    for (t, b) in block.clone().zip(packed.chunks(panel)) {
                        let (i, n) = (t - block.start, block.len());
                        let ahead = ahead(weights, next, depth.len() * kernel.a_step(), i, n);
                        let columns = cols.range(t);
                        kernel.multiply([rows.each, columns.len()], a, b, depth.len(), ahead, tile);
                        for run in patches.runs(columns) {
                            // SAFETY: these channels and pixels belong to this part.
                            unsafe { self.add(tile, K::COLS, group, rows.range(r), run, out) };
                        }
                    }
                }
            }
        }
    }

    /// # Safety
    /// As for [`ConvGemm::part`].
    unsafe fn add(self, tile: &Tile, stride: usize, group: usize, rows: Range<usize>, run: Run, out: Shared) {
        let Run { image, pixel, column, len } = run;
        for (i, values) in rows.zip(tile.0.chunks(stride)) {
            let channel = image * self.conv.out_channels + group * self.rows + i;
            // SAFETY: by this function's contract.
            unsafe { out.add(channel * self.plane + pixel, &values[column..column + len]) };
        }
    }
}
