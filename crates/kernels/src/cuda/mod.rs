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
            text: include_str!("product.cu"),
            constants: vec![("TILE_M", rows), ("TILE_N", columns), ("PRODUCT_BLOCKS", resident)],
            threads: 256,
            resident,
            // two steps of 8 elements of k, each tile two words wider
            shared: 2 * 8 * 8 * (rows + 2 + columns + 2),
            tile: [rows, columns, 1 << 31],
        }
    }

    /// The matrix product modulo 2^(8 `limbs`) by tensor cores, [`ProductArgs`]; a warp makes `down` (1 or 2) times 16 rows.
    pub fn limbs(limbs: u32, down: u32) -> Kernel {
        Kernel {
            name: "limbs",
            text: include_str!("limbs.cu"),
            constants: vec![("LIMBS", limbs), ("DOWN", down)],
            threads: 512 / down,
            resident: 1,
            // two steps of 32 elements of k of both operands
            shared: 2 * 2 * 64 * 32 * limbs,
            // 4 * 255^2 * 8192 < 2^32: sums of bytes' products do not wrap
            tile: [64, 64, 8192],
        }
    }

    /// The grid of a product of m, k and n on a device of `multiprocessors`, and how many elements of k a block takes:
    /// blocks share k where tiles alone would leave multiprocessors idle.
    pub fn share(&self, [m, k, n]: [u32; 3], multiprocessors: u32) -> ([u32; 3], u32) {
        let [columns, rows] = [n.div_ceil(self.tile[1]), m.div_ceil(self.tile[0])];
        let wanted = (2 * multiprocessors * self.resident).div_ceil(columns * rows);
        let deep = k.div_ceil(wanted).max(256).next_multiple_of(32).min(self.tile[2]);
        ([columns, rows, k.div_ceil(deep).max(1)], deep)
    }

    /// Blocks for `items`, one a thread, of which threads take more when the device of `multiprocessors` is full.
    pub fn blocks(&self, items: usize, multiprocessors: u32) -> u32 {
        let all = items.div_ceil(self.threads as usize);
        all.min((multiprocessors * self.resident) as usize) as u32
    }
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
    /// Address of `[m, k]` words.
    pub x: u64,
    /// Address of `[k, n]` words, or `[n, k]` if transposed.
    pub w: u64,
    /// Address of `[m, n]` words.
    pub out: u64,
    /// m, k and n.
    pub sizes: [u32; 3],
    /// 1 if w is transposed, as torch's `Linear` keeps its weights.
    pub transposed: u32,
    /// Elements of k that a block takes, of [`Kernel::share`].
    pub deep: u32,
}
