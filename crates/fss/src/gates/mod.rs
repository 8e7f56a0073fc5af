//! The gate family: one comparison, one opened bit, then an affine map of the public masked value whose
//! coefficients are dealt as table words chosen by public bits (DESIGN section 6; formulas in docs/fss.md).
//!
//! Notation in every file: `x` the value, `r` its mask, `xh = x + r`; `y` the result, `s` the fresh mask
//! of the result; `c` the comparison's bit, `m` the bit that masks it, `ch = c ^ m` what is opened.

pub mod argmax;
pub mod choose;
pub mod dither;
pub mod equal;
pub mod exponential;
pub mod extend;
pub mod lookup;
pub mod max;
pub mod mul;
pub mod relu;
pub mod scale;
pub mod sign;
pub mod truncate;
