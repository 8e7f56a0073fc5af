use super::kernel::{Kernel, Own, Panel, Tile};
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
    const PAIRS: Option<usize> = Some(2 * ROWS);

    fn a_step(&self) -> usize {
        ROWS * DEPTH * 8
    }

    fn b_step(&self) -> usize {
        COLS * DEPTH * 8
    }

    fn pack_a(&self, rows: &[&[u64]], out: &mut [u8]) {
        words::pack_a::<u64, ROWS, DEPTH>(rows, out);
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
        let own = a.own.zip(b.own);
        let (a, b) = (words::view(a.words), words::view(b.words));
        tile.0.as_chunks_mut::<COLS>().0[..ROWS].copy_from_slice(&match own {
            Some(own) => pairs(a, b, own, depth),
            None => one_by_one(a, b, depth),
        });
    }

    fn own_a(&self, words: &[u8], depth: usize) -> Own {
        words::own::<ROWS>(words::view(words), depth)
    }

    fn own_b(&self, words: &[u8], depth: usize) -> Own {
        words::own::<COLS>(words::view(words), depth)
    }
}

fn one_by_one(a: &[u64], b: &[u64], depth: usize) -> [[u64; COLS]; ROWS] {
    let mut acc = [[0u64; COLS]; ROWS];
    for (a, b) in a.as_chunks::<ROWS>().0.iter().zip(b.as_chunks::<COLS>().0).take(depth) {
        for (acc, a) in acc.iter_mut().zip(a) {
            for (acc, b) in acc.iter_mut().zip(b) {
                *acc = acc.wrapping_add(a.wrapping_mul(*b));
            }
        }
    }
    acc
}

fn pairs(a: &[u64], b: &[u64], own: (&Own, &Own), depth: usize) -> [[u64; COLS]; ROWS] {
    let mut acc = [[0u64; COLS]; ROWS];
    for (acc, of_a) in acc.iter_mut().zip(own.0.0) {
        acc.iter_mut().zip(own.1.0).for_each(|(acc, of_b)| *acc = of_a.wrapping_add(of_b).wrapping_neg());
    }
    let (a, b) = (a.as_chunks::<ROWS>().0.as_chunks::<2>().0, b.as_chunks::<COLS>().0.as_chunks::<2>().0);
    for ([a0, a1], [b0, b1]) in a.iter().zip(b).take(depth.div_ceil(2)) {
        for (acc, (a0, a1)) in acc.iter_mut().zip(a0.iter().zip(a1)) {
            for (acc, (b0, b1)) in acc.iter_mut().zip(b0.iter().zip(b1)) {
                *acc = acc.wrapping_add(a0.wrapping_add(*b1).wrapping_mul(a1.wrapping_add(*b0)));
            }
        }
    }
    acc
}
