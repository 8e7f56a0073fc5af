//! Values of polynomials over both Galois rings, eight polynomials at a time.

use super::V;
use super::lanes::{Eight, LANES, gather, store, transpose};
use crate::fold::cpu::folds::{Places, TOGETHER, WINDOW, WINDOWS, galois_folds, places};
use crate::fold::galois::DOWN;
use crate::fold::{Element, GROUP, RINGS};
use std::arch::x86_64::*;

galois_folds!("avx512f,avx512dq", Eight, _mm512_setzero_si512, _mm512_add_epi64, _mm512_sub_epi64);
