//! Eight words at a time become a byte for each of their bits (a bit matrix for each of their bytes); bytes of eight times eight
//! words are then put together.

use crate::avx512::{V, columns, interleave, lanes_in_order, load, store, transpose};
use std::arch::x86_64::*;

/// Elements of a block: its planes are words.
const BLOCK: usize = 64;
/// Blocks at a time: eight words of a plane, one register.
const SIDE: usize = 8;

/// # Safety
/// [`crate::avx512::available`].
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
pub(super) unsafe fn planes(values: &[u64], places: &[usize], out: &mut [u64]) {
    let words = values.len().div_ceil(BLOCK);
    let mut last = [0; BLOCK * SIDE];
    for (first, values) in values.chunks(BLOCK * SIDE).enumerate().map(|(i, v)| (i * SIDE, v)) {
        let side = values.len().div_ceil(BLOCK);
        let values: &[u64; BLOCK * SIDE] = match values.try_into() {
            Ok(whole) => whole,
            Err(_) => {
                last[..values.len()].copy_from_slice(values);
                &last
            }
        };
        // planes 8 i to 8 i + 7 of block b
        let mut turned = [[_mm512_setzero_si512(); SIDE]; BLOCK / 8];
        for (b, block) in values.as_chunks::<BLOCK>().0.iter().enumerate().take(side) {
            for (i, planes) in turn(block).into_iter().enumerate() {
                turned[i][b] = planes;
            }
        }
        for (turned, places) in turned.into_iter().zip(places.chunks(8)) {
            for (plane, place) in transpose(turned).into_iter().zip(places) {
                let out = &mut out[place * words + first..][..side];
                match out.first_chunk_mut() {
                    Some(eight) => store(eight, plane),
                    None => {
                        let mut eight = [0; SIDE];
                        store(&mut eight, plane);
                        out.copy_from_slice(&eight[..side]);
                    }
                }
            }
        }
    }
}

/// Word l of the result, eight a register, has bit l of every element.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
#[inline]
fn turn(block: &[u64; BLOCK]) -> [V; 8] {
    let mut bytes = [_mm512_setzero_si512(); 8];
    for (bytes, words) in bytes.iter_mut().zip(block.as_chunks::<8>().0) {
        *bytes = lanes_in_order(columns(load(words)));
    }
    interleave(bytes)
}
