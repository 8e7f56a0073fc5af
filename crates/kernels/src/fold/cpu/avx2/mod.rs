//! AVX2 (four words a register) with carry-less multiplication of single words (PCLMULQDQ).
//!
//! Groups are taken four at a time, one a lane, where there is more to do than loads. What needs nothing but additions is the portable
//! code, compiled for this.

mod bits;
mod field;
mod folds;
mod lanes;
mod numbers;
mod points;
mod products;
mod ring;
mod rows;

pub(super) use bits::{Tables, tables, words_combine, words_fold, words_message};
pub(super) use field::{field_fold, field_message, field_weigh};
pub(super) use folds::ring_fold;
pub(super) use numbers::{bits_fold, numbers_combine, numbers_fold, numbers_message};
pub(super) use products::{products, products_of_some};
pub(super) use ring::{ring_values, weigh};
pub(super) use rows::rows_combine;
use std::arch::x86_64::__m256i;

/// Four words.
type V = __m256i;

/// Whether this machine can run these functions.
pub(super) fn available() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("pclmulqdq")
}
