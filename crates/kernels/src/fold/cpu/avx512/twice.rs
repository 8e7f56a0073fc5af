//! Two folds of words at once: an item for sixteen lanes of a group, by one bit matrix.
//!
//! Lane i of word l is multiplied by element l of the first basis and element i of the second. So a byte of a word, eight lanes, is taken to a
//! byte of its item by an 8x8 bit matrix, and nothing is moved before but bytes. Two groups at a time: they have eight items, whose bytes stand in one word
//! of a register, as they have the same matrix.

use super::V;
use super::field::multiply;
use super::lanes::{load, store, transpose};
use crate::avx512::{byte_by_byte, bytes, matrices_of};
use crate::fold::{GROUP, LANES_TWICE, Words};
use crate::near::ahead;
use std::arch::x86_64::*;
use zeroize::Zeroizing;

/// Items of a group.
const ITEMS: usize = GROUP / LANES_TWICE;

/// For eight words after another, for the lower and the upper eight lanes of each item and for each byte of the item: the matrices of
/// eight words.
pub(in crate::fold::cpu) type TwiceMatrices = [[[[u64; 8]; 8]; 2]; GROUP / 8];

/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx512f,avx512vbmi,vpclmulqdq,gfni")]
pub(in crate::fold::cpu) unsafe fn twice_matrices(
    first: &[u64; GROUP],
    second: &[u64; LANES_TWICE],
) -> Box<TwiceMatrices> {
    let mut matrices = Box::new([[[[0; 8]; 8]; 2]; GROUP / 8]);
    for (l, first) in first.iter().enumerate() {
        for (half, second) in second.as_chunks::<8>().0.iter().enumerate() {
            let mut of_bytes = [0; 8];
            let elements = multiply(_mm512_set1_epi64(*first as i64), load(second));
            store(&mut of_bytes, matrices_of(elements));
            for (words, matrix) in matrices[l / 8][half].iter_mut().zip(of_bytes) {
                words[l % 8] = matrix;
            }
        }
    }
    matrices
}

/// Bytes of two registers of eight words: of word w the lower (or upper) byte of every item, those of the first register before those of
/// the second.
const fn halves(upper: u8) -> [u8; 64] {
    let mut index = [0; 64];
    let mut i = 0;
    while i < 64 {
        let (word, item) = (i / 8, i % 8);
        let (register, item) = (item / ITEMS, item % ITEMS);
        index[i] = (64 * register + 8 * word + 2 * item) as u8 + upper;
        i += 1;
    }
    index
}

/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx512f,avx512vbmi,gfni")]
pub(in crate::fold::cpu) unsafe fn words_fold_twice(
    words: Words,
    matrices: &TwiceMatrices,
    out: &mut Vec<u64>,
) {
    const LOWER: [u8; 64] = halves(0);
    const UPPER: [u8; 64] = halves(1);
    let (lower, upper) = (bytes(&LOWER), bytes(&UPPER));
    let mut last = Zeroizing::new([0; 2 * GROUP]);
    for at in (0..words.len()).step_by(2 * GROUP) {
        let items = ITEMS * (words.len() - at).min(2 * GROUP).div_ceil(GROUP);
        let (a, b) = words.some(at, &mut last).split_at(GROUP);
        // byte p of all eight items, summed up to the words that are eight apart
        let mut sums = [_mm512_setzero_si512(); 8];
        let rows = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0);
        for ((a, b), [of_lower, of_upper]) in rows.zip(matrices) {
            ahead(a);
            ahead(b);
            let (a, b) = (load(a), load(b));
            let x = _mm512_permutex2var_epi8(a, lower, b);
            let y = _mm512_permutex2var_epi8(a, upper, b);
            for (sum, (m, n)) in sums.iter_mut().zip(of_lower.iter().zip(of_upper)) {
                let x = _mm512_gf2p8affine_epi64_epi8::<0>(x, load(m));
                let y = _mm512_gf2p8affine_epi64_epi8::<0>(y, load(n));
                *sum = _mm512_ternarylogic_epi64::<0x96>(*sum, x, y);
            }
        }
        let by_word: [V; 8] = transpose(sums);
        let zero = _mm512_setzero_si512();
        let sum = by_word.into_iter().fold(zero, |sum, words| _mm512_xor_si512(sum, words));
        let mut folded = [0; 8];
        store(&mut folded, byte_by_byte(sum));
        out.extend_from_slice(&folded[..items]);
    }
}
