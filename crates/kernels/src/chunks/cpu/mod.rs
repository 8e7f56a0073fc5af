//! Chunks on the CPU: a block after the other, by the widest registers within the cap.

mod block;
mod lane;

use super::{BLOCK, Chunks, Level, SIDE};
use crate::CpuCap;
use crate::bits::cpu::BitsPath;
use block::Place;
use lane::Lane;
use std::fmt;
use zeroize::Zeroizing;

/// How blocks are computed; all paths give the same words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunksPath {
    /// A word at a time.
    Portable,
    /// Four words.
    Avx2,
    /// Eight words, three operands an instruction.
    Avx512,
}

impl ChunksPath {
    /// Every path, slowest first.
    pub const ALL: [ChunksPath; 3] = [ChunksPath::Portable, ChunksPath::Avx2, ChunksPath::Avx512];

    /// Whether this machine can run the path.
    pub fn available(self) -> bool {
        match self {
            ChunksPath::Portable => true,
            #[cfg(target_arch = "x86_64")]
            ChunksPath::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            ChunksPath::Avx512 => is_x86_feature_detected!("avx512f"),
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// The fastest path of this machine within `cap`.
    pub fn detect(cap: CpuCap) -> ChunksPath {
        let allowed = |p: &ChunksPath| p.least_cap() <= cap && p.available();
        ChunksPath::ALL.into_iter().rev().find(allowed).unwrap_or(ChunksPath::Portable)
    }

    fn least_cap(self) -> CpuCap {
        match self {
            ChunksPath::Portable => CpuCap::Portable,
            ChunksPath::Avx2 => CpuCap::Avx2,
            ChunksPath::Avx512 => CpuCap::Avx512,
        }
    }

    /// Do `work` on all words of a block of `side` words a plane.
    fn block(self, side: usize, work: &mut impl Work) {
        assert!(self.available(), "the CPU path {self} is not available here; take ChunksPath::detect");
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: available, as just checked.
            ChunksPath::Avx512 if side == SIDE => unsafe { avx512(work) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: available, as just checked.
            ChunksPath::Avx2 if side == SIDE => unsafe { avx2(work) },
            _ => (0..side).for_each(|at| work.lane::<u64>(Place { side, at })),
        }
    }
}

impl fmt::Display for ChunksPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ChunksPath::Portable => "portable chunks",
            ChunksPath::Avx2 => "AVX2 chunks",
            ChunksPath::Avx512 => "AVX-512 chunks",
        })
    }
}

/// One kernel on one block.
trait Work {
    fn lane<L: Lane>(&mut self, place: Place);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn avx512(work: &mut impl Work) {
    work.lane::<lane::Avx512>(Place { side: SIDE, at: 0 });
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2(work: &mut impl Work) {
    for at in [0, lane::Avx2::WORDS] {
        work.lane::<lane::Avx2>(Place { side: SIDE, at });
    }
}

/// The place of every bit of a value.
const PLACES: [usize; 64] = {
    let mut places = [0; 64];
    let mut i = 0;
    while i < 64 {
        places[i] = i;
        i += 1;
    }
    places
};

/// Bit planes of a block's values.
fn turned<'a>(bits: BitsPath, chunks: &Chunks, values: &[u64], planes: &'a mut [u64]) -> &'a [u64] {
    let count = chunks.bits() as usize;
    let planes = &mut planes[..count * values.len().div_ceil(64)];
    bits.planes(values, &PLACES[..count], planes);
    planes
}

/// See [`crate::Device::chunk_leaves`].
pub fn leaves(
    (path, bits): (ChunksPath, BitsPath),
    chunks: &Chunks,
    leads: bool,
    x: &[u64],
    tables: &[u64],
    out: &mut [u64],
) {
    let mut planes = [0; 64 * SIDE];
    let blocks = tables.chunks(chunks.tables() * SIDE).zip(out.chunks_mut(chunks.leaves() * SIDE));
    for (values, (tables, out)) in x.chunks(BLOCK).zip(blocks) {
        let x = turned(bits, chunks, values, &mut planes);
        path.block(values.len().div_ceil(64), &mut Leaves { chunks, leads, x, tables, out });
    }
}

struct Leaves<'a> {
    chunks: &'a Chunks,
    leads: bool,
    x: &'a [u64],
    tables: &'a [u64],
    out: &'a mut [u64],
}

impl Work for Leaves<'_> {
    #[inline(always)]
    fn lane<L: Lane>(&mut self, place: Place) {
        block::leaves::<L>(self.chunks, self.leads, place, self.x, self.tables, self.out);
    }
}

/// See [`crate::Device::chunk_tables`].
pub fn tables((path, bits): (ChunksPath, BitsPath), chunks: &Chunks, r: &[u64], out: &mut [u64]) {
    let mut planes = Zeroizing::new([0; 64 * SIDE]);
    for (values, out) in r.chunks(BLOCK).zip(out.chunks_mut(chunks.tables() * SIDE)) {
        let r = turned(bits, chunks, values, planes.as_mut());
        path.block(values.len().div_ceil(64), &mut Tables { chunks, r, out });
    }
}

struct Tables<'a> {
    chunks: &'a Chunks,
    r: &'a [u64],
    out: &'a mut [u64],
}

impl Work for Tables<'_> {
    #[inline(always)]
    fn lane<L: Lane>(&mut self, place: Place) {
        block::tables::<L>(self.chunks, place, self.r, self.out);
    }
}

/// See [`crate::Device::chunk_products`].
pub fn products(path: ChunksPath, level: &Level, masks: &[u64], out: &mut [u64]) {
    let planes = level.opened();
    for (masks, out) in masks.chunks(planes * SIDE).zip(out.chunks_mut(level.products() * SIDE)) {
        path.block(masks.len() / planes, &mut Products { level, masks, out });
    }
}

struct Products<'a> {
    level: &'a Level,
    masks: &'a [u64],
    out: &'a mut [u64],
}

impl Work for Products<'_> {
    #[inline(always)]
    fn lane<L: Lane>(&mut self, place: Place) {
        block::products::<L>(self.level, place, self.masks, self.out);
    }
}

/// See [`crate::Device::chunk_combine`].
pub fn combine(
    path: ChunksPath,
    level: &Level,
    leads: bool,
    [opened, products, masks]: [&[u64]; 3],
    out: &mut [u64],
) {
    let planes = level.opened();
    let blocks = opened.chunks(planes * SIDE).zip(masks.chunks(planes * SIDE));
    let dealt = products.chunks(level.products() * SIDE).zip(out.chunks_mut(level.results() * SIDE));
    for ((opened, masks), (products, out)) in blocks.zip(dealt) {
        let words = [opened, products, masks];
        path.block(opened.len() / planes, &mut Combine { level, leads, words, out });
    }
}

struct Combine<'a> {
    level: &'a Level,
    leads: bool,
    words: [&'a [u64]; 3],
    out: &'a mut [u64],
}

impl Work for Combine<'_> {
    #[inline(always)]
    fn lane<L: Lane>(&mut self, place: Place) {
        block::combine::<L>(self.level, self.leads, place, self.words, self.out);
    }
}
