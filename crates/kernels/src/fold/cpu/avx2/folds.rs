//! Values of polynomials over both Galois rings, four polynomials at a time.

use super::V;
use super::lanes::{Four, LANES, gather, store, transpose};
use crate::fold::cpu::folds::{Places, TOGETHER, WINDOW, WINDOWS, galois_folds, places};
use crate::fold::galois::DOWN;
use crate::fold::{Element, GROUP, RINGS};
use std::arch::x86_64::*;

galois_folds!("avx2", Four, _mm256_setzero_si256, _mm256_add_epi64, _mm256_sub_epi64);
