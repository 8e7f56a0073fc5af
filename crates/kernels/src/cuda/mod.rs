//! Kernels for NVIDIA GPUs: CUDA C++ as text, one file a kernel, and what a launch of each is given.
//!
//! Texts are compiled where they run: by NVRTC for a GPU (`Gpu`, feature `cuda`), by a C++ compiler with the tests'
//! shim for the CPU. Both take texts, arguments and sizes from here, so tests without a GPU see what a GPU gets. Addresses
//! are the device's and only a launch reads them. docs/gpu.md has measured rates and what is missing.

#[cfg(feature = "cuda")]
mod gpu;
mod schedule;

#[cfg(feature = "cuda")]
pub use gpu::{Gpu, GpuError, ProductPath, Tuning};
pub use schedule::Schedule;

use crate::CompareShape;
use crate::chunks::{Chunks, Level};
use privet_prg::{Seed, TreeHash};

/// A kernel's text, and constants that it is compiled with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The name of its entry.
    pub name: &'static str,
    /// CUDA C++.
    pub text: &'static str,
    /// Macros of the preprocessor.
    pub constants: Vec<(&'static str, u32)>,
    /// Threads of a block.
    pub threads: u32,
    /// Blocks that a multiprocessor has at once.
    pub resident: u32,
    /// Bytes of shared memory of a block.
    pub shared: u32,
    /// Of a product: rows and columns that a block makes, and how many elements of k it may take.
    pub tile: [u32; 3],
}

/// Shared memory of the AES tables: two of 256 words, a copy a lane.
const TABLES: u32 = 2 * 256 * 32 * 4;

impl Kernel {
    /// The walk of comparison keys, [`WalkArgs`]: `threads` of a block and blocks of a multiprocessor.
    pub fn walk(threads: u32, resident: u32) -> Kernel {
        Kernel {
            name: "walk",
            text: concat!(include_str!("aes.cuh"), include_str!("walk.cu")),
            constants: vec![("WALK_THREADS", threads), ("WALK_BLOCKS", resident)],
            threads,
            resident,
            shared: TABLES,
            tile: [0; 3],
        }
    }

    /// The stream of a seed, [`StreamArgs`].
    pub fn stream(threads: u32, resident: u32) -> Kernel {
        Kernel {
            name: "stream",
            text: concat!(include_str!("aes.cuh"), include_str!("stream.cu")),
            constants: vec![("STREAM_THREADS", threads), ("STREAM_BLOCKS", resident)],
            threads,
            resident,
            shared: TABLES,
            tile: [0; 3],
        }
    }

    /// The matrix product by 32-bit multiplications, [`ProductArgs`], in tiles of `rows` and `columns` (multiples of 32).
    pub fn product([rows, columns]: [u32; 2], resident: u32) -> Kernel {
        Kernel {
            name: "product",
            text: concat!(include_str!("product.cuh"), include_str!("product.cu")),
            constants: vec![("TILE_M", rows), ("TILE_N", columns), ("PRODUCT_BLOCKS", resident)],
            threads: 256,
            resident,
            // two steps of 8 elements of k, each tile two words wider
            shared: 2 * 8 * 8 * (rows + 2 + columns + 2),
            tile: [rows, columns, 1 << 31],
        }
    }

    /// The matrix product modulo 2^(8 `limbs`) by tensor cores, [`ProductArgs`], in tiles of `rows` and `columns`; a warp makes
    /// `down` times 16 rows and `across` times 8 columns.
    pub fn limbs(limbs: u32, [rows, columns]: [u32; 2], [down, across]: [u32; 2], resident: u32) -> Kernel {
        let sizes = [("TILE_M", rows), ("TILE_N", columns), ("DOWN", down), ("ACROSS", across)];
        Kernel {
            name: "limbs",
            text: concat!(include_str!("product.cuh"), include_str!("limbs.cu")),
            constants: [("LIMBS", limbs), ("LIMBS_BLOCKS", resident)].into_iter().chain(sizes).collect(),
            threads: 32 * (rows / (16 * down)) * (columns / (8 * across)),
            resident,
            // two steps of 32 elements of k of both operands
            shared: 2 * 32 * limbs * (rows + columns),
            // 4 * 255^2 * 8192 < 2^32: sums of bytes' products do not wrap
            tile: [rows, columns, 8192],
        }
    }

    /// The first step of comparisons by chunks, [`LeavesArgs`]: 32 threads a word of 32 comparisons.
    pub fn leaves() -> Kernel {
        Kernel {
            name: "leaves",
            text: include_str!("leaves.cu"),
            constants: vec![("PLANES_THREADS", 256)],
            threads: 256,
            resident: 8,
            shared: 0,
            tile: [0; 3],
        }
    }

    /// A level of comparisons by chunks, [`CombineArgs`]: a thread a word of 32 comparisons. Groups have at most `fan` items;
    /// more than five of them go through memory.
    pub fn combine(fan: u32) -> Kernel {
        Kernel {
            name: "combine",
            text: include_str!("combine.cu"),
            constants: vec![("FAN", fan), ("PLANES_THREADS", 256)],
            threads: 256,
            resident: 8,
            shared: 0,
            tile: [0; 3],
        }
    }

    /// How a product of m, k and n is shared among blocks on a device of `multiprocessors`. Blocks share k where tiles alone
    /// would leave multiprocessors idle. The shorter side of the grid comes first, so that what a whole row or column of tiles
    /// reads again is still in the cache.
    pub fn share(&self, [m, k, n]: [u32; 3], multiprocessors: u32) -> Share {
        let [columns, rows] = [n.div_ceil(self.tile[1]), m.div_ceil(self.tile[0])];
        let wanted = (2 * multiprocessors * self.resident).div_ceil(columns * rows);
        let deep = k.div_ceil(wanted).max(128).next_multiple_of(32).min(self.tile[2]);
        let rows_first = rows < columns;
        let [first, second] = if rows_first { [rows, columns] } else { [columns, rows] };
        Share { grid: [first, second, k.div_ceil(deep).max(1)], deep, rows_first }
    }

    /// Blocks and their threads for `items`, of which a thread takes more than one when all `multiprocessors` are full. Where
    /// they would not be, blocks are smaller, so that more multiprocessors have one.
    pub fn spread(&self, items: usize, multiprocessors: u32) -> [u32; 2] {
        let each = items.div_ceil(multiprocessors as usize).next_multiple_of(32);
        let threads = each.clamp(128.min(self.threads as usize), self.threads as usize);
        let full = multiprocessors * self.resident;
        [items.div_ceil(threads).min(full as usize) as u32, threads as u32]
    }
}

/// Of [`Kernel::share`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Blocks.
    pub grid: [u32; 3],
    /// Elements of k that a block takes.
    pub deep: u32,
    /// Blocks side by side are those of one column of tiles.
    pub rows_first: bool,
}

/// Arguments of the walk.
#[repr(C)]
#[derive(Debug)]
pub struct WalkArgs {
    /// Keys as [`CompareShape::key_bytes`] says, at a multiple of 16 bytes.
    pub keys: u64,
    /// A word of 64 bits a key.
    pub points: u64,
    /// Shares of `1{x < alpha}`, 64 keys a word, padding bits zero.
    pub lt: u64,
    /// Shares of `1{x = alpha}` in the same way; 0 for none.
    pub eq: u64,
    /// Keys.
    pub count: u64,
    /// Bits of the domain.
    pub bits: u32,
    padding: u32,
    inner: Schedule,
    leaf: Schedule,
}

impl WalkArgs {
    /// Of a batch: addresses of keys, points and both results.
    pub fn new(hash: &TreeHash, shape: CompareShape, [keys, points, lt, eq]: [u64; 4]) -> WalkArgs {
        let (inner, leaf) = (Schedule::new(&hash.keys().inner), Schedule::new(&hash.keys().leaf));
        WalkArgs {
            keys,
            points,
            lt,
            eq,
            count: shape.count as u64,
            bits: shape.bits,
            padding: 0,
            inner,
            leaf,
        }
    }
}

/// Arguments of the stream of a seed. They hold its key: wiped when dropped, never printed.
#[repr(C)]
pub struct StreamArgs {
    out: u64,
    words: u64,
    first: u64,
    mask: u64,
    key: Schedule,
}

impl StreamArgs {
    /// `words` words of the stream from block `first` (two words each) to the address `out`, at a multiple of 16 bytes;
    /// `mask` keeps the bits of a ring.
    pub fn new(seed: &Seed, first: u64, mask: u64, out: u64, words: usize) -> StreamArgs {
        StreamArgs { out, words: words as u64, first, mask, key: Schedule::new(seed.expose()) }
    }
}

/// Arguments of a matrix product: `out += x w`.
#[repr(C)]
#[derive(Debug)]
pub struct ProductArgs {
    x: u64,
    w: u64,
    out: u64,
    sizes: [u32; 3],
    transposed: u32,
    deep: u32,
    rows_first: u32,
}

impl ProductArgs {
    /// Of m, k and n: addresses of x `[m, k]`, w `[k, n]` or, if transposed as torch's `Linear` keeps its weights, `[n, k]`,
    /// and out `[m, n]`.
    pub fn new(sizes: [u32; 3], transposed: bool, share: &Share, [x, w, out]: [u64; 3]) -> ProductArgs {
        let Share { deep, rows_first, .. } = *share;
        let [transposed, rows_first] = [transposed, rows_first].map(u32::from);
        ProductArgs { x, w, out, sizes, transposed, deep, rows_first }
    }
}

/// Arguments of the first step of comparisons by chunks ([`crate::Device::chunk_leaves`]).
#[repr(C)]
#[derive(Debug)]
pub struct LeavesArgs {
    points: u64,
    tables: u64,
    out: u64,
    count: u64,
    planes: [u32; 2],
    chunks: u32,
    bits: u32,
    leads: u32,
    equal: u32,
    sizes: [u8; 64],
}

impl LeavesArgs {
    /// Of `count` comparisons: addresses of points, shares of tables, and results.
    pub fn new(chunks: &Chunks, leads: bool, count: usize, [points, tables, out]: [u64; 3]) -> LeavesArgs {
        LeavesArgs {
            points,
            tables,
            out,
            count: count as u64,
            planes: [chunks.tables() as u32, chunks.leaves() as u32],
            chunks: chunks.sizes.len() as u32,
            bits: chunks.bits(),
            leads: leads as u32,
            equal: chunks.equal as u32,
            sizes: bytes(chunks.sizes.iter().map(|&s| s as u8)),
        }
    }
}

/// Arguments of a level of comparisons by chunks ([`crate::Device::chunk_combine`]).
#[repr(C)]
#[derive(Debug)]
pub struct CombineArgs {
    opened: u64,
    products: u64,
    masks: u64,
    out: u64,
    words: u64,
    planes: [u32; 3],
    groups: u32,
    leads: u32,
    equal: u32,
    sizes: [u8; 64],
}

impl CombineArgs {
    /// Of `count` comparisons: addresses of what was opened, of shares of products and masks, and of results.
    pub fn new(
        level: &Level,
        leads: bool,
        count: usize,
        [opened, products, masks, out]: [u64; 4],
    ) -> CombineArgs {
        CombineArgs {
            opened,
            products,
            masks,
            out,
            words: count.div_ceil(64) as u64,
            planes: [level.opened(), level.products(), level.results()].map(|p| p as u32),
            groups: level.groups.len() as u32,
            leads: leads as u32,
            equal: level.is_equal() as u32,
            sizes: bytes(level.groups.iter().map(|&g| g as u8)),
        }
    }
}

/// At most 64 of them, zeros behind.
fn bytes(all: impl Iterator<Item = u8>) -> [u8; 64] {
    let mut out = [0; 64];
    all.enumerate().for_each(|(i, v)| out[i] = v);
    out
}
