use crate::bits::cpu::BitsPath;
use crate::chunks::cpu::{self as chunked, ChunksPath};
use crate::chunks::{self, Chunks, Level};
use crate::compare::cpu::{self as walk, ComparePath};
use crate::compare::{BLOCK, CompareShape};
use crate::device::{CompareOut, Device};
use crate::fold::FoldPath;
use crate::linear::cpu::{self as linear, LinearPath};
use crate::threads::{in_parallel, split};
use crate::{CpuCap, LinearShape, LookupShape, Read, Weights, lookup};
use privet_prg::TreeHash;
use privet_ring::{BitVec, Ring};
use std::ops::Range;
use std::sync::Arc;

/// Keys under which a second thread costs more than it saves.
const KEYS_PER_THREAD: usize = 4096;

/// The same of comparisons by chunks, each of which is far less work.
const CHUNKED_PER_THREAD: usize = 1 << 16;

/// The machine's own processor.
#[derive(Clone)]
pub(crate) struct Cpu {
    threads: usize,
    compare: ComparePath,
    linear: LinearPath,
    bits: BitsPath,
    chunks: ChunksPath,
    fold: FoldPath,
    wide: bool,
}

impl Cpu {
    pub(crate) fn with_cap(threads: usize, cap: CpuCap) -> Arc<dyn Device> {
        Arc::new(Cpu {
            threads: threads.max(1),
            compare: ComparePath::detect(cap),
            linear: LinearPath::detect(cap),
            bits: BitsPath::detect(cap),
            chunks: ChunksPath::detect(cap),
            fold: FoldPath::detect(cap),
            wide: lookup::cpu::wide(cap),
        })
    }

    /// Keys a thread, in whole blocks, so that every share starts on a block of the key and a word of the result.
    fn share(&self, count: usize) -> usize {
        let threads = self.threads.min(count / KEYS_PER_THREAD).max(1);
        count.div_ceil(threads).next_multiple_of(BLOCK).max(BLOCK)
    }

    /// Words of a plane of chunked comparisons for each thread, in whole blocks.
    fn plane_share(&self, words: usize) -> usize {
        let threads = self.threads.min(64 * words / CHUNKED_PER_THREAD).max(1);
        words.div_ceil(threads).next_multiple_of(chunks::SIDE).max(chunks::SIDE)
    }
}

impl Device for Cpu {
    fn name(&self) -> String {
        format!("cpu ({}, {}, {} threads)", self.linear, self.compare, self.threads)
    }

    fn shared(&self) -> Arc<dyn Device> {
        Arc::new(self.clone())
    }

    fn threads(&self) -> usize {
        self.threads
    }

    fn compare_gen(
        &self,
        hash: &TreeHash,
        shape: CompareShape,
        alpha: &[u64],
        roots: &[u128],
        deltas: &[u128],
        key0: &mut [u8],
        key1: &mut [u8],
    ) {
        check("thresholds", alpha.len(), shape.count);
        check("roots", roots.len(), shape.count);
        check("offsets", deltas.len(), shape.count);
        check("key bytes", key0.len(), shape.key_bytes());
        check("key bytes", key1.len(), shape.key_bytes());
        let keys = self.share(shape.count);
        let bytes = CompareShape { count: keys, ..shape }.key_bytes();
        let parts = alpha
            .chunks(keys)
            .zip(roots.chunks(keys))
            .zip(deltas.chunks(keys))
            .zip(key0.chunks_mut(bytes))
            .zip(key1.chunks_mut(bytes));
        in_parallel(parts, |((((alpha, roots), deltas), key0), key1)| {
            let shape = CompareShape { count: alpha.len(), ..shape };
            walk::generate(self.compare, hash, shape, alpha, roots, deltas, key0, key1);
        });
    }

    fn compare_eval(
        &self,
        hash: &TreeHash,
        shape: CompareShape,
        key: &[u8],
        x: &[u64],
        want_eq: bool,
    ) -> CompareOut {
        check("points", x.len(), shape.count);
        check("key bytes", key.len(), shape.key_bytes());
        let keys = self.share(shape.count);
        if keys >= shape.count {
            return walk::eval(self.compare, hash, shape, key, x, want_eq);
        }
        let bytes = CompareShape { count: keys, ..shape }.key_bytes();
        let parts = in_parallel(x.chunks(keys).zip(key.chunks(bytes)), |(x, key)| {
            walk::eval(self.compare, hash, CompareShape { count: x.len(), ..shape }, key, x, want_eq)
        });
        let join = |bits: fn(&CompareOut) -> &BitVec, len| {
            BitVec::from_words(len, parts.iter().flat_map(|p| bits(p).words()).copied().collect())
        };
        CompareOut {
            lt: join(|p| &p.lt, shape.count),
            eq: join(|p| &p.eq, if want_eq { shape.count } else { 0 }),
        }
    }

    fn chunk_tables(&self, chunks: &Chunks, r: &[u64], out: &mut [u64]) {
        check("table words", out.len(), chunks::words(chunks.tables(), r.len()));
        let words = self.plane_share(r.len().div_ceil(64));
        in_parallel(r.chunks(64 * words).zip(out.chunks_mut(chunks.tables() * words)), |(r, out)| {
            chunked::tables((self.chunks, self.bits), chunks, r, out);
        });
    }

    fn chunk_leaves(&self, chunks: &Chunks, leads: bool, x: &[u64], tables: &[u64], out: &mut [u64]) {
        check("table words", tables.len(), chunks::words(chunks.tables(), x.len()));
        check("leaf words", out.len(), chunks::words(chunks.leaves(), x.len()));
        let words = self.plane_share(x.len().div_ceil(64));
        let planes = tables.chunks(chunks.tables() * words).zip(out.chunks_mut(chunks.leaves() * words));
        in_parallel(x.chunks(64 * words).zip(planes), |(x, (tables, out))| {
            chunked::leaves((self.chunks, self.bits), chunks, leads, x, tables, out);
        });
    }

    fn chunk_products(&self, level: &Level, masks: &[u64], out: &mut [u64]) {
        let all = masks.len() / level.opened();
        check("mask words", masks.len(), all * level.opened());
        check("product words", out.len(), all * level.products());
        let words = self.plane_share(all);
        let parts = masks.chunks(level.opened() * words).zip(out.chunks_mut(level.products() * words));
        in_parallel(parts, |(masks, out)| chunked::products(self.chunks, level, masks, out));
    }

    fn chunk_combine(&self, level: &Level, leads: bool, words: [&[u64]; 3], out: &mut [u64]) {
        let ([opened, products, masks], all) = (words, words[0].len() / level.opened());
        check("opened words", opened.len(), all * level.opened());
        check("product words", products.len(), all * level.products());
        check("mask words", masks.len(), all * level.opened());
        check("result words", out.len(), all * level.results());
        let words = self.plane_share(all);
        let (each, dealt) = (level.opened() * words, level.products() * words);
        let parts = opened.chunks(each).zip(products.chunks(dealt)).zip(masks.chunks(each));
        in_parallel(parts.zip(out.chunks_mut(level.results() * words)), |(((o, p), m), out)| {
            chunked::combine(self.chunks, level, leads, [o, p, m], out);
        });
    }

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
        check("points", alpha.len(), shape.count);
        check("words", words.len(), shape.count * shape.words);
        check("roots", roots.len(), shape.count);
        check("offsets", deltas.len(), shape.count);
        check("key bytes", key0.len(), shape.key_bytes());
        check("key bytes", key1.len(), shape.key_bytes());
        lookup::cpu::generate(hash, shape, alpha, words, roots, deltas, key0, key1);
    }

    fn lookup_eval(
        &self,
        hash: &TreeHash,
        shape: LookupShape,
        second: bool,
        keys: &[u8],
        points: &[u64],
        read: &Read,
    ) -> Vec<u64> {
        check("points", points.len(), shape.count);
        check("key bytes", keys.len(), shape.key_bytes());
        check("words of a key", shape.words, read.words());
        let (each, row) = (shape.count.div_ceil(self.threads).max(1), shape.key_row());
        let parts = in_parallel(
            points.chunks(each).zip(keys.chunks(each * row)).enumerate(),
            |(i, (points, keys))| {
                let shape = LookupShape { count: points.len(), ..shape };
                let read = match read {
                    Read::Tables(tables) => Read::Tables(tables),
                    Read::Quadratics(pieces, lows) => {
                        Read::Quadratics(pieces, &lows[i * each..][..points.len()])
                    }
                };
                lookup::cpu::eval(self.wide, lookup::cpu::Batch { hash, shape, second, keys, points }, &read)
            },
        );
        parts.concat()
    }

    fn prepare(&self, ring: Ring, shape: LinearShape, weights: &[u64]) -> Arc<dyn Weights> {
        check("weights", weights.len(), shape.weight_len());
        linear::prepare(self.linear, self.threads, ring, shape, weights)
    }

    fn prepare_bits(&self, ring: Ring, shape: LinearShape, words: &[u64]) -> Arc<dyn Weights> {
        check("weights", words.len(), shape.weight_len());
        linear::prepare_bits(self.linear, self.threads, ring, shape, words)
    }

    fn linear_acc(&self, ring: Ring, shape: LinearShape, x: &[u64], weights: &dyn Weights, out: &mut [u64]) {
        check("inputs", x.len(), shape.input_len());
        check("outputs", out.len(), shape.output_len());
        linear::linear_acc(self.linear, self.threads, ring, shape, x, weights, out);
    }

    fn add_weighted(&self, weights: &[u64], rows: &[&[u64]], out: &mut [u64]) {
        linear::add_weighted(self.linear, self.threads, weights, rows, out);
    }

    /// A product a thread, while there are as many: small ones would not keep several threads busy.
    fn prepare_each(
        &self,
        ring: Ring,
        shape: LinearShape,
        count: usize,
        weights: &[u64],
    ) -> Vec<Arc<dyn Weights>> {
        let len = shape.weight_len();
        check("weights", weights.len(), count * len);
        let of = |i: usize| &weights[i * len..(i + 1) * len];
        if count < self.threads {
            return (0..count).map(|i| self.prepare(ring, shape, of(i))).collect();
        }
        let part = |products: Range<usize>| -> Vec<Arc<dyn Weights>> {
            products.map(|i| linear::prepare(self.linear, 1, ring, shape, of(i))).collect()
        };
        in_parallel(split(count, self.threads), part).concat()
    }

    fn linear_acc_each(
        &self,
        ring: Ring,
        shape: LinearShape,
        x: &[u64],
        weights: &[Arc<dyn Weights>],
        out: &mut [u64],
    ) {
        let (count, from, to) = (weights.len(), shape.input_len(), shape.output_len());
        check("inputs", x.len(), count * from);
        check("outputs", out.len(), count * to);
        if to == 0 {
            return;
        }
        // with fewer products than threads the threads share each
        let (together, threads) = if count < self.threads { (1, self.threads) } else { (self.threads, 1) };
        let each = count.div_ceil(together).max(1);
        let parts = weights.chunks(each).zip(out.chunks_mut(each * to)).enumerate();
        in_parallel(parts, |(part, (weights, out))| {
            for (i, (w, out)) in weights.iter().zip(out.chunks_mut(to)).enumerate() {
                let x = &x[(part * each + i) * from..][..from];
                linear::linear_acc(self.linear, threads, ring, shape, x, w.as_ref(), out);
            }
        });
    }

    fn bit_planes(&self, values: &[u64], places: &[usize], out: &mut [u64]) {
        self.bits.planes(values, places, out);
    }

    fn fold(&self) -> FoldPath {
        self.fold
    }
}

fn check(what: &str, found: usize, expected: usize) {
    assert_eq!(found, expected, "number of {what}");
}
