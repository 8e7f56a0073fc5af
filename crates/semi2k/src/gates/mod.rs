//! The gates.
//!
//! Notation in every file: `x` the value, `lambda` its mask, `xh = x + lambda`; `y` the result, `s` its fresh mask; H a mask of
//! which every bit is shared, `u = x + H` public ([`crate::compare`]); c the comparison's bit, kappa the bit that masks what is
//! opened of it. A party's share of a value is `[i = 0] xh - lambda_i`.

pub(crate) mod argmax;
pub(crate) mod choose;
mod dealt;
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
