use super::kernel::{Kernel, Panel, Tile};
use super::words;

/// Plain 64-bit multiplications over panels that the compiler can vectorise.
#[derive(Clone, Copy)]
pub(super) struct Portable;

const ROWS: usize = 4;
const COLS: usize = 8;
const DEPTH: usize = 16;

impl Kernel for Portable {
    const ROWS: usize = ROWS;
    const COLS: usize = COLS;
    const DEPTH: usize = DEPTH;
    const BLOCK_STEPS: usize = 32;
    const BLOCK_TILES: usize = 16;
    const FEWER: Option<usize> = Some(1);

    fn a_step(&self) -> usize {
        ROWS * DEPTH * 8
    }

    fn b_step(&self) -> usize {
        COLS * DEPTH * 8
    }

    fn pack_a(&self, rows: &[&[u64]], out: &mut [u8]) {
        words::pack_a::<u64, ROWS>(rows, out);
    }

    fn pack_b(&self, block: &[u64], stride: usize, out: &mut [u8]) {
        words::pack_b::<u64, COLS>(block, stride, out);
    }

    #[inline(always)]
    fn put_a(&self, words: &[u64], out: &mut [u8]) {
        words::put::<u64>(words, 0, out);
    }

    #[inline(always)]
    fn put_b(&self, words: &[u64], at: usize, out: &mut [u8]) {
        words::put::<u64>(words, at, out);
    }

    fn enter(&self, _rows: usize) -> impl Sized {}

    fn multiply(&self, _size: [usize; 2], a: Panel, b: Panel, depth: usize, _ahead: &[u8], tile: &mut Tile) {
        let (a, b) = (words::view::<u64>(a.words), words::view::<u64>(b.words));
        let mut acc = [[0u64; COLS]; ROWS];
        for (a, b) in a.chunks_exact(ROWS).zip(b.chunks_exact(COLS)).take(depth) {
            for (acc, a) in acc.iter_mut().zip(a) {
                for (acc, b) in acc.iter_mut().zip(b) {
                    *acc = acc.wrapping_add(a.wrapping_mul(*b));
                }
            }
        }
        tile.0.as_chunks_mut::<COLS>().0[..ROWS].copy_from_slice(&acc);
    }
}
