//! The one door between protocols and hardware.

use crate::bits::cpu::BitsPath;
use crate::chunks::cpu::{self as chunked, ChunksPath};
use crate::chunks::{Chunks, Level};
use crate::fold::FoldPath;
use crate::linear::cpu::{self as linear, LinearPath};
use crate::{CompareShape, CpuCap, CpuCapError, LinearShape, LookupShape, Read, Weights, lookup};
use privet_prg::TreeHash;
use privet_ring::{BitVec, Ring};
use std::sync::Arc;

/// What a device without kernels of its own for comparison by chunks takes.
const PORTABLE: (ChunksPath, BitsPath) = (ChunksPath::Portable, BitsPath::Portable);

/// Which of a comparison key's outputs to compute; shares are XOR shares, one bit an element.
#[derive(Debug, Default)]
pub struct CompareOut {
    /// Shares of `1{x < alpha}`.
    pub lt: BitVec,
    /// Shares of `1{x = alpha}`; empty unless asked for.
    pub eq: BitVec,
}

/// A place where kernels run. All methods are exact; `ring` says how many low bits of the result count
/// (the others are unspecified until reduced).
pub trait Device: Send + Sync {
    /// For example `cpu (AMX int8, VAES-512)`.
    fn name(&self) -> String;

    /// The same device for work on another thread, which this borrow need not outlast.
    fn shared(&self) -> Arc<dyn Device>;

    /// Worker threads, at least 1: so many things of a caller's may be done side by side.
    fn threads(&self) -> usize;

    /// Deal comparison keys for thresholds `alpha` (`alpha[i] < 2^n`).
    ///
    /// `roots[i]` is party 0's root seed of key `i`, `deltas[i]` its global offset; both uniform and
    /// fresh (the kernel sets the lowest bit of the offset). Writes [`CompareShape::key_bytes`] bytes to each of
    /// `key0` and `key1`.
    #[expect(clippy::too_many_arguments, reason = "one call a batch; each is a plain slice")]
    fn compare_gen(
        &self,
        hash: &TreeHash,
        shape: CompareShape,
        alpha: &[u64],
        roots: &[u128],
        deltas: &[u128],
        key0: &mut [u8],
        key1: &mut [u8],
    );

    /// Walk every key of a batch to the public point `x[i]` (`x[i] < 2^n`).
    fn compare_eval(
        &self,
        hash: &TreeHash,
        shape: CompareShape,
        key: &[u8],
        x: &[u64],
        want_eq: bool,
    ) -> CompareOut;

    /// Comparison by chunks ([`crate::chunks`], which says how planes lie): the dealer's tables of thresholds `r` below
    /// `2^bits`, [`Chunks::tables`] planes.
    fn chunk_tables(&self, chunks: &Chunks, r: &[u64], out: &mut [u64]) {
        chunked::tables(PORTABLE, chunks, r, out);
    }

    /// One party's shares of `lt` and `eq` of every chunk at the public points `x` below `2^bits`, from its shares of the
    /// tables: [`Chunks::leaves`] planes. One party of all `leads`.
    fn chunk_leaves(&self, chunks: &Chunks, leads: bool, x: &[u64], tables: &[u64], out: &mut [u64]) {
        chunked::leaves(PORTABLE, chunks, leads, x, tables, out);
    }

    /// The dealer's products of a level's `masks` ([`Level::opened`] planes): [`Level::products`] planes.
    fn chunk_products(&self, level: &Level, masks: &[u64], out: &mut [u64]) {
        chunked::products(PORTABLE.0, level, masks, out);
    }

    /// One party's shares of the next items, [`Level::results`] planes, from what was opened, its shares of the products
    /// and its shares of the masks: `words` holds them in this order.
    fn chunk_combine(&self, level: &Level, leads: bool, words: [&[u64]; 3], out: &mut [u64]) {
        chunked::combine(PORTABLE.0, level, leads, words, out);
    }

    /// Deal look-up keys for `words[i * shape.words..]` at the points `alpha[i] < 2^n`; roots and offsets as for
    /// [`Device::compare_gen`]. Writes [`LookupShape::key_bytes`] bytes to each of `key0` and `key1`.
    #[expect(clippy::too_many_arguments, reason = "one call a batch; each is a plain slice")]
    fn lookup_gen(
        &self,
        hash: &TreeHash,
        shape: LookupShape,
        alpha: &[u64],
        words: &[u64],
        roots: &[u128],
        deltas: &[u128],
        key0: &mut [u8],
        key1: &mut [u8],
    ) {
        lookup::cpu::generate(hash, shape, alpha, words, roots, deltas, key0, key1);
    }

    /// Read tables at the differences of public points and dealt ones: the evaluator's additive shares of the results
    /// modulo 2^64, in order of keys, then of tables. `second`: party 1's.
    fn lookup_eval(
        &self,
        hash: &TreeHash,
        shape: LookupShape,
        second: bool,
        keys: &[u8],
        points: &[u64],
        read: &Read,
    ) -> Vec<u64> {
        lookup::cpu::eval(false, lookup::cpu::Batch { hash, shape, second, keys, points }, read)
    }

    /// Bring the weights of a linear layer into the device's own layout, once a session.
    fn prepare(&self, ring: Ring, shape: LinearShape, weights: &[u64]) -> Arc<dyn Weights>;

    /// `out += linear(x, weights)` modulo 2^k, with `weights` from [`Device::prepare`] of the same ring and shape
    /// (the batch, `m` of a product, may differ). Panics on weights of another device, ring or shape.
    fn linear_acc(&self, ring: Ring, shape: LinearShape, x: &[u64], weights: &dyn Weights, out: &mut [u64]);

    /// `out[c] += sum over r of weights[c, r] rows[r]` modulo 2^64, for vectors of one length that are read once. `out` has the sums one
    /// behind the other, and `weights` as many for each of them as there are vectors.
    fn add_weighted(&self, weights: &[u64], rows: &[&[u64]], out: &mut [u64]) {
        linear::add_weighted(LinearPath::Portable, 1, weights, rows, out);
    }

    /// [`Device::prepare`] of the lowest bits of words, which need no multiplications. A device may read memory at places
    /// that they name: they must be no secret to whoever holds the device.
    fn prepare_bits(&self, ring: Ring, shape: LinearShape, words: &[u64]) -> Arc<dyn Weights> {
        self.prepare(ring, shape, &lowest_bits(words))
    }

    /// [`Device::prepare`] of the second operands of `count` products of one shape, one behind the other.
    fn prepare_each(
        &self,
        ring: Ring,
        shape: LinearShape,
        count: usize,
        weights: &[u64],
    ) -> Vec<Arc<dyn Weights>> {
        let len = shape.weight_len();
        (0..count).map(|i| self.prepare(ring, shape, &weights[i * len..(i + 1) * len])).collect()
    }

    /// [`Device::linear_acc`] of products of one shape, one behind the other, in one launch.
    fn linear_acc_each(
        &self,
        ring: Ring,
        shape: LinearShape,
        x: &[u64],
        weights: &[Arc<dyn Weights>],
        out: &mut [u64],
    ) {
        let (from, to) = (shape.input_len(), shape.output_len());
        for (i, w) in weights.iter().enumerate() {
            let out = &mut out[i * to..(i + 1) * to];
            self.linear_acc(ring, shape, &x[i * from..(i + 1) * from], w.as_ref(), out);
        }
    }

    /// Bit l of `values[e]` becomes bit `e % 64` of word `e / 64` of plane `places[l]` of `out`; a plane has
    /// `values.len().div_ceil(64)` words, and padding bits are zero. `places` has at most 64 entries.
    fn bit_planes(&self, values: &[u64], places: &[usize], out: &mut [u64]);

    /// How this device folds inner products.
    fn fold(&self) -> FoldPath {
        FoldPath::Portable
    }
}

/// The CPU with the best paths that this machine has and `threads` worker threads (at least 1).
///
/// `PRIVET_CPU=portable|aesni|avx2|vaes|avx512|amx` caps what is used, for tests and comparisons; any other
/// value is refused.
pub fn try_cpu(threads: usize) -> Result<Arc<dyn Device>, CpuCapError> {
    Ok(crate::device_cpu::Cpu::with_cap(threads, CpuCap::from_env()?))
}

/// [`try_cpu`] for callers that have checked the environment already. Panics when `PRIVET_CPU` holds no level.
pub fn cpu(threads: usize) -> Arc<dyn Device> {
    try_cpu(threads).unwrap_or_else(|e| panic!("{e}"))
}

/// The lowest bit of every word.
pub(crate) fn lowest_bits(words: &[u64]) -> Vec<u64> {
    words.iter().map(|word| word & 1).collect()
}
