//! AVX-512 with carry-less multiplication (eight words a register) and 8x8 bit matrices (GFNI).
//!
//! Groups are taken eight at a time, one a lane, so that everything but the loads is done lane by lane.

mod bits;
mod field;
mod folds;
mod lanes;
mod numbers;
mod points;
mod products;
mod ring;
mod rows;
mod second;
mod twice;

use crate::avx512::V;
pub(super) use bits::{words_combine, words_message};
pub(super) use field::{field_fold, field_message, field_weigh};
pub(super) use folds::ring_fold;
pub(super) use numbers::{bits_fold, numbers_combine, numbers_fold, numbers_message};
pub(super) use products::{products, products_of_some};
pub(super) use ring::{ring_values, weigh};
pub(super) use rows::rows_combine;
pub(super) use second::{SecondMatrices, second_matrices, second_values};
pub(super) use twice::{TwiceMatrices, twice_matrices, words_fold_twice};

/// Whether this machine can run these functions.
pub(super) fn available() -> bool {
    crate::avx512::available()
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("vpclmulqdq")
}
