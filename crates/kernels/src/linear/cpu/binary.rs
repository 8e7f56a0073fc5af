//! Weights that are 0 or 1: nothing is multiplied.
//!
//! Four positions of the depth go together. What stands there in eight columns has sixteen sums, which are made once for a tile
//! of rows. A row has four bits there, and adds the sum that they name (Arlazarov, Dinic, Kronrod, Faradzhev, *On economical
//! construction of the transitive closure of a directed graph*, 1970). Example: a row with bits 0 1 1 0 adds sum 6, which is `b_1 + b_2`.
//!
//! Bits name places in memory, so they must be no secret to whoever owns the machine ([`crate::Device::prepare_bits`]).

use super::buffer::Buffer;
use super::conv::ConvGemm;
use super::kernel::{Kernel, MAX_COLS, MAX_ROWS, Panel, Tile};
use super::{LinearPath, untiled, words};
use crate::LinearShape;
use privet_prg::wiped::Wiped;
use privet_ring::{Conv2d, transposed};

/// As many as pay for the sums.
const ROWS: usize = MAX_ROWS;
const COLS: usize = MAX_COLS;
const DEPTH: usize = 16;
/// Positions of the depth whose bits name one sum.
const TOGETHER: usize = 4;
/// Sums of so many words.
const SUMS: usize = 1 << TOGETHER;

/// Rows of bits, which are weights, times columns of words.
#[derive(Clone, Copy)]
pub(super) struct Binary(pub(super) LinearPath);

/// A product by bits as one convolution by windows of one: matrix products have their rows as pixels, and output channels as columns.
#[derive(Clone, Copy)]
pub(super) struct Product {
    shape: LinearShape,
    conv: Conv2d,
}

impl Product {
    /// `None` where no tiles are made ([`untiled`]).
    pub(super) fn of(shape: LinearShape) -> Option<Product> {
        let conv = match shape {
            _ if untiled(shape).is_some() => return None,
            LinearShape::MatMulT { m, k, n } | LinearShape::MatMul { m, k, n } => pixels(m.max(1), k, n),
            LinearShape::Conv2d(conv) => conv,
        };
        Some(Product { shape, conv })
    }

    /// The bits as a kernel wants them.
    pub(super) fn pack(self, kernel: Binary, threads: usize, bits: &[u64]) -> Buffer {
        let packed = |bits: &[u64]| ConvGemm::new(self.conv).pack_weights(kernel, threads, bits);
        match self.shape {
            LinearShape::MatMul { k, n, .. } => packed(&transposed(bits, k, n)),
            LinearShape::MatMulT { .. } | LinearShape::Conv2d(_) => packed(bits),
        }
    }

    /// `out += x bits`.
    pub(super) fn run(self, kernel: Binary, threads: usize, x: &[u64], bits: &Buffer, out: &mut [u64]) {
        let conv = ConvGemm::new(self.conv);
        let (LinearShape::MatMulT { m, k, n } | LinearShape::MatMul { m, k, n }) = self.shape else {
            return conv.run(kernel, threads, x, bits, out);
        };
        if out.is_empty() {
            return;
        }
        let (x, mut columns) = (Wiped::new(transposed(x, m, k)), Wiped::zeros(m * n));
        conv.run(kernel, threads, &x, bits, &mut columns);
        for (out, column) in out.iter_mut().zip(Wiped::new(transposed(&columns, n, m)).iter()) {
            *out = out.wrapping_add(*column);
        }
    }
}

/// `m` pixels of `k` channels, to `n` channels.
fn pixels(m: usize, k: usize, n: usize) -> Conv2d {
    Conv2d {
        batch: 1,
        in_channels: k,
        input: [1, m],
        out_channels: n,
        kernel: [1; 2],
        stride: [1; 2],
        padding: [0; 4],
        dilation: [1; 2],
        groups: 1,
    }
}

impl Kernel for Binary {
    const ROWS: usize = ROWS;
    const COLS: usize = COLS;
    const DEPTH: usize = DEPTH;
    const BLOCK_STEPS: usize = 16;
    const BLOCK_TILES: usize = 8;
    const FEWER: Option<usize> = None;

    fn a_step(&self) -> usize {
        ROWS * DEPTH / TOGETHER
    }

    fn b_step(&self) -> usize {
        COLS * DEPTH * 8
    }

    /// Of every four positions a byte for each row.
    fn pack_a(&self, rows: &[&[u64]], out: &mut [u8]) {
        for (group, out) in out.chunks_exact_mut(ROWS).enumerate() {
            for (name, row) in out.iter_mut().zip(rows) {
                let bits = row.iter().skip(group * TOGETHER).take(TOGETHER);
                *name = bits.enumerate().fold(0, |name, (place, bit)| name | ((bit & 1) as u8) << place);
            }
        }
    }

    fn pack_b(&self, block: &[u64], stride: usize, out: &mut [u8]) {
        words::pack_b::<u64, COLS>(block, stride, out);
    }

    fn enter(&self, _rows: usize) -> impl Sized {}

    fn multiply(
        &self,
        [rows, columns]: [usize; 2],
        a: Panel,
        b: Panel,
        depth: usize,
        _ahead: &[u8],
        tile: &mut Tile,
    ) {
        let names = &a.words.as_chunks::<ROWS>().0[..depth.div_ceil(TOGETHER)];
        let words = words::view::<u64>(b.words).as_chunks::<COLS>().0.as_chunks::<TOGETHER>().0;
        let of = Operands { names, words, rows, columns };
        match self.0 {
            // SAFETY (both): `prepare` has found what the path needs.
            #[cfg(target_arch = "x86_64")]
            LinearPath::Avx512 | LinearPath::Amx => unsafe { x86::avx512(of, tile) },
            #[cfg(target_arch = "x86_64")]
            LinearPath::Avx2 => unsafe { x86::avx2(of, tile) },
            _ => portable(of, tile),
        }
    }
}

/// What a tile is made of.
struct Operands<'a> {
    /// Of every four positions the sum that each row adds.
    names: &'a [[u8; ROWS]],
    /// Of every four positions four rows of B, and perhaps more than names.
    words: &'a [[[u64; COLS]; TOGETHER]],
    rows: usize,
    columns: usize,
}

fn portable(of: Operands, tile: &mut Tile) {
    let out = &mut tile.0.as_chunks_mut::<COLS>().0[..of.rows];
    out.as_flattened_mut().fill(0);
    for (names, words) in of.names.iter().zip(of.words) {
        let mut sums = [[0u64; COLS]; SUMS];
        for (place, word) in words.iter().enumerate() {
            let (known, next) = sums.split_at_mut(1 << place);
            for (next, known) in next.iter_mut().zip(known) {
                for (next, (known, word)) in next.iter_mut().zip(known.iter().zip(word)) {
                    *next = known.wrapping_add(*word);
                }
            }
        }
        for (out, name) in out.iter_mut().zip(names) {
            let sum = &sums[usize::from(*name) % SUMS];
            out[..of.columns].iter_mut().zip(sum).for_each(|(out, sum)| *out = out.wrapping_add(*sum));
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use std::arch::x86_64::*;

    /// Groups of positions whose sums are made together, for all rows of a tile: 16 KB of the first-level cache.
    const GROUPS: usize = 16;

    /// Tiles by registers of `$words` words, `$most` rows at a time: as many sums as rows stay in registers.
    macro_rules! tiles {
        ($name:ident, $features:literal, $words:literal, $most:literal, $align:literal,
            $zero:ident, $add:ident, $load:ident, $store:ident) => {
            #[target_feature(enable = $features)]
            pub(super) fn $name(of: Operands, tile: &mut Tile) {
                #[repr(align($align))]
                struct Sums([[[u64; $words]; SUMS]; GROUPS]);

                /// All sums of some groups in the columns of a register.
                #[target_feature(enable = $features)]
                fn make(groups: &[[[u64; COLS]; TOGETHER]], column: usize, sums: &mut Sums) {
                    for (words, sums) in groups.iter().zip(&mut sums.0) {
                        let mut made = [$zero(); SUMS / 2];
                        for (place, word) in words.iter().enumerate() {
                            let word: &[u64; $words] = word[column..].first_chunk().expect("whole registers");
                            // SAFETY (both): the words of a register.
                            let word = unsafe { $load(word.as_ptr().cast()) };
                            for known in 0..1 << place {
                                let sum = $add(made[known], word);
                                if place + 1 < TOGETHER {
                                    made[known + (1 << place)] = sum;
                                }
                                unsafe { $store(sums[known + (1 << place)].as_mut_ptr().cast(), sum) };
                            }
                        }
                    }
                }

                /// Add to `R` rows from `first` on what they name.
                #[target_feature(enable = $features)]
                fn rows<const R: usize>(
                    names: &[[u8; ROWS]],
                    sums: &Sums,
                    [first, column]: [usize; 2],
                    tile: &mut Tile,
                ) {
                    let tile = &mut tile.0.as_chunks_mut::<COLS>().0[first..][..R];
                    let mut out = [$zero(); R];
                    for (out, row) in out.iter_mut().zip(&*tile) {
                        let row: &[u64; $words] = row[column..].first_chunk().expect("whole registers");
                        // SAFETY: the words of a register.
                        *out = unsafe { $load(row.as_ptr().cast()) };
                    }
                    for (names, sums) in names.iter().zip(&sums.0) {
                        let names: &[u8; R] = names[first..].first_chunk().expect("rows of a tile");
                        for (out, name) in out.iter_mut().zip(names) {
                            // SAFETY: [`Binary::pack_a`] names these sums alone; each has the words of a register. (Names
                            // that are made sure of here go through vectors, which takes half of the time.)
                            *out = unsafe {
                                let sum = sums.get_unchecked(usize::from(*name));
                                $add(*out, $load(sum.as_ptr().cast()))
                            };
                        }
                    }
                    for (row, out) in tile.iter_mut().zip(out) {
                        let row: &mut [u64; $words] =
                            row[column..].first_chunk_mut().expect("whole registers");
                        // SAFETY: the words of a register.
                        unsafe { $store(row.as_mut_ptr().cast(), out) };
                    }
                }

                let mut sums = Sums([[[0; $words]; SUMS]; GROUPS]);
                let count = of.rows.next_multiple_of($most);
                tile.0.as_chunks_mut::<COLS>().0[..count].as_flattened_mut().fill(0);
                for (names, words) in of.names.chunks(GROUPS).zip(of.words.chunks(GROUPS)) {
                    for column in (0..of.columns).step_by($words) {
                        make(words, column, &mut sums);
                        for first in (0..of.rows).step_by($most) {
                            match of.rows - first {
                                ..=4 => rows::<4>(names, &sums, [first, column], tile),
                                ..=8 => rows::<8>(names, &sums, [first, column], tile),
                                _ => rows::<$most>(names, &sums, [first, column], tile),
                            }
                        }
                    }
                }
            }
        };
    }

    tiles!(
        avx512,
        "avx512f",
        8,
        16,
        64,
        _mm512_setzero_si512,
        _mm512_add_epi64,
        _mm512_loadu_si512,
        _mm512_storeu_si512
    );
    tiles!(
        avx2,
        "avx2",
        4,
        8,
        32,
        _mm256_setzero_si256,
        _mm256_add_epi64,
        _mm256_loadu_si256,
        _mm256_storeu_si256
    );
}
