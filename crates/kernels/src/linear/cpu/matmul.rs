use super::buffer::Buffer;
use super::kernel::{Kernel, Own, Panel, Shared, Tiling, ahead, blocks, in_pairs, positions};
use super::scratch::Scratch;
use crate::threads::{in_parallel, split};
use std::ops::Range;

/// `out[m, n] += x[m, k] * w`, with x packed a block at a time as A and w packed for good as B.
#[derive(Clone, Copy)]
pub(super) struct MatMul {
    pub(super) m: usize,
    pub(super) k: usize,
    pub(super) n: usize,
}

impl MatMul {
    /// Pack the weights; `row(l, columns, out)` writes the elements that multiply column `l` of x into these columns of
    /// out. `rows` are the same where they stand one after the other: then whole tiles are packed from there.
    pub(super) fn pack_weights<K: Kernel>(
        self,
        kernel: K,
        threads: usize,
        rows: Option<&[u64]>,
        row: impl Fn(usize, Range<usize>, &mut [u64]) + Sync,
    ) -> Buffer {
        let (cols, steps) = (Tiling::full(self.n, K::COLS), self.k.div_ceil(K::DEPTH));
        let bytes = steps * kernel.b_step();
        let mut out = Buffer::unwritten(cols.tiles * bytes);
        let each = cols.tiles.div_ceil(threads).max(1);
        let parts = out.chunks_mut((each * bytes).max(1)).enumerate();
        in_parallel(parts, |(part, out)| {
            let mut block = vec![0; K::DEPTH * K::COLS];
            for (t, out) in out.chunks_mut(bytes).enumerate() {
                let columns = cols.range(part * each + t);
                block.fill(0);
                for (s, out) in out.chunks_mut(kernel.b_step()).enumerate() {
                    let depth = s * K::DEPTH..((s + 1) * K::DEPTH).min(self.k);
                    let whole = depth.len() == K::DEPTH && columns.len() == K::COLS;
                    if let Some(rows) = rows.filter(|_| whole) {
                        kernel.pack_b(&rows[depth.start * self.n + columns.start..], self.n, out);
                        continue;
                    }
                    if depth.len() < K::DEPTH {
                        block.fill(0);
                    }
                    for (l, block) in depth.zip(block.chunks_exact_mut(K::COLS)) {
                        row(l, columns.clone(), &mut block[..columns.len()]);
                    }
                    kernel.pack_b(&block, K::COLS, out);
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
        if self.m == 0 || self.k == 0 || self.n == 0 {
            return;
        }
        let rows = Tiling::even(self.m, K::ROWS);
        let cols = Tiling::full(self.n, K::COLS);
        let out = Shared::new(out);
        // Splitting rows packs x once; with few rows it is the columns that keep all threads busy.
        let by_rows = rows.tiles >= 4 * threads;
        let parts: Vec<_> = if by_rows {
            split(rows.tiles, threads).map(|r| (r, 0..cols.tiles)).collect()
        } else {
            split(cols.tiles, threads).map(|c| (0..rows.tiles, c)).collect()
        };
        in_parallel(parts.into_iter(), |(row_tiles, col_tiles)| {
            // SAFETY: the parts are disjoint in rows or in columns, and `out` outlives the threads.
            unsafe { self.part(kernel, x, weights, out, row_tiles, col_tiles) }
        });
    }

    /// # Safety
    /// No other thread touches these rows and columns of `out`.
    unsafe fn part<K: Kernel>(
        self,
        kernel: K,
        x: &[u64],
        weights: &Buffer,
        out: Shared,
        row_tiles: Range<usize>,
        col_tiles: Range<usize>,
    ) {
        let rows = Tiling::even(self.m, K::ROWS);
        let cols = Tiling::full(self.n, K::COLS);
        let steps = self.k.div_ceil(K::DEPTH);
        let _state = kernel.enter(rows.each);
        let len = K::BLOCK_STEPS.min(steps) * K::BLOCK_ROW_TILES.min(row_tiles.len()) * kernel.a_step();
        let mut scratch = Scratch::take(len);
        let (packed, tile) = scratch.parts(len);
        for depth in blocks(0..steps, K::BLOCK_STEPS) {
            let panel = depth.len() * kernel.a_step();
            let deep = positions::<K>(&depth, self.k);
            for block in blocks(row_tiles.clone(), K::BLOCK_ROW_TILES) {
                for (t, out) in block.clone().zip(packed.chunks_mut(panel)) {
                    self.pack_rows(kernel, x, rows.range(t), depth.start, out);
                }
                let panels = || packed.chunks(panel).take(block.len());
                let owns: Option<Vec<Own>> = in_pairs::<K>(rows.each * block.len())
                    .then(|| panels().map(|a| kernel.own_a(a, deep)).collect());
                for c in col_tiles.clone() {
                    let columns = cols.range(c);
                    let words = &weights[(c * steps + depth.start) * kernel.b_step()..];
                    let own = owns.as_ref().map(|_| kernel.own_b(words, deep));
                    let b = Panel { words, own: own.as_ref() };
                    let next = ((c + 1) * steps + depth.start) * kernel.b_step();
                    for (i, words) in panels().enumerate() {
                        let a = Panel { words, own: owns.as_ref().map(|owns| &owns[i]) };
                        let (t, n) = (block.start + i, block.len());
                        rows.range(t).for_each(|i| out.soon(i * self.n + columns.start, columns.len()));
                        let ahead = ahead(weights, next, depth.len() * kernel.b_step(), i, n);
                        if columns.len() == K::COLS {
                            let (at, count) =
                                (rows.range(t).start * self.n + columns.start, rows.range(t).len());
                            // SAFETY: these rows and columns belong to this part.
                            let out = unsafe { out.rows(at, self.n, count, K::COLS) };
                            kernel.multiply_add(a, b, deep, ahead, tile, out);
                            continue;
                        }
                        kernel.multiply([rows.range(t).len(), columns.len()], a, b, deep, ahead, tile);
                        for (i, values) in rows.range(t).zip(tile.0.chunks(K::COLS)) {
                            // SAFETY: row i and these columns belong to this part.
                            unsafe { out.add(i * self.n + columns.start, &values[..columns.len()]) };
                        }
                    }
                }
            }
        }
    }

    fn pack_rows<K: Kernel>(self, kernel: K, x: &[u64], rows: Range<usize>, step: usize, out: &mut [u8]) {
        let mut slices: [&[u64]; super::kernel::MAX_ROWS] = [&[]; _];
        for (s, out) in out.chunks_mut(kernel.a_step()).enumerate() {
            let first = (step + s) * K::DEPTH;
            let depth = first..(first + K::DEPTH).min(self.k);
            for (slice, i) in slices.iter_mut().zip(rows.clone()) {
                *slice = &x[i * self.k..][depth.clone()];
            }
            kernel.pack_a(&slices[..rows.len()], out);
        }
    }
}
