/// Rows of the largest tile of any kernel.
pub(super) const MAX_ROWS: usize = 64;
/// Columns of the largest tile of any kernel.
pub(super) const MAX_COLS: usize = 32;

/// The product of one tile, row-major with [`Kernel::COLS`] to a row.
#[repr(align(64))]
pub(super) struct Tile(pub(super) [u64; MAX_ROWS * MAX_COLS]);

impl Tile {
    pub(super) fn zeros() -> Tile {
        Tile([0; MAX_ROWS * MAX_COLS])
    }

    /// The first rows of sixteen words.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    pub(super) fn rows(&mut self, count: usize) -> Rows {
        assert!(count <= MAX_ROWS);
        Rows { start: self.0.as_mut_ptr(), stride: 16, count }
    }
}

/// What a panel's own pairs add to each row of A or column of B: `sum over l of x_(2l) x_(2l+1)` of its packed words.
///
/// A kernel may multiply the depth in pairs (Winograd, *A New Algorithm for Inner Product*, IEEE Transactions on Computers, 1968):
///
/// ```text
/// a_0 b_0 + a_1 b_1 = (a_0 + b_1) (a_1 + b_0) - a_0 a_1 - b_0 b_1
/// ```
///
/// One multiplication of two becomes two additions. What is subtracted depends on one operand alone: a row's or a column's share of
/// it serves all tiles that this meets. It is exact modulo any power of two.
pub(super) struct Own(pub(super) [u64; MAX_COLS]);

/// A tile's packed steps, and what their pairs add by themselves. Without it they are multiplied one by one.
#[derive(Clone, Copy)]
pub(super) struct Panel<'a> {
    pub(super) words: &'a [u8],
    pub(super) own: Option<&'a Own>,
}

/// An inner kernel: the product of one tile of rows of A by one tile of columns of B, both packed.
///
/// The depth is cut into steps of [`Kernel::DEPTH`], padded with zeros; a packed tile is its steps one after
/// the other. Results are modulo 2^64 in the low bits of the ring that the kernel was made for.
pub(super) trait Kernel: Copy + Send + Sync {
    /// Most rows to a tile of A.
    const ROWS: usize;
    /// Columns to a tile of B.
    const COLS: usize;
    /// Depth of one packed step.
    const DEPTH: usize;
    /// Steps that one call of [`Kernel::multiply`] may take: bounds both its accumulators and its cache use.
    const BLOCK_STEPS: usize;
    /// Tiles of activations that are packed at a time and stay in the second-level cache.
    const BLOCK_TILES: usize;
    /// The same of rows of A, where these are the activations. Weights are read once for each block.
    const BLOCK_ROW_TILES: usize = Self::BLOCK_TILES;

    /// Multiplications of 64 bits in about a cycle, where fewer of them may pay for additions ([`super::karatsuba`]).
    const FEWER: Option<usize>;

    /// Rows of A from which a tile of B is better multiplied in pairs: with fewer, its own ones cost what pairs save.
    const PAIRS: Option<usize> = None;

    /// Bytes of one packed step of A; a multiple of 64.
    fn a_step(&self) -> usize;

    /// Bytes of one packed step of B; a multiple of 64.
    fn b_step(&self) -> usize;

    /// Pack up to `ROWS` rows of up to `DEPTH` elements, all of one length.
    fn pack_a(&self, rows: &[&[u64]], out: &mut [u8]);

    /// Pack `DEPTH` rows of `COLS` elements; row `i` starts at `i * stride`. Writes all of `out`.
    fn pack_b(&self, block: &[u64], stride: usize, out: &mut [u8]);

    /// Write words of A, packed for a step as they come: of each position of the depth one of every row. Only where
    /// [`Kernel::FEWER`] is given.
    fn put_a(&self, _words: &[u64], _out: &mut [u8]) {
        unreachable!("only kernels of words are asked to")
    }

    /// Write words of B from word `at` of a packed step on. Only where [`Kernel::FEWER`] is given.
    fn put_b(&self, _words: &[u64], _at: usize, _out: &mut [u8]) {
        unreachable!("only kernels of words are asked to")
    }

    /// [`Own`] of the first `depth` positions of packed steps of A. Only where [`Kernel::PAIRS`] is given.
    fn own_a(&self, _words: &[u8], _depth: usize) -> Own {
        unreachable!("only kernels that multiply in pairs are asked to")
    }

    /// [`Own`] of the first `depth` positions of packed steps of B. Only where [`Kernel::PAIRS`] is given.
    fn own_b(&self, _words: &[u8], _depth: usize) -> Own {
        unreachable!("only kernels that multiply in pairs are asked to")
    }

    /// `f`, compiled for the extensions that this kernel has as far as `f` is inlined.
    #[inline(always)]
    fn within<R>(&self, f: impl FnOnce() -> R) -> R {
        f()
    }

    /// Make ready to multiply tiles of `rows` rows on this thread; the state ends when the guard drops.
    fn enter(&self, rows: usize) -> impl Sized;

    /// `tile = a * b` over the first `depth` positions of whole packed steps, for so many rows and columns at least; what lies past
    /// them in the tile means nothing.
    /// `ahead` is wanted soon: a kernel may bring it into the cache meanwhile.
    fn multiply(&self, size: [usize; 2], a: Panel, b: Panel, depth: usize, ahead: &[u8], tile: &mut Tile);

    /// [`Kernel::multiply`], added to `out` a row and all columns at a time.
    fn multiply_add(&self, a: Panel, b: Panel, depth: usize, ahead: &[u8], tile: &mut Tile, out: Rows) {
        self.multiply([out.count, Self::COLS], a, b, depth, ahead, tile);
        for (i, values) in tile.0.chunks(Self::COLS).take(out.count).enumerate() {
            // SAFETY: row i is there, by the contract of `Rows`.
            let out = unsafe { std::slice::from_raw_parts_mut(out.start.add(i * out.stride), Self::COLS) };
            out.iter_mut().zip(values).for_each(|(o, v)| *o = o.wrapping_add(*v));
        }
    }
}

/// Positions in these steps of a depth of `all`.
pub(super) fn positions<K: Kernel>(steps: &std::ops::Range<usize>, all: usize) -> usize {
    (steps.end * K::DEPTH).min(all) - steps.start * K::DEPTH
}

/// Whether `rows` rows of A, all of them together, are multiplied in pairs.
pub(super) fn in_pairs<K: Kernel>(rows: usize) -> bool {
    K::PAIRS.is_some_and(|least| rows >= least)
}

/// Where a tile's product is added: `count` rows, each of as many words as a kernel has columns, `stride` words apart. Whoever
/// makes one answers for it that the words are there and nobody else's while it is used.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub(super) start: *mut u64,
    pub(super) stride: usize,
    pub(super) count: usize,
}

/// How a dimension of `len` is cut into tiles of at most `most`, evenly, so that no tile is nearly empty.
#[derive(Clone, Copy)]
pub(super) struct Tiling {
    pub(super) tiles: usize,
    pub(super) each: usize,
    len: usize,
}

impl Tiling {
    pub(super) fn even(len: usize, most: usize) -> Tiling {
        let each = len.div_ceil(len.div_ceil(most).max(1)).max(1);
        Tiling { tiles: len.div_ceil(each), each, len }
    }

    pub(super) fn full(len: usize, each: usize) -> Tiling {
        Tiling { tiles: len.div_ceil(each), each, len }
    }

    /// The positions that tile `t` covers.
    pub(super) fn range(&self, t: usize) -> std::ops::Range<usize> {
        t * self.each..((t + 1) * self.each).min(self.len)
    }
}

/// `range` in pieces of at most `len`.
pub(super) fn blocks(
    range: std::ops::Range<usize>,
    len: usize,
) -> impl Iterator<Item = std::ops::Range<usize>> {
    let end = range.end;
    range.step_by(len).map(move |first| first..(first + len).min(end))
}

/// A result shared by threads that write disjoint elements of it.
#[derive(Clone, Copy)]
pub(super) struct Shared {
    start: *mut u64,
    len: usize,
}

// SAFETY: the contract of `add` makes all concurrent accesses disjoint.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    pub(super) fn new(out: &mut [u64]) -> Shared {
        Shared { start: out.as_mut_ptr(), len: out.len() }
    }

    /// These elements will be added to soon: bring them near.
    #[inline]
    pub(super) fn soon(&self, at: usize, len: usize) {
        #[cfg(target_arch = "x86_64")]
        for i in (at..at + len).step_by(8) {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: prefetching is harmless at any address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(self.start.wrapping_add(i).cast()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (at, len);
    }

    /// `count` rows of `width` words from `at` on.
    ///
    /// # Safety
    /// As for [`Shared::add`], for as long as the rows are used.
    pub(super) unsafe fn rows(&self, at: usize, stride: usize, count: usize, width: usize) -> Rows {
        assert!(count > 0 && at + (count - 1) * stride + width <= self.len, "rows past the end");
        // SAFETY: in bounds as just checked.
        Rows { start: unsafe { self.start.add(at) }, stride, count }
    }

    /// `out[at..][..values.len()] += values`, modulo 2^64.
    ///
    /// # Safety
    /// The slice that this was made from is still borrowed by the caller of the threads, and no other
    /// thread touches these elements meanwhile.
    #[inline(always)]
    pub(super) unsafe fn add(&self, at: usize, values: &[u64]) {
        assert!(at <= self.len && values.len() <= self.len - at);
        // SAFETY: in bounds as just checked; exclusive by this function's contract.
        let out = unsafe { std::slice::from_raw_parts_mut(self.start.add(at), values.len()) };
        for (o, v) in out.iter_mut().zip(values) {
            *o = o.wrapping_add(*v);
        }
    }
}

/// Part `i` of `n` of the next panel of weights, which starts at `from`; empty past the end.
pub(super) fn ahead(weights: &[u8], from: usize, panel: usize, i: usize, n: usize) -> &[u8] {
    let part = panel.div_ceil(n);
    let from = (from + i * part).min(weights.len());
    &weights[from..(from + part).min(weights.len())]
}
