//! The gate family: one comparison, one opened bit, then an affine map of the public masked value whose
//! coefficients are dealt as table words chosen by public bits (DESIGN section 6; formulas in docs/fss.md).
//!
//! Notation in every file: `x` the value, `r` its mask, `xh = x + r`; `y` the result, `s` the fresh mask
//! of the result; `c` the comparison's bit, `m` the bit that masks it, `ch = c ^ m` what is opened.

pub(crate) mod argmax;
pub(crate) mod choose;
pub(crate) mod choose_every;
pub(crate) mod dither;
pub(crate) mod dropout;
pub(crate) mod equal;
pub(crate) mod exponential;
pub(crate) mod extend;
pub(crate) mod linear;
pub(crate) mod local;
pub(crate) mod lookup;
pub(crate) mod max;
pub(crate) mod mul;
pub(crate) mod relu;
pub(crate) mod scale;
pub(crate) mod select;
pub(crate) mod sign;
pub(crate) mod truncate;
pub(crate) mod waves;
